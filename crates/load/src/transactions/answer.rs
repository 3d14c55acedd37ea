//! The answering side: as many bytes as were declared for each request of the declared size.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use plumb_model::direction::OneDirection;
use plumb_model::protocol::Protocol;
use plumb_net::tcp;
use plumb_wire::native::control::Start;
use plumb_wire::native::control::flow::transactions::TransactionFlow;
use plumb_wire::native::control::flow::{self, Flow};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::spec::STOP_GRACE;

use super::stream::{Broken, SCRATCH_BYTES, TransactionStream, give, ready, take};
use crate::phase_state::{Stage, retry};
use crate::streams::DataConnection;
use crate::tls::Pipe;

/// Answers on the data connection of a stream until the stage is over or the client ends it. A
/// stream whose transactions come otherwise is only held open.
pub(super) fn run(stream: TransactionStream, stage: &Stage) {
    let TransactionStream {
        flow,
        socket,
        mut tls,
        ..
    } = stream;
    if ready(&socket).is_err() {
        return;
    }
    if flow.connect || flow.transport == Protocol::Udp {
        hold(&socket, stage);
        return;
    }
    let mut pipe = Pipe::new(&socket, tls.as_mut());
    let mut scratch = vec![0; SCRATCH_BYTES];
    while !stage.is_over() && answer(&mut pipe, &flow, &mut scratch, stage).is_ok() {}
}

fn answer(
    pipe: &mut Pipe<'_>,
    flow: &TransactionFlow,
    scratch: &mut [u8],
    stage: &Stage,
) -> Result<(), Broken> {
    take(pipe, flow.request_bytes as usize, scratch, stage)?;
    if stage.budget.reserve(flow.bytes()) < flow.bytes() {
        return Err(Broken::Over);
    }
    give(pipe, flow.response_bytes as usize, scratch, stage)
}

/// Waits until the client ends the connection, or the stage is over.
fn hold(mut socket: &TcpStream, stage: &Stage) {
    let mut unasked = [0; 16];
    while !stage.is_over() {
        match std::io::Read::read(&mut socket, &mut unasked) {
            Err(error) if retry(&error) => (),
            _ => return,
        }
    }
}

/// Answers the connections of those streams of a phase whose transactions have one each. Dropping
/// it ends them within 50 ms.
#[derive(Debug)]
pub struct Answerer {
    phase: u32,
    /// By the number of their stream.
    flows: Vec<(u32, TransactionFlow)>,
    stage: Arc<Stage>,
}

impl Answerer {
    /// For a phase that is about to run; `None` when it has no such streams.
    pub fn of(start: &Start) -> Option<Self> {
        let flows: Vec<_> = flow::streams(&start.flows, OneDirection::Up)
            .filter_map(|(number, flow)| match flow {
                Flow::Transactions(flow) if flow.connect => Some((number, flow.clone())),
                _ => None,
            })
            .collect();
        let longest = Duration::try_from_secs_f64(start.duration_s).ok()? + STOP_GRACE;
        (!flows.is_empty()).then(|| Self {
            phase: start.phase,
            flows,
            stage: Stage::begin(longest, start.byte_limit),
        })
    }

    /// What a connection that began so is to be answered; `None` when it belongs to none of the
    /// streams. How many there may be at once is the listener's business.
    pub fn admit(&self, preamble: &Preamble) -> Option<Admitted> {
        let (_, flow) = self
            .flows
            .iter()
            .find(|(number, _)| *number == preamble.stream)?;
        let encrypted = flow.transport == Protocol::Tls;
        let asked_for = preamble.phase == self.phase
            && preamble.role == OneDirection::Up
            && preamble.tls == encrypted
            && !self.stage.is_over();
        asked_for.then(|| Admitted {
            stage: Arc::clone(&self.stage),
            flow: flow.clone(),
        })
    }

    /// Ends all connections, within 50 ms.
    pub fn stop(&self) {
        self.stage.stop();
    }
}

/// One connection of one transaction.
#[derive(Debug)]
pub struct Admitted {
    stage: Arc<Stage>,
    flow: TransactionFlow,
}

impl Admitted {
    /// Carries the transaction out, and ends the connection in order, so that an answer that is
    /// lost is retransmitted. The client's reset follows, and leaves nothing behind.
    pub fn answer(&self, connection: DataConnection) {
        let DataConnection {
            socket, mut tls, ..
        } = connection;
        let mut scratch = vec![0; SCRATCH_BYTES.min(self.flow.bytes() as usize)];
        let mut pipe = Pipe::new(&socket, tls.as_mut());
        let answered = ready(&socket).is_ok()
            && answer(&mut pipe, &self.flow, &mut scratch, &self.stage).is_ok();
        if answered {
            // Otherwise it is reset, and the client sees that it failed.
            let _ = tcp::close_in_order(&socket);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_wire::native::control::Token;
    use plumb_wire::native::control::flow::Flows;

    fn flows(transport: Protocol, connect: bool) -> Flows {
        Flows {
            count: 1,
            role: OneDirection::Up,
            flow: Flow::Transactions(TransactionFlow {
                transport,
                connect,
                request_bytes: 1,
                response_bytes: 1,
                rate_tps: None,
                on_demand: false,
            }),
        }
    }

    fn start(flows: Vec<Flows>) -> Start {
        Start {
            phase: 3,
            flows,
            duration_s: 10.0,
            byte_limit: None,
        }
    }

    #[test]
    fn only_connections_that_the_phase_asked_for_are_answered() {
        use Protocol::{Tcp, Tls};
        assert!(Answerer::of(&start(vec![flows(Tcp, false)])).is_none());
        let phase = start(vec![flows(Tcp, false), flows(Tls, true)]);
        let answerer = Answerer::of(&phase).unwrap();
        let right = Preamble {
            token: Token([0; 16]),
            phase: 3,
            stream: 1,
            role: OneDirection::Up,
            tls: true,
        };
        for wrong in [
            Preamble { phase: 2, ..right },
            Preamble { stream: 0, ..right },
            Preamble { stream: 2, ..right },
            Preamble {
                role: OneDirection::Down,
                ..right
            },
            Preamble {
                tls: false,
                ..right
            },
        ] {
            assert!(answerer.admit(&wrong).is_none(), "{wrong:?}");
        }
        assert!(answerer.admit(&right).is_some());
        answerer.stop();
        assert!(answerer.admit(&right).is_none());
    }
}
