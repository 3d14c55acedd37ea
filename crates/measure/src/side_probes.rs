//! What the probes beside the main stream saw of a phase: each class of traffic, and each place on
//! the way.

use std::collections::BTreeMap;

use plumb_model::dscp::Class;
use plumb_model::results::{ClassLatency, PathQueueing, PlaceLatency};
use plumb_probe::ProbeLog;

use crate::near_hops::{self, Place};
use crate::probes::{ProbeLogs, Window, result, window_series};

/// The probes beside the main stream, idle and under load.
pub(crate) struct Beside<'a> {
    pub(crate) logs: &'a ProbeLogs,
    pub(crate) idle_window: Window,
    /// Under load, its beginning left out.
    pub(crate) loaded_window: Window,
}

impl Beside<'_> {
    /// The round trips of a class.
    pub(crate) fn class(&self, class: Class) -> ClassLatency {
        let log = self.logs.class(class);
        let idle_rtt_s = log.and_then(|log| result(log, self.idle_window).rtt_s);
        let loaded = log.map(|log| result(log, self.loaded_window));
        let rtt_s = loaded.as_ref().and_then(|loaded| loaded.rtt_s);
        ClassLatency {
            dscp: class.dscp,
            down_bps: None,
            up_bps: None,
            idle_rtt_s,
            rtt_s,
            increase_s: rtt_s.zip(idle_rtt_s).map(|(rtt, idle)| rtt.above(idle.p50)),
            loss_ratio: loaded.and_then(|loaded| loaded.loss_ratio),
        }
    }

    /// Which part of the path delayed packets.
    pub(crate) fn path(&self, far_idle_s: f64) -> Option<PathQueueing> {
        let trips = |log| -> Vec<_> { window_series(log, self.loaded_window).points().collect() };
        let (_, nearest) = self.logs.places().first()?;
        let far = self.logs.streams().next()?;
        let of = |(place, log): &(Place, ProbeLog)| {
            let loaded = result(log, self.loaded_window);
            let idle_rtt_s = result(log, self.idle_window).rtt_s?;
            let rtt_s = loaded.rtt_s?;
            Some(PlaceLatency {
                place: place.place,
                address: place.address.to_string(),
                method: place.method,
                idle_rtt_s,
                rtt_s,
                increase_s: rtt_s.above(idle_rtt_s.p50),
                loss_ratio: loaded.loss_ratio?,
            })
        };
        let places = self.logs.places().iter().filter_map(of).collect();
        near_hops::queueing(places, &trips(far), far_idle_s, &trips(nearest))
    }
}

/// Share of its probes from which on a class that does not lose them when idle is starved: what a queue
/// that drops for everybody, or a bad radio, takes is far less.
const STARVED_RATIO: f64 = 0.9;

/// Says which classes the load leaves (nearly) nothing.
pub(crate) fn starved(classes: &BTreeMap<String, ClassLatency>, phase: &str) -> Vec<String> {
    let is_starved = |class: &ClassLatency| {
        class.idle_rtt_s.is_some() && class.loss_ratio.is_some_and(|lost| lost >= STARVED_RATIO)
    };
    classes
        .iter()
        .filter(|(_, class)| is_starved(class))
        .map(|(name, class)| {
            let lost = match class.rtt_s {
                None => "No probe".to_owned(),
                Some(rtt) => format!("Of the probes only {}", rtt.count),
            };
            format!(
                "{lost} of the class {name} came back during the phase '{phase}', and when idle they did: either the load starves it, or the network drops its DSCP. The grade describes best effort."
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use plumb_model::distribution::Distribution;

    fn class(idle: bool, answered: &[f64], lost: f64) -> ClassLatency {
        ClassLatency {
            dscp: 8,
            down_bps: None,
            up_bps: None,
            idle_rtt_s: idle.then(|| Distribution::of([0.02]).unwrap()),
            rtt_s: Distribution::of(answered.iter().copied()),
            increase_s: None,
            loss_ratio: Some(lost),
        }
    }

    #[test]
    fn a_class_that_gets_nothing_is_told_and_one_that_loses_some_is_not() {
        let classes = BTreeMap::from([
            ("BK".to_owned(), class(true, &[], 1.0)),
            ("BE".to_owned(), class(true, &[0.1, 0.2], 0.5)),
            ("CS5".to_owned(), class(true, &[4.0], 0.98)),
            // It did not come back before the load either.
            ("EF".to_owned(), class(false, &[], 1.0)),
        ]);
        let notes = starved(&classes, "both");
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(notes[0].starts_with("No probe of the class BK") && notes[0].contains("'both'"));
        assert!(
            notes[1].starts_with("Of the probes only 1 of the class CS5"),
            "{notes:?}"
        );
    }
}
