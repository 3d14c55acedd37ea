//! What held TCP's senders back.

use plumb_model::run::{Measurement, Run};
use serde_json::Value;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::{self, ABSENT};
use crate::view;

/// Where the senders' time went, and the buffers that bound them.
pub(super) fn table(run: &Run) -> Table {
    let mut table = Table::new(
        "What held the senders back (share of time), and their buffers",
        &[
            ("", Text),
            ("network", Number),
            ("rwnd", Number),
            ("sndbuf", Number),
            ("app", Number),
            ("send buf", Number),
            ("recv buf", Number),
            ("window", Number),
        ],
    );
    let size =
        |value: Option<u64>| value.map_or_else(|| ABSENT.to_owned(), |v| number::bytes(v as f64));
    let mut notes: Vec<String> = Vec::new();
    for row in view::rates(run).iter().filter(|row| row.has_sender()) {
        let limited = row.result.tcp.limited;
        table.row([
            view::flow_in_phase(row.phase, row.result.direction),
            number::percent(limited.network_ratio),
            number::percent(limited.rwnd_ratio),
            number::percent(limited.sndbuf_ratio),
            number::percent(limited.app_ratio),
            size(row.result.tcp.send_buffer_bytes),
            size(row.result.tcp_receiver.receive_buffer_bytes),
            size(row.result.tcp_receiver.max_window_bytes),
        ]);
        let of_plumb = [
            paced_bps(row.measurement).map(|bps| {
                format!(
                    "Streams were paced at {} each (--pacing): TCP counts waiting for that as network.",
                    number::rate(bps)
                )
            }),
            is_rpm(row.measurement).then(|| {
                "With --rpm plumb itself leaves hardly anything unsent in the socket (TCP_NOTSENT_LOWAT), so that requests do not wait there: that is 'app', and does not slow a stream down."
                    .to_owned()
            }),
        ];
        for note in of_plumb.into_iter().flatten() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
    }
    table.note = (!notes.is_empty()).then(|| notes.join(" "));
    table
}

/// The pacing that was asked for, where all streams were alike.
fn paced_bps(measurement: &Measurement) -> Option<f64> {
    measurement.params.get("pacing_bps").and_then(Value::as_f64)
}

fn is_rpm(measurement: &Measurement) -> bool {
    measurement.params.get("shape").and_then(Value::as_str) == Some("rpm")
}
