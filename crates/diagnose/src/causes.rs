//! What each cause is, one file each in `causes/`: the list of files is the table of causes (`build.rs`).

use plumb_model::finding::{Cause, Finding};
use plumb_model::vocabulary::Vocabulary as _;

use crate::Case;
use crate::entry::Entry;
use crate::signs::{self, Sign};

include!(concat!(env!("OUT_DIR"), "/causes.rs"));

/// What is known of a cause.
pub fn entry(cause: Cause) -> &'static Entry {
    let known = FILES.iter().find(|(word, _)| *word == cause.name());
    known.map_or(&unexplained::CAUSE, |(_, entry)| entry)
}

/// All causes, in the order of their names.
pub fn all() -> impl Iterator<Item = (Cause, &'static Entry)> {
    let causes = Cause::WORDS.iter();
    causes.map(|(cause, _)| (*cause, entry(*cause)))
}

/// What signs come to that nothing explains.
pub(crate) fn unexplained(signs: Vec<Sign>) -> Option<Finding> {
    unexplained::of(signs)
}

/// Signs that no finding accounts for.
pub(crate) fn left(case: &Case<'_>, findings: &[Finding]) -> Vec<Sign> {
    let mut left = signs::signs(case);
    left.retain(|sign| {
        let explains = |finding: &Finding| (entry(finding.cause).explains)(finding, sign);
        !findings.iter().any(explains)
    });
    left
}

/// What all rules find.
pub(crate) fn found(case: &Case<'_>) -> Vec<Finding> {
    let entries = FILES.iter();
    let all = entries.flat_map(|(_, entry)| (entry.examine)(case));
    let mut all: Vec<Finding> = all.collect();
    let causes: Vec<Cause> = all.iter().map(|finding| finding.cause).collect();
    all.retain(|finding| {
        let others = entry(finding.cause).yields_to;
        !others.iter().any(|other| causes.contains(other))
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_file_and_says_what_it_is() {
        assert_eq!(FILES.len(), Cause::WORDS.len());
        for ((cause, word), meaning) in Cause::WORDS.iter().zip(Cause::MEANINGS) {
            assert!(FILES.iter().any(|(file, _)| file == word), "{word}");
            assert!(meaning.ends_with('.'), "{word}: {meaning}");
            for (other, difference) in entry(*cause).resembles {
                assert_ne!(other, cause);
                assert!(!difference.is_empty());
            }
        }
    }
}
