//! Objects that a style sheet names: `url()`, and the style sheets that it imports. Of the files of a font (`@font-face`)
//! the WOFF2 one is taken, which every browser of today takes; fonts for a part of Unicode only (`unicode-range`) are left
//! out, since the text decides about them.

use plumb_model::results::page_load::ObjectKind;

use super::{Found, MAX_REFERENCE_BYTES, find};

/// The longest `@font-face` that is looked at, in bytes.
const MAX_FACE_BYTES: usize = 16 * 1024;

/// Reads a style sheet as it arrives.
#[derive(Debug, Default)]
pub struct Scanner {
    /// What has come and is not yet read.
    held: Vec<u8>,
    in_comment: bool,
}

/// What a piece of a style sheet begins with.
enum Token {
    /// So many bytes of no interest.
    Skip(usize),
    /// A reference, and how many bytes it took.
    Reference(ObjectKind, String, usize),
    /// More must come before it is known.
    More,
}

impl Scanner {
    /// Takes more of the style sheet; hands out what it names.
    pub fn push(&mut self, bytes: &[u8], found: &mut Vec<Found>) {
        self.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_slice();
        while !rest.is_empty() {
            if self.in_comment {
                match find(rest, b"*/") {
                    Some(at) => {
                        self.in_comment = false;
                        rest = rest.get(at + 2..).unwrap_or_default();
                    }
                    None => {
                        rest = rest.get(rest.len() - 1..).unwrap_or_default();
                        break;
                    }
                }
                continue;
            }
            match token(rest) {
                Token::More => break,
                Token::Skip(count) => {
                    self.in_comment = rest.starts_with(b"/*");
                    rest = rest.get(count..).unwrap_or_default();
                }
                Token::Reference(kind, reference, count) => {
                    let length = 1..=MAX_REFERENCE_BYTES;
                    if length.contains(&reference.len()) {
                        found.push(Found::Object { kind, reference });
                    }
                    rest = rest.get(count..).unwrap_or_default();
                }
            }
        }
        self.held = rest.to_vec();
    }
}

fn token(bytes: &[u8]) -> Token {
    // What may begin something; all before it is of no interest.
    let begins = |byte: &u8| matches!(byte, b'/' | b'"' | b'\'' | b'@' | b'u' | b'U');
    match bytes.iter().position(begins) {
        None => return Token::Skip(bytes.len()),
        Some(0) => {}
        Some(at) => return Token::Skip(at),
    }
    match bytes.first() {
        Some(b'/') => match bytes.get(1) {
            None => Token::More,
            Some(b'*') => Token::Skip(2),
            Some(_) => Token::Skip(1),
        },
        Some(b'"' | b'\'') => match quoted(bytes) {
            Some((_, end)) => Token::Skip(end),
            None => unfinished(bytes, MAX_REFERENCE_BYTES),
        },
        Some(b'@') => at_rule(bytes),
        _ => match word(bytes, b"url(") {
            Some(true) => match url(bytes) {
                Some((url, end)) => Token::Reference(ObjectKind::Resource, url, end),
                None => unfinished(bytes, MAX_REFERENCE_BYTES),
            },
            Some(false) => Token::Skip(1),
            None => Token::More,
        },
    }
}

/// `@import` and `@font-face`; the content of any other rule is looked at as all else is.
fn at_rule(bytes: &[u8]) -> Token {
    match (word(bytes, b"@import"), word(bytes, b"@font-face")) {
        (Some(true), _) => {
            let after = bytes.get(7..).unwrap_or_default();
            let space = after.iter().take_while(|byte| byte.is_ascii_whitespace());
            let from = 7 + space.count();
            let reference = bytes.get(from..).unwrap_or_default();
            let read = match reference.first() {
                Some(b'"' | b'\'') => quoted(reference),
                Some(_) => match word(reference, b"url(") {
                    Some(true) => url(reference),
                    Some(false) => return Token::Skip(7),
                    None => None,
                },
                None => None,
            };
            match read {
                Some((url, end)) => Token::Reference(ObjectKind::Style, url, from + end),
                None => unfinished(bytes, MAX_REFERENCE_BYTES),
            }
        }
        (_, Some(true)) => match bytes
            .iter()
            .take(MAX_FACE_BYTES)
            .position(|byte| *byte == b'}')
        {
            Some(end) => {
                let (face, _) = bytes.split_at(end);
                Token::Reference(ObjectKind::Resource, font(face).unwrap_or_default(), end)
            }
            None => unfinished(bytes, MAX_FACE_BYTES),
        },
        (Some(false), Some(false)) => Token::Skip(1),
        _ => Token::More,
    }
}

/// The file of a font that is fetched.
fn font(face: &[u8]) -> Option<String> {
    if find(face, b"unicode-range").is_some() {
        return None;
    }
    let mut rest = face;
    while let Some(at) = find(rest, b"url(") {
        rest = rest.get(at..)?;
        let (file, end) = url(rest)?;
        let path = file.split(['?', '#']).next().unwrap_or_default();
        if path.to_ascii_lowercase().ends_with(".woff2") {
            return Some(file);
        }
        rest = rest.get(end..)?;
    }
    None
}

/// Whether bytes begin with a word; `None` where they are its beginning.
fn word(bytes: &[u8], word: &[u8]) -> Option<bool> {
    let (came, wanted) = match bytes.get(..word.len()) {
        Some(came) => (came, word),
        None => (bytes, word.get(..bytes.len()).unwrap_or_default()),
    };
    match came.eq_ignore_ascii_case(wanted) {
        true if came.len() < word.len() => None,
        same => Some(same),
    }
}

/// What cannot be read to its end: it may yet come, or is too long to be waited for.
fn unfinished(bytes: &[u8], most: usize) -> Token {
    match bytes.len() > most {
        // All that was looked at, so that no byte is looked at twice.
        true => Token::Skip(most),
        false => Token::More,
    }
}

/// The text of a string that begins with its quote, and where it ends.
fn quoted(bytes: &[u8]) -> Option<(String, usize)> {
    let quote = bytes.first()?;
    let mut text = Vec::new();
    let mut escaped = false;
    for (byte, at) in bytes.iter().skip(1).take(MAX_REFERENCE_BYTES).zip(1..) {
        match byte {
            byte if escaped => {
                text.push(*byte);
                escaped = false;
            }
            b'\\' => escaped = true,
            byte if byte == quote => return Some((lossy(&text), at + 1)),
            // A string ends with its line at the latest.
            b'\n' => return Some((String::new(), at)),
            byte => text.push(*byte),
        }
    }
    None
}

/// What `url(` holds, and where it ends.
fn url(bytes: &[u8]) -> Option<(String, usize)> {
    let inside = bytes.get(4..)?;
    let space = |byte: &&u8| byte.is_ascii_whitespace();
    let from = 4 + inside.iter().take_while(space).count();
    let rest = bytes.get(from..)?;
    if let b'"' | b'\'' = rest.first()? {
        let (text, end) = quoted(rest)?;
        return Some((text, from + end));
    }
    let mut near = rest.iter().take(MAX_REFERENCE_BYTES);
    let end = near.position(|byte| *byte == b')')?;
    let (text, _) = rest.split_at(end);
    Some((lossy(text).trim().to_owned(), from + end + 1))
}

fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn scanned(sheet: &[u8], piece: usize) -> Vec<(ObjectKind, String)> {
        let mut scanner = Scanner::default();
        let mut found = Vec::new();
        for piece in sheet.chunks(piece) {
            scanner.push(piece, &mut found);
            assert!(scanner.held.len() <= MAX_FACE_BYTES + piece.len());
        }
        found
            .into_iter()
            .map(|found| match found {
                Found::Object { kind, reference } => (kind, reference),
                Found::Base(_) => panic!(),
            })
            .collect()
    }

    #[test]
    fn a_style_sheet_names_its_objects() {
        let sheet = br#"@charset "utf-8"; @import "a.css"; @IMPORT url( 'b.css' ) screen;@import url(c.css);
            /* url(no.png) " */ a { background: url(d.png) URL("e.png"); content: "url(no.png)" }
            @font-face { font-family: F; src: url(f.eot); src: url(f.eot?#x) format("eot"),
              url(f.woff2?v=1) format("woff2"), url(f.woff) }
            @font-face { src: url(no.woff2); unicode-range: U+0460-052F } @font-face { src: url(no.ttf) }
            @media print { b { background: url(  g.png  ) } } u { color: url (no) } .burl { src: 'it\'s url(no)' }
            c { background: url(data:image/png;base64,AA==) } d { background: url(unfinished"#;
        let wanted = [
            (ObjectKind::Style, "a.css"),
            (ObjectKind::Style, "b.css"),
            (ObjectKind::Style, "c.css"),
            (ObjectKind::Resource, "d.png"),
            (ObjectKind::Resource, "e.png"),
            (ObjectKind::Resource, "f.woff2?v=1"),
            (ObjectKind::Resource, "g.png"),
            (ObjectKind::Resource, "data:image/png;base64,AA=="),
        ];
        for piece in [1, 2, 3, 10_000] {
            let found = scanned(sheet, piece);
            let found: Vec<_> = found
                .iter()
                .map(|(kind, url)| (*kind, url.as_str()))
                .collect();
            assert_eq!(found, wanted, "in pieces of {piece}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>, piece in 1..20_usize) {
            scanned(&bytes, piece);
        }

        #[test]
        fn pieces_make_no_difference(sheet in "([/*\"'@u();{} \n\\\\]|url\\(|@import |@font-face|\\.woff2|a){0,60}") {
            let whole = scanned(sheet.as_bytes(), sheet.len().max(1));
            for piece in 1..5 {
                prop_assert_eq!(&scanned(sheet.as_bytes(), piece), &whole);
            }
        }
    }
}
