//! Pages of the knowledge base as a terminal shows them. Of Markdown, what the pages use: headings, paragraphs, lists,
//! tables, blocks of code, `code` and **stress**.

use crate::wrapped::{columns, wrap};

const BOLD: &str = "\u{1b}[1m";
const CODE: &str = "\u{1b}[36m";
const PLAIN: &str = "\u{1b}[0m";

/// Between the columns of a table.
const GAP: usize = 2;
/// A cell in fewer columns is a tower of words: the row becomes a list then.
const LEAST_CELL: usize = 18;

/// The page in lines of at most `width` columns; blocks of code stay as they are.
pub(super) fn render(page: &str, width: usize) -> String {
    let mut text = String::new();
    let mut lines = page.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim().is_empty() {
            text.push('\n');
        } else if let Some(heading) = line.strip_prefix('#') {
            let heading = heading.trim_start_matches('#').trim();
            wrap(&mut text, "", 0, &painted(BOLD, &plain(heading)), width);
        } else if line.starts_with("```") {
            for code in lines.by_ref().take_while(|line| !line.starts_with("```")) {
                text += &format!("    {code}\n");
            }
        } else if line.starts_with("    ") {
            text += &format!("{line}\n");
        } else if line.starts_with('|') {
            let mut rows = vec![cells(line)];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(cells(row));
            }
            table(&mut text, &rows, width);
        } else {
            let mut paragraph = line.to_owned();
            while let Some(more) = lines.next_if(|line| goes_on(line)) {
                paragraph = format!("{paragraph} {}", more.trim());
            }
            let (mark, rest) = item(&paragraph);
            wrap(&mut text, &mark, columns(&mark), &styled(rest), width);
        }
    }
    text
}

/// Whether a line belongs to the paragraph or the item above it.
fn goes_on(line: &str) -> bool {
    let begins =
        line.starts_with(['#', '|']) || line.starts_with("```") || !item(line).0.is_empty();
    !line.trim().is_empty() && !begins
}

/// The mark of an item of a list, with the blanks before it, and what is behind.
fn item(line: &str) -> (String, &str) {
    let rest = line.trim_start();
    let indent = line.len() - rest.len();
    let number = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
    let mark = match rest {
        _ if rest.starts_with("- ") || rest.starts_with("* ") => 2,
        _ if number > 0
            && rest
                .get(number..)
                .is_some_and(|rest| rest.starts_with(". ")) =>
        {
            number + 2
        }
        _ => return (String::new(), rest),
    };
    let (mark, rest) = rest.split_at(mark);
    (format!("{}{mark}", " ".repeat(indent)), rest)
}

/// Each word in a colour, so that lines may be broken between them.
fn painted(style: &str, text: &str) -> String {
    let words = text.split(' ').map(|word| format!("{style}{word}{PLAIN}"));
    words.collect::<Vec<_>>().join(" ")
}

/// `code` and **stress** in colours.
fn styled(text: &str) -> String {
    let mut shown = String::new();
    for (part, inside) in text.split('`').zip([false, true].into_iter().cycle()) {
        if inside {
            shown += &painted(CODE, part);
            continue;
        }
        for (part, inside) in part.split("**").zip([false, true].into_iter().cycle()) {
            match inside {
                true => shown += &painted(BOLD, part),
                false => shown += part,
            }
        }
    }
    shown
}

/// The same without marks.
fn plain(text: &str) -> String {
    text.replace(['`', '*'], "")
}

fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches('|').trim_end_matches('|');
    row.split('|').map(|cell| styled(cell.trim())).collect()
}

/// A table, its last column wrapped; a list where not even that fits.
fn table(into: &mut String, rows: &[Vec<String>], width: usize) {
    let is_rule = |row: &Vec<String>| {
        row.iter()
            .all(|cell| !cell.is_empty() && cell.chars().all(|c| "-: ".contains(c)))
    };
    let rows: Vec<&Vec<String>> = rows.iter().filter(|row| !is_rule(row)).collect();
    let most = rows.iter().map(|row| row.len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..most.saturating_sub(1))
        .map(|place| {
            let cells = rows.iter().filter_map(|row| row.get(place));
            cells.map(|cell| columns(cell)).max().unwrap_or(0)
        })
        .collect();
    let before: usize = widths.iter().map(|width| width + GAP).sum();
    if before + LEAST_CELL > width {
        for row in rows {
            let mut cells = row.iter();
            let first = cells.next().map_or("", String::as_str);
            let rest: Vec<&str> = cells.map(String::as_str).collect();
            wrap(
                into,
                "- ",
                2,
                &format!("{first}: {}", rest.join("; ")),
                width,
            );
        }
        return;
    }
    for row in rows {
        let mut first = String::new();
        for (cell, width) in row.iter().zip(&widths) {
            first += cell;
            first += &" ".repeat(width.saturating_sub(columns(cell)) + GAP);
        }
        let last = row.get(widths.len()).map_or("", String::as_str);
        wrap(into, &first, before, last, width);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::explain::pages;

    fn bare(page: &str, width: usize) -> String {
        [BOLD, CODE, PLAIN]
            .iter()
            .fold(render(page, width), |text, style| text.replace(style, ""))
    }

    #[test]
    fn marks_become_colours_and_paragraphs_fit() {
        let page = "# Title `x`\n\nOne `two` **three**\nfour five.\n\n- item one\n  goes on\n1. first\n\n    code  stays\n";
        let text = render(page, 20);
        assert!(
            text.starts_with(
                "\u{1b}[1mTitle\u{1b}[0m \u{1b}[1mx\u{1b}[0m\n\nOne \u{1b}[36mtwo\u{1b}[0m"
            ),
            "{text:?}"
        );
        let shown = bare(page, 20);
        assert_eq!(
            shown,
            "Title x\n\nOne two three four\nfive.\n\n- item one goes on\n1. first\n\n    code  stays\n"
        );
    }

    #[test]
    fn tables_stand_in_columns_or_become_lists() {
        let page = "| a | b |\n|---|---|\n| `one` | some words that are long |\n";
        assert_eq!(
            bare(page, 25),
            "a    b\none  some words that are\n     long\n"
        );
        assert_eq!(
            bare(page, 16),
            "- a: b\n- one: some\n  words that are\n  long\n"
        );
    }

    #[test]
    fn every_page_fits_a_narrow_terminal() {
        for page in pages::built_in().unwrap() {
            for width in [40, 80] {
                let text = bare(&page.text, width);
                assert!(
                    !text.contains("**") && !text.contains("|---"),
                    "{}",
                    page.topic
                );
                for line in text.lines().filter(|line| !line.starts_with("    ")) {
                    let long = line.trim_start_matches("- ").trim();
                    assert!(
                        line.chars().count() <= width || !long.contains(' '),
                        "{}: {line}",
                        page.topic
                    );
                }
            }
        }
    }
}
