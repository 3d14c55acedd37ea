//! When the machine did not keep up with a laboratory: one rule, for what is measured in it, for each direction of a link
//! and for the whole of it.

use std::collections::BTreeMap;
use std::fmt;

use plumb_model::run::LabMark;

use crate::stats::{DriverStats, LabStats};

/// Share of the time behind from which on a direction was overrun: what one packet in a hundred would meet that came at
/// any time. Lateness by packet would be no measure: at 1 Gbit/s a train of acknowledgements is due within
/// microseconds, and each takes some to write.
const LATE_RATIO: f64 = 0.01;

/// Share of late naps (`starvation.rs`) from which on the ends were starved. On two processors links that
/// left the ends too little to be filled made a third to a half of them late, full ones a seventh
/// at most; programs of ordinary priority alone one in fifteen where they start and end all the time, and a
/// fifth where eight of them never sleep.
const STARVED_RATIO: f64 = 0.2;

/// Share of the time in which programs wanted to run, taken by the hypervisor, from which on it shows in what they time: a
/// twentieth reaches the 95th percentile, by which plumb judges latency. From there on a check reports `vm-steal` as well.
const STOLEN_RATIO: f64 = 0.05;

/// What the machine did to what was measured in a laboratory, which is then of the machine more than of the links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Disturbance {
    /// Packets were overdue at a link, for this share of the time.
    LinkLate { behind_ratio: f64 },
    /// Programs at the ends of the links waited for a processor, at this share of the times.
    EndsStarved { ratio: f64 },
    /// The hypervisor gave processors to others, for this share of the time in which programs wanted to run.
    TimeStolen { ratio: f64 },
    /// So many packets were dropped at a device because the link did not read them in time.
    DeviceDrops { packets: u64 },
    /// A device did not take so many packets that a link delivered.
    WriteErrors { packets: u64 },
    /// The device of a link went away.
    LinkStopped,
}

impl Disturbance {
    /// Of a Run, while it was made.
    pub fn of_run(mark: &LabMark) -> Vec<Self> {
        let counted = Counted {
            behind_ratio: mark.behind_ratio,
            starved_ratio: mark.starved_ratio,
            stolen_ratio: mark.stolen_ratio,
            device_drops: mark.device_drops,
            write_errors: mark.write_errors,
            stopped: mark.link_stopped,
        };
        counted.disturbances()
    }

    /// Of a laboratory, since it began.
    pub fn of_lab(stats: &LabStats) -> Vec<Self> {
        let directions = stats.links.values().flat_map(BTreeMap::values);
        let counted = Counted {
            starved_ratio: stats.starved_ratio,
            stolen_ratio: stats.stolen_ratio,
            ..Counted::of(directions.map(|direction| &direction.driver))
        };
        counted.disturbances()
    }

    /// Of one direction of a link.
    pub fn of_link(driver: &DriverStats) -> Vec<Self> {
        Counted::of([driver].into_iter()).disturbances()
    }
}

/// What the rule looks at: of several links the worst, or all together.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    pub(crate) behind_ratio: f64,
    pub(crate) starved_ratio: f64,
    pub(crate) stolen_ratio: f64,
    pub(crate) device_drops: u64,
    pub(crate) write_errors: u64,
    pub(crate) stopped: bool,
}

impl Counted {
    /// Of links alone, without their ends and the machine.
    pub(crate) fn of<'a>(drivers: impl Iterator<Item = &'a DriverStats>) -> Self {
        drivers.fold(Self::default(), |so_far, driver| Self {
            behind_ratio: so_far.behind_ratio.max(driver.behind_ratio),
            device_drops: so_far.device_drops.saturating_add(driver.device_drops),
            write_errors: so_far.write_errors.saturating_add(driver.write_errors),
            stopped: so_far.stopped || driver.stopped,
            ..so_far
        })
    }

    fn disturbances(&self) -> Vec<Disturbance> {
        let all = [
            (self.behind_ratio > LATE_RATIO).then_some(Disturbance::LinkLate {
                behind_ratio: self.behind_ratio,
            }),
            (self.starved_ratio > STARVED_RATIO).then_some(Disturbance::EndsStarved {
                ratio: self.starved_ratio,
            }),
            (self.stolen_ratio > STOLEN_RATIO).then_some(Disturbance::TimeStolen {
                ratio: self.stolen_ratio,
            }),
            (self.device_drops > 0).then_some(Disturbance::DeviceDrops {
                packets: self.device_drops,
            }),
            (self.write_errors > 0).then_some(Disturbance::WriteErrors {
                packets: self.write_errors,
            }),
            self.stopped.then_some(Disturbance::LinkStopped),
        ];
        all.into_iter().flatten().collect()
    }
}

impl fmt::Display for Disturbance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |ratio: f64| ratio * 100.0;
        match *self {
            Self::LinkLate { behind_ratio } => write!(
                f,
                "packets were overdue at a link for {:.1} % of the time",
                percent(behind_ratio)
            ),
            Self::EndsStarved { ratio } => write!(
                f,
                "{:.0} % of the time the programs at the ends waited more than a millisecond for a processor",
                percent(ratio)
            ),
            Self::TimeStolen { ratio } => write!(
                f,
                "the hypervisor gave processors to others for {:.0} % of the time in which programs wanted to run",
                percent(ratio)
            ),
            Self::DeviceDrops { packets } => {
                write!(f, "{packets} packets were lost at a device before a link")
            }
            Self::WriteErrors { packets } => {
                write!(f, "a device did not take {packets} packets after a link")
            }
            Self::LinkStopped => f.write_str("the device of a link went away"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_disturbance_is_seen_by_itself_and_a_machine_that_keeps_up_has_none() {
        let calm = || Counted {
            behind_ratio: 0.009,
            starved_ratio: 0.19,
            stolen_ratio: 0.04,
            ..Counted::default()
        };
        assert_eq!(calm().disturbances(), []);
        let behind_ratio = 0.02;
        let cases = [
            (
                Counted {
                    behind_ratio,
                    ..calm()
                },
                Disturbance::LinkLate { behind_ratio },
            ),
            (
                Counted {
                    starved_ratio: 0.3,
                    ..calm()
                },
                Disturbance::EndsStarved { ratio: 0.3 },
            ),
            (
                Counted {
                    stolen_ratio: 0.06,
                    ..calm()
                },
                Disturbance::TimeStolen { ratio: 0.06 },
            ),
            (
                Counted {
                    device_drops: 1,
                    ..calm()
                },
                Disturbance::DeviceDrops { packets: 1 },
            ),
            (
                Counted {
                    write_errors: 2,
                    ..calm()
                },
                Disturbance::WriteErrors { packets: 2 },
            ),
            (
                Counted {
                    stopped: true,
                    ..calm()
                },
                Disturbance::LinkStopped,
            ),
        ];
        for (counted, expected) in cases {
            assert_eq!(counted.disturbances(), [expected], "{counted:?}");
        }
    }
}
