//! What limited a rate, in one sentence.

use plumb_diagnose::limit::{Limit, limit};
use plumb_model::results::Direction;
use plumb_model::run::Measurement;
use plumb_model::units::capital;

use crate::number;
use crate::phase::flow;

/// Share of the time from which on one cause limits a rate; below it the largest of several is named as that.
const ONE_CAUSE_RATIO: f64 = 0.5;

/// The rate and what limited it; `None` where the sender's record is missing. `others` is what the round trips of other
/// packets grew by meanwhile, in seconds.
pub(super) fn sentence(measurement: &Measurement, others: Option<f64>) -> Option<String> {
    let result = measurement.outcome.throughput()?;
    let limit = limit(measurement)?;
    let why = words(measurement, limit, others)?;
    let flow = capital(flow(result.direction));
    let rate = number::rate(result.bps);
    Some(match limit.ratio() > ONE_CAUSE_RATIO {
        true => format!("{flow} {rate}, limited by {why}."),
        false => format!("{flow} {rate}, limited by no one cause, mostly by {why}."),
    })
}

fn words(measurement: &Measurement, limit: Limit, others: Option<f64>) -> Option<String> {
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
            queue(queue_s, others),
            sent_again(result.tcp.retransmits)
        ),
    })
}

/// Whose round trips grew: a line that manages its queue lets a flow wait for itself alone.
fn queue(queue_s: Option<(f64, f64)>, others: Option<f64>) -> String {
    let Some((least, most)) = queue_s else {
        return "no queue grew".to_owned();
    };
    let own = format!(
        "its own round trips grew from {} to {}",
        number::seconds(least),
        number::seconds(most)
    );
    let others = others.map(|s| format!(", other packets' by {}", number::seconds(s)));
    own + &others.unwrap_or_default()
}

fn sent_again(segments: u64) -> String {
    match segments {
        0 => "no segment was retransmitted".to_owned(),
        1 => "1 segment was retransmitted".to_owned(),
        many => format!("{many} segments were retransmitted"),
    }
}
