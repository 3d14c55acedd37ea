//! Repeats of one check: which findings are stable, which come and go, and which may be chance.

use std::collections::BTreeMap;

use plumb_model::finding::{Cause, Finding, Place, Severity};
use plumb_model::run::Run;

use crate::needs::is_measured;
use crate::{Case, causes};

/// How often a rule may find on a healthy line what is not there: two of a hundred checks.
const NOISE_RATIO: f64 = 0.02;

/// How often at most the whole of a baseline may call noise a fault.
const FALSE_ALARM_RATIO: f64 = 0.05;

/// From this share of the checks on a finding is stable.
const STABLE_RATIO: f64 = 0.9;

/// Fewer checks show nothing that comes and goes.
const FEWEST: usize = 3;

/// What one check comes to.
#[derive(Debug, Clone)]
pub struct Repeat {
    found: Vec<(Cause, Place, Severity)>,
    looked_for: Vec<Cause>,
    hour: Option<u8>,
}

/// How a finding recurs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Recurrence {
    /// It is there in nearly every check.
    Stable,
    /// It is there more often than rules are wrong.
    ComesAndGoes,
    /// It was found so seldom that it may be chance, or there are too few checks.
    MayBeNoise,
}

/// A finding over all checks.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    pub cause: Cause,
    pub place: Place,
    /// The worst of it.
    pub severity: Severity,
    /// Checks that found it.
    pub seen: usize,
    /// Checks that found it or would have.
    pub of: usize,
    pub recurrence: Recurrence,
    /// By the hour of the day in UTC: how many checks found it, and of how many.
    pub hours: BTreeMap<u8, (usize, usize)>,
}

impl Repeat {
    pub fn of(run: &Run) -> Self {
        let case = Case::of(run);
        let worth = |finding: &&Finding| finding.severity > Severity::Info;
        let found = run.findings.iter().filter(worth);
        let found: Vec<_> = found.map(|f| (f.cause, f.place, f.severity)).collect();
        let looked_for = causes::all().filter(|(cause, entry)| {
            found.iter().any(|(found, ..)| found == cause)
                || entry.needs.iter().all(|need| is_measured(&case, *need))
        });
        Self {
            looked_for: looked_for.map(|(cause, _)| cause).collect(),
            found,
            hour: hour(&run.started),
        }
    }
}

/// The hour of a time of RFC 3339 in UTC.
pub fn hour(started: &str) -> Option<u8> {
    let (_, time) = started.split_once('T')?;
    let hour: u8 = time.split_once(':')?.0.parse().ok()?;
    (hour < 24 && started.ends_with('Z')).then_some(hour)
}

/// Every finding of any check: what is stable first, and what was found most.
pub fn tally(repeats: &[Repeat]) -> Vec<Tally> {
    let mut kinds: Vec<(Cause, Place)> = Vec::new();
    for (cause, place, _) in repeats.iter().flat_map(|repeat| &repeat.found) {
        if !kinds.contains(&(*cause, *place)) {
            kinds.push((*cause, *place));
        }
    }
    let count = kinds.len();
    let all = kinds.into_iter();
    let mut all: Vec<Tally> = all
        .map(|(cause, place)| one(repeats, cause, place, count))
        .collect();
    all.sort_by_key(|tally| (tally.recurrence, std::cmp::Reverse(tally.seen)));
    all
}

/// Of one finding, where so many kinds were found in all.
fn one(repeats: &[Repeat], cause: Cause, place: Place, kinds: usize) -> Tally {
    let (mut seen, mut of) = (0, 0);
    let mut severity = Severity::Info;
    let mut hours: BTreeMap<u8, (usize, usize)> = BTreeMap::new();
    for repeat in repeats {
        let mut found = repeat.found.iter();
        let found = found.find(|(c, p, _)| (*c, *p) == (cause, place));
        if found.is_none() && !repeat.looked_for.contains(&cause) {
            continue;
        }
        of += 1;
        let is_there = usize::from(found.is_some());
        seen += is_there;
        severity = severity.max(found.map_or(severity, |(.., severity)| *severity));
        if let Some(hour) = repeat.hour {
            let (there, checks) = hours.entry(hour).or_default();
            *there += is_there;
            *checks += 1;
        }
    }
    // Each kind that was found is one more chance to be wrong.
    let limit = FALSE_ALARM_RATIO / kinds.max(1) as f64;
    let recurrence = match of {
        of if of < FEWEST => Recurrence::MayBeNoise,
        of if seen as f64 >= STABLE_RATIO * of as f64 => Recurrence::Stable,
        of if at_least(seen, of, NOISE_RATIO) <= limit => Recurrence::ComesAndGoes,
        _ => Recurrence::MayBeNoise,
    };
    Tally {
        cause,
        place,
        severity,
        seen,
        of,
        recurrence,
        hours,
    }
}

/// Probability of so many hits or more, where each of `of` trials hits with this probability (binomial).
fn at_least(hits: usize, of: usize, ratio: f64) -> f64 {
    let mut term = (1.0 - ratio).powi(i32::try_from(of).unwrap_or(i32::MAX));
    let mut fewer = 0.0;
    for hit in 0..hits {
        fewer += term;
        term *= of.saturating_sub(hit) as f64 / (hit + 1) as f64 * ratio / (1.0 - ratio);
    }
    (1.0 - fewer).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repeat(found: bool, hour: u8) -> Repeat {
        let finding = (Cause::Policer, Place::Uplink, Severity::Warning);
        Repeat {
            found: found.then_some(finding).into_iter().collect(),
            looked_for: vec![Cause::Policer],
            hour: Some(hour),
        }
    }

    fn of(seen: usize, of: usize) -> Option<Recurrence> {
        let all: Vec<Repeat> = (0..of).map(|n| repeat(n < seen, 9)).collect();
        tally(&all).first().map(|tally| tally.recurrence)
    }

    #[test]
    fn the_tail_of_the_binomial_is_that_of_tables() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-4;
        assert!(near(at_least(4, 20, 0.02), 0.0006));
        assert!(near(at_least(1, 20, 0.02), 0.3324));
        assert!(near(at_least(0, 20, 0.02), 1.0));
        assert!(near(at_least(3, 3, 0.5), 0.125));
    }

    #[test]
    fn one_of_twenty_may_be_noise_and_four_come_and_go() {
        assert_eq!(of(1, 20), Some(Recurrence::MayBeNoise));
        assert_eq!(of(4, 20), Some(Recurrence::ComesAndGoes));
        assert_eq!(of(19, 20), Some(Recurrence::Stable));
        assert_eq!(of(2, 2), Some(Recurrence::MayBeNoise));
        assert_eq!(of(0, 20), None);
    }

    #[test]
    fn checks_that_did_not_look_do_not_count_and_hours_are_counted_apart() {
        let mut all = vec![repeat(true, 20), repeat(true, 20), repeat(false, 9)];
        all.push(Repeat {
            found: Vec::new(),
            looked_for: Vec::new(),
            hour: Some(9),
        });
        let tallies = tally(&all);
        let hours = tallies.first().map(|tally| (tally.of, tally.hours.clone()));
        let expected = BTreeMap::from([(9, (0, 1)), (20, (2, 2))]);
        assert_eq!(hours, Some((3, expected)));
        assert_eq!(hour("2026-11-27T09:48:18.1Z"), Some(9));
        assert_eq!(hour("yesterday"), None);
        assert_eq!(hour("2026-11-27T99:48:18Z"), None);
    }
}
