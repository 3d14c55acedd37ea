//! A transfer carries exactly what a common speed of network ports carries.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, si};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::fact;
use crate::signs::{full_port_bps, port_carries_bps};

/// A shaper may be set to the same rate.
const CONFIDENCE: f64 = 0.7;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "with a faster port or cable in its place the transfer carries more",
    needs: &[Need::Upload, Need::Download],
    resembles: &[(
        Cause::LinkSlow,
        "there the slow port is this machine's own, and its driver says so",
    )],
    yields_to: &[Cause::LinkSlow],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        directions.filter_map(|d| examine(case, d)).collect()
    },
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction);
    let carried = facts.known(
        "a load as long as a rate takes to become steady",
        case.full_load(direction),
    )?;
    let speed = full_port_bps(carried);
    facts.is(
        "the rate is all the time what a port of a common speed carries",
        speed.is_some(),
    );
    let speed = speed?;
    let place = Place::line(direction);
    Some(Finding {
        cause: Cause::PortSpeed,
        place,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{}loads carry {}, which is all that an Ethernet port of {} carries: a plan of that rate is fulfilled, and with a faster one a port or cable on the path is the limit.",
            capital(direction.name()),
            si(carried.bps(), "bit/s"),
            si(speed, "bit/s"),
        ),
        evidence: vec![fact(
            carried.measurement,
            "steady_bps",
            carried.bps(),
            "steady rate, against what TCP carries over such a port; they are within 1.5 %",
            port_carries_bps(carried, speed),
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            format!(
                "Where the plan is faster, look at the speed of each port on the path (`plumb host`, the router's and the switch's page): {}.",
                match speed < 1e9 {
                    true => "a cable of four wires and an old switch make 100 Mbit/s of 1 Gbit/s",
                    false => "each of them, from the modem to this host, has to be a faster one",
                }
            ),
            "The transfer carries more than this.",
        )],
        kb: "throughput".to_owned(),
    })
}
