//! A token bucket that drops what exceeds it and keeps nothing: how providers enforce a rate
//! without a queue. It is the committed bucket of RFC 2697 (section 3, colour-blind, with an
//! excess burst of zero, red dropped); tc-police(8) with `conform-exceed drop` does the same. It may be for some packets
//! alone, and each flow may have a bucket of its own.

use std::collections::HashMap;

use plumb_model::framing::Framing;
use plumb_model::units::{BitRate, ByteCount};
use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::cell::matching::Match;
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
    /// Which packets it is for; the others pass. All when absent.
    #[serde(default, rename = "match")]
    pub matching: Match,
    /// What has a bucket of its own.
    #[serde(default)]
    pub per: Per,
}

/// What shares a bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Per {
    /// All packets that it is for.
    #[default]
    All,
    /// The packets of a flow: a connection has the rate to itself.
    Flow,
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

/// Flows that have a bucket each; those that come later share one.
const MOST_FLOWS: usize = 4096;

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tokens: u64,
    /// When they were counted.
    since: Time,
}

impl Bucket {
    fn full(spec: &PolicerSpec, now: Time) -> Self {
        Self {
            tokens: spec.burst.bytes().saturating_mul(PER_BYTE),
            since: now,
        }
    }

    fn fill(&mut self, spec: &PolicerSpec, now: Time) {
        let came = now.nanos_since(self.since).saturating_mul(spec.rate.bps());
        let most = spec.burst.bytes().saturating_mul(PER_BYTE);
        self.tokens = self.tokens.saturating_add(came).min(most);
        self.since = now;
    }
}

/// The cell. Its buckets are full at first.
pub(crate) struct Policer {
    spec: PolicerSpec,
    shared: Bucket,
    /// By the hash of the flow, of which packets have 64 bits.
    flows: HashMap<u64, Bucket>,
}

impl Policer {
    pub(crate) fn new(spec: PolicerSpec, now: Time) -> Self {
        Self {
            shared: Bucket::full(&spec, now),
            flows: HashMap::new(),
            spec,
        }
    }

    /// The bucket that a packet takes its tokens from, filled up to `now`.
    fn bucket(&mut self, now: Time, flow: u64) -> &mut Bucket {
        let Self {
            spec,
            shared,
            flows,
        } = self;
        let has_own =
            spec.per == Per::Flow && (flows.len() < MOST_FLOWS || flows.contains_key(&flow));
        let bucket = match has_own {
            true => flows.entry(flow).or_insert_with(|| Bucket::full(spec, now)),
            false => shared,
        };
        bucket.fill(spec, now);
        bucket
    }
}

impl Filter for Policer {
    type Spec = PolicerSpec;
    const CROSSING: Crossing = Crossing::Split;

    fn pass(&mut self, now: Time, packet: Packet, out: &mut Outlet<'_>) {
        if !self.spec.matching.matches(&packet) {
            return out.forward(packet);
        }
        let needed = packet
            .wire_bytes(&self.spec.framing)
            .saturating_mul(PER_BYTE);
        let bucket = self.bucket(now, packet.flow_hash);
        match bucket.tokens.checked_sub(needed) {
            Some(left) => {
                bucket.tokens = left;
                out.forward(packet);
            }
            None => out.drop(DropCause::Policer, &packet),
        }
    }

    fn reconfigure(&mut self, now: Time, spec: PolicerSpec) {
        for bucket in self.flows.values_mut().chain([&mut self.shared]) {
            bucket.fill(&self.spec, now);
            // A smaller bucket spills.
            bucket.fill(&spec, now);
        }
        self.spec = spec;
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
    fn flows_have_buckets_of_their_own_and_other_packets_pass() {
        let spec = policer(&[
            ("rate", "8mbit"),
            ("burst", "2000B"),
            ("match", "udp"),
            ("per", "flow"),
        ]);
        let mut cell = spec.build(1, Time::ZERO).own();
        let mut passes = |packet| {
            cell.enqueue(Time::ZERO, packet);
            cell.dequeue(Time::ZERO).is_some()
        };
        for port in [1, 2] {
            let passed = [0; 3].map(|_| passes(udp(1000, port, 0)));
            assert_eq!(passed, [true, true, false], "{port}");
        }
        assert!((0..9).all(|_| passes(tcp(false, 1448, 1448, ACK))));
        let shared = spec.with(&[("per", "all")]).unwrap();
        cell.set(Time::ZERO, &shared);
        let mut passes = |port| {
            cell.enqueue(Time::ZERO, udp(1000, port, 0));
            cell.dequeue(Time::ZERO).is_some()
        };
        assert_eq!([1, 2, 1].map(&mut passes), [true, true, false]);
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
