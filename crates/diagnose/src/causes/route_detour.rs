//! The route is much longer on the map than the direct way.

use plumb_model::finding::{Actor, Cause, Finding, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family, Harm};
use crate::evidence::{Route, fact, of_route};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    harms: Harm::Delay,
    vanishes: "a path by another provider, or without the tunnel, is nearer to the direct distance",
    needs: &[Need::Route, Need::Places],
    examine: |case| {
        let found = case.routes().filter_map(detour).collect();
        let measured = (
            "distances between the places of routers",
            case.routes().any(|route| route.result.distance.is_some()),
        );
        let statement = "the path is twice as long as the direct distance";
        case.facts(None).found(measured, statement, found)
    },
    ..Entry::PLAIN
};

fn detour(route: Route<'_>) -> Option<Finding> {
    let distance = route.result.distance.as_ref()?;
    let ttl = distance.detour_ttl?;
    let summary = format!(
        "The path to {} takes a detour by {}: {:.0} km along the known places for {:.0} km directly.",
        route.result.address,
        route.at(ttl),
        distance.along_path_m / 1000.0,
        distance.direct_m / 1000.0
    );
    Some(of_route(
        Cause::RouteDetour,
        (Severity::Info, 0.6),
        summary,
        fact(
            route.measurement,
            "distance.along_path_m",
            distance.along_path_m,
            "metres along the places of the hops, against twice the direct distance",
            2.0 * distance.direct_m,
        ),
        (
            Actor::Provider,
            "Check the places (databases are often wrong), then ask the networks on both sides of that hop where they exchange traffic.",
            "a path nearer to the direct distance",
        ),
    ))
}
