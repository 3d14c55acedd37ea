//! Loss in bursts: a channel that is now good and now bad, with a chance of loss in each (E. N.
//! Gilbert, "Capacity of a burst-noise channel", 1960; E. O. Elliott, "Estimates of error rates
//! for codes on burst-noise channels", 1963). As netem's `loss gemodel` (`loss_gilb_ell` in
//! net/sched/sch_netem.c): a packet meets the state that the one before it left.

use serde::{Deserialize, Serialize};

use crate::cell::loss::LossModel;
use crate::packet::Packet;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::settings::Settings;

/// `{ type = "gilbert_elliott", p = "1%", r = "30%" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GilbertElliottSpec {
    /// The probability at each packet that the good state ends.
    pub p: Ratio,
    /// The probability at each packet that the bad state ends: its mean length is 1/r packets.
    pub r: Ratio,
    /// The probability of loss in the good state, 1−k.
    #[serde(default)]
    pub loss_good: Ratio,
    /// The probability of loss in the bad state, 1−h; all when absent (Gilbert's simple model).
    #[serde(default = "all")]
    pub loss_bad: Ratio,
}

fn all() -> Ratio {
    Ratio::ONE
}

impl Settings for GilbertElliottSpec {}

/// The model; it begins in the good state.
pub(crate) struct GilbertElliott {
    spec: GilbertElliottSpec,
    random: Random,
    is_bad: bool,
}

impl GilbertElliott {
    pub(crate) fn new(spec: GilbertElliottSpec, seed: u64) -> Self {
        Self {
            spec,
            random: Random::new(seed),
            is_bad: false,
        }
    }
}

impl LossModel for GilbertElliott {
    type Spec = GilbertElliottSpec;

    fn loses(&mut self, _: &Packet) -> bool {
        let (ends, loss) = match self.is_bad {
            false => (self.spec.p, self.spec.loss_good),
            true => (self.spec.r, self.spec.loss_bad),
        };
        self.is_bad ^= self.random.chance(ends.value());
        self.random.chance(loss.value())
    }

    fn reconfigure(&mut self, spec: GilbertElliottSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    use crate::cell::loss::tests::{lost, runs};

    const KIND: &str = "gilbert_elliott";

    #[test]
    fn certain_changes_alternate() {
        // Packet 0 meets the good state and ends it, packet 1 the bad one, and so on.
        assert_eq!(lost(KIND, &[("p", "1"), ("r", "1")], 7), [1, 3, 5]);
        let inverted = [
            ("p", "1"),
            ("r", "1"),
            ("loss_good", "1"),
            ("loss_bad", "0"),
        ];
        assert_eq!(lost(KIND, &inverted, 7), [0, 2, 4, 6]);
        assert_eq!(lost(KIND, &[("p", "1"), ("r", "0")], 5), [1, 2, 3, 4]);
        assert!(lost(KIND, &[("p", "0"), ("r", "1")], 1000).is_empty());
    }

    #[test]
    fn the_seed_decides_which() {
        let lost = lost(KIND, &[("p", "5%"), ("r", "30%")], 60);
        assert_eq!(lost, [11, 15, 16, 33, 34, 57, 58, 59]);
    }

    /// 200,000 packets, p = 1 %, r = 25 %: the bad state has the share p/(p+r) = 0.0385. With
    /// the correlation ρ = 1−p−r = 0.74 of neighbours the number of losses has the standard
    /// deviation √(n π (1−π) (1+ρ)/(1−ρ)) = 222. Bursts are geometric with the mean 4 and the
    /// deviation √(1−r)/r = 3.46: of some 1920 their mean has 0.079. The bounds are five
    /// deviations (confidence 1 − 6·10⁻⁷).
    #[test]
    fn share_and_length_of_bursts_hold() {
        let lost = lost(KIND, &[("p", "1%"), ("r", "25%")], 200_000);
        let expected = 200_000.0 * 0.01 / 0.26;
        assert!(
            (lost.len() as f64 - expected).abs() <= 1110.0,
            "{}",
            lost.len()
        );
        let mean = lost.len() as f64 / runs(&lost).len() as f64;
        assert!((mean - 4.0).abs() <= 0.4, "{mean}");
    }
}
