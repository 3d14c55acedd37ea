//! ASUS: CAKE with Asuswrt-Merlin; ASUS' own firmware documents no managed queue.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;

use super::rendering::{Lines, Rendering, Source, kbit, mbit};

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfEach(lines),
    source: Some(Source {
        title: "Quality of Service (QoS)",
        publisher: "DeepWiki on asuswrt-merlin.ng",
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
        "With the firmware Asuswrt-Merlin: QoS: Enable QoS: on;".to_owned(),
        "   QoS Type: Cake; Bandwidth Setting: Manual;".to_owned(),
        format!(
            "   {field} Bandwidth: {} Mb/s ({} kbit/s);",
            mbit(action.rate_bps as f64),
            kbit(action)
        ),
        format!("   WAN packet overhead: {}. Apply.", action.overhead_bytes),
        "ASUS' own firmware documents no managed queue: install Merlin where".to_owned(),
        "the model can, or put a router with SQM between it and the modem.".to_owned(),
    ]
}
