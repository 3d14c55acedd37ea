//! No circles: no two files of a crate need each other, directly or over others. Such files can
//! only be read, tested and moved together.
//!
//! A file needs another one when its code, tests aside, names what the other one defines. Names
//! are followed through imports and re-exports to the file that defines them, so a `mod.rs` that
//! only declares and re-exports its children needs none of them. Methods are not followed: they
//! belong to a type that somebody named.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

#[test]
fn no_files_need_each_other() {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(super::crates()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let files = Crate::read(|names| source(&entry.path().join("src"), names));
        for circle in files.circles() {
            found.push(format!("{name}:\n{}", files.show(&circle)));
        }
    }
    assert!(
        found.is_empty(),
        "files need each other:\n{}",
        found.join("\n")
    );
}

/// The text of the module whose names these are, below the root.
fn source(folder: &Path, names: &[&str]) -> Option<String> {
    let base = folder.join(names.join("/"));
    let candidates = match names {
        [] => [folder.join("lib.rs"), folder.join("main.rs")],
        _ => [base.with_extension("rs"), base.join("mod.rs")],
    };
    let text = candidates
        .iter()
        .find_map(|path| std::fs::read_to_string(path).ok())?;
    // What a build script makes of a folder: a module of each file, and a table of them.
    let generated = text.contains("include!(concat!(env!(\"OUT_DIR\")");
    let files = std::fs::read_dir(&base).ok().filter(|_| generated);
    let names = files.into_iter().flatten().map(|file| {
        let path = file.unwrap().path();
        path.file_stem().unwrap().to_str().unwrap().to_owned()
    });
    let modules = names.map(|name| format!("mod {name};\nfn {name}_() {{ {name}::CAUSE }}\n"));
    Some(text + &modules.collect::<String>())
}

/// The files of a crate by their modules, such as `crate::queue::codel`.
struct Crate(BTreeMap<String, File>);

/// What a file says, tests aside.
#[derive(Default)]
struct File {
    children: BTreeSet<String>,
    defines: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths in the code, such as `super::Queue` or `Limit::Bytes`.
    paths: BTreeSet<Names>,
}

struct Import {
    path: Names,
    /// `*` for all.
    name: String,
    is_public: bool,
}

type Names = Vec<String>;

impl Crate {
    /// Reads whatever is declared from the root on.
    fn read(source: impl Fn(&[&str]) -> Option<String>) -> Self {
        let mut files = BTreeMap::new();
        let mut open = vec!["crate".to_owned()];
        while let Some(module) = open.pop() {
            let names: Vec<&str> = module.split("::").skip(1).collect();
            let text = source(&names).unwrap_or_else(|| panic!("{module} has no file"));
            let mut file = File::default();
            file.read(&words(&text), 0);
            let children = file.children.iter();
            open.extend(children.map(|child| format!("{module}::{child}")));
            files.insert(module, file);
        }
        Self(files)
    }

    /// Sets of files of which each needs every other one.
    fn circles(&self) -> BTreeSet<BTreeSet<String>> {
        let needs: BTreeMap<&String, _> = self.0.keys().map(|m| (m, self.needs(m))).collect();
        let reached = |start: &String| {
            let mut reached = BTreeSet::new();
            let mut open = vec![start.clone()];
            while let Some(module) = open.pop() {
                let next = needs[&module].keys();
                open.extend(next.filter(|next| reached.insert((*next).clone())).cloned());
            }
            reached
        };
        let reached: BTreeMap<&String, _> = self.0.keys().map(|m| (m, reached(m))).collect();
        let in_circles = reached
            .iter()
            .filter(|(module, from)| from.contains(**module));
        in_circles
            .map(|(module, from)| {
                let back = from.iter().filter(|other| reached[other].contains(*module));
                back.cloned().collect()
            })
            .collect()
    }

    /// Every arrow of a circle and what makes it.
    fn show(&self, circle: &BTreeSet<String>) -> String {
        let arrows = circle.iter().flat_map(|from| {
            let inside = self
                .needs(from)
                .into_iter()
                .filter(|(to, _)| circle.contains(to));
            inside.map(move |(to, names)| format!("  {from} needs {to} for {names:?}\n"))
        });
        arrows.collect()
    }

    /// The other files that this one needs, and for what.
    fn needs(&self, module: &str) -> BTreeMap<String, BTreeSet<String>> {
        let mut needs: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let file = &self.0[module];
        let imported = file.imports.iter().filter(|import| !import.is_public);
        for path in imported.map(|import| &import.path).chain(&file.paths) {
            if let Some((home, name)) = self
                .home(module, path, 0)
                .filter(|(home, _)| home != module)
            {
                needs.entry(home).or_default().insert(name);
            }
        }
        needs
    }

    /// The file that defines what `path` names in the file `at`, and its name there.
    fn home(&self, at: &str, path: &[String], depth: u8) -> Option<(String, String)> {
        /// More re-exports than anybody follows: imports may lead in rounds.
        const DEEPEST: u8 = 16;
        let (first, rest) = path.split_first()?;
        let depth = (depth < DEEPEST).then_some(depth + 1)?;
        let file = self.0.get(at)?;
        match first.as_str() {
            "crate" => return self.home("crate", rest, depth),
            "self" => return self.home(at, rest, depth),
            "super" => return self.home(at.rsplit_once("::")?.0, rest, depth),
            child if file.children.contains(child) => {
                return self.home(&format!("{at}::{child}"), rest, depth);
            }
            name if file.defines.contains(name) => return Some((at.to_owned(), name.to_owned())),
            _ => {}
        }
        if let Some(import) = file.imports.iter().find(|import| import.name == *first) {
            return self.home(at, &[&import.path, rest].concat(), depth);
        }
        let own = |import: &&Import| {
            let of = import.path.first().map_or("", String::as_str);
            ["crate", "self", "super"].contains(&of) || file.children.contains(of)
        };
        let all = file.imports.iter().filter(|import| import.name == "*");
        all.filter(own)
            .find_map(|import| self.home(at, &[&import.path, path].concat(), depth))
    }
}

impl File {
    /// Reads code that stands in so many modules inside the file.
    fn read(&mut self, words: &[String], depth: usize) {
        let word = |at: usize| words.get(at).map_or("", String::as_str);
        let mut at = 0;
        while at < words.len() {
            let before = at.checked_sub(1).map_or("", word);
            match word(at) {
                "#" if (1..7)
                    .map(|i| word(at + i))
                    .eq(["[", "cfg", "(", "test", ")", "]"]) =>
                {
                    at = item_end(words, at + 7);
                }
                "mod" if word(at + 2) == ";" => {
                    self.children.insert(word(at + 1).to_owned());
                    at += 3;
                }
                "mod" if word(at + 2) == "{" => {
                    let end = item_end(words, at);
                    self.defines.insert(word(at + 1).to_owned());
                    self.read(&words[at + 3..end - 1], depth + 1);
                    at = end;
                }
                "use" => {
                    let end = item_end(words, at);
                    for path in leaves(&words[at + 1..end - 1]) {
                        let import = Import::new(path, depth, ["pub", ")"].contains(&before));
                        self.imports.push(import);
                    }
                    at = end;
                }
                "struct" | "enum" | "trait" | "fn" | "type" | "const" | "static" | "union" => {
                    self.defines.insert(word(at + 1).to_owned());
                    at += 1;
                }
                "macro_rules" => {
                    self.defines.insert(word(at + 2).to_owned());
                    at += 3;
                }
                first if is_name(first) && before != "." && before != "::" => {
                    let mut path = vec![first.to_owned()];
                    while word(at + 1) == "::" && is_name(word(at + 2)) {
                        path.push(word(at + 2).to_owned());
                        at += 2;
                    }
                    self.paths.insert(from_outside(path, depth));
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }
}

impl Import {
    /// Of a path such as `super::Queue`, `super::Queue as Line`, `super::*` or `crate::queue::self`.
    fn new(mut path: Names, depth: usize, is_public: bool) -> Self {
        let mut name = path.last().cloned().unwrap_or_default();
        if let Some(renamed) = path.iter().position(|name| name == "as") {
            path.truncate(renamed);
        }
        if path
            .last()
            .is_some_and(|last| last == "*" || last == "self")
            && path.len() > 1
        {
            path.pop();
            if name == "self" {
                name = path.last().cloned().unwrap_or_default();
            }
        }
        Self {
            path: from_outside(path, depth),
            name,
            is_public,
        }
    }
}

/// A path as it reads outside of so many modules.
fn from_outside(mut path: Names, depth: usize) -> Names {
    let out = path.iter().take(depth).take_while(|name| *name == "super");
    let out = out.count();
    path.drain(..out);
    path
}

/// The paths of what stands between `use` and `;`.
fn leaves(words: &[String]) -> Vec<Names> {
    let (mut paths, mut path) = (Vec::new(), Names::new());
    let mut at = 0;
    while at < words.len() {
        match words[at].as_str() {
            "{" => {
                let end = block_end(words, at);
                let inside = leaves(&words[at + 1..end - 1]).into_iter();
                paths.extend(inside.map(|leaf| [path.as_slice(), &leaf].concat()));
                path.clear();
                at = end;
                continue;
            }
            "," => paths.push(std::mem::take(&mut path)),
            "::" => {}
            name => path.push(name.to_owned()),
        }
        at += 1;
    }
    paths.push(path);
    paths.retain(|path| !path.is_empty());
    paths
}

/// The first word behind the item that begins at `at`.
fn item_end(words: &[String], mut at: usize) -> usize {
    // Before `use` there may be `pub`, `(`, `crate` and `)`.
    let is_use = words[at..].iter().take(5).any(|word| word == "use");
    while at < words.len() {
        let is_block = words[at] == "{";
        match words[at].as_str() {
            ";" => return at + 1,
            "{" | "(" | "[" => at = block_end(words, at),
            _ => at += 1,
        }
        if is_block && !is_use {
            return at;
        }
    }
    at
}

/// The first word behind the block that opens at `at`.
fn block_end(words: &[String], at: usize) -> usize {
    let mut depth = 0;
    for (i, word) in words.iter().enumerate().skip(at) {
        match word.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return i + 1;
        }
    }
    words.len()
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The names, `::` and single characters of code: no comments, and no literals but paths, as
/// attributes have them.
fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let name = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let name = name.unwrap_or(rest.len());
        let end_of = |close: &str, from: usize| {
            let found = rest[from..].find(close);
            found.map_or(rest.len(), |at| from + at + close.len())
        };
        let raw = ["r\"", "r#\"", "br\"", "br#\""]
            .iter()
            .find(|raw| rest.starts_with(**raw));
        let length = if rest.starts_with("//") {
            end_of("\n", 0)
        } else if rest.starts_with("/*") {
            end_of("*/", 0)
        } else if let Some(raw) = raw {
            end_of(if raw.contains('#') { "\"#" } else { "\"" }, raw.len())
        } else if first == '"' {
            let end = quoted(rest);
            let literal = &rest[1..end - 1];
            if literal.starts_with("crate::") || literal.starts_with("super::") {
                words.extend(self::words(literal));
            }
            end
        } else if first == '\'' {
            let mut after = rest[1..].chars();
            match (after.next(), after.next()) {
                (Some('\\'), _) => end_of("'", 3),
                (Some(c), Some('\'')) => 2 + c.len_utf8(),
                // A lifetime.
                _ => 1,
            }
        } else if name > 0 {
            words.push(rest[..name].to_owned());
            name
        } else {
            let length = if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            if !first.is_whitespace() {
                words.push(rest[..length].to_owned());
            }
            length
        };
        rest = &rest[length..];
    }
    words
}

/// The length of the literal that text begins with, quotes included.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    let closes = |(_, c): &(usize, char)| {
        let closes = *c == '"' && !escaped;
        escaped = *c == '\\' && !escaped;
        closes
    };
    let close = text.char_indices().skip(1).find(closes);
    close.map_or(text.len(), |(at, _)| at + 1)
}

/// The circles of a crate of which these are the files.
fn circles(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let files = Crate::read(|names| {
        let name = names.join("::");
        let text = files.iter().find(|(module, _)| *module == name)?.1;
        Some(text.to_owned())
    });
    let circles = files.circles().into_iter();
    circles.map(|circle| circle.into_iter().collect()).collect()
}

#[test]
fn a_circle_is_seen_over_imports_and_paths() {
    let root = ("", "mod a; mod b; mod c; mod d;");
    let c = ("c", "pub fn go(_: crate::a::A) {}");
    let d = (
        "d",
        "use crate::{a::A as Own, b}; fn of(_: Own, _: b::B) {}",
    );
    for (a, b) in [
        (
            "pub struct A(crate::b::B);",
            "use super::c; pub struct B; fn f() { c::go() }",
        ),
        (
            "use crate::b::*; pub struct A(B);",
            "pub struct B; mod inner { fn f() { super::super::c::go() } }",
        ),
        (
            "pub struct A { #[serde(with = \"crate::b::text\")] b: u8 }",
            "pub mod text { fn f() { crate::c::go() } }",
        ),
    ] {
        let found = circles(&[root, ("a", a), ("b", b), c, d]);
        assert_eq!(found, [["crate::a", "crate::b", "crate::c"]], "{a} {b}");
    }
}

#[test]
fn declarations_tests_and_words_are_no_circle() {
    let root = "//! crate::a::A\nmod a; pub use a::A; #[cfg(test)] mod tests;";
    for a in [
        "mod b; pub use self::b::{B, go};",
        "mod b; #[cfg(test)] mod tests { use super::b::*; } pub struct A;",
        "mod b; pub struct A; // b::go()\nconst WHERE: &str = \"b::go() \\\" b::go()\";",
        "mod b; pub struct A<'b>(&'b u8); const B: char = '\"';",
    ] {
        let found = circles(&[
            ("", root),
            ("a", a),
            ("a::b", "use super::A; pub struct B(A); pub fn go() {}"),
        ]);
        assert!(found.is_empty(), "{a}: {found:?}");
    }
    // The same is one where the parent needs the child itself.
    let found = circles(&[
        ("", root),
        ("a", "mod b; pub struct A; fn f() { b::go() }"),
        ("a::b", "use super::A; pub fn go(_: A) {}"),
    ]);
    assert_eq!(found, [["crate::a", "crate::a::b"]]);
}
