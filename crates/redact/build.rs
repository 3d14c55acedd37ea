//! Collects the words that plumb itself writes: those of the texts in its sources, of its options, and of the names in its
//! documents. What stands in a Run and is none of them came from outside.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// Files that name machines of others.
const OF_OTHERS: &[&str] = &["servers.toml"];

fn main() -> io::Result<()> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut words = BTreeSet::new();
    for source in sources(&repository)? {
        let text = fs::read_to_string(&source)?;
        if source.extension().is_some_and(|end| end == "rs") {
            // The tests at the foot of a file name machines that are made up.
            let code = text.split("#[cfg(test)]\nmod tests").next();
            literals(code.unwrap_or_default(), |text| take(text, &mut words));
        } else {
            take(&text, &mut words);
        }
        stem(&source, &mut words);
    }
    let schema = fs::read_to_string(watched(&repository, "schemas/run.schema.json"))?;
    names(&serde_json::from_str(&schema)?, &mut words);
    for file in files(&watched(&repository, "docs/verbs"), "md")? {
        take(&fs::read_to_string(file)?, &mut words);
    }
    for file in files(&watched(&repository, "scenarios"), "toml")? {
        stem(&file, &mut words);
    }
    let list: Vec<&str> = words.iter().map(String::as_str).collect();
    let out = env::var_os("OUT_DIR").ok_or_else(|| io::Error::other("cargo sets OUT_DIR"))?;
    let packed = fs::File::create(Path::new(&out).join("words.deflate"))?;
    let mut packed = DeflateEncoder::new(packed, Compression::best());
    packed.write_all(list.join("\n").as_bytes())?;
    packed.finish()?;
    Ok(())
}

fn watched(repository: &Path, what: &str) -> PathBuf {
    let path = repository.join(what);
    println!("cargo::rerun-if-changed={}", path.display());
    path
}

/// The name of a file, which may be the word for a cause or a scenario.
fn stem(file: &Path, words: &mut BTreeSet<String>) {
    if let Some(name) = file.file_stem().and_then(|name| name.to_str()) {
        take(&name.replace('_', "-"), words);
    }
}

/// What the crates are made of, and the tables beside it, without their tests.
fn sources(repository: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut open = Vec::new();
    for each in fs::read_dir(repository.join("crates"))? {
        let source = each?.path().join("src");
        println!("cargo::rerun-if-changed={}", source.display());
        open.push(source);
    }
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let is_test = path
                .file_stem()
                .is_some_and(|name| name == "tests" || name == "testing" || name == "fixtures");
            let others = path.file_name().and_then(|name| name.to_str());
            if is_test || others.is_some_and(|name| OF_OTHERS.contains(&name)) {
                continue;
            }
            if path.is_dir() {
                open.push(path);
            } else if path
                .extension()
                .is_some_and(|end| end == "rs" || end == "toml")
            {
                found.push(path);
            }
        }
    }
    Ok(found)
}

fn files(folder: &Path, end: &str) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|is| is == end) {
            found.push(path);
        }
    }
    Ok(found)
}

/// Every name of a field and every word of an enumeration.
fn names(schema: &serde_json::Value, words: &mut BTreeSet<String>) {
    match schema {
        serde_json::Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), value) {
                    ("properties", serde_json::Value::Object(fields)) => {
                        fields.keys().for_each(|name| take(name, words));
                        fields.values().for_each(|value| names(value, words));
                    }
                    ("const", serde_json::Value::String(word)) => take(word, words),
                    ("enum", serde_json::Value::Array(all)) => {
                        let all = all.iter().filter_map(serde_json::Value::as_str);
                        all.for_each(|word| take(word, words));
                    }
                    _ => names(value, words),
                }
            }
        }
        serde_json::Value::Array(all) => all.iter().for_each(|value| names(value, words)),
        _ => {}
    }
}

/// Adds the words of a text whole, and the parts of those that are joined by dots, dashes and underscores.
fn take(text: &str, words: &mut BTreeSet<String>) {
    // A place for a value, as `{name}`, is no word.
    let text: String = text.split('{').map(after_value).collect();
    for token in text.split(|c: char| !(c.is_alphanumeric() || "-_.".contains(c))) {
        let token = token.trim_matches(['-', '_', '.']).to_lowercase();
        if !token.contains(char::is_alphabetic) {
            continue;
        }
        for part in token.split(['-', '_', '.']) {
            let part = part.trim_matches(|c: char| c.is_ascii_digit());
            if !part.is_empty() {
                words.insert(part.to_owned());
            }
        }
        words.insert(token);
    }
}

/// The rest of a text behind `name}`, which stood in braces; a text before any brace stays.
fn after_value(text: &str) -> String {
    match text.split_once('}') {
        Some((_, rest)) => format!(" {rest}"),
        None => text.to_owned(),
    }
}

/// Calls `each` with every string literal of a source.
fn literals(source: &str, mut each: impl FnMut(&str)) {
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'', 'r']) {
        let (before, from) = rest.split_at(at);
        let inside_word = before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        if from.starts_with("//") {
            rest = from.split_once('\n').map_or("", |(_, rest)| rest);
        } else if let Some((literal, after)) = raw(from).filter(|_| !inside_word) {
            each(literal);
            rest = after;
        } else if from.starts_with('"') {
            let (literal, after) = quoted(behind(from));
            each(&literal);
            rest = after;
        } else if from.starts_with('\'') {
            rest = character(behind(from));
        } else {
            rest = behind(from);
        }
    }
}

/// The text without its first character.
fn behind(text: &str) -> &str {
    let mut characters = text.chars();
    characters.next();
    characters.as_str()
}

/// A raw literal, and what follows it.
fn raw(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('r')?;
    let fences = text.len() - text.trim_start_matches('#').len();
    let content = text.get(fences..)?.strip_prefix('"')?;
    content.split_once(&format!("\"{}", "#".repeat(fences)))
}

/// What stands before the closing quote, and what follows it.
fn quoted(text: &str) -> (String, &str) {
    let mut literal = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return (literal, text.get(at + 1..).unwrap_or_default()),
            '\\' => {
                // An escaped character parts words, but for quotes.
                let (_, escaped) = characters.next().unwrap_or_default();
                literal.push(if escaped == '\'' { '\'' } else { ' ' });
            }
            c => literal.push(c),
        }
    }
    (literal, "")
}

/// What follows a character literal, or the quote of a lifetime.
fn character(text: &str) -> &str {
    let end = match text.strip_prefix('\\') {
        Some(escaped) => escaped
            .char_indices()
            .skip(1)
            .find(|(_, c)| *c == '\'')
            .map(|(at, _)| at + 2),
        None => text
            .char_indices()
            .nth(1)
            .filter(|(_, c)| *c == '\'')
            .map(|(at, _)| at + 1),
    };
    end.and_then(|end| text.get(end..)).unwrap_or(text)
}
