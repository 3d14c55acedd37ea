//! What was typed and is no command of plumb: the error names it, what is accepted, and what is nearest.

mod foreign;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

use crate::exit::USAGE;
use crate::quantity::{RATES, TIMES};
use crate::{stderr, stdout};

/// A slip or two in a word: among so many names, one is always a little like.
const NEAR: f64 = 0.7;

/// Options that exclude each other, and what serves who typed both.
const CONFLICTS: [(&str, &str, &str); 1] = [(
    "--continuous",
    "--cycles",
    "-c N alone ends after N probes to each hop; --continuous runs until Ctrl-C or q",
)];

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
                let (_, name) = verb_of(command, &words);
                if let Some(tip) = foreign::option(&name, &typed) {
                    error.remove(ContextKind::SuggestedArg);
                    suggest(&mut error, format!("{tip}; {name} --help shows all"));
                } else if error.get(ContextKind::SuggestedArg).is_none() {
                    suggest(&mut error, option_tip(command, &words, &typed));
                }
            } else if let Some(tip) = value_tip(command, &words, &typed) {
                error.remove(ContextKind::Suggested);
                suggest(&mut error, tip);
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
            } else if let Some((_, verb)) = foreign::COMMANDS
                .iter()
                .find(|(other, _)| typed.eq_ignore_ascii_case(other))
            {
                error.remove(ContextKind::SuggestedSubcommand);
                suggest(&mut error, format!("for that there is plumb {verb}"));
            }
        }
        ErrorKind::ArgumentConflict => {
            let words = [ContextKind::InvalidArg, ContextKind::PriorArg];
            let words: Vec<String> = words
                .into_iter()
                .filter_map(|kind| text(&error, kind))
                .collect();
            let both = words.join(" ");
            let tip = CONFLICTS
                .iter()
                .find(|(one, other, _)| both.contains(one) && both.contains(other));
            if let Some((.., tip)) = tip {
                suggest(&mut error, (*tip).to_owned());
            }
        }
        ErrorKind::InvalidValue => {
            let given = text(&error, ContextKind::InvalidValue).unwrap_or_default();
            let option = text(&error, ContextKind::InvalidArg).unwrap_or_default();
            if let Some(form) = form_of(&option).filter(|_| given.is_empty()) {
                suggest(&mut error, form.to_owned());
            }
        }
        _ => {}
    }
    let mut printed = error.render().ansi().to_string();
    let given = text(&error, ContextKind::InvalidValue).unwrap_or_default();
    if let Some(said) = std::error::Error::source(&error).map(ToString::to_string)
        && let Some(accepted) = accepted(&said).or_else(|| nearest(&said, &given))
    {
        printed = printed.replacen(&said, &accepted, 1);
    }
    stderr::print_styled(&printed);
    ExitCode::from(USAGE)
}

/// What a number may be, where the reader of numbers said in its own words what this one is not.
fn accepted(said: &str) -> Option<String> {
    if let Some((_, range)) = said.split_once(" is not in ") {
        let (low, high) = range.split_once("..")?;
        return Some(match (low, high.strip_prefix('=')) {
            ("", Some(high)) => format!("write a number of at most {high}"),
            (low, Some(high)) => format!("write a number from {low} to {high}"),
            (low, None) if high.is_empty() => format!("write a number of at least {low}"),
            (low, None) => format!("write a number from {low} to below {high}"),
        });
    }
    match said {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            Some("write a whole number".to_owned())
        }
        "invalid float literal" | "cannot parse float from empty string" => {
            Some("write a number, such as 0.5".to_owned())
        }
        "number too large to fit in target type" => Some("it is too large".to_owned()),
        "number too small to fit in target type" => Some("it is too small".to_owned()),
        _ => None,
    }
}

/// How a value is written that was left out, by the name that it has in the help, such as `--duration <TIME>`.
fn form_of(option: &str) -> Option<&'static str> {
    let (_, name) = option.split_once('<')?;
    match name.split('>').next()? {
        "TIME" => Some(TIMES),
        "RATE" => Some(RATES),
        "N" | "PORT" | "HOP" | "TIMES" | "BYTES" => Some("write a whole number"),
        "FILE" => Some("write the path of a file"),
        _ => None,
    }
}

/// The same with the nearest of the words that are known, where one is near.
fn nearest(said: &str, given: &str) -> Option<String> {
    let (_, known) = said.split_once("unknown word; known are ")?;
    let like = |known: &&str| strsim::normalized_damerau_levenshtein(given, known);
    let near = known
        .split(", ")
        .max_by(|a, b| like(a).total_cmp(&like(b)))?;
    (like(&near) >= NEAR).then(|| format!("unknown word; did you mean {near}? Known are {known}"))
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

fn word_before<'a>(words: &[&'a str], typed: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == typed)?;
    words.get(at.checked_sub(1)?).copied()
}

/// Why a word is one too many, where an option before it has no value: the word behind that was read as something else.
fn value_tip(command: &Command, words: &[&str], typed: &str) -> Option<String> {
    let (verb, _) = verb_of(command, words);
    let until = words.iter().position(|word| *word == typed)?;
    let before = words.get(..until)?;
    let (option, taken) = before
        .iter()
        .zip(before.iter().skip(1))
        .find(|(option, next)| {
            let flag = option.strip_prefix("--").and_then(|long| {
                verb.get_arguments()
                    .find(|arg| arg.get_long() == Some(long))
            });
            let flag = flag.is_some_and(|arg| !arg.get_action().takes_values());
            flag && !next.starts_with('-')
        })?;
    Some(format!(
        "{option} takes no value: '{taken}' was read as an argument of its own"
    ))
}

/// What may have been meant by an option that a verb does not have.
fn option_tip(command: &Command, words: &[&str], typed: &str) -> String {
    let (verb, name) = verb_of(command, words);
    let help = format!("{name} --help shows all");
    if let Some(before) = typed.strip_prefix('-')
        && before.starts_with(|first: char| first.is_ascii_digit() && !matches!(first, '4' | '6'))
        && let Some(option) = word_before(words, typed)
    {
        return format!("{option} takes no number below zero; {help}");
    }
    let Some(long) = typed.strip_prefix("--") else {
        let mut letters: Vec<String> = letters(verb)
            .map(|(letter, _)| format!("-{letter}"))
            .collect();
        letters.sort_unstable_by_key(|letter| letter.to_lowercase());
        return match letters.is_empty() {
            true => format!("{name} takes no short options here; {help}"),
            false => format!("{name} takes {}; {help}", letters.join(" ")),
        };
    };
    let long = long.split('=').next().unwrap_or(long);
    if longs(verb).any(|known| known == long) {
        return format!("options stand behind the command: {name} --{long}; {help}");
    }
    let like = |known: &&str| strsim::normalized_damerau_levenshtein(long, known);
    if let Some(near) = longs(verb).max_by(|a, b| like(a).total_cmp(&like(b)))
        && like(&near) >= NEAR
    {
        return format!("the nearest option is --{near}; {help}");
    }
    let with = |of: &Command, name: &str| -> Vec<String> {
        of.get_subcommands()
            .filter(|other| longs(other).any(|known| known == long))
            .map(|other| format!("{name} {}", other.get_name()))
            .collect()
    };
    let elsewhere = match with(verb, &name) {
        none if none.is_empty() => with(command, "plumb"),
        own => own,
    };
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
        let first = tip("--json check server", "--json");
        assert!(
            first.contains("behind the command: plumb check --json"),
            "{first}"
        );
        let negative = tip("ping -c -1 server", "-1");
        assert!(
            negative.contains("-c takes no number below zero"),
            "{negative}"
        );
    }

    #[test]
    fn an_option_of_a_part_of_the_verb_is_found_there() {
        let own = tip("calc --rate 10mbit", "--rate");
        assert!(
            own.contains("plumb calc bdp") && !own.contains("plumb rate"),
            "{own}"
        );
    }

    #[test]
    fn a_value_that_was_left_out_is_answered_with_its_form() {
        assert_eq!(form_of("--interval <TIME>"), Some(TIMES));
        assert_eq!(form_of("--count <N>"), Some("write a whole number"));
        assert_eq!(form_of("--for <PURPOSE>"), None);
    }

    #[test]
    fn of_known_words_the_nearest_is_named() {
        let said = "unknown word; known are linux, openbsd";
        assert_eq!(
            nearest(said, "openbs").as_deref(),
            Some("unknown word; did you mean openbsd? Known are linux, openbsd")
        );
        assert_eq!(nearest(said, "x"), None);
    }

    #[test]
    fn a_word_too_many_behind_an_option_without_a_value_is_explained() {
        let words = ["rate", "--udp", "53", "server"];
        let tip = value_tip(&command(true), &words, "server").unwrap_or_default();
        assert!(
            tip.contains("--udp takes no value") && tip.contains("'53'"),
            "{tip}"
        );
        assert_eq!(value_tip(&command(true), &["mtu", "a", "b"], "b"), None);
    }

    #[test]
    fn a_number_that_cannot_be_is_answered_with_those_that_can() {
        let said = |text| accepted(text).unwrap_or_default();
        assert_eq!(
            said("70000 is not in 0..=65535"),
            "write a number from 0 to 65535"
        );
        assert_eq!(said("0 is not in 1.."), "write a number of at least 1");
        assert_eq!(
            said("invalid digit found in string"),
            "write a whole number"
        );
        assert_eq!(accepted("a rate such as 9Gbit/s is needed"), None);
    }

    #[test]
    fn a_far_end_is_told_from_a_verb() {
        assert!(is_host("example.com") && is_host("2001:db8::1") && is_host("localhost"));
        assert!(!is_host("rat") && !is_host(""));
    }
}
