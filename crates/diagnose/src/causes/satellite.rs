//! The path leads over a geostationary satellite.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family, Harm, Often, Rank};
use crate::evidence::{Idle, fact};
use crate::facts::{count, seconds};
use crate::signs::Kind;

/// Up and down, there and back: four times 35,786 km, at the speed of light in vacuum.
const ROUND_TRIP_S: f64 = 4.0 * 35_786e3 / 299_792_458.0;

/// Of the fastest and the usual round trip the difference is at most this share: a queue that others fill, and a slow
/// radio, vary more.
const STEADY_RATIO: f64 = 0.2;

/// The fastest of so many round trips waited for nothing but the path.
const ENOUGH_ROUND_TRIPS: u64 = 10;

/// Far networks with slow radios may be as long.
const CONFIDENCE: f64 = 0.8;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    often: Often {
        home: -1.0,
        campus: -3.0,
        cloud: -3.0,
        mobile: -2.0,
    },
    harms: Harm::Delay,
    rank: Rank::First,
    vanishes: "another access line, or a satellite in a low orbit, has round trips of tens of milliseconds",
    needs: &[Need::Idle],
    resembles: &[(
        Cause::RouteDetour,
        "no detour on the ground is so long: half of the Earth and back takes 200 ms in fibre",
    )],
    is_of_distance: true,
    examine: |case| {
        let idle = case
            .facts(None)
            .known("probes of the idle path", case.idle());
        idle.and_then(|idle| far(case, idle)).into_iter().collect()
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
    ) && facts.at_least(
        "fastest round trip while idle",
        seconds(rtt.min),
        ROUND_TRIP_S,
    ) && facts.at_most(
        "median of them",
        seconds(rtt.p50),
        (1.0 + STEADY_RATIO) * rtt.min,
    );
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
            "fastest round trip of the idle path, against light's over a geostationary satellite",
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing;
    use plumb_model::context::{Context, Phase};
    use plumb_model::distribution::Distribution;
    use plumb_model::results::Outcome;
    use plumb_model::run::HostFacts;
    use serde_json::json;

    fn found(round_trips: usize) -> usize {
        let ping = json!({
            "protocol": "udp", "address": "192.0.2.1", "sent": round_trips, "received": round_trips,
            "loss_ratio": 0.0, "duplicates": 0, "reordered": 0, "send_errors": 0, "dropped_here": 0,
            "rtt_s": Distribution::of(vec![0.6; round_trips]), "lateness_s": null, "timestamps": "kernel",
        });
        let mut idle = testing::measurement(Outcome::Ping(serde_json::from_value(ping).unwrap()));
        idle.context = Context::phase(Phase::Idle);
        let case = crate::Case {
            measurements: &[idle],
            local: &HostFacts::default(),
            far: None,
            asked: None,
            log: None,
        };
        (CAUSE.examine)(&case).len()
    }

    #[test]
    fn one_slow_round_trip_is_no_satellite() {
        assert_eq!([1, 9, 10, 250].map(found), [0, 0, 1, 1]);
    }
}
