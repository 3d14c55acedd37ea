//! Text in lines that fit, whose words may bear colours.

/// Columns that a text takes: without the escape sequences of its colours (ECMA-48, SGR), a column a character.
pub(crate) fn columns(text: &str) -> usize {
    let mut columns = 0;
    let mut in_escape = false;
    for character in text.chars() {
        match (in_escape, character) {
            (false, '\u{1b}') => in_escape = true,
            (false, _) => columns += 1,
            (true, 'm') => in_escape = false,
            (true, _) => {}
        }
    }
    columns
}

/// Appends words in lines of at most `width` columns: the first behind `first`, the others behind as many blanks as
/// `indent`. A word that is longer has a line of its own.
pub(crate) fn wrap(into: &mut String, first: &str, indent: usize, text: &str, width: usize) {
    let mut line = first.to_owned();
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && columns(&line) + 1 + columns(word) > width {
            into.push_str(line.trim_end());
            into.push('\n');
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    into.push_str(line.trim_end());
    into.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_hang() {
        let mut text = String::new();
        wrap(
            &mut text,
            "- ",
            2,
            "one two three \u{1b}[1mfour\u{1b}[0m",
            10,
        );
        assert_eq!(text, "- one two\n  three\n  \u{1b}[1mfour\u{1b}[0m\n");
        assert_eq!(columns("\u{1b}[1mµs\u{1b}[0m"), 2);
        text.clear();
        wrap(&mut text, "", 0, "a-word-that-is-too-long x", 5);
        assert_eq!(text, "a-word-that-is-too-long\nx\n");
    }
}
