//! Several Runs in one figure.

use plumb_model::context::Phase;
use plumb_model::run::Run;
use plumb_model::vocabulary::Vocabulary as _;
use plumb_report::export::figure::{Figure, figure};

fn named(names: &[&str]) -> Vec<(String, Run)> {
    let runs = names.iter().map(|name| {
        let run = match *name {
            "after" => crate::sample::after(),
            _ => crate::sample::before(),
        };
        ((*name).to_owned(), run)
    });
    runs.collect()
}

#[test]
fn every_run_is_in_the_figure_by_its_name() {
    let runs = named(&["before", "after", "<third>"]);
    for (kind, word) in Figure::WORDS {
        let drawn = figure(*kind, &runs, None).unwrap_or_else(|| panic!("{word}"));
        assert!(drawn.starts_with("<svg xmlns"), "{word}");
        for name in ["before", "after", "&lt;third&gt;"] {
            assert!(drawn.contains(name), "{word}: {name}");
        }
        assert!(
            !drawn.contains("NaN") && !drawn.contains("<third>"),
            "{word}"
        );
        assert_eq!(drawn.matches("</svg>").count(), 1, "{word}");
        // The upload is chosen, and any other phase when it is asked for.
        assert!(drawn.contains("upload"), "{word}");
        let idle = figure(*kind, &runs, Some(Phase::Idle)).unwrap();
        assert!(idle.contains("idle") && idle != drawn, "{word}");
        assert_eq!(figure(*kind, &runs, Some(Phase::Silence)), None, "{word}");
        assert_eq!(figure(*kind, &[], None), None, "{word}");
    }
}

#[test]
fn boxes_are_those_of_the_round_trips() {
    // The median under upload falls from 706 ms to 19 ms: the second box is far to the left of the first.
    let drawn = figure(Figure::Box, &named(&["before", "after"]), Some(Phase::Up)).unwrap();
    let boxes: Vec<f64> = drawn
        .split("d=\"M")
        .skip(1)
        .map(|path| path.split(' ').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(boxes.len(), 2, "{drawn}");
    assert!(boxes[1] < boxes[0] - 100.0, "{boxes:?}");
}

#[test]
fn more_runs_than_colours_have_dashes() {
    let runs = named(&["before"; 7]);
    let drawn = figure(Figure::Cdf, &runs, None).unwrap();
    assert!(drawn.contains("line up before\""), "{drawn}");
}
