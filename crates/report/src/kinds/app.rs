//! How the traffic of applications fared.

use plumb_model::context::Phase;
use plumb_model::results::app::{AppResult, Goal};
use plumb_model::run::Run;

use crate::compare::quantity::{ChangeUnit, DELAY, Quantities, Quantity};
use crate::number;
use crate::phase::when;
use crate::registry::all;
use crate::show::{Place, Show, Tables};
use crate::table::{Cell, Table, blank};

impl Show for AppResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        tables.add(Place::Applications, [table(run)]);
    }

    /// Each application in one sentence.
    fn sentences(&self, run: &Run) -> Vec<String> {
        let mut profiles: Vec<&str> = Vec::new();
        for app in all::<Self>(run) {
            if !profiles.contains(&app.result.profile.as_str()) {
                profiles.push(&app.result.profile);
            }
        }
        profiles
            .into_iter()
            .map(|profile| sentence(run, profile))
            .collect()
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        let stalled = self.playback.as_ref().map(|p| p.stalled_ratio);
        Quantities::of(phase, self.profile.clone())
            .direction(self.direction)
            .number("loss_ratio", ChangeUnit::Ratio, self.loss_ratio)
            .time(DELAY, self.one_way_delay_s.as_ref())
            .number(
                "voice.mos",
                ChangeUnit::Mos,
                self.voice.as_ref().map(|v| v.mos),
            )
            .number("playback.stalled_ratio", ChangeUnit::Ratio, stalled)
            .found
    }
}

/// Under which loads an application had what it needs, and what it lacked under the others.
fn sentence(run: &Run, profile: &str) -> String {
    let found: Vec<_> = all::<AppResult>(run)
        .filter(|app| app.result.profile == profile)
        .collect();
    let lacking = found.iter().filter(|app| app.result.good != Some(true));
    let lacking: Vec<String> = lacking
        .map(|app| {
            format!(
                "{} {} ({})",
                app.result.direction.name(),
                when(app.phase),
                verdict(app.result).trim_start_matches("no: ")
            )
        })
        .collect();
    match (lacking.as_slice(), found.len()) {
        ([], _) => {
            format!("{profile}: it had what it needs, in each direction and under each load.")
        }
        (lacking, all) => format!(
            "{profile}: it had what it needs in {} of {all} cases, and lacked it {}.",
            all - lacking.len(),
            lacking.join(", ")
        ),
    }
}

/// Each application in each phase, and whether it had what it needs.
fn table(run: &Run) -> Table {
    // A player has no packets of its own to time.
    let of_packets = |app: &AppResult, value: Option<String>| match app.playback {
        Some(_) => String::new(),
        None => value.cell(),
    };
    let table = Table::of("Applications", all::<AppResult>(run))
        .text("", |app| app.result.profile.clone())
        .text("phase", |app| app.phase.shown())
        .text("direction", |app| app.result.direction.name())
        .num("loss", |app| {
            of_packets(app.result, app.result.loss_ratio.map(number::percent))
        })
        .num("delay p95", |app| {
            let delay = app.result.one_way_delay_s;
            of_packets(app.result, delay.map(|d| number::seconds(d.p95)))
        })
        .num("variation", |app| {
            let variation = app.result.delay_variation_s;
            of_packets(app.result, variation.map(|d| number::seconds(d.p95)))
        })
        .num("R", |app| {
            blank(app.result.voice.as_ref().map(|v| format!("{:.0}", v.r)))
        })
        .num("MOS", |app| {
            blank(app.result.voice.as_ref().map(|v| format!("{:.2}", v.mos)))
        })
        .num("begins", |app| {
            blank(app.result.playback.as_ref().map(|p| {
                p.startup_s
                    .map_or_else(|| "never".to_owned(), number::seconds)
            }))
        })
        .num("stalls", |app| {
            blank(app.result.playback.as_ref().map(|p| p.stalls.to_string()))
        })
        .num("stalled", |app| {
            let playback = app.result.playback.as_ref();
            blank(playback.map(|p| number::percent(p.stalled_ratio)))
        })
        .text("good", |app| verdict(app.result));
    let uncertain = all::<AppResult>(run)
        .filter_map(|app| app.result.one_way_delay_uncertainty_s)
        .reduce(f64::max);
    table.noting(uncertain.map(|uncertain| {
        format!(
            "Delay is one way, known to within {}; variation is its 95th percentile above the smallest. R and MOS are the E-model's (ITU-T G.107) for G.711 with concealment.",
            number::seconds(uncertain)
        )
    }))
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_application_has_a_sentence() {
        let text = include_str!("../../tests/it/runs/every-kind.json");
        let mut run = Run::from_json(text).unwrap();
        let found: Vec<_> = all::<AppResult>(&run)
            .map(|app| app.result.profile.clone())
            .collect();
        let profile = found.first().unwrap();
        let lacking = sentence(&run, profile);
        assert!(lacking.contains("in 0 of 1 cases"), "{lacking}");
        for measurement in &mut run.measurements {
            if let plumb_model::results::Outcome::App(app) = &mut measurement.outcome {
                app.good = Some(true);
            }
        }
        let fine = sentence(&run, profile);
        assert!(fine.ends_with("under each load."), "{fine}");
    }
}
