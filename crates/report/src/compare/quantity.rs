//! A number that a comparison speaks of: what identifies it in a Run, its unit, and when a change
//! of it is for the better.

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeUnit {
    /// A time in seconds.
    S,
    /// A rate in bit/s.
    Bps,
    /// A share from 0 to 1.
    Ratio,
    /// A number of things.
    Count,
    /// A number of things a second.
    PerSecond,
    /// A number of things a minute.
    PerMinute,
    /// A size in bytes.
    Bytes,
    /// A mean opinion score, 1 to 4.5.
    Mos,
}

/// What identifies a number in a Run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) name: &'static str,
    pub(crate) phase: Phase,
    pub(crate) direction: Option<Direction>,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) of: Option<String>,
    pub(crate) unit: ChangeUnit,
    /// Whether more of it, or less, is better: not where it is what was asked for.
    pub(crate) judged: bool,
}

/// A number of a Run.
pub(crate) type Quantity = (Key, f64);

/// The numbers of one thing.
pub(crate) struct Quantities {
    key: Key,
    pub(crate) found: Vec<Quantity>,
}

/// Fields of a round trip.
pub(crate) const RTT: [&str; 2] = ["rtt_s.p50", "rtt_s.p95"];
/// Fields of a transaction's time.
pub(crate) const LATENCY: [&str; 2] = ["latency_s.p50", "latency_s.p95"];
/// Fields of a delay in one direction.
pub(crate) const DELAY: [&str; 2] = ["one_way_delay_s.p50", "one_way_delay_s.p95"];

impl Quantities {
    pub(crate) fn of(phase: Phase, of: impl Into<Option<String>>) -> Self {
        Self {
            key: Key {
                name: "",
                phase,
                direction: None,
                protocol: None,
                of: of.into(),
                unit: ChangeUnit::Count,
                judged: true,
            },
            found: Vec::new(),
        }
    }

    pub(crate) fn by(mut self, protocol: Protocol) -> Self {
        self.key.protocol = Some(protocol);
        self
    }

    pub(crate) fn direction(mut self, direction: Direction) -> Self {
        self.key.direction = Some(direction);
        self
    }

    /// A number, where there is one.
    pub(crate) fn number(
        mut self,
        name: &'static str,
        unit: ChangeUnit,
        value: impl Into<Option<f64>>,
    ) -> Self {
        if let Some(value) = value.into() {
            let key = Key {
                name,
                unit,
                ..self.key.clone()
            };
            self.found.push((key, value));
        }
        self
    }

    /// A rate that is what was asked for, as long as the path carries it.
    pub(crate) fn asked_rate(mut self, value: Option<f64>) -> Self {
        self.key.judged = false;
        let mut with = self.number("bps", ChangeUnit::Bps, value);
        with.key.judged = true;
        with
    }

    /// Two percentiles of a time.
    pub(crate) fn time(self, names: [&'static str; 2], of: Option<&Distribution>) -> Self {
        let [median, tail] = names;
        self.number(median, ChangeUnit::S, of.map(|d| d.p50))
            .number(tail, ChangeUnit::S, of.map(|d| d.p95))
    }
}

/// Latency within this of another is the same: twice the jitter of an idle home line.
const SAME_LATENCY_S: f64 = 0.001;
/// So is one within this share of the other: percentiles of some hundred probes vary as much.
const SAME_LATENCY_RATIO: f64 = 0.1;
/// Rates within this share are the same: TCP's own variation over ten seconds and more.
const SAME_RATE_RATIO: f64 = 0.03;
/// Loss within this is the same: one probe in five hundred.
const SAME_LOSS_RATIO: f64 = 0.002;
/// Scores within this are the same: a listener hears no smaller difference.
const SAME_MOS: f64 = 0.1;

impl ChangeUnit {
    /// Whether a change is for the better; `None` where it is within what two measurements of the
    /// same path differ by.
    pub(crate) fn better(self, before: f64, after: f64) -> Option<bool> {
        let change = (after - before).abs();
        let larger = before.abs().max(after.abs());
        match self {
            Self::S => {
                (change > SAME_LATENCY_S.max(SAME_LATENCY_RATIO * larger)).then_some(after < before)
            }
            Self::Bps => (change > SAME_RATE_RATIO * larger).then_some(after > before),
            Self::Ratio => (change > SAME_LOSS_RATIO).then_some(after < before),
            // They are the inverse of a time.
            Self::PerSecond | Self::PerMinute => {
                (change > SAME_LATENCY_RATIO * larger).then_some(after > before)
            }
            Self::Bytes => (change > 0.0).then_some(after > before),
            Self::Mos => (change > SAME_MOS).then_some(after > before),
            // An AQM signals by dropping: more retransmits can mean less delay.
            Self::Count => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_no_change() {
        assert_eq!(ChangeUnit::S.better(0.0183, 0.0190), None);
        assert_eq!(ChangeUnit::S.better(0.706, 0.019), Some(true));
        assert_eq!(ChangeUnit::S.better(0.019, 0.706), Some(false));
        assert_eq!(ChangeUnit::Bps.better(18.9e6, 17.9e6), Some(false));
        assert_eq!(ChangeUnit::Bps.better(18.9e6, 18.7e6), None);
        assert_eq!(ChangeUnit::Count.better(4.0, 400.0), None);
    }
}
