//! What QUIC carried, and its losses.

use plumb_model::context::Phase;
use plumb_model::results::quic::{QuicResult, QuicSender};
use plumb_model::run::Run;

use crate::compare::quantity::{ChangeUnit, Quantities, Quantity};
use crate::number;
use crate::phase::flow_in_phase;
use crate::registry::all;
use crate::show::{Place, Show, Tables};
use crate::table::{Table, blank};

impl Show for QuicResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let rows: Vec<Row<'_>> = all::<Self>(run).map(|f| (f.phase, f.result)).collect();
        tables.add(Place::Quic, [table(&rows)]);
    }

    fn phase(&self) -> Phase {
        self.direction.into()
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        Quantities::of(phase, "quic".to_owned())
            .direction(self.direction)
            .number("bps", ChangeUnit::Bps, self.bps)
            .number("steady_bps", ChangeUnit::Bps, self.steady_bps)
            .found
    }
}

type Row<'a> = (Phase, &'a QuicResult);

fn senders(result: &QuicResult) -> impl Iterator<Item = &QuicSender> {
    result.streams.iter().filter_map(|s| s.sender.as_ref())
}

/// The sum over the senders, where any is known.
fn sum(result: &QuicResult, of: fn(&QuicSender) -> u64) -> Option<u64> {
    senders(result).map(of).reduce(u64::saturating_add)
}

fn least(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::min)
}

fn most(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.reduce(f64::max)
}

/// Rates, and what the senders say of themselves; connections of a direction together.
fn table(rows: &[Row<'_>]) -> Table {
    let mut note = "Payload of streams, encrypted with TLS 1.3 in both programs; packets and round trips are QUIC's own; window: the largest congestion window, or plumb's own where that is smaller.".to_owned();
    for (phase, result) in rows {
        let own = result.streams.iter();
        let own = own.filter_map(|s| s.limiting_window_bytes()).max();
        note += &blank(own.map(|own| {
            format!(
                " {}: plumb's own window of {}, and not the path, limited a connection; more of them (--streams) carry more.",
                flow_in_phase(*phase, result.direction),
                number::bytes(own as f64)
            )
        }));
    }
    let streams = rows.iter().flat_map(|(_, result)| &result.streams);
    let mut errors = streams.filter_map(|s| s.error.as_deref());
    note += &blank(
        errors
            .next_back()
            .map(|why| format!(" A connection ended early: {why}.")),
    );
    Table::of("QUIC", rows)
        .text("", |(phase, r)| flow_in_phase(*phase, r.direction))
        .num("received", |(_, r)| r.bps.map(number::rate))
        .num("steady", |(_, r)| blank(r.steady_bps.map(number::rate)))
        .num("handshake", |(_, r)| {
            most(r.streams.iter().filter_map(|s| s.handshake_s)).map(number::seconds)
        })
        .text("cc", |(_, r)| r.cc.clone())
        .num("packets", |(_, r)| sum(r, |s| s.sent_packets))
        .num("lost", |(_, r)| sum(r, |s| s.lost_packets))
        .num("min RTT", |(_, r)| {
            least(senders(r).filter_map(|s| s.min_rtt_s)).map(number::seconds)
        })
        .num("max RTT", |(_, r)| {
            most(senders(r).filter_map(|s| s.max_rtt_s)).map(number::seconds)
        })
        .num("window", |(_, r)| {
            most(senders(r).map(|s| s.most_under_way_bytes() as f64)).map(number::bytes)
        })
        .num("datagram", |(_, r)| {
            least(senders(r).map(|s| s.datagram_bytes as f64)).map(number::bytes)
        })
        .num("CPU here", |(_, r)| r.cpu.local_ratio.map(number::percent))
        .num("CPU far", |(_, r)| r.cpu.remote_ratio.map(number::percent))
        .noted(note)
}
