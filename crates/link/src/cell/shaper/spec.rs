//! What a shaper is set to.

use std::time::Duration;

use plumb_model::framing::Framing;
use plumb_model::units::{BitRate, ByteCount};
use serde::{Deserialize, Serialize};

use super::port::PortSpec;
use super::schedule::{self, Schedule, StepSpec};
use crate::queue::QueueSpec;
use crate::settings::Settings;

/// `{ type = "shaper", rate = "20mbit", framing = "docsis", queue = { type = "fifo", limit = "700ms" } }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShaperSpec {
    /// The line's rate; there is one, or a schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<BitRate>,
    /// The rates in order of time, counted from the start of the lab.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedule: Vec<StepSpec>,
    /// The time after which the schedule begins anew; without one its last rate stays.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        with = "plumb_model::units::optional_duration_text"
    )]
    pub period: Option<Duration>,
    /// Bytes of the line that can be saved up while it is free; none when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<ByteCount>,
    /// The rate at which a burst leaves; at once when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_rate: Option<BitRate>,
    /// What the line adds to each packet; nothing when absent.
    #[serde(default)]
    pub framing: Framing,
    /// The queue before the line; a FIFO when absent.
    #[serde(default)]
    pub queue: QueueSpec,
}

impl Settings for ShaperSpec {
    fn check(&self) -> Result<(), String> {
        let rates = self.schedule.iter().map(|step| step.rate);
        for rate in rates.chain(self.rate).chain(self.peak_rate) {
            check_rate(rate)?;
        }
        match (self.rate, self.schedule.is_empty()) {
            (Some(_), false) => return Err("write a rate or a schedule, not both".into()),
            (None, true) => return Err("missing field `rate` (or a schedule)".into()),
            _ => {}
        }
        schedule::check(&self.schedule, self.period)?;
        let fastest = self.schedule.iter().map(|step| step.rate).chain(self.rate);
        match (self.peak_rate, fastest.max(), self.burst) {
            (Some(_), _, None) => Err("a peak_rate needs a burst that leaves at it".into()),
            (Some(peak), Some(fastest), _) if peak < fastest => Err(format!(
                "the peak_rate of {peak} is below the rate of {fastest}"
            )),
            _ => Ok(()),
        }
    }
}

impl ShaperSpec {
    /// The rate over time.
    pub(super) fn rates(&self) -> Schedule {
        match self.rate {
            Some(rate) => Schedule::constant(rate),
            None => Schedule::of(&self.schedule, self.period),
        }
    }
}

impl PortSpec for ShaperSpec {
    fn framing(&self) -> &Framing {
        &self.framing
    }

    fn queue(&self) -> &QueueSpec {
        &self.queue
    }
}

/// The rates that a line can have: up to 1 Tbit/s its arithmetic cannot overflow.
const RATES: std::ops::RangeInclusive<BitRate> =
    BitRate::from_bps(1)..=BitRate::from_bps(1_000_000_000_000);

/// Whether a line can have this rate.
pub(crate) fn check_rate(rate: BitRate) -> Result<(), String> {
    if RATES.contains(&rate) {
        return Ok(());
    }
    Err(format!(
        "a rate of {} bit/s is not possible: a rate is at least 1 bit/s and at most 1 Tbit/s (an outage is a cell of its own)",
        rate.bps()
    ))
}
