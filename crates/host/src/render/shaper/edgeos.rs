//! EdgeOS: its smart queue, which is FQ-CoDel in HTB.

use plumb_model::finding::ShaperAction;

use super::rendering::{Lines, Rendering, Source, noun, of_ip_packets_bps};

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfEach(lines),
    source: Some(Source {
        title: "EdgeRouter - Quality of Service (QoS)",
        publisher: "Ubiquiti Help Center",
        read: "2026-11",
        shell: true,
    }),
};

fn lines(action: &ShaperAction) -> Vec<String> {
    let kbit = (of_ip_packets_bps(action) / 1e3) as u64;
    let word = noun(action.direction);
    vec![
        "configure".to_owned(),
        "# eth0: the interface to the modem. Framing is not counted there.".to_owned(),
        "set traffic-control smart-queue plumb wan-interface eth0".to_owned(),
        format!("set traffic-control smart-queue plumb {word} rate {kbit}kbit"),
        "commit".to_owned(),
        "save".to_owned(),
        "# Offloading ends with it: a small EdgeRouter may carry less than before.".to_owned(),
    ]
}
