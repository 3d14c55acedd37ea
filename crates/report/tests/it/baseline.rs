//! Baselines of checks drawn from the recorded ones: a fault in a fifth of them is distinguished from noise.

use std::collections::BTreeSet;

use plumb_diagnose::baseline::{Recurrence, Repeat, tally};
use plumb_model::finding::{Cause, Severity};
use plumb_model::run::Run;
use plumb_report::baseline::baseline;
use plumb_report::text::{Style, render_baseline};

use crate::check::runs;

const CHECKS: usize = 20;
/// Batches that are drawn for each share.
const BATCHES: usize = 1000;
/// The most that may be wrong.
const MOST_WRONG: f64 = 0.05;
/// How often a recorded check of another line stands for a rule that is wrong: as often as the rules may be.
const WRONG_EVERY: u64 = 50;

/// Numbers that are the same each time (splitmix64).
pub(crate) struct Draw(pub(crate) u64);

impl Draw {
    pub(crate) fn below(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % most as u64) as usize
    }
}

fn is_faulty(run: &Run) -> bool {
    run.findings
        .iter()
        .any(|finding| finding.severity > Severity::Info)
}

/// Recorded checks that measured what the rules need: those without a fault, and those with one.
fn recorded() -> (Vec<Repeat>, Vec<(Cause, Repeat)>) {
    let checks = runs().into_iter().filter(|(file, run)| {
        file.ends_with(".gz") && run.command.iter().any(|word| word == "check")
    });
    let (faulty, healthy): (Vec<_>, Vec<_>) = checks.map(|(_, run)| run).partition(is_faulty);
    let healthy = healthy.iter().map(Repeat::of);
    let faulty = faulty
        .iter()
        .map(|run| (run.findings[0].cause, Repeat::of(run)));
    (healthy.collect(), faulty.collect())
}

/// One check of a healthy line, on which rules are wrong now and then.
fn healthy_check(draw: &mut Draw, healthy: &[Repeat], faulty: &[(Cause, Repeat)]) -> Repeat {
    match draw.below(WRONG_EVERY as usize) {
        0 => faulty[draw.below(faulty.len())].1.clone(),
        _ => healthy[draw.below(healthy.len())].clone(),
    }
}

#[test]
fn a_fault_in_a_fifth_of_the_checks_is_told_from_noise() {
    let (healthy, faulty) = recorded();
    assert!(
        healthy.len() > 5 && faulty.len() > 15,
        "{} {}",
        healthy.len(),
        faulty.len()
    );
    let mut draw = Draw(21);
    let (mut alarms, mut missed) = (0, 0);
    let mut causes = BTreeSet::new();
    for _ in 0..BATCHES {
        let mut checks: Vec<Repeat> = (0..CHECKS)
            .map(|_| healthy_check(&mut draw, &healthy, &faulty))
            .collect();
        let is_told = |checks: &[Repeat], cause: Option<Cause>| {
            let mut all = tally(checks).into_iter();
            all.any(|tally| {
                tally.recurrence != Recurrence::MayBeNoise && cause.is_none_or(|c| c == tally.cause)
            })
        };
        alarms += usize::from(is_told(&checks, None));
        // The same line with a fault that comes and goes.
        let (cause, fault) = &faulty[draw.below(faulty.len())];
        causes.insert(cause.name());
        for check in checks.iter_mut().take(CHECKS / 5) {
            *check = fault.clone();
        }
        missed += usize::from(!is_told(&checks, Some(*cause)));
    }
    let most = (MOST_WRONG * BATCHES as f64) as usize;
    println!("{alarms} false alarms, {missed} missed of {BATCHES} batches");
    assert!(
        alarms <= most,
        "{alarms} of {BATCHES} batches of healthy checks were an alarm"
    );
    assert!(missed <= most, "{missed} of {BATCHES} faults were not told");
    assert!(causes.len() > 8, "{causes:?}");
}

#[test]
fn a_baseline_shows_when_its_numbers_are_worse() {
    let record = |name: &str| {
        let mut all = runs().into_iter();
        all.find(|(file, _)| file.ends_with(name)).expect(name).1
    };
    let (good, bad) = (
        record("/home-cable-managed.json.gz"),
        record("/home-cable.json.gz"),
    );
    let at = |run: &Run, hour: u8| {
        let mut run = run.clone();
        run.started = format!("2026-11-27T{hour:02}:00:00Z");
        run
    };
    let checks: Vec<Run> = (0..20)
        .map(|hour| match hour {
            16..20 => at(&bad, hour),
            _ => at(&good, hour),
        })
        .collect();
    let style = Style {
        color: false,
        width: 80,
    };
    let text = render_baseline(&baseline(&checks), &style);
    assert!(
        text.contains("20 checks, 2026-11-27 00:00:00 UTC to"),
        "{text}"
    );
    let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, comes) = whole
        .split_once("Comes and goes")
        .expect("what comes and goes");
    let bloated =
        "bufferbloat-up (critical, uplink): in 4 of 20 checks. By hour (UTC): 16 h 1 of 1, 17 h";
    assert!(comes.contains(bloated), "{text}");
    let worse = "upload, RTT p95, udp: worse than usual in 4 of 20, at 16, 17, 18, 19 h (UTC).";
    assert!(whole.contains(worse), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
    let mut moved = checks.clone();
    moved[3].target.as_mut().expect("a target").address = Some("203.0.113.9".to_owned());
    let text = render_baseline(&baseline(&moved), &style);
    assert!(
        text.contains("changed its address between checks"),
        "{text}"
    );
}
