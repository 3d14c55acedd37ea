//! The glossary: words that people use of networks. `kb/glossary.md` holds them, and the groups of the pages.

use std::fmt::Write as _;

use super::pages::{GLOSSARY, Page, fold};
use crate::wrapped::wrap;

/// What begins a word's section.
const WORD: &str = "\n### ";
/// What begins any section.
const SECTION: &str = "\n##";
/// What begins the groups of the pages.
const GROUPS: &str = "\n## Pages\n";

/// Columns of a topic's name, for the longest of them.
const TOPIC_COLUMNS: usize = 20;

/// A word, with what else it is called.
pub(super) struct Word<'a> {
    pub(super) names: Vec<&'a str>,
    /// What it means, how to measure it, and the page that says more.
    text: &'a str,
}

impl Word<'_> {
    /// As a page of its own.
    pub(super) fn page(&self) -> String {
        format!("# {}\n\n{}\n", self.names.join(", "), self.text)
    }
}

/// All words of the glossary.
pub(super) fn words(pages: &[Page]) -> Vec<Word<'_>> {
    let text = text(pages);
    let sections = text.split(WORD).skip(1);
    let words = sections.filter_map(|section| section.split_once('\n'));
    let words = words.map(|(names, text)| Word {
        names: names.split(", ").collect(),
        text: text.split(SECTION).next().unwrap_or_default().trim(),
    });
    words.collect()
}

/// The page of a word, by any of its names.
pub(super) fn page(pages: &[Page], asked: &str) -> Option<String> {
    let asked = fold(asked);
    let words = words(pages);
    let mut named = words
        .iter()
        .filter(|word| word.names.iter().any(|name| fold(name) == asked));
    named.next().map(Word::page)
}

/// The topics by what they are about, a line each.
pub(super) fn topics(pages: &[Page], width: usize) -> String {
    let mut list = String::new();
    for (group, topics) in groups(pages) {
        let _ = writeln!(list, "{group}:");
        for topic in topics {
            let title = pages.iter().find(|page| page.topic == topic);
            let title = title.map_or("", Page::title);
            let name = format!("  {topic:TOPIC_COLUMNS$}");
            wrap(&mut list, &name, name.len(), title, width);
        }
        list.push('\n');
    }
    list
}

/// The names of the groups, and the topics in each.
fn groups(pages: &[Page]) -> Vec<(&str, Vec<&str>)> {
    let groups = text(pages).split_once(GROUPS);
    let lines = groups.map_or("", |(_, lines)| lines).lines();
    let items = lines.filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
    let groups = items.map(|(group, topics)| (group, topics.split(", ").collect()));
    groups.collect()
}

fn text(pages: &[Page]) -> &str {
    let page = pages.iter().find(|page| page.topic == GLOSSARY);
    page.map_or("", |page| page.text.as_str())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use clap::Parser as _;

    use super::*;
    use crate::explain::pages::built_in;

    /// The least number of words worth being called a glossary.
    const LEAST: usize = 60;

    /// The command behind `label` in a word's text.
    fn command<'a>(word: &Word<'a>, label: &str) -> &'a str {
        let at = format!("{label}: `plumb ");
        let rest = word.text.split_once(&at);
        let command = rest.and_then(|(_, rest)| rest.split('`').next());
        command.unwrap_or_else(|| panic!("{:?} has no '{label}'", word.names))
    }

    #[test]
    fn every_word_has_a_command_that_parses_and_a_page_that_exists() {
        let pages = built_in().unwrap();
        let words = words(&pages);
        assert!(words.len() >= LEAST, "{}", words.len());
        for word in &words {
            let measured = command(word, "Measure it");
            let line = measured.replace("HOST", "server").replace("URL", "server");
            let typed = ["plumb"].into_iter().chain(line.split(' '));
            let parsed = crate::Cli::try_parse_from(typed);
            assert!(parsed.is_ok(), "{:?}: {:?}", word.names, parsed.err());
            let topic = command(word, "More").strip_prefix("explain ").unwrap();
            let exists = pages.iter().any(|page| page.topic == topic);
            assert!(exists, "{:?}: {topic}", word.names);
        }
    }

    #[test]
    fn every_word_is_explained_in_two_sentences() {
        for word in words(&built_in().unwrap()) {
            let (meaning, _) = word.text.split_once("\n\nMeasure it: ").unwrap();
            let sentences = meaning.replace('\n', " ").matches(". ").count() + 1;
            assert!((2..=3).contains(&sentences), "{:?}: {meaning}", word.names);
            assert!(meaning.ends_with('.'), "{:?}", word.names);
        }
    }

    #[test]
    fn every_page_is_in_one_group_and_no_name_is_also_of_a_page() {
        let pages = built_in().unwrap();
        let groups = groups(&pages);
        for page in &pages {
            let with = groups.iter().flat_map(|(_, topics)| topics);
            let times = with.filter(|topic| **topic == page.topic).count();
            assert_eq!(times, 1, "{} in the groups of the glossary", page.topic);
        }
        // A line each on the terminal that every system has.
        let listed = super::topics(&pages, 80);
        let lines = listed.lines().filter(|line| line.starts_with("  ")).count();
        assert_eq!(lines, pages.len(), "{listed}");
        let also = || pages.iter().flat_map(|page| &page.also);
        let mut known = std::collections::BTreeSet::new();
        for name in words(&pages).iter().flat_map(|word| word.names.clone()) {
            assert!(known.insert(fold(name)), "{name} is there twice");
            let page = also().find(|other| fold(other) == fold(name));
            assert_eq!(page, None, "{name} is also another name of a page");
        }
    }
}
