//! Text for a locale whose characters are not UTF-8 (`LC_ALL=C`, `de_DE.ISO-8859-1`): in ASCII.

use std::borrow::Cow;
use std::env;
use std::sync::LazyLock;

/// Whether the locale asks for other characters than UTF-8. Where none is set at all, as in most containers, terminals
/// are UTF-8 nevertheless.
static ASCII: LazyLock<bool> = LazyLock::new(|| {
    // In the order of setlocale(3): the first that is set and not empty decides.
    let names = ["LC_ALL", "LC_CTYPE", "LANG"];
    let locale = names.iter().find_map(|name| {
        let value = env::var_os(name).filter(|value| !value.is_empty())?;
        Some(value.to_string_lossy().into_owned())
    });
    locale.is_some_and(|locale| !is_utf8(&locale))
});

/// Whether the locale is one of ASCII.
pub(crate) fn is_ascii() -> bool {
    *ASCII
}

/// The text as the locale can show it.
pub(crate) fn shown(text: &str) -> Cow<'_, str> {
    match !text.is_ascii() && is_ascii() {
        true => Cow::Owned(ascii(text)),
        false => Cow::Borrowed(text),
    }
}

/// `LANGUAGE_COUNTRY.CODESET@MODIFIER`; without a code set the C library has an older one.
fn is_utf8(locale: &str) -> bool {
    let codeset = locale
        .split('@')
        .next()
        .and_then(|name| name.split_once('.'));
    codeset.is_some_and(|(_, codeset)| {
        let codeset = codeset.replace('-', "");
        codeset.eq_ignore_ascii_case("utf8")
    })
}

/// Each character by one that looks alike, so that columns stay; a `?` for what has none. A sign that takes two takes the
/// space behind it, where there is one.
fn ascii(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match sign(character) {
            Some(sign) => {
                shown.push_str(sign);
                characters.next_if_eq(&' ');
            }
            None => shown.push(like(character)),
        }
    }
    shown
}

/// What one character would say otherwise.
fn sign(character: char) -> Option<&'static str> {
    Some(match character {
        '±' => "+-",
        '≥' => ">=",
        '≤' => "<=",
        _ => return None,
    })
}

fn like(character: char) -> char {
    match character {
        ascii if ascii.is_ascii() => ascii,
        'µ' | 'μ' => 'u',
        '–' | '—' | '−' | '─' => '-',
        '│' => '|',
        '·' | '…' | '•' => '.',
        '→' | '⟶' => '>',
        '←' => '<',
        '↑' => '^',
        '↓' => 'v',
        '×' | '✗' => 'x',
        '✓' => '+',
        '≈' => '~',
        '‘' | '’' => '\'',
        '“' | '”' | '„' => '"',
        '\u{a0}' | '\u{202f}' => ' ',
        // The levels of charts, lowest first.
        '▁' => '_',
        '▂' => '.',
        '▃' => '-',
        '▄' => '=',
        '▅' => '+',
        '▆' => '*',
        '▇' => '%',
        '█' => '#',
        'ä' | 'á' | 'à' | 'â' => 'a',
        'é' | 'è' | 'ê' | 'ë' => 'e',
        'ö' | 'ó' | 'ô' => 'o',
        'ü' | 'ú' | 'û' => 'u',
        'í' | 'î' | 'ï' => 'i',
        _ => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locale_names_its_characters() {
        for utf8 in ["C.UTF-8", "en_GB.utf8", "de_DE.UTF-8@euro"] {
            assert!(is_utf8(utf8), "{utf8}");
        }
        for other in ["C", "POSIX", "de_DE", "de_DE.ISO-8859-1", "de_DE@euro"] {
            assert!(!is_utf8(other), "{other}");
        }
    }

    #[test]
    fn text_keeps_its_columns() {
        assert_eq!(ascii("640 µs – ▁█ × →"), "640 us - _# x >");
        assert_eq!(ascii("20 ± 3 ms, ≤30"), "20 +-3 ms, <=30");
        assert_eq!(ascii("数").chars().count(), 1);
    }
}
