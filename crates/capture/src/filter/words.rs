//! The text of a filter in words and signs.

use super::error::FilterError;

/// The longest text that is read, in bytes: far more than the longest program needs.
const LONGEST_BYTES: usize = 1 << 16;
/// Signs, those first that begin like shorter ones.
const SIGNS: [&str; 24] = [
    "&&", "||", "<<", ">>", "<=", ">=", "==", "!=", "!", "&", "|", "^", "<", ">", "=", "+", "-",
    "*", "/", "%", "(", ")", "[", "]",
];

/// A word or a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    /// Its first byte in the text of the filter.
    pub(super) at: usize,
    /// Whether a backslash stood before it, which makes a name of a word of the language.
    pub(super) escaped: bool,
}

/// All words and signs of a text.
pub(super) fn words(text: &str) -> Result<Vec<Word<'_>>, FilterError> {
    if text.len() > LONGEST_BYTES {
        return Err(FilterError::TextTooLong {
            bytes: text.len(),
            most: LONGEST_BYTES,
        });
    }
    let mut words = Vec::new();
    // A colon between brackets stands before a size; elsewhere it belongs to an address.
    let mut brackets = 0_usize;
    let mut at = 0;
    // Ends with the text: each turn takes a character at least.
    while let Some(rest) = text.get(at..) {
        let Some(first) = rest.chars().next() else {
            break;
        };
        if first.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        let escaped = first == '\\';
        let begin = at + usize::from(escaped);
        let body = text.get(begin..).unwrap_or_default();
        let long = body.find(|c: char| !belongs(c, brackets > 0));
        let long = long.unwrap_or(body.len());
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
        // A word begins with a letter or a digit, an address with a colon too.
        let is_word = long > 0 && !body.starts_with(['-', '.', '_']);
        let (begin, long) = match sign {
            _ if is_word => (begin, long),
            Some(sign) => (at, sign.len()),
            None if first == ':' && brackets > 0 => (at, 1),
            None => {
                return Err(FilterError::Unexpected {
                    word: first.to_string(),
                    at,
                    accepted: "a word, a number, an address or a sign of the language",
                });
            }
        };
        let word = text.get(begin..begin + long).unwrap_or_default();
        match word {
            "[" => brackets += 1,
            "]" => brackets = brackets.saturating_sub(1),
            _ => {}
        }
        words.push(Word {
            text: word,
            at,
            escaped: escaped && is_word,
        });
        at = begin + long;
    }
    Ok(words)
}

/// Whether a character may be in a word.
fn belongs(c: char, in_brackets: bool) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_') || (c == ':' && !in_brackets)
}
