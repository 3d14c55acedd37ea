//! Plain words, for a router that is not known.

use plumb_model::finding::ShaperAction;

use super::rendering::{Rendering, kbit, mbit, noun};

pub(super) const RENDERING: Rendering = Rendering {
    lines,
    source: None,
};

fn lines(action: &ShaperAction) -> Vec<String> {
    let word = noun(action.direction);
    vec![
        "On the router, switch on SQM or smart queues (CAKE, FQ-CoDel):".to_owned(),
        format!(
            "  {word} {} Mbit/s ({} kbit/s); overhead {} bytes, where asked.",
            mbit(action.rate_bps as f64),
            kbit(action),
            action.overhead_bytes
        ),
        "The menus or commands of your router: --router NAME, such as openwrt.".to_owned(),
    ]
}
