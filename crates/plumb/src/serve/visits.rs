//! Visits of browsers to the page: judged, shown, and kept where the operator wants that.

use std::path::{Path, PathBuf};

use plumb_measure::visit;
use plumb_model::run::Run;
use plumb_report::visited::visited;
use plumb_serve::Judge;
use serde_json::json;

use crate::save::save;
use crate::stderr::say;
use crate::target::command_line;

/// Judges visits, and keeps each Run in the folder, if there is one.
pub(super) fn judge(runs: Option<PathBuf>) -> Judge {
    Judge::new(move |visitor, visit, seen| {
        let run = visit::run(command_line(), visitor, visit, seen);
        if let Some(folder) = &runs {
            keep(folder, &run);
        }
        let shown = json!({ "run": run, "shown": visited(&run), "report": report(&run) });
        shown.to_string().into_bytes()
    })
}

fn keep(folder: &Path, run: &Run) {
    let file = folder.join(format!("{}.json", run.id));
    let kept = serde_json::to_string_pretty(run)
        .map_err(anyhow::Error::from)
        .and_then(|json| save(&file, json));
    if let Err(error) = kept {
        say(format_args!("the Run of a visit is not kept: {error:#}"));
    }
}

#[cfg(feature = "html")]
fn report(run: &Run) -> String {
    plumb_report::html::render(run)
}

/// A plumb for measuring alone has no pages: the text that `plumb report` prints.
#[cfg(not(feature = "html"))]
fn report(run: &Run) -> String {
    let text = plumb_report::text::render(run, &plumb_report::text::Style::default());
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;");
    format!("<!doctype html><meta charset=utf-8><pre>{escaped}</pre>")
}
