//! Transactions of one end of a phase: the client asks (`ask.rs`), the server answers (`answer.rs`),
//! a thread for each stream. What the times come to is in [`log`].

pub mod answer;
pub(crate) mod ask;
mod datagrams;
pub mod log;
mod stream;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use plumb_wire::native::control::flow::transactions::TransactionFlow;

use crate::phase_state::Stage;
use crate::streams::FarEnd;
use log::TransactionLog;
pub(crate) use stream::Broken;
pub use stream::TransactionStream;

/// Running streams of transactions.
#[derive(Debug, Default)]
pub(crate) struct TransactionStreams {
    completed: Arc<AtomicU64>,
    asking: Vec<(TransactionFlow, JoinHandle<TransactionLog>)>,
    answering: Vec<JoinHandle<()>>,
}

impl TransactionStreams {
    /// Starts them: `far` is whom the `outgoing` ones ask.
    pub(crate) fn start(
        stage: &Arc<Stage>,
        outgoing: Vec<TransactionStream>,
        far: Option<&FarEnd>,
        incoming: Vec<TransactionStream>,
    ) -> io::Result<Self> {
        let mut this = Self::default();
        let mut beside: Vec<(TransactionFlow, u32, u32)> = Vec::new();
        for stream in &outgoing {
            match beside.iter_mut().find(|(flow, ..)| *flow == stream.flow) {
                Some((_, count, _)) => *count += 1,
                None => beside.push((stream.flow.clone(), 1, 0)),
            }
        }
        for stream in outgoing {
            let Some(far) = far.cloned() else { break };
            let (flow, completed) = (stream.flow.clone(), Arc::clone(&this.completed));
            let begins_after = beside.iter_mut().find(|(known, ..)| *known == flow).map_or(
                Duration::ZERO,
                |(_, count, started)| {
                    *started += 1;
                    phase_of(&flow, *started - 1, *count)
                },
            );
            let thread = stage.spawn("plumb-ask", move |stage| {
                ask::run(stream, &far, begins_after, &completed, stage)
            })?;
            this.asking.push((flow, thread));
        }
        for stream in incoming {
            let thread = stage.spawn("plumb-answer", move |stage| answer::run(stream, stage))?;
            this.answering.push(thread);
        }
        Ok(this)
    }

    /// Transactions completed so far.
    pub(crate) fn completed(&self) -> u64 {
        self.completed.load(Ordering::Relaxed)
    }

    /// Waits for the threads, which have been asked to stop, and returns what was asked of the far end: one log for
    /// each kind of flow, in their order.
    pub(crate) fn finish(self) -> Vec<(TransactionFlow, TransactionLog)> {
        let mut logs: Vec<(TransactionFlow, TransactionLog)> = Vec::new();
        for (flow, thread) in self.asking {
            let log = thread
                .join()
                .unwrap_or_else(|_| TransactionLog::failed("the stream's thread failed"));
            match logs.iter_mut().find(|(known, _)| *known == flow) {
                Some((_, all)) => all.merge(&log),
                None => logs.push((flow, log)),
            }
        }
        for thread in self.answering {
            let _ = thread.join();
        }
        logs
    }
}

/// When the first transaction of one of `count` streams with the same rate is due: they take
/// turns.
fn phase_of(flow: &TransactionFlow, index: u32, count: u32) -> Duration {
    flow.rate_tps.map_or(Duration::ZERO, |rate| {
        Duration::from_secs_f64(f64::from(index) / (rate * f64::from(count.max(1))))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_model::protocol::Protocol;

    #[test]
    fn streams_of_one_rate_take_turns() {
        let flow = TransactionFlow {
            transport: Protocol::Tcp,
            connect: false,
            request_bytes: 1,
            response_bytes: 1,
            rate_tps: Some(10.0),
            on_demand: false,
        };
        let due: Vec<_> = (0..4).map(|k| phase_of(&flow, k, 4).as_millis()).collect();
        assert_eq!(due, [0, 25, 50, 75]);
        let as_many_as_can_be = TransactionFlow {
            rate_tps: None,
            on_demand: false,
            ..flow
        };
        assert_eq!(phase_of(&as_many_as_can_be, 3, 4), Duration::ZERO);
    }
}
