//! Loss of the 4-state Markov model of netem's `loss state` (`loss_4state` in
//! net/sched/sch_netem.c, after S. Salsano, F. Ludovici, A. Ordine, D. Giannuzzi, "Definition of
//! a general and intuitive loss model for packet networks and its implementation in the netem
//! module", 2009): bursts of loss with gaps of success in them, and single losses between them.

use serde::{Deserialize, Serialize};

use crate::cell::loss::LossModel;
use crate::packet::Packet;
use crate::random::Random;
use crate::ratio::Ratio;
use crate::settings::Settings;

/// `{ type = "markov4", p13 = "1%", p31 = "30%" }`: the probabilities, at each packet, of a transition from one state
/// of `State` to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Markov4Spec {
    /// That a burst of loss begins.
    pub p13: Ratio,
    /// That the burst ends.
    pub p31: Ratio,
    /// That packets get through within the burst.
    #[serde(default)]
    pub p32: Ratio,
    /// That they are lost again; certain when absent, as in tc-netem(8).
    #[serde(default = "certain")]
    pub p23: Ratio,
    /// That a single packet is lost outside of bursts.
    #[serde(default)]
    pub p14: Ratio,
}

fn certain() -> Ratio {
    Ratio::ONE
}

impl Settings for Markov4Spec {
    fn check(&self) -> Result<(), String> {
        for (one, a, other, b) in [
            ("p13", self.p13, "p14", self.p14),
            ("p31", self.p31, "p32", self.p32),
        ] {
            let sum = a.value() + b.value();
            // Two decimal shares of 1 may add up to a little more.
            if sum > 1.0 + 1e-9 {
                return Err(format!(
                    "{one} and {other} leave the same state: together they are {sum}, and at most 1 is possible"
                ));
            }
        }
        Ok(())
    }
}

/// The states, with their numbers in the names of the probabilities. Each packet moves the
/// model on, and is lost when it comes to a state of loss.
#[derive(Debug, Clone, Copy)]
enum State {
    /// 1: packets get through.
    Gap,
    /// 2: packets get through, within a burst.
    GapInBurst,
    /// 3: packets are lost.
    Burst,
    /// 4: a single packet was lost.
    Single,
}

/// The model; it begins with packets getting through.
pub(crate) struct Markov4 {
    spec: Markov4Spec,
    random: Random,
    state: State,
}

impl Markov4 {
    pub(crate) fn new(spec: Markov4Spec, seed: u64) -> Self {
        Self {
            spec,
            random: Random::new(seed),
            state: State::Gap,
        }
    }

    fn next(&mut self) -> State {
        let drawn = self.random.uniform();
        let [p13, p31, p32, p23, p14] = [
            self.spec.p13,
            self.spec.p31,
            self.spec.p32,
            self.spec.p23,
            self.spec.p14,
        ]
        .map(Ratio::value);
        match self.state {
            State::Gap if drawn < p14 => State::Single,
            State::Gap if drawn < p14 + p13 => State::Burst,
            State::Gap | State::Single => State::Gap,
            State::GapInBurst if drawn < p23 => State::Burst,
            State::GapInBurst => State::GapInBurst,
            State::Burst if drawn < p32 => State::GapInBurst,
            State::Burst if drawn < p32 + p31 => State::Gap,
            State::Burst => State::Burst,
        }
    }
}

impl LossModel for Markov4 {
    type Spec = Markov4Spec;

    fn loses(&mut self, _: &Packet) -> bool {
        self.state = self.next();
        matches!(self.state, State::Burst | State::Single)
    }

    fn reconfigure(&mut self, spec: Markov4Spec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::cell::loss::tests::{lost, runs};
    use crate::spec::CellSpec;

    const KIND: &str = "markov4";

    #[test]
    fn certain_changes_go_round() {
        // 1 → 3 → 1 …; 1 → 3 → 2 → 3 …; 1 → 4 → 1 …; and a burst without an end.
        let (yes, no) = ("1", "0");
        assert_eq!(lost(KIND, &[("p13", yes), ("p31", yes)], 6), [0, 2, 4]);
        let in_burst = [("p13", yes), ("p31", no), ("p32", yes)];
        assert_eq!(lost(KIND, &in_burst, 6), [0, 2, 4]);
        let stuck = [("p13", yes), ("p31", no), ("p32", yes), ("p23", no)];
        assert_eq!(lost(KIND, &stuck, 1000), [0]);
        let single = [("p13", no), ("p31", yes), ("p14", yes)];
        assert_eq!(lost(KIND, &single, 6), [0, 2, 4]);
        assert_eq!(lost(KIND, &[("p13", yes), ("p31", no)], 4), [0, 1, 2, 3]);
    }

    #[test]
    fn the_seed_decides_which() {
        let pairs = [
            ("p13", "5%"),
            ("p31", "30%"),
            ("p32", "20%"),
            ("p23", "50%"),
            ("p14", "2%"),
        ];
        let numbers = [20, 22, 28, 29, 30, 32, 33, 34, 47, 48, 49, 51, 64];
        assert_eq!(lost(KIND, &pairs, 80), numbers);
    }

    /// Without the states 2 and 4 it is a chain of two states: as for Gilbert's model the share
    /// is p13/(p13+p31) = 0.0385 with a deviation of 222 in 200,000 packets, and the mean burst
    /// is 4 with 0.079. Single losses alone have the share p14/(1+p14); each takes a packet
    /// after it along, which gets through: 1980 of 200,000 at 1 %, with a deviation below
    /// √(n p) = 45. Five deviations each.
    #[test]
    fn shares_hold() {
        let bursts = lost(KIND, &[("p13", "1%"), ("p31", "25%")], 200_000);
        assert!(
            (bursts.len() as f64 - 7692.0).abs() <= 1110.0,
            "{}",
            bursts.len()
        );
        let mean = bursts.len() as f64 / runs(&bursts).len() as f64;
        assert!((mean - 4.0).abs() <= 0.4, "{mean}");
        let singles = lost(KIND, &[("p13", "0"), ("p31", "1"), ("p14", "1%")], 200_000);
        assert!(
            (singles.len() as f64 - 1980.0).abs() <= 225.0,
            "{}",
            singles.len()
        );
        assert!(runs(&singles).iter().all(|length| *length == 1));
    }

    #[test]
    fn more_than_certain_is_refused() {
        let pairs = [("p13", "60%"), ("p31", "1"), ("p14", "50%")];
        let error = CellSpec::from_pairs(KIND, &pairs).unwrap_err().to_string();
        assert!(error.contains("p13 and p14"), "{error}");
        let pairs = [("p13", "0.7"), ("p31", "1"), ("p14", "0.3")];
        assert!(CellSpec::from_pairs(KIND, &pairs).is_ok());
    }
}
