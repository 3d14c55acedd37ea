//! One line carries less than every other.
//!
//! Named only where the result is sure of it, or where a load fills what the gateway reports its line to carry.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::results::capacity::CapacityHop;
use plumb_model::units::si;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Lines, OTHERS_RATIO, fact, of_lines};

/// A load fills a line that carries this share of its rate as payload: cells and headers leave TCP 0.83 of an ADSL line's
/// (48 of 53 bytes, 1448 of 1500 and 32 of PPPoE over ATM), and it leaves a reserve.
const FULL_RATIO: f64 = 0.8;

/// A line that carries more than it reports reports something else.
const MOST_RATIO: f64 = 1.0;

/// The gateway's own figure, and a load that comes up to it.
const REPORTED_CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Queues,
    vanishes: "a faster line in its place moves the limit to another",
    needs: &[Need::Lines],
    resembles: &[(
        Cause::TokenBucket,
        "a token bucket lets the beginning pass at the rate of the line itself",
    )],
    examine: |case| {
        let by_packets = case.lines().filter_map(narrowest_line);
        let directions = [Direction::Up, Direction::Down].into_iter();
        let by_gateway = directions.filter_map(|direction| as_the_gateway_reports(case, direction));
        by_packets.chain(by_gateway).collect()
    },
    ..Entry::PLAIN
};

fn rate(bps: f64) -> String {
    si(bps, "bit/s")
}

fn narrowest_line(lines: Lines<'_>) -> Option<Finding> {
    let capacity = lines.result;
    let narrowest_ttl = capacity.narrowest_ttl.filter(|_| capacity.reached)?;
    let at = capacity
        .hops
        .iter()
        .position(|hop| hop.ttl == narrowest_ttl)?;
    let hop = capacity.hops.get(at)?;
    let (bps, least, most) = (hop.rate.bps?, hop.rate.at_least_bps?, hop.rate.at_most_bps?);
    let others = others_carry(&capacity.hops, at)?;
    // Single packets pass a token bucket at its first rate, and a line that is shared at its whole.
    let by_trains = capacity
        .train
        .as_ref()
        .and_then(|train| train.rate.at_most_bps);
    if others < most || by_trains.is_some_and(|trains| trains < least) {
        return None;
    }
    let address = hop
        .address
        .as_ref()
        .map_or_else(String::new, |address| format!(" ({address})"));
    Some(of_lines(
        Cause::NarrowestLine,
        Place::Path,
        0.95,
        format!(
            "The line before hop {narrowest_ttl}{address} is the narrowest on the forward path: {} ({} to {}). Every other carries at least {}.",
            rate(bps),
            rate(least),
            rate(most),
            rate(others)
        ),
        fact(
            lines.measurement,
            format_args!("hops.{at}.rate.at_most_bps"),
            most,
            "most that this line carries, against the least that any other does",
            others,
        ),
    ))
}

/// The line of the gateway, where its own load and the traffic of others fill it. It is worth repairing where more is
/// paid for.
fn as_the_gateway_reports(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let gateway = case.gateway()?;
    let (line_bps, field) = gateway.line_bps(direction)?;
    let carried = case.full_load(direction)?;
    let others_bps = case
        .shared(direction)
        .map_or(0.0, |(_, shared)| shared.others_bps());
    let filled = (carried.bps() + others_bps) / line_bps;
    if !(FULL_RATIO..).contains(&filled) || carried.bps() / line_bps > MOST_RATIO {
        return None;
    }
    let paid = case.asked.and_then(|asked| asked.plan);
    let paid_bps = paid.map(|plan| match direction {
        Direction::Up => plan.up_bps,
        _ => plan.down_bps,
    });
    let short_bps = paid_bps.filter(|paid_bps| line_bps < FULL_RATIO * paid_bps);
    let kind = gateway.result.access.as_deref();
    let kind = kind.map_or_else(String::new, |kind| format!(" ({kind})"));
    let (line, way) = (rate(line_bps), direction.name());
    let load = match others_bps / line_bps >= OTHERS_RATIO {
        true => format!(
            "the {} that the load carried and the {} of others fill it",
            rate(carried.bps()),
            rate(others_bps)
        ),
        false => format!("the {} that the load carried fill it", rate(carried.bps())),
    };
    let summary = match short_bps {
        Some(paid_bps) => format!(
            "The gateway's line{kind} is connected at {line} {way}, and {} are paid for: {load}.",
            rate(paid_bps)
        ),
        None => format!(
            "The gateway's line{kind} is the narrowest: it is connected at {line} {way}, and {load}."
        ),
    };
    let fix = Fix::advice(
        Actor::Provider,
        "Compare what the gateway reports of its line (attenuation, errors, the rate of its port) with the contract: a bad cable or socket, or a port of 100 Mbit/s, limits the line before the provider does.",
        format!("The gateway reports what is paid for {way}."),
    );
    Some(Finding {
        severity: match short_bps {
            Some(_) => Severity::Warning,
            None => Severity::Info,
        },
        fixes: short_bps.map(|_| fix).into_iter().collect(),
        kb: "gateway".to_owned(),
        ..of_lines(
            Cause::NarrowestLine,
            Place::line(direction),
            REPORTED_CONFIDENCE,
            summary,
            fact(
                gateway.measurement,
                field,
                line_bps,
                "rate of its line as the gateway reports it, against what the load carried; headers are a fifth at most",
                carried.bps(),
            ),
        )
    })
}

/// What each line but that before hop `at` carries at least; `None` where that is not known of all, or
/// there are no others.
fn others_carry(hops: &[CapacityHop], at: usize) -> Option<f64> {
    let mut of_line: Vec<Option<f64>> = vec![None; hops.len()];
    for (index, hop) in hops.iter().enumerate() {
        let lines = usize::from(hop.lines);
        // A figure of several lines is of those before this hop and before the ones in front of it.
        for known in of_line.iter_mut().take(index + 1).rev().take(lines) {
            *known = known.or(hop.rate.at_least_bps);
        }
    }
    of_line.remove(at);
    let all: Option<Vec<f64>> = of_line.into_iter().collect();
    all?.into_iter().reduce(f64::min)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::evidence::asked_gateway;
    use crate::testing::{carrying, found_by_any};
    use plumb_model::results::Outcome;
    use plumb_model::results::capacity::{
        CapacityEnd, CapacityResult, Doubt, RateEstimate, RateStatus, TrainBurst, TrainMethod,
        TrainResult,
    };

    fn measured(bps: f64) -> RateEstimate {
        RateEstimate {
            status: RateStatus::Measured,
            bps: Some(bps),
            at_least_bps: Some(bps * 0.95),
            at_most_bps: Some(bps * 1.05),
            doubts: Vec::new(),
        }
    }

    fn at_least(bps: f64, doubt: Doubt) -> RateEstimate {
        RateEstimate {
            status: RateStatus::Bounded,
            at_least_bps: Some(bps),
            doubts: vec![doubt],
            ..RateEstimate::default()
        }
    }

    fn hop(ttl: u8, lines: u8, rate: RateEstimate) -> CapacityHop {
        CapacityHop {
            ttl,
            address: Some(format!("192.0.2.{ttl}")),
            sent: 100,
            received: 100,
            other_routers: 0,
            largest_bytes: Some(1500),
            answer_bytes: Some(576),
            lines,
            rate,
            back_rate: None,
            latency_s: None,
            latency_error_s: None,
            queueing_s: None,
            line_queueing_s: None,
            sizes: Vec::new(),
        }
    }

    fn train(method: TrainMethod, rate: RateEstimate, burst: Option<TrainBurst>) -> TrainResult {
        TrainResult {
            method,
            rate,
            packet_bytes: 1500,
            longest_packets: 400,
            trains: 9,
            sent: 900,
            received: 900,
            sent_bps: Some(1e9),
            train_bps: None,
            pair_bps: None,
            pair_ratio: None,
            burst,
        }
    }

    /// 100 Mbit/s, 20 Mbit/s, and at least 400.
    fn capacity() -> CapacityResult {
        CapacityResult {
            address: "192.0.2.3".to_owned(),
            protocol: None,
            hops: vec![
                hop(1, 1, measured(1e8)),
                hop(2, 1, measured(2e7)),
                hop(3, 1, at_least(4e8, Doubt::Timing)),
            ],
            reached: true,
            narrowest_ttl: Some(2),
            train: None,
            rtt_s: None,
            pipe_bytes: None,
            ended: CapacityEnd::Sure,
            sent: 300,
            sent_bytes: 300_000,
        }
    }

    fn findings(capacity: CapacityResult) -> Vec<Finding> {
        found_by_any(Outcome::Capacity(Box::new(capacity)))
    }

    #[test]
    fn the_narrowest_line_is_named_with_its_bounds() {
        let [found] = findings(capacity()).try_into().unwrap();
        assert_eq!(
            (found.cause, found.severity),
            (Cause::NarrowestLine, Severity::Info)
        );
        assert_eq!(
            found.summary,
            "The line before hop 2 (192.0.2.2) is the narrowest on the forward path: 20.0 Mbit/s (19.0 Mbit/s to 21.0 Mbit/s). Every other carries at least 95.0 Mbit/s."
        );
        assert_eq!(found.evidence[0].field, "result.hops.1.rate.at_most_bps");
    }

    /// What is found where the gateway reports so much down, our load carried 46 Mbit/s, and so much is paid for.
    fn reported(line_bps: f64, paid_bps: Option<f64>) -> Vec<Finding> {
        let asked = plumb_model::goal::Asked {
            plan: paid_bps.map(|down_bps| plumb_model::goal::LinePlan {
                down_bps,
                up_bps: 1e7,
            }),
            ..Default::default()
        };
        let gateway = asked_gateway([Some(line_bps), None], [4.8e7; 2], 1.0);
        (CAUSE.examine)(&Case {
            measurements: &[gateway, carrying(Direction::Down, 4.6e7)],
            local: &Default::default(),
            far: None,
            asked: Some(&asked),
            log: None,
        })
    }

    #[test]
    fn a_line_that_is_full_is_the_narrowest_and_short_where_more_is_paid_for() {
        let [full] = reported(5e7, None).try_into().unwrap();
        assert_eq!(
            (full.severity, full.place),
            (Severity::Info, Place::Downlink)
        );
        let [as_paid] = reported(5e7, Some(5e7)).try_into().unwrap();
        assert_eq!(as_paid.severity, Severity::Info);
        let [short] = reported(5e7, Some(1e8)).try_into().unwrap();
        assert_eq!(short.severity, Severity::Warning);
        assert!(
            short
                .summary
                .contains("connected at 50.0 Mbit/s down, and 100 Mbit/s are paid for")
        );
        assert_eq!(reported(1e9, Some(1e8)), [], "its port is no limit");
        assert_eq!(
            reported(1e7, Some(1e8)),
            [],
            "it carries more than it reports"
        );
    }

    #[test]
    fn a_silent_hop_is_covered_by_the_one_behind_it() {
        let mut silent = capacity();
        silent.hops.push(hop(4, 0, RateEstimate::default()));
        silent
            .hops
            .push(hop(5, 2, at_least(5e7, Doubt::SeveralLines)));
        let [found] = findings(silent.clone()).try_into().unwrap();
        assert_eq!(found.evidence[0].threshold.number(), Some(5e7));
        // One of the two may be as narrow.
        silent.hops[4].rate = at_least(2e7, Doubt::SeveralLines);
        assert_eq!(findings(silent), []);
    }

    #[test]
    fn what_the_result_is_not_sure_of_is_not_told() {
        let changed = |change: fn(&mut CapacityResult)| {
            let mut capacity = capacity();
            change(&mut capacity);
            findings(capacity)
        };
        // Lines behind the last hop that answered are not known.
        assert_eq!(changed(|c| c.reached = false), []);
        assert_eq!(changed(|c| c.narrowest_ttl = None), []);
        // A line of which nothing is known, or that may be as narrow.
        assert_eq!(
            changed(|c| c.hops[0] = hop(1, 0, RateEstimate::default())),
            []
        );
        assert_eq!(changed(|c| c.hops[0].rate = measured(2.1e7)), []);
        // There is one line.
        assert_eq!(changed(|c| c.hops = vec![hop(2, 1, measured(2e7))]), []);
        // Trains get less.
        let slower = |c: &mut CapacityResult| {
            c.train = Some(train(TrainMethod::Native, measured(1e7), None));
        };
        assert_eq!(changed(slower), []);
    }

    #[test]
    fn a_token_bucket_is_named_where_its_rate_is_known() {
        let burst = TrainBurst {
            first_bps: 1e9,
            later_bps: 5e6,
            bucket_bytes: 5e5,
        };
        let bucket = |method, doubts: &[Doubt], known: bool| {
            let mut rate = measured(5e6);
            rate.doubts = [&[Doubt::TokenBucket], doubts].concat();
            if !known {
                rate.bps = None;
            }
            let mut capacity = capacity();
            capacity.train = Some(train(method, rate, Some(burst)));
            findings(capacity)
        };
        let [found] = bucket(TrainMethod::Native, &[], true).try_into().unwrap();
        assert_eq!(
            (found.cause, found.place),
            (Cause::TokenBucket, Place::Uplink)
        );
        assert_eq!(
            found.summary,
            "A token bucket on the forward path lets at least 500 kB pass at 1.00 Gbit/s and then 5.00 Mbit/s: short transfers and short tests see the first rate, and the second is what lasts."
        );
        let [echo] = bucket(TrainMethod::Echo, &[], true).try_into().unwrap();
        assert!(
            echo.place == Place::Path && echo.summary.contains("in one direction or the other")
        );
        for doubt in [Doubt::Bunched, Doubt::CrossTraffic] {
            assert_eq!(bucket(TrainMethod::Native, &[doubt], true), []);
        }
        assert_eq!(bucket(TrainMethod::Native, &[Doubt::Lost], false), []);
    }
}
