//! Several Runs of one path as one, to be judged together.

use std::mem::take;

use plumb_model::order::sort_few;
use plumb_model::run::Run;

/// Why Runs cannot be judged together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MergeError {
    #[error("no Run was given")]
    None,
    /// They are of two paths.
    #[error(
        "the Runs are of different paths, towards {first} and {other}: diagnose each by itself, or compare them (plumb compare)"
    )]
    Paths {
        /// The far end of the first Run, as it was typed, and its address.
        first: String,
        /// The far end of the first Run that differs.
        other: String,
    },
}

/// A Run, and when it began, in seconds after any moment that all of them have in common.
#[derive(Debug, Clone)]
pub struct Part {
    pub run: Run,
    pub began_s: f64,
}

/// One Run with what all of them measured, in order of time; each measurement knows which Run it is from. Of several checks
/// the newest alone is in it, because each measures the whole path: no sentence may take figures of two. Findings and
/// verdicts are left out: they belong to the whole. Facts of the hosts come from the first Run that has them.
///
/// # Errors
/// When they are of different paths, or there are none. Runs without a far end, such as an audit of this machine, go
/// with any.
pub fn merge(mut parts: Vec<Part>) -> Result<Run, MergeError> {
    sort_few(&mut parts, |a, b| a.began_s.total_cmp(&b.began_s));
    refuse_other_paths(&parts)?;
    let newest = parts.iter().rposition(is_check);
    let mut at = 0..;
    parts.retain(|part| {
        let at = at.next();
        !is_check(part) || at == newest
    });
    let zero_s = parts.first().ok_or(MergeError::None)?.began_s;
    let mut whole: Option<Run> = None;
    for Part { mut run, began_s } in parts {
        let id = run.id.clone();
        let (target, lab) = (run.target.take(), run.local.lab.take());
        let (measurements, notes) = (take(&mut run.measurements), take(&mut run.notes));
        let asked = run.asked.take();
        let whole = whole.get_or_insert(Run {
            findings: Vec::new(),
            verdict: None,
            ..run
        });
        if let Some(target) = target {
            let known = whole.target.get_or_insert_with(|| target.clone());
            known.host = known.host.take().or(target.host);
        }
        whole.local.lab = whole.local.lab.take().or(lab);
        whole.asked = whole.asked.take().or(asked);
        for mut measurement in measurements {
            measurement.id = format!("m{}", whole.measurements.len() + 1);
            measurement.at_s += began_s - zero_s;
            measurement.context.run.get_or_insert_with(|| id.clone());
            whole.measurements.push(measurement);
        }
        for note in notes {
            if !whole.notes.contains(&note) {
                whole.notes.push(note);
            }
        }
    }
    whole.ok_or(MergeError::None)
}

/// Whether a part is a check of the whole path.
fn is_check(part: &Part) -> bool {
    let run = &part.run;
    let cleared = run.verdict.as_ref().and_then(|verdict| verdict.clearance);
    run.target.is_some() && (run.asked.is_some() || cleared.is_some())
}

fn refuse_other_paths(parts: &[Part]) -> Result<(), MergeError> {
    let mut targets = parts.iter().filter_map(|part| part.run.target.as_ref());
    let Some(first) = targets.next() else {
        return Ok(());
    };
    match targets.find(|target| target.address != first.address) {
        Some(other) => Err(MergeError::Paths {
            first: first.to_string(),
            other: other.to_string(),
        }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]

    use super::*;

    fn part(text: &str, id: &str, began_s: f64) -> Part {
        let mut run = Run::from_json(text).unwrap();
        run.id = id.to_owned();
        Part { run, began_s }
    }

    const POLICER: &str = include_str!("../fixtures/policer.json");

    #[test]
    fn measurements_are_in_order_of_time_and_know_their_run() {
        let later = part(POLICER, "later", 100.0);
        let (count, last_at_s) = {
            let all = &later.run.measurements;
            (all.len(), all.last().unwrap().at_s)
        };
        let whole = merge(vec![later, part(POLICER, "sooner", 40.0)]).unwrap();
        assert_eq!(whole.measurements.len(), 2 * count);
        let runs: Vec<_> = whole
            .measurements
            .iter()
            .map(|m| m.context.run.as_deref())
            .collect();
        assert_eq!((runs[0], runs[count]), (Some("sooner"), Some("later")));
        assert_eq!(whole.measurements[count].id, format!("m{}", count + 1));
        let last = whole.measurements.last().unwrap();
        assert!((last.at_s - last_at_s - 60.0).abs() < 1e-9, "{}", last.at_s);
        assert!(whole.findings.is_empty() && whole.verdict.is_none());
    }

    #[test]
    fn of_several_checks_the_newest_alone_is_judged() {
        let check = |id: &str, began_s| {
            let mut check = part(POLICER, id, began_s);
            let verdict = plumb_model::finding::Verdict::of_a_part(String::new());
            check.run.verdict = Some(plumb_model::finding::Verdict {
                clearance: Some(plumb_model::finding::Clearance::Cleared),
                ..verdict
            });
            check
        };
        let single = part(POLICER, "ping", 5.0);
        let whole = merge(vec![check("new", 100.0), single, check("old", 40.0)]).unwrap();
        let mut runs: Vec<_> = whole
            .measurements
            .iter()
            .filter_map(|m| m.context.run.as_deref())
            .collect();
        runs.dedup();
        assert_eq!(runs, ["ping", "new"]);
    }

    #[test]
    fn other_paths_are_refused_and_runs_of_a_machine_go_with_any() {
        let mut other = part(POLICER, "other", 1.0);
        other.run.target.as_mut().unwrap().address = Some("203.0.113.9".to_owned());
        let one = part(POLICER, "one", 0.0);
        let refused = merge(vec![one.clone(), other]);
        assert!(
            matches!(refused, Err(MergeError::Paths { .. })),
            "{refused:?}"
        );
        let mut host = part(POLICER, "host", 2.0);
        host.run.target = None;
        let target = one.run.target.clone();
        assert_eq!(merge(vec![host, one]).unwrap().target, target);
        assert_eq!(merge(Vec::new()), Err(MergeError::None));
    }
}
