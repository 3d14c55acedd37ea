#![allow(clippy::unwrap_used)]
use std::collections::BTreeMap;
use std::time::Duration;

use clap::error::ErrorKind;
use plumb_model::run::kept;
use plumb_model::units::BitRate;

use super::*;
use crate::typed::letters;

/// A terminal as every system has one.
const SCREEN_LINES: usize = 24;
const SCREEN_COLUMNS: usize = 80;
/// Options that `-h` may show, itself not counted.
const MOST_OPTIONS: usize = 10;

/// What each letter means, by the options that have it. `plumb explain options` has the same table.
const LETTERS: &[(char, &[&str])] = &[
    ('4', &["v4"]),
    ('6', &["v6"]),
    ('A', &["adaptive"]),
    ('b', &["bandwidth"]),
    ('C', &["cc"]),
    ('c', &["count", "cycles"]),
    ('D', &["stamp"]),
    ('f', &["flood"]),
    ('h', &["help"]),
    ('I', &["from"]),
    ('i', &["interval"]),
    ('J', &["iperf3_json"]),
    ('l', &["preload"]),
    ('M', &["pmtudisc"]),
    ('m', &["max_hops", "ttl"]),
    ('n', &["numeric", "no_names"]),
    ('O', &["outstanding"]),
    ('o', &["output"]),
    ('P', &["streams"]),
    ('p', &["port"]),
    ('Q', &["tos"]),
    ('q', &["quiet"]),
    ('R', &["down"]),
    ('s', &["size"]),
    ('t', &["duration", "deadline", "time"]),
    ('u', &["udp"]),
    ('V', &["version"]),
    ('v', &["verbose"]),
    ('W', &["timeout"]),
    ('w', &["deadline"]),
    ('y', &["yes"]),
];

/// Letters that mean something else in one verb: what they mean in mtr, or in tcpdump.
const EXCEPTIONS: &[(&str, &[char])] = &[
    (
        "plumb path",
        &[
            'a', 'B', 'b', 'C', 'f', 'G', 'I', 'j', 'P', 'r', 'T', 'U', 'w', 'Z', 'z',
        ],
    ),
    ("plumb capture", &['i', 'w']),
];

/// Every command that can be typed, with its name.
fn all(long: bool) -> Vec<(String, Command)> {
    fn into(commands: &mut Vec<(String, Command)>, name: &str, command: &Command) {
        for inner in command.get_subcommands() {
            if inner.is_hide_set() || inner.get_name() == "help" {
                continue;
            }
            let name = format!("{name} {}", inner.get_name());
            commands.push((name.clone(), inner.clone()));
            into(commands, &name, inner);
        }
    }
    let mut top = crate::command(long).term_width(SCREEN_COLUMNS);
    top.build();
    let mut commands = vec![("plumb".to_owned(), top.clone())];
    into(&mut commands, "plumb", &top);
    assert!(commands.len() > 40, "{}", commands.len());
    commands
}

#[test]
fn what_is_a_secret_by_its_option_is_in_no_run() {
    let mut secrets = 0;
    for (name, command) in all(true) {
        for arg in command.get_opts() {
            let values: Vec<_> = arg.get_value_names().unwrap_or_default().to_vec();
            let is_secret = |value: &str| ["KEY", "PASSWORD", "SECRET", "TOKEN"].contains(&value);
            let names = arg.get_long_and_visible_aliases().unwrap_or_default();
            for long in names {
                let is_left_out = kept::is_secret(&format!("--{long}"));
                let takes_value = arg.get_action().takes_values();
                let wanted = values.iter().any(|value| is_secret(value));
                assert!(is_left_out || !wanted, "{name} --{long} is in Runs");
                // What stands behind an option without a value is left out as little as a letter that has one.
                assert!(takes_value || !is_left_out, "{name} --{long}");
                assert!(!wanted || arg.get_short().is_none(), "{name} --{long}");
                secrets += usize::from(wanted);
            }
        }
    }
    assert!(secrets > 3, "{secrets}");
}

#[test]
fn short_help_fits_a_terminal() {
    for (name, mut command) in all(false) {
        let help = command.render_help().to_string();
        let widest = help.lines().map(|line| line.chars().count()).max();
        assert!(
            help.lines().count() <= SCREEN_LINES,
            "{name}: {} lines\n{help}",
            help.lines().count()
        );
        assert!(
            widest <= Some(SCREEN_COLUMNS),
            "{name}: {widest:?} columns\n{help}"
        );
        let shown = command
            .get_opts()
            .filter(|arg| !arg.is_hide_set() && !arg.is_hide_short_help_set())
            .count();
        assert!(shown <= MOST_OPTIONS, "{name}: {shown} options");
    }
}

#[test]
fn long_help_shows_every_option_and_wraps_nowhere_twice() {
    for (name, mut command) in all(true) {
        let help = command.render_long_help().to_string();
        for line in help.lines() {
            assert!(line.chars().count() <= SCREEN_COLUMNS, "{name}: {line}");
        }
        for arg in command.get_opts().filter(|arg| !arg.is_hide_set()) {
            let long = arg.get_long().unwrap();
            assert!(help.contains(&format!("--{long}")), "{name} --{long}");
        }
        // A paragraph that is one line in the source has no newline of its own.
        for text in [command.get_after_long_help(), command.get_after_help()]
            .into_iter()
            .flatten()
        {
            let text = text.to_string();
            let lines: Vec<&str> = text.lines().collect();
            for pair in lines.windows(2) {
                let prose = |line: &str| {
                    let table = line.starts_with(' ') || line.ends_with(':') || name == "plumb";
                    !table && !line.is_empty()
                };
                assert!(
                    !(prose(pair[0]) && prose(pair[1])),
                    "{name}: a hard newline behind '{}'",
                    pair[0]
                );
            }
            let examples = lines.iter().filter(|line| line.starts_with("  "));
            for line in examples {
                assert!(line.chars().count() <= SCREEN_COLUMNS, "{name}: {line}");
            }
        }
    }
}

#[test]
fn what_is_arranged_exists() {
    let commands: BTreeMap<String, Command> = all(true).into_iter().collect();
    for screen in SCREENS {
        let Some(command) = commands.get(&format!("plumb {}", screen.verb)) else {
            let left_out = [
                ("tune", cfg!(feature = "tune")),
                ("shape", cfg!(feature = "shape")),
            ];
            let is_left_out = left_out
                .iter()
                .any(|(verb, is_in)| screen.verb.starts_with(verb) && !is_in);
            assert!(is_left_out, "{}", screen.verb);
            continue;
        };
        for id in screen.short {
            assert!(
                command.get_arguments().any(|arg| arg.get_id() == id),
                "{} {id}",
                screen.verb
            );
        }
    }
    let top = &commands["plumb"];
    let grouped: Vec<&str> = GROUPS
        .iter()
        .flat_map(|(_, verbs)| verbs.iter().copied())
        .collect();
    for verb in top
        .get_subcommands()
        .filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
    {
        assert!(
            grouped.contains(&verb.get_name()),
            "{} is in no group",
            verb.get_name()
        );
    }
}

#[test]
fn a_letter_means_one_thing() {
    let page = include_str!("../../../../kb/options.md");
    for (name, command) in all(true) {
        for (letter, arg) in letters(&command) {
            let id = arg.get_id().as_str();
            let usual = LETTERS.iter().find(|(known, _)| *known == letter);
            let as_usual = usual.is_some_and(|(_, ids)| ids.contains(&id));
            let exception = EXCEPTIONS
                .iter()
                .any(|(verb, letters)| *verb == name && letters.contains(&letter));
            assert!(as_usual != exception, "{name} -{letter} is {id}");
            assert!(
                page.contains(&format!("`-{letter}`")),
                "kb/options.md lacks -{letter}"
            );
        }
    }
}

/// Every option whose value is of that type, with the words that lead to it.
fn valued<T: 'static>() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (name, command) in all(true) {
        for arg in command.get_opts() {
            let parser = arg.get_value_parser().type_id();
            if parser == std::any::TypeId::of::<T>() {
                found.push((name.clone(), arg.get_long().unwrap().to_owned()));
            }
        }
    }
    found
}

/// What is said where an option has a value that makes no sense.
fn complaint(name: &str, option: &str) -> String {
    let words = name
        .split(' ')
        .map(str::to_owned)
        .chain([format!("--{option}=nonsense")]);
    let error = crate::command(true)
        .try_get_matches_from(words)
        .unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::ValueValidation,
        "{name} --{option}: {error}"
    );
    error.to_string()
}

#[test]
fn times_and_rates_are_written_alike_everywhere() {
    let times = valued::<Duration>();
    assert!(times.len() > 25, "{times:?}");
    for (name, option) in times {
        let says = complaint(&name, &option);
        assert!(
            says.contains("5, 5s, 250ms or 2m"),
            "{name} --{option}: {says}"
        );
    }
    let rates = valued::<BitRate>();
    assert!(rates.len() > 8, "{rates:?}");
    let others = [
        ("plumb rate", "rate"),
        ("plumb rate", "pacing"),
        ("plumb rate", "bandwidth"),
    ];
    let others = others.map(|(name, option)| (name.to_owned(), option.to_owned()));
    for (name, option) in rates.into_iter().chain(others) {
        let says = complaint(&name, &option);
        assert!(
            says.contains("20mbit, 20Mbit/s, 20M or 10G"),
            "{name} --{option}: {says}"
        );
    }
}

#[test]
fn each_verb_shows_its_own_defaults() {
    let shown = |name: &str| {
        let (_, mut command) = all(true)
            .into_iter()
            .find(|(known, _)| known == name)
            .unwrap();
        command
            .render_long_help()
            .to_string()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let (check, rate, load) = (
        shown("plumb check"),
        shown("plumb rate"),
        shown("plumb load"),
    );
    assert!(
        rate.contains("How long each phase of load lasts [default: 10s"),
        "{rate}"
    );
    assert!(
        load.contains("[default: 15s, 60s with --shape") && !load.contains("rate:"),
        "{load}"
    );
    assert!(
        !check.contains("rrul") && !check.contains("rate:"),
        "{check}"
    );
}
