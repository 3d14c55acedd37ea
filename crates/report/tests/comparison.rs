//! Comparisons of Runs that have neither round trips nor TCP's rates.

#![allow(clippy::unwrap_used)]

use plumb_model::distribution::Distribution;
use plumb_model::results::{CpuUse, Outcome, TransactionTransport, TransactionsResult};
use plumb_model::run::Run;
use plumb_report::compare::compare;
use plumb_report::text;

mod sample;

/// A Run that measured this alone.
fn run(outcome: Outcome) -> Run {
    let mut run = sample::before();
    run.measurements.truncate(1);
    run.findings.clear();
    for measurement in &mut run.measurements {
        measurement.outcome = outcome.clone();
        measurement.params.clear();
        measurement.series.clear();
    }
    run
}

fn transactions(each_s: f64, request_bytes: u64) -> Run {
    run(Outcome::Transactions(TransactionsResult {
        transport: TransactionTransport::Tcp,
        connect: false,
        request_bytes,
        response_bytes: 1,
        concurrency: 1,
        offered_tps: None,
        completed: 100,
        failed: 0,
        unfinished: 0,
        delayed: 0,
        rate_tps: 1.0 / each_s,
        latency_s: Distribution::of([each_s; 100]),
        connect_s: None,
        tls_handshake_s: None,
        response_s: None,
        error: None,
        cpu: CpuUse::default(),
    }))
}

#[test]
fn numbers_of_every_kind_are_compared() {
    let (slow, fast) = (transactions(0.020, 1), transactions(0.005, 1));
    let comparison = compare(&slow, &fast);
    let better: Vec<_> = comparison
        .rows
        .iter()
        .map(|row| (row.name.as_str(), row.better))
        .collect();
    let (yes, neither) = (Some(true), None);
    let expected = [
        ("latency_s.p50", yes),
        ("latency_s.p95", yes),
        ("rate_tps", yes),
        ("failed", neither),
    ];
    assert_eq!(better, expected);
    assert_eq!(
        comparison.summary,
        "Changed: transactions, tcp requests 50 /s → 200 /s, and 2 more."
    );
    assert!(comparison.notes.is_empty(), "{:?}", comparison.notes);
    let text = text::render_comparison(&comparison, &text::Style::default());
    assert!(text.contains("time p50, tcp requests"), "{text}");
    assert!(compare(&slow, &slow).summary.starts_with("Nothing changed"));
}

#[test]
fn what_was_asked_for_differently_is_said() {
    let comparison = compare(&transactions(0.005, 1), &transactions(0.005, 1000));
    assert_eq!(
        comparison.notes,
        [
            "Not like with like: what was asked for in the idle phase was 1 at a time, 1 bytes for 1 \
          before and 1 at a time, 1000 bytes for 1 after."
        ]
    );
}

#[test]
fn runs_without_a_number_in_common_are_not_called_alike() {
    let ping = run(sample::before().measurements.swap_remove(0).outcome);
    assert_eq!(
        compare(&transactions(0.005, 1), &ping).summary,
        "The two Runs have no number in common: nothing was compared."
    );
}
