//! What several Runs of a path have found, and since when.

use plumb_model::run::Run;
use plumb_report::history::history;

fn at(mut run: Run, started: &str) -> Run {
    run.started = started.to_owned();
    run
}

const DAYS: [&str; 3] = [
    "2026-11-02T09:00:00Z",
    "2026-11-03T09:00:00Z",
    "2026-11-04T09:00:00Z",
];

#[test]
fn a_finding_is_in_so_many_runs_and_gone_new_or_not_measured_again_since() {
    use crate::sample::{after, before};
    let of = |runs: [Run; 3]| {
        let runs: Vec<Run> = runs
            .into_iter()
            .zip(DAYS)
            .map(|(run, day)| at(run, day))
            .collect();
        history(&runs)
    };
    let gone = of([before(), before(), after()]);
    assert!(
        gone[0].starts_with(
            "3 Runs, 2026-11-02 09:00:00 UTC to 2026-11-04 09:00:00 UTC. The latest: "
        ),
        "{gone:?}"
    );
    assert_eq!(
        gone[1..],
        ["bufferbloat-up (uplink): in 2 of 3, gone since 2026-11-04 09:00:00 UTC."]
    );
    let mut checks = [before(), before(), after()];
    checks[2].asked = Some(Default::default());
    assert_eq!(
        of(checks)[0],
        "3 Runs, 2026-11-02 09:00:00 UTC to 2026-11-04 09:00:00 UTC. Below is the check of 2026-11-04 09:00:00 UTC."
    );
    let new = of([after(), before(), before()]);
    assert_eq!(
        new[1..],
        ["bufferbloat-up (uplink): in 2 of 3, first seen 2026-11-03 09:00:00 UTC."]
    );
    let stays = of([before(), before(), before()]);
    assert_eq!(stays[1..], ["bufferbloat-up (uplink): in all 3."]);
    let mut interrupted = after();
    interrupted.measurements.truncate(2);
    let open = of([before(), before(), interrupted]);
    assert!(
        open[1].ends_with("in 2 of 3, not measured again since 2026-11-04 09:00:00 UTC."),
        "{open:?}"
    );
    assert!(history(&[before()]).is_empty());
}
