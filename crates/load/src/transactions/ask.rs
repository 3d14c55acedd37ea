//! The asking side: one transaction at a time, each measured.

use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plumb_model::direction::OneDirection;
use plumb_model::protocol::Protocol;
use plumb_net::datagram::set_exact_timers;
use plumb_net::tcp::TcpOptions;
use plumb_wire::native::control::flow::transactions::TransactionFlow;

use super::datagrams::Datagrams;
use super::log::{Timing, TransactionLog};
use super::stream::{Broken, SCRATCH_BYTES, TransactionStream, give, ready, take};
use crate::phase_state::{POLL_INTERVAL, Stage};
use crate::streams::FarEnd;
use crate::tls::{Pipe, TlsSession};

/// Longest wait for one connection and its handshake: two lost SYNs in a row (1 + 2 s, RFC 6298).
const CONNECT_WITHIN: Duration = Duration::from_secs(4);

/// Asks until the stage is over or the budget spent, or, where all transactions share a connection,
/// that breaks; the first one `begins_after` the stage did. Returns within [`POLL_INTERVAL`] of
/// the end of the stage, but within [`CONNECT_WITHIN`] where a connection is being made that the
/// far end does not answer.
pub(super) fn run(
    stream: TransactionStream,
    far: &FarEnd,
    begins_after: Duration,
    completed: &AtomicU64,
    stage: &Stage,
) -> TransactionLog {
    let flow = stream.flow.clone();
    let mut link = match Link::new(stream, far) {
        Ok(link) => link,
        Err(error) => return TransactionLog::failed(error.to_string()),
    };
    let mut log = TransactionLog::of_stream();
    let mut schedule = Schedule::new(&flow, stage.started + begins_after);
    if flow.rate_tps.is_some() {
        // Without it they begin up to 50 µs late, which is all that is lost.
        let _ = set_exact_timers();
    }
    while let Some(began) = schedule.next(stage, &mut log) {
        if stage.budget.reserve(flow.bytes()) < flow.bytes() {
            break;
        }
        match link.transact(&flow, far, stage) {
            Ok(timing) => {
                let ended = Instant::now();
                // What ended late belongs to no phase.
                if ended > stage.deadline {
                    log.leave_unfinished();
                    break;
                }
                let timing = Timing {
                    total: began.map_or(timing.total, |due| ended - due),
                    ..timing
                };
                log.complete(ended - stage.started, timing);
                completed.fetch_add(1, Ordering::Relaxed);
            }
            // The far end resets what is under way when the phase ends.
            Err(_) if stage.is_over() => {
                log.leave_unfinished();
                break;
            }
            Err(Broken::Over) => {
                log.leave_unfinished();
                break;
            }
            Err(Broken::Failed(why)) => {
                log.fail(why);
                if !link.survives_failure() {
                    break;
                }
                // What fails at once must not be tried as fast as it can be.
                std::thread::sleep(POLL_INTERVAL);
            }
        }
    }
    log
}

struct Schedule {
    /// When the next one is due, and how much later the one after it.
    due: Option<(Instant, Duration)>,
    /// Nothing was before the next one that it could have waited for.
    first: bool,
}

impl Schedule {
    fn new(flow: &TransactionFlow, first: Instant) -> Self {
        Self {
            due: flow
                .rate_tps
                .map(|rate| (first, Duration::from_secs_f64(1.0 / rate))),
            first: true,
        }
    }

    /// Waits until the next one may begin; `None` when the stage is over. Returns when it was due if the one before
    /// took longer than that: its time counts from then on, so that slow ones do not hide those that wait behind them.
    /// One that this thread merely woke up late for counts from its beginning.
    fn next(&mut self, stage: &Stage, log: &mut TransactionLog) -> Option<Option<Instant>> {
        let Some((due, interval)) = self.due else {
            return (!stage.is_over()).then_some(None);
        };
        self.due = Some((due + interval, interval));
        let waited = !std::mem::take(&mut self.first) && Instant::now() > due;
        if waited {
            log.delay();
            return (!stage.is_over()).then_some(Some(due));
        }
        while !stage.is_over() {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Some(None);
            }
            std::thread::sleep(left.min(POLL_INTERVAL));
        }
        None
    }
}

/// How transactions reach the far end.
enum Link {
    /// All over one connection.
    One {
        socket: TcpStream,
        tls: Option<TlsSession>,
        scratch: Vec<u8>,
    },
    /// Each over a connection of its own; the data connection shows whether the far end still holds the stream.
    Each {
        number: u32,
        stands_for_it: TcpStream,
        scratch: Vec<u8>,
    },
    Datagrams {
        datagrams: Box<Datagrams>,
        stands_for_it: TcpStream,
    },
}

impl Link {
    fn new(stream: TransactionStream, far: &FarEnd) -> std::io::Result<Self> {
        let TransactionStream {
            number,
            flow,
            socket,
            tls,
        } = stream;
        ready(&socket)?;
        let scratch = vec![0; SCRATCH_BYTES.min(flow.bytes() as usize)];
        Ok(if flow.transport == Protocol::Udp {
            Self::Datagrams {
                datagrams: Box::new(Datagrams::open(far, number)?),
                stands_for_it: socket,
            }
        } else if flow.connect {
            Self::Each {
                number,
                stands_for_it: socket,
                scratch,
            }
        } else {
            Self::One {
                socket,
                tls,
                scratch,
            }
        })
    }

    fn transact(
        &mut self,
        flow: &TransactionFlow,
        far: &FarEnd,
        stage: &Stage,
    ) -> Result<Timing, Broken> {
        match self {
            Self::One {
                socket,
                tls,
                scratch,
            } => {
                let mut pipe = Pipe::new(socket, tls.as_mut());
                let response = exchange(&mut pipe, flow, scratch, stage)?;
                Ok(Timing {
                    total: response,
                    response,
                    ..Timing::default()
                })
            }
            Self::Each {
                number, scratch, ..
            } => on_its_own(*number, flow, far, CONNECT_WITHIN, scratch, stage),
            Self::Datagrams { datagrams, .. } => {
                let response = datagrams.exchange(flow, stage)?;
                Ok(Timing {
                    total: response,
                    response,
                    ..Timing::default()
                })
            }
        }
    }

    /// Whether another transaction may succeed after one failed: where the far end still holds
    /// the stream.
    fn survives_failure(&self) -> bool {
        match self {
            Self::One { .. } => false,
            Self::Each { stands_for_it, .. } | Self::Datagrams { stands_for_it, .. } => {
                stands_for_it.set_nonblocking(true).is_ok()
                    && stands_for_it
                        .peek(&mut [0])
                        .is_err_and(|error| crate::phase_state::retry(&error))
            }
        }
    }
}

/// One request and its answer.
fn exchange(
    pipe: &mut Pipe<'_>,
    flow: &TransactionFlow,
    scratch: &mut [u8],
    stage: &Stage,
) -> Result<Duration, Broken> {
    let asked = Instant::now();
    give(pipe, flow.request_bytes as usize, scratch, stage)?;
    take(pipe, flow.response_bytes as usize, scratch, stage)?;
    Ok(asked.elapsed())
}

/// A connection, one transaction, and the end of the connection, which is a reset: an orderly end
/// would hold a port of this host for a minute (TIME_WAIT), of which there are 28,000. The
/// connection and its handshake may take `connect_within`.
pub(crate) fn on_its_own(
    number: u32,
    flow: &TransactionFlow,
    far: &FarEnd,
    connect_within: Duration,
    scratch: &mut [u8],
    stage: &Stage,
) -> Result<Timing, Broken> {
    let began = Instant::now();
    // One that is not there when the phase ends is given up, and is then seen to be over.
    let deadline = (began + connect_within).min(stage.deadline + POLL_INTERVAL);
    let encrypted = flow.transport == Protocol::Tls;
    let dialled = far.dial(
        (OneDirection::Up, number),
        encrypted,
        &TcpOptions::default(),
        deadline,
    );
    let (mut connection, connect) = dialled.map_err(|why| {
        if stage.is_over() {
            Broken::Over
        } else {
            Broken::Failed(why)
        }
    })?;
    ready(&connection.socket)?;
    let handshake = connection.tls.as_ref().map(TlsSession::handshake);
    let mut pipe = Pipe::new(&connection.socket, connection.tls.as_mut());
    let response = exchange(&mut pipe, flow, scratch, stage)?;
    Ok(Timing {
        total: began.elapsed(),
        connect: Some(connect),
        handshake,
        response,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn flow(rate_tps: Option<f64>) -> TransactionFlow {
        TransactionFlow {
            transport: Protocol::Tcp,
            connect: false,
            request_bytes: 1,
            response_bytes: 1,
            rate_tps,
            on_demand: false,
        }
    }

    #[test]
    fn a_transaction_that_had_to_wait_counts_from_when_it_was_due() {
        let stage = Stage::begin(Duration::from_secs(5), None);
        let mut log = TransactionLog::of_stream();
        // A second and a half late: far from what a busy machine adds.
        let first = stage.started - Duration::from_millis(2500);
        let mut schedule = Schedule::new(&flow(Some(1.0)), first);
        let due = |s| Some(Some(first + Duration::from_secs(s)));
        let began: Vec<_> = (0..3).map(|_| schedule.next(&stage, &mut log)).collect();
        // Nothing was before the first one.
        assert_eq!(began, [Some(None), due(1), due(2)]);
        // The fourth is due half a second from now, and is waited for.
        assert_eq!(schedule.next(&stage, &mut log), Some(None));
        assert!(first.elapsed() >= Duration::from_secs(3));
        let cpu = plumb_model::results::CpuUse::default();
        assert_eq!(log.result(&flow(Some(1.0)), 1.0, cpu).delayed, 2);
        stage.stop();
        assert_eq!(schedule.next(&stage, &mut log), None);
    }

    #[test]
    fn without_a_rate_they_follow_each_other_until_the_end() {
        let stage = Stage::begin(Duration::from_secs(5), None);
        let mut log = TransactionLog::of_stream();
        let mut schedule = Schedule::new(&flow(None), stage.started);
        assert_eq!(schedule.next(&stage, &mut log), Some(None));
        stage.stop();
        assert_eq!(schedule.next(&stage, &mut log), None);
    }
}
