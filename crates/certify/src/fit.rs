//! How often each rule was right on the lines to fit, as the table that weighing reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use plumb_model::finding::Cause;
use plumb_model::vocabulary::Vocabulary as _;

use crate::library::{Library, Role, Set};
use crate::results::Line;
use crate::statistics::Count;
use crate::words::expected;

/// Where the table stands.
pub(crate) fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../diagnose/src/weighing/fitted.rs")
}

/// Between these the table stands in its file.
const BEGINS: &str = "const TRIED: &[(Cause, u32, u32)] = &[";
const ENDS: &str = "];\n";

/// That file, with the table of these results in place of its own.
pub(crate) fn file(library: &Library, lines: &[Line]) -> anyhow::Result<String> {
    let path = path();
    let text = std::fs::read_to_string(&path).with_context(|| format!("{}", path.display()))?;
    let with = with_table(&text, &table(&counts(library, lines)));
    with.with_context(|| format!("{} has no table", path.display()))
}

/// How often each cause was reported as worth repairing, and how often it was there: it is one that the trial's files name. The
/// same lines count as on the page. What is unexplained is found by no rule.
fn counts(library: &Library, lines: &[Line]) -> BTreeMap<Cause, Count> {
    let mut counts: BTreeMap<Cause, Count> = BTreeMap::new();
    let of_set = lines.iter().filter(|line| line.trial.set == Set::Fit);
    for line in of_set {
        let checked = line.checked.as_ref().filter(|c| !c.lab.overrun);
        let expected = expected(library, &line.trial);
        let named = checked.into_iter().flat_map(|c| c.said.worth_repairing());
        for named in named {
            let cause = Cause::of_word(&named.cause).filter(|c| *c != Cause::Unexplained);
            let Some(cause) = cause else { continue };
            let right = expected.iter().any(|e| e.first.contains(&named.cause));
            // A neighbour of what no cause describes is neither there nor a mistake.
            if right && line.trial.role == Role::Unknown {
                continue;
            }
            let count = counts.entry(cause).or_default();
            count.of += 1;
            count.hits += usize::from(right);
        }
    }
    counts
}

/// Its rows in Rust.
fn table(counts: &BTreeMap<Cause, Count>) -> String {
    let mut rows = String::new();
    let mut named: Vec<(&Cause, &Count)> = counts.iter().collect();
    named.sort_by_key(|(cause, _)| cause.name());
    for (cause, Count { hits, of }) in named {
        // Writing to a text does not fail.
        let _ = write!(rows, "\n    (Cause::{cause:?}, {of}, {hits}),");
    }
    match rows.is_empty() {
        true => rows,
        false => rows + "\n",
    }
}

fn with_table(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGINS)?;
    let (_, after) = rest.split_once(ENDS)?;
    Some(format!("{before}{BEGINS}{table}{ENDS}{after}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::library::folder;

    fn line(role: &str, change: &str, findings: &[(&str, &str)]) -> Line {
        let findings = findings.iter().map(|(cause, severity)| {
            serde_json::json!({ "cause": cause, "where": "uplink", "severity": severity, "confidence": 0.9 })
        });
        let findings: Vec<_> = findings.collect();
        serde_json::from_value(serde_json::json!({
            "set": "fit", "role": role, "base": "fibre", "changes": [change], "number": 0, "seed": 1, "severity": 0.5,
            "rules": "", "commit": "", "at": "", "lanes": 1,
            "checked": {
                "said": { "clearance": "found", "headline": "", "findings": findings },
                "seconds": 60.0, "bytes": 1, "attempts": 1,
                "lab": { "lateness_p99_s": null, "starved_ratio": 0.0, "overrun": false },
            },
        }))
        .unwrap()
    }

    #[test]
    fn findings_count_as_the_files_of_the_trial_have_them() {
        let library = Library::read(&folder()).unwrap();
        let lines = [
            line(
                "fault",
                "policer",
                &[("policer", "warning"), ("path-loss", "warning")],
            ),
            line(
                "fault",
                "policer",
                &[("policer", "critical"), ("distance", "info")],
            ),
            line(
                "fault",
                "loss-random",
                &[("policer", "warning"), ("unexplained", "warning")],
            ),
            line("unknown", "short-gaps", &[("sack-stripped", "warning")]),
        ];
        let counts = counts(&library, &lines);
        let of = |cause| counts.get(&cause).map(|c| (c.of, c.hits));
        assert_eq!(of(Cause::Policer), Some((3, 2)));
        assert_eq!(of(Cause::PathLoss), Some((1, 0)));
        assert_eq!(of(Cause::SackStripped), Some((1, 0)), "no neighbour");
        assert_eq!(
            table(&counts),
            "\n    (Cause::PathLoss, 1, 0),\n    (Cause::Policer, 3, 2),\n    (Cause::SackStripped, 1, 0),\n"
        );
    }

    /// The file that is there takes a table, and keeps all else.
    #[test]
    fn the_table_takes_the_place_of_the_old_one() {
        let text = std::fs::read_to_string(path()).unwrap();
        let empty = with_table(&text, "").unwrap();
        let full = with_table(&empty, "\n    (Cause::Policer, 3, 2),\n").unwrap();
        assert!(full.contains("= &[\n    (Cause::Policer, 3, 2),\n];\n"));
        assert_eq!(with_table(&full, "").unwrap(), empty);
        assert_eq!(with_table("nothing", ""), None);
    }
}
