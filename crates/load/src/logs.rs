//! What both ends recorded of one direction of a phase.

use std::collections::BTreeSet;
use std::ops::Range;

use plumb_model::results::{CpuUse, Direction, TlsResult};
use plumb_wire::native::control::report::{Count, ReceiverLog, SenderLog, TcpSample};

/// The logs of one direction, and which part of them is the phase.
#[derive(Debug, Clone, Copy)]
pub struct DirectionLogs<'a> {
    /// Direction of the data.
    pub direction: Direction,
    pub senders: &'a [SenderLog],
    pub receivers: &'a [ReceiverLog],
    /// The numbers of the streams of each group of equal ones.
    pub groups: &'a [Range<u32>],
    /// How long the phase took.
    pub duration_s: f64,
    /// What the receiver's clock shows when the first byte can come: zero for a download, and
    /// one round trip for an upload, whose server starts its clock as it says "started".
    pub receiver_shift_s: f64,
    /// The phase ended because all its payload had arrived, so all that was counted belongs to
    /// it, even where the clocks of the ends are some milliseconds apart.
    pub all_arrived: bool,
    /// Processor use of both ends.
    pub cpu: CpuUse,
    /// Set when the streams are encrypted: records are what TCP carries.
    pub tls: Option<&'a TlsResult>,
}

/// Payload that the receiver had acknowledged since the first sample, out of order included.
pub(crate) fn acknowledged(samples: &[TcpSample]) -> Vec<Count> {
    let first = samples.first().map_or(0, |sample| sample.bytes_acked);
    let count = |sample: &TcpSample| Count {
        t_s: sample.t_s,
        bytes: sample
            .bytes_acked
            .saturating_sub(first)
            .saturating_add(sample.sacked_bytes),
        ..Count::default()
    };
    samples.iter().map(count).collect()
}

/// The algorithms that ran.
pub(crate) fn congestion_controls<'a>(senders: impl Iterator<Item = &'a SenderLog>) -> String {
    let names: BTreeSet<_> = senders
        .map(|log| log.tail.cc.as_str())
        .filter(|cc| !cc.is_empty())
        .collect();
    names.into_iter().collect::<Vec<_>>().join(", ")
}

/// Bytes counted at an instant, linear between the records.
pub fn count_at(counts: &[Count], t_s: f64) -> f64 {
    let after = counts.partition_point(|count| count.t_s <= t_s);
    let next = counts.get(after);
    match (
        after.checked_sub(1).and_then(|before| counts.get(before)),
        next,
    ) {
        (Some(before), Some(next)) if next.t_s > before.t_s => {
            let share = (t_s - before.t_s) / (next.t_s - before.t_s);
            before.bytes as f64 + next.bytes.saturating_sub(before.bytes) as f64 * share
        }
        (Some(before), _) => before.bytes as f64,
        // Before the first record nothing is known to have come.
        (None, _) => 0.0,
    }
}
