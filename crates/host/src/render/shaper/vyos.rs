//! VyOS: a policy of CAKE, for what comes in on an interface of type input.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;

use super::rendering::{Lines, Rendering, Source, noun, of_ip_packets_bps};

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfEach(lines),
    source: Some(Source {
        title: "Traffic Policy",
        publisher: "VyOS documentation",
        read: "2026-11",
        shell: true,
    }),
};

fn lines(action: &ShaperAction) -> Vec<String> {
    let word = noun(action.direction);
    // The policy has no overhead, and CAKE then counts IP packets.
    let kbit = (of_ip_packets_bps(action) / 1e3) as u64;
    let mut lines = vec![
        "configure".to_owned(),
        format!("set qos policy cake plumb-{word} bandwidth {kbit}kbit"),
        "# Where this is refused, it is an older VyOS: flow-isolation nat.".to_owned(),
        format!("set qos policy cake plumb-{word} flow-isolation-nat"),
        "# eth0: the interface to the modem.".to_owned(),
    ];
    match action.direction {
        OneDirection::Up => lines.push(format!("set qos interface eth0 egress plumb-{word}")),
        // In this order: the documentation warns of making the interface first.
        OneDirection::Down => lines.extend([
            format!("set qos interface ifb0 egress plumb-{word}"),
            "set interfaces ethernet eth0 redirect ifb0".to_owned(),
            "set interfaces input ifb0".to_owned(),
        ]),
    }
    lines.push("commit".to_owned());
    lines.push("save".to_owned());
    lines
}
