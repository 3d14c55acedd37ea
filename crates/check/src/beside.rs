//! What the probes beside the main stream saw of a phase: each class of traffic, and each place on
//! the way.

use plumb_model::dscp::Class;
use plumb_model::results::{ClassLatency, PathQueueing, PlaceLatency};
use plumb_probe::ProbeLog;

use crate::places::{self, Place};
use crate::probes::{ProbeLogs, Window, result, window_series};

/// The probes beside the main stream, idle and under load.
pub(crate) struct Beside<'a> {
    /// All probes.
    pub(crate) logs: &'a ProbeLogs,
    /// Before the load.
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
            loss_ratio: loaded.map(|loaded| loaded.loss_ratio),
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
                loss_ratio: loaded.loss_ratio,
            })
        };
        let places = self.logs.places().iter().filter_map(of).collect();
        places::queueing(places, &trips(far), far_idle_s, &trips(nearest))
    }
}
