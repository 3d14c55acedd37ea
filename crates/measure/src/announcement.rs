//! What a check says before it begins, for those who pay for it: how long it takes, and how much it
//! may transfer.

use std::time::Duration;

use plumb_model::units::{BitRate, si};

use crate::idle::{AFTER, IDLE};
use crate::traffic_classes::Shape;
use crate::with_responder::{Plan, weight};

impl Plan {
    /// How long it takes and how much it may transfer. The rate of the line is what the check is to
    /// find out; so it names the one from which on the budget is spent before the time is.
    pub fn announcement(&self) -> String {
        let around = if self.latency {
            IDLE + AFTER
        } else {
            Duration::ZERO
        };
        let phase_s = self.phase.as_secs_f64();
        let seconds = phase_s * self.phases().len() as f64 + around.as_secs_f64();
        if self.directions.is_empty() {
            let name = &self.name;
            return format!(
                "about {seconds:.0} s against {name}, at the rates of the applications"
            );
        }
        let weights: u64 = self.directions.iter().map(|d| weight(*d)).sum();
        let budget_bits = self.for_loads().bytes() as f64 * 8.0;
        let spent_above = BitRate::from_bps((budget_bits / (weights as f64 * phase_s)) as u64);
        let stops_when_known = matches!(self.shape, Shape::Responsiveness { .. });
        let may_end_sooner =
            self.bytes.is_some() || self.until_steady || self.from.is_some() || stops_when_known;
        let about = if may_end_sooner { "at most" } else { "about" };
        let more = match self.judge {
            true => "; up to 20 s more where causes must be told apart",
            false => "",
        };
        format!(
            "{about} {seconds:.0} s against {}, and less where a line is faster than {spent_above}: it transfers at most {} (--budget changes that){more}",
            self.name,
            si(self.budget.bytes() as f64, "B")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{self, Budget};
    use crate::phase::Group;
    use crate::with_responder::{CHECK_DIRECTIONS, PHASE, STREAMS};
    use plumb_model::units::ByteCount;
    use plumb_wire::native::control::flow::{Flow, TcpFlow};

    fn plan(budget: ByteCount) -> Plan {
        Plan {
            bytes: None,
            until_steady: false,
            from: None,
            to: None,
            name: "server".to_owned(),
            command: Vec::new(),
            directions: CHECK_DIRECTIONS.to_vec(),
            phase: PHASE,
            applications: Vec::new(),
            groups: vec![Group {
                streams: STREAMS,
                flow: Flow::Tcp(TcpFlow::default()),
            }],
            shape: crate::traffic_classes::Shape::BestEffort,
            budget,
            time: None,
            latency: true,
            judge: true,
        }
    }

    #[test]
    fn a_budget_ends_phases_sooner_on_a_fast_line() {
        // Up, down and both: four times 15 s of one direction, and a tenth of 2 GB is kept: 30 MB/s.
        assert_eq!(
            plan(budget::DEFAULT).announcement(),
            "about 52 s against server, and less where a line is faster than 240 Mbit/s: it transfers at most 2.00 GB (--budget changes that); up to 20 s more where causes must be told apart"
        );
        let small = ByteCount::from_bytes(20_000_000);
        let said = plan(small).announcement();
        assert!(said.contains("faster than 2.40 Mbit/s"), "{said}");
        // That is where the first phase, and every other, is cut short.
        let weights: Vec<u64> = CHECK_DIRECTIONS.iter().map(|d| weight(*d)).collect();
        let mut left = Budget::new(plan(small).for_loads());
        for (number, weight) in weights.iter().enumerate() {
            let later = weights.iter().skip(number + 1).sum();
            let share = left.share(*weight, later);
            assert_eq!(share, weight * 2_400_000 / 8 * PHASE.as_secs());
            left.spend(share);
        }
    }
}
