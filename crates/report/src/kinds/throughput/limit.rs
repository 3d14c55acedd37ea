//! What limited a rate, in one sentence.

use plumb_model::results::Direction;
use plumb_model::units::capital;

use crate::phase::flow;
use crate::registry::ThroughputRow as Row;
use crate::{context, number};

/// Of one core, from here on the processor is what a stream waits for.
const BUSY_RATIO: f64 = 0.9;

/// How many times the fastest round trip the slowest is where the load fills a queue.
const QUEUED: f64 = 1.5;

/// The rate and what limited it; `None` where the sender's record is missing.
pub(super) fn sentence(row: &Row<'_>) -> Option<String> {
    let result = row.result;
    let flow = capital(flow(result.direction));
    let rate = number::rate(result.bps);
    // It goes missing with a far end that goes away.
    let has_sender = !result.cc.is_empty();
    let why = has_sender.then(|| limit(row))?;
    Some(format!("{flow} {rate}, limited by {why}."))
}

fn limit(row: &Row<'_>) -> String {
    let (result, of_time) = (row.result, &row.result.tcp.limited);
    let (sender, receiver) = match result.direction {
        Direction::Up => ("this host", "the far host"),
        _ => ("the far host", "this host"),
    };
    if let Some(bps) = context::pacing_bps(row.measurement) {
        return format!(
            "the pacing that was asked for ({} each stream)",
            number::rate(bps)
        );
    }
    if result.files.is_some_and(|files| files.limits()) {
        return "the disk: more than half of the time a file was waited for".to_owned();
    }
    let streams = result.streams.len().max(1) as f64;
    let busy = |ratio: f64| ratio >= BUSY_RATIO * streams.min(2.0);
    if busy(result.cpu.local_ratio) {
        return format!(
            "the processor of this host ({} of a core)",
            number::percent(result.cpu.local_ratio)
        );
    }
    if let Some(ratio) = result.cpu.remote_ratio.filter(|ratio| busy(*ratio)) {
        return format!(
            "the processor of the far host ({} of a core)",
            number::percent(ratio)
        );
    }
    let shares = [
        (of_time.network_ratio, 0),
        (of_time.rwnd_ratio, 1),
        (of_time.sndbuf_ratio, 2),
        (of_time.app_ratio, 3),
    ];
    let (ratio, which) = shares
        .into_iter()
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .unwrap_or_default();
    let time = number::percent(ratio);
    let size = |bytes: Option<u64>| {
        bytes.map_or_else(String::new, |bytes| {
            format!(" ({})", number::bytes(bytes as f64))
        })
    };
    match which {
        1 => format!(
            "the receive buffer of {receiver}{}: the sender waited for it {time} of the time",
            size(result.tcp_receiver.receive_buffer_bytes)
        ),
        2 => format!(
            "the send buffer of {sender}{}: it was full {time} of the time",
            size(result.tcp.send_buffer_bytes)
        ),
        3 => format!("the program on {sender}: it had nothing to send {time} of the time"),
        _ => format!("the path {time} of the time{}", of_path(row)),
    }
}

/// How the path showed its limit.
fn of_path(row: &Row<'_>) -> String {
    let tcp = &row.result.tcp;
    let again = match tcp.retransmits {
        0 => "no segment was sent again".to_owned(),
        1 => "1 segment was sent again".to_owned(),
        many => format!("{many} segments were sent again"),
    };
    let grown = tcp.min_rtt_s.zip(tcp.max_srtt_s);
    let queue = grown.map_or_else(String::new, |(min, max)| match max > QUEUED * min {
        true => format!(
            "round trips grew from {} to {} in its queue, ",
            number::seconds(min),
            number::seconds(max)
        ),
        false => "no queue grew, ".to_owned(),
    });
    format!(": {queue}{again}")
}
