//! The route changed once or twice.

use plumb_model::finding::{Actor, Cause, Finding, Severity};
use plumb_model::need::Need;

use super::route_flapping::{self, FLAPS};
use crate::entry::{Entry, Family};
use crate::evidence::{Route, fact, of_route};
use crate::facts::{Recorder, count};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "no other change is seen as long as it is watched",
    needs: &[Need::RouteOverTime],
    resembles: &[(
        Cause::RouteFlapping,
        "three changes and more while it was watched",
    )],
    examine: |case| {
        let facts = case.facts(None);
        facts.known("the routers of the path", case.routes().next());
        case.routes()
            .filter_map(|route| changed(route, facts))
            .collect()
    },
    ..Entry::PLAIN
};

fn changed(route: Route<'_>, facts: Recorder<'_>) -> Option<Finding> {
    let changes = route.result.changes.len() as f64;
    let name = "changes of the route";
    if !facts.at_least(name, count(changes as u64), 1.0)
        || !facts.below(name, count(changes as u64), FLAPS)
    {
        return None;
    }
    let since = route_flapping::since(route)?;
    let times = match changes > 1.0 {
        true => "twice, first",
        false => "once,",
    };
    Some(of_route(
        Cause::RouteChanged,
        (Severity::Info, 0.95),
        format!(
            "The route to {} changed {times} {since}, while it was watched.",
            route.result.address
        ),
        fact(
            route.measurement,
            "changes.length",
            changes,
            "changes of the route",
            1.0,
        ),
        (
            Actor::Provider,
            "Watch for longer (--continuous): a single change is maintenance, or a line that failed.",
            "one route as long as it is watched",
        ),
    ))
}
