//! Light probes to several reflectors, as often as the controller wants them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use plumb_model::protocol::Protocol;
use plumb_probe::sweep::{ManyPlan, ManyProbing, ManySeen};
use plumb_probe::{Exchange, ProbeError};

/// So long a line has to be idle before its probes become rare again, so that a page that loads in parts does not switch
/// them to and fro.
const RARE_AFTER: Duration = Duration::from_secs(5);

/// An answer to a probe.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Answer {
    pub(super) of: Of,
    pub(super) sent: Instant,
    pub(super) rtt: Duration,
}

/// Whose answer it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Of {
    /// Of the reflector of that number.
    Reflector(usize),
    /// From a reflector that reported its times: how long each direction took, in seconds by two clocks.
    Directions { up_s: f64, down_s: f64 },
}

/// Probes under way. Their thread ends at most its timeout after this is dropped.
pub(super) struct Reflecting {
    plans: Vec<ManyPlan>,
    answers: Receiver<ManySeen>,
    sender: Sender<ManySeen>,
    stop: Arc<AtomicBool>,
    pace: Pace,
}

impl Reflecting {
    /// Begins to probe with so long between the probes of one reflector: `echoes` by ICMP, and one by STAMP.
    ///
    /// # Errors
    /// When sockets are refused.
    pub(super) fn begin(
        echoes: Vec<SocketAddr>,
        stamp: Option<SocketAddr>,
        every: Duration,
    ) -> Result<Self, ProbeError> {
        let plan = |protocol, targets| ManyPlan {
            rounds: None,
            period: every,
            ..ManyPlan::new(protocol, targets)
        };
        let mut plans = vec![plan(Protocol::Icmp, echoes)];
        plans.extend(stamp.map(|one| plan(Protocol::Stamp, vec![one])));
        let (sender, answers) = mpsc::channel();
        let stop = start(&plans, &sender)?;
        Ok(Self {
            plans,
            answers,
            sender,
            stop,
            pace: Pace::new(every),
        })
    }

    /// The next answer, if one comes before that time.
    pub(super) fn next(&self, until: Instant) -> Option<Answer> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let seen = self.answers.recv_timeout(left).ok()?;
            // What was lost shows by nothing coming.
            if let ManySeen::Answered {
                target,
                rtt,
                exchange,
                ..
            } = seen
            {
                let number = usize::try_from(target).unwrap_or(usize::MAX);
                return Some(Answer {
                    of: exchange.map_or(Of::Reflector(number), directions),
                    sent: Instant::now().checked_sub(rtt)?,
                    rtt,
                });
            }
        }
    }

    /// Probes as often as that from now on.
    ///
    /// # Errors
    /// When sockets are refused.
    pub(super) fn probe_every(&mut self, every: Duration, now: Instant) -> Result<(), ProbeError> {
        if let Some(every) = self.pace.change(every, now) {
            for plan in &mut self.plans {
                plan.period = every;
            }
            let stop = start(&self.plans, &self.sender)?;
            self.stop.store(true, Ordering::Relaxed);
            self.stop = stop;
        }
        Ok(())
    }
}

impl Drop for Reflecting {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// Starts threads that probe until the answer is set.
fn start(plans: &[ManyPlan], sender: &Sender<ManySeen>) -> Result<Arc<AtomicBool>, ProbeError> {
    let stop = Arc::new(AtomicBool::new(false));
    for plan in plans {
        // It ends by itself once it is stopped, and what it logged is of no use.
        if let Err(why) = ManyProbing::start(plan.clone(), Arc::clone(&stop), Some(sender.clone()))
        {
            stop.store(true, Ordering::Relaxed);
            return Err(why);
        }
    }
    Ok(stop)
}

/// How long each direction took. The clocks are set apart by any number of years, so the difference is taken of whole numbers.
fn directions(exchange: Exchange) -> Of {
    let seconds = |to_ns: i64, from_ns: i64| (i128::from(to_ns) - i128::from(from_ns)) as f64 / 1e9;
    Of::Directions {
        up_s: seconds(exchange.far.received_ns, exchange.departed_ns),
        down_s: seconds(exchange.arrived_ns, exchange.far.sent_ns),
    }
}

/// When probes become denser: at once. When they become rare: after a while.
#[derive(Debug)]
struct Pace {
    every: Duration,
    denser_wanted: Option<Instant>,
}

impl Pace {
    fn new(every: Duration) -> Self {
        Self {
            every,
            denser_wanted: None,
        }
    }

    /// The new interval, where it changes.
    fn change(&mut self, wanted: Duration, now: Instant) -> Option<Duration> {
        let rarer = wanted > self.every;
        if !rarer {
            self.denser_wanted = Some(now);
        }
        let since = self.denser_wanted.map(|at| now.duration_since(at));
        let waits = rarer && since.is_some_and(|since| since < RARE_AFTER);
        if wanted == self.every || waits {
            return None;
        }
        self.every = wanted;
        Some(wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_are_dense_at_once_and_rare_after_a_while() {
        let (dense, rare) = (Duration::from_millis(100), Duration::from_secs(1));
        let begun = Instant::now();
        let at = |s: u64| begun + Duration::from_secs(s);
        let mut pace = Pace::new(rare);
        assert_eq!(pace.change(rare, at(0)), None);
        assert_eq!(pace.change(dense, at(1)), Some(dense));
        assert_eq!(pace.change(rare, at(2)), None, "just now it was loaded");
        assert_eq!(pace.change(dense, at(5)), None);
        assert_eq!(pace.change(rare, at(9)), None);
        assert_eq!(pace.change(rare, at(10)), Some(rare));
    }
}
