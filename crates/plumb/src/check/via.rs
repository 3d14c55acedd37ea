//! Hosts in the middle of one path: the same check of each and of the end, and in which segment a fault is.

use std::path::Path as Folder;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_model::finding::Severity;
use plumb_model::run::Run;
use plumb_report::{segments, text};

use super::several::{each, status};
use crate::output::{print_json, print_page, say, style};

/// What was asked for.
pub(super) struct Path<'a> {
    pub(super) middles: &'a [String],
    pub(super) end: &'a str,
    /// Whether the segments are printed as JSON.
    pub(super) json: bool,
}

impl Path<'_> {
    /// The hosts to check, the end last, and what is wrong with those that are left out.
    fn hosts(&self) -> (Vec<String>, Vec<String>) {
        let (mut hosts, mut notes): (Vec<String>, Vec<String>) = Default::default();
        for middle in self.middles {
            if middle == self.end {
                notes.push(format!(
                    "{middle} is the end of the path, and no middle of it: it is checked once."
                ));
            } else if hosts.contains(middle) {
                notes.push(format!(
                    "The middle {middle} was named twice: it is checked once."
                ));
            } else if middle.is_empty() {
                notes.push("A middle without a name was left out.".to_owned());
            } else {
                hosts.push(middle.clone());
            }
        }
        hosts.push(self.end.to_owned());
        (hosts, notes)
    }
}

/// Checks each middle and the end, saves the Runs where a directory is given, and shows in which segment what was found is.
pub(super) fn run(
    path: &Path<'_>,
    folder: Option<&Folder>,
    fail_on: Option<Severity>,
    check: impl FnMut(&str, &Arc<AtomicBool>) -> anyhow::Result<Run>,
) -> anyhow::Result<ExitCode> {
    let (hosts, notes) = path.hosts();
    notes.iter().for_each(say);
    let (mut kept, left_out) = each(&hosts, folder, check)?;
    let unsaved = kept.save_rest();
    anyhow::ensure!(
        !kept.runs.is_empty(),
        "nothing was measured towards any host"
    );
    let mut found = segments::of_runs(&kept.runs);
    found.notes.splice(0..0, notes);
    for (host, why) in &left_out {
        segments::leave_out(&mut found, host, why);
    }
    if left_out.iter().any(|(host, _)| *host == path.end) {
        found.notes.push(format!(
            "The path ends at the last host that was measured, and not at {}.",
            path.end
        ));
    }
    match path.json {
        true => print_json(&found)?,
        false => print_page(&text::render_segments(&found, &style()))?,
    }
    unsaved?;
    let worst = found.findings.iter().map(|finding| finding.severity).max();
    // A middle that only answers pings shows where; the end shows whether.
    let end = kept.runs.last().map(std::slice::from_ref);
    let end_left_out = left_out.into_iter().filter(|(host, _)| *host == path.end);
    let end_left_out: Vec<(&str, String)> = end_left_out.collect();
    status(end.unwrap_or_default(), &end_left_out, fail_on, worst)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_middle_is_checked_once_and_before_the_end() {
        let middles = ["m", "end", "m", "n", ""].map(str::to_owned);
        let path = Path {
            middles: &middles,
            end: "end",
            json: false,
        };
        let (hosts, notes) = path.hosts();
        assert_eq!(hosts, ["m", "n", "end"]);
        assert_eq!(notes.len(), 3);
        let mut asked = Vec::new();
        run(&path, None, None, |host, _| {
            asked.push(host.to_owned());
            anyhow::ensure!(host != "n", "no answer");
            let mut run =
                Run::from_json(include_str!("../../../model/fixtures/run-2.json")).unwrap();
            run.target.as_mut().unwrap().name = host.to_owned();
            Ok(run)
        })
        .unwrap();
        assert_eq!(asked, hosts);
        let nobody = run(&path, None, None, |_, _| anyhow::bail!("no answer"));
        assert!(nobody.is_err());
    }
}
