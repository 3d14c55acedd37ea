//! pfSense: limiters with FQ_CODEL, by its menus.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;

use super::rendering::{Lines, Rendering, Source, mbit, of_ip_packets_bps};

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfEach(lines),
    source: Some(Source {
        title: "Configuring CoDel Limiters for Bufferbloat",
        publisher: "Netgate's pfSense documentation",
        read: "2026-11",
        shell: false,
    }),
};

fn lines(action: &ShaperAction) -> Vec<String> {
    // "In" and "out" are of the floating rule, which looks at what leaves the WAN.
    let (name, pipe) = match action.direction {
        OneDirection::Up => ("WANUp", "In / Out pipe: WANUpQ in the first field"),
        OneDirection::Down => ("WANDown", "In / Out pipe: WANDownQ in the second field"),
    };
    vec![
        "1. Firewall > Traffic Shaper > Limiters > New Limiter:".to_owned(),
        format!("   Enable: on; Name: {name};"),
        format!(
            "   Bandwidth: {} Mbit/s (framing is not counted there);",
            mbit(of_ip_packets_bps(action))
        ),
        "   Queue Management Algorithm: Tail Drop; Scheduler: FQ_CODEL;".to_owned(),
        "   Queue Length: 1000; ECN: on. Save.".to_owned(),
        format!("2. Add New Queue under {name}: Enable: on; Name: {name}Q;"),
        "   Queue Management Algorithm: Tail Drop. Save, Apply Changes.".to_owned(),
        "3. Firewall > Rules > Floating, a rule: Action: Match;".to_owned(),
        "   Interface: WAN; Direction: out; Protocol: Any;".to_owned(),
        // The form refuses limiters on an outgoing rule without one, and a gateway has one family.
        "   Address Family: IPv4; Gateway: the WAN's (a second rule for IPv6);".to_owned(),
        format!("   {pipe}. Save, Apply Changes."),
        "   Upload and download share this rule: fill in both fields.".to_owned(),
    ]
}
