//! Comparisons of Runs that have neither round trips nor TCP's rates.

use plumb_model::context::{Experiment, Phase};
use plumb_model::distribution::Distribution;
use plumb_model::finding::{Cause, Clearance, NotMeasured};
use plumb_model::protocol::Protocol;
use plumb_model::results::udp::UdpResult;
use plumb_model::results::{CpuUse, Direction, Outcome, TransactionsResult};
use plumb_model::run::{Measurement, Run};
use plumb_report::compare::compare;
use plumb_report::{html, text};

/// A Run that measured this alone.
fn run(outcome: Outcome) -> Run {
    let mut run = crate::sample::before();
    run.measurements.truncate(1);
    run.findings.clear();
    for measurement in &mut run.measurements {
        measurement.outcome = outcome.clone();
        measurement.context = Default::default();
        measurement.series.clear();
    }
    run
}

#[test]
fn an_experiment_of_one_run_alone_is_not_compared() {
    let before = crate::sample::before();
    let mut after = before.clone();
    let mut experiments = after.measurements.clone();
    for measurement in &mut experiments {
        measurement.context.experiment = Some(Experiment::Paced);
        measurement.duration_s *= 3.0;
    }
    // Before all others, and so the first of its phase.
    after.measurements.splice(0..0, experiments);
    let (same, with) = (compare(&before, &before), compare(&before, &after));
    assert_eq!((with.rows, with.notes), (same.rows, same.notes));
}

fn transactions(each_s: f64, request_bytes: u64) -> Run {
    run(Outcome::Transactions(TransactionsResult {
        transport: Protocol::Tcp,
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
    let (before, mut after) = (transactions(0.005, 1), transactions(0.005, 1000));
    // Where the same was typed, plumb chose what differs.
    assert!(compare(&before, &after).notes.is_empty());
    after.command.push("--request=1000".to_owned());
    let comparison = compare(&before, &after);
    assert_eq!(
        comparison.notes,
        [
            "Not like with like: what was asked for in the idle phase was 1 at a time, 1 bytes for 1 \
          before and 1 at a time, 1000 bytes for 1 after."
        ]
    );
}

#[test]
fn what_plumb_chose_itself_is_not_called_unlike() {
    let phase = |run: &mut Run, of: Phase| {
        let all = run.measurements.iter_mut();
        for measurement in all.filter(|m| m.context.phase == Some(of)) {
            measurement.duration_s /= 2.0;
        }
    };
    let before = crate::sample::before();
    let mut after = before.clone();
    // The file that it was written to is no option of what was measured.
    after
        .command
        .extend(["-o", "after.json"].map(str::to_owned));
    phase(&mut after, Phase::Both);
    assert_eq!(compare(&before, &after).notes, Vec::<String>::new());
    phase(&mut after, Phase::Up);
    assert_eq!(compare(&before, &after).notes.len(), 1);
}

#[test]
fn a_table_of_changes_has_what_changed_alone_each_beside_its_row() {
    let comparison = compare(&transactions(0.005, 1), &transactions(0.020, 1));
    for width in [80, 200] {
        let style = text::Style {
            color: false,
            width,
        };
        let text = text::render_comparison(&comparison, &style);
        let row = |what: &str| {
            let mut lines = text.lines();
            lines
                .find(|line| line.starts_with("  idle") && line.contains(what))
                .unwrap_or_else(|| panic!("{what}: {text}"))
        };
        assert!(
            row("time p95, tcp requests").contains("5.0 ms → 20.0 ms (4 times)"),
            "{text}"
        );
        assert!(
            row("transactions, tcp requests").contains("200 /s → 50 /s (−75 %)"),
            "{text}"
        );
        assert!(!text.contains("failed"), "{text}");
    }
    let same = transactions(0.005, 1);
    let text = text::render_comparison(&compare(&same, &same), &text::Style::default());
    assert!(!text.contains("What changed"), "{text}");
}

#[test]
fn a_stream_of_datagrams_is_compared_with_one_of_the_same_rate_alone() {
    let stream = |asked_bps: f64| {
        let udp = UdpResult {
            direction: Direction::Up,
            stream: 0,
            pattern: "constant".to_owned(),
            payload_bytes: 1400,
            asked_bps: Some(asked_bps),
            gso_segments: 1,
            gro: false,
            bps: Some(15.0e6),
            sender: None,
            receiver: None,
            one_way_delay: None,
            standing_s: None,
            probe_wait_s: None,
            cpu: CpuUse::default(),
            error: None,
        };
        run(Outcome::Udp(Box::new(udp)))
    };
    let rows = |after: f64| compare(&stream(15.2e6), &stream(after)).rows;
    assert!(rows(15.2e6).iter().any(|row| row.change.is_some()));
    assert!(rows(24.8e6).iter().all(|row| row.change.is_none()));
}

#[test]
fn runs_without_a_number_in_common_are_not_called_alike() {
    let ping = run(crate::sample::before().measurements.swap_remove(0).outcome);
    assert_eq!(
        compare(&transactions(0.005, 1), &ping).summary,
        "The two Runs have no number in common: nothing was compared."
    );
}

/// What became of the one finding of the Run before.
fn fate(after: &Run) -> &'static str {
    let findings = compare(&crate::sample::before(), after).findings;
    match (
        findings.gone.len(),
        findings.still.len(),
        findings.unmeasured.len(),
    ) {
        (1, 0, 0) => "gone",
        (0, 1, 0) => "still",
        (0, 0, 1) => "not measured again",
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_finding_is_gone_only_where_it_was_measured_again() {
    let measured = |change: fn(&mut Run)| {
        let mut after = crate::sample::after();
        change(&mut after);
        after
    };
    assert_eq!(fate(&crate::sample::before()), "still");
    assert_eq!(fate(&crate::sample::after()), "gone");
    // Interrupted before the upload, in it, and in its latency's record.
    let until_upload = measured(|run| run.measurements.truncate(2));
    assert_eq!(fate(&until_upload), "not measured again");
    let cut_short = measured(|run| {
        for measurement in &mut run.measurements {
            measurement.duration_s = measurement.duration_s.min(2.0);
        }
    });
    assert_eq!(fate(&cut_short), "not measured again");
    // Its queue may have taken longer to fill.
    let shorter = measured(|run| {
        for measurement in &mut run.measurements {
            measurement.duration_s = measurement.duration_s.min(8.0);
        }
    });
    assert_eq!(fate(&shorter), "not measured again");
    let unanswered = measured(|run| {
        let loaded = |m: &Measurement| matches!(m.outcome, Outcome::LoadedLatency(_));
        run.measurements.retain(|m| !loaded(m));
    });
    assert_eq!(fate(&unanswered), "not measured again");
    let comparison = compare(&crate::sample::before(), &until_upload);
    let text = text::render_comparison(&comparison, &text::Style::default());
    assert!(
        text.contains("Not measured again") && !text.contains("Gone"),
        "{text}"
    );
    let page = html::render_comparison(&crate::sample::before(), &until_upload, &comparison);
    assert!(page.contains(">not measured again<") && !page.contains(">gone<"));
}

#[test]
fn no_phase_has_a_grade_that_could_be_worse_by_the_runs_verdict() {
    let judged = |clearance: Option<Clearance>| {
        let mut run = crate::sample::after();
        let verdict = run.verdict.as_mut().unwrap();
        verdict.clearance = clearance;
        verdict.latency_grade = None;
        if clearance == Some(Clearance::NotMeasured) {
            verdict.not_measured.push(NotMeasured {
                what: "latency under upload".to_owned(),
                why: "8.00 s are too short for it".to_owned(),
                option: None,
            });
        }
        if clearance == Some(Clearance::Unexplained) {
            let mut unexplained = crate::sample::before().findings.swap_remove(0);
            unexplained.cause = Cause::Unexplained;
            run.findings.push(unexplained);
        }
        run
    };
    let shown = |run: &Run| {
        let text = text::render(run, &text::Style::default());
        let compared = compare(&crate::sample::before(), run);
        [
            html::render(run).contains("class=\"badge"),
            text.contains("  grade\n"),
            text.contains(" is A, from"),
            compared.grades.iter().any(|g| g.after.is_some()),
            compared.summary.contains("(grade F → "),
        ]
    };
    // A verb that judges a part has them.
    assert_eq!(shown(&judged(None)), [true; 5]);
    for withheld in [Clearance::Unexplained, Clearance::NotMeasured] {
        assert_eq!(shown(&judged(Some(withheld))), [false; 5], "{withheld:?}");
    }
    // Nothing is worse than F.
    let mut bloated = crate::sample::before();
    bloated.verdict.as_mut().unwrap().clearance = Some(Clearance::Found);
    bloated.verdict.as_mut().unwrap().not_measured = judged(Some(Clearance::NotMeasured))
        .verdict
        .unwrap()
        .not_measured;
    let page = html::render(&bloated);
    assert!(page.contains(">F</span>") && !page.contains(">D</span>"));
}

#[test]
fn a_path_that_loses_packets_is_no_repair_of_its_queue() {
    use crate::check::recorded;
    let changed = compare(&recorded("home-cable"), &recorded("home-lossy"));
    assert!(
        changed
            .summary
            .starts_with("More packets lost when idle: 0 % → 12 %"),
        "{}",
        changed.summary
    );
    assert_eq!(changed.findings.gone, []);
    let style = text::Style {
        color: false,
        width: 80,
    };
    let shown = text::render_comparison(&changed, &style);
    for words in [
        "0 % → 12 % (+12 points)",
        "565 ms → 18.4 ms (−97 %)",
        "Not comparable: the rate after did not fill the queue.",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // With as much carried again, it is gone.
    let managed = compare(&recorded("home-cable"), &recorded("home-cable-managed"));
    assert_eq!(managed.findings.gone.len(), 2, "{:?}", managed.findings);
}

#[test]
fn numbers_of_one_run_are_named() {
    let (before, mut after) = (crate::sample::before(), crate::sample::before());
    after.measurements.truncate(1);
    let style = text::Style {
        color: false,
        width: 1000,
    };
    let mut worse = compare(&before, &after);
    for row in &mut worse.rows {
        if row.after.is_some() {
            (row.after, row.better) = (row.before.map(|v| 2.0 * v), Some(false));
        }
    }
    let shown = text::render_comparison(&worse, &style);
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        shown.contains("Left out (--json has them), of the Run before alone: "),
        "{shown}"
    );
    assert!(shown.contains("upload RTT p50, udp"), "{shown}");
}
