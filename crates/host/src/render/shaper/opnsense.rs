//! OPNsense: a pipe with FlowQueue-CoDel, by its menus.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;

use super::rendering::{Lines, Rendering, Source, mbit, noun, of_ip_packets_bps};

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfEach(lines),
    source: Some(Source {
        title: "Fighting Bufferbloat with FQ_CoDel",
        publisher: "OPNsense documentation",
        read: "2026-11",
        shell: false,
    }),
};

fn lines(action: &ShaperAction) -> Vec<String> {
    let word = noun(action.direction);
    let direction = match action.direction {
        OneDirection::Up => "out",
        OneDirection::Down => "in",
    };
    vec![
        "1. Firewall > Shaper > Pipes > Add, with advanced mode on:".to_owned(),
        format!(
            "   Bandwidth: {} Mbit/s (framing is not counted there);",
            mbit(of_ip_packets_bps(action))
        ),
        format!("   Scheduler type: FlowQueue-CoDel; Enable ECN: on; Description: {word}."),
        format!("2. Firewall > Shaper > Queues > Add: Pipe: {word}; Weight: 100;"),
        format!("   Description: {word} queue."),
        "3. Firewall > Shaper > Rules > Add, with advanced mode on:".to_owned(),
        format!("   Interface: WAN; Proto: ip; Direction: {direction};"),
        format!("   Target: {word} queue. Apply."),
    ]
}
