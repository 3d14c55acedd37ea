//! Whether a path reaches what was asked for: a rate, a round trip under load, what is paid for.

use plumb_model::direction::OneDirection;
use plumb_model::finding::{Cause, Finding, Place, Severity};
use plumb_model::goal::Expected;
use plumb_model::results::Direction;
use plumb_model::run::{Measurement, Run};
use plumb_model::units::{human_seconds, si};

use crate::Case;

/// TCP's payload is 94.9 % of what a line carries (1448 of 1526 bytes with Ethernet's framing), and TCP leaves a reserve.
const OF_LINE_RATIO: f64 = 0.9;

/// Something that was asked for, and what was measured of it.
pub(crate) struct Judged<'a> {
    pub(crate) direction: Direction,
    pub(crate) wanted: Wanted,
    /// What it had to reach, or to stay below.
    pub(crate) limit: f64,
    pub(crate) reached: bool,
    pub(crate) measurement: &'a Measurement,
}

#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    Rate {
        bps: f64,
        wanted_bps: f64,
        expected: Expected,
    },
    RoundTrip {
        rtt_s: f64,
        wanted_s: f64,
    },
}

/// Everything that was asked for and measured.
pub(crate) fn judged<'a>(case: &Case<'a>) -> Vec<Judged<'a>> {
    let Some(asked) = case.asked else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for one in [OneDirection::Down, OneDirection::Up] {
        let direction = Direction::from(one);
        if let (Some((wanted_bps, expected)), Some(carried)) =
            (asked.expected_bps(one), case.full_load(direction))
        {
            let ratio = match expected {
                Expected::Asked => 1.0,
                Expected::Paid | Expected::Port => OF_LINE_RATIO,
            };
            let (bps, limit) = (carried.bps(), ratio * wanted_bps);
            all.push(Judged {
                direction,
                wanted: Wanted::Rate {
                    bps,
                    wanted_bps,
                    expected,
                },
                limit,
                reached: bps >= limit,
                measurement: carried.measurement,
            });
        }
    }
    if let Some(wanted_s) = asked.rtt_s {
        let loads = case.every_loaded().filter(|loaded| loaded.shows_queue());
        let worst = loads.max_by(|a, b| a.result.rtt_s.p95.total_cmp(&b.result.rtt_s.p95));
        all.extend(worst.map(|loaded| {
            let rtt_s = loaded.result.rtt_s.p95;
            Judged {
                direction: loaded.result.direction,
                wanted: Wanted::RoundTrip { rtt_s, wanted_s },
                limit: wanted_s,
                reached: rtt_s <= wanted_s,
                measurement: loaded.measurement,
            }
        }));
    }
    all
}

/// What was reached, a sentence each.
pub fn reached(run: &Run) -> Vec<String> {
    let case = Case::of(run);
    let reached = judged(&case).into_iter().filter(|judged| judged.reached);
    let sentence = |judged: Judged<'_>| match judged.wanted {
        Wanted::Rate {
            bps,
            wanted_bps,
            expected,
        } => format!(
            "Goal reached: {} {} of {} {}.",
            judged.direction.name(),
            si(bps, "bit/s"),
            si(wanted_bps, "bit/s"),
            expected.words()
        ),
        Wanted::RoundTrip { rtt_s, wanted_s } => format!(
            "Goal reached: round trips under load last {} at most (95 %), asked for {}.",
            human_seconds(rtt_s),
            human_seconds(wanted_s)
        ),
    };
    reached.map(sentence).collect()
}

/// Payload in the direction that carried more, in bit/s; 0 where nothing was loaded.
fn carried_bps(case: &Case<'_>) -> f64 {
    let loads = [Direction::Down, Direction::Up].into_iter();
    let loads = loads.filter_map(|direction| case.full_load(direction));
    loads.map(|load| load.bps()).fold(0.0, f64::max)
}

/// What of a declared cable between the two machines is not so, or not known. None where no cable was declared.
pub fn cable(run: &Run) -> Option<String> {
    let cable = run.asked.as_ref()?.cable?;
    let case = Case::of(run);
    let reached = case.routes().find(|route| route.result.reached);
    let routers = reached.map(|route| route.result.hops.len().saturating_sub(1));
    Some(match (routers, cable.port_bps) {
        (Some(routers @ 1..), _) => {
            let s = if routers == 1 { "" } else { "s" };
            format!("No cable alone joins these machines: the path has {routers} router{s}.")
        }
        (_, None) => {
            "The driver does not report the speed of the port: give it (--back-to-back=10Gbit/s)."
                .to_owned()
        }
        (_, Some(port_bps)) if carried_bps(&case) > port_bps => format!(
            "{} passed, which is more than the {} of the port: its rate is another, or the packets did not take it.",
            si(carried_bps(&case), "bit/s"),
            si(port_bps, "bit/s")
        ),
        (_, Some(port_bps)) => format!(
            "Back to back: {} are expected of both ports; what is missing is of the machines or the cable.",
            si(port_bps, "bit/s")
        ),
    })
}

/// Says in the fix of each goal that is missed what explains it: the worst other finding in its place.
pub(crate) fn explain(findings: &mut [Finding]) {
    let explains = |missed: &Finding, other: &&Finding| {
        let here = [missed.place, Place::Path, Place::ThisHost, Place::FarHost];
        ![Cause::GoalMissed, Cause::Unexplained].contains(&other.cause)
            && other.severity > Severity::Info
            && here.contains(&other.place)
    };
    let reasons: Vec<Option<Cause>> = findings
        .iter()
        .map(|missed| {
            let other = findings.iter().find(|other| explains(missed, other));
            other.map(|other| other.cause)
        })
        .collect();
    for (finding, reason) in findings.iter_mut().zip(reasons) {
        let fix = finding.fixes.first_mut();
        if let (Cause::GoalMissed, Some(fix)) = (finding.cause, fix) {
            fix.summary = match reason {
                Some(cause) => format!("What explains it is {cause}: fix that."),
                None => format!("No cause was found that explains it. {}", fix.summary),
            };
        }
    }
}
