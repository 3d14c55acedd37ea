//! Several hosts: the same check of each, one after the other, and what is near, in an operator's network, or far.

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_model::finding::Severity;
use plumb_model::run::Run;
use plumb_report::places::places;
use plumb_report::text;

use super::kept::Kept;
use crate::exit::{Ends, FOUND, stop_flag};
use crate::output::{message, print_page, say, style};
use crate::usage::{UsageError, wrong};

/// Checks each host, saves the Runs where a directory is given, and shows what all come to.
pub(super) fn run(
    hosts: &[String],
    folder: Option<&Path>,
    fail_on: Option<Severity>,
    mut check: impl FnMut(&str, &Arc<AtomicBool>) -> anyhow::Result<Run>,
) -> anyhow::Result<ExitCode> {
    for (number, host) in hosts.iter().enumerate() {
        if hosts.iter().skip(number + 1).any(|other| other == host) {
            return Err(wrong(format!(
                "{host} is named twice: name each host once (--repeat checks one host again and again)"
            )));
        }
    }
    let (kept, left_out) = each(hosts, folder, &mut check)?;
    show(kept, &left_out, fail_on)
}

/// Hosts towards which nothing was measured, and why.
pub(super) type LeftOut<'a> = Vec<(&'a str, String)>;

/// Checks each host, and saves the Runs where a directory is given.
pub(super) fn each<'a>(
    hosts: &'a [String],
    folder: Option<&Path>,
    mut check: impl FnMut(&str, &Arc<AtomicBool>) -> anyhow::Result<Run>,
) -> anyhow::Result<(Kept, LeftOut<'a>)> {
    let mut kept = Kept::begin(folder, stem)?;
    let stop = stop_flag(Ends::ByItself)?;
    let mut left_out: LeftOut<'_> = Vec::new();
    for (number, host) in hosts.iter().enumerate() {
        if stop.load(Ordering::Relaxed) {
            left_out.push((host, "the check was stopped before it".to_owned()));
            continue;
        }
        say(format_args!(
            "host {} of {}: {host}",
            number + 1,
            hosts.len()
        ));
        match check(host, &stop) {
            Ok(run) => kept.keep(run),
            // What was asked for cannot be, whatever the host.
            Err(why) if number == 0 && why.is::<UsageError>() => return Err(why),
            Err(why) => {
                let why = message(&why);
                say(format_args!("nothing was measured towards {host}: {why}"));
                left_out.push((host, why));
            }
        }
    }
    Ok((kept, left_out))
}

/// The beginning of a file's name: the host's name, as far as file systems and shells take it.
fn stem(run: &Run) -> String {
    let name = run.target.as_ref().map_or("host", |target| &target.name);
    let plain = |c: char| match c.is_ascii_alphanumeric() || c == '.' {
        true => c,
        false => '-',
    };
    let name: String = name.chars().take(64).map(plain).collect();
    match name.starts_with(['.', '-']) {
        true => format!("host{name}"),
        false => name,
    }
}

fn show(
    mut kept: Kept,
    left_out: &[(&str, String)],
    fail_on: Option<Severity>,
) -> anyhow::Result<ExitCode> {
    let unsaved = kept.save_rest();
    anyhow::ensure!(
        !kept.runs.is_empty(),
        "nothing was measured towards any host"
    );
    let mut places = places(&kept.runs);
    for (host, why) in left_out {
        places.leave_out(host, why);
    }
    print_page(&text::render_places(&places, &style()))?;
    unsaved?;
    status(&kept.runs, left_out, fail_on, places.worst)
}

/// The exit status, where the worst that was found decides it, and these Runs have to have measured all.
pub(super) fn status(
    judged: &[Run],
    left_out: &[(&str, String)],
    fail_on: Option<Severity>,
    worst: Option<Severity>,
) -> anyhow::Result<ExitCode> {
    if fail_on.is_some_and(|limit| worst >= Some(limit)) {
        return Ok(ExitCode::from(FOUND));
    }
    let is_judged = |run: &Run| {
        let verdict = run.verdict.as_ref();
        verdict.is_some_and(|verdict| verdict.not_measured.is_empty())
    };
    anyhow::ensure!(
        fail_on.is_none() || left_out.is_empty() && judged.iter().all(is_judged),
        "not everything that --fail-on judges was measured towards each host"
    );
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::fs;

    use super::*;

    fn check(host: &str) -> Run {
        let mut run = Run::from_json(include_str!("../../../model/fixtures/run-2.json")).unwrap();
        run.target.as_mut().unwrap().name = host.to_owned();
        run
    }

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_host_that_does_not_answer_does_not_stop_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let mut asked = Vec::new();
        let hosts = names(&["a", "silent", "b/../c"]);
        let one = |host: &str, _: &Arc<AtomicBool>| {
            asked.push(host.to_owned());
            anyhow::ensure!(host != "silent", "no answer");
            Ok(check(host))
        };
        run(&hosts, Some(folder.path()), None, one).unwrap();
        assert_eq!(asked, hosts);
        let files = fs::read_dir(folder.path()).unwrap();
        let mut files: Vec<String> = files
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files.len(), 2);
        assert!(
            files[0].starts_with("a-") && files[1].starts_with("b-..-c-"),
            "{files:?}"
        );
        let fails = run(&hosts, None, Some(Severity::Critical), |host, _| {
            anyhow::ensure!(host != "silent", "no answer");
            let mut run = check(host);
            run.findings.clear();
            Ok(run)
        });
        assert!(fails.is_err_and(|why| why.to_string().contains("towards each host")));
    }

    #[test]
    fn one_host_is_named_once_and_usage_errors_come_at_once() {
        let twice = run(&names(&["a", "b", "a"]), None, None, |host, _| {
            Ok(check(host))
        });
        assert!(twice.is_err_and(|why| why.is::<UsageError>() && why.to_string().contains("a is")));
        let mut count = 0;
        let wrong = run(&names(&["a", "b"]), None, None, |_, _| {
            count += 1;
            Err(wrong("these options contradict each other"))
        });
        assert!(wrong.is_err_and(|why| why.is::<UsageError>()));
        assert_eq!(count, 1);
        let nobody = run(&names(&["a", "b"]), None, None, |_, _| {
            anyhow::bail!("no answer")
        });
        assert!(nobody.is_err());
    }
}
