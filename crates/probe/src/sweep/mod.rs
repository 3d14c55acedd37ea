//! Round trips of many targets at once, at a bounded packet rate, in memory that does not grow with
//! time: [`targets`] says who, [`strategy`] decides when and counts, without sockets or clocks. Below it
//! is one socket for each version of IP that sends and receives by batches (`packets`, in the
//! language of `speech`), or a bounded number of `connections`.

mod codec;
mod connections;
pub mod network;
mod packets;
mod plan;
pub mod strategy;
mod tally;
pub mod targets;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use plumb_net::datagram::set_exact_timers;

use crate::ping::plan::ProbeError;
use crate::ping::socket::local;
use connections::ManyConnections;
use network::ManyNetwork;
use packets::Packets;
pub use plan::{ManyPlan, STAMPED_PPS};
pub use strategy::{ManyLog, ManySeen};
pub use tally::Tally;

/// A probing of many targets under way.
#[derive(Debug)]
pub struct ManyProbing {
    thread: JoinHandle<ManyLog>,
}

impl ManyProbing {
    /// Opens the sockets and starts the thread in the caller's network namespace. The outcome of each probe goes
    /// through the channel where there is one, which ends with the probing.
    ///
    /// The thread ends when the plan is fulfilled or `stop` is set, at most the plan's timeout
    /// and 100 ms later.
    ///
    /// # Errors
    /// When the plan is impossible or sockets are refused.
    pub fn start(
        plan: ManyPlan,
        stop: Arc<AtomicBool>,
        tell: Option<mpsc::Sender<ManySeen>>,
    ) -> Result<Self, ProbeError> {
        plan.check()?;
        let common = plan.as_plan();
        if common.connects() {
            let network = Box::new(ManyConnections::open(&plan, &common));
            return Self::spawn(network, plan, stop, tell);
        }
        Self::spawn(Box::new(Packets::open(&plan, &common)?), plan, stop, tell)
    }

    fn spawn(
        mut network: Box<dyn ManyNetwork + Send>,
        plan: ManyPlan,
        stop: Arc<AtomicBool>,
        tell: Option<mpsc::Sender<ManySeen>>,
    ) -> Result<Self, ProbeError> {
        let common = plan.as_plan();
        let work = move || {
            // Without it probes leave up to 50 µs late, which shows in their lateness.
            let _ = set_exact_timers();
            strategy::run(&mut *network, &plan, &stop, |seen| {
                if let Some(tell) = &tell {
                    // That nothing listens any more is no error.
                    let _ = tell.send(seen());
                }
            })
        };
        let thread = thread::Builder::new().name("probe".into()).spawn(work);
        Ok(Self {
            thread: thread.map_err(local(&common, "starting a thread"))?,
        })
    }

    /// Whether it has ended, so that [`Self::join`] would not wait.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its end.
    pub fn join(self) -> ManyLog {
        self.thread
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}
