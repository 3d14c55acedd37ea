//! Requests and their answers.

use plumb_model::context::Phase;
use plumb_model::results::TransactionsResult;
use plumb_model::run::Run;

use crate::compare::quantity::{ChangeUnit, LATENCY, Quantities, Quantity};
use crate::number;
use crate::registry::results;
use crate::show::{Place, Show, Tables};
use crate::table::{MAX, MIN, P50, P95, P99, Table, blank};

impl Show for TransactionsResult {
    fn tables(&self, run: &Run, tables: &mut Tables) {
        let all: Vec<&Self> = results(run).collect();
        tables.add(Place::Transactions, [table(&all), phases(&all)]);
    }

    fn sentences(&self, run: &Run) -> Vec<String> {
        let sentence = |r: &Self| {
            let each = if r.connect {
                "connections with one request each"
            } else {
                "requests"
            };
            let failed = match r.failed {
                0 => "none failed".to_owned(),
                failed => format!("{failed} failed"),
            };
            let times = r.latency_s.map_or_else(String::new, |d| {
                format!(
                    ", half of them within {} and 99 % within {}",
                    number::seconds(d.p50),
                    number::seconds(d.p99)
                )
            });
            format!(
                "{} {each} a second{times}; {failed}.",
                number::whole(r.rate_tps)
            )
        };
        results::<Self>(run).map(sentence).collect()
    }

    fn quantities(&self, phase: Phase) -> Vec<Quantity> {
        let each = if self.connect {
            "connections"
        } else {
            "requests"
        };
        Quantities::of(phase, format!("{} {each}", self.transport.name()))
            .time(LATENCY, self.latency_s.as_ref())
            .number("rate_tps", ChangeUnit::PerSecond, self.rate_tps)
            .number("failed", ChangeUnit::Count, self.failed as f64)
            .found
    }

    fn asked(&self) -> Option<String> {
        Some(format!(
            "{} at a time, {} bytes for {}",
            self.concurrency, self.request_bytes, self.response_bytes
        ))
    }
}

/// How many there were and how long they took.
fn table(all: &[&TransactionsResult]) -> Table {
    let mut errors = all.iter().filter_map(|r| r.error.as_deref());
    Table::of("Transactions", all)
        .text("", |r| name(r))
        .num("request", |r| number::bytes(r.request_bytes as f64))
        .num("answer", |r| number::bytes(r.response_bytes as f64))
        .num("at once", |r| r.concurrency.to_string())
        .num("a second", |r| number::plain(r.rate_tps))
        .num("failed", |r| r.failed)
        // Without a rate nothing is due.
        .num("delayed", |r| {
            blank(r.offered_tps.map(|_| r.delayed.to_string()))
        })
        .figures(
            [P50, P95, P99, MAX],
            |r| r.latency_s,
            |v| v.map(number::seconds),
        )
        .num("CPU here", |r| r.cpu.local_ratio.map(number::percent))
        .num("CPU far", |r| r.cpu.remote_ratio.map(number::percent))
        .noting(
            errors
                .next_back()
                .map(|why| format!("The last failure: {why}.")),
        )
}

/// Where the time of those with a connection of their own went.
fn phases(all: &[&TransactionsResult]) -> Table {
    let parts = all.iter().flat_map(|r| {
        let parts = [
            ("connect", r.connect_s),
            ("TLS handshake", r.tls_handshake_s),
            ("request and answer", r.response_s),
        ];
        parts.map(|(part, times)| Some((name(r), part, times?)))
    });
    Table::of(
        "Parts of a transaction with a connection of its own",
        parts.flatten(),
    )
    .text("", |(name, ..): &(String, _, _)| name.clone())
    .text("", |(_, part, _)| *part)
    .figures(
        [MIN, P50, P95, P99, MAX],
        |(.., times)| Some(*times),
        |v| v.map(number::seconds),
    )
    .done()
}

/// netperf's name for it.
fn name(result: &TransactionsResult) -> String {
    let kind = if result.connect { "CRR" } else { "RR" };
    format!("{}_{kind}", result.transport.name().to_uppercase())
}
