//! What a rule compared with what, kept for explanations of why a cause was found or was not.
//!
//! A rule asks its `Recorder` in place of comparing by itself, so that what is shown is what decided. Without a
//! `Log` in the case nothing is kept.

use std::cell::RefCell;

use plumb_model::results::Direction;
use plumb_model::units::{human_seconds, si};

use crate::signs::percent;

/// A number with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Quantity {
    unit: Unit,
    value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Seconds,
    BitsPerSecond,
    Bytes,
    Ratio,
    Times,
    Count,
}

/// A time in seconds.
pub(crate) fn seconds(value: f64) -> Quantity {
    Unit::Seconds.of(value)
}

/// A rate in bit/s.
pub(crate) fn bps(value: f64) -> Quantity {
    Unit::BitsPerSecond.of(value)
}

pub(crate) fn bytes(value: f64) -> Quantity {
    Unit::Bytes.of(value)
}

/// A share of a whole.
pub(crate) fn ratio(value: f64) -> Quantity {
    Unit::Ratio.of(value)
}

/// How many times as much one is as another.
pub(crate) fn times(value: f64) -> Quantity {
    Unit::Times.of(value)
}

/// A number of things.
pub(crate) fn count(value: u64) -> Quantity {
    Unit::Count.of(value as f64)
}

impl Unit {
    fn of(self, value: f64) -> Quantity {
        Quantity { unit: self, value }
    }
}

impl Quantity {
    /// In the unit that people read.
    pub fn shown(self) -> String {
        match self.unit {
            Unit::Seconds => human_seconds(self.value),
            Unit::BitsPerSecond => si(self.value, "bit/s"),
            Unit::Bytes => si(self.value, "B"),
            Unit::Ratio => percent(self.value),
            Unit::Times => format!("{:.2} times", self.value),
            Unit::Count => format!("{:.0}", self.value),
        }
    }
}

/// What a rule needs of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    AtLeast,
    Above,
    AtMost,
    Below,
}

impl Relation {
    fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::AtLeast => value >= bound,
            Self::Above => value > bound,
            Self::AtMost => value <= bound,
            Self::Below => value < bound,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::AtLeast => "at least",
            Self::Above => "more than",
            Self::AtMost => "at most",
            Self::Below => "less than",
        }
    }
}

/// Whether a fact is as a finding needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It is not: this is why the rule found nothing here.
    Unmet,
    NotMeasured,
    Met,
}

/// Something that a rule looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// What it is: a noun with what it is of, or a statement where it has no number.
    pub name: &'static str,
    /// The direction that it is of, where the rule looks at each.
    pub direction: Option<Direction>,
    /// Which of several things that each suffice it belongs to.
    pub alternative: Option<&'static str>,
    pub state: State,
    /// The value, and what a finding needs it to be.
    numbers: Option<(Quantity, Relation, f64)>,
}

impl Fact {
    /// The fact in one clause, with its value and its bound.
    pub fn shown(&self) -> String {
        let of = match (self.direction, self.alternative) {
            (Some(direction), Some(alternative)) => {
                format!("{}, {alternative}: ", direction.name())
            }
            (Some(direction), None) => format!("{}: ", direction.name()),
            (None, Some(alternative)) => format!("{alternative}: "),
            (None, None) => String::new(),
        };
        let name = self.name;
        match (self.state, self.numbers) {
            (State::NotMeasured, _) => format!("{of}{name}: not measured"),
            (_, Some((value, relation, bound))) => format!(
                "{of}{name} {}; a finding needs {} {}",
                value.shown(),
                relation.words(),
                value.unit.of(bound).shown()
            ),
            (State::Unmet, None) => format!("{of}{name}: not so"),
            (State::Met, None) => format!("{of}{name}"),
        }
    }
}

/// What rules asked for, in the order in which they did.
#[derive(Debug, Default)]
pub(crate) struct Log(RefCell<Vec<Fact>>);

impl Log {
    pub(crate) fn into_facts(self) -> Vec<Fact> {
        self.0.into_inner()
    }
}

/// Answers what a rule asks of a direction, and keeps it in the log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Recorder<'a> {
    log: Option<&'a Log>,
    direction: Option<Direction>,
    alternative: Option<&'static str>,
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(log: Option<&'a Log>, direction: Option<Direction>) -> Self {
        Self {
            log,
            direction,
            alternative: None,
        }
    }

    /// The same for one of several things that each suffice.
    pub(crate) fn by(self, alternative: &'static str) -> Self {
        Self {
            alternative: Some(alternative),
            ..self
        }
    }

    /// A value that was measured, or not.
    pub(crate) fn known<T>(self, name: &'static str, value: Option<T>) -> Option<T> {
        if value.is_none() {
            self.keep(name, State::NotMeasured, None);
        }
        value
    }

    pub(crate) fn at_least(self, name: &'static str, value: Quantity, bound: f64) -> bool {
        self.compare(name, value, Relation::AtLeast, bound)
    }

    pub(crate) fn above(self, name: &'static str, value: Quantity, bound: f64) -> bool {
        self.compare(name, value, Relation::Above, bound)
    }

    pub(crate) fn at_most(self, name: &'static str, value: Quantity, bound: f64) -> bool {
        self.compare(name, value, Relation::AtMost, bound)
    }

    pub(crate) fn below(self, name: &'static str, value: Quantity, bound: f64) -> bool {
        self.compare(name, value, Relation::Below, bound)
    }

    /// A statement that a finding needs, without a number.
    pub(crate) fn is(self, statement: &'static str, holds: bool) -> bool {
        self.keep(statement, state(holds), None);
        holds
    }

    /// What a rule found that compares nothing with a bound: whether it had what it reads, and what it looks for there.
    pub(crate) fn found<T>(
        self,
        (name, is_measured): (&'static str, bool),
        statement: &'static str,
        found: Vec<T>,
    ) -> Vec<T> {
        if self.known(name, is_measured.then_some(())).is_some() {
            self.is(statement, !found.is_empty());
        }
        found
    }

    fn compare(self, name: &'static str, value: Quantity, relation: Relation, bound: f64) -> bool {
        let holds = relation.holds(value.value, bound);
        self.keep(name, state(holds), Some((value, relation, bound)));
        holds
    }

    fn keep(self, name: &'static str, state: State, numbers: Option<(Quantity, Relation, f64)>) {
        let Some(log) = self.log else {
            return;
        };
        let fact = Fact {
            name,
            direction: self.direction,
            alternative: self.alternative,
            state,
            numbers,
        };
        let mut facts = log.0.borrow_mut();
        if !facts.contains(&fact) {
            facts.push(fact);
        }
    }
}

fn state(holds: bool) -> State {
    match holds {
        true => State::Met,
        false => State::Unmet,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_compared_is_shown_with_its_value_and_its_bound() {
        let log = Log::default();
        let up = Recorder::new(Some(&log), Some(Direction::Up));
        let of_none = Recorder::new(Some(&log), None);
        assert!(!up.at_least("increase of round trips", seconds(0.012), 0.06));
        assert!(up.by("while idle").below("loss", ratio(0.0), 0.02));
        assert_eq!(up.known("datagrams above the rate", None::<f64>), None);
        assert!(!of_none.is("no other host uses the line", false));
        assert!(Recorder::new(None, None).is("nothing is kept", true));
        let facts = log.into_facts();
        let shown: Vec<String> = facts.iter().map(Fact::shown).collect();
        assert_eq!(
            shown,
            [
                "up: increase of round trips 12.0 ms; a finding needs at least 60.0 ms",
                "up, while idle: loss 0.0 %; a finding needs less than 2.0 %",
                "up: datagrams above the rate: not measured",
                "no other host uses the line: not so",
            ]
        );
    }
}
