//! What each cause is, one file each in `causes/`: the list of files is the table of causes (`build.rs`).

use plumb_model::finding::{Cause, Finding, Place, Severity};
use plumb_model::vocabulary::Vocabulary as _;

use crate::entry::Entry;
use crate::signs::{self, Sign};
use crate::{Case, host};

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

/// What signs come to that nothing explains.
pub(crate) fn unexplained(signs: Vec<Sign>) -> Option<Finding> {
    unexplained::of(signs)
}

/// Signs that no finding accounts for.
pub(crate) fn left(case: &Case<'_>, findings: &[Finding]) -> Vec<Sign> {
    let mut left = signs::signs(case);
    left.retain(|sign| {
        // What is only worth knowing accounts for nothing worse: it would clear the path of it.
        let explains = |finding: &Finding| {
            finding.severity >= sign.severity && (entry(finding.cause).explains)(finding, sign)
        };
        !findings.iter().any(explains)
    });
    left
}

/// What all rules find.
pub(crate) fn found(case: &Case<'_>) -> Vec<Finding> {
    let entries = FILES.iter();
    let all = entries.flat_map(|(_, entry)| (entry.examine)(case));
    let mut all: Vec<Finding> = all.collect();
    let audits = case.hosts().map(|(id, host)| host::audit(host, id));
    let mut of_host: Vec<Finding> = audits.flat_map(|audit| audit.findings).collect();
    // What is only worth knowing of a machine does not hold back a path; nor does what it counted since it booted.
    let bears_on_a_path =
        |finding: &Finding| finding.severity > Severity::Info && !host::is_of_counters(finding);
    of_host.retain(|finding| !case.has_path() || bears_on_a_path(finding));
    // What a check saw itself says more than what the machine is set to, or has counted since it booted.
    let seen = |other: &Finding| {
        let mut all = all.iter();
        all.any(|finding| finding.cause == other.cause && finding.place == other.place)
    };
    of_host.retain(|finding| !seen(finding));
    all.extend(of_host);
    let causes: Vec<(Cause, Place)> = all.iter().map(|f| (f.cause, f.place)).collect();
    all.retain(|finding| {
        let accounts_for = |(cause, place): &(Cause, Place)| {
            let same = [place, &finding.place].contains(&&Place::Path) || *place == finding.place;
            same && entry(finding.cause).yields_to.contains(cause)
        };
        !causes.iter().any(accounts_for)
    });
    all
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
}
