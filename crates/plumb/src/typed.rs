//! What was typed and is no command of plumb: the error names it, what is accepted, and what is nearest.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

use crate::exit::USAGE;
use crate::{stderr, stdout};

/// A slip or two in a word: among so many names, one is always a little like.
const NEAR: f64 = 0.7;

/// Prints what clap made of the words behind `plumb`: help, the version, or why they are no command.
pub(crate) fn answer(mut error: Error, command: &Command, words: &[OsString]) -> ExitCode {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A terminal that is gone needs no help.
            let _ = stdout::print_styled(&error.render().ansi().to_string());
            return ExitCode::SUCCESS;
        }
        ErrorKind::UnknownArgument => {
            let typed = text(&error, ContextKind::InvalidArg).unwrap_or_default();
            if typed.starts_with('-') {
                // Not what clap would have: that it could be a value behind `--`.
                error.remove(ContextKind::Suggested);
                if error.get(ContextKind::SuggestedArg).is_none() {
                    suggest(&mut error, option_tip(command, &words, &typed));
                }
            }
        }
        ErrorKind::InvalidSubcommand => {
            let typed = text(&error, ContextKind::InvalidSubcommand).unwrap_or_default();
            if is_host(&typed) {
                error.remove(ContextKind::SuggestedSubcommand);
                suggest(
                    &mut error,
                    format!("to check the path to it: plumb check {typed}"),
                );
            }
        }
        _ => {}
    }
    stderr::print_styled(&error.render().ansi().to_string());
    ExitCode::from(USAGE)
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

fn suggest(error: &mut Error, tip: String) {
    let tips = ContextValue::StyledStrs(vec![StyledStr::from(tip)]);
    error.insert(ContextKind::Suggested, tips);
}

/// A verb is one word of letters; what has a dot or a colon is rather a far end.
fn is_host(typed: &str) -> bool {
    typed.contains(['.', ':']) || typed == "localhost"
}

/// The verb that words are of, with its name behind `plumb`.
fn verb_of<'a>(command: &'a Command, words: &[&str]) -> (&'a Command, String) {
    let (mut verb, mut name) = (command, String::from("plumb"));
    for word in words {
        match verb.find_subcommand(word) {
            Some(inner) => {
                verb = inner;
                name = format!("{name} {}", inner.get_name());
            }
            None if verb.has_subcommands() => {}
            None => break,
        }
    }
    (verb, name)
}

/// The long names of a verb's options, others that they go by among them.
fn longs(verb: &Command) -> impl Iterator<Item = &str> {
    verb.get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .flat_map(|arg| {
            let others = arg.get_all_aliases().unwrap_or_default();
            arg.get_long().into_iter().chain(others)
        })
}

/// The letters that a verb takes.
pub(crate) fn letters(verb: &Command) -> impl Iterator<Item = (char, &clap::Arg)> {
    verb.get_arguments()
        .filter(|arg| !arg.is_hide_set())
        .flat_map(|arg| {
            let others = arg.get_all_short_aliases().unwrap_or_default();
            let all = arg.get_short().into_iter().chain(others);
            all.map(move |letter| (letter, arg))
        })
}

/// What may have been meant by an option that a verb does not have.
fn option_tip(command: &Command, words: &[&str], typed: &str) -> String {
    let (verb, name) = verb_of(command, words);
    let help = format!("{name} --help shows all");
    let Some(long) = typed.strip_prefix("--") else {
        let mut letters: Vec<String> = letters(verb)
            .map(|(letter, _)| format!("-{letter}"))
            .collect();
        letters.sort_unstable_by_key(|letter| letter.to_lowercase());
        return match letters.is_empty() {
            true => format!("{name} has no letters; {help}"),
            false => format!("{name} takes {}; {help}", letters.join(" ")),
        };
    };
    let long = long.split('=').next().unwrap_or(long);
    let like = |known: &&str| strsim::normalized_damerau_levenshtein(long, known);
    if let Some(near) = longs(verb).max_by(|a, b| like(a).total_cmp(&like(b)))
        && like(&near) >= NEAR
    {
        return format!("the nearest option is --{near}; {help}");
    }
    let elsewhere: Vec<String> = command
        .get_subcommands()
        .filter(|other| longs(other).any(|known| known == long))
        .map(|other| format!("plumb {}", other.get_name()))
        .collect();
    match elsewhere.is_empty() {
        true => help,
        false => format!("--{long} is an option of {}; {help}", elsewhere.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command;

    fn tip(line: &str, typed: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        option_tip(&command(true), &words, typed)
    }

    #[test]
    fn an_unknown_option_is_answered_with_what_is_near() {
        let near = tip("rate server --duraton 5", "--duraton");
        assert!(near.contains("nearest option is --duration"), "{near}");
        let elsewhere = tip("check server --udp", "--udp");
        assert!(
            elsewhere.contains("plumb rate") && elsewhere.contains("plumb check --help"),
            "{elsewhere}"
        );
        let letters = tip("mtu server -x", "-x");
        assert!(
            letters.contains("-4 -6") && letters.contains("-W"),
            "{letters}"
        );
        assert!(tip("lab list --x", "--x").contains("plumb lab list --help"));
    }

    #[test]
    fn a_far_end_is_told_from_a_verb() {
        assert!(is_host("example.com") && is_host("2001:db8::1") && is_host("localhost"));
        assert!(!is_host("rat") && !is_host(""));
    }
}
