//! `plumb explain`: the knowledge base, the catalogue of knobs, and the meaning of counters.

mod causes;
mod glossary;
mod markdown;
mod pages;

use std::fmt::Write as _;
use std::process::ExitCode;

use clap::Args;
use plumb_host::knobs::{Catalogue, Knob, page};
use plumb_model::counter::{self, COUNTERS, Counter};
use plumb_model::tune::Os;
use plumb_model::vocabulary::Vocabulary as _;

use crate::output::{Pager, print, prose_columns, show_page};
use crate::usage::wrong;
use pages::Page;

/// What lists the settings, and what plumb looks for.
const KNOBS: &str = "knobs";
const CAUSES: &str = "causes";

/// What else there is, below the topics.
const LISTS: &str = "\
Words, such as jitter, vpn or zoom:  plumb explain WORD
All words:                           plumb explain glossary
What plumb looks for:                plumb explain causes
Settings of hosts:                   plumb explain knobs
";

#[derive(Args)]
pub(crate) struct Arguments {
    /// A word, topic, cause, setting or counter; none lists the topics
    ///
    /// A word is such as jitter, vpn or zoom, a setting such as tcp_rmem, fq or ring rx, a counter such as TcpRetransSegs. Several
    /// words that are no name together are looked up one by one. 'knobs' lists the settings, 'causes' what plumb looks for,
    /// 'glossary' the words.
    topic: Vec<String>,
    /// Print long pages at once
    ///
    /// Without it, what is longer than the terminal goes to the program that PAGER names, or to less.
    #[arg(long)]
    no_pager: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let pages = pages::built_in()?;
    let catalogue = Catalogue::built_in()?;
    let asked = arguments.topic.join(" ");
    if asked.trim().is_empty() {
        let list = glossary::topics(&pages, prose_columns()) + LISTS;
        arguments.show_lines(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    if asked.eq_ignore_ascii_case(KNOBS) {
        arguments.show_lines(&list(&catalogue))?;
        return Ok(ExitCode::SUCCESS);
    }
    if asked.eq_ignore_ascii_case(CAUSES) {
        arguments.show_lines(&causes::list(prose_columns()))?;
        return Ok(ExitCode::SUCCESS);
    }
    let known = Known { pages, catalogue };
    let words: Vec<&str> = asked.split_whitespace().collect();
    let (found, unknown) = known.look_up(&words);
    if found.is_empty() {
        return Err(wrong(known.refusal(&asked)));
    }
    let mut text = found.join("\n");
    if !unknown.is_empty() {
        let _ = writeln!(text, "\nNo page for: {}.", unknown.join(", "));
    }
    arguments.show(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// All that names are looked up in.
struct Known {
    pages: Vec<Page>,
    catalogue: Catalogue,
}

impl Known {
    /// What goes by a name: one may be a word, a topic, a setting of several systems, and a counter.
    fn named(&self, name: &str) -> Vec<String> {
        causes::page(name)
            .into_iter()
            .chain(glossary::page(&self.pages, name))
            .chain(pages::named(&self.pages, name).map(|page| page.text.clone()))
            .chain(self.catalogue.named(name).into_iter().map(page::page))
            .chain(counter::named(name).map(counter_page))
            .collect()
    }

    /// What goes by these words, as few names as they can be read as, and the words that are of none.
    fn look_up<'a>(&self, words: &[&'a str]) -> (Vec<String>, Vec<&'a str>) {
        let (mut found, mut unknown) = (Vec::new(), Vec::new());
        let mut rest = words;
        while let Some((first, behind)) = rest.split_first() {
            let named = (1..=rest.len()).rev().find_map(|count| {
                let (name, behind) = rest.split_at_checked(count)?;
                let named = self.named(&name.join(" "));
                (!named.is_empty()).then_some((named, behind))
            });
            let Some((named, behind)) = named else {
                unknown.push(*first);
                rest = behind;
                continue;
            };
            for page in named {
                if !found.contains(&page) {
                    found.push(page);
                }
            }
            rest = behind;
        }
        (found, unknown)
    }

    /// Why nothing was found, and what is near.
    fn refusal(&self, asked: &str) -> String {
        let near = meant(asked, &self.pages, &self.catalogue).join(", ");
        let mention = pages::that_mention(&self.pages, asked).join(", ");
        let rest = match (near.is_empty(), mention.is_empty()) {
            (true, true) => String::new(),
            (false, true) => format!(": did you mean {near}?"),
            (true, false) => format!("; these pages mention it: {mention}"),
            (false, false) => format!(": did you mean {near}? These pages mention it: {mention}"),
        };
        format!(
            "no page, setting or counter is called '{asked}'{rest}\nplumb explain alone lists all topics"
        )
    }
}

impl Arguments {
    /// Shows Markdown: set for a terminal, and unchanged elsewhere.
    fn show(&self, page: &str) -> anyhow::Result<()> {
        match plumb_net::terminal::columns() {
            Some(_) => show_page(&markdown::render(page, prose_columns()), self.pager()),
            None => print(page),
        }
    }

    /// Shows lines that are set already.
    fn show_lines(&self, text: &str) -> anyhow::Result<()> {
        show_page(text, self.pager())
    }

    fn pager(&self) -> Pager {
        match self.no_pager {
            true => Pager::None,
            false => Pager::WhereLong,
        }
    }
}

/// What a counter of `plumb host` and nstat(8) says.
fn counter_page(counter: &Counter) -> String {
    format!(
        "# {} (counter)\n\n{}.\n\n- {}: {}\n\nWhat it is here: plumb host --facts counters. More: plumb explain tcp-counters.\n",
        counter.name,
        counter.meaning,
        counter.sense,
        counter.sense.meaning()
    )
}

/// What was probably meant by a name that nothing goes by: names that have it in them, or else the nearest.
fn meant<'a>(asked: &str, pages: &'a [Page], catalogue: &'a Catalogue) -> Vec<&'a str> {
    /// Less than this is in too many names.
    const ENOUGH_CHARS: usize = 3;
    /// More names than this are not read.
    const MOST: usize = 8;
    /// A slip or two in a word: among so many names, one is always a little like.
    const NEAR: f64 = 0.7;
    let asked = asked.to_lowercase();
    let topics = pages.iter().map(|page| page.topic.as_str());
    let aliases = pages.iter().flat_map(|page| &page.also);
    let words = glossary::words(pages);
    let words = words.iter().flat_map(|word| word.names.iter().copied());
    let topics = topics
        .chain([KNOBS, CAUSES])
        .chain(aliases.map(String::as_str))
        .chain(words);
    let knobs = catalogue.knobs.iter().flat_map(Knob::names);
    let counters = COUNTERS.iter().map(|counter| counter.name);
    let names: Vec<&'a str> = topics.chain(knobs).chain(counters).collect();
    let mut with: Vec<&'a str> = Vec::new();
    // A knob's whole name says no more than its last part.
    for name in names.iter().filter(|name| !name.starts_with("net.")) {
        let contains =
            asked.chars().count() >= ENOUGH_CHARS && name.to_lowercase().contains(&asked);
        if contains && !with.contains(name) && with.len() < MOST {
            with.push(*name);
        }
    }
    if with.is_empty() {
        let like =
            |name: &&str| strsim::normalized_damerau_levenshtein(&asked, &name.to_lowercase());
        let near = names.into_iter().filter(|name| like(name) >= NEAR);
        with.extend(near.max_by(|a, b| like(a).total_cmp(&like(b))));
    }
    with
}

/// The names of all knobs, by system.
fn list(catalogue: &Catalogue) -> String {
    let of = |os: Os| {
        let names: String = catalogue
            .of(os)
            .map(|knob| {
                let gone = if knob.obsolete.is_some() {
                    "  (obsolete)"
                } else {
                    ""
                };
                format!("  {}{gone}\n", knob.name)
            })
            .collect();
        format!("{os}\n{names}")
    };
    Os::WORDS.iter().map(|(os, _)| of(*os)).collect()
}
