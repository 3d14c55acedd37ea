//! Text, of which the words that plumb itself writes stay, and numbers.

use crate::Redactor;
use crate::numbers::{is_number, version};

/// What parts the words of a text, beside spaces.
const BETWEEN: &[char] = &[
    ' ', '\t', '\n', '\r', '"', '\'', '`', '(', ')', '<', '>', '{', '}', '|', ';', ',', '→', '…',
    '·', '“', '”', '’', '‘', '\\', '≥', '≤', '!', '&', '*', '$', '^',
];

/// What may stand before or behind a word.
const AROUND: &[char] = &['.', ':', '?', '–', '—'];

/// What joins words, each of which is looked at by itself.
const JOINS: &[char] = &['=', '/', ':', '+', '×', '–', '−', '@', '#', '[', ']', '?'];

/// Signs beyond ASCII that plumb writes; others may be a name, as pictures are.
const SIGNS: &[char] = &[
    '°', '±', '×', 'µ', '−', '–', '—', '≈', '∞', '→', '←', '↑', '↓', '…', '·', '≥', '≤', '%',
    '\u{fffd}',
];

/// Digits behind a word that count things of a kind: `hop3`, `eth0`, `rx-12`.
const MOST_COUNTED_DIGITS: usize = 3;

/// Whether a text is one word and a number behind it, with or without a dash.
pub(crate) fn is_counted_word(text: &str, has: impl Fn(&str) -> bool) -> bool {
    let word = text.trim_end_matches(|c: char| c.is_ascii_digit());
    let digits = text.len() - word.len();
    let word = word.strip_suffix(['-', '_']).unwrap_or(word);
    (1..=MOST_COUNTED_DIGITS).contains(&digits)
        && word.chars().all(char::is_alphabetic)
        && has(word)
}

impl Redactor {
    /// A text with everything replaced that plumb does not write itself.
    pub(crate) fn prose(&mut self, text: &str) -> String {
        let mut text = text.to_owned();
        let phrases: Vec<String> = self.phrases.iter().cloned().collect();
        for phrase in &phrases {
            if text.contains(phrase.as_str()) {
                let other = self.name(phrase);
                text = text.replace(phrase.as_str(), &other);
            }
        }
        let mut whole = String::with_capacity(text.len());
        let mut rest = text.as_str();
        while !rest.is_empty() {
            let end = rest.find(BETWEEN).unwrap_or(rest.len());
            let (chunk, after) = rest.split_at(end);
            whole.push_str(&self.chunk(chunk));
            let between = after.chars().next().map_or(0, char::len_utf8);
            let (between, after) = after.split_at(between);
            whole.push_str(between);
            rest = after;
        }
        whole
    }

    /// What stands between two spaces, with the full stop behind it.
    fn chunk(&mut self, chunk: &str) -> String {
        if self.is_kept(chunk) {
            return chunk.to_owned();
        }
        if self.is_name(chunk) {
            return self.name(chunk);
        }
        if let Some(other) = self.structured(chunk) {
            return other;
        }
        let token = chunk.trim_matches(AROUND);
        let around = chunk.split_once(token).filter(|_| !token.is_empty());
        let Some((before, behind)) = around else {
            return chunk.to_owned();
        };
        format!("{before}{}{behind}", self.token(token))
    }

    /// Whether a whole name of the Run is more than a word, so that it can be nothing else.
    fn is_name(&self, token: &str) -> bool {
        let (words, other) = (char::is_alphabetic, |c: char| !c.is_alphabetic());
        token.contains(words) && token.contains(other) && self.whole.contains(token)
    }

    fn is_kept(&self, token: &str) -> bool {
        if self.is_name(token) {
            return false;
        }
        let word = token.trim_start_matches('-');
        let is_sign = |c: char| !c.is_alphanumeric() && (c.is_ascii() || SIGNS.contains(&c));
        token.chars().all(is_sign)
            || self.is_own_pseudonym(token)
            || self.words.has(word)
            || is_number(token) && !self.digits.contains(token)
            || is_counted_word(token, |word| self.words.has(word))
    }

    /// Whether it stands in the place of a name that was replaced before.
    fn is_own_pseudonym(&self, token: &str) -> bool {
        let code = token.strip_prefix("name-");
        code.is_some_and(|code| {
            code.len() == 8
                && code
                    .bytes()
                    .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        })
    }

    fn token(&mut self, token: &str) -> String {
        if self.is_kept(token) {
            return token.to_owned();
        }
        if self.is_name(token) {
            return self.name(token);
        }
        if let Some(other) = self.structured(token) {
            return other;
        }
        if let Some(number) = token.strip_prefix("AS").and_then(|n| n.parse::<u32>().ok()) {
            return format!("AS{}", self.system(Some(number.into())));
        }
        if let Some(version) = version(token) {
            return version.to_owned();
        }
        if token.starts_with('/') || token.starts_with("~/") {
            return self.path(token);
        }
        match token.find(JOINS) {
            Some(at) => {
                let (first, rest) = token.split_at(at);
                let join = rest.chars().next().map_or(0, char::len_utf8);
                let (join, rest) = rest.split_at(join);
                let (first, rest) = (self.token_or_none(first), self.token_or_none(rest));
                format!("{first}{join}{rest}")
            }
            None => self.compound(token),
        }
    }

    fn token_or_none(&mut self, token: &str) -> String {
        match token.is_empty() {
            true => String::new(),
            false => self.token(token),
        }
    }

    /// A path of a file, of which nothing stays where any part of it is not plumb's.
    fn path(&mut self, path: &str) -> String {
        let known = path
            .split('/')
            .all(|part| part.is_empty() || self.is_kept(part));
        match known && !path.starts_with('~') {
            true => path.to_owned(),
            false => format!("/{}", self.pseudonym(path)),
        }
    }

    /// Words that dots join: the parts that plumb writes stay.
    pub(crate) fn compound(&mut self, text: &str) -> String {
        if self.is_kept(text) {
            return text.to_owned();
        }
        let is_word = |part: &str| {
            let part = part.trim_matches(|c: char| c.is_ascii_digit());
            part.is_empty() || self.words.has(part)
        };
        let numbered = text.bytes().filter(u8::is_ascii_digit).count() <= MOST_COUNTED_DIGITS;
        let known = text.split('_').all(is_word) && numbered && !text.contains(['.', '-']);
        if known {
            return text.to_owned();
        }
        match text.contains('.')
            && text.split('.').any(|part| self.words.has(part))
            && is_dotted(text)
        {
            true => {
                let parts: Vec<String> = text.split('.').map(|part| self.compound(part)).collect();
                parts.join(".")
            }
            false => self.pseudonym(text),
        }
    }
}

/// Whether dots join the parts of a kernel variable or a field, and not the parts of a host's name: names of fields and
/// variables have an underscore, or begin as these do.
fn is_dotted(text: &str) -> bool {
    const BEGINNINGS: [&str; 7] = [
        "net.", "kernel.", "vm.", "fs.", "result.", "series.", "user.",
    ];
    BEGINNINGS
        .iter()
        .any(|beginning| text.starts_with(beginning))
}
