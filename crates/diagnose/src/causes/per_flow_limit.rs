//! Something on the path gives each flow a rate of its own, far below what the path carries.
//!
//! The cap of a cloud for each flow, a policer or shaper for each connection, one member of a bundle of links. Several
//! connections carry several times as much as one, and datagrams of one flow no more than one connection.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::goal::{Complaint, Purpose};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::si;

use crate::Case;
use crate::entry::{Entry, Family, is_about};
use crate::evidence::{CUT_RATIO, Carried, FLOWS_TIMES, fact};
use crate::facts::bps;
use crate::loss::LOSS_WARNING;
use crate::signs::{Kind, WINDOW_RATIO};

/// One connection carries less than this share of what several do: a CUBIC flow leaves a tenth of a line with an ordinary
/// queue empty, and a quarter with a short one (0.72 of 1 Gbit/s with 125 kB of queue, measured).
const SINGLE_RATIO: f64 = 0.6;

/// Datagrams of one flow carry at least this share of what one connection does, and at most so many times as much: TCP behind
/// a policer reaches a third of its rate and more.
const FLOWS_ALIKE: std::ops::RangeInclusive<f64> = 0.6..=3.0;

/// Others who use the line leave a single connection a smaller share than several.
const CONFIDENCE: f64 = 0.85;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "once the limit is lifted, one connection carries what several do",
    needs: &[Need::Upload, Need::Download, Need::SingleStreams],
    resembles: &[
        (
            Cause::CrossTraffic,
            "beside others' flows each of ours has a fair share of the line, and four have more than one",
        ),
        (
            Cause::PathLoss,
            "loss at random holds one connection back, and takes few of its datagrams",
        ),
        (
            Cause::ReceiveBufferSmall,
            "a window holds each connection back by the round trip, and no datagram",
        ),
    ],
    yields_to: &[Cause::UnequalPaths],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        let of_direction = |d| of_connections(case, d).or_else(|| of_datagrams(case, d));
        directions.filter_map(of_direction).collect()
    },
    explains: |finding, sign| is_about(finding, sign) && sign.kind != Kind::Window,
    ..Entry::PLAIN
};

/// One connection carries far less than several.
fn of_connections(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction).by("connections");
    let together = facts.known(
        "a load as long as a rate takes to become steady",
        case.full_load(direction),
    )?;
    let single = facts.known("one connection alone", case.single_stream(direction))?;
    let most_bps = SINGLE_RATIO * together.bps();
    if !facts.at_most("rate of one connection alone", bps(single.bps()), most_bps) {
        return None;
    }
    let cut = case.cut_flow(direction);
    facts.is("datagrams of one flow are cut as well", cut.is_some());
    let (datagrams, flow_bps) = cut?;
    let limited = together.streams() > 1.0
        && facts.is(
            "it was at no time as fast as several at their slowest",
            is_apart(single, together),
        )
        && facts.is("it did not wait for a window", !waits_for_window(single))
        && FLOWS_ALIKE.contains(&(flow_bps / single.bps().max(f64::MIN_POSITIVE)))
        && !datagrams.is_busy()
        && !case.is_used_by_others();
    if !limited {
        return None;
    }
    let loses = together
        .segments()
        .is_some_and(|segments| segments.ratio() >= LOSS_WARNING);
    let summary = format!(
        "One connection {} carries {}, and {} together carry {}: something on the path limits each flow to about {}. Datagrams of one flow get no more.",
        direction.name(),
        si(single.bps(), "bit/s"),
        together.streams(),
        si(together.bps(), "bit/s"),
        si(flow_bps.max(single.bps()), "bit/s"),
    );
    let evidence = vec![
        fact(
            single.measurement,
            "bps",
            single.bps(),
            "payload of one connection, against 60 % of what several carried together",
            SINGLE_RATIO * together.bps(),
        ),
        fact(
            datagrams.measurement,
            "bps",
            flow_bps,
            "payload of datagrams of one flow that were offered more, against three times what one connection carried",
            FLOWS_ALIKE.end() * single.bps(),
        ),
    ];
    let matters = loses || asks_for_one(case);
    Some(finding(direction, matters, summary, evidence))
}

/// Datagrams of several flows carry far more than datagrams of one flow, and TCP may have got little of either.
fn of_datagrams(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction).by("datagrams");
    let together = facts.known(
        "a load as long as a rate takes to become steady",
        case.full_load(direction),
    )?;
    let limit = case.flow_limit(direction);
    facts.is(
        "several flows of datagrams carry far more than one flow",
        limit.is_some(),
    );
    let limit = limit?;
    let short = together.bps() <= SINGLE_RATIO * limit.several_bps;
    let summary = format!(
        "Datagrams {} of one flow arrive at {} at most, and of several flows at {} together: something on the path limits each flow. {} of TCP carry {} together.",
        direction.name(),
        si(limit.one_bps, "bit/s"),
        si(limit.several_bps, "bit/s"),
        match together.streams() as u32 {
            1 => "One connection".to_owned(),
            many => format!("{many} connections"),
        },
        si(together.bps(), "bit/s"),
    );
    let evidence = vec![
        fact(
            limit.several,
            "bps",
            limit.several_bps,
            "payload of datagrams of several flows together, against one and a half times what one flow of them carried",
            FLOWS_TIMES * limit.one_bps,
        ),
        fact(
            limit.one.measurement,
            "bps",
            limit.one_bps,
            "payload of datagrams of one flow, of which a tenth and more was lost",
            CUT_RATIO * limit.one.offered_bps(),
        ),
    ];
    Some(finding(
        direction,
        short || asks_for_one(case),
        summary,
        evidence,
    ))
}

fn finding(
    direction: Direction,
    matters: bool,
    summary: String,
    evidence: Vec<Evidence>,
) -> Finding {
    Finding {
        cause: Cause::PerFlowLimit,
        place: Place::line(direction),
        severity: match matters {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary,
        evidence,
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Transfer with several connections at once (rclone --multi-thread-streams, aria2c -x, parallel rsync), or have the limit of each flow lifted by its operator: a cloud's cap for one flow (placement groups, larger machines), a fair shaper or policer for each connection, one link of a bundle.",
            "One connection carries nine tenths of what several do.",
        )],
        kb: "throughput".to_owned(),
    }
}

/// Whether it was at no time as fast as the others were when they were slowest, so that it is no change of the line meanwhile.
fn is_apart(single: Carried<'_>, together: Carried<'_>) -> bool {
    let seconds = single.seconds_bps().zip(together.seconds_bps());
    seconds.is_some_and(|(single, together)| single.p95 < together.p5)
}

fn waits_for_window(carried: Carried<'_>) -> bool {
    let limited = &carried.result.tcp.limited;
    limited.rwnd_ratio.max(limited.sndbuf_ratio) >= WINDOW_RATIO
}

/// Whether what was asked for hangs on one connection.
fn asks_for_one(case: &Case<'_>) -> bool {
    case.asked.is_some_and(|asked| {
        let transfer = matches!(asked.purpose, Some(Purpose::Transfer | Purpose::Backup));
        transfer || asked.complaint == Some(Complaint::Throughput)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::experiment::tests::{carried_up, made, stream};
    use plumb_model::context::Experiment;
    use plumb_model::run::Run;

    /// What is found where one flow of datagrams arrives at the rate of all of TCP's, four at so many times that, and one flow that
    /// was offered so many times that had lost nothing before.
    fn found(times: f64, whole: f64) -> Vec<Finding> {
        let mut run = Run::from_json(include_str!("../../fixtures/policer.json")).unwrap();
        let pps = carried_up(&run) / (1400.0 * 8.0);
        let before = stream(Experiment::Paced, whole * pps, 1400);
        made(&mut run, before, (2.0 * whole * pps) as u64, 0.0, 0.0001);
        let above = stream(Experiment::Overload, 1.4 * pps, 1400);
        made(&mut run, above, (2.8 * pps) as u64, 0.286, 0.0001);
        let each = stream(Experiment::ManyFlows, 0.5 * pps, 1400);
        for _ in 0..4 {
            made(&mut run, each, pps as u64, 1.0 - times / 2.0, 0.0001);
        }
        (CAUSE.examine)(&Case::of(&run))
    }

    #[test]
    fn several_flows_of_datagrams_with_more_than_one_are_limited_each() {
        let limited = found(2.0, 0.8);
        let [finding] = limited.as_slice() else {
            panic!("{limited:?}");
        };
        assert_eq!(
            (finding.severity, finding.place),
            (Severity::Warning, Place::Uplink)
        );
        assert!(found(1.0, 0.8).is_empty(), "a limit of all together");
        assert!(found(2.0, 1.4).is_empty(), "a line whose rate changed");
    }
}
