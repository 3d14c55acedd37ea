//! The delay of each way of a path over time.

use plumb_model::run::Run;

use super::lines::{self, Line, Scale, Subject};
use crate::view;

/// A chart for each measurement of both ways that has values over time.
pub(crate) fn render(run: &Run) -> Vec<String> {
    let charts = view::owds(run).filter_map(|(measurement, owd)| {
        let line = |name, colour, series| {
            let values = measurement.series.get(series)?;
            Some(Line {
                name,
                colour,
                values,
            })
        };
        let both = [
            line("there", "up", "delay_up"),
            line("back", "down", "delay_down"),
        ];
        let known_to = owd.clocks.uncertainty_s.map_or_else(String::new, |within| {
            format!(
                ", each line as a whole known to ±{}",
                crate::number::seconds(within)
            )
        });
        let subject = Subject {
            title: &format!("seconds; one-way delay in ms{known_to}"),
            description: "Delay of each way over time; lost packets break the lines",
            scale: Scale::Even,
        };
        let lines: Vec<Line<'_>> = both.into_iter().flatten().collect();
        lines::render(&subject, &lines)
    });
    charts.collect()
}
