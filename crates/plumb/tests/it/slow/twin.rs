//! Twins of networks whose truth is known: measured again they agree with their originals.

use plumb_lab::twin::{figures, twin};
use plumb_model::results::rehearsal::PathFigures;

use crate::common::{check_in, side_by_side};

/// A twin agrees with its original within this share.
const WITHIN: f64 = 0.15;

#[test]
#[ignore = "slow"]
fn twins_agree_with_their_originals() {
    let names = [
        "home-cable",
        "fibre",
        "dsl-good",
        "no-window-scale",
        "home-line-bloated",
    ];
    let each = names.map(|name| move || agrees(name));
    let each: Vec<&(dyn Fn() + Sync)> = each.iter().map(|one| one as _).collect();
    side_by_side(&each);
}

fn agrees(name: &str) {
    let original = check_in(name, &[]).run;
    let made = twin(&original).unwrap_or_else(|e| panic!("{name}: {e}"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("twin.toml");
    std::fs::write(&file, &made.text).unwrap();
    let again = check_in(file.to_str().unwrap(), &[]).run;
    let differ = differ(&figures(&original), &figures(&again));
    assert!(
        differ.is_empty(),
        "{name}: {}\n{}",
        differ.join(", "),
        made.text
    );
}

fn differ(original: &PathFigures, twin: &PathFigures) -> Vec<String> {
    let all = original.all().into_iter().filter_map(|(figure, was)| {
        let (was, is) = (was?, twin.of(figure));
        let near = is.is_some_and(|is| (is / was - 1.0).abs() <= WITHIN);
        (!near).then(|| format!("{} {was:e} {is:?}", figure.name()))
    });
    all.collect()
}
