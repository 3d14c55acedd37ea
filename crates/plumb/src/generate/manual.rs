//! The manual: a page of man(7) for each command, in section 1.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Context as _;
use clap::Command;
use clap_mangen::Man;
use jiff::Timestamp;

/// Holds the seconds since 1970 that a build takes for its time, so that it can be repeated
/// (reproducible-builds.org/specs/source-date-epoch).
const DATE: &str = "SOURCE_DATE_EPOCH";

/// Writes the pages of a command and of all below it.
pub(super) fn write(command: Command, directory: &Path) -> anyhow::Result<()> {
    // `help` has no options, and a page for each of its words would say nothing.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    let now = match env::var(DATE) {
        Ok(seconds) => seconds
            .parse()
            .ok()
            .and_then(|seconds| Timestamp::from_second(seconds).ok())
            .with_context(|| format!("{DATE} is no number of seconds: '{seconds}'"))?,
        Err(_) => Timestamp::now(),
    };
    let date = now.strftime("%Y-%m-%d").to_string();
    fs::create_dir_all(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    write_one(&command, directory, &date)
}

fn write_one(command: &Command, directory: &Path, date: &str) -> anyhow::Result<()> {
    let below = command.get_subcommands().filter(|one| !one.is_hide_set());
    for one in below {
        write_one(one, directory, date)?;
    }
    let notes = command.get_after_long_help().map(ToString::to_string);
    let man = Man::new(command.clone().after_help(None).after_long_help(None))
        .date(date)
        .source(concat!("plumb ", env!("CARGO_PKG_VERSION")))
        .manual("plumb");
    let mut page = Vec::new();
    man.render(&mut page)?;
    // A break beside an empty line does nothing, and mandoc(1) warns of it.
    let page = String::from_utf8(page)?.replace("\n\n.br\n", "\n\n");
    let mut page = page.replace("\n.br\n\n", "\n\n");
    if let Some(notes) = notes {
        page += &section(&notes);
    }
    let file = directory.join(man.get_filename());
    fs::write(&file, page).with_context(|| format!("cannot write {}", file.display()))
}

/// What stands after the options: examples, whose lines stay as they are, and text.
fn section(notes: &str) -> String {
    let mut page = ".SH NOTES\n".to_owned();
    let mut as_they_are = false;
    let mut between = false;
    for line in notes.lines() {
        let indented = line.starts_with(' ');
        if line.trim().is_empty() {
            between = true;
            continue;
        }
        if indented != as_they_are {
            page += if indented { ".nf\n" } else { ".fi\n" };
            as_they_are = indented;
        }
        if between {
            page += ".PP\n";
        }
        between = false;
        let _ = writeln!(page, "{}", escaped(line.trim_end()));
    }
    if as_they_are {
        page += ".fi\n";
    }
    page
}

/// A line that roff(7) sets as it stands.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_stay_as_they_are_and_text_is_filled() {
        let page = section("Examples:\n  plumb a\n  plumb b\n\nLimits: one\n.two \\ three.");
        let whole = ".SH NOTES\nExamples:\n.nf\n  plumb a\n  plumb b\n.fi\n.PP\nLimits: one\n\\&.two \\e three.\n";
        assert_eq!(page, whole);
    }
}
