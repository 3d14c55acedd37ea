//! Packets are lost on the path.
//!
//! While nothing of ours loads the path: by radio, a bad line, or a queue that others fill.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::loss::at_least_ratio;
use plumb_model::need::Need;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;

use super::icmp_held_back;
use crate::Case;
use crate::captured;
use crate::dropped_here;
use crate::entry::{Amount, Entry, Family, Harm, Often, is_about};
use crate::evidence::{Carried, Idle, Route, STANDS_S, Streamed, fact};
use crate::facts::{Recorder, count, ratio};
use crate::loss::{LOSS_CRITICAL, LOSS_WARNING, shows_loss};
use crate::signs::{Kind, Sign, percent, shortfall};
use crate::weighing::prediction::{Observable, Prediction, strength};

/// A host that is asked for more echoes than it answers loses none: what is known by ICMP alone is
/// as good as a guess.
const ICMP_CONFIDENCE: f64 = 0.6;

/// Loss found while idle explains so many times its share under load: what is lost is retransmitted more
/// than once.
const SENT_AGAIN: f64 = 3.0;

/// Where TCP falls short of the line, datagrams that lose at least this share of what it sends again show why: the rest may be
/// of its own bursts.
const OF_SENT_AGAIN: f64 = 0.25;

/// Loss that comes in bursts is so many times the mean for two seconds.
const FAR_MORE: f64 = 10.0;

/// Fewer lost datagrams than these show no smaller share than [`LOSS_WARNING`].
const LEAST_LOST: u64 = 3;

/// Losses one after the other from which on they come in bursts: by chance two follow each other seldom.
const BURST_PACKETS: f64 = 2.0;

/// Others may fill the queue meanwhile.
const PACED_CONFIDENCE: f64 = 0.9;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Damage,
    harms: Harm::Delivery,
    often: Often {
        home: 1.0,
        campus: 1.0,
        cloud: 0.0,
        mobile: 1.0,
    },
    vanishes: "nothing is lost over a cable in place of the radio, or past the hop where loss begins",
    needs: &[Need::Idle, Need::Upload, Need::Download],
    resembles: &[
        (
            Cause::BufferbloatUp,
            "a full queue loses packets only while something fills it",
        ),
        (
            Cause::LinkDuplexHalf,
            "a link of half duplex loses more the more goes in both directions",
        ),
    ],
    predicts: &[
        Prediction::likely(Observable::IdleLoss, strength::WEAK),
        Prediction::unlikely(Observable::StandingQueue, strength::WEAK),
    ],
    yields_to: &[
        Cause::Corruption,
        Cause::CrossTraffic,
        Cause::DuplexMismatch,
        Cause::Handover,
        Cause::Outage,
        Cause::PmtudBlackHole,
        Cause::PathRefused,
        Cause::PerFlowLimit,
        Cause::UdpLimited,
        Cause::UnequalPaths,
    ],
    amount: Amount::Losses,
    examine,
    explains,
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Vec<Finding> {
    let directions = [Direction::Up, Direction::Down].into_iter();
    let paced = directions.filter_map(|direction| {
        let facts = case.facts(direction).by("datagrams");
        let stream = case.with_room(direction).first().copied();
        let stream = facts.known("datagrams below the line's rate", stream)?;
        let all = case.counted_with_room(direction);
        let others = case.others_wait_s(stream, direction).is_some();
        let found = below_the_rate(stream, all, matters_from(case, direction), facts);
        let found = found.filter(|_| {
            facts.is("no other host fills the queue", !others)
                && facts.is(
                    "TCP's segments are lost as well",
                    !passes_tcp(case, direction, all),
                )
        })?;
        Some((found, stream.loss_bounds().1))
    });
    let (paced, most): (Vec<Finding>, Vec<f64>) = paced.unzip();
    // A probe goes both ways, so that what is lost each way is lost of probes too.
    let by_paced: f64 = most.iter().sum();
    let facts = case.facts(None).by("idle");
    let idle = facts.known("probes of the idle path", case.idle());
    let idle = idle.filter(|idle| {
        let least = idle.loss_at_least();
        let name = "least share of probes lost";
        match by_paced > 0.0 {
            true => facts.above(name, ratio(least), by_paced),
            // Of what is lost at all the rule below asks whether it matters.
            false => least > by_paced || facts.at_least(name, ratio(least), LOSS_WARNING),
        }
    });
    let while_idle = idle.and_then(|idle| while_idle(case, idle)).into_iter();
    // What hops lose of pings that are held back, they lose of nothing else.
    let held_back = icmp_held_back::examine(&case.unrecorded()).is_some();
    let by_pings = |route: &Route<'_>| route.result.protocol == Protocol::Icmp;
    let routes = case
        .routes()
        .filter(|route| !(held_back && by_pings(route)));
    let on_routes = routes
        .filter(|route| case.idle().is_none_or(|idle| !is_chance(*route, idle)))
        .filter_map(on_route);
    let all = while_idle.chain(paced).chain(on_routes);
    all.filter(|finding| !dropped_here::accounts_for(case, finding))
        .chain(captured::losses(case))
        .collect()
}

fn explains(finding: &Finding, sign: &Sign) -> bool {
    match sign.kind {
        Kind::Window => false,
        // A probe goes both ways, whatever is loaded.
        Kind::ProbesLost => true,
        _ if !is_about(finding, sign) => false,
        Kind::Retransmissions => {
            let first = finding.decisive();
            let found = first.and_then(|evidence| evidence.value.number());
            found.is_some_and(|found| sign.ratio <= SENT_AGAIN * found)
        }
        _ => true,
    }
}

fn while_idle(case: &Case<'_>, idle: Idle<'_>) -> Option<Finding> {
    let ping = idle.result;
    let (sent, lost) = (idle.sent(), idle.lost());
    let least = idle.loss_at_least();
    let facts = case.facts(None).by("idle");
    // As `shows_loss` has it.
    if !facts.above("probes lost", count(lost), 1.0)
        || !facts.at_least("least share of probes lost", ratio(least), LOSS_WARNING)
    {
        return None;
    }
    let by_icmp = ping.protocol == Protocol::Icmp;
    // Where no probe at all is answered they are filtered, which is common and no loss.
    if !facts.is("some probes are answered", ping.received > 0) {
        return None;
    }
    let doubt = match by_icmp {
        true => ", or the far end answers seldom",
        false => "",
    };
    Some(Finding {
        cause: Cause::PathLoss,
        place: Place::Path,
        severity: match least >= LOSS_CRITICAL && !by_icmp {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        // One lost probe may be chance; ten are not.
        confidence: match by_icmp {
            true => ICMP_CONFIDENCE,
            false => (1.0 - 0.5f64.powf(lost as f64)).min(0.99),
        },
        matters_for: Vec::new(),
        summary: format!(
            "Packets are lost while nothing of ours loads the path: {lost} of {sent} probes got no answer ({:.1} % in both directions together, and of all at least {:.1} %){doubt}.{}",
            lost as f64 / sent as f64 * 100.0,
            least * 100.0,
            match ping.corrupted {
                0 => String::new(),
                corrupted => format!(
                    " {corrupted} of the answers came with a wrong checksum: the path corrupts packets."
                ),
            },
        ),
        evidence: vec![fact(
            idle.measurement,
            "loss_ratio",
            lost as f64 / sent as f64,
            "share of idle round trips lost in both directions together, but for those that this host dropped itself (result.dropped_here); a finding where so many losses would be unlikely (2.5 %) under the threshold",
            LOSS_WARNING,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Try a cable in place of Wi-Fi; then look where the loss begins: `plumb path HOST --continuous`. From the provider's first router on, it is the provider's to fix.",
            "No probes are lost while the path is idle.",
        )],
        kb: "loss".to_owned(),
    })
}

/// Whether far less of TCP's segments is lost in that direction than of datagrams, so that what loses those is no chance.
fn passes_tcp(case: &Case<'_>, direction: Direction, (sent, lost): (u64, u64)) -> bool {
    let again = case.full_load(direction).and_then(Carried::segments);
    let again = again.map(|segments| segments.ratio().max(LOSS_WARNING));
    again.is_some_and(|again| at_least_ratio(sent, lost) > FAR_MORE * again)
}

/// From which share on a loss matters: less does where TCP carries far less than the line, and sends as little again.
fn matters_from(case: &Case<'_>, direction: Direction) -> f64 {
    let short = case
        .full_load(direction)
        .filter(|carried| shortfall(case, direction, *carried).is_some());
    let again = short.and_then(Carried::segments).map(|s| s.ratio());
    let again = again.filter(|again| *again > 0.0);
    again.map_or(LOSS_WARNING, |again| {
        LOSS_WARNING.min(OF_SENT_AGAIN * again)
    })
}

/// Where datagrams are lost that go slower than TCP did: no load of ours fills a queue then.
fn below_the_rate(
    stream: Streamed<'_>,
    (sent, lost): (u64, u64),
    matters_from: f64,
    facts: Recorder<'_>,
) -> Option<Finding> {
    let (least, share) = (at_least_ratio(sent, lost), lost as f64 / sent.max(1) as f64);
    // The rate of a radio falls below 80 % of its mean for a time, and a queue loses packets then.
    let bound = match lost >= LEAST_LOST {
        true => LOSS_WARNING.min(matters_from),
        false => LOSS_WARNING,
    };
    let shows = facts.at_least("least share lost", ratio(least), bound);
    // What a sender loses that is too busy to keep its schedule may be lost in its own host.
    let kept = shows && facts.is("the sender kept its schedule", !stream.has_gaps());
    let queued = stream.is_queued() || stream.queue_s() >= STANDS_S;
    if !(kept && facts.is("they do not wait in a queue", !queued)) {
        return None;
    }
    let direction = stream.result.direction;
    let place = Place::line(direction);
    let doing = match direction {
        Direction::Down => "Download",
        Direction::Up => "Upload",
        Direction::Both => "Upload and download",
    };
    let bursts = match stream.burst_packets() {
        Some(packets) if packets >= BURST_PACKETS => {
            format!(", in bursts of {packets:.0} one after the other, as a radio loses them")
        }
        _ => ", lost singly, not in bursts".to_owned(),
    };
    Some(Finding {
        cause: Cause::PathLoss,
        place,
        severity: match least >= LOSS_CRITICAL {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        confidence: PACED_CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{doing} packets are lost even when the line is not full: {lost} of {sent} datagrams ({}){bursts}. No full queue does that.",
            percent(share)
        ),
        evidence: vec![fact(
            stream.measurement,
            "receiver.loss_ratio",
            share,
            "loss of datagrams at 80 % of TCP's rate, and of faster ones that the line carried as well; a finding where so many losses would be unlikely (2.5 %) under the threshold",
            matters_from,
        )],
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Try a cable in place of Wi-Fi; then look where the loss begins: `plumb path HOST --continuous`, and the counters of the modem or the port. From the provider's first router on, it is the provider's to fix.",
            "Datagrams below the line's rate arrive whole.",
        )],
        kb: "loss".to_owned(),
    })
}

/// Whether far more probes of the idle path, that lost fewer, show that what a route's few lost is no steady share: a trace
/// sends several at once in both directions.
fn is_chance(route: Route<'_>, idle: Idle<'_>) -> bool {
    let loss = route.result.loss.as_ref();
    loss.is_some_and(|loss| {
        loss.sent_beyond < idle.sent() && idle.loss_at_most() < loss.at_least_ratio
    })
}

/// Where a route of the path loses them.
fn on_route(route: Route<'_>) -> Option<Finding> {
    let path = route.result;
    let loss = path.loss.as_ref()?;
    // One lost of three says nothing.
    if !shows_loss(loss.sent_beyond, loss.lost_beyond) {
        return None;
    }
    // Few probes leave the share wide open.
    let severity = if loss.at_least_ratio >= LOSS_CRITICAL {
        Severity::Critical
    } else if loss.at_least_ratio >= LOSS_WARNING {
        Severity::Warning
    } else {
        Severity::Info
    };
    let where_ = if loss.earliest_ttl == loss.latest_ttl {
        format!("beginning at {}", route.at(loss.begins_at_ttl))
    } else {
        format!(
            "beginning between {} and {}",
            route.at(loss.earliest_ttl),
            route.at(loss.latest_ttl)
        )
    };
    let summary = format!(
        "Packets are lost on the path to {}: {} of {} probes to hop {} and beyond ({:.1} %, and of all packets at least {:.1} %), {where_}.",
        path.address,
        loss.lost_beyond,
        loss.sent_beyond,
        loss.begins_at_ttl,
        loss.ratio * 100.0,
        loss.at_least_ratio * 100.0
    );
    // One lost probe may be chance; ten are not.
    let confidence = 1.0 - 0.5f64.powf(loss.lost as f64);
    Some(Finding {
        cause: Cause::PathLoss,
        place: match loss.latest_ttl <= 1 {
            true => Place::LocalSegment,
            false => Place::Path,
        },
        severity,
        confidence: confidence.min(0.99),
        matters_for: Vec::new(),
        summary,
        evidence: vec![
            fact(
                route.measurement,
                "loss.at_least_ratio",
                loss.at_least_ratio,
                "share lost at and beyond the hop where loss begins, at least, with 97.5 %",
                LOSS_WARNING,
            ),
            fact(
                route.measurement,
                "loss.lost",
                loss.lost as f64,
                "probes lost to the last hop",
                1.0,
            ),
        ],
        fixes: vec![match loss.latest_ttl <= 1 {
            true => Fix::advice(
                Actor::ThisHost,
                "Try a cable in place of Wi-Fi, or another cable and port; the packets are lost before this host's router, or in it.",
                "No probes are lost to the router.",
            ),
            false => Fix::advice(
                Actor::Provider,
                "Look at the line before that hop and the queue that leads into it; the loss may be on the path of the answers as well.",
                "No probes are lost beyond that hop.",
            ),
        }],
        kb: "path".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::experiment::tests::{carried_up, made, stream};
    use crate::testing::{found_in, idle, measurement};
    use plumb_model::context::{Experiment, Phase};
    use plumb_model::results::udp::LossPattern;
    use plumb_model::results::{Outcome, PingResult, TimestampSource};
    use plumb_model::run::{HostFacts, Run};
    use std::collections::BTreeMap;

    #[test]
    fn what_a_trace_lost_of_three_probes_is_chance_where_many_idle_ones_came() {
        let path = serde_json::json!({ "kind": "path", "result": {
            "protocol": "udp", "port": null, "address": "192.0.2.9", "reached": true, "cycles": 3, "hops": [],
            "loss": {
                "ratio": 0.667, "at_least_ratio": 0.094, "sent_beyond": 3, "lost_beyond": 2, "begins_at_ttl": 5,
                "earliest_ttl": 3, "latest_ttl": 5, "sent": 3, "lost": 2,
            },
            "routes": [], "changes": [], "alterations": [], "syn_ack": null, "multipath": null, "distance": null,
            "way_back": null, "symmetry": null,
        }});
        let trace = || measurement(serde_json::from_value(path.clone()).unwrap());
        let after = |received| {
            let pings = idle(Protocol::Icmp, 210, received, 0.02);
            let found = found_in(CAUSE.examine, &[pings, trace()]);
            found
                .iter()
                .any(|finding| finding.summary.contains("hop 5"))
        };
        assert!(!after(210));
        assert!(after(180), "the idle path loses as well");
    }

    fn found(protocol: Protocol, [sent, received, dropped_here]: [u64; 3]) -> Vec<Finding> {
        let ping = PingResult {
            one_way: None,
            protocol,
            address: "192.0.2.1".to_owned(),
            sent,
            received,
            loss_ratio: Some((sent - received) as f64 / sent as f64),
            duplicates: 0,
            reordered: 0,
            late: 0,
            losses: LossPattern::default(),
            hop_limits: Vec::new(),
            hop_limit_changes: 0,
            icmp_errors: BTreeMap::new(),
            answers: BTreeMap::new(),
            phases: None,
            sizes: Vec::new(),
            send_errors: 0,
            dropped_here,
            corrupted: 0,
            rtt_s: None,
            lateness_s: None,
            timestamps: TimestampSource::Kernel,
        };
        let mut idle = measurement(Outcome::Ping(ping));
        idle.context.phase = Some(Phase::Idle);
        examine(&Case {
            measurements: &[idle],
            local: &HostFacts::default(),
            far: None,
            asked: None,
            log: None,
        })
    }

    #[test]
    fn as_many_losses_as_chance_does_not_explain_are_a_finding() {
        use Protocol::{Icmp, Udp};
        assert_eq!(found(Udp, [100, 100, 0]), []);
        assert_eq!(found(Udp, [100, 99, 0]), [], "one may be chance");
        assert_eq!(found(Udp, [20, 19, 0]), [], "of few, too");
        assert_eq!(found(Udp, [100, 90, 10]), [], "lost here");
        let some = found(Udp, [100, 97, 0]);
        assert_eq!(some[0].severity, Severity::Warning);
        assert!(some[0].summary.contains("3 of 100"), "{}", some[0].summary);
        assert_eq!(found(Udp, [100, 80, 0])[0].severity, Severity::Critical);
        let guessed = &found(Icmp, [100, 80, 0])[0];
        assert_eq!(guessed.severity, Severity::Warning);
        assert!(guessed.confidence < 0.7);
        assert_eq!(found(Icmp, [50, 0, 0]), [], "filtered");
        assert_eq!(found(Udp, [250, 0, 0]), [], "filtered");
    }

    /// What is found of datagrams below TCP's rate and above it that lose so many, where four times that rate is too much for the
    /// line and TCP sends so many segments again.
    fn below_a_line(lost_ratio: f64, again: f64) -> usize {
        let mut run = Run::from_json(include_str!("../../fixtures/policer.json")).unwrap();
        for measurement in &mut run.measurements {
            measurement.series.remove("retransmits");
            if let Outcome::Throughput(result) = &mut measurement.outcome {
                result.tcp.retransmits = (result.bytes as f64 / 1448.0 * again) as u64;
            }
        }
        let pps = carried_up(&run) / (1400.0 * 8.0);
        for (experiment, times, lost) in [
            (Experiment::Paced, 0.8, lost_ratio),
            (Experiment::Overload, 1.4, lost_ratio),
            (Experiment::Overload, 5.6, 0.3),
        ] {
            let datagrams = stream(experiment, times * pps, 1400);
            made(&mut run, datagrams, 12_000, lost, 0.0001);
        }
        examine(&Case::of(&run)).len()
    }

    /// How many are found where datagrams at so many times TCP's rate lose such shares.
    fn of_rates<const N: usize>(rates: [(Experiment, f64, f64); N]) -> usize {
        let mut run = Run::from_json(include_str!("../../fixtures/policer.json")).unwrap();
        let pps = carried_up(&run) / (1400.0 * 8.0);
        for (experiment, times, lost) in rates {
            let datagrams = stream(experiment, times * pps, 1400);
            let sent = (2.0 * times * pps) as u64;
            made(&mut run, datagrams, sent, lost, 0.0001);
        }
        examine(&Case::of(&run)).len()
    }

    #[test]
    fn what_is_cut_to_one_rate_is_not_lost_by_chance() {
        use Experiment::{Overload, Paced};
        // 0.45 of TCP's rate arrives of both.
        let ceiling = [(Overload, 1.4, 0.679), (Paced, 0.8, 0.4375)];
        assert_eq!(of_rates(ceiling), 0);
        assert_eq!(of_rates([(Overload, 1.4, 0.45), (Paced, 0.8, 0.45)]), 1);
        // The line's rate fell to 0.4 meanwhile.
        assert_eq!(of_rates([(Overload, 1.4, 0.72), (Paced, 0.8, 0.47)]), 0);
    }

    #[test]
    fn what_a_short_queue_loses_of_faster_datagrams_is_not_lost_by_chance() {
        use Experiment::{Overload, Paced};
        let line = (Overload, 22.4, 0.6);
        let of_fast = |lost| (Overload, 5.6, lost);
        assert_eq!(of_rates([(Paced, 0.8, 0.0), of_fast(0.02), line]), 0);
        assert_eq!(of_rates([(Paced, 0.8, 0.02), of_fast(0.02), line]), 1);
    }

    #[test]
    fn two_of_few_datagrams_show_a_loss_that_matters() {
        let mut run = Run::from_json(include_str!("../../fixtures/policer.json")).unwrap();
        let below = stream(Experiment::Paced, 60.0, 1400);
        made(&mut run, below, 120, 2.0 / 120.0, 0.0001);
        assert_eq!(examine(&Case::of(&run)).len(), 1);
    }

    #[test]
    fn less_loss_matters_where_tcp_falls_short_of_the_line() {
        assert_eq!(below_a_line(0.0008, 0.0009), 1);
        assert_eq!(below_a_line(0.0, 0.0009), 0, "TCP's bursts alone");
        assert_eq!(below_a_line(0.0002, 0.01), 0, "most of it is TCP's bursts");
        assert_eq!(below_a_line(0.0008, 0.0), 0, "TCP loses nothing");
    }
}
