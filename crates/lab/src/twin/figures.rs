//! The figures of a path by which a twin is compared with its original, and a fix with none.

use plumb_model::direction::OneDirection;
use plumb_model::results::rehearsal::PathFigures;
use plumb_model::run::Run;

use super::made::TwinError;
use super::measured::{Directed, Measured, directed, idle};

/// The figures that a Run measured of a path, as far as it did.
pub fn figures(run: &Run) -> PathFigures {
    let [up, down] = [OneDirection::Up, OneDirection::Down].map(|one| directed(run, one));
    let loaded =
        |directed: &Option<Directed<'_>>| directed.as_ref()?.loaded.map(|loaded| loaded.rtt_s.p95);
    let bps =
        |directed: &Option<Directed<'_>>| directed.as_ref().map(|directed| directed.payload_bps);
    PathFigures {
        idle_rtt_s: idle(run).map(|idle| idle.rtt_s.p50),
        up_bps: bps(&up),
        down_bps: bps(&down),
        up_loaded_rtt_s: loaded(&up),
        down_loaded_rtt_s: loaded(&down),
        neighbour_rtt_s: None,
    }
}

/// The 95th percentile of the round trips of a Run of pings, in seconds.
pub fn pinged_s(run: &Run) -> Option<f64> {
    let mut all = run.measurements.iter().filter_map(|m| m.outcome.ping());
    let p95 = all.find_map(|ping| ping.rtt_s)?.p95;
    p95.is_finite().then_some(p95)
}

/// How a Run loaded the path, so that its twin is loaded alike.
#[derive(Debug, Clone, PartialEq)]
pub struct Loads {
    /// How long each direction was loaded alone, in seconds.
    pub duration_s: f64,
    pub streams: u64,
    /// The congestion control of its streams.
    pub cc: String,
}

/// How the Run loaded the path.
///
/// # Errors
/// When it measured too little for a twin, or what no lab has.
pub fn loads(run: &Run) -> Result<Loads, TwinError> {
    let measured = Measured::of(run)?;
    Ok(Loads {
        duration_s: measured.up.duration_s.min(measured.down.duration_s),
        streams: measured.up.streams,
        cc: measured.up.cc.to_owned(),
    })
}
