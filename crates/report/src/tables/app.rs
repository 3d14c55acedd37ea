//! How applications fared.

use plumb_model::results::app::{AppResult, Goal};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::{self, ABSENT};
use crate::view::{self, Phase};

/// Each application in each phase, and whether it had what it needs.
pub(super) fn table(run: &Run) -> Table {
    let mut table = Table::new(
        "Applications",
        &[
            ("", Text),
            ("phase", Text),
            ("way", Text),
            ("loss", Number),
            ("delay p95", Number),
            ("variation", Number),
            ("R", Number),
            ("MOS", Number),
            ("begins", Number),
            ("stalls", Number),
            ("stalled", Number),
            ("good", Text),
        ],
    );
    let or_absent = |value: Option<String>| value.unwrap_or_else(|| ABSENT.to_owned());
    for (measurement, app) in view::applications(run) {
        let voice = app.voice.as_ref();
        let playback = app.playback.as_ref();
        let of_packets = |value: Option<String>| match playback {
            Some(_) => String::new(),
            None => or_absent(value),
        };
        table.row([
            app.profile.clone(),
            Phase::of(measurement).title().to_owned(),
            app.direction.name().to_owned(),
            of_packets(app.loss_ratio.map(number::percent)),
            of_packets(app.one_way_delay_s.map(|d| number::seconds(d.p95))),
            of_packets(app.delay_variation_s.map(|d| number::seconds(d.p95))),
            voice.map_or_else(String::new, |voice| format!("{:.0}", voice.r)),
            voice.map_or_else(String::new, |voice| format!("{:.2}", voice.mos)),
            playback.map_or_else(String::new, |p| {
                p.startup_s
                    .map_or_else(|| "never".to_owned(), number::seconds)
            }),
            playback.map_or_else(String::new, |p| p.stalls.to_string()),
            playback.map_or_else(String::new, |p| number::percent(p.stalled_ratio)),
            verdict(app),
        ]);
    }
    let uncertain = view::applications(run)
        .filter_map(|(_, app)| app.one_way_delay_uncertainty_s)
        .reduce(f64::max);
    table.note = uncertain.map(|uncertain| {
        format!(
            "Delay is one way, known to within {}; variation is its 95th percentile above the smallest. R and MOS are the E-model's (ITU-T G.107) for G.711 with concealment.",
            number::seconds(uncertain)
        )
    });
    table
}

/// `yes`, or what was missing.
fn verdict(app: &AppResult) -> String {
    let missed = |goal: &&Goal| goal.met == Some(false);
    match app.good {
        Some(true) => "yes".to_owned(),
        Some(false) => {
            let what: Vec<_> = app.goals.iter().filter(missed).map(limit).collect();
            format!("no: {}", what.join(", "))
        }
        None => "uncertain".to_owned(),
    }
}

/// What a goal asks for.
fn limit(goal: &Goal) -> String {
    let name = goal.field.split('.').next().unwrap_or_default();
    let name = name
        .trim_end_matches("_ratio")
        .trim_end_matches("_s")
        .replace('_', " ");
    let than = if goal.at_least { "≥" } else { "≤" };
    format!(
        "{name} {than} {}",
        number::threshold(&goal.field, goal.limit)
    )
}
