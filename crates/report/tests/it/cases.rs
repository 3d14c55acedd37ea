//! An experiment of several cases: what stands in its table, and what its page shows.

use plumb_model::results::Outcome;
use plumb_model::run::Run;
use plumb_report::cases::{Case, Experiment};
use plumb_report::html;

use crate::goldens::every_kind;
use crate::sample;

fn experiment(runs: [Vec<Option<Run>>; 2]) -> Experiment {
    Experiment {
        title: "Some cases".to_owned(),
        sides: ["as it is", "managed"],
        heads: vec!["Ping: median, 95 %, loss", "Page"],
        cases: vec![Case {
            name: "three copies".to_owned(),
            runs,
        }],
    }
}

/// A Run of page loads that took so long; one that is `None` was not complete.
fn pages(times_s: &[Option<f64>]) -> Run {
    let mut run = every_kind();
    run.measurements
        .retain(|m| matches!(m.outcome, Outcome::PageLoad(_)));
    let load = run.measurements[0].clone();
    let of_time = |time_s: &Option<f64>| {
        let mut load = load.clone();
        if let Outcome::PageLoad(result) = &mut load.outcome {
            result.load_s = Some(time_s.unwrap_or(9.0));
            result.failed = u64::from(time_s.is_none());
        }
        load
    };
    run.measurements = times_s.iter().map(of_time).collect();
    run
}

#[test]
fn a_cell_has_the_figures_of_its_kind_and_what_came_to_no_end_has_failed() {
    let before = vec![
        Some(sample::ping_and_port()),
        Some(pages(&[Some(0.3), None, Some(0.1), Some(0.2)])),
    ];
    let experiment = experiment([before, vec![None, Some(pages(&[None, None]))]]);
    let table = experiment.markdown();
    let rows: Vec<&str> = table.lines().collect();
    assert_eq!(rows[0], "|  | Ping: median, 95 %, loss | Page |");
    assert_eq!(rows[1], "| --- | --- | --- |");
    let cells: Vec<&str> = rows[2]
        .trim_matches('|')
        .split(" | ")
        .map(str::trim)
        .collect();
    assert_eq!(cells[0], "three copies, as it is");
    assert!(
        cells[1].contains(" ms, ") && cells[1].ends_with('%'),
        "{table}"
    );
    assert_eq!(cells[2], "200 ms, 1 of 4 failed");
    assert_eq!(rows[3], "| three copies, managed | failed | failed |");
}

#[test]
fn a_page_has_the_table_and_a_chart_of_each_column_that_has_values() {
    let runs = || vec![Some(sample::ping_and_port()), Some(pages(&[Some(0.3)]))];
    let both = html::render_cases(&experiment([runs(), runs()]));
    assert!(both.contains("<h2>Ping</h2>") && both.contains("<h2>Page</h2>"));
    assert!(both.contains("three copies, managed") && both.contains("As it is and managed"));
    // Each chart once for a wide page and once for a phone.
    assert_eq!(both.matches("<svg").count(), 4);
    assert!(!both.contains("could not be made") && !both.contains("How it was measured"));
    let nothing = html::render_cases(&experiment([vec![None, None], vec![None, None]]));
    assert_eq!(nothing.matches("<svg").count(), 0);
    assert_eq!(nothing.matches("failed").count(), 4);
}

#[test]
fn what_a_machine_that_could_not_keep_up_measured_is_marked() {
    let mut late = sample::ping_and_port();
    assert!(late.local.lab.is_some(), "the sample is of a lab");
    if let Some(lab) = &mut late.local.lab {
        lab.overrun = true;
    }
    let page = html::render_cases(&experiment([vec![Some(late), None], vec![None, None]]));
    assert!(page.contains("three copies, as it is: The machine could not keep up"));
}

#[test]
fn the_commands_stand_under_the_table_without_where_they_saved_what() {
    let mut run = sample::ping_and_port();
    run.command = ["ping", "server", "--quiet", "-c", "9", "-o", "/tmp/x.json"]
        .map(str::to_owned)
        .into();
    let page = html::render_cases(&experiment([vec![Some(run), None], vec![None, None]]));
    assert!(page.contains("Ping: ping server -c 9<"), "{page}");
}
