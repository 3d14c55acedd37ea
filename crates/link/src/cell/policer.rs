//! A token bucket that drops what exceeds it and keeps nothing: how providers enforce a rate
//! without a queue. It is the committed bucket of RFC 2697 (section 3, colour-blind, with an
//! excess burst of zero, red dropped); tc-police(8) with `conform-exceed drop` does the same.

use plumb_model::framing::Framing;
use plumb_model::units::{BitRate, ByteCount};
use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::cell::shaper::check_rate;
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::time::Time;

/// `{ type = "policer", rate = "50mbit", burst = "100kB" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicerSpec {
    /// The rate at which tokens come (the committed information rate).
    pub rate: BitRate,
    /// What the bucket holds (the committed burst size); a packet that is larger never passes.
    pub burst: ByteCount,
    /// What counts beside the IP packet; nothing when absent.
    #[serde(default)]
    pub framing: Framing,
}

/// The largest burst in bytes: its tokens fit 64 bits.
const MOST_BURST: u64 = 1_000_000_000;

impl Settings for PolicerSpec {
    fn check(&self) -> Result<(), String> {
        check_rate(self.rate)?;
        if !(1..=MOST_BURST).contains(&self.burst.bytes()) {
            return Err(format!(
                "a burst of {} bytes is not possible: it is at least 1 byte and at most 1 GB",
                self.burst.bytes()
            ));
        }
        Ok(())
    }
}

/// Tokens of a byte, so that `rate` of them come in a nanosecond and none is lost by rounding.
const PER_BYTE: u64 = 8_000_000_000;

/// The cell. Its bucket is full at first.
pub(crate) struct Policer {
    spec: PolicerSpec,
    tokens: u64,
    /// When they were counted.
    since: Time,
}

impl Policer {
    pub(crate) fn new(spec: PolicerSpec, now: Time) -> Self {
        Self {
            tokens: spec.burst.bytes().saturating_mul(PER_BYTE),
            since: now,
            spec,
        }
    }

    fn fill(&mut self, now: Time) {
        let came = now
            .nanos_since(self.since)
            .saturating_mul(self.spec.rate.bps());
        let most = self.spec.burst.bytes().saturating_mul(PER_BYTE);
        self.tokens = self.tokens.saturating_add(came).min(most);
        self.since = now;
    }
}

impl Filter for Policer {
    type Spec = PolicerSpec;
    const CROSSING: Crossing = Crossing::Split;

    fn pass(&mut self, now: Time, packet: Packet, out: &mut Outlet<'_>) {
        self.fill(now);
        let needed = packet
            .wire_bytes(&self.spec.framing)
            .saturating_mul(PER_BYTE);
        match self.tokens.checked_sub(needed) {
            Some(left) => {
                self.tokens = left;
                out.forward(packet);
            }
            None => out.drop(DropCause::Policer, &packet),
        }
    }

    fn reconfigure(&mut self, now: Time, spec: PolicerSpec) {
        self.fill(now);
        self.spec = spec;
        self.fill(now);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::{ACK, tcp, udp};
    use crate::spec::CellSpec;

    fn policer(pairs: &[(&str, &str)]) -> CellSpec {
        CellSpec::from_pairs("policer", pairs).unwrap()
    }

    /// Which of the packets that come at these times, in nanoseconds, pass.
    fn passed(spec: &CellSpec, times: &[u64], size: usize) -> Vec<u64> {
        let mut cell = spec.build(1, Time::ZERO).own();
        let mut passed = Vec::new();
        for time in times {
            let now = Time::from_nanos(*time);
            cell.enqueue(now, udp(size, 1, 0));
            if let Some((at, _)) = cell.dequeue(now) {
                assert_eq!(at, now);
                passed.push(*time);
            }
        }
        let lost = cell
            .stats(Time::MAX, "policer")
            .dropped
            .get("policer")
            .copied();
        assert_eq!(lost.unwrap_or(0), (times.len() - passed.len()) as u64);
        passed
    }

    #[test]
    fn a_burst_passes_and_then_the_rate() {
        // 8 Mbit/s are a byte a microsecond; the bucket holds three packets.
        let spec = policer(&[("rate", "8mbit"), ("burst", "3000B")]);
        let (ms, just_before) = (1_000_000, 999_999);
        let times = [0, 0, 0, 0, just_before, ms, ms + 1, 3 * ms, 3 * ms, 3 * ms];
        assert_eq!(passed(&spec, &times, 1000), [0, 0, 0, ms, 3 * ms, 3 * ms]);
        // An hour of silence fills no more than the bucket.
        let hour = 3_600_000 * ms;
        assert_eq!(passed(&spec, &[hour; 5], 1000), [hour; 3]);
        assert!(passed(&spec, &[0, hour], 3001).is_empty());
    }

    #[test]
    fn fractions_of_a_token_are_kept() {
        // At 3 Gbit/s 100 bytes take 266 2/3 ns: three packets in 800 ns, and none too early.
        let spec = policer(&[("rate", "3gbit"), ("burst", "200B")]);
        let times = [0, 0, 266, 267, 533, 534, 799, 800];
        assert_eq!(passed(&spec, &times, 100), [0, 0, 267, 534, 800]);
    }

    #[test]
    fn framing_counts_and_settings_change() {
        let spec = policer(&[("rate", "8mbit"), ("burst", "2036B"), ("framing", "docsis")]);
        let mut cell = spec.build(1, Time::ZERO).own();
        let mut passes = |now: u64, spec: Option<&CellSpec>| {
            let now = Time::from_nanos(now);
            if let Some(spec) = spec {
                cell.set(now, spec);
            }
            cell.enqueue(now, udp(1000, 1, 0));
            cell.dequeue(now).is_some()
        };
        assert!(passes(0, None) && passes(0, None) && !passes(1_017_999, None));
        // What came at the old rate stays; a smaller bucket spills.
        let faster = spec.with(&[("rate", "16mbit")]).unwrap();
        assert!(passes(1_018_000, Some(&faster)) && passes(1_527_000, None));
        let smaller = faster.with(&[("burst", "1018B")]).unwrap();
        assert!(passes(9_000_000, Some(&smaller)) && !passes(9_000_000, None));
    }

    #[test]
    fn a_large_segment_is_policed_packet_by_packet() {
        let spec = policer(&[("rate", "8mbit"), ("burst", "3100B")]);
        let mut cell = spec.build(1, Time::ZERO).own();
        cell.enqueue(Time::ZERO, tcp(false, 4 * 1448, 1448, ACK));
        assert_eq!(std::iter::from_fn(|| cell.dequeue(Time::ZERO)).count(), 2);
        for (key, value, says) in [("rate", "0", "1 bit/s"), ("burst", "0", "at least 1 byte")] {
            let error = spec.with(&[(key, value)]).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
