//! Proving a tuning plan: each part of it is measured with and without, by turns, until it is decided
//! whether it helps ([`decision`]); what helps stays, and the next part is measured on top of it. Who changes
//! settings and who measures are arguments.

pub mod decision;

use plumb_model::distribution::Distribution;
use plumb_model::results::tune::{TuneDecision, TuneResult, TunedSetting};
use plumb_model::results::{Direction, Outcome};
use plumb_model::tune::{HostPlan, PlannedChange};

use decision::{Decision, Summary, decide, least_seen};
use plumb_net::clock;

use crate::error::MeasureError;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// Most runs of one part by default: of changes that gain 5 to 100 % they keep 96 % under noises of 1 to 20 % a run.
pub const RUNS: usize = 100;

/// A part of a plan: changes that make sense together, and the direction that shows what they do.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// What it is, for people.
    pub name: &'static str,
    /// The direction of the data.
    pub direction: Direction,
    pub changes: Vec<PlannedChange>,
}

/// What a transfer shows: changes that make sense together only, and the direction of the data that shows
/// them. In the order in which they are tried, each on top of what was kept: what the others need comes first.
const PARTS: [(&str, Direction, &[&str]); 10] = [
    (
        "window scaling",
        Direction::Down,
        &["net.ipv4.tcp_window_scaling"],
    ),
    ("send buffer", Direction::Up, &["net.ipv4.tcp_wmem"]),
    (
        "receive buffer",
        Direction::Down,
        &["net.ipv4.tcp_rmem", "net.ipv4.tcp_moderate_rcvbuf"],
    ),
    (
        "congestion control and queue",
        Direction::Up,
        &[
            "net.ipv4.tcp_congestion_control",
            "net.core.default_qdisc",
            "qdisc fq",
        ],
    ),
    (
        "sending offloads",
        Direction::Up,
        &["offload tso", "offload gso"],
    ),
    ("receiving offload", Direction::Down, &["offload gro"]),
    ("driver queue", Direction::Up, &["driver queue"]),
    ("transmit queue", Direction::Up, &["txqueuelen"]),
    ("receive ring", Direction::Down, &["ring rx"]),
    (
        "interrupt coalescing",
        Direction::Down,
        &["interrupt coalescing"],
    ),
];

/// Which changes of a plan a transfer shows, part by part in the order in which they are tried; and those
/// that it does not show, which nothing can be proved of.
pub fn parts(plan: &HostPlan) -> (Vec<Part>, Vec<PlannedChange>) {
    let of = |knobs: &[&str]| -> Vec<PlannedChange> {
        let mut changes = plan.changes.clone();
        changes.retain(|change| knobs.contains(&change.knob.as_str()));
        changes
    };
    let parts = PARTS
        .iter()
        .map(|(name, direction, knobs)| Part {
            name,
            direction: *direction,
            changes: of(knobs),
        })
        .filter(|part| !part.changes.is_empty())
        .collect();
    let mut unseen = plan.changes.clone();
    unseen.retain(|change| {
        let mut shown = PARTS.iter().flat_map(|(_, _, knobs)| *knobs);
        !shown.any(|knob| *knob == change.knob)
    });
    (parts, unseen)
}

/// Changing settings and measuring rates.
pub trait Bench {
    /// Why it could not.
    type Error;
    /// Has exactly these changes in force, and no others.
    ///
    /// # Errors
    /// When they cannot be made or undone.
    fn have(&mut self, changes: &[PlannedChange]) -> Result<(), Self::Error>;
    /// The rate of one transfer, in bit/s.
    ///
    /// # Errors
    /// When it cannot be measured.
    fn rate(&mut self, direction: Direction) -> Result<f64, Self::Error>;
    /// Whether two more of them may be made.
    fn affords_a_pair(&self) -> bool;
}

/// Measures what one part of a plan does, on top of what was kept of the parts before it; lasts as long as its bench
/// takes for `most_runs` transfers.
pub struct PartTrial<'a, B> {
    /// Changes settings and measures.
    pub bench: &'a mut B,
    pub part: &'a Part,
    /// What helped so far, in the plan's order; what helps of this part is added.
    pub kept: &'a mut Vec<PlannedChange>,
    pub most_runs: usize,
}

impl<B: Bench> PartTrial<'_, B> {
    fn prove(&mut self) -> Result<TuneResult, B::Error> {
        let with = [self.kept.as_slice(), self.part.changes.as_slice()].concat();
        let result = trial(self.bench, self.part, self.kept, &with, self.most_runs)?;
        if result.decision == TuneDecision::Kept {
            *self.kept = with;
        }
        Ok(result)
    }
}

impl<B: Bench> Step for PartTrial<'_, B>
where
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn name(&self) -> String {
        format!("the effect of the {}", self.part.name)
    }

    fn measure(&mut self, _: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let started_ns = clock::monotonic_ns();
        let result = self.prove().map_err(|e| MeasureError::Tuning(e.into()))?;
        let outcome = Outcome::Tune(Box::new(result));
        Ok(Yield::of(Measured::until_now(started_ns, outcome)))
    }
}

/// One part, by turns without and with: the second pair the other way round, so that a path that gets faster
/// or slower by itself favours neither.
fn trial<B: Bench>(
    bench: &mut B,
    part: &Part,
    without: &[PlannedChange],
    with: &[PlannedChange],
    most_runs: usize,
) -> Result<TuneResult, B::Error> {
    let (mut rates_without, mut rates_with, mut pairs) = (Vec::new(), Vec::new(), Vec::new());
    let decision = loop {
        if !bench.affords_a_pair() {
            break TuneDecision::OutOfBudget;
        }
        let with_first = pairs.len() % 2 == 1;
        let (mut rate_without, mut rate_with) = (0.0, 0.0);
        for turn_with in [with_first, !with_first] {
            bench.have(if turn_with { with } else { without })?;
            let rate = bench.rate(part.direction)?;
            if turn_with {
                rate_with = rate;
            } else {
                rate_without = rate;
            }
        }
        rates_without.push(rate_without);
        rates_with.push(rate_with);
        // A transfer that carried nothing at all counts as one bit a second.
        pairs.push((rate_with.max(1.0) / rate_without.max(1.0)).ln());
        match decide(&pairs, most_runs) {
            Decision::Continue => {}
            Decision::Keep => break TuneDecision::Kept,
            Decision::TooLittle => break TuneDecision::TooLittle,
            Decision::CannotTell => break TuneDecision::CannotTell,
        }
    };
    let summary = Summary::of(&pairs);
    let least_seen_ratio = match decision {
        TuneDecision::CannotTell => least_seen(&pairs, most_runs),
        _ => None,
    };
    Ok(TuneResult {
        part: part.name.to_owned(),
        settings: part
            .changes
            .iter()
            .map(|change| TunedSetting {
                knob: change.knob.clone(),
                from: change.from.clone(),
                to: change.to.clone(),
            })
            .collect(),
        direction: part.direction,
        decision,
        effect_ratio: summary.mean.exp() - 1.0,
        noise_ratio: summary.noise(),
        least_seen_ratio,
        without_bps: Distribution::of(rates_without.iter().copied()),
        with_bps: Distribution::of(rates_with.iter().copied()),
        runs: 2 * pairs.len() as u64,
        most_runs: most_runs.min(decision::MOST_RUNS) as u64,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use plumb_model::finding::Actor;
    use plumb_model::tune::{Kind, Os, Role, Scope};
    use std::sync::Arc;

    use super::*;
    use crate::conductor::Conductor;
    use crate::progress::Nobody;
    use crate::record::Judgement;

    fn change(knob: &str) -> PlannedChange {
        PlannedChange {
            knob: knob.to_owned(),
            kind: Kind::Sysctl,
            from: None,
            to: "x".to_owned(),
            scope: Scope::Namespace,
            why: String::new(),
            effect: String::new(),
            risk: String::new(),
            memory_bytes: None,
            action: None,
            at_boot: None,
            source: String::new(),
        }
    }

    fn plan(knobs: &[&str]) -> HostPlan {
        HostPlan {
            on: Actor::ThisHost,
            os: Os::Linux,
            role: Role::Client,
            facts_from: String::new(),
            changes: knobs.iter().map(|knob| change(knob)).collect(),
            refused: Vec::new(),
            left: Vec::new(),
            judged: Vec::new(),
            memory_bytes: None,
            notes: Vec::new(),
        }
    }

    /// A path on which the send buffer gives four times the rate and BBR takes a tenth of it, that gets slower
    /// by 1 % with each run.
    #[derive(Default)]
    struct Fake {
        have: Vec<String>,
        runs: i32,
        most_runs: Option<i32>,
        fails_after: Option<i32>,
    }

    impl Bench for Fake {
        type Error = String;
        fn have(&mut self, changes: &[PlannedChange]) -> Result<(), String> {
            self.have = changes.iter().map(|c| c.knob.clone()).collect();
            Ok(())
        }
        fn rate(&mut self, _: Direction) -> Result<f64, String> {
            self.runs += 1;
            if self.fails_after.is_some_and(|last| self.runs > last) {
                return Err("the far end is gone".to_owned());
            }
            let has = |name: &str| self.have.iter().any(|knob| knob.ends_with(name));
            let buffer = if has("tcp_wmem") { 4.0 } else { 1.0 };
            let control = if has("congestion_control") { 0.9 } else { 1.0 };
            Ok(100e6 * buffer * control * 0.99f64.powi(self.runs))
        }
        fn affords_a_pair(&self) -> bool {
            self.most_runs.is_none_or(|most| self.runs + 2 <= most)
        }
    }

    /// What became of each part, and what is kept.
    fn prove(bench: &mut Fake, parts: &[Part]) -> (Vec<TuneResult>, Vec<PlannedChange>) {
        let mut kept = Vec::new();
        let prove = |part| {
            let mut trial = PartTrial {
                bench: &mut *bench,
                part,
                kept: &mut kept,
                most_runs: RUNS,
            };
            trial.prove().unwrap()
        };
        let results = parts.iter().map(prove).collect();
        (results, kept)
    }

    #[test]
    fn what_helps_stays_and_what_does_not_goes() {
        let plan = plan(&[
            "qdisc fq",
            "net.ipv4.tcp_wmem",
            "net.ipv4.tcp_rmem",
            "net.ipv4.tcp_congestion_control",
            "net.ipv4.tcp_slow_start_after_idle",
            "ring rx",
        ]);
        let (parts, unseen) = parts(&plan);
        assert_eq!(parts.len(), 4);
        assert_eq!(parts[3].direction, Direction::Down);
        assert_eq!(unseen[0].knob, "net.ipv4.tcp_slow_start_after_idle");
        let mut bench = Fake::default();
        let (results, kept) = prove(&mut bench, &parts);
        let decisions: Vec<_> = results.iter().map(|r| r.decision).collect();
        assert_eq!(
            decisions,
            [
                TuneDecision::Kept,
                TuneDecision::TooLittle,
                TuneDecision::TooLittle,
                TuneDecision::TooLittle
            ]
        );
        assert_eq!(results[0].runs, 4, "a large effect takes four runs");
        assert!(
            (results[0].effect_ratio - 3.0).abs() < 0.1,
            "{:?}",
            results[0]
        );
        assert!(
            (results[2].effect_ratio + 0.1).abs() < 0.02,
            "{:?}",
            results[2]
        );
        assert_eq!(kept.len(), 1);
        assert!(results.iter().all(|r| r.runs <= RUNS as u64));
    }

    #[test]
    fn what_was_decided_before_a_failure_is_kept() {
        let plan = plan(&["net.ipv4.tcp_wmem", "ring rx"]);
        let mut bench = Fake {
            fails_after: Some(5),
            ..Fake::default()
        };
        let stop = Arc::default();
        let mut conductor = Conductor::here(Vec::new(), &Nobody, &stop);
        let mut kept = Vec::new();
        for part in &parts(&plan).0 {
            let mut step = PartTrial {
                bench: &mut bench,
                part,
                kept: &mut kept,
                most_runs: RUNS,
            };
            conductor.step(&mut step, 0);
        }
        let conducted = conductor.finish(Judgement::AsAudited).unwrap();
        let run = conducted.run;
        assert!(
            matches!(run.measurements.as_slice(), [only] if matches!(&only.outcome, Outcome::Tune(r) if r.decision == TuneDecision::Kept))
        );
        assert_eq!(
            run.notes,
            ["The effect of the receive ring was not measured: the far end is gone."]
        );
        assert_eq!(kept.len(), 1);
    }

    #[test]
    fn what_the_budget_does_not_reach_is_undone_and_said() {
        let plan = plan(&["net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem", "ring rx"]);
        let mut bench = Fake {
            most_runs: Some(7),
            ..Fake::default()
        };
        let (results, kept) = prove(&mut bench, &parts(&plan).0);
        let said: Vec<_> = results.iter().map(|r| (r.decision, r.runs)).collect();
        assert_eq!(
            said,
            [
                (TuneDecision::Kept, 4),
                (TuneDecision::OutOfBudget, 2),
                (TuneDecision::OutOfBudget, 0)
            ]
        );
        assert_eq!(kept.len(), 1);
    }
}
