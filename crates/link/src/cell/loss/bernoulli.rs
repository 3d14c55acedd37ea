//! Loss by chance: every packet with the same probability, whatever became of the others.

use serde::{Deserialize, Serialize};

use crate::cell::loss::LossModel;
use crate::packet::Packet;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::settings::Settings;

/// `{ type = "loss", ratio = "1%" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BernoulliSpec {
    /// The probability that a packet is lost.
    pub ratio: Ratio,
}

impl Settings for BernoulliSpec {}

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

impl LossModel for Bernoulli {
    type Spec = BernoulliSpec;

    fn loses(&mut self, _: &Packet) -> bool {
        self.random.chance(self.spec.ratio.value())
    }

    fn reconfigure(&mut self, spec: BernoulliSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    use crate::cell::loss::tests::lost;

    #[test]
    fn the_seed_decides_which() {
        assert_eq!(lost("loss", &[("ratio", "5%")], 60), [20, 22, 28, 31, 51]);
        assert!(lost("loss", &[("ratio", "0")], 1000).is_empty());
        assert_eq!(lost("loss", &[("ratio", "100%")], 3), [0, 1, 2]);
    }

    /// 100,000 packets at 5 %: the standard deviation is √(n p (1−p)) = 69, and five of them
    /// (confidence 1 − 6·10⁻⁷) are 345.
    #[test]
    fn the_ratio_holds() {
        let count = lost("loss", &[("ratio", "5%")], 100_000).len() as i64;
        assert!((count - 5000).abs() <= 345, "{count}");
    }
}
