//! Whatever a Run says, it is drawn: no panic, no markup from its text, nothing loaded from
//! elsewhere, no command to the terminal.

use crate::arbitrary::run;
use plumb_report::cases::{Case, Experiment};
use plumb_report::export::{flent, svg};
use plumb_report::problem::Said;
use plumb_report::text::Style;
use plumb_report::{compare, html, text};
use proptest::prelude::*;

/// The tags that the page itself is made of.
const TAGS: &[&str] = &[
    "html",
    "head",
    "meta",
    "title",
    "style",
    "body",
    "main",
    "header",
    "footer",
    "section",
    "article",
    "div",
    "span",
    "p",
    "b",
    "h1",
    "h2",
    "h3",
    "dl",
    "dt",
    "dd",
    "ul",
    "li",
    "code",
    "pre",
    "figure",
    "figcaption",
    "table",
    "caption",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "details",
    "summary",
    "svg",
    "line",
    "rect",
    "path",
    "text",
    "!doctype",
];

/// Fails when the page holds a tag that is not its own, or an attribute that loads or runs.
fn assert_own_markup(page: &str) -> Result<(), TestCaseError> {
    prop_assert!(!page.contains("http://") && !page.contains("https://"));
    let (head, rest) = page.split_once("<style>").expect("a style sheet");
    let (style, body) = rest.split_once("</style>").expect("its end");
    prop_assert!(!style.contains("url(") && !style.contains("@import"));
    for part in head.split('<').skip(1).chain(body.split('<').skip(1)) {
        let (tag, text) = part.split_once('>').expect("a tag is closed");
        let name = tag
            .trim_start_matches('/')
            .split([' ', '\n'])
            .next()
            .unwrap_or_default();
        prop_assert!(TAGS.contains(&name), "<{tag}>");
        prop_assert!(!text.contains('>'), "{text}");
        // Outside quotes there are only names of attributes.
        for attribute in tag
            .split('"')
            .step_by(2)
            .flat_map(str::split_whitespace)
            .skip(1)
        {
            let attribute = attribute.trim_end_matches(['=', '/']);
            prop_assert!(
                !attribute.starts_with("on")
                    && !["src", "href", "style", "action", "xlink:href"].contains(&attribute),
                "<{tag}>"
            );
        }
    }
    Ok(())
}

/// Fails where a text holds a character that commands a terminal, turns text around or hides.
fn assert_tame(text: &str) -> Result<(), TestCaseError> {
    let forbidden = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    let found: Vec<char> = text.chars().filter(|c| forbidden(*c)).collect();
    prop_assert!(found.is_empty(), "{found:?}");
    Ok(())
}

/// What somebody says who means harm.
fn said() -> Said {
    let text = Some("<script>\u{1b}[2J\u{202e}".to_owned());
    Said {
        who: text.clone(),
        since: text.clone(),
        expected: text,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    #[test]
    fn any_run_is_drawn_and_stays_text(run in run(), other in run()) {
        let comparison = compare::compare(&run, &other);
        let cases = Experiment {
            title: run.id.clone(),
            sides: ["before", "after"],
            heads: vec!["What"],
            cases: vec![Case { name: run.id.clone(), runs: [vec![Some(run.clone())], vec![Some(other.clone())]] }],
        };
        let case = html::render_problem(&run, &said()).expect("a page");
        // The Run in it is data, in which no tag begins.
        let (before, data) = case.split_once("<script").expect("its Run");
        let (_, after) = data.split_once("</script>").expect("its end");
        prop_assert!(!after.contains("script"));
        let case = format!("{before}{after}");
        for page in [html::render(&run), html::render_comparison(&run, &other, &comparison), html::render_cases(&cases), case] {
            assert_own_markup(&page)?;
            assert_tame(&page)?;
        }
        let style = Style { color: false, width: 80 };
        let facts = text::render_host_sections(&run, None, &style);
        let case = text::render_problem(&run, &said(), &style);
        for text in [case, text::render(&run, &style), text::render_check(&run, &style), facts, text::render_comparison(&comparison, &style)] {
            prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()), "{text:?}");
            assert_tame(&text)?;
        }
        if let Some(chart) = svg::svg(&run) {
            assert_tame(&chart)?;
        }
        let tiny = Style { color: true, width: 0 };
        let _ = (text::render(&run, &tiny), text::render_check(&run, &tiny), text::render_host_sections(&run, None, &tiny));
        // A Run without a load, or with a start that is no time, is an error and nothing worse.
        let _ = flent::export(&run, None);
        // What is not finite becomes null, and the document still reads.
        let json = serde_json::to_string(&comparison).expect("JSON");
        prop_assert!(serde_json::from_str::<compare::Comparison>(&json).is_ok());
    }
}

#[test]
fn an_empty_run_is_drawn() {
    let mut run = crate::sample::before();
    run.measurements.clear();
    run.findings.clear();
    run.notes.clear();
    run.verdict = None;
    run.target = None;
    assert!(html::render(&run).contains("this host"));
    assert!(text::render(&run, &Style::default()).starts_with("this host"));
    assert!(!html::render(&run).contains("could not be made"));
}

#[test]
fn tame_text_fits_eighty_columns() {
    let comparison = compare::compare(&crate::sample::before(), &crate::sample::after());
    let style = Style {
        color: false,
        width: 80,
    };
    for text in [
        text::render(&crate::sample::before(), &style),
        text::render(&crate::sample::ping_and_port(), &style),
        text::render_host_sections(&crate::sample::machine::full(), None, &style),
        text::render_comparison(&comparison, &style),
    ] {
        for line in text.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }
}

#[test]
fn addresses_in_text_do_not_look_like_markup() {
    let mut run = crate::sample::before();
    run.notes = vec!["see https://example.com/?a=1&b=2".into()];
    let page = html::render(&run);
    assert!(
        page.contains("see https:&#x2f;&#x2f;example.com"),
        "the note is there, escaped"
    );
}
