//! Texts are in the words of the field, as an engineer writes them to a colleague (CONTRIBUTING.md): what plumb prints has
//! none of the words below, and comments have none. The manual has at most as many as are counted here, and only ever fewer.

use std::path::{Path, PathBuf};

use super::crates;

/// Words, and words in a row, that say less than the name of who acts, or of the thing that is meant.
const AVOIDED: &[&[&str]] = &[
    &["told"],
    &["tell"],
    &["tells"],
    &["whoever"],
    &["somebody"],
    &["nobody"],
    &["mend"],
    &["mends"],
    &["mended"],
    &["the", "way", "up"],
    &["the", "way", "down"],
    &["the", "way", "back"],
    &["the", "way", "there"],
    &["held", "against"],
    &["that", "of"],
    &["those", "of"],
    &["stand", "for"],
    &["stands", "for"],
    &["goes", "on"],
];

/// Published words, of which readers of results depend.
const PUBLISHED: &str = "cannot tell";

/// How many stand in the manual: the pages of `plumb explain`, docs/ and the schemas.
const IN_THE_MANUAL: usize = 1;

fn count(text: &str) -> usize {
    let text = text.to_lowercase().replace(PUBLISHED, "");
    let words: Vec<&str> = text
        .split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-')
        .filter(|word| !word.is_empty())
        .collect();
    let at = |first: usize| {
        AVOIDED
            .iter()
            .any(|avoided| words[first..].starts_with(avoided))
    };
    (0..words.len()).filter(|first| at(*first)).count()
}

/// The code of a file, without its tests, and its comments.
fn parts(text: &str) -> (String, String) {
    let text = text
        .split("#[cfg(test)]\nmod tests")
        .next()
        .unwrap_or_default();
    let (mut code, mut comments) = (String::new(), String::new());
    for line in text.lines() {
        match line
            .find("// ")
            .or_else(|| line.trim_start().starts_with("//").then_some(0))
        {
            Some(at) => {
                code.push_str(&line[..at]);
                comments.push_str(line[at..].trim_start().trim_start_matches(['/', '!']));
                comments.push('\n');
            }
            None => code.push_str(line),
        }
        code.push('\n');
    }
    (code, comments)
}

/// The texts of a piece of code: one word is a name.
fn texts(code: &str) -> Vec<String> {
    let mut texts = vec![];
    let mut open: Option<String> = None;
    let mut characters = code.chars().peekable();
    while let Some(c) = characters.next() {
        match (c, &mut open) {
            ('\\', Some(text)) => {
                text.push(' ');
                characters.next();
            }
            ('"', Some(_)) => texts.extend(open.take()),
            (c, Some(text)) => text.push(c),
            ('\'', None) if characters.peek() == Some(&'"') => {
                characters.next();
            }
            ('"', None) => open = Some(String::new()),
            _ => {}
        }
    }
    texts.retain(|text| text.contains(' '));
    texts
}

fn files(folder: &Path, ends: &[&str], found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, ends, found);
        } else if path
            .extension()
            .is_some_and(|end| ends.iter().any(|known| end == *known))
        {
            found.push(path);
        }
    }
}

fn read(folders: &[PathBuf], ends: &[&str]) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    for folder in folders {
        files(folder, ends, &mut found);
    }
    found.retain(|path| {
        let file = path.with_extension("");
        !file.components().any(|part| part.as_os_str() == "tests")
    });
    let texts = found.into_iter().map(|path| {
        let text = std::fs::read_to_string(&path).unwrap();
        (path, text)
    });
    texts.collect()
}

fn sources() -> Vec<(PathBuf, String)> {
    let crates = std::fs::read_dir(crates()).unwrap();
    let folders: Vec<PathBuf> = crates
        .map(|entry| entry.unwrap().path().join("src"))
        .collect();
    read(&folders, &["rs"])
}

#[test]
fn what_is_printed_is_in_the_words_of_the_field() {
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        let texts = texts(&parts(&text).0);
        let avoided = texts.iter().filter(|text| count(text) > 0);
        wrong.extend(avoided.map(|text| format!("{}: {text}", path.display())));
    }
    let repository = crates().join("..");
    for (path, text) in read(
        &[repository.join("scenarios"), crates().join("host/src")],
        &["toml"],
    ) {
        let lines = text.lines().filter(|line| count(line) > 0);
        wrong.extend(lines.map(|line| format!("{}: {line}", path.display())));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Where there are fewer now, the number above falls with them.
#[test]
fn other_texts_have_no_more_of_them_than_before() {
    let repository = crates().join("..");
    let manual = ["kb", "docs", "schemas"].map(|folder| repository.join(folder));
    let manual: usize = read(&manual, &["md", "json"])
        .iter()
        .map(|(_, text)| count(text))
        .sum();
    let comments: usize = sources()
        .iter()
        .map(|(_, text)| count(&parts(text).1))
        .sum();
    assert!(manual <= IN_THE_MANUAL, "{manual}");
    assert_eq!(comments, 0);
}

#[test]
fn words_are_found_in_texts_and_comments() {
    let text = "/// Tells it.\nfn a() { b(\"Nobody\"); b(\"of nobody\\\n  here\", '\"'); } // and those of c\n";
    let (code, comments) = parts(text);
    assert_eq!(count(&comments), 2, "{comments}");
    assert_eq!(texts(&code), ["of nobody   here"]);
    assert_eq!(count("The way up is that of the rate: it cannot tell."), 2);
    assert_eq!(count("retold, those off, nobody-else"), 0);
}
