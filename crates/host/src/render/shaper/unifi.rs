//! UniFi: Smart Queues, by its menu.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;

use super::rendering::{Lines, Rendering, Source, mbit, of_ip_packets_bps};

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfEach(lines),
    source: Some(Source {
        title: "Smart Queues, bufferbloat, and the UniFi WAN",
        publisher: "shiftctrl.net, not the maker",
        read: "2026-11",
        shell: false,
    }),
};

fn lines(action: &ShaperAction) -> Vec<String> {
    let field = match action.direction {
        OneDirection::Up => "Upload",
        OneDirection::Down => "Download",
    };
    vec![
        "UniFi Network > Settings > Internet > the WAN > Advanced: Manual:".to_owned(),
        "   Smart Queues: on;".to_owned(),
        format!(
            "   {field}: {} Mbit/s (framing is not counted there).",
            mbit(of_ip_packets_bps(action))
        ),
        "Offloading ends with it: small gateways carry less than before.".to_owned(),
    ]
}
