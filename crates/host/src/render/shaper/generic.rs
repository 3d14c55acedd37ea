//! Plain words, for a router that is not known.

use plumb_model::finding::ShaperAction;

use super::rendering::{Lines, Rendering, kbit, noun};

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfAll(lines),
    source: None,
};

fn lines(actions: &[ShaperAction]) -> Vec<String> {
    let rates: Vec<String> = actions
        .iter()
        .map(|action| format!("{} {} kbit/s", noun(action.direction), kbit(action)))
        .collect();
    let overhead = actions.first().map_or(0, |action| action.overhead_bytes);
    vec![
        format!("{};", rates.join(", ")),
        format!("overhead {overhead} bytes and CAKE or FQ-CoDel, where it asks."),
        "The menus or commands of your router: --router NAME, such as openwrt.".to_owned(),
    ]
}
