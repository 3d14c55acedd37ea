//! What tuned settings did to the rate.

use plumb_model::results::Outcome;
use plumb_model::run::Run;
use plumb_model::units::si;

use super::Kind::{Number, Text};
use super::Table;
use crate::number;

pub(super) fn table(run: &Run) -> Table {
    let mut table = Table::new(
        "Settings, with and without by turns",
        &[
            ("", Text),
            ("", Text),
            ("without", Number),
            ("with", Number),
            ("gain", Number),
            ("noise", Number),
            ("runs", Number),
            ("", Text),
        ],
    );
    let results = run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Tune(result) => Some(result),
        _ => None,
    });
    for result in results {
        let rate = |rates: Option<plumb_model::distribution::Distribution>| {
            rates.map_or_else(String::new, |rates| si(rates.p50, "bit/s"))
        };
        table.row([
            result.part.clone(),
            result.direction.name().to_owned(),
            rate(result.without_bps),
            rate(result.with_bps),
            format!("{:+.1} %", result.effect_ratio * 100.0),
            result.noise_ratio.map_or_else(String::new, number::percent),
            format!("{} of {}", result.runs, result.most_runs),
            result.words(),
        ]);
    }
    table.note = Some(
        "Medians of the rates; the gain is of the pairs. Kept is what surely does not harm and may gain 5 %.".to_owned(),
    );
    table
}
