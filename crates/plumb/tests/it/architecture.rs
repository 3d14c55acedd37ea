//! The arrows between the crates point one way, as ARCHITECTURE.md has them, and so do those between
//! the files of each.

mod circles;
mod real_time;
mod words;

use std::collections::BTreeMap;
use std::path::Path;

/// The crate that any may use: it stands for schemars.
const OF_ALL: &str = "schemaless";

fn crates() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What each crate may use, by the table of ARCHITECTURE.md.
fn may_use() -> BTreeMap<String, Vec<String>> {
    let text = std::fs::read_to_string(crates().join("../ARCHITECTURE.md")).unwrap();
    let (_, table) = text.split_once("| crate | may use |\n|---|---|\n").unwrap();
    let names = |cell: &str| -> Vec<String> {
        let names = cell.split(',').map(|name| name.trim().to_owned());
        names.collect()
    };
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    let mut found = BTreeMap::new();
    for row in rows {
        let (of, used) = row.trim_matches('|').split_once('|').unwrap();
        let used = match used.trim() {
            "nothing of plumb" => Vec::new(),
            "everything" => folders(),
            used => names(used),
        };
        for name in names(of) {
            assert!(found.insert(name, used.clone()).is_none(), "twice: {row}");
        }
    }
    found.insert(OF_ALL.to_owned(), Vec::new());
    found
}

/// The names of the crates.
fn folders() -> Vec<String> {
    let entries = std::fs::read_dir(crates()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

#[test]
fn arrows_point_one_way() {
    for (name, allowed) in may_use() {
        let manifest = std::fs::read_to_string(crates().join(&name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let used = dependencies
            .lines()
            .take_while(|line| !line.starts_with("[dev"))
            .filter_map(|line| line.strip_prefix("plumb-")?.split(['.', ' ', '=']).next());
        for used in used {
            assert!(
                used == OF_ALL || allowed.iter().any(|allowed| allowed == used),
                "{name} uses {used}, and may use only {allowed:?}"
            );
        }
    }
}

/// What one reads is rebuilt with the crate, and all that use it.
#[test]
fn a_build_script_reads_no_other_crate() {
    for name in folders() {
        let script = std::fs::read_to_string(crates().join(&name).join("build.rs"));
        let script = script.unwrap_or_default();
        let mut read = folders();
        read.retain(|other| script.contains(&format!("../{other}")));
        // `redact` collects the words of all, and `plumb` alone uses it.
        assert!(read.is_empty(), "{name}/build.rs reads {read:?}");
    }
}

#[test]
fn the_table_has_every_crate_and_nothing_else() {
    let table = may_use();
    let mut known = folders();
    known.sort();
    let listed: Vec<&String> = table.keys().collect();
    assert_eq!(listed, known.iter().collect::<Vec<_>>());
    for used in table.values().flatten() {
        assert!(known.contains(used), "{used} is no crate");
    }
}

/// In how many files a kind of measurement may stand: its result and the list of them, what
/// measures it, its rule of diagnosis, how it shows and the list of that.
const FILES_OF_A_KIND: usize = 8;

#[test]
fn a_kind_of_measurement_stands_in_few_files() {
    let sources = sources();
    for (kind, result) in kinds() {
        let outcome = format!("Outcome::{kind}");
        let named = sources
            .iter()
            .filter(|(_, text)| has_name(text, &result) || has_name(text, &outcome))
            .map(|(path, _)| path.display().to_string());
        let named: Vec<String> = named.collect();
        assert!(
            named.len() <= FILES_OF_A_KIND,
            "{kind} is named in {} files, and {FILES_OF_A_KIND} are allowed:\n{}",
            named.len(),
            named.join("\n")
        );
    }
}

/// Files that know every carrier of load: its settings on the wire, who opens its streams, the words for it in a Run, and
/// its options. All else of a carrier is in its own folder.
const FILES_OF_ALL_CARRIERS: usize = 4;

#[test]
fn a_carrier_of_load_is_listed_in_few_files() {
    let carriers = ["Tcp", "Udp", "Quic", "Transactions"].map(|name| format!("Flow::{name}"));
    let declared = std::fs::read_to_string(crates().join("wire/src/native/control/flow.rs"));
    let declared = declared.unwrap();
    let (_, list) = declared.split_once("pub enum Flow {").unwrap();
    let (list, _) = list.split_once("\n}").unwrap();
    let count = list.lines().filter(|line| line.ends_with("),")).count();
    assert_eq!(
        count,
        carriers.len(),
        "a carrier is not in this test: {list}"
    );
    let sources = sources();
    let listed = sources.iter().filter(|(path, text)| {
        path.ends_with("wire/src/native/control/flow.rs")
            || carriers.iter().filter(|name| has_name(text, name)).count() > 2
    });
    let listed: Vec<String> = listed.map(|(path, _)| path.display().to_string()).collect();
    assert!(
        listed.len() <= FILES_OF_ALL_CARRIERS,
        "{} files list carriers of load, and {FILES_OF_ALL_CARRIERS} are allowed:\n{}",
        listed.len(),
        listed.join("\n")
    );
}

/// The kinds of measurement with the types of their results, as `Outcome` lists them.
fn kinds() -> Vec<(String, String)> {
    let path = crates().join("model/src/results.rs");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, list) = text.split_once("pub enum Outcome {").unwrap();
    let (list, _) = list.split_once("\n    }").unwrap();
    let kinds = list.lines().filter_map(|line| {
        let (declared, _word) = line.trim().split_once(") = ")?;
        let (kind, rest) = declared.split_once('(')?;
        let result = rest.strip_prefix("Box<").unwrap_or(rest);
        Some((kind.to_owned(), result.trim_end_matches('>').to_owned()))
    });
    let kinds: Vec<_> = kinds.collect();
    assert!(kinds.len() > 20, "{kinds:?}");
    kinds
}

/// Every source file that is no test, without the tests at its foot.
fn sources() -> Vec<(std::path::PathBuf, String)> {
    let crates = std::fs::read_dir(crates()).unwrap();
    let mut open: Vec<_> = crates.map(|e| e.unwrap().path().join("src")).collect();
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() && !path.ends_with("tests") {
            open.extend(std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()));
        } else if path.extension().is_some_and(|e| e == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next();
            found.push((path, code.unwrap_or_default().to_owned()));
        }
    }
    found
}

/// Every enumeration of a direction: those in this file are the only ones.
const DIRECTIONS: &str = "model/src/direction.rs";

#[test]
fn a_direction_is_declared_once() {
    let mut declared = Vec::new();
    for (path, text) in sources() {
        for (name, mut variants) in enums(&text) {
            variants.retain(|variant| *variant != "Both");
            variants.sort_unstable();
            if variants == ["Down", "Up"] {
                assert!(
                    path.ends_with(DIRECTIONS),
                    "{name} in {} is a direction: use one of {DIRECTIONS}",
                    path.display()
                );
                declared.push(name.to_owned());
            }
        }
    }
    declared.sort();
    assert_eq!(declared, ["Direction", "OneDirection"]);
}

/// The enumerations of a source, each with the names of its variants.
fn enums(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    text.split("enum ").skip(1).filter_map(|declared| {
        let (name, body) = declared.split_once('{')?;
        let lines = body.lines().map(str::trim);
        let lines = lines.take_while(|line| *line != "}");
        let variants = lines.filter(|line| line.starts_with(char::is_uppercase));
        let names = variants.map(|line| line.split(|c: char| !c.is_alphanumeric()).next());
        Some((name.trim(), names.flatten().collect()))
    })
}

/// Whether a text has a name that is not part of a longer one.
fn has_name(text: &str, name: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let before = text.get(..at).and_then(|t| t.chars().next_back());
        let after = text.get(at + name.len()..).and_then(|t| t.chars().next());
        !before.is_some_and(inside) && !after.is_some_and(inside)
    })
}

#[test]
fn unsafe_code_stands_only_in_net() {
    for entry in std::fs::read_dir(crates()).unwrap() {
        let folder = entry.unwrap().path();
        if folder.file_name().is_some_and(|n| n == "net") {
            continue;
        }
        let mut open = vec![folder.join("src")];
        while let Some(path) = open.pop() {
            if path.is_dir() {
                open.extend(std::fs::read_dir(path).unwrap().map(|e| e.unwrap().path()));
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                assert!(
                    !text.contains("allow(unsafe_code)"),
                    "{} allows unsafe code",
                    path.display()
                );
            }
        }
    }
}

/// The help of the command line, which ends without a full stop, may be as short as it likes.
#[test]
fn a_doc_comment_has_more_than_three_words() {
    let mut short = Vec::new();
    for (path, text) in sources() {
        let has_help = path.starts_with(crates().join("plumb"));
        let docs = short_docs(&text).into_iter();
        let docs = docs.filter(|doc| !has_help || doc.ends_with('.'));
        short.extend(docs.map(|doc| format!("{}: {doc}", path.display())));
    }
    assert!(
        short.is_empty(),
        "the name must say it, or the comment more:\n{}",
        short.join("\n")
    );
}

#[test]
fn short_doc_comments_are_found_where_they_stand_alone() {
    let text = "//! The clock.\n\n/// Of use.\nfn a() {\n    /// Which files.\n    let b;\n}\n\
        /// Reads it.\n///\n/// # Errors\n/// None.\nfn c() {}\n/// Four words are enough.\nfn d() {}\n// A remark.\n";
    assert_eq!(short_docs(text), ["The clock.", "Of use.", "Which files."]);
}

/// The doc comments of one line that have three words or fewer.
fn short_docs(text: &str) -> Vec<&str> {
    let doc = |line: &&'_ str| line.starts_with("///") || line.starts_with("//!");
    let lines: Vec<&str> = text.lines().map(str::trim_start).collect();
    let comments = lines.chunk_by(|before, after| doc(before) && doc(after));
    let alone = comments.filter_map(|lines| match lines {
        [line] if doc(line) => line.get(4..),
        _ => None,
    });
    alone
        .filter(|text| text.split(' ').count() <= 3 && text.starts_with(char::is_uppercase))
        .collect()
}

/// Every test binary of a crate links all that the crate uses: what can be a module of `tests/it` is one.
#[test]
fn a_crate_has_one_integration_binary() {
    for entry in std::fs::read_dir(crates()).unwrap() {
        let tests = entry.unwrap().path().join("tests");
        let Ok(files) = std::fs::read_dir(&tests) else {
            continue;
        };
        for file in files {
            let path = file.unwrap().path();
            assert!(
                path.extension().is_none(),
                "{} would be a binary of its own: move it to tests/it, and name it in main.rs",
                path.display()
            );
        }
    }
}
