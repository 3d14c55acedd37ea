//! What fixes did to the twin of a path.

use plumb_diagnose::rehearsed::{change, value};
use plumb_model::results::rehearsal::{PathFigure, PathFigures, RehearsalResult};
use plumb_model::run::Run;

use crate::registry::results;
use crate::show::{Place, Show, Tables};
use crate::table::{Table, blank};

/// Figures that every rehearsal has.
const FIGURES: [PathFigure; 6] = [
    PathFigure::UpRate,
    PathFigure::DownRate,
    PathFigure::IdleRtt,
    PathFigure::UpLoadedRtt,
    PathFigure::DownLoadedRtt,
    PathFigure::NeighbourRtt,
];

impl Show for RehearsalResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let mut rows: Vec<(String, String, PathFigures, String)> = Vec::new();
        for result in results::<Self>(run) {
            if result.fixes.is_empty() {
                rows.push((
                    String::new(),
                    "the path that was measured".to_owned(),
                    result.before,
                    String::new(),
                ));
            }
            let harms: Vec<String> = result.harms.iter().map(change).collect();
            let came = match (&result.why_not, harms.as_slice()) {
                (Some(why), _) => format!("not rehearsed: {why}"),
                (None, []) => String::new(),
                (None, harms) => format!("harms {}", harms.join(", ")),
            };
            rows.push((
                blank(result.rank.map(|rank| rank.to_string())),
                name(result),
                result.after.unwrap_or_default(),
                came,
            ));
        }
        let mut table = Table::of("Rehearsed in the twin of the path", rows)
            .num("rank", |row| row.0.clone())
            .text("", |row| row.1.clone());
        for figure in FIGURES {
            table = table.num(short(figure), move |row| {
                blank(row.2.of(figure).map(|of| value(figure, of)))
            });
        }
        let table = table.text("", |row| row.3.clone());
        let note = "Round trips under load are 95th percentiles; \"other host\" is another machine at the same router meanwhile.";
        tables.add(Place::Tuning, [table.noted(note)]);
    }
}

fn short(figure: PathFigure) -> &'static str {
    match figure {
        PathFigure::UpRate => "up",
        PathFigure::DownRate => "down",
        PathFigure::IdleRtt => "idle",
        PathFigure::UpLoadedRtt => "under upload",
        PathFigure::DownLoadedRtt => "under download",
        PathFigure::NeighbourRtt => "other host",
    }
}

/// What was tried, in a few words.
fn name(result: &RehearsalResult) -> String {
    match result.fixes.as_slice() {
        [] => "its twin".to_owned(),
        [fix] => format!("{} ({})", fix.cause.name(), fix.on.name()),
        fixes => format!("{} shapers together", fixes.len()),
    }
}
