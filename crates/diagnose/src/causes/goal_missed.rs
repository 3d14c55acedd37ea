//! The path does not reach the rate or the round trip that was asked for, or paid for.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::goal::Expected;
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{human_seconds, si};

use crate::Case;
use crate::entry::{Entry, Family, Rank};
use crate::evidence::fact;
use crate::goals::{self, Wanted};
use crate::signs::percent;

/// Both numbers were measured, and one was given.
const CONFIDENCE: f64 = 0.95;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Other,
    rank: Rank::Last,
    vanishes: "a path that reaches it is measured: another line, another time, or after the fix of what explains it",
    needs: &[Need::Upload, Need::Download],
    examine,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Vec<Finding> {
    let missed = goals::judged(case)
        .into_iter()
        .filter(|judged| !judged.reached);
    missed
        .map(|judged| {
            let (doing, place) = match judged.direction {
                Direction::Up => ("Uploads", Place::Uplink),
                Direction::Down => ("Downloads", Place::Downlink),
                Direction::Both => ("Both directions at once", Place::Path),
            };
            let (field, value, wanted, rule, summary) = match judged.wanted {
                Wanted::Rate { bps, wanted_bps, expected } => {
                    let (rate, all) = (si(bps, "bit/s"), si(wanted_bps, "bit/s"));
                    let share = percent(bps / wanted_bps);
                    let rule = match expected {
                        Expected::Paid => "rate, against 90 % of the one paid for: headers take 5 %, and TCP a reserve",
                        Expected::Port => "rate, against 90 % of the port's: headers take 5 %, and TCP a reserve",
                        Expected::Asked => "rate, against the one asked for",
                    };
                    let of = match expected {
                        Expected::Port => "that the ports of the cable carry".to_owned(),
                        other => format!("that are {}", other.words()),
                    };
                    (
                        "steady_bps",
                        bps,
                        judged.limit,
                        rule,
                        format!("{doing} carry {rate} of {all} {of}, {share}."),
                    )
                }
                Wanted::RoundTrip { rtt_s, wanted_s } => (
                    "rtt_s.p95",
                    rtt_s,
                    judged.limit,
                    "95th percentile of the round trips under load, against the one asked for",
                    format!(
                        "{doing} make round trips last {}, where {} were asked for.",
                        human_seconds(rtt_s),
                        human_seconds(wanted_s)
                    ),
                ),
            };
            Finding {
                cause: Cause::GoalMissed,
                place,
                severity: Severity::Warning,
                confidence: CONFIDENCE,
                matters_for: Vec::new(),
                summary,
                evidence: vec![fact(judged.measurement, field, value, rule, wanted)],
                fixes: vec![fix(&judged.wanted)],
                kb: "verdict".to_owned(),
            }
        })
        .collect()
}

/// Two machines on one cable have no provider.
fn fix(wanted: &Wanted) -> Fix {
    match wanted {
        Wanted::Rate {
            expected: Expected::Port,
            ..
        } => Fix::advice(
            Actor::ThisHost,
            "Audit both machines (`plumb host`), then try another cable and another pair of ports.",
            "What the ports carry.",
        ),
        _ => Fix::advice(
            Actor::Provider,
            "Check with a cable in place of Wi-Fi, and at another time of the day; then show the provider both.",
            "The rate that was asked for.",
        ),
    }
}
