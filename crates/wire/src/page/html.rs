//! Objects that HTML names: images, scripts, style sheets, icons, what is to be preloaded, and what its `style` elements
//! name.

use plumb_model::results::page_load::ObjectKind;

use super::{Found, MAX_REFERENCE_BYTES, css, find};

/// The longest tag that is looked at, in bytes: longer ones carry data.
const MAX_TAG_BYTES: usize = 16 * 1024;

/// Attributes of a tag that are looked at.
const MAX_ATTRIBUTES: usize = 64;

/// Elements whose content is no HTML, or is not shown where scripts run.
const OPAQUE: [&str; 8] = [
    "script", "style", "noscript", "template", "textarea", "title", "iframe", "xmp",
];

/// Reads a page as it arrives.
#[derive(Debug, Default)]
pub struct Scanner {
    /// What has come and is not yet read: less than a tag.
    held: Vec<u8>,
    inside: Inside,
    style: css::Scanner,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Inside {
    #[default]
    Text,
    Comment,
    /// An element of [`OPAQUE`].
    Element(&'static str),
}

impl Scanner {
    /// Takes more of the page; hands out what it names.
    pub fn push(&mut self, bytes: &[u8], found: &mut Vec<Found>) {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_slice();
        while self.step(&mut rest, found) {}
        self.held = rest.to_vec();
    }

    /// Reads a piece; false where more must come.
    fn step(&mut self, rest: &mut &[u8], found: &mut Vec<Found>) -> bool {
        match self.inside {
            Inside::Text => self.text(rest, found),
            Inside::Comment => match find(rest, b"-->") {
                Some(at) => {
                    self.inside = Inside::Text;
                    skip(rest, at + 3);
                    true
                }
                None => {
                    // Its end may have begun.
                    skip(rest, rest.len().saturating_sub(2));
                    false
                }
            },
            Inside::Element(name) => {
                let end = format!("</{name}");
                let (content, over) = match find(rest, end.as_bytes()) {
                    Some(at) => (at, true),
                    None => (rest.len().saturating_sub(end.len() - 1), false),
                };
                let (content, after) = rest.split_at(content);
                if name == "style" {
                    self.style.push(content, found);
                }
                *rest = after;
                if over {
                    self.inside = Inside::Text;
                }
                over
            }
        }
    }

    fn text(&mut self, rest: &mut &[u8], found: &mut Vec<Found>) -> bool {
        let Some(at) = rest.iter().position(|byte| *byte == b'<') else {
            *rest = &[];
            return false;
        };
        skip(rest, at);
        if rest.starts_with(b"<!--") {
            self.inside = Inside::Comment;
            skip(rest, 4);
            return true;
        }
        if b"<!--".starts_with(rest) {
            return false;
        }
        if !rest.get(1).is_some_and(u8::is_ascii_alphabetic) {
            skip(rest, 1);
            return true;
        }
        match tag_end(rest) {
            Some(end) if end <= MAX_TAG_BYTES => {
                let (tag, after) = rest.split_at(end);
                *rest = after;
                self.tag(tag, found);
                true
            }
            None if rest.len() <= MAX_TAG_BYTES => false,
            // All that was looked at, so that no byte is looked at twice.
            _ => {
                skip(rest, MAX_TAG_BYTES);
                true
            }
        }
    }

    /// A tag with its brackets.
    fn tag(&mut self, tag: &[u8], found: &mut Vec<Found>) {
        let text = String::from_utf8_lossy(tag);
        let text = text.trim_start_matches('<').trim_end_matches('>');
        let name_end = text.find(|c: char| c.is_ascii_whitespace() || c == '/');
        let (name, rest) = text.split_at(name_end.unwrap_or(text.len()));
        let name = name.to_ascii_lowercase();
        let attributes = attributes(rest);
        let value = |wanted: &str| {
            let mut named = attributes.iter().filter(|(name, _)| name == wanted);
            named.next().map(|(_, value)| value.as_str())
        };
        let mut object = |kind, reference: Option<&str>| {
            let reference = reference.map(str::trim).unwrap_or_default();
            if !reference.is_empty() && reference.len() <= MAX_REFERENCE_BYTES {
                let reference = reference.to_owned();
                found.push(Found::Object { kind, reference });
            }
        };
        match name.as_str() {
            "img" => object(
                ObjectKind::Image,
                value("src")
                    .filter(|src| !src.trim().is_empty())
                    .or_else(|| value("srcset").and_then(first_candidate)),
            ),
            "input" if value("type").is_some_and(|t| t.eq_ignore_ascii_case("image")) => {
                object(ObjectKind::Image, value("src"));
            }
            "video" => object(ObjectKind::Image, value("poster")),
            // Browsers that know modules leave the others out.
            "script" if value("nomodule").is_none() && runs(value("type")) => {
                object(ObjectKind::Script, value("src"));
            }
            "link" if value("disabled").is_none() => {
                if let Some(kind) = link_kind(value("rel").unwrap_or_default()) {
                    object(kind, value("href"));
                }
            }
            "base" => {
                if let Some(href) = value("href").filter(|h| h.len() <= MAX_REFERENCE_BYTES) {
                    found.push(Found::Base(href.to_owned()));
                }
            }
            _ => {}
        }
        if let Some(style) = value("style") {
            css::Scanner::default().push(style.as_bytes(), found);
        }
        if let Some(opaque) = OPAQUE.iter().find(|opaque| **opaque == name) {
            self.inside = Inside::Element(opaque);
            self.style = css::Scanner::default();
        }
    }
}

fn skip(rest: &mut &[u8], count: usize) {
    *rest = rest.get(count..).unwrap_or_default();
}

/// Where a tag ends: behind the first `>` that is not in the quoted value of an attribute.
fn tag_end(bytes: &[u8]) -> Option<usize> {
    let mut quote = None;
    let mut after_equals = false;
    for (at, byte) in bytes.iter().enumerate().take(MAX_TAG_BYTES + 1) {
        match (quote, byte) {
            (Some(open), byte) if open == *byte => quote = None,
            (Some(_), _) => {}
            (None, b'>') => return Some(at + 1),
            // A quote elsewhere is a letter.
            (None, b'"' | b'\'') if after_equals => quote = Some(*byte),
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            after_equals = *byte == b'=';
        }
    }
    None
}

/// Names in lower case, and values with their character references read.
fn attributes(text: &str) -> Vec<(String, String)> {
    let mut rest = text;
    let mut found = Vec::new();
    let between = |c: char| c.is_ascii_whitespace() || c == '/';
    while found.len() < MAX_ATTRIBUTES {
        rest = rest.trim_start_matches(between);
        if rest.is_empty() {
            break;
        }
        // One that begins with '=' has it in its name, so that each turn reads something.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = rest.get(first..).and_then(|tail| {
            tail.find(|c: char| between(c) || c == '=')
                .map(|at| at + first)
        });
        let (name, after) = rest.split_at(end.unwrap_or(rest.len()));
        let after = after.trim_start();
        let (value, after) = match after.strip_prefix('=').map(str::trim_start) {
            None => ("", after),
            Some(after) => match after.chars().next() {
                Some(quote @ ('"' | '\'')) => {
                    let inside = after.get(1..).unwrap_or_default();
                    inside.split_once(quote).unwrap_or((inside, ""))
                }
                _ => {
                    let end = after.find(|c: char| c.is_ascii_whitespace());
                    after.split_at(end.unwrap_or(after.len()))
                }
            },
        };
        found.push((name.to_ascii_lowercase(), unescaped(value)));
        rest = after;
    }
    found
}

/// The character references that URLs are written with.
fn unescaped(value: &str) -> String {
    if !value.contains('&') {
        return value.to_owned();
    }
    // The ampersand last: what it makes is no reference.
    [
        ("&quot;", "\""),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&apos;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&#x2F;", "/"),
        ("&#47;", "/"),
        ("&#38;", "&"),
        ("&amp;", "&"),
    ]
    .iter()
    .fold(value.to_owned(), |text, (written, means)| {
        text.replace(written, means)
    })
}

/// The first of the images that `srcset` lets a browser choose among.
fn first_candidate(srcset: &str) -> Option<&str> {
    srcset
        .trim_start_matches(|c: char| c.is_ascii_whitespace() || c == ',')
        .split(|c: char| c.is_ascii_whitespace())
        .next()
        .map(|url| url.trim_end_matches(','))
}

/// Whether a script of that type is fetched: JavaScript, and no data block (WHATWG HTML, "prepare the script element").
fn runs(kind: Option<&str>) -> bool {
    let kind = kind.unwrap_or_default().trim().to_ascii_lowercase();
    kind.is_empty()
        || kind == "module"
        || kind.ends_with("javascript")
        || kind.ends_with("ecmascript")
}

fn link_kind(rel: &str) -> Option<ObjectKind> {
    let is = |wanted: &str| {
        rel.split_ascii_whitespace()
            .any(|word| word.eq_ignore_ascii_case(wanted))
    };
    if is("stylesheet") {
        // The user would have to choose it.
        return (!is("alternate")).then_some(ObjectKind::Style);
    }
    match () {
        () if is("icon") => Some(ObjectKind::Icon),
        () if is("preload") || is("modulepreload") => Some(ObjectKind::Preload),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn scanned(page: &[u8], piece: usize) -> Vec<Found> {
        let mut scanner = Scanner::default();
        let mut found = Vec::new();
        for piece in page.chunks(piece) {
            scanner.push(piece, &mut found);
            assert!(scanner.held.len() <= MAX_TAG_BYTES + piece.len());
        }
        found
    }

    fn object(kind: ObjectKind, reference: &str) -> Found {
        let reference = reference.to_owned();
        Found::Object { kind, reference }
    }

    #[test]
    fn a_page_names_its_objects() {
        let page = br#"<!DOCTYPE html><html><head><title><img src=no></title>
            <base href="/sub/"><!-- <img src="no.png"> -- > -->
            <link rel=stylesheet href=a.css><LINK REL="preload" as=font HREF='f.woff2'>
            <link rel="shortcut icon" href="i.ico"><link rel="alternate stylesheet" href="no.css">
            <link rel=canonical href=no>
            <script src="s.js?a=1&amp;b=2" async></script><script>document.write("<img src='no.js'>")</script>
            <script type="application/ld+json" src=no.json></script><script nomodule src=no2.js></script>
            <style>body { background: url(b.png) }</style></head>
            <body style="background:url('c.png')"><p>1 < 2 and <img alt="a > b" src = "d.png" />
            <IMG SRCSET="e-1x.png 1x, e-2x.png 2x"><img src=""><img src="data:image/gif;base64,AA">
            <noscript><img src=no.gif></noscript><input type=image src=g.png><video poster=p.jpg src=no.mp4></video>
            <textarea><img src=no></textarea><a href=no.html><img src=last.png"#;
        let wanted = [
            Found::Base("/sub/".to_owned()),
            object(ObjectKind::Style, "a.css"),
            object(ObjectKind::Preload, "f.woff2"),
            object(ObjectKind::Icon, "i.ico"),
            object(ObjectKind::Script, "s.js?a=1&b=2"),
            object(ObjectKind::Resource, "b.png"),
            object(ObjectKind::Resource, "c.png"),
            object(ObjectKind::Image, "d.png"),
            object(ObjectKind::Image, "e-1x.png"),
            object(ObjectKind::Image, "data:image/gif;base64,AA"),
            object(ObjectKind::Image, "g.png"),
            object(ObjectKind::Image, "p.jpg"),
        ];
        for piece in [1, 2, 7, 10_000] {
            assert_eq!(scanned(page, piece), wanted, "in pieces of {piece}");
        }
    }

    #[test]
    fn a_tag_without_end_hides_no_more_than_itself() {
        let page = format!(
            "<img src='{}<img src=after.png>",
            "x".repeat(2 * MAX_TAG_BYTES)
        );
        assert_eq!(
            scanned(page.as_bytes(), 1000),
            [object(ObjectKind::Image, "after.png")]
        );
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, piece in 1..20_usize) {
            scanned(&bytes, piece);
        }

        #[test]
        fn pieces_make_no_difference(page in "([<>/=\"' a!-]|img|src|style|<!--|-->|<style>|</style>|url\\(|\\)|script){0,60}") {
            let whole = scanned(page.as_bytes(), page.len().max(1));
            for piece in 1..5 {
                prop_assert_eq!(&scanned(page.as_bytes(), piece), &whole);
            }
        }
    }
}
