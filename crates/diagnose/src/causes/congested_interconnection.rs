//! Others fill a queue behind the provider's first router: at an interconnection, or within a network further on.
//!
//! The access line is free: round trips to its other end are short, and those to the far end wait all the same, before any load
//! of ours. Nothing at home changes it, and a shaper on the router does not reach that queue.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::PlaceLatency;
use plumb_model::run::Measurement;
use plumb_model::units::human_seconds;

use super::cross_traffic;
use crate::Case;
use crate::entry::{Entry, Family, Harm};
use crate::evidence::{ENOUGH_OF_PLACE, Route, STANDS_S, fact};
use crate::facts::seconds;
use crate::long_queue::WARNING_S;
use crate::signs::{Kind, Sign};

/// Both round trips were watched at the same time; a router may answer for a line that it does not pass packets on by.
const CONFIDENCE: f64 = 0.85;

/// Answers of a hop in a trace, of which half were late.
const ENOUGH_OF_HOP: u64 = 3;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    harms: Harm::Delay,
    vanishes: "to a far end that is reached by another interconnection, or at another time of the day, round trips are short",
    needs: &[Need::Idle, Need::ProviderHop],
    resembles: &[
        (
            Cause::CrossTraffic,
            "there the provider's first router answers late, too, for the queue is before it",
        ),
        (
            Cause::RouteDetour,
            "a detour is as long at every time, and half of its round trips are not late",
        ),
    ],
    examine: |case| examine(case).into_iter().collect(),
    explains: |_, sign: &Sign| !matches!(sign.kind, Kind::Window | Kind::Stall),
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Option<Finding> {
    let others = (cross_traffic::CAUSE.examine)(&case.unrecorded())
        .into_iter()
        .next();
    let facts = case.facts(None);
    let idle = facts.known("probes of the idle path", case.idle())?;
    let empty_s = facts.known("round trips of the empty path", case.empty_s())?;
    let far = idle.result.rtt_s.filter(|rtt| {
        let name = "median of idle round trips above the empty path's";
        facts.at_least(name, seconds(rtt.p50 - empty_s), STANDS_S)
    })?;
    let hop = facts.known(
        "round trips to the provider's first router",
        case.provider_hop(),
    );
    let (measurement, index, hop) = hop?;
    let before_s = waited_s(hop);
    let name = "wait up to that router";
    if hop.idle_rtt_s.count < ENOUGH_OF_PLACE || !facts.below(name, seconds(before_s), STANDS_S) {
        return None;
    }
    let waits_s = far.p50 - empty_s;
    // A queue that never empties while the idle path is looked at shows by what was faster later.
    let stands = others.is_some() || waits_s >= WARNING_S && idle.is_smooth();
    if !facts.is("it is a queue, which rises and falls slowly", stands) {
        return None;
    }
    let begins = case.routes().find_map(first_that_waits);
    let where_ = begins.map_or_else(String::new, |at| format!(", at {at} or before it"));
    let mut evidence = vec![
        fact(
            idle.measurement,
            "rtt_s.p50",
            far.p50,
            "median of idle round trips to the far end, against the fastest and the delay that radio and cable add",
            empty_s + STANDS_S,
        ),
        free(measurement, index, hop),
    ];
    evidence.extend(others.into_iter().flat_map(|others| others.evidence));
    Some(Finding {
        cause: Cause::CongestedInterconnection,
        place: Place::Path,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Others fill a queue beyond the access line: packets wait {} behind the provider's first router ({}){where_} before any load of ours, and no more than {} up to it.",
            human_seconds(waits_s),
            hop.address,
            human_seconds(before_s),
        ),
        evidence,
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Check a far end in another network: where it is quick, the interconnection towards this one or its own line is full, and otherwise a line within the provider's network. Show the provider both with the time of day, or take a tunnel along another path. A shaper at home does not reach that queue.",
            format!("Idle round trips are {} shorter.", human_seconds(waits_s)),
        )],
        kb: "path".to_owned(),
    })
}

/// What nearly all of its round trips waited at most, in seconds.
fn waited_s(hop: &PlaceLatency) -> f64 {
    hop.idle_rtt_s.p95 - hop.idle_rtt_s.min
}

fn free(
    measurement: &Measurement,
    index: usize,
    hop: &PlaceLatency,
) -> plumb_model::finding::Evidence {
    fact(
        measurement,
        format_args!("path.places[{index}].idle_rtt_s.p95"),
        hop.idle_rtt_s.p95,
        "95 % of idle round trips to the provider's router, below its fastest and 20 ms",
        hop.idle_rtt_s.min + STANDS_S,
    )
}

/// The first hop of a trace half of whose answers waited, where those before it did not and all behind it did.
fn first_that_waits(route: Route<'_>) -> Option<String> {
    let hops = route.result.hops.iter();
    let known = hops.filter_map(|hop| {
        let rtt = hop.rtt_s.filter(|rtt| rtt.count >= ENOUGH_OF_HOP)?;
        Some((hop.ttl, rtt.p50 - rtt.min >= STANDS_S))
    });
    let known: Vec<(u8, bool)> = known.collect();
    let first = known.iter().position(|(_, waits)| *waits)?;
    let (ttl, _) = known.get(first)?;
    let all_behind = known.iter().skip(first).all(|(_, waits)| *waits);
    (first > 0 && all_behind).then(|| route.at(*ttl))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{beside_gateway, found_in, idle_spread};
    use plumb_model::results::{Outcome, PathPlace};
    use plumb_model::series::{Series, Unit};

    /// Causes found where round trips to the far end wait so long in a queue that others keep filled, and those to that place
    /// so long.
    fn found(far_s: f64, hop_s: f64, place: PathPlace) -> Vec<Cause> {
        let mut idle = idle_spread(0.02, 0.0);
        let mut series = Series::new(Unit::Seconds);
        // A queue that fills and empties within two seconds.
        let waits = |t: f64| 0.02 + far_s * (1.0 - (t % 2.0 - 1.0).abs());
        for probe in 0..250 {
            let t = f64::from(probe) * 0.02;
            series.push(t, Some(waits(t)));
        }
        if let Outcome::Ping(ping) = &mut idle.outcome {
            let all = series.points().map(|(_, rtt)| rtt);
            ping.rtt_s = plumb_model::distribution::Distribution::of(all);
        }
        idle.duration_s = 5.0;
        idle.series.insert("rtt".to_owned(), series);
        let mut beside = beside_gateway(0.01, hop_s);
        if let Outcome::LoadedLatency(loaded) = &mut beside.outcome {
            loaded.path.as_mut().unwrap().places[0].place = place;
        }
        let found = found_in(crate::rules::found, &[idle, beside]).into_iter();
        found.map(|finding| finding.cause).collect()
    }

    #[test]
    fn a_queue_behind_the_providers_first_router_is_not_that_of_the_line() {
        let beyond = PathPlace::FirstHopBeyond;
        assert_eq!(
            found(0.12, 0.003, beyond),
            [Cause::CongestedInterconnection]
        );
        assert_eq!(found(0.12, 0.1, beyond), [Cause::CrossTraffic]);
        let gateway = found(0.12, 0.003, PathPlace::Gateway);
        assert_eq!(gateway, [Cause::CrossTraffic], "the line is not known");
        assert_eq!(found(0.01, 0.003, beyond), []);
    }
}
