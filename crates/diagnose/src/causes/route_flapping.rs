//! The route changes time and again.

use plumb_model::finding::{Actor, Cause, Finding, Severity};
use plumb_model::need::Need;
use plumb_model::units::human_seconds;

use crate::entry::{Entry, Family, Harm};
use crate::evidence::{Route, fact, of_route};
use crate::facts::{Recorder, count};

/// So many changes of the route in one measurement are flapping; fewer are maintenance.
pub(super) const FLAPS: f64 = 3.0;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    harms: Harm::Delivery,
    vanishes: "the route stays once the line or the router that comes and goes is taken out of it",
    needs: &[Need::RouteOverTime],
    resembles: &[(
        Cause::RouteChanged,
        "one change or two, and then the route stays",
    )],
    examine: |case| {
        let facts = case.facts(None);
        facts.known("the routers of the path", case.routes().next());
        case.routes()
            .filter_map(|route| flapping(route, facts))
            .collect()
    },
    ..Entry::PLAIN
};

/// When and where it changed first; `None` where it did not.
pub(super) fn since(route: Route<'_>) -> Option<String> {
    let first = route.result.changes.first()?;
    Some(format!(
        "at {}, from {} on",
        human_seconds(first.at_s),
        route.at(first.ttl)
    ))
}

fn flapping(route: Route<'_>, facts: Recorder<'_>) -> Option<Finding> {
    let changes = route.result.changes.len() as f64;
    if !facts.at_least("changes of the route", count(changes as u64), FLAPS) {
        return None;
    }
    let since = since(route)?;
    Some(of_route(
        Cause::RouteFlapping,
        (Severity::Warning, 0.95),
        format!(
            "The route to {} changed {changes} times while it was watched, first {since}.",
            route.result.address
        ),
        fact(
            route.measurement,
            "changes.length",
            changes,
            "changes of the route",
            FLAPS,
        ),
        (
            Actor::Provider,
            "Ask who runs the routers at and before that hop for the reason: a line that comes and goes, or routing that does not settle.",
            "one route as long as it is watched",
        ),
    ))
}
