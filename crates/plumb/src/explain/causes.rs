//! The causes that plumb looks for.

use std::fmt::Write as _;

use plumb_diagnose::causes::{all, entry};
use plumb_diagnose::entry::Entry;
use plumb_model::finding::Cause;
use plumb_model::goal::Effort;
use plumb_model::order::sort_few;
use plumb_model::vocabulary::Vocabulary as _;

use crate::check::plan::{FarEnd, measures};
use crate::wrapped::wrap;

/// All of them, by family.
pub(super) fn list(width: usize) -> String {
    let mut families: Vec<_> = all().map(|(_, entry)| entry.family).collect();
    sort_few(&mut families, Ord::cmp);
    families.dedup();
    let mut text = String::from("# What plumb looks for\n");
    for family in families {
        let _ = write!(text, "\n{}:\n", family.title());
        for (cause, _) in all().filter(|(_, entry)| entry.family == family) {
            let name = format!("  {:26} ", cause.name());
            wrap(&mut text, &name, name.len(), meaning(cause), width);
        }
    }
    text += "\nplumb explain CAUSE shows what looks like it and what would prove it.\n\n";
    text + &seen()
}

/// Which checks look for which cause: generated from what each cause needs and what each check measures.
fn seen() -> String {
    const EFFORTS: [Effort; 3] = [Effort::Quick, Effort::Usual, Effort::Thorough];
    let mut text = String::from(
        "# Which checks look for them\n\n\
         R: against `plumb serve`; H: against any host that answers; L: without a far end\n\
         (plumb check --local). With *, only where raw sockets may be opened (root,\n\
         CAP_NET_RAW). A dot: not by any of these.\n\n",
    );
    let _ = writeln!(
        text,
        "  {:26} {:10} {:10} {:10}",
        "", "--quick", "default", "--thorough"
    );
    for (cause, entry) in all() {
        let cells = EFFORTS.map(|effort| cell(entry, effort));
        let [quick, usual, thorough] = cells;
        let line = format!("  {:26} {quick:10} {usual:10} {thorough}", cause.name());
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text + "\nThe rest is looked for by plumb check --for web, transfer or backup, and by\n\
            commands of their own: plumb host, path, mtu, capacity, port, page; plumb diagnose\n\
            judges several together.\n"
}

/// Against which far ends a check of that effort looks for a cause.
fn cell(entry: &Entry, effort: Effort) -> String {
    let far_ends = [
        (FarEnd::Responder, "R"),
        (FarEnd::Host, "H"),
        (FarEnd::None, "L"),
    ];
    let looks = |far: FarEnd, raw: bool| {
        let needs = entry.needs.iter();
        !entry.needs.is_empty()
            && needs
                .into_iter()
                .all(|need| measures(*need, effort, far, raw))
    };
    let cells = far_ends.map(
        |(far, letter)| match (looks(far, false), looks(far, true)) {
            (true, _) => letter.to_owned(),
            (false, true) => format!("{letter}*"),
            (false, false) => String::new(),
        },
    );
    match cells.concat() {
        none if none.is_empty() => ".".to_owned(),
        some => some,
    }
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
    fn a_quick_check_looks_for_no_large_queue_and_a_default_one_does() {
        let of = |cause, effort| cell(entry(cause), effort);
        assert_eq!(of(Cause::BufferbloatUp, Effort::Quick), ".");
        assert_eq!(of(Cause::BufferbloatUp, Effort::Usual), "R");
        assert_eq!(of(Cause::EcnCleared, Effort::Usual), "RH*");
        assert_eq!(of(Cause::LinkErrors, Effort::Quick), "RL");
        assert_eq!(of(Cause::LinkSlow, Effort::Quick), "RHL");
    }

    #[test]
    fn every_cause_is_listed_and_has_a_page() {
        let (list, pages) = (list(80), pages::built_in().unwrap());
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
