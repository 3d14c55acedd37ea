//! The far end is far away: the shortest round trip is long, and steady.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Idle, fact};
use crate::facts::{count, seconds};
use crate::signs::Kind;

/// In seconds: light in fibre goes 7,500 km there and back in it (5 µs a kilometre), which is another continent. Voice
/// over it is at the delay up to which calls are unspoiled: 150 ms one way with 75 ms of network (G.114).
const FAR_S: f64 = 0.075;

/// What light in fibre takes for a metre, in seconds (a refractive index of 1.5).
const FIBRE_S_PER_M: f64 = 5e-9;

/// Of the fastest and the usual round trip the difference is at most this share: a queue or a radio varies more.
const STEADY_RATIO: f64 = 0.2;

/// The fastest of so many round trips waited for nothing but the path.
const ENOUGH_ROUND_TRIPS: u64 = 10;

/// A slow access line, a detour or a tunnel is as steady.
const CONFIDENCE: f64 = 0.7;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "a far end on this continent answers in a part of the time",
    needs: &[Need::Idle],
    resembles: &[
        (
            Cause::BufferbloatDown,
            "a queue comes and goes with the load; distance is there when nothing loads the path",
        ),
        (
            Cause::RouteDetour,
            "there the places of the hops lie far from the direct path",
        ),
    ],
    yields_to: &[Cause::Satellite, Cause::RouteDetour],
    is_of_distance: true,
    examine: |case| {
        case.idle()
            .and_then(|idle| far(case, idle))
            .into_iter()
            .collect()
    },
    // Over long round trips TCP takes longer than a phase to fill a line again after a loss (RFC 9438, section 4.2).
    explains: |_, sign| sign.kind == Kind::Shortfall,
    ..Entry::PLAIN
};

fn far(case: &Case<'_>, idle: Idle<'_>) -> Option<Finding> {
    let facts = case.facts(None);
    let rtt = facts.known("round trips of the idle path", idle.result.rtt_s)?;
    let is_far = facts.at_least(
        "round trips while idle",
        count(rtt.count),
        ENOUGH_ROUND_TRIPS as f64,
    ) && facts.at_least("fastest round trip while idle", seconds(rtt.min), FAR_S)
        && facts.at_most(
            "median of them",
            seconds(rtt.p50),
            (1.0 + STEADY_RATIO) * case.empty_s()?,
        );
    let at_most_km = rtt.min / (2.0 * FIBRE_S_PER_M) / 1000.0;
    let distances = case
        .routes()
        .filter_map(|route| route.result.distance.as_ref());
    let known = distances.map(|distance| distance.direct_m).last();
    let floor = match known {
        Some(direct_m) => format!(
            "light in fibre takes {} of it for the {:.0} km between both ends",
            human_seconds(2.0 * direct_m * FIBRE_S_PER_M),
            direct_m / 1000.0
        ),
        None => format!("as over {at_most_km:.0} km of fibre, if nothing but distance makes it"),
    };
    is_far.then(|| Finding {
        cause: Cause::Distance,
        place: Place::Path,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The far end is far away: a round trip of the idle path takes {} at least, and hardly varies ({floor}). Everything that asks and waits takes a multiple of it.",
            human_seconds(rtt.min)
        ),
        evidence: vec![fact(
            idle.measurement,
            "rtt_s.min",
            rtt.min,
            "fastest round trip of the idle path, against one to another continent",
            FAR_S,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "No setting shortens it: use a far end that is nearer (another site, a cache, an edge), windows that fit (`plumb tune plan`), and fewer round trips (connections that are kept, HTTP/2, QUIC, many requests at once).",
            "Fewer round trips for the same work.",
        )],
        kb: "path".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found_in, idle};
    use plumb_model::protocol::Protocol;

    #[test]
    fn far_is_long_and_steady() {
        let found = |rtt_s| found_in(CAUSE.examine, &[idle(Protocol::Udp, 250, 250, rtt_s)]).len();
        assert_eq!([0.02, 0.074, 0.076, 0.3].map(found), [0, 0, 1, 1]);
    }
}
