//! Two Runs of the same path, before and after: what changed, by how much, and whether it helped.

mod document;
mod findings;
mod likeness;
pub(crate) mod numbers;
pub(crate) mod quantity;
mod summary;
pub(crate) mod table;

use plumb_model::order::sort_few;
use plumb_model::results::Direction;
use plumb_model::run::Run;

pub use document::{Change, Comparison, FindingChanges, FindingRef, GradeChange, RunRef, SCHEMA};
pub use quantity::ChangeUnit;

use crate::latency::latencies;
use quantity::{Key, Quantity};

pub(crate) use numbers::numbers as numbers_of;
pub(crate) use table::in_unit as number_of;

/// The words for a number, and what it is of.
pub(crate) fn words_of(key: &Key) -> String {
    table::what(&change(key, None, None))
}

/// Whether a number with that value decides anything.
pub(crate) fn decides(key: &Key, value: f64) -> bool {
    key.judged && table::shown(&change(key, Some(value), None))
}

/// What changed from `a` to `b`.
pub fn compare(a: &Run, b: &Run) -> Comparison {
    compare_as(["before", "after"], a, b)
}

/// The same of two Runs that have other names.
pub(crate) fn compare_as(names: [&str; 2], a: &Run, b: &Run) -> Comparison {
    let rows = changes(a, b);
    let grades = grades(a, b);
    Comparison {
        schema: SCHEMA.to_owned(),
        before: run_ref(a),
        after: run_ref(b),
        summary: summary::sentence(&rows, &grades),
        grades,
        findings: findings::changes(a, b),
        notes: likeness::notes(names, a, b),
        rows,
    }
}

fn run_ref(run: &Run) -> RunRef {
    RunRef {
        id: run.id.clone(),
        started: run.started.clone(),
        target: run.target.as_ref().map(|t| t.name.clone()),
    }
}

fn changes(a: &Run, b: &Run) -> Vec<Change> {
    let (before, after) = (numbers_of(a), numbers_of(b));
    let find = |list: &[Quantity], key: &Key| list.iter().find(|(k, _)| k == key).map(|(_, v)| *v);
    let mut keys: Vec<&Key> = Vec::new();
    for (key, _) in before.iter().chain(&after) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    // By phase, latencies before rates; the sort is stable, so fields keep their order.
    let place = |key: &Key| (key.phase, key.direction.is_some());
    sort_few(&mut keys, |a, b| place(a).cmp(&place(b)));
    keys.into_iter()
        .map(|key| change(key, find(&before, key), find(&after, key)))
        .collect()
}

fn change(key: &Key, before: Option<f64>, after: Option<f64>) -> Change {
    let both = before.zip(after);
    Change {
        name: key.name.to_owned(),
        phase: key.phase.name().to_owned(),
        direction: key.direction,
        protocol: key.protocol,
        of: key.of.clone(),
        unit: key.unit,
        before,
        after,
        change: both.map(|(b, a)| a - b).filter(|c| c.is_finite()),
        change_ratio: both.map(|(b, a)| (a - b) / b).filter(|c| c.is_finite()),
        better: both
            .filter(|_| key.judged)
            .and_then(|(b, a)| key.unit.better(b, a)),
    }
}

fn grades(a: &Run, b: &Run) -> Vec<GradeChange> {
    let mark = |run: &Run, direction: Direction| {
        let all = latencies(run).into_iter();
        all.filter(|(phase, _)| *phase == direction.into())
            .find_map(|(_, round_trips)| round_trips.grade)
    };
    [Direction::Up, Direction::Down, Direction::Both]
        .into_iter()
        .map(|phase| GradeChange {
            phase,
            before: mark(a, phase),
            after: mark(b, phase),
        })
        .filter(|change| change.before.is_some() || change.after.is_some())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::quantity::Quantities;
    use plumb_model::context::Phase;

    #[test]
    fn nothing_before_has_no_ratio() {
        let loss = Quantities::of(Phase::Idle, None).number("loss_ratio", ChangeUnit::Ratio, 0.1);
        for (key, _) in loss.found {
            let change = super::change(&key, Some(0.0), Some(0.1));
            assert_eq!(
                (change.change, change.change_ratio, change.better),
                (Some(0.1), None, Some(false))
            );
            assert_eq!(super::change(&key, None, Some(0.1)).change, None);
        }
    }
}
