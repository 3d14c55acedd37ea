//! The route changed once or twice.

use plumb_model::finding::{Actor, Cause, Finding, Severity};
use plumb_model::need::Need;

use super::route_flapping::{self, FLAPS};
use crate::entry::{Entry, Family};
use crate::evidence::{Route, fact, of_route};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "no other change is seen as long as it is watched",
    needs: &[Need::RouteOverTime],
    resembles: &[(
        Cause::RouteFlapping,
        "three changes and more while it was watched",
    )],
    examine: |case| case.routes().filter_map(changed).collect(),
    ..Entry::PLAIN
};

fn changed(route: Route<'_>) -> Option<Finding> {
    let changes = route.result.changes.len() as f64;
    let since = route_flapping::since(route)?;
    if changes >= FLAPS {
        return None;
    }
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
