//! The way there and the way back, side by side.

use plumb_model::results::path::{
    Comparison, PathHop, PathResult, PathSymmetry, Sameness, WayBack,
};

use super::Kind::{Number, Text};
use super::Table;
use crate::number::Scale;

/// Each line of both ways; empty where the way back is not known.
pub(super) fn both_ways(path: &PathResult) -> Table {
    let (Some(back), Some(symmetry)) = (path.way_back.as_deref(), &path.symmetry) else {
        return Table::new(String::new(), &[]);
    };
    let typical = |hop: &PathHop| hop.rtt_s.map(|rtt| rtt.p50);
    let all = path.hops.iter().chain(&back.hops);
    let scale = Scale::seconds(all.filter_map(typical));
    let mut table = Table::new(
        format!("The way there and the way back, {}", scale.unit),
        &[
            ("there", Number),
            ("answers here", Text),
            ("p50", Number),
            ("adds", Number),
            ("back", Number),
            ("answers there", Text),
            ("p50", Number),
            ("adds", Number),
            ("", Text),
        ],
    );
    for line in &symmetry.lines {
        let side = |hops: &[PathHop], ttl: Option<u8>| {
            let hop = hops.iter().find(|hop| Some(hop.ttl) == ttl);
            [
                ttl.map_or_else(String::new, |ttl| ttl.to_string()),
                hop.map_or_else(String::new, who),
                hop.map_or_else(String::new, |hop| scale.show(typical(hop))),
                hop.map_or_else(String::new, |hop| scale.show(adds(hops, hop))),
            ]
        };
        let sign = match (line.sameness, symmetry.comparison) {
            (Sameness::Same, Comparison::Addresses) => "same router",
            (Sameness::Same, _) => "same line",
            (Sameness::Differ, _) => "differs",
            (Sameness::Unknown, _) => "",
        };
        let there = side(&path.hops, line.forward_ttl);
        let back = side(&back.hops, line.return_ttl);
        table.row(there.into_iter().chain(back).chain([sign.to_owned()]));
    }
    table.note = Some(said(back, symmetry));
    table
}

fn who(hop: &PathHop) -> String {
    match (&hop.name, &hop.address) {
        (Some(name), Some(address)) => format!("{name} ({address})"),
        (None, Some(address)) => address.clone(),
        (_, None) => "*".to_owned(),
    }
}

/// By how much its typical round trip is above that of the hop before it that answers.
fn adds(hops: &[PathHop], hop: &PathHop) -> Option<f64> {
    let before = hops
        .iter()
        .rev()
        .filter(|other| other.ttl < hop.ttl)
        .find_map(|other| other.rtt_s);
    Some(hop.rtt_s?.p50 - before.map_or(0.0, |rtt| rtt.p50))
}

fn said(back: &WayBack, symmetry: &PathSymmetry) -> String {
    let mut notes = Vec::new();
    if !back.reached {
        notes.push(format!(
            "The responder's probes to {} were not answered: a firewall before it, or of it, may drop them.",
            back.address
        ));
    }
    let lengths = match (symmetry.forward_hops, symmetry.return_hops) {
        (Some(there), Some(back)) if there == back => format!("{there} hops each way"),
        (Some(there), Some(back)) => format!("{there} hops there, {back} back"),
        _ => "the length of one way is not known".to_owned(),
    };
    let (routes, times) = match symmetry.routes {
        Sameness::Same => (
            "Packets come back over the lines that they go by",
            "What a line adds in both traces is the line's.",
        ),
        Sameness::Differ => (
            "Packets come back another way",
            "A round trip goes by one way and comes back by the other: what a line adds that only one of them \
             takes is of both ways together, and plumb owd times each.",
        ),
        Sameness::Unknown => (
            "Whether packets come back the same way cannot be said, since not enough hops answer with addresses \
             that show it",
            "Each round trip is of both ways together; plumb owd times each.",
        ),
    };
    notes.push(format!("{routes} ({lengths}). {times}"));
    if let Some(loss) = &back.loss {
        notes.push(format!(
            "Of the responder's probes {} of {} to its last hop were lost, from hop {} on.",
            loss.lost, loss.sent, loss.begins_at_ttl
        ));
    }
    notes.join(" ")
}
