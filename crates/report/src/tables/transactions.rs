//! Requests and their answers.

use plumb_model::distribution::Distribution;
use plumb_model::results::{Outcome, TransactionsResult};
use plumb_model::run::Run;

use super::Kind::{Number, Text};
use super::Table;
use crate::number::{self, ABSENT};

/// How many there were and how long they took.
pub(super) fn table(run: &Run) -> Table {
    let mut table = Table::new(
        "Transactions",
        &[
            ("", Text),
            ("request", Number),
            ("answer", Number),
            ("at once", Number),
            ("a second", Number),
            ("failed", Number),
            ("delayed", Number),
            ("p50", Number),
            ("p95", Number),
            ("p99", Number),
            ("max", Number),
            ("CPU here", Number),
            ("CPU far", Number),
        ],
    );
    for result in results(run) {
        let time = |get: fn(&Distribution) -> f64| {
            let of = result.latency_s.as_ref().map(get);
            of.map_or_else(|| ABSENT.to_owned(), number::seconds)
        };
        table.row([
            name(result),
            number::bytes(result.request_bytes as f64),
            number::bytes(result.response_bytes as f64),
            result.concurrency.to_string(),
            number::plain(result.rate_tps),
            result.failed.to_string(),
            // Without a rate nothing is due.
            result
                .offered_tps
                .map_or_else(String::new, |_| result.delayed.to_string()),
            time(|d| d.p50),
            time(|d| d.p95),
            time(|d| d.p99),
            time(|d| d.max),
            number::percent(result.cpu.local_ratio),
            result
                .cpu
                .remote_ratio
                .map_or_else(|| ABSENT.to_owned(), number::percent),
        ]);
    }
    let errors = results(run).filter_map(|result| result.error.as_deref());
    table.note = errors.last().map(|why| format!("The last failure: {why}."));
    table
}

/// Where the time of those with a connection of their own went.
pub(super) fn phases(run: &Run) -> Table {
    let mut table = Table::new(
        "Parts of a transaction with a connection of its own",
        &[
            ("", Text),
            ("", Text),
            ("min", Number),
            ("p50", Number),
            ("p95", Number),
            ("p99", Number),
            ("max", Number),
        ],
    );
    for result in results(run) {
        for (part, times) in [
            ("connect", &result.connect_s),
            ("TLS handshake", &result.tls_handshake_s),
            ("request and answer", &result.response_s),
        ] {
            if let Some(d) = times {
                let times = [d.min, d.p50, d.p95, d.p99, d.max].map(number::seconds);
                table.row([name(result), part.to_owned()].into_iter().chain(times));
            }
        }
    }
    table
}

fn results(run: &Run) -> impl Iterator<Item = &TransactionsResult> {
    run.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Transactions(result) => Some(result),
        _ => None,
    })
}

/// netperf's name for it.
fn name(result: &TransactionsResult) -> String {
    let kind = if result.connect { "CRR" } else { "RR" };
    format!("{}_{kind}", result.transport.name().to_uppercase())
}
