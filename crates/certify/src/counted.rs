//! Trials that count, and how many of them are right.

use std::collections::BTreeMap;

use crate::judge::{Judgement, Outcome};
use crate::library::{Library, Role};
use crate::results::{Checked, Line};
use crate::statistics::Count;
use crate::words::expected;

/// A trial that counts: it came to a verdict, and the machine kept up.
pub(crate) struct Counted<'a> {
    pub(crate) line: &'a Line,
    pub(crate) checked: &'a Checked,
    pub(crate) judgement: Judgement,
}

impl Counted<'_> {
    /// Whether the verdict is right, as far as measurements distinguish its causes.
    pub(crate) fn is_right(&self) -> bool {
        self.judgement.outcome >= Outcome::Ambiguous
    }

    pub(crate) fn is_ambiguous(&self) -> bool {
        self.judgement.outcome == Outcome::Ambiguous
    }

    /// What faults are counted by: the first name that is right.
    pub(crate) fn cause(&self, library: &Library) -> String {
        let expected = expected(library, &self.line.trial);
        let names: Vec<&str> = expected
            .iter()
            .map(|expect| expect.first.first().map_or("nothing", String::as_str))
            .collect();
        names.join(" and ")
    }
}

/// The counted trials of some roles.
pub(crate) fn of_role<'a, 'b>(
    counted: &'b [Counted<'a>],
    roles: &'static [Role],
) -> impl Iterator<Item = &'b Counted<'a>> {
    counted
        .iter()
        .filter(move |counted| roles.contains(&counted.line.trial.role))
}

/// Lines with something that must be found.
pub(crate) const FAULTY: &[Role] = &[Role::Fault, Role::Unknown, Role::Pair];

/// Counts by a name.
pub(crate) fn counts<'a>(
    counted: impl Iterator<Item = &'a Counted<'a>>,
    name: impl Fn(&Counted<'_>) -> String,
) -> BTreeMap<String, Count> {
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    for counted in counted {
        let count = counts.entry(name(counted)).or_default();
        count.of += 1;
        count.hits += usize::from(counted.is_right());
    }
    counts
}
