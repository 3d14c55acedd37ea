//! `plumb lab set|apply`: steering a laboratory, from inside or outside.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use plumb_lab::client::RunningLab;
use plumb_lab::control::{Answer, Request};
use plumb_model::finding::Action;

use crate::output::{print, read_run};
use crate::usage::wrong;

pub(super) fn set(lab: Option<&str>, cell: String, values: &[String]) -> anyhow::Result<ExitCode> {
    let mut settings = BTreeMap::new();
    for pair in values {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| wrong(format!("'{pair}' is not KEY=VALUE, such as rate=19mbit")))?;
        if let Some(other) = settings.insert(key.to_owned(), value.to_owned()) {
            return Err(wrong(format!(
                "{key} is given twice, as {other} and as {value}: leave one out"
            )));
        }
    }
    let request = Request::Set {
        cell,
        values: settings,
    };
    print_done(RunningLab::find(lab)?.ask(&request)?)
}

pub(super) fn apply(lab: Option<&str>, file: &Path) -> anyhow::Result<ExitCode> {
    let run = read_run(file)?;
    let shapers: Vec<_> = run
        .findings
        .iter()
        .flat_map(|finding| &finding.fixes)
        .filter_map(|fix| match &fix.action {
            Some(Action::Shaper(shaper)) => Some(shaper.clone()),
            _ => None,
        })
        .collect();
    if shapers.is_empty() {
        print(&format!(
            "Nothing in {} asks anything of the router.\n",
            file.display()
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    print_done(RunningLab::find(lab)?.ask(&Request::Shape { shapers })?)
}

fn print_done(answer: Answer) -> anyhow::Result<ExitCode> {
    if let Answer::Done(lines) = answer {
        for line in lines {
            print(&format!("{line}\n"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
