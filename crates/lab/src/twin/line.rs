//! The line of each direction: its rate, and the queue before it.

use plumb_model::finding::{Cause, Finding, Place};
use plumb_model::units::{human_seconds, si};

use super::draft::{Draft, Link, Order};
use super::measured::{Directed, Measured, RATES_BPS, WAITS_S};
use super::write;

/// Where only a lower bound of a line is known it is so many times as fast, so that it does not hold back what did not hold
/// back the original.
const ROOM_TIMES: f64 = 4.0;

/// From this share lost on, datagrams above the rate were cut down to what the line carries.
const CUT_RATIO: f64 = 0.1;

/// Less than this, in seconds, no queue of a measured path holds.
const LEAST_QUEUE_S: f64 = 0.001;

/// Fewer packets than these leave no place for a packet beside the one being sent.
const LEAST_PACKETS: f64 = 2.0;

/// Probes that wait less than this share of what TCP's own packets wait, pass them in queues of their own.
const APART_RATIO: f64 = 0.4;

/// From this share on that TCP sent again, its queue was full at times.
const OVERFLOWS_RATIO: f64 = 1e-4;

/// From this share on, most of what probes waited was on the way to the gateway.
const LOCAL_RATIO: f64 = 0.5;

/// Causes by which TCP carried less than the line: its loss, or a limit that is no line.
const HELD_BY: [Cause; 10] = [
    Cause::PathLoss,
    Cause::Corruption,
    Cause::Policer,
    Cause::ShallowQueue,
    Cause::QueueTargetLow,
    Cause::PerFlowLimit,
    Cause::PacketRateLimited,
    Cause::UnequalPaths,
    Cause::Reordering,
    Cause::PmtudBlackHole,
];

/// What the line itself carries, in bit/s of payload, and how that is known.
struct Rate {
    payload_bps: f64,
    why: String,
    /// Whether it may be more.
    at_least: bool,
}

pub(super) fn put(measured: &Measured<'_>, draft: &mut Draft) {
    for directed in measured.directions() {
        let local = is_local(directed);
        let rate = rate(measured, directed);
        if rate.at_least {
            draft.unknown(format!(
                "the line's rate of {}loads: {}",
                directed.direction.name(),
                rate.why
            ));
        }
        let schedule = schedule(measured, directed);
        let setting = match (&schedule, bucket(measured, directed)) {
            (Some(schedule), _) => schedule.clone(),
            (None, Some(bucket)) => bucket,
            (None, None) => format!("rate = \"{}\"", wire(directed, rate.payload_bps)),
        };
        let (queue, why) = queue(measured, directed, draft);
        let toml = format!("{{ type = \"shaper\", {setting}, queue = {queue} }}");
        let link = match local {
            true => Link::Lan,
            false => Link::Line,
        };
        draft.put(
            link,
            directed.direction,
            Order::Queue,
            toml,
            format!("{} {why}", rate.why),
        );
        if local {
            let faster = rate.payload_bps * ROOM_TIMES;
            let toml = format!(
                "{{ type = \"shaper\", rate = \"{}\" }}",
                wire(directed, faster)
            );
            let why =
                "Faster than the local segment, whose queue was full before this one could be.";
            draft.put(Link::Line, directed.direction, Order::Queue, toml, why);
            draft.unknown(format!(
                "the line's rate of {}loads: the local segment is slower",
                directed.direction.name()
            ));
        }
    }
    draft.unknown(
        "what the line adds to each packet: rates here are of IP packets, and small packets cost as little as their bytes",
    );
}

/// The rate of a shaper that carries so much payload, within what a lab's lines carry.
fn wire(directed: &Directed<'_>, payload_bps: f64) -> String {
    let [least, most] = RATES_BPS;
    write::rate(directed.ip_bps(payload_bps).clamp(least, most))
}

/// Whether most of what probes waited was between this host and its gateway.
pub(super) fn is_local(directed: &Directed<'_>) -> bool {
    directed.loaded.is_some_and(|loaded| {
        let whole = loaded.increase_s.p95;
        let local = loaded.local_s.unwrap_or(0.0);
        whole >= WAITS_S && local >= LOCAL_RATIO * whole
    })
}

/// Why TCP carried less than the line. Where a queue stood the line was full, whatever else it lost.
fn held_by<'a>(measured: &Measured<'a>, directed: &Directed<'_>) -> Option<&'a Finding> {
    if directed.queue_stood() && directed.payload_bps > 0.0 {
        return None;
    }
    let there = Place::line(directed.direction.into());
    let mut all = measured.run.findings.iter();
    all.find(|finding| {
        let elsewhere = matches!(finding.place, Place::Uplink | Place::Downlink);
        let is_here = finding.place == there || !elsewhere && OF_A_PATH.contains(&finding.cause);
        // Segments that pass carry what the line does.
        let passes = finding.cause == Cause::PmtudBlackHole && directed.payload_bps > 0.0;
        is_here && HELD_BY.contains(&finding.cause) && !passes
    })
}

/// Causes of [`HELD_BY`] that may be in either direction where their place is not a line.
const OF_A_PATH: [Cause; 4] = [
    Cause::PathLoss,
    Cause::Corruption,
    Cause::Reordering,
    Cause::PmtudBlackHole,
];

fn rate(measured: &Measured<'_>, directed: &Directed<'_>) -> Rate {
    let carried = si(directed.payload_bps, "bit/s");
    let held = held_by(measured, directed);
    if !directed.held_by_window && held.is_none() {
        return Rate {
            payload_bps: directed.payload_bps,
            why: format!("TCP carried {carried} of payload."),
            at_least: false,
        };
    }
    let by = match held {
        Some(finding) => format!("{} held TCP back", finding.cause.name()),
        None => "a window or buffer held TCP back".to_owned(),
    };
    match directed.above {
        Some(above) if above.loss_ratio >= CUT_RATIO && is_cut_by_line(held) => Rate {
            payload_bps: above.bps * above.ip_ratio / directed.ip_ratio,
            why: format!(
                "TCP carried {carried} of payload, and {by}; faster datagrams were cut down to {}.",
                si(above.bps, "bit/s")
            ),
            at_least: false,
        },
        _ => Rate {
            payload_bps: directed.most_bps * ROOM_TIMES,
            why: format!(
                "it is at least {}, because {by}; here it is {ROOM_TIMES} times that.",
                si(directed.most_bps, "bit/s")
            ),
            at_least: true,
        },
    }
}

/// Whether what cut datagrams down was the line: a policer and limits of flows and packets are cells of their own.
fn is_cut_by_line(held: Option<&Finding>) -> bool {
    let others = [
        Cause::Policer,
        Cause::PerFlowLimit,
        Cause::PacketRateLimited,
    ];
    held.is_none_or(|finding| !others.contains(&finding.cause))
}

/// The queue before the line, as TOML, and what it follows from.
fn queue(measured: &Measured<'_>, directed: &Directed<'_>, draft: &mut Draft) -> (String, String) {
    if measured
        .finding_of(Cause::ShallowQueue, directed.direction)
        .is_some()
    {
        let packets = shallow_packets(directed);
        draft.unknown(format!(
            "how the path spaces the packets of {}loads: with a queue of so few packets what TCP carries depends on it, and the twin may carry half as much more or less",
            directed.direction.name()
        ));
        return (
            format!("{{ type = \"fifo\", limit = \"{packets:.0}p\" }}"),
            format!("Datagrams above the rate found a queue of {packets:.0} packets."),
        );
    }
    let name = directed.direction.name();
    let rtt_s = measured.idle.rtt_s.p50;
    let own_s = directed.own_wait_s.unwrap_or(0.0);
    let Some(loaded) = directed.loaded else {
        draft.unknown(format!(
            "the queue of {name}loads: no probes went beside them; it holds one round trip here"
        ));
        return (fifo(rtt_s), "No probes went beside the load.".to_owned());
    };
    let increase = loaded.increase_s;
    let waited = human_seconds(increase.p95);
    if own_s >= WAITS_S && increase.p95 < APART_RATIO * own_s {
        return (
            "\"fq_codel\"".to_owned(),
            format!(
                "Probes waited {waited} where TCP's own packets waited up to {}: each flow has a queue.",
                human_seconds(own_s)
            ),
        );
    }
    if directed.held_by_window || held_by(measured, directed).is_some() {
        draft.unknown(format!(
            "the queue of {name}loads: nothing filled it; it holds one round trip here"
        ));
        return (
            fifo(rtt_s.max(increase.max)),
            format!("Nothing filled the queue: probes waited {waited}."),
        );
    }
    if directed.again_ratio < OVERFLOWS_RATIO {
        draft.unknown(format!(
            "the queue of {name}loads: it did not overflow while probes waited up to {}; it holds twice that here",
            human_seconds(increase.max)
        ));
        let why = format!("Probes waited up to {waited}, and the queue did not overflow.");
        return (fifo(2.0 * increase.max), why);
    }
    (
        fifo(increase.p99),
        format!("It overflowed, and probes waited up to {waited}."),
    )
}

fn fifo(seconds: f64) -> String {
    let limit = write::time(seconds.clamp(LEAST_QUEUE_S, LONGEST_QUEUE_S));
    format!("{{ type = \"fifo\", limit = \"{limit}\" }}")
}

/// No queue of a path is longer, in seconds.
const LONGEST_QUEUE_S: f64 = 60.0;

/// How many packets the queue holds, from how much later nearly all datagrams above the rate came than those below it: the last one
/// waits for all others.
fn shallow_packets(directed: &Directed<'_>) -> f64 {
    let waited = directed
        .above
        .zip(directed.below)
        .and_then(|(above, below)| {
            let late_s = above.late_s?.p95 - below.late_s?.p50;
            Some(late_s / above.packet_s)
        });
    let waited = waited.filter(|packets| packets.is_finite()).unwrap_or(0.0);
    (waited.round() + 1.0).clamp(LEAST_PACKETS, MOST_PACKETS)
}

/// A queue of more packets is not a shallow one.
const MOST_PACKETS: f64 = 1000.0;

/// The rates of a line that is given out anew from second to second, as it was seen.
fn schedule(measured: &Measured<'_>, directed: &Directed<'_>) -> Option<String> {
    let varies = [Cause::RateVaries, Cause::RadioScheduling];
    let mut found = varies.into_iter();
    found.find_map(|cause| measured.finding_of(cause, directed.direction))?;
    let seconds = directed.seconds_bps();
    if seconds.len() < 2 {
        return None;
    }
    let steps = seconds
        .iter()
        .take(MOST_STEPS)
        .enumerate()
        .map(|(at, bps)| format!("{{ at = \"{at}s\", rate = \"{}\" }}", wire(directed, *bps)));
    let steps: Vec<String> = steps.collect();
    Some(format!(
        "schedule = [{}], period = \"{}s\"",
        steps.join(", "),
        steps.len()
    ))
}

/// More seconds than these are of no phase of a check.
const MOST_STEPS: usize = 300;

/// A bucket that lets the first seconds pass faster.
fn bucket(measured: &Measured<'_>, directed: &Directed<'_>) -> Option<String> {
    let found = measured.finding_of(Cause::TokenBucket, directed.direction)?;
    let first = found.evidence.first()?;
    let (high_bps, low_bps) = (first.value.number()?, first.threshold.number()?);
    let is_fall = low_bps > 0.0 && high_bps > low_bps && high_bps.is_finite();
    let middle_bps = (high_bps + low_bps) / 2.0;
    let (begins_s, _) = directed.rates.first()?;
    // What came before slow start was over was fast as well.
    let (until_s, _) = directed.rates.iter().find(|(_, bps)| *bps < middle_bps)?;
    let fast_s = until_s.max(*begins_s);
    let bucket_bytes = directed.ip_bps(high_bps - low_bps) * fast_s / 8.0;
    (is_fall && bucket_bytes <= MOST_BUCKET_BYTES).then(|| {
        format!(
            "rate = \"{}\", peak_rate = \"{}\", burst = \"{}\"",
            wire(directed, low_bps),
            wire(directed, high_bps),
            write::bytes(bucket_bytes)
        )
    })
}

/// The most that a lab's bucket holds, in bytes (`plumb explain cells`).
const MOST_BUCKET_BYTES: f64 = 1e9;
