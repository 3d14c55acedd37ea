//! The latest round trips as one line of characters.

use std::time::Duration;

use plumb_model::units::human_seconds;

use crate::sparkline::Sparkline;

/// The latest round trips, a character each.
#[derive(Debug)]
pub(crate) struct Chart(Sparkline);

impl Chart {
    /// A chart of at most so many round trips.
    pub(crate) fn new(width: usize) -> Self {
        Self(Sparkline::new(width))
    }

    /// Adds a round trip, or a loss.
    pub(crate) fn push(&mut self, rtt: Option<Duration>) {
        self.0.push(rtt.map(|rtt| rtt.as_secs_f64()));
    }

    /// The line, with the round trips that its lowest and highest characters mean.
    pub(crate) fn line(&self) -> String {
        let line = self.0.line();
        let range = self.0.range();
        range.map_or(line.clone(), |(shortest, longest)| {
            format!(
                "{line}  {}–{}",
                human_seconds(shortest),
                human_seconds(longest)
            )
        })
    }
}
