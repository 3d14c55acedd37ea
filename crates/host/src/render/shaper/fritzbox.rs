//! FRITZ!Box: it orders what it sends by rules, and has no managed queue.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;

use super::rendering::{Lines, Rendering, Source, mbit, noun};

/// What the fix is in place of a menu.
pub(super) const INSTEAD: &str = "A FRITZ!Box has no managed queue: put a router with SQM behind it (OpenWrt), to which all devices connect.";

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfEach(lines),
    source: Some(Source {
        title: "Prioritization: Right of Way for Internet Access",
        publisher: "AVM's manual of the FRITZ!Box 7490",
        read: "2026-11",
        shell: false,
    }),
};

fn lines(action: &ShaperAction) -> Vec<String> {
    let can = match action.direction {
        OneDirection::Up => [
            "What it can: Internet > Filters > Prioritization puts the devices",
            "of calls and games first in the upload (real-time applications).",
        ],
        OneDirection::Down => [
            "It does not reorder what it receives, so that none of its menus",
            "shortens this queue.",
        ],
    };
    vec![
        "A FRITZ!Box has no managed queue, and its menus cannot make one.".to_owned(),
        can[0].to_owned(),
        can[1].to_owned(),
        "What removes the queue: a router with SQM behind it (OpenWrt),".to_owned(),
        format!(
            "to which all devices connect, with the {} at {} Mbit/s.",
            noun(action.direction),
            mbit(action.rate_bps as f64)
        ),
    ]
}
