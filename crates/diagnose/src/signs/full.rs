//! Whether a load keeps the line full, and what it loses by that.

use plumb_model::context::Experiment;
use plumb_model::distribution::Distribution;
use plumb_model::loss::{at_least_ratio, at_most_ratio};
use plumb_model::results::Direction;

use crate::evidence::{Carried, Streamed};
use crate::loss::LOSS_WARNING;
use crate::{Case, lengths};

/// Below this share of segments retransmitted, they hardly hold TCP back ([`LOSS_WARNING`]).
pub(super) const NEGLIGIBLE_RATIO: f64 = LOSS_WARNING;

/// A queue stands where TCP's round trip stays this share of the empty path's above it in three
/// quarters of the time, and at least [`LEAST_QUEUE_S`] and [`QUEUE_PACKETS`].
const QUEUE_RATIO: f64 = 0.1;

/// In seconds: what scheduling at both ends adds without a queue.
const LEAST_QUEUE_S: f64 = 0.001;

/// Full packets: a delayed acknowledgement waits for a second one, and a policer lets bursts pass.
const QUEUE_PACKETS: f64 = 3.0;

/// With fewer segments than these in flight a loss leaves less than four: too few for a fast retransmission (RFC 5681,
/// section 3.2), and often without a second one that a receiver would acknowledge at once. It then waits so long, in
/// seconds (`TCP_ATO_MIN` of Linux `include/net/tcp.h`), which is no queue.
const FEW_SEGMENTS: f64 = 8.0;
const DELAYED_ACK_S: f64 = 0.040;

/// The slow seconds (5th percentile) of a line that is full carry this share of its fast ones (95th): in
/// the laboratory 0.92 to 0.99 with every kind of queue, and 0.6 to 0.7 where 6 % are lost at random.
pub(crate) const FULL_RATIO: f64 = 0.8;

/// What TCP carries of a full line, against datagrams: its headers are 2 % larger, and it begins slowly.
const OF_LINE_RATIO: f64 = 0.9;

/// Losses that keep the window of a stream at W segments are 1.5 / W² of them (Mathis et al., 1997), which
/// CUBIC keeps to at small windows (RFC 9438, section 4.3). In the laboratory queues of every kind lost
/// 0.4 to 1.6 times as many.
const NEEDED: f64 = 1.5;

/// At large windows CUBIC loses more: its window is that many times (RTT / p)^(3/4) in the mean (RFC 9438, section 5.1,
/// equation 7), with the round trip in seconds.
const CUBIC_WINDOW: f64 = 1.054;
const CUBIC: &str = "cubic";
pub(super) const NEEDED_TIMES: f64 = 2.0;

/// So many times that where datagrams show that only the full line loses: one whose delay varies ends more windows at a time.
const NEEDED_TIMES_WHEN_FULL: f64 = 4.0;

/// Datagrams that the line has room for lose at most this share of what TCP retransmits then.
const WITH_ROOM_RATIO: f64 = 0.5;

/// A window of fewer segments than these is one of timeouts (RFC 5681, section 3.2): what it loses follows no rule.
const FAST_RETRANSMIT_SEGMENTS: f64 = 4.0;

/// Whether the load keeps a queue of its own filled all the time.
pub(crate) fn queue_stands(carried: Carried<'_>) -> bool {
    let Some(least) = carried.result.tcp.min_rtt_s else {
        return false;
    };
    let waits_s = LEAST_QUEUE_S
        .max(QUEUE_RATIO * least)
        .max(QUEUE_PACKETS * carried.packet_s());
    let few = carried.window_segments().is_some_and(|w| w < FEW_SEGMENTS);
    let by_receiver_s = if few { DELAYED_ACK_S } else { 0.0 };
    let queue = carried.queue_s();
    queue.is_some_and(|queue| queue.p25 >= waits_s + by_receiver_s)
}

/// Whether the middle one of the load's own packets waits longer than scheduling and a delayed acknowledgement take: a line that
/// drops at once what exceeds it lets none wait.
pub(crate) fn waits(carried: Carried<'_>) -> bool {
    let waits_s = LEAST_QUEUE_S.max(QUEUE_PACKETS * carried.packet_s());
    carried.queue_s().is_some_and(|queue| queue.p50 >= waits_s)
}

/// Whether packets wait in the direction of the load, and not only acknowledgements in the other; true where that is unknown.
pub(crate) fn waits_there(case: &Case<'_>, direction: Direction) -> bool {
    let loaded = case.loaded(direction);
    let waited = loaded.and_then(|loaded| loaded.waited_s(direction));
    waited.is_none_or(|waited| waited.p50 >= LEAST_QUEUE_S)
}

/// Whether probes beside the load pass as if the line were free: they wait no longer, in that percentile of them, than the middle
/// one does on the idle path. The line has room left then, or a fair queue keeps the probes apart from the load, and TCP's own
/// round trips say nothing of the difference: streams that wait for a window send in bursts, which queue for a moment. Unknown
/// where the clocks could not be compared.
fn probes_pass(
    case: &Case<'_>,
    carried: Carried<'_>,
    percentile: fn(&Distribution) -> f64,
) -> Option<bool> {
    let direction = carried.result.direction;
    let waited = case.loaded(direction)?.waited_s(direction)?;
    let idle = case.idle().and_then(|idle| idle.waited_s(direction));
    let idle_s = idle.map_or(0.0, |idle| idle.p50);
    let allowed_s = LEAST_QUEUE_S.max(QUEUE_PACKETS * carried.packet_s());
    Some(percentile(&waited) < idle_s + allowed_s)
}

/// Whether it shows that the line carries no more than the load did. Datagrams above its rate carried no more, or where
/// there were none, round trips of TCP and of probes both show a queue that never empties.
pub(crate) fn is_line_known_full(case: &Case<'_>, carried: Carried<'_>) -> bool {
    match case.line_bps(carried.result.direction) {
        Some(line_bps) => carried.bps() >= OF_LINE_RATIO * line_bps,
        None => queue_stands(carried) && !probes_pass(case, carried, |w| w.p5).unwrap_or(false),
    }
}

/// Whether the load keeps the line full: it carried what datagrams above the line's rate did, and they waited; or where there
/// were none, a queue stands, and so the rate is steady. A line that drops at once what exceeds it has no queue to fill.
pub(super) fn is_full(case: &Case<'_>, carried: Carried<'_>) -> bool {
    let direction = carried.result.direction;
    if let Some(line_bps) = case.line_bps(direction) {
        let above = || case.streamed(Experiment::Overload, direction);
        if above().any(Streamed::is_cut_at_once) {
            return false;
        }
        // A queue for each flow makes TCP wait, and no probe.
        let waited =
            |above: Streamed<'_>| above.is_queued() || !above.has_own_delays() && waits(carried);
        let waits = queue_stands(carried) || above().any(waited);
        return waits && carried.bps() >= OF_LINE_RATIO * line_bps;
    }
    let steady = carried
        .seconds_bps()
        .is_some_and(|rate| rate.p5 >= FULL_RATIO * rate.p95);
    // A quarter of the probes in an empty queue: TCP leaves a line empty for a tenth of the time where its queue is short.
    steady
        && queue_stands(carried)
        && !probes_pass(case, carried, |waited| waited.p25).unwrap_or(false)
}

/// Whether the load's own full queue accounts for what is retransmitted, or it is too little to matter.
pub(super) fn is_explained_by_load(case: &Case<'_>, carried: Carried<'_>) -> Option<bool> {
    let segments = carried.segments()?;
    if segments.ratio() <= NEGLIGIBLE_RATIO {
        return Some(true);
    }
    let again = (segments.again - carried.overshoot_segments()).max(0.0);
    // A load too short to clear anything loses a few by chance.
    let ratio = match carried.measurement.duration_s < lengths::QUEUE_S {
        true => at_least_ratio(segments.sent as u64, again as u64),
        false => again / segments.sent.max(1.0),
    };
    let only_when_full = only_when_full(case, carried, segments.ratio());
    let times = match only_when_full {
        true => NEEDED_TIMES_WHEN_FULL,
        false => NEEDED_TIMES,
    };
    // On a slow line a managed queue holds a packet or two of each stream, and that they wait does not show.
    let holds_few = |window: f64| {
        window < FAST_RETRANSMIT_SEGMENTS && only_when_full && is_line_known_full(case, carried)
    };
    if carried.window_segments().is_some_and(holds_few) {
        return Some(true);
    }
    let is_needed =
        |window: f64| window < FAST_RETRANSMIT_SEGMENTS || ratio <= times * needed(carried, window);
    Some(is_full(case, carried) && carried.window_segments().is_some_and(is_needed))
}

/// The share of segments that streams of such windows lose at most to learn that the line is full.
pub(crate) fn needed_ratio(carried: Carried<'_>) -> Option<f64> {
    let window = carried.window_segments()?;
    Some(NEEDED_TIMES * needed(carried, window))
}

/// The share of segments that a stream loses whose window is so many segments in the mean.
fn needed(carried: Carried<'_>, window: f64) -> f64 {
    let least = NEEDED / window.powi(2);
    if carried.result.cc != CUBIC {
        return least;
    }
    let rtt_s = carried.rtt_s() + carried.queue_s().map_or(0.0, |queue| queue.mean);
    least.max(rtt_s * (CUBIC_WINDOW / window).powf(4.0 / 3.0))
}

/// Whether what is retransmitted is enough to keep windows as small as they are: a long path needs few losses for that.
pub(crate) fn is_held_by_losses(carried: Carried<'_>) -> bool {
    let again = carried.segments().map_or(0.0, |segments| segments.ratio());
    let holds = |window: f64| again >= NEEDED / NEEDED_TIMES_WHEN_FULL / window.powi(2);
    carried.window_segments().is_some_and(holds)
}

/// Whether datagrams show what the line carries, and that it loses hardly any of those that it has room for.
fn only_when_full(case: &Case<'_>, carried: Carried<'_>, ratio: f64) -> bool {
    let direction = carried.result.direction;
    let (sent, lost) = case.counted_with_room(direction);
    let loses_less =
        lost as f64 <= WITH_ROOM_RATIO * ratio * sent as f64 && at_most_ratio(sent, lost) < ratio;
    case.line_bps(direction).is_some() && sent > 0 && loses_less
}
