//! This machine's clock was set while the path was measured.
//!
//! Time stamps of packets are of the wall clock, so that one-way delays across the step are wrong by as much.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;
use crate::facts::seconds;

/// In seconds. The two clocks are read one after the other, which takes less; and a step below it is below what plumb
/// says of a path.
const LEAST_S: f64 = 0.001;

/// The kernel's own two clocks moved apart; nothing else does that.
const CONFIDENCE: f64 = 0.99;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a clock whose rate is corrected, and which is not set, has no step",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::ClockUnsynchronised,
        "there the clock is left alone, and wrong by the same all the time",
    )],
    examine: |case| examine(case).into_iter().collect(),
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let set = case
        .counted()
        .filter_map(|counted| Some((counted.result.clock_set_s?, counted)));
    let facts = case.facts(None);
    let most = set.max_by(|a, b| a.0.abs().total_cmp(&b.0.abs()));
    let (by_s, counted) = facts.known("how far the clock was set in a phase", most)?;
    let name = "by how much the clock was set in a phase";
    facts.at_least(name, seconds(by_s.abs()), LEAST_S).then(|| Finding {
        cause: Cause::ClockStepped,
        place: Place::ThisHost,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "This machine's clock was set {} by {} {}: one-way delays and times in logs and captures across that are wrong by as much.",
            if by_s > 0.0 { "forward" } else { "back" },
            human_seconds(by_s.abs()),
            counted.during()
        ),
        evidence: vec![fact(
            counted.measurement,
            "clock_set_s",
            by_s,
            "how far CLOCK_REALTIME moved away from CLOCK_MONOTONIC",
            LEAST_S,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Measure again. Where it happens again, have one program keep the clock (`chronyc tracking`, `timedatectl`), which corrects its rate; look for a second one, or a hypervisor's tools, that set it.",
            "The clock is not set during a check.",
        )],
        kb: "one-way-delay".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use plumb_model::results::Outcome;
    use plumb_model::results::host::RatesResult;

    #[test]
    fn a_step_is_told_from_reading_two_clocks() {
        let found = |by_s| {
            let rates = RatesResult {
                clock_set_s: Some(by_s),
                ..RatesResult::default()
            };
            testing::found(CAUSE.examine, Outcome::HostRates(rates)).len()
        };
        assert_eq!([0.0, 0.000_02, -0.5, 2.0].map(found), [0, 0, 1, 1]);
    }
}
