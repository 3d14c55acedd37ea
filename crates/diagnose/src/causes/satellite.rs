//! The path leads over a geostationary satellite.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::units::human_seconds;

use crate::entry::{Entry, Family, no_sign};
use crate::evidence::{Idle, fact};

/// Up and down, there and back: four times 35,786 km, at the speed of light in vacuum.
const ROUND_TRIP_S: f64 = 4.0 * 35_786e3 / 299_792_458.0;

/// Of the fastest and the usual round trip the difference is at most this share: a queue that others fill, and a slow
/// radio, vary more.
const STEADY_RATIO: f64 = 0.2;

/// Far networks with slow radios may be as long.
const CONFIDENCE: f64 = 0.8;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "another access line, or a satellite in a low orbit, has round trips of tens of milliseconds",
    resembles: &[(
        Cause::RouteDetour,
        "no detour on the ground is so long: half of the Earth and back takes 200 ms in fibre",
    )],
    yields_to: &[],
    examine: |case| case.idle().and_then(far).into_iter().collect(),
    explains: no_sign,
};

fn far(idle: Idle<'_>) -> Option<Finding> {
    let rtt = idle.result.rtt_s?;
    let is_far = rtt.min >= ROUND_TRIP_S && rtt.p50 <= (1.0 + STEADY_RATIO) * rtt.min;
    is_far.then(|| Finding {
        cause: Cause::Satellite,
        place: Place::Path,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The idle path takes {} there and back at least, which only a geostationary satellite does: calls suffer, and short transfers take many round trips.",
            human_seconds(rtt.min)
        ),
        evidence: vec![fact(
            idle.measurement,
            "rtt_s.min",
            rtt.min,
            "the fastest round trip of the idle path, against that of light over a geostationary satellite",
            ROUND_TRIP_S,
        )],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Use another access line where there is one. Where not: windows large enough for the path (`plumb tune plan`), few round trips (HTTP/2 or QUIC, connections that are kept), and a proxy that answers TCP before the satellite.",
            "Round trips of tens of milliseconds.",
        )],
        kb: "path".to_owned(),
    })
}
