//! Lines that drop what is above their rate before a queue fills: a policer, and a queue of a few packets.
//!
//! TCP sends segments again though no queue of its own stands. Two experiments show why: datagrams below the rate
//! arrive whole, so that it is not chance that loses packets; datagrams above it are cut down to what the line carries,
//! and those that pass come hardly later than they did below it.

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::loss::{at_least_ratio, at_most_ratio};
use plumb_model::results::Direction;
use plumb_model::units::{capital, human_seconds, si};

use crate::Case;
use crate::entry::is_about;
use crate::evidence::{Carried, FLOWS_TIMES, Streamed, fact};
use crate::facts::{Recorder, ratio};
use crate::loss::LOSS_WARNING;
use crate::signs::{Kind, Sign, doing, is_held_by_losses, percent, queue_stands, waits};

/// Both experiments, and a sender's own record.
const CONFIDENCE: f64 = 0.95;

/// What is lost below the rate is at most this share of what TCP retransmits: chance takes as many there as above it.
const BY_CHANCE_RATIO: f64 = 0.75;

/// Evenly spaced datagrams below the rate find a place in any queue of a line that others do not fill: where at least
/// so many of them are lost, it is not the want of a queue that loses packets, whatever TCP makes of it.
const LOST_BELOW_RATIO: f64 = 0.02;

/// Of datagrams at 1.4 times the rate 29 % are too many: less than this are lost by chance, or the line carries more.
const CUT_RATIO: f64 = 0.1;

/// Packets by which the median one above the rate comes later than that below it: a policer has no place for any, and
/// in a queue of two packets it waits for most of the one being sent.
const QUEUE_PACKETS: f64 = 0.5;

/// In a short queue that is full nearly all packets wait alike, but for one packet and what varies below the rate as well. What
/// waits for shorter and longer times waits in another line's queue, and is dropped behind it.
const ALIKE_PACKETS: f64 = 1.5;
const ALIKE_NOISE: f64 = 2.0;

/// A queue that is longer than this share of the empty path's round trip is long enough for TCP (half a
/// bandwidth-delay product: Appenzeller et al., 2004, for a few flows).
const LONG_ENOUGH_RATIO: f64 = 0.5;

/// TCP fills a line whose queue is long enough by this share: its headers are 2 % of it, and it begins slowly.
const FILLED_RATIO: f64 = 0.85;

/// From this share of the line on that TCP leaves empty, it spoils the use of the path.
const CRITICAL_SHORTFALL_RATIO: f64 = 0.5;

/// How many packets wait before the line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    None,
    Short,
    /// Datagrams wait for long, which heed no loss, and TCP does not: it is dropped before.
    Managed,
}

impl Depth {
    /// What datagrams above the rate show of it.
    fn words(self) -> &'static str {
        match self {
            Self::None => "datagrams above the rate do not wait at all",
            Self::Short => "datagrams above the rate wait in a short queue, all alike",
            Self::Managed => "datagrams above the rate wait in a long queue, and TCP does not",
        }
    }
}

/// What both directions do of that depth.
pub(crate) fn examine(case: &Case<'_>, depth: Depth) -> Vec<Finding> {
    let found = |direction| {
        let facts = case.facts(direction);
        let carried = facts.known(
            "a load as long as a rate takes to become steady",
            case.full_load(direction),
        )?;
        let below = case.streamed(Experiment::Paced, direction).next();
        let below = facts.known("datagrams at 80 % of TCP's rate", below)?;
        let above = facts.known("datagrams above TCP's rate", case.above_rate(direction))?;
        let (sent, lost) = case.counted_with_room(direction);
        let least = at_least_ratio(sent, lost);
        if !facts.below(
            "loss of datagrams below the rate",
            ratio(least),
            LOST_BELOW_RATIO,
        ) {
            return None;
        }
        let idle_rtt_s = case.idle().and_then(|idle| idle.result.rtt_s);
        let least_rtt_s = carried.result.tcp.min_rtt_s;
        let least_rtt_s = least_rtt_s.or(idle_rtt_s.map(|rtt| rtt.min))?;
        let mut drops = drops(carried, below, above, (sent, lost), least_rtt_s, facts)?;
        let cut_bps = above.delivered_bps()?;
        let several = case.streamed(Experiment::ManyFlows, direction);
        let several_bps: f64 = several.filter_map(Streamed::delivered_bps).sum();
        let has_more = several_bps >= FLOWS_TIMES * cut_bps;
        if drops.depth == Depth::None && has_more && case.loses_below(direction, cut_bps) {
            // Nothing polices to a rate that several flows exceed, or takes of what is well below it: there is no place for
            // packets that come together.
            drops.depth = Depth::Short;
            drops.line_bps = drops.line_bps.max(several_bps);
            drops.at_least = true;
        }
        let is_so_deep = facts.is(depth.words(), drops.depth == depth);
        is_so_deep.then(|| finding(carried, below, above, drops))
    };
    let directions = [Direction::Up, Direction::Down].into_iter();
    directions.filter_map(found).collect()
}

/// Whether a finding of them accounts for a sign: in its direction, all that losses bring about.
pub(crate) fn explains(finding: &Finding, sign: &Sign) -> bool {
    is_about(finding, sign) && sign.kind != Kind::Window
}

struct Drops {
    depth: Depth,
    /// Share of the segments that TCP retransmitted.
    again: f64,
    /// How long all packets take for which there is a place, in seconds.
    holds_s: f64,
    /// What the line carries, in bit/s of payload.
    line_bps: f64,
    /// Whether it may be more.
    at_least: bool,
}

/// Whether TCP loses by a line without a queue.
fn drops(
    carried: Carried<'_>,
    below: Streamed<'_>,
    above: Streamed<'_>,
    (sent_below, lost_below): (u64, u64),
    least_rtt_s: f64,
    facts: Recorder<'_>,
) -> Option<Drops> {
    // Where only probes say what packets wait, a queue for each flow keeps them apart; TCP waits in it.
    let delays = above.has_delays() && (above.has_own_delays() || !waits(carried));
    facts.known("delays of datagrams above the rate", delays.then_some(()))?;
    let recorded = carried.segments().map(|segments| segments.ratio());
    let again = recorded.or_else(|| carried.again_as_reported());
    let again = facts.known("segments retransmitted by the sender's record", again)?;
    let (lost_above, _) = above.loss_bounds();
    // A bucket that TCP left empty lets less pass at first.
    let line_bps = above.delivered_bps()?.max(carried.bps());
    let wait_s = (above.wait_s() - below.wait_s()).max(0.0);
    let packet_s = above.packet_s()?;
    let long_enough_s = LONG_ENOUGH_RATIO * least_rtt_s;
    let is_long = wait_s >= long_enough_s || above.is_managed();
    // A managed queue lets datagrams wait before it drops enough of them.
    let is_cut = lost_above >= CUT_RATIO || is_long;
    let falls_short = carried.bps() <= FILLED_RATIO * line_bps;
    // Without the sender's record it is unknown whether a queue stood.
    let matters = again >= LOSS_WARNING && (falls_short || recorded.is_some())
        || falls_short && is_held_by_losses(carried);
    let alike_s = ALIKE_PACKETS * packet_s + ALIKE_NOISE * below.noise_s();
    let is_short =
        wait_s > (QUEUE_PACKETS * packet_s).max(below.noise_s()) && above.noise_s() <= alike_s;
    // What TCP loses of a long path may be so little that as many datagrams would hardly lose one by chance either: where none waits
    // and many are cut, that is seen.
    let by_chance = at_most_ratio(sent_below, lost_below) > BY_CHANCE_RATIO * again
        && (lost_below > 0 || is_long || is_short);
    let no_queue = !queue_stands(carried) || !is_long && (falls_short || above.is_cut_at_once());
    let drops = matters_by(matters, again, facts)
        && facts.is("no queue of TCP's own stands", no_queue)
        && facts.is(
            "datagrams below the rate lose less than chance would",
            !by_chance,
        )
        && (is_long
            || facts.at_least(
                "loss of datagrams above the rate",
                ratio(lost_above),
                CUT_RATIO,
            ))
        && is_cut
        && (!is_long || facts.is("TCP carries far less than the line", falls_short));
    // A full FIFO holds nearly all packets up alike, and TCP would have filled it: others do.
    let others_fill_it = is_long && !above.is_managed();
    let depth = match (is_long, is_short) {
        (true, _) => Depth::Managed,
        (false, true) => Depth::Short,
        (false, false) => Depth::None,
    };
    let drops = drops && !others_fill_it;
    drops.then_some(Drops {
        depth,
        again,
        // The last packet waits for all others, and then it is sent.
        holds_s: above.queue_s() - below.wait_s() + packet_s,
        line_bps,
        at_least: above.has_gaps(),
    })
}

/// Whether TCP retransmits enough for that to matter, and carries less than the line where nothing else shows it.
fn matters_by(matters: bool, again: f64, facts: Recorder<'_>) -> bool {
    match again >= LOSS_WARNING {
        true => facts.is("TCP carries less than the line", matters),
        false => {
            matters
                || facts.at_least(
                    "segments that TCP retransmitted",
                    ratio(again),
                    LOSS_WARNING,
                )
        }
    }
}

fn finding(
    carried: Carried<'_>,
    below: Streamed<'_>,
    above: Streamed<'_>,
    drops: Drops,
) -> Finding {
    let direction = carried.result.direction;
    let (place, doing) = (Place::line(direction), doing(direction));
    let Drops {
        depth,
        again,
        holds_s,
        line_bps,
        at_least,
    } = drops;
    let shortfall = 1.0 - carried.bps() / line_bps;
    let rate = match at_least {
        true => format!("at least {}", si(line_bps, "bit/s")),
        false => si(line_bps, "bit/s"),
    };
    let (cause, what, advice) = match depth {
        Depth::None => (
            Cause::Policer,
            format!("a policer of {rate} drops what is above it at once, and no packet waits"),
            "Ask the provider to shape to the contract's rate in place of policing it, or for a larger burst; until then shape on the router a little below that rate, which loses nothing.",
        ),
        Depth::Short => (
            Cause::ShallowQueue,
            format!(
                "the queue before a line of {rate} holds {} only and drops the rest",
                human_seconds(holds_s)
            ),
            "Ask the operator of the line for a queue of about one round trip that is managed (FQ-CoDel, CAKE, PIE); until then pace: net.core.default_qdisc=fq on the senders, or a shaper a little below that rate.",
        ),
        Depth::Managed => (
            Cause::QueueTargetLow,
            format!(
                "the managed queue before a line of {rate} drops while hardly anything waits in it, though it has room for {}",
                human_seconds(holds_s)
            ),
            "Raise the target of the managed queue on that line (CoDel and FQ-CoDel: 5 ms, and more than one full packet takes; the interval at least the round trip; PIE 15 ms; RED's thresholds by the rate).",
        ),
    };
    Finding {
        cause,
        place,
        severity: match shortfall >= CRITICAL_SHORTFALL_RATIO {
            true => Severity::Critical,
            false => Severity::Warning,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{} lose packets though no queue builds up, because {what}: TCP retransmits {} and carries {}.",
            capital(doing),
            percent(again),
            si(carried.bps(), "bit/s"),
        ),
        evidence: vec![
            fact(
                above.measurement,
                "receiver.loss_ratio",
                above.lost_ratio(),
                "share lost of datagrams faster than TCP, against what chance loses",
                CUT_RATIO,
            ),
            fact(
                below.measurement,
                "receiver.loss_ratio",
                below.lost_ratio(),
                "loss of datagrams at 80 % of that rate, against three quarters of what TCP retransmits, which chance would lose",
                BY_CHANCE_RATIO * again,
            ),
            fact(
                above.measurement,
                above.wait_field(),
                above.wait_s(),
                "median wait of datagrams above the fastest, against that at 80 % and half a packet",
                below.wait_s() + QUEUE_PACKETS * above.packet_s().unwrap_or(0.0),
            ),
        ],
        fixes: vec![Fix::advice(
            Actor::Provider,
            advice,
            "Segments are not retransmitted, and TCP carries what the line does.",
        )],
        kb: "loss".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::causes;
    use crate::experiment::tests::{carried_up, made, stream};
    use plumb_model::run::Run;

    /// What is found where datagrams at 0.8 and 1.4 times TCP's rate lose so much, and at 5.6 times a quarter; four flows of 2.1
    /// times, a ninth.
    fn found(below: f64, lost: f64) -> Vec<Cause> {
        let mut run = Run::from_json(include_str!("../fixtures/policer.json")).unwrap();
        let pps = carried_up(&run) / (1400.0 * 8.0);
        for (experiment, times, lost) in [
            (Experiment::Paced, 0.8, below),
            (Experiment::Overload, 1.4, lost),
            (Experiment::Overload, 5.6, 0.25),
        ] {
            let one = stream(experiment, times * pps, 1400);
            made(&mut run, one, (2.0 * times * pps) as u64, lost, 0.0001);
        }
        for _ in 0..4 {
            let each = stream(Experiment::ManyFlows, 2.1 * pps, 1400);
            made(&mut run, each, (4.2 * pps) as u64, 0.11, 0.0001);
        }
        let case = Case::of(&run);
        let kinds = [Cause::PerFlowLimit, Cause::Policer, Cause::ShallowQueue];
        let found = |cause: &Cause| !(causes::entry(*cause).examine)(&case).is_empty();
        kinds.into_iter().filter(found).collect()
    }

    #[test]
    fn what_takes_more_the_closer_packets_follow_each_other_is_a_short_queue() {
        assert_eq!(found(0.0, 0.04), [Cause::ShallowQueue]);
        assert!(found(0.0, 0.0).contains(&Cause::PerFlowLimit));
    }

    #[test]
    fn what_takes_packets_of_a_slow_stream_too_is_no_want_of_a_queue() {
        let found = found(0.03, 0.3);
        assert!(
            !found.contains(&Cause::ShallowQueue) && !found.contains(&Cause::Policer),
            "{found:?}"
        );
    }
}
