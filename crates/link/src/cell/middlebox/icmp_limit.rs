//! A box that limits how many ICMP messages a second pass. A token bucket. RFC 1812 section 4.3.2.8 limits what routers
//! send themselves; many limit what they forward, too.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::cell::filter::{Filter, Outlet};
use crate::cell::middlebox::icmp_kind::{IcmpKind, is_selected};
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::time::Time;

/// `{ type = "icmp_limit", per_second = 10 }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IcmpLimitSpec {
    /// Messages that pass each second.
    pub per_second: f64,
    /// Messages that pass at once after a quiet time.
    #[serde(default = "default_burst")]
    pub burst: u32,
    /// What is limited; without any everything but what an IPv6 link cannot do without.
    #[serde(default)]
    pub types: Vec<IcmpKind>,
}

/// None is saved up, as in Cisco's `ip icmp rate-limit unreachable`.
fn default_burst() -> u32 {
    1
}

/// The least rate: one an hour.
const LEAST_PER_SECOND: f64 = 1.0 / 3600.0;

impl Settings for IcmpLimitSpec {
    fn check(&self) -> Result<(), String> {
        if !(LEAST_PER_SECOND..=1e9).contains(&self.per_second) {
            return Err(format!(
                "per_second = {} is not possible: write 0.0003 to 1e9, or use icmp_filter",
                self.per_second
            ));
        }
        if self.burst == 0 {
            return Err("burst = 0 would let nothing pass: write at least 1".to_owned());
        }
        Ok(())
    }
}

pub(crate) struct IcmpLimit {
    spec: IcmpLimitSpec,
    /// When the bucket will be full again: the later, the fewer tokens are in it (the "virtual
    /// scheduling algorithm", ITU-T I.371 annex A).
    full_at: Time,
}

impl IcmpLimit {
    pub(crate) fn new(spec: IcmpLimitSpec, now: Time) -> Self {
        Self { spec, full_at: now }
    }

    fn take_token(&mut self, now: Time) -> bool {
        let token = Duration::from_secs_f64(1.0 / self.spec.per_second);
        let full_at = self.full_at.max(now) + token;
        let is_there = full_at <= now + token.saturating_mul(self.spec.burst);
        if is_there {
            self.full_at = full_at;
        }
        is_there
    }
}

impl Filter for IcmpLimit {
    type Spec = IcmpLimitSpec;
    const CROSSING: Crossing = Crossing::Whole;

    fn pass(&mut self, now: Time, packet: Packet, out: &mut Outlet<'_>) {
        if is_selected(&self.spec.types, &packet.data) && !self.take_token(now) {
            out.drop(DropCause::IcmpLimit, &packet);
        } else {
            out.forward(packet);
        }
    }

    fn reconfigure(&mut self, _: Time, spec: IcmpLimitSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cell::middlebox::icmp_kind::tests::icmp;
    use crate::packet::tests::udp;
    use crate::spec::CellSpec;

    /// Which of pings every `gap_ms` pass.
    fn passing(pairs: &[(&str, &str)], gap_ms: u64, count: u64) -> Vec<u64> {
        let spec = CellSpec::from_pairs("icmp_limit", pairs).unwrap();
        let mut cell = spec.build(1, Time::ZERO).own();
        let passing = (0..count).filter(|index| {
            let now = Time::from_nanos(index * gap_ms * 1_000_000);
            cell.enqueue(now, icmp(false, 8, 0));
            let passes = cell.dequeue(now).is_some();
            cell.enqueue(now, udp(100, 1, 0));
            assert!(cell.dequeue(now).is_some(), "other traffic is not limited");
            passes
        });
        passing.collect()
    }

    #[test]
    fn one_a_token() {
        let ten = ("per_second", "10");
        assert_eq!(passing(&[ten], 30, 15), [0, 4, 8, 12]);
        assert_eq!(passing(&[ten], 100, 5), [0, 1, 2, 3, 4]);
        // Three at once, then one every 100 ms.
        assert_eq!(passing(&[ten, ("burst", "3")], 25, 13), [0, 1, 2, 4, 8, 12]);
        let errors = [ten, ("types", "['time-exceeded']")];
        assert_eq!(passing(&errors, 1, 3), [0, 1, 2]);
    }

    #[test]
    fn what_makes_no_sense() {
        for pairs in [
            &[("per_second", "0")][..],
            &[("per_second", "nan")],
            &[("per_second", "5"), ("burst", "0")],
        ] {
            assert!(CellSpec::from_pairs("icmp_limit", pairs).is_err());
        }
    }
}
