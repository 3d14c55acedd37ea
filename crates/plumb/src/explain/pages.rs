//! The knowledge base, built in (`build.rs` packs it).

use std::io::Read as _;

use anyhow::Context as _;
use flate2::read::DeflateDecoder;
use plumb_model::json;
use serde::Deserialize;

const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/pages.json.deflate"));

/// The page of the words that people use, of which each is shown by itself (`glossary.rs`).
pub(super) const GLOSSARY: &str = "glossary";

#[derive(Deserialize)]
pub(super) struct Page {
    pub(super) topic: String,
    /// What else people call it, and the causes and remedies that it is about.
    pub(super) also: Vec<String>,
    pub(super) text: String,
}

impl Page {
    /// What the page calls itself.
    pub(super) fn title(&self) -> &str {
        let line = self.text.lines().next().unwrap_or_default();
        line.trim_start_matches('#').trim()
    }
}

/// A name in the form that is compared: `Buffer bloat`, `buffer-bloat` and `bufferbloat` are one.
pub(super) fn fold(name: &str) -> String {
    let kept = name.chars().filter(|c| !matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).collect()
}

/// All of them, by topic.
pub(super) fn built_in() -> anyhow::Result<Vec<Page>> {
    let mut text = Vec::new();
    let read = DeflateDecoder::new(PACKED).read_to_end(&mut text);
    read.context("cannot unpack the knowledge base")?;
    json::from_slice(&text).context("cannot read the knowledge base")
}

/// The page of a topic, by its name or another.
pub(super) fn named<'a>(pages: &'a [Page], asked: &str) -> Option<&'a Page> {
    let asked = fold(asked);
    let by_topic = pages.iter().find(|page| fold(&page.topic) == asked);
    by_topic.or_else(|| {
        let mut by_other = pages
            .iter()
            .filter(|page| page.also.iter().any(|name| fold(name) == asked));
        by_other.next()
    })
}

/// The topics of the pages that have a word, or words in this order, in their text; of all but the glossary.
pub(super) fn that_mention<'a>(pages: &'a [Page], asked: &str) -> Vec<&'a str> {
    /// Less than this is in every page.
    const ENOUGH_CHARS: usize = 3;
    let asked = asked.trim().to_lowercase();
    if asked.chars().count() < ENOUGH_CHARS {
        return Vec::new();
    }
    let whole = |text: &str| {
        text.match_indices(&asked).any(|(at, found)| {
            let letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
            let (before, behind) = (text.get(..at), text.get(at + found.len()..));
            !letter(before.and_then(|text| text.chars().next_back()))
                && !letter(behind.and_then(|text| text.chars().next()))
        })
    };
    let with = pages
        .iter()
        .filter(|page| page.topic != GLOSSARY && whole(&page.text.to_lowercase()));
    with.map(|page| page.topic.as_str()).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn every_name_leads_to_one_page() {
        let pages = built_in().unwrap();
        let mut known = BTreeMap::new();
        for page in &pages {
            assert!(page.text.starts_with("# "), "{}", page.topic);
            for name in page.also.iter().chain([&page.topic]) {
                let other = known.insert(fold(name), page.topic.clone());
                assert_eq!(other, None, "{name} is also {}", page.topic);
                assert_eq!(named(&pages, name).unwrap().topic, page.topic);
            }
        }
        assert!(known.len() > 100);
    }

    #[test]
    fn a_word_without_a_page_leads_to_those_that_have_it() {
        let page = |topic: &str, text: &str| Page {
            topic: topic.to_owned(),
            also: Vec::new(),
            text: text.to_owned(),
        };
        let pages = [page("a", "# A\n\nNUMA nodes."), page("b", "# B\n\nnumatic")];
        assert_eq!(that_mention(&pages, "numa"), ["a"]);
        assert!(that_mention(&pages, "a").is_empty());
    }
}
