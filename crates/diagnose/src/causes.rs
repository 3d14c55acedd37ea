//! What each cause is, one file each in `causes/`: the list of files is the table of causes (`build.rs`).

use plumb_model::finding::{Cause, Finding};
use plumb_model::vocabulary::Vocabulary as _;

use crate::Case;
use crate::entry::Entry;
use crate::signs::{self, Sign};

include!(concat!(env!("OUT_DIR"), "/causes.rs"));

const _: () = assert!(
    FILES.len() == Cause::WORDS.len(),
    "each cause of plumb_model has a file in causes/, and each file there a cause"
);

/// What is known of a cause.
pub fn entry(cause: Cause) -> &'static Entry {
    let known = FILES.iter().find(|(known, _)| *known == cause);
    known.map_or(&unexplained::CAUSE, |(_, entry)| entry)
}

/// All causes, in the order of their names.
pub fn all() -> impl Iterator<Item = (Cause, &'static Entry)> {
    let causes = Cause::WORDS.iter();
    causes.map(|(cause, _)| (*cause, entry(*cause)))
}

/// The same in the order of their files, in which rules are asked.
pub(crate) fn by_file() -> impl Iterator<Item = (Cause, &'static Entry)> {
    FILES.iter().copied()
}

/// What signs come to that nothing explains.
pub(crate) fn unexplained(signs: Vec<Sign>) -> Option<Finding> {
    unexplained::of(signs)
}

/// Signs that no finding accounts for.
pub(crate) fn left(case: &Case<'_>, findings: &[Finding]) -> Vec<Sign> {
    let mut left = signs::signs(case);
    left.retain(|sign| !findings.iter().any(|finding| explains(finding, sign)));
    left
}

/// Whether a finding accounts for a sign. What is only worth knowing accounts for nothing worse: it would clear the path of it.
pub(crate) fn explains(finding: &Finding, sign: &Sign) -> bool {
    finding.severity >= sign.severity && (entry(finding.cause).explains)(finding, sign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_file_and_says_what_it_is() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/causes");
        for ((cause, word), meaning) in Cause::WORDS.iter().zip(Cause::MEANINGS) {
            let file = folder.join(word.replace('-', "_")).with_extension("rs");
            let text = std::fs::read_to_string(file).unwrap();
            assert_eq!(text.lines().next(), Some(format!("//!{meaning}").as_str()));
            assert!(meaning.ends_with('.'), "{word}: {meaning}");
            assert!(
                !entry(*cause).vanishes.is_empty(),
                "{word}: what proves it?"
            );
            for (other, difference) in entry(*cause).resembles {
                assert_ne!(other, cause);
                assert!(!difference.is_empty());
            }
        }
    }

    /// What a cause is stands in its file: what decides between causes has names of none.
    #[test]
    fn what_decides_between_causes_names_none() {
        let sources = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for file in [
            "dropped_here.rs",
            "experiment.rs",
            "host/audit.rs",
            "lib.rs",
            "relevance.rs",
            "rules.rs",
            "segments.rs",
            "segments/amount.rs",
            "verdict/requirements.rs",
            "weighing/mod.rs",
            "weighing/prior.rs",
        ] {
            let text = std::fs::read_to_string(sources.join(file)).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let named = Cause::WORDS.iter().find(|(cause, _)| {
                let name = format!("Cause::{cause:?}");
                let mut after = code.split(name.as_str()).skip(1);
                after.any(|rest| !rest.starts_with(char::is_alphanumeric))
            });
            assert_eq!(named, None, "{file}");
        }
    }
}
