//! What QUIC carried.

use plumb_model::results::Outcome;
use plumb_model::results::quic::{QuicResult, QuicSender};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::{self, ABSENT};
use crate::view::{self, Phase};

/// Rates, and what the senders say of themselves; connections of a direction together.
pub(super) fn table(run: &Run) -> Table {
    let mut table = Table::new(
        "QUIC",
        &[
            ("", Text),
            ("received", Number),
            ("steady", Number),
            ("handshake", Number),
            ("cc", Text),
            ("packets", Number),
            ("lost", Number),
            ("min RTT", Number),
            ("max RTT", Number),
            ("window", Number),
            ("datagram", Number),
            ("CPU here", Number),
            ("CPU far", Number),
        ],
    );
    let (mut limited, mut errors) = (Vec::new(), Vec::new());
    for (phase, result) in results(run) {
        let senders = || result.streams.iter().filter_map(|s| s.sender.as_ref());
        let sum = |of: fn(&QuicSender) -> u64| match senders().next() {
            Some(_) => senders().map(of).sum::<u64>().to_string(),
            None => ABSENT.to_owned(),
        };
        let or_absent = |value: Option<f64>, show: fn(f64) -> String| {
            value.map_or_else(|| ABSENT.to_owned(), show)
        };
        let least = |values: Vec<f64>| values.into_iter().reduce(f64::min);
        let most = |values: Vec<f64>| values.into_iter().reduce(f64::max);
        let rtts = |of: fn(&QuicSender) -> Option<f64>| senders().filter_map(of).collect();
        table.row([
            view::flow_in_phase(phase, result.direction),
            or_absent(result.bps, number::rate),
            result.steady_bps.map_or_else(String::new, number::rate),
            or_absent(
                most(
                    result
                        .streams
                        .iter()
                        .filter_map(|s| s.handshake_s)
                        .collect(),
                ),
                number::seconds,
            ),
            result.cc.clone(),
            sum(|s| s.sent_packets),
            sum(|s| s.lost_packets),
            or_absent(least(rtts(|s| s.min_rtt_s)), number::seconds),
            or_absent(most(rtts(|s| s.max_rtt_s)), number::seconds),
            or_absent(
                most(senders().map(|s| s.most_under_way_bytes() as f64).collect()),
                number::bytes,
            ),
            or_absent(
                least(senders().map(|s| s.datagram_bytes as f64).collect()),
                number::bytes,
            ),
            number::percent(result.cpu.local_ratio),
            or_absent(result.cpu.remote_ratio, number::percent),
        ]);
        let own = result
            .streams
            .iter()
            .filter_map(|s| s.limiting_window_bytes());
        limited.extend(own.max().map(|own| {
            format!(
                " {}: plumb's own window of {}, and not the path, limited a connection; more of them (--streams) carry more.",
                view::flow_in_phase(phase, result.direction),
                number::bytes(own as f64)
            )
        }));
        errors.extend(result.streams.iter().filter_map(|s| s.error.as_deref()));
    }
    let failed = errors.last().map_or_else(String::new, |why| {
        format!(" A connection ended early: {why}.")
    });
    table.note = (!table.rows.is_empty()).then(|| {
        format!(
            "Payload of streams, encrypted with TLS 1.3 in both programs; packets and round trips are QUIC's own; window: the largest congestion window, or plumb's own where that is smaller.{}{failed}",
            limited.concat()
        )
    });
    table
}

fn results(run: &Run) -> impl Iterator<Item = (Phase, &QuicResult)> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Quic(result) => Some((Phase::of(m), &**result)),
        _ => None,
    })
}
