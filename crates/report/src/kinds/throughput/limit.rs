//! What limited a rate, in one sentence.

use plumb_diagnose::limit::{Limit, limit};
use plumb_model::results::Direction;
use plumb_model::run::Measurement;
use plumb_model::units::capital;

use crate::number;
use crate::phase::flow;

/// The rate and what limited it; `None` where the sender's record is missing.
pub(super) fn sentence(measurement: &Measurement) -> Option<String> {
    let result = measurement.outcome.throughput()?;
    let why = words(measurement, limit(measurement)?)?;
    let flow = capital(flow(result.direction));
    let rate = number::rate(result.bps);
    Some(format!("{flow} {rate}, limited by {why}."))
}

fn words(measurement: &Measurement, limit: Limit) -> Option<String> {
    let result = measurement.outcome.throughput()?;
    let (sender, receiver) = match result.direction {
        Direction::Up => ("this host", "the far host"),
        _ => ("the far host", "this host"),
    };
    let share = number::percent;
    let size = |bytes: Option<u64>| {
        bytes.map_or_else(String::new, |bytes| {
            format!(" ({})", number::bytes(bytes as f64))
        })
    };
    Some(match limit {
        Limit::Pacing(bps) => format!(
            "the pacing that was asked for ({} each stream)",
            number::rate(bps)
        ),
        Limit::Disk => "the disk: more than half of the time a file was waited for".to_owned(),
        Limit::ProcessorHere(ratio) => {
            format!("the processor of this host ({} of a core)", share(ratio))
        }
        Limit::ProcessorThere(ratio) => {
            format!("the processor of the far host ({} of a core)", share(ratio))
        }
        Limit::ReceiveBuffer(ratio) => format!(
            "the receive buffer of {receiver}{}: the sender waited for it {} of the time",
            size(result.tcp_receiver.receive_buffer_bytes),
            share(ratio)
        ),
        Limit::SendBuffer(ratio) => format!(
            "the send buffer of {sender}{}: it was full {} of the time",
            size(result.tcp.send_buffer_bytes),
            share(ratio)
        ),
        Limit::Program(ratio) => format!(
            "the program on {sender}: it had nothing to send {} of the time",
            share(ratio)
        ),
        Limit::Path { ratio, queue_s } => format!(
            "the path {} of the time: {}, {}",
            share(ratio),
            queue(queue_s),
            sent_again(result.tcp.retransmits)
        ),
    })
}

fn queue(queue_s: Option<(f64, f64)>) -> String {
    queue_s.map_or_else(
        || "no queue grew".to_owned(),
        |(least, most)| {
            format!(
                "round trips grew from {} to {} in its queue",
                number::seconds(least),
                number::seconds(most)
            )
        },
    )
}

fn sent_again(segments: u64) -> String {
    match segments {
        0 => "no segment was retransmitted".to_owned(),
        1 => "1 segment was retransmitted".to_owned(),
        many => format!("{many} segments were retransmitted"),
    }
}
