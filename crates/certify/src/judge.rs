//! Whether what `plumb check` said of a line is right.

use plumb_model::run::Run;
use serde::{Deserialize, Serialize};

use crate::library::{Ambiguous, Expect, NOTHING, Role};

/// The part of a Run that is judged.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Said {
    /// `cleared` and others; empty where there is no verdict.
    pub(crate) clearance: String,
    pub(crate) headline: String,
    /// The findings, as they are ordered.
    pub(crate) findings: Vec<Named>,
}

/// A finding by its words: a cause that is renamed later can still be read.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Named {
    pub(crate) cause: String,
    #[serde(rename = "where")]
    pub(crate) place: String,
    pub(crate) severity: String,
    pub(crate) confidence: f64,
}

impl Said {
    pub(crate) fn of(run: &Run) -> Self {
        let findings = run.findings.iter().map(|finding| Named {
            cause: finding.cause.name().to_owned(),
            place: finding.place.name().to_owned(),
            severity: finding.severity.name().to_owned(),
            confidence: finding.confidence,
        });
        let verdict = run.verdict.as_ref();
        let clearance = verdict.and_then(|verdict| verdict.clearance);
        Self {
            clearance: clearance.map_or_else(String::new, |c| c.name().to_owned()),
            headline: verdict.map_or_else(String::new, |verdict| verdict.headline.clone()),
            findings: findings.collect(),
        }
    }

    pub(crate) fn worth_repairing(&self) -> impl Iterator<Item = &Named> {
        self.findings
            .iter()
            .filter(|finding| finding.severity != "info")
    }
}

/// What it comes to, the worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// The path is cleared, and it has a fault that matters.
    WrongAllClear,
    /// Another cause comes first, or one that is not there is reported.
    WrongCause,
    /// The fault is not named, and the path is not cleared either.
    NotSettled,
    /// What is named cannot be distinguished from the fault in principle: `certify/ambiguous.toml`.
    Ambiguous,
    Right,
}

impl Outcome {
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::WrongAllClear => "wrong all-clear",
            Self::WrongCause => "wrong cause",
            Self::NotSettled => "not settled",
            Self::Ambiguous => "ambiguous",
            Self::Right => "right",
        }
    }
}

/// What is judged of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Judgement {
    pub(crate) outcome: Outcome,
    /// Whether the place is right; none where no cause is, or no place is asked for.
    pub(crate) place: Option<bool>,
    /// How sure the first finding was; none where there is none.
    pub(crate) confidence: Option<f64>,
}

/// The word for what no cause explains.
const UNEXPLAINED: &str = "unexplained";

/// The clearance that says that everything is healthy.
const CLEARED: &str = "cleared";

/// How many findings are read of a line with two faults.
const OF_A_PAIR: usize = 3;

/// Judges what was said of a line with these changes.
pub(crate) fn judge(
    role: Role,
    expected: &[&Expect],
    sets: &[Ambiguous],
    said: &Said,
) -> Judgement {
    let first = said.findings.first();
    let strict = outcome(role, expected, said);
    let others: Vec<Expect> = expected.iter().map(|e| with_others(e, sets)).collect();
    let others: Vec<&Expect> = others.iter().collect();
    let is_ambiguous = match strict {
        // What is cleared wrongly has no excuse.
        Outcome::WrongAllClear | Outcome::Ambiguous | Outcome::Right => false,
        _ if role == Role::Unknown => false,
        Outcome::WrongCause => outcome(role, &others, said) == Outcome::Right,
        Outcome::NotSettled => {
            outcome(role, &others, said) == Outcome::Right || is_nothing(&others, said)
        }
    };
    let (outcome, expected) = match is_ambiguous {
        true => (Outcome::Ambiguous, &others[..]),
        false => (strict, expected),
    };
    let placed = |expect: &Expect| {
        let named = said
            .findings
            .iter()
            .find(|f| expect.first.contains(&f.cause))?;
        (!expect.places.is_empty()).then(|| expect.places.contains(&named.place))
    };
    let places: Vec<bool> = expected
        .iter()
        .filter_map(|expect| placed(expect))
        .collect();
    let known = outcome >= Outcome::Ambiguous && !places.is_empty();
    Judgement {
        outcome,
        place: known.then(|| places.iter().all(|right| *right)),
        confidence: first.map(|finding| finding.confidence),
    }
}

/// The same with all names that cannot be distinguished from those that are right.
fn with_others(expect: &Expect, sets: &[Ambiguous]) -> Expect {
    let same = |set: &&Ambiguous| expect.first.iter().any(|cause| set.has(cause));
    let others = sets.iter().filter(same).flat_map(|set| &set.causes);
    let others = others.filter(|cause| !expect.first.contains(cause));
    Expect {
        first: expect.first.iter().chain(others).cloned().collect(),
        ..expect.clone()
    }
}

/// Whether nothing is reported of faults that cannot be distinguished from nothing.
fn is_nothing(expected: &[&Expect], said: &Said) -> bool {
    let mut faults = expected.iter().filter(|e| !e.first.is_empty());
    let like_nothing = |expect: &&Expect| expect.first.iter().any(|cause| cause == NOTHING);
    faults.all(like_nothing)
        && said.clearance != UNEXPLAINED
        && said.worth_repairing().next().is_none()
}

fn outcome(role: Role, expected: &[&Expect], said: &Said) -> Outcome {
    let cleared = said.clearance == CLEARED;
    let forbidden = |named: &Named| expected.iter().any(|e| e.must_not.contains(&named.cause));
    if said.worth_repairing().any(forbidden) {
        return Outcome::WrongCause;
    }
    let wanted: Vec<_> = expected.iter().filter(|e| !e.first.is_empty()).collect();
    if wanted.is_empty() {
        // Nothing is wrong with it.
        return match said.worth_repairing().next() {
            Some(_) => Outcome::WrongCause,
            None if said.clearance == UNEXPLAINED => Outcome::NotSettled,
            None => Outcome::Right,
        };
    }
    let read = match role {
        Role::Pair => OF_A_PAIR,
        _ => 1,
    };
    let named = |expect: &Expect| {
        let mut first = said.findings.iter().take(read);
        first.any(|finding| expect.first.contains(&finding.cause))
            || role == Role::Unknown && said.clearance == UNEXPLAINED
    };
    let matters = wanted.iter().any(|expect| expect.matters);
    if wanted.iter().all(|expect| named(expect)) {
        return match cleared && matters {
            true => Outcome::WrongAllClear,
            false => Outcome::Right,
        };
    }
    let other = said.worth_repairing().find(|finding| {
        finding.cause != UNEXPLAINED && !wanted.iter().any(|e| e.first.contains(&finding.cause))
    });
    match other {
        Some(_) => Outcome::WrongCause,
        None if cleared && matters => Outcome::WrongAllClear,
        None => Outcome::NotSettled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expect(first: &[&str]) -> Expect {
        Expect {
            first: first.iter().map(|cause| (*cause).to_owned()).collect(),
            places: vec!["uplink".to_owned()],
            matters: true,
            ..Expect::default()
        }
    }

    fn said(clearance: &str, findings: &[(&str, &str, &str)]) -> Said {
        let findings = findings.iter().map(|(cause, place, severity)| Named {
            cause: (*cause).to_owned(),
            place: (*place).to_owned(),
            severity: (*severity).to_owned(),
            confidence: 0.9,
        });
        Said {
            clearance: clearance.to_owned(),
            headline: String::new(),
            findings: findings.collect(),
        }
    }

    fn of(role: Role, expected: &[&Expect], said: &Said) -> (Outcome, Option<bool>) {
        let sets = [
            ("one-way-delay-asymmetric", "clock-unsynchronised"),
            ("port-speed", NOTHING),
        ];
        let sets = sets.map(|(one, other)| Ambiguous {
            causes: vec![one.to_owned(), other.to_owned()],
            reason: String::new(),
        });
        let judgement = judge(role, expected, &sets, said);
        (judgement.outcome, judgement.place)
    }

    #[test]
    fn a_fault_is_right_where_its_cause_comes_first() {
        use Outcome::{NotSettled, Right, WrongAllClear, WrongCause};
        let policer = expect(&["policer"]);
        let fault = |said: &Said| of(Role::Fault, &[&policer], said);
        let right = said("found", &[("policer", "uplink", "warning")]);
        assert_eq!(fault(&right), (Right, Some(true)));
        let elsewhere = said("found", &[("policer", "path", "warning")]);
        assert_eq!(fault(&elsewhere), (Right, Some(false)));
        let second = [
            ("path-loss", "path", "warning"),
            ("policer", "uplink", "warning"),
        ];
        assert_eq!(fault(&said("found", &second)), (WrongCause, None));
        assert_eq!(fault(&said("cleared", &[])), (WrongAllClear, None));
        let noted = [("ecn-cleared", "path", "info")];
        assert_eq!(fault(&said("cleared", &noted)), (WrongAllClear, None));
        let signs = [("unexplained", "path", "warning")];
        assert_eq!(fault(&said("unexplained", &signs)), (NotSettled, None));
        assert_eq!(fault(&said("not-measured", &[])), (NotSettled, None));
    }

    #[test]
    fn a_fault_that_holds_nothing_back_may_be_cleared_and_must_be_named() {
        let mut cleared = expect(&["ecn-cleared"]);
        cleared.matters = false;
        let noted = said("cleared", &[("ecn-cleared", "uplink", "info")]);
        assert_eq!(of(Role::Fault, &[&cleared], &noted).0, Outcome::Right);
        let silent = said("cleared", &[]);
        assert_eq!(of(Role::Fault, &[&cleared], &silent).0, Outcome::NotSettled);
    }

    #[test]
    fn a_healthy_line_may_have_notes_and_no_warning() {
        let none = expect(&[]);
        let healthy = |said: &Said| of(Role::Healthy, &[&none], said).0;
        assert_eq!(
            healthy(&said("cleared", &[("x", "path", "info")])),
            Outcome::Right
        );
        assert_eq!(healthy(&said("not-measured", &[])), Outcome::Right);
        let warned = said("found", &[("x", "path", "warning")]);
        assert_eq!(healthy(&warned), Outcome::WrongCause);
        let signs = said("unexplained", &[("unexplained", "path", "info")]);
        assert_eq!(healthy(&signs), Outcome::NotSettled);
    }

    #[test]
    fn a_twin_may_be_called_what_it_is_and_not_what_it_looks_like() {
        let mut twin = expect(&["path-loss"]);
        twin.must_not = vec!["policer".to_owned()];
        let both = [
            ("path-loss", "uplink", "warning"),
            ("policer", "uplink", "warning"),
        ];
        assert_eq!(
            of(Role::Twin, &[&twin], &said("found", &both)).0,
            Outcome::WrongCause
        );
        assert_eq!(
            of(Role::Twin, &[&twin], &said("found", &both[..1])).0,
            Outcome::Right
        );
    }

    #[test]
    fn what_no_cause_describes_is_unexplained_or_its_neighbour() {
        let unknown = expect(&["path-loss"]);
        let judged = |said: &Said| of(Role::Unknown, &[&unknown], said).0;
        let signs = [("unexplained", "path", "warning")];
        assert_eq!(judged(&said("unexplained", &signs)), Outcome::Right);
        assert_eq!(
            judged(&said("found", &[("path-loss", "path", "warning")])),
            Outcome::Right
        );
        assert_eq!(
            judged(&said("found", &[("policer", "path", "warning")])),
            Outcome::WrongCause
        );
        assert_eq!(judged(&said("cleared", &[])), Outcome::WrongAllClear);
    }

    #[test]
    fn another_name_of_the_same_set_is_ambiguous() {
        use Outcome::{Ambiguous, NotSettled, Right, WrongAllClear, WrongCause};
        let mut clock = expect(&["one-way-delay-asymmetric"]);
        let judged = |expect: &Expect, said: &Said| of(Role::Fault, &[expect], said);
        let named = |cause| said("found", &[(cause, "uplink", "warning")]);
        let other = named("clock-unsynchronised");
        assert_eq!(judged(&clock, &other), (Ambiguous, Some(true)));
        let itself = named("one-way-delay-asymmetric");
        assert_eq!(judged(&clock, &itself).0, Right);
        assert_eq!(judged(&clock, &named("policer")).0, WrongCause);
        clock.must_not = vec!["clock-unsynchronised".to_owned()];
        assert_eq!(judged(&clock, &other).0, WrongCause, "it is forbidden");
        // An all-clear beside a fault that matters has no excuse.
        let mut port = expect(&["port-speed"]);
        assert_eq!(judged(&port, &said("cleared", &[])).0, WrongAllClear);
        port.matters = false;
        assert_eq!(judged(&port, &said("cleared", &[])).0, Ambiguous);
        let signs = said("unexplained", &[("unexplained", "path", "warning")]);
        assert_eq!(judged(&port, &signs).0, NotSettled);
        // Nor has a warning on a healthy line.
        let healthy = of(Role::Healthy, &[&expect(&[])], &named("port-speed"));
        assert_eq!(healthy.0, WrongCause);
    }

    #[test]
    fn both_of_a_pair_are_among_the_first_three() {
        let (one, other) = (expect(&["policer"]), expect(&["path-loss"]));
        let pair = |said: &Said| of(Role::Pair, &[&one, &other], said).0;
        let policer = ("policer", "uplink", "warning");
        let loss = ("path-loss", "path", "warning");
        assert_eq!(pair(&said("found", &[policer, loss])), Outcome::Right);
        assert_eq!(pair(&said("found", &[loss])), Outcome::NotSettled);
    }
}
