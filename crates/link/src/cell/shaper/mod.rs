//! A line of a rate with a queue before it: it takes the next packet when it is free, and the
//! packet leaves when its last bit has. The rate may change by a schedule, and bits that were
//! not used may be saved up for a burst.

pub(crate) mod backlog_delay;
pub(crate) mod line;
pub(crate) mod port;
mod schedule;
mod token_bucket;

use std::time::Duration;

use plumb_model::framing::Framing;
use plumb_model::units::{BitRate, ByteCount};
use serde::{Deserialize, Serialize};

use self::port::{Port, PortSpec};
use self::schedule::Schedule;
pub use self::schedule::StepSpec;
use self::token_bucket::TokenBucket;
use crate::queue::QueueSpec;
use crate::settings::Settings;
use crate::spec::CellSpec;
use crate::time::Time;

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
    fn rates(&self) -> Schedule {
        match self.rate {
            Some(rate) => Schedule::constant(rate),
            None => Schedule::of(&self.schedule, self.period),
        }
    }
}

impl PortSpec for ShaperSpec {
    fn of(cell: &CellSpec) -> Option<&Self> {
        match cell {
            CellSpec::Shaper(spec) => Some(spec),
            _ => None,
        }
    }

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

/// Work is counted in units of which a line of `rate` bit/s does `rate` in a nanosecond, so
/// that departures are exact without rounding errors that add up.
const WORK_PER_BYTE: u64 = 8_000_000_000;

/// The cell.
pub(crate) type Shaper = Port<TokenBucket>;

impl Shaper {
    /// A shaper that exists from `now` on; `seed` is that of the queue's hash.
    pub(crate) fn new(spec: ShaperSpec, seed: u64, now: Time) -> Self {
        let line = TokenBucket::new(&spec, now);
        Self::with_line(spec, line, seed, now)
    }
}

#[cfg(test)]
mod tests;
