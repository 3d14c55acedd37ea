//! The causes that plumb looks for.

use std::fmt::Write as _;

use plumb_diagnose::causes::{all, entry};
use plumb_diagnose::entry::Entry;
use plumb_model::finding::Cause;
use plumb_model::vocabulary::Vocabulary as _;

/// All of them, by family.
pub(super) fn list() -> String {
    let mut families: Vec<_> = all().map(|(_, entry)| entry.family).collect();
    families.sort();
    families.dedup();
    let mut text = String::from("# What plumb looks for\n");
    for family in families {
        let _ = write!(text, "\n{}:\n", family.title());
        for (cause, _) in all().filter(|(_, entry)| entry.family == family) {
            let _ = writeln!(text, "  {:26} {}", cause.name(), meaning(cause));
        }
    }
    text + "\nplumb explain CAUSE says what looks like it and what would prove it.\n"
}

/// What is known of one, where it goes by that name.
pub(super) fn page(asked: &str) -> Option<String> {
    let cause = Cause::of_word(&asked.to_lowercase().replace(' ', "-"))?;
    let Entry {
        vanishes,
        resembles,
        ..
    } = entry(cause);
    let mut text = format!(
        "# {cause} (cause)\n\n{}\n\n- proven if {vanishes}\n",
        meaning(cause)
    );
    for (other, difference) in *resembles {
        let _ = writeln!(text, "- looks like {other}: {difference}");
    }
    Some(text)
}

fn meaning(cause: Cause) -> &'static str {
    let mut known = Cause::WORDS.iter().zip(Cause::MEANINGS);
    let found = known.find(|((known, _), _)| *known == cause);
    found.map_or("", |(_, meaning)| meaning.trim())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::explain::pages;

    #[test]
    fn every_cause_is_listed_and_has_a_page() {
        let (list, pages) = (list(), pages::built_in().unwrap());
        for (cause, name) in Cause::WORDS {
            assert!(list.contains(&format!("\n  {name} ")), "{name}");
            assert!(page(name).unwrap().contains(meaning(*cause)), "{name}");
            assert!(
                pages::named(&pages, name).is_some(),
                "no page of kb/ has {name} among its names"
            );
        }
    }
}
