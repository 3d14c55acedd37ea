//! Following a line with a shaper that stands: counters are read, reflectors probed and rates set as the controller says.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_model::direction::OneDirection;
use plumb_probe::ProbeError;

use super::device::Passed;
use super::follow::{Follow, Limits};
use super::rate_step::Shaper;
use super::reflecting::{Of, Reflecting};

/// From one look to the next: twenty a second see a queue of 30 ms grow, and cost a hundredth of a core (`bench/follow.sh`).
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A rate that differs by less from the one that is set is not set.
const WORTH_SETTING: f64 = 0.005;

/// From one report to the next.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// What is to be followed.
#[derive(Debug)]
pub struct FollowPlan {
    /// Limits of each direction; none where it is not shaped.
    pub up: Option<Limits>,
    pub down: Option<Limits>,
    /// Who answers echo requests; one at least.
    pub reflectors: Vec<SocketAddr>,
    /// The host that may answer STAMP, and then shows which direction is late.
    pub stamp: Option<SocketAddr>,
}

/// How a line that is followed stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Followed {
    /// Rates of the shaper, in bit/s.
    pub up_bps: Option<f64>,
    pub down_bps: Option<f64>,
    /// What most reflectors see beyond their idle round trips; `None` without an answer.
    pub added_s: Option<f64>,
    /// Reflectors that answered in the last seconds.
    pub live: usize,
}

/// Why a line is followed no more.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// No probes can be sent.
    #[error(transparent)]
    Probes(#[from] ProbeError),
    /// The interface is gone.
    #[error("cannot read the counters of the interface: {0}")]
    Counters(#[source] io::Error),
    /// The shaper is gone, or was changed by another program.
    #[error("cannot set the rate of the shaper: {0}")]
    Shaper(#[source] Box<dyn Error + Send + Sync>),
}

/// Follows until `stop` is set, and reports every second to `report`. The shaper is left at its last rates.
///
/// # Errors
/// When probes are refused, or interface or shaper are gone.
pub fn follow(
    plan: &FollowPlan,
    passed: &mut Passed,
    shaper: &mut dyn Shaper,
    report: &mut dyn FnMut(&Followed),
    stop: &AtomicBool,
) -> Result<(), FollowError> {
    let began = Instant::now();
    let seconds = |at: Instant| at.saturating_duration_since(began).as_secs_f64();
    let limits = [plan.up, plan.down].map(|limits| limits.unwrap_or(Limits::NOT_SHAPED));
    let mut follow = Follow::new(limits[0], limits[1], plan.reflectors.len());
    let every = |follow: &Follow| Duration::from_secs_f64(follow.probe_every_s());
    let reflectors = plan.reflectors.clone();
    let mut reflecting = Reflecting::begin(reflectors, plan.stamp, every(&follow))?;
    let mut set = [
        Set::new(OneDirection::Up, plan.up),
        Set::new(OneDirection::Down, plan.down),
    ];
    let (mut due, mut report_at) = (began, began + REPORT_EVERY);
    while !stop.load(Ordering::Relaxed) {
        due = (due + LOOK_EVERY).max(Instant::now());
        while let Some(answer) = reflecting.next(due) {
            let (sent_s, rtt_s) = (seconds(answer.sent), answer.rtt.as_secs_f64());
            match answer.of {
                Of::Reflector(number) => follow.answered(number, sent_s, rtt_s),
                Of::Directions { up_s, down_s } => {
                    follow.answered_by_direction(sent_s, rtt_s, up_s, down_s)
                }
            }
        }
        let now = Instant::now();
        let [up_bits, down_bits] = passed.read().map_err(FollowError::Counters)?;
        follow.tick(seconds(now), up_bits, down_bits);
        for set in &mut set {
            if let Some(rate_bps) = set.change(follow.rate_bps(set.direction)) {
                let done = shaper.set(set.direction, Some(rate_bps));
                done.map_err(FollowError::Shaper)?;
            }
        }
        reflecting.probe_every(every(&follow), now)?;
        if now >= report_at {
            report_at = now + REPORT_EVERY;
            let [up_bps, down_bps] = [&set[0], &set[1]].map(|set| set.rate_bps);
            let (added_s, live) = follow.seen(seconds(now));
            report(&Followed {
                up_bps,
                down_bps,
                added_s,
                live,
            });
        }
    }
    Ok(())
}

/// The rate that a direction has; none where it is not shaped.
struct Set {
    direction: OneDirection,
    rate_bps: Option<f64>,
}

impl Set {
    fn new(direction: OneDirection, limits: Option<Limits>) -> Self {
        Self {
            direction,
            rate_bps: limits.map(|limits| limits.base_bps),
        }
    }

    /// The rate to set, where it is worth it.
    fn change(&mut self, wanted_bps: f64) -> Option<f64> {
        let rate_bps = self.rate_bps.as_mut()?;
        if (wanted_bps / *rate_bps - 1.0).abs() < WORTH_SETTING {
            return None;
        }
        *rate_bps = wanted_bps;
        Some(wanted_bps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_set_when_it_has_changed_enough() {
        let limits = Limits {
            least_bps: 1e6,
            base_bps: 10e6,
            most_bps: 20e6,
        };
        let mut set = Set::new(OneDirection::Up, Some(limits));
        assert_eq!(set.change(10.01e6), None);
        assert_eq!(set.change(10.04e6), None);
        assert_eq!(set.change(10.06e6), Some(10.06e6), "small steps add up");
        assert_eq!(set.change(10.06e6), None);
        let mut unshaped = Set::new(OneDirection::Down, None);
        assert_eq!(unshaped.change(1e6), None);
    }
}
