//! Text from outside (a far end, a file, a resolver, the kernel) on its way to a terminal or a page: the one
//! place that says which characters may be shown, and how many.
//!
//! A control character moves the cursor or retitles the window, a bidirectional control shows other words than were
//! written (UAX 9; CVE-2021-42574), what takes no room hides a difference between two names (UTS 39), and a separator
//! begins a line that was not in the text. Each is shown as U+FFFD.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Characters that are shown of one text. The longest sentences of plumb's own have some six hundred.
pub const MAX_CHARS: usize = 4096;

/// In the place of a character that is not shown.
const REPLACEMENT: char = '\u{fffd}';
/// Begins a control sequence of a terminal (ECMA-48, section 8.3.27).
const ESCAPE: char = '\u{1b}';
/// Digits and semicolons of the longest colour: bold and two colours of 24 bits take 36.
const MAX_COLOUR_CHARS: usize = 40;

/// Whether a character is never shown, whatever stands beside it.
fn is_forbidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Bidirectional controls.
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            // Line and paragraph separator.
            | '\u{2028}' | '\u{2029}'
            // Invisible: soft hyphen, grapheme joiner, fillers, zero width space, word joiner and what follows
            // it, byte order mark, annotations, tags.
            | '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{2065}'
            | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

/// Zero width joiner and non-joiner.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

/// Whether a joiner beside this changes what is seen: scripts from Arabic to Myanmar, Khmer and Mongolian, and
/// pictographs with their variation selector.
fn may_be_joined(c: char) -> bool {
    matches!(c, '\u{600}'..='\u{109f}' | '\u{1780}'..='\u{18af}' | '\u{2190}'..='\u{2bff}' | '\u{fe0f}' | '\u{1f000}'..='\u{1faff}')
        && !is_forbidden(c)
}

/// What a text may hold besides what can be shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// Nothing: line feeds and tabs become spaces.
    OneLine,
    /// Line feeds and tabs.
    Lines,
    /// Those, and colours (SGR, ECMA-48 section 8.3.117).
    Colours,
}

/// A text as one line.
pub fn line(text: &str) -> Cow<'_, str> {
    clipped(text, MAX_CHARS)
}

/// A text as one line of at most so many characters.
pub fn clipped(text: &str, max_chars: usize) -> Cow<'_, str> {
    match clean(text, Keeps::OneLine) {
        Cow::Borrowed(text) => clip(text, max_chars),
        Cow::Owned(text) => Cow::Owned(clip(&text, max_chars).into_owned()),
    }
}

/// A text of several lines.
pub fn lines(text: &str) -> Cow<'_, str> {
    clean(text, Keeps::Lines)
}

/// A message of several lines, none of which is longer than [`MAX_CHARS`].
pub fn message(text: &str) -> Cow<'_, str> {
    clip_lines(lines(text))
}

/// A page of plumb's own on its way to a terminal, in colour. What came from outside has passed [`line()`]
/// before it was painted: here nothing passes but colours, should it have been forgotten.
pub fn page(text: &str) -> Cow<'_, str> {
    clean(text, Keeps::Colours)
}

/// A JSON document in which each character that may not be shown is written as its number, so that it reads
/// as before and commands nothing where it is printed.
pub fn json(document: &str) -> Cow<'_, str> {
    let must = |c: char| (is_forbidden(c) && c != '\n') || is_joiner(c);
    if !document.contains(must) {
        return Cow::Borrowed(document);
    }
    let mut escaped = String::with_capacity(document.len() + 16);
    for c in document.chars() {
        if must(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String does not fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(c);
        }
    }
    Cow::Owned(escaped)
}

fn clean(text: &str, keeps: Keeps) -> Cow<'_, str> {
    let suspect =
        |c: char| (is_forbidden(c) && (keeps == Keeps::OneLine || c != '\n')) || is_joiner(c);
    if !text.contains(suspect) {
        return Cow::Borrowed(text);
    }
    let mut cleaned = String::with_capacity(text.len() + 16);
    let mut rest = text;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        if keeps == Keeps::Colours
            && let Some(length) = colour(rest)
        {
            let (colour, after) = rest.split_at(length);
            cleaned.push_str(colour);
            rest = after;
            continue;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        let joins = || {
            let after = rest.chars().next();
            before.is_some_and(may_be_joined) && after.is_some_and(may_be_joined)
        };
        cleaned.push(match c {
            '\n' | '\t' if keeps == Keeps::OneLine => ' ',
            '\n' | '\t' => c,
            c if is_forbidden(c) || (is_joiner(c) && !joins()) => REPLACEMENT,
            c => c,
        });
        before = Some(c);
    }
    Cow::Owned(cleaned)
}

/// Bytes of the colour that a text begins with, if it does.
fn colour(text: &str) -> Option<usize> {
    let numbers = text.strip_prefix(ESCAPE)?.strip_prefix('[')?;
    let length = numbers.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    let ends = numbers.get(length..)?.starts_with('m');
    (ends && length <= MAX_COLOUR_CHARS).then_some(length + 3)
}

fn clip(text: &str, max_chars: usize) -> Cow<'_, str> {
    // No text has more characters than bytes.
    if text.len() <= max_chars || text.chars().count() <= max_chars {
        return Cow::Borrowed(text);
    }
    let kept = text.chars().take(max_chars.saturating_sub(1));
    Cow::Owned(kept.chain(['…']).collect())
}

fn clip_lines(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.split('\n').all(|line| line.len() <= MAX_CHARS) {
        return text;
    }
    let lines: Vec<_> = text.split('\n').map(|line| clip(line, MAX_CHARS)).collect();
    Cow::Owned(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// What no terminal and no page may see, written down a second time.
    fn commands(text: &str) -> bool {
        text.chars().any(|c| {
            let n = u32::from(c);
            n < 0x20
                || (0x7f..=0x9f).contains(&n)
                || [0x61c, 0x200b, 0x200e, 0x200f, 0x2028, 0x2029, 0xfeff].contains(&n)
                || (0x202a..=0x202e).contains(&n)
                || (0x2066..=0x2069).contains(&n)
        })
    }

    /// Texts that are mostly trouble.
    fn trouble() -> impl Strategy<Value = String> {
        let part = prop_oneof![
            any::<char>().prop_map(String::from),
            "[a-z\u{0}-\u{1f}\u{7f}-\u{9f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}]{0,4}",
            Just("\u{1b}[31m".to_owned()),
            Just("\u{1b}]0;owned\u{7}".to_owned()),
            Just("\u{1b}[".to_owned()),
            Just("👩\u{200d}💻".to_owned()),
            Just("\u{200d}".to_owned()),
            Just("\r\n".to_owned()),
        ];
        proptest::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
    }

    #[test]
    fn what_commands_a_terminal_or_hides_is_not_shown() {
        assert_eq!(
            line("a\u{1b}[2Jb\u{9b}c\u{202e}d\ne\tf\u{7f}"),
            "a\u{fffd}[2Jb\u{fffd}c\u{fffd}d e f\u{fffd}"
        );
        for hidden in [
            '\u{200b}', '\u{feff}', '\u{ad}', '\u{2060}', '\u{61c}', '\u{200e}', '\u{2067}',
            '\u{2028}',
        ] {
            assert_eq!(line(&format!("pay{hidden}pal")), "pay\u{fffd}pal");
        }
        assert_eq!(lines("a\nb\r\tc"), "a\nb\u{fffd}\tc");
        assert!(matches!(line("Zürich – 東京 ✓"), Cow::Borrowed(_)));
    }

    #[test]
    fn joiners_stay_where_they_are_seen() {
        assert_eq!(
            line("👩\u{200d}💻 \u{646}\u{645}\u{6cc}\u{200c}\u{62f}"),
            "👩\u{200d}💻 \u{646}\u{645}\u{6cc}\u{200c}\u{62f}"
        );
        assert_eq!(line("goo\u{200d}gle\u{200c}"), "goo\u{fffd}gle\u{fffd}");
        assert_eq!(line("👩\u{200d}\u{200d}💻"), "👩\u{fffd}\u{fffd}💻");
    }

    #[test]
    fn only_colours_pass_with_a_page() {
        assert_eq!(
            page("\u{1b}[1m\u{1b}[38;5;9mred\u{1b}[0m\n"),
            "\u{1b}[1m\u{1b}[38;5;9mred\u{1b}[0m\n"
        );
        let page = page("\u{1b}]0;x\u{7}\u{1b}[2J\u{1b}[31\u{1b}[1;1H\u{9b}31m");
        assert_eq!(
            page,
            "\u{fffd}]0;x\u{fffd}\u{fffd}[2J\u{fffd}[31\u{fffd}[1;1H\u{fffd}31m"
        );
    }

    #[test]
    fn a_text_is_no_longer_than_it_may_be() {
        assert_eq!(line(&"é".repeat(300_000)).chars().count(), MAX_CHARS);
        assert_eq!(clipped("abcdef", 4), "abc…");
        assert_eq!(clipped("abcd", 4), "abcd");
        let long = format!("short\n{}\nshort", "x".repeat(10_000));
        assert_eq!(message(&long).len(), 12 + MAX_CHARS - 1 + '…'.len_utf8());
    }

    proptest! {
        #[test]
        fn no_text_commands_a_terminal(text in trouble()) {
            let one = line(&text);
            prop_assert!(!commands(&one), "{one:?}");
            prop_assert_eq!(one.chars().count(), text.chars().count());
            prop_assert_eq!(line(&one), one.clone());
            prop_assert!(!commands(&lines(&text).replace(['\n', '\t'], "")));
            // Without its colours a page is a text of lines.
            let page = page(&text).into_owned();
            let mut bare = String::new();
            let mut rest = page.as_str();
            while let Some(c) = rest.chars().next() {
                let length = colour(rest).unwrap_or_else(|| {
                    bare.push(c);
                    c.len_utf8()
                });
                rest = rest.get(length..).unwrap();
            }
            prop_assert!(!commands(&bare.replace(['\n', '\t'], "")), "{page:?}");
        }

        #[test]
        fn a_document_reads_as_before(text in trouble()) {
            let document = serde_json::to_string(&text).unwrap();
            let shown = json(&document);
            prop_assert!(!commands(&shown), "{shown:?}");
            prop_assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }
    }
}
