//! Loss by chance: every packet with the same probability, whatever became of the others.

use serde::{Deserialize, Serialize};

use crate::cell::Crossing;
use crate::cell::filter::{Filter, Outlet};
use crate::packet::Packet;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::settings::Settings;
use crate::spec::CellSpec;
use crate::stats::DropCause;
use crate::time::Time;

/// `{ type = "loss", ratio = "1%" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BernoulliSpec {
    /// The probability that a packet is lost.
    pub ratio: Ratio,
}

impl Settings for BernoulliSpec {}

/// The cell.
pub(crate) struct Bernoulli {
    spec: BernoulliSpec,
    random: Random,
}

impl Bernoulli {
    pub(crate) fn new(spec: BernoulliSpec, seed: u64) -> Self {
        Self {
            spec,
            random: Random::new(seed),
        }
    }
}

impl Filter for Bernoulli {
    const CROSSING: Crossing = Crossing::Split;

    fn pass(&mut self, _: Time, packet: Packet, out: &mut Outlet<'_>) {
        if self.random.chance(self.spec.ratio.value()) {
            out.drop(DropCause::Loss, &packet);
        } else {
            out.forward(packet);
        }
    }

    fn reconfigure(&mut self, _: Time, spec: &CellSpec) {
        if let CellSpec::Bernoulli(spec) = spec {
            self.spec = spec.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::udp;

    fn lost(ratio: &str, count: u64) -> Vec<u64> {
        let spec = CellSpec::from_pairs("loss", &[("ratio", ratio)]).unwrap();
        let mut cell = spec.build(7, Time::ZERO);
        let mut lost = Vec::new();
        for index in 0..count {
            cell.enqueue(Time::from_nanos(index), udp(100, 1, 0));
            if cell.dequeue(Time::from_nanos(index)).is_none() {
                lost.push(index);
            }
        }
        let stats = cell.stats(Time::from_nanos(count), "loss");
        assert_eq!(stats.dropped_packets(), lost.len() as u64);
        lost
    }

    #[test]
    fn the_seed_decides_which() {
        assert_eq!(lost("5%", 60), [20, 22, 28, 31, 51]);
        assert!(lost("0", 1000).is_empty());
        assert_eq!(lost("100%", 3), [0, 1, 2]);
    }

    /// 100,000 packets at 5 %: the standard deviation is √(n p (1−p)) = 69, and five of them
    /// (confidence 1 − 6·10⁻⁷) are 345.
    #[test]
    fn the_ratio_holds() {
        let count = lost("5%", 100_000).len() as i64;
        assert!((count - 5000).abs() <= 345, "{count}");
    }
}
