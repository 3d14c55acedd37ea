//! The forward and the reverse path, side by side.

use plumb_model::results::path::{
    Comparison, LineBothWays, PathHop, PathSymmetry, Sameness, WayBack,
};

use crate::number::Scale;
use crate::table::{Layout, Table, blank};

/// Each line of both.
pub(super) fn table(there: &[PathHop], back: &WayBack, symmetry: &PathSymmetry) -> Table {
    let typical = |hop: &PathHop| hop.rtt_s.map(|rtt| rtt.p50);
    let all = there.iter().chain(&back.hops);
    let scale = Scale::seconds(all.filter_map(typical));
    let with =
        |layout: Layout<_>, [head, answers, p50, added]: [_; 4], hops: &[PathHop], ttl: Ttl| {
            let at = |line: &&LineBothWays| {
                let ttl = ttl(line);
                hops.iter().find(|hop| Some(hop.ttl) == ttl)
            };
            layout
                .num(head, |line: &&LineBothWays| blank(ttl(line)))
                .text(answers, |line| blank(at(line).map(who)))
                .num(p50, |line| {
                    blank(at(line).map(|hop| scale.show(typical(hop))))
                })
                .num(added, |line| {
                    blank(at(line).map(|hop| scale.show(adds(hops, hop))))
                })
        };
    let sameness = |line: &&LineBothWays| match (line.sameness, symmetry.comparison) {
        (Sameness::Same, Comparison::Addresses) => "same router",
        (Sameness::Same, _) => "same line",
        (Sameness::Differ, _) => "differs",
        (Sameness::Unknown, _) => "",
    };
    let title = format!("Forward and reverse path, {}", scale.unit);
    let table = Table::of(title, &symmetry.lines);
    // A table in several blocks repeats its first columns, which are of the forward path: columns of the reverse path say so.
    let forward = ["forward", "answers here", "p50", "adds"];
    let reverse = ["reverse", "answers there", "reverse p50", "reverse adds"];
    let table = with(table, forward, there, |l| l.forward_ttl);
    let table = with(table, reverse, &back.hops, |l| l.return_ttl);
    table.text("", sameness).noted(said(back, symmetry))
}

/// Which hop a line is before, in one direction.
type Ttl = fn(&LineBothWays) -> Option<u8>;

fn who(hop: &PathHop) -> String {
    match (&hop.name, &hop.address) {
        (Some(name), Some(address)) => format!("{name} ({address})"),
        (None, Some(address)) => address.clone(),
        (_, None) => "*".to_owned(),
    }
}

/// By how much its median round trip is above the median of the last hop before it that answers.
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
        (Some(there), Some(back)) if there == back => format!("{there} hops in each direction"),
        (Some(there), Some(back)) => format!("{there} hops forward, {back} reverse"),
        _ => "the length of one of them is not known".to_owned(),
    };
    let (routes, times) = match symmetry.routes {
        Sameness::Same => (
            "Packets take the same lines in both directions",
            "What a line adds in both traces is its own.",
        ),
        Sameness::Differ => (
            "Packets take another path back",
            "A round trip takes both paths: what a line adds that only one of them has is of both together, and plumb owd \
             times each.",
        ),
        Sameness::Unknown => (
            "Whether packets take the same path back is unknown, because too few hops answer with addresses that show it",
            "Each round trip is of both directions together; plumb owd times each.",
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
