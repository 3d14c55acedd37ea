//! The pages of docs/, the manual and the completions agree with the commands.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{plumb, refused, repository, stderr, stdout};
use crate::documents::{listed_under, verbs};

/// Set to write the pages of the verbs anew instead of comparing them (`make docs`).
const UPDATE: &str = "PLUMB_UPDATE_DOCS";

/// Verbs, and the page of the knowledge base that has the background where it is not named as the verb is.
const BACKGROUND: [(&str, &str); 6] = [
    ("check", "verdict"),
    ("rate", "throughput"),
    ("load", "loaded-latency"),
    ("owd", "one-way-delay"),
    ("tune", "tuning"),
    ("shape", "shaping"),
];

fn help(command: &[&str]) -> String {
    let output = refused(&[command, &["--help"]].concat());
    assert!(output.status.success(), "{command:?}: {}", stderr(&output));
    let lines = stdout(&output);
    let lines: Vec<&str> = lines.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// The page of a command, and of those below it.
fn page(command: &[&str], level: usize) -> String {
    let mut page = format!(
        "{} plumb {}\n\n```text\n{}```\n",
        "#".repeat(level),
        command.join(" "),
        help(command)
    );
    for below in listed_under(command) {
        page += "\n";
        page += &self::page(&[command, &[below.as_str()]].concat(), level + 1);
    }
    page
}

fn page_of_verb(verb: &str) -> String {
    let background = BACKGROUND.iter().find(|(of, _)| *of == verb);
    let background = background.map_or(verb, |(_, page)| page);
    let text = page(&[verb], 1);
    match repository().join(format!("kb/{background}.md")).exists() {
        true => format!("{text}\nBackground: [{background}](../../kb/{background}.md)\n"),
        false => text,
    }
}

#[test]
fn the_pages_of_the_verbs_are_what_their_help_prints() {
    let folder = repository().join("docs/verbs");
    let verbs = verbs();
    for verb in &verbs {
        let file = folder.join(format!("{verb}.md"));
        let text = page_of_verb(verb);
        if std::env::var_os(UPDATE).is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, text).unwrap();
        } else {
            let written = std::fs::read_to_string(&file).unwrap_or_default();
            assert!(
                written == text,
                "{} is not what plumb {verb} --help prints: run make docs",
                file.display()
            );
        }
    }
    let pages = std::fs::read_dir(&folder).unwrap();
    let pages = pages.map(|page| page.unwrap().file_name().into_string().unwrap());
    let wanted: BTreeSet<String> = verbs.iter().map(|verb| format!("{verb}.md")).collect();
    assert_eq!(pages.collect::<BTreeSet<_>>(), wanted);
}

/// The pages that people write, and the README.
fn written_pages() -> Vec<(PathBuf, String)> {
    let files = std::fs::read_dir(repository().join("docs")).unwrap();
    let files = files.map(|file| file.unwrap().path());
    let pages = files.filter(|file| file.extension().is_some_and(|end| end == "md"));
    let pages: Vec<_> = pages
        .chain([repository().join("README.md")])
        .map(|file| (file.clone(), std::fs::read_to_string(file).unwrap()))
        .collect();
    assert!(pages.len() > 8, "{pages:?}");
    pages
}

#[test]
fn links_between_pages_lead_somewhere() {
    for (file, text) in written_pages() {
        for link in text.split("](").skip(1) {
            let (link, _) = link.split_once(')').unwrap();
            let path = link.split('#').next().unwrap();
            let there = link.starts_with("http") || file.parent().unwrap().join(path).exists();
            assert!(there, "{}: {link}", file.display());
        }
    }
}

/// The files below a folder whose names end so, with their text.
fn files_below(folder: &str, ending: &str, into: &mut Vec<(PathBuf, String)>) {
    let mut folders = vec![repository().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|end| end == ending) {
                let text = std::fs::read_to_string(&path).unwrap();
                into.push((path, text));
            }
        }
    }
}

/// Every `plumb VERB … --option` on these pages, in the knowledge base and in what findings advise is one that the verb has.
#[test]
fn commands_that_users_read_have_these_options() {
    let verbs = verbs();
    let mut helps: HashMap<Vec<String>, String> = HashMap::new();
    let mut help_of = |words: &[&str]| {
        let key = words.iter().map(ToString::to_string).collect();
        let made = helps.entry(key).or_insert_with(|| help(words));
        made.clone()
    };
    let mut belows = HashMap::new();
    let mut below_of = |verb: &str| {
        let key = verb.to_owned();
        belows
            .entry(key)
            .or_insert_with(|| listed_under(&[verb]))
            .clone()
    };
    let (mut seen, mut unknown) = (0, Vec::new());
    let mut texts = written_pages();
    files_below("kb", "md", &mut texts);
    files_below("crates/diagnose/src", "rs", &mut texts);
    files_below("crates/report/src", "rs", &mut texts);
    for (file, text) in texts {
        // After a comment, and after the end of a span of code, text goes on.
        let commands = text.split("plumb ").skip(1);
        let ends = ['\n', '`', '#', '|', '\'', '"', '{'];
        let commands = commands.map(|rest| rest.split(ends).next().unwrap());
        for command in commands {
            // A description stands two spaces to the right, and a sentence goes on after a comma.
            let command = command.split("  ").next().unwrap();
            let command = command.split(", ").next().unwrap();
            let words: Vec<&str> = command.split_whitespace().collect();
            let options = || words.iter().filter(|word| word.starts_with("--"));
            let Some(verb) = words.first().filter(|verb| verbs.contains(**verb)) else {
                continue;
            };
            if options().next().is_none() {
                continue;
            }
            let below = below_of(verb);
            let known = match words.get(1).filter(|word| below.contains(**word)) {
                // A lab's command is another program's.
                Some(_) if *verb == "lab" => continue,
                Some(word) => help_of(&[verb, word]),
                None => help_of(&[verb]),
            };
            for option in options().filter(|word| word.len() > 2) {
                seen += 1;
                let option = option.trim_end_matches(['.', ',', ')', ';']);
                let option = option.split('=').next().unwrap();
                if !known.contains(option) {
                    unknown.push(format!("{}: plumb {command}", file.display()));
                }
            }
        }
    }
    assert!(seen > 20, "{seen}");
    assert!(unknown.is_empty(), "{unknown:#?}");
}

#[test]
fn the_manual_has_a_page_for_each_command_and_no_fault() {
    let folder = tempfile::tempdir().unwrap();
    let said = refused(&["generate", "man", folder.path().to_str().unwrap()]);
    assert!(said.status.success(), "{}", stderr(&said));
    let mut pages: Vec<PathBuf> = std::fs::read_dir(folder.path())
        .unwrap()
        .map(|page| page.unwrap().path())
        .collect();
    pages.sort();
    let names: BTreeSet<_> = pages
        .iter()
        .map(|page| page.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    for verb in verbs() {
        assert!(names.contains(&format!("plumb-{verb}.1")), "{verb}");
        for below in listed_under(&[&verb]) {
            assert!(
                names.contains(&format!("plumb-{verb}-{below}.1")),
                "{verb} {below}"
            );
        }
    }
    let linted = Command::new("mandoc")
        .args(["-T", "lint", "-W", "warning"])
        .args(&pages)
        .output()
        .unwrap();
    assert!(linted.status.success(), "{}", stdout(&linted));
    // Examples stay in lines of their own.
    let mut shown = Command::new("mandoc");
    shown.arg("-Tutf8").arg(folder.path().join("plumb-check.1"));
    let check = printed(&mut shown);
    assert!(
        check
            .lines()
            .any(|line| line.trim_start().starts_with("plumb check server ")),
        "{check}"
    );
}

fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    // Bold is a letter over itself.
    let text = stdout(&output);
    text.replace('\u{8}', "")
}

/// What a shell prints, with the completions of that shell as its first argument.
fn in_shell(shell: &str, file: &str, flags: &[&str], script: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join(file);
    let completions = plumb(&["generate", "completions", shell]);
    assert!(completions.status.success(), "{}", stderr(&completions));
    std::fs::write(&file, completions.stdout).unwrap();
    let output = Command::new(shell)
        .args(flags)
        .args(["-c", script])
        .env("COMPLETIONS", &file)
        .env("FOLDER", folder.path())
        .env("HOME", folder.path())
        .env("PATH", with_plumb())
        .output()
        .unwrap();
    let said = stderr(&output);
    assert!(
        output.status.success() && said.is_empty(),
        "{shell}: {said}{}",
        stdout(&output)
    );
    stdout(&output)
}

/// The path of programs, with the one under test first.
fn with_plumb() -> String {
    let here = Path::new(crate::common::PLUMB).parent().unwrap();
    format!("{}:{}", here.display(), std::env::var("PATH").unwrap())
}

#[test]
fn bash_completes_verbs_and_options() {
    let script = r#"
        source "$COMPLETIONS"
        complete -p plumb
        COMP_WORDS=(plumb che); COMP_CWORD=1; COMPREPLY=(); _plumb plumb che plumb; echo "${COMPREPLY[@]}"
        COMP_WORDS=(plumb check --thor); COMP_CWORD=2; COMPREPLY=(); _plumb plumb --thor check; echo "${COMPREPLY[@]}"
    "#;
    let said = in_shell("bash", "plumb.bash", &["--norc", "--noprofile"], script);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.get(1..), Some(&["check", "--thorough"][..]), "{said}");
}

#[test]
fn zsh_loads_the_completions() {
    // Completing itself needs a terminal: that it is taken for plumb's, and loads, is what shows without one.
    let script = r#"
        fpath=("$FOLDER" $fpath)
        autoload -Uz compinit && compinit -u -D
        print -r -- "${_comps[plumb]}"
        autoload +X -Uz _plumb
        print -r -- "${functions[_plumb]}"
    "#;
    let said = in_shell("zsh", "_plumb", &["-f"], script);
    assert!(said.starts_with("_plumb\n"), "{said}");
    assert!(said.contains("--thorough"), "{said}");
}

#[test]
fn fish_completes_verbs_and_options() {
    let script = r#"
        source $COMPLETIONS
        complete -C "plumb che"
        complete -C "plumb check --thor"
    "#;
    let said = in_shell("fish", "plumb.fish", &["--no-config"], script);
    let first = |line: &str| line.split('\t').next().unwrap_or_default().to_owned();
    let words: Vec<String> = said.lines().map(first).collect();
    assert_eq!(words, ["check", "--thorough"], "{said}");
}
