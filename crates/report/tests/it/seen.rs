//! What every text and every page has to keep to: widths, evidence as sentences, each fix once, charts that fit.

use plumb_model::run::Run;
use plumb_model::series::{Series, Unit};
use plumb_report::text::{self, Style};
use plumb_report::{compare, html};

use crate::check::runs;
use crate::goldens::every_kind;
use crate::sample;

const PLAIN: Style = Style {
    color: false,
    width: 80,
};

/// Every recorded Run, and one with a measurement of every kind.
fn all() -> Vec<(String, Run)> {
    let mut all = runs();
    all.push(("every kind".to_owned(), every_kind()));
    all
}

/// A name of a field that a person has no use for.
fn has_path(text: &str) -> bool {
    ["result.", "_s.p", "_ratio", "series."]
        .iter()
        .any(|part| text.contains(part))
}

#[test]
fn no_text_is_wider_than_80_columns_or_names_a_field() {
    for (name, run) in all() {
        for text in [text::render(&run, &PLAIN), text::render_brief(&run, &PLAIN)] {
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}\n{text}");
                assert!(!has_path(line), "{name}: {line}");
            }
        }
    }
    let comparison = compare::compare(&sample::before(), &sample::after());
    for line in text::render_comparison(&comparison, &PLAIN).lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn a_fix_and_a_headline_are_printed_once() {
    let mut several = 0;
    for (name, run) in all() {
        let text = text::render(&run, &PLAIN)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        let page = html::render(&run);
        let mut fixes: Vec<_> = run.findings.iter().flat_map(|f| &f.fixes).collect();
        several += fixes.len();
        fixes.sort_by(|a, b| (&a.summary, &a.commands).cmp(&(&b.summary, &b.commands)));
        fixes.dedup_by(|a, b| (a.on, &a.summary, &a.commands) == (b.on, &b.summary, &b.commands));
        let printed = |whole: &str, opening: &str| whole.matches(opening).count();
        let openings = ["<p><b>Fix on ", "<p><b>Next on "];
        let all: usize = openings.iter().map(|of| printed(&page, of)).sum();
        assert_eq!(all, fixes.len(), "{name}");
        let headline = run.verdict.as_ref().map(|verdict| verdict.headline.clone());
        if let Some(headline) = headline.filter(|said| said.len() > 20) {
            let said: Vec<&str> = headline.split_whitespace().collect();
            assert_eq!(
                printed(&text, &said.join(" ")),
                1,
                "{name}: {headline}\n{text}"
            );
        }
    }
    assert!(several > 50, "{several}");
}

/// The text between tags.
fn words(page: &str) -> String {
    let body = page.split_once("</style>").expect("a style sheet").1;
    let parts = body.split('<').filter_map(|part| part.split_once('>'));
    parts.map(|(_, text)| text).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_page_names_no_field_and_begins_with_what_it_means() {
    for (name, run) in all() {
        let page = html::render(&run);
        let words = words(&page);
        assert!(!has_path(&words), "{name}: {words}");
        if let (Some(means), Some(numbers)) =
            (page.find("What this means"), page.find("<h2>Numbers"))
        {
            let findings = page.find("<h2>Findings").expect("findings");
            assert!(means < findings && findings < numbers, "{name}");
        }
    }
    let page = html::render(&sample::before());
    for what in ["Calls", "Games", "Video", "Browsing"] {
        assert!(page.contains(&format!("<b>{what}</b>")), "{what}");
    }
    assert!(page.contains("latency under load</span>"));
}

#[test]
fn a_page_is_made_for_phones_the_dark_and_paper() {
    let page = html::render(&sample::before());
    for rule in [
        "@media (max-width: 44rem)",
        "@media (prefers-color-scheme: dark)",
        "@media print",
        "svg.narrow { display: none; }",
        "svg.wide { display: none; } svg.narrow { display: block; }",
    ] {
        assert!(page.contains(rule), "{rule}");
    }
    // Nothing keeps a chart wider than the page.
    let charts = page.lines().filter(|line| line.contains("svg {"));
    assert!(
        charts.clone().count() > 0 && charts.into_iter().all(|line| !line.contains("min-width"))
    );
    let count = |what: &str| page.matches(what).count();
    assert!(count("<svg class=\"wide\"") >= 2);
    assert_eq!(count("<svg class=\"wide\""), count("<svg class=\"narrow\""));
    // A grade of D is not that of F.
    assert!(
        page.contains("badge large bad\" title=\"latency grade\">F"),
        "{page}"
    );
    let mut better = sample::before();
    let verdict = better.verdict.as_mut().expect("a verdict");
    verdict.latency_grade = Some(plumb_model::grade::Grade::D);
    let page = html::render(&better);
    assert!(page.contains("badge large poor\" title=\"latency grade\">D"));
    let colours: Vec<&str> = page
        .lines()
        .filter(|line| line.contains("--poor:"))
        .collect();
    assert_eq!(
        colours.len(),
        3,
        "by light, in the dark, on paper: {colours:?}"
    );
}

#[test]
fn every_phase_is_named_over_the_chart() {
    let all = runs();
    let cable = all
        .iter()
        .find(|(name, _)| name.ends_with("/home-cable.json.gz"));
    let page = html::render(&cable.expect("a record").1);
    let svg = page.split("<svg").nth(1).expect("a chart");
    for phase in ["idle", "upload", "download", "both at once", "after load"] {
        assert!(svg.contains(&format!(">{phase}</text>")), "{phase}: {svg}");
    }
}

#[test]
fn a_chart_shows_what_matters_and_what_it_cuts_off() {
    let mut run = sample::ping_and_port();
    let measurement = run
        .measurements
        .iter_mut()
        .find(|m| m.series.contains_key("rtt"))
        .expect("round trips");
    let mut rtt = Series::new(Unit::Seconds);
    for probe in 0..500 {
        rtt.push(
            f64::from(probe) / 100.0,
            Some(if probe == 321 { 3.0 } else { 0.02 }),
        );
    }
    measurement.series.insert("rtt".to_owned(), rtt);
    let page = html::render(&run);
    assert!(
        page.contains(">1 beyond the top, up to 3.00 s</text>"),
        "{page}"
    );
    assert!(page.contains("<path class=\"cut\""));
    // The others take most of the height: the axis ends near them.
    assert!(
        page.contains(">25</text>") && !page.contains(">3000</text>"),
        "{page}"
    );
}
