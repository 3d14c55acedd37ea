//! Looking after a running phase: what ends it, and how it goes meanwhile. It is the same whatever protocol the far end
//! speaks.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::direction::OneDirection;
use plumb_wire::native::control::flow;

use crate::outcome::EndedEarly;
use crate::phase_controller::{Conduct, Conductor, Seen};
use crate::phase_plan::PhasePlan;
use crate::steady::Steadiness;
use crate::traffic::{Looked, Traffic};

/// How often the phase is looked at: twice in each interval of the sampler, so that a spent
/// budget is seen within one and a half.
const TICK: Duration = Duration::from_millis(50);

/// How a phase goes, reported every 100 ms.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// Time since it began.
    pub elapsed: Duration,
    /// Payload received since the last time.
    pub down_bps: f64,
    /// Payload acknowledged by the far end since the last time.
    pub up_bps: f64,
    /// Transactions completed since the last time, a second.
    pub transactions_tps: f64,
}

/// A running phase that is looked after.
pub(crate) struct Watch<'a> {
    traffic: &'a Traffic,
    plan: &'a PhasePlan,
    conductor: &'a mut dyn Conductor,
    progress: &'a dyn Fn(Progress),
    cancel: &'a AtomicBool,
    pace: Pace,
    carried_bytes: u64,
}

impl<'a> Watch<'a> {
    pub(crate) fn begin(
        traffic: &'a Traffic,
        plan: &'a PhasePlan,
        conductor: &'a mut dyn Conductor,
        progress: &'a dyn Fn(Progress),
        cancel: &'a AtomicBool,
    ) -> Self {
        Self {
            traffic,
            plan,
            conductor,
            progress,
            cancel,
            pace: Pace::default(),
            carried_bytes: 0,
        }
    }

    /// When to look again.
    pub(crate) fn until_next(&self) -> Duration {
        TICK.min(self.plan.duration.saturating_sub(self.traffic.elapsed()))
    }

    /// Payload of both directions, as far as this end knew at the last look.
    pub(crate) fn carried_bytes(&self) -> u64 {
        self.carried_bytes
    }

    /// Whether the phase is over, and why before its time.
    pub(crate) fn look(&mut self) -> ControlFlow<Option<EndedEarly>> {
        let (traffic, plan) = (self.traffic, self.plan);
        // Before the counters: streams end when they have what they were to have.
        let all_ended = traffic.has_ended();
        let (elapsed, looked) = (traffic.elapsed(), traffic.looked());
        self.carried_bytes = traffic.received_bytes().saturating_add(looked.acked_bytes);
        if elapsed >= plan.duration {
            return ControlFlow::Break(None);
        }
        let is_spent = plan
            .byte_limit
            .is_some_and(|limit| self.carried_bytes >= limit);
        let early = match () {
            () if self.cancel.load(Ordering::Relaxed) => Some(EndedEarly::Cancelled),
            () if is_spent => Some(EndedEarly::Budget),
            () if all_ended && traffic.has_source_ended() => Some(EndedEarly::SourceEnded),
            () if all_ended && traffic.budget_is_spent() => Some(EndedEarly::Budget),
            () if all_ended => Some(EndedEarly::StreamsFailed),
            () => None,
        };
        if early.is_some() {
            return ControlFlow::Break(early);
        }
        let seen = Seen {
            elapsed,
            looked,
            probes: traffic.take_probes(),
        };
        match self.conductor.look(seen) {
            Conduct::Probe { pairs_per_s } => traffic.probe(pairs_per_s),
            Conduct::End => return ControlFlow::Break(Some(EndedEarly::Steady)),
        }
        if let Some((down_bps, up_bps, transactions_tps)) =
            self.pace.look(looked, traffic.transactions())
        {
            (self.progress)(Progress {
                elapsed,
                down_bps,
                up_bps,
                transactions_tps,
            });
            if self.pace.ends(plan) {
                return ControlFlow::Break(Some(EndedEarly::Steady));
            }
        }
        ControlFlow::Continue(())
    }
}

/// No conductor: the plan alone decides, and nothing is probed.
#[derive(Debug)]
pub struct Unconducted;

impl Conductor for Unconducted {
    fn look(&mut self, _: Seen) -> Conduct {
        Conduct::Probe { pairs_per_s: 0.0 }
    }
}

/// How both directions go, from one sample to the next.
#[derive(Debug, Default)]
struct Pace {
    before: Looked,
    transactions_before: u64,
    down: Steadiness,
    up: Steadiness,
}

impl Pace {
    /// The rates down and up, and the rate of transactions, since the sample before; nothing when there is no later
    /// one.
    fn look(&mut self, now: Looked, transactions: u64) -> Option<(f64, f64, f64)> {
        /// Half the interval between samples: the first comes at the very beginning.
        const SHORTEST_S: f64 = 0.05;
        let since_s = now.t_s - self.before.t_s;
        if since_s < SHORTEST_S {
            return None;
        }
        let bps = |now: u64, before: u64| now.saturating_sub(before) as f64 * 8.0 / since_s;
        let down_bps = bps(now.received_bytes, self.before.received_bytes);
        let up_bps = bps(now.acked_bytes, self.before.acked_bytes);
        let tps = transactions.saturating_sub(self.transactions_before) as f64 / since_s;
        (self.before, self.transactions_before) = (now, transactions);
        self.down.push(down_bps);
        self.up.push(up_bps);
        Some((down_bps, up_bps, tps))
    }

    /// Whether the plan ends with a steady rate, and every direction that it loads has one.
    fn ends(&self, plan: &PhasePlan) -> bool {
        let of =
            |role, watched: &Steadiness| flow::count(&plan.flows, role) == 0 || watched.is_steady();
        plan.until_steady && of(OneDirection::Down, &self.down) && of(OneDirection::Up, &self.up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_wire::native::control::flow::{Flows, TcpFlow};

    /// When a plan ends whose directions have carried so many bytes at each time in seconds, as far as 20 s.
    fn ends_after(
        (down, up): (u32, u32),
        until_steady: bool,
        late_s: impl Fn(u32) -> f64,
        received: impl Fn(f64) -> f64,
        acked: impl Fn(f64) -> f64,
    ) -> Option<f64> {
        let plan = PhasePlan {
            flows: [(down, OneDirection::Down), (up, OneDirection::Up)]
                .map(|(count, role)| Flows::tcp(count, role, TcpFlow::default()))
                .to_vec(),
            duration: Duration::from_secs(20),
            byte_limit: None,
            until_steady,
            from: None,
            to: None,
        };
        let mut pace = Pace::default();
        (0..200).find_map(|sample| {
            let t_s = f64::from(sample) / 10.0 + late_s(sample);
            let looked = Looked {
                t_s,
                received_bytes: received(t_s) as u64,
                acked_bytes: acked(t_s) as u64,
            };
            pace.look(looked, 0)?;
            pace.ends(&plan).then_some(t_s)
        })
    }

    /// 50 Mbit/s.
    fn paced(t_s: f64) -> f64 {
        t_s * 6.25e6
    }

    #[test]
    fn a_phase_ends_when_every_direction_that_it_loads_is_steady() {
        let on_time = |_| 0.0;
        let growing = |t_s: f64| t_s * t_s * 1e6;
        assert_eq!(ends_after((1, 1), true, on_time, paced, paced), Some(2.0));
        assert_eq!(ends_after((1, 1), false, on_time, paced, paced), None);
        assert_eq!(ends_after((1, 1), true, on_time, paced, growing), None);
        assert_eq!(ends_after((1, 0), true, on_time, paced, growing), Some(2.0));
    }

    #[test]
    fn late_samples_are_no_unsteady_rate_and_a_stall_holds_the_end_up_for_two_seconds() {
        // Up to 40 ms late, no two alike.
        let late = |sample: u32| f64::from(sample * 7 % 5) / 100.0;
        let ended = ends_after((1, 1), true, late, paced, paced);
        assert!(
            ended.is_some_and(|t_s| (2.0..2.1).contains(&t_s)),
            "{ended:?}"
        );
        // Nothing is read from 0.95 s to 1.05 s, and then all that has come.
        let stalled = |t_s: f64| {
            paced(if (0.95..1.05).contains(&t_s) {
                0.95
            } else {
                t_s
            })
        };
        let ended = ends_after((1, 1), true, |_| 0.0, stalled, paced);
        assert!(
            ended.is_some_and(|t_s| (2.9..3.2).contains(&t_s)),
            "{ended:?}"
        );
    }
}
