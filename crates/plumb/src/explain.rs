//! `plumb explain`: the knowledge base, the catalogue of knobs, and the meaning of counters.

mod causes;
mod markdown;
mod pages;

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

#[derive(Args)]
pub(crate) struct Arguments {
    /// A topic, cause, setting or counter; none lists the topics
    ///
    /// A setting is such as tcp_rmem, fq or ring rx, a counter such as TcpRetransSegs. 'knobs' lists the settings, 'causes'
    /// what plumb looks for.
    topic: Vec<String>,
    /// Print long pages at once
    ///
    /// Without it, what is longer than the terminal goes to the program that PAGER names, or to less.
    #[arg(long)]
    no_pager: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let pages = pages::built_in()?;
    let topics: Vec<_> = pages.iter().map(|page| page.topic.as_str()).collect();
    let topics = topics.join(", ");
    let asked = arguments.topic.join(" ");
    if asked.trim().is_empty() {
        let list = format!(
            "Topics: {topics}\n\nKnobs: plumb explain knobs\n\nCauses: plumb explain causes\n"
        );
        arguments.show(&list)?;
        return Ok(ExitCode::SUCCESS);
    }
    let catalogue = Catalogue::built_in()?;
    if asked.eq_ignore_ascii_case(KNOBS) {
        arguments.show_lines(&list(&catalogue))?;
        return Ok(ExitCode::SUCCESS);
    }
    if asked.eq_ignore_ascii_case(CAUSES) {
        arguments.show_lines(&causes::list(prose_columns()))?;
        return Ok(ExitCode::SUCCESS);
    }
    // One word may be a topic, a setting of several systems, and a counter: all that is known is told.
    let found: Vec<String> = causes::page(&asked)
        .into_iter()
        .chain(pages::named(&pages, &asked).map(|page| page.text.clone()))
        .chain(catalogue.named(&asked).into_iter().map(page::page))
        .chain(counter::named(&asked).map(counter_page))
        .collect();
    if found.is_empty() {
        let near = meant(&asked, &pages, &catalogue);
        let mention = pages::that_mention(&pages, &asked);
        let rest = match (near.is_empty(), mention.is_empty()) {
            (true, true) => format!("; the topics are {topics}"),
            (false, true) => format!(": did you mean {}?", near.join(", ")),
            (true, false) => format!("; these pages mention it: {}", mention.join(", ")),
            (false, false) => format!(
                ": did you mean {}? These pages mention it: {}",
                near.join(", "),
                mention.join(", ")
            ),
        };
        return Err(wrong(format!(
            "no page, setting or counter is called '{asked}'{rest}\nplumb explain alone lists all topics"
        )));
    }
    arguments.show(&found.join("\n"))?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// Shows Markdown: set for a terminal, and as it is elsewhere.
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
    /// More than this nobody reads.
    const MOST: usize = 8;
    /// A slip or two in a word: among so many names, one is always a little like.
    const NEAR: f64 = 0.7;
    let asked = asked.to_lowercase();
    let topics = pages.iter().map(|page| page.topic.as_str());
    let aliases = pages.iter().flat_map(|page| &page.also);
    let topics = topics
        .chain([KNOBS, CAUSES])
        .chain(aliases.map(String::as_str));
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
