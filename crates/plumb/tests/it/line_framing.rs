//! `plumb shape overhead` over lines whose framing is known.

use crate::common::network::Network;
use crate::common::side_by_side;
use plumb_model::results::Outcome;
use plumb_model::results::shaping::FramingResult;

/// What the floods up a line of that framing, of 2 Mbit/s, show: a faster one passes more small packets than a busy machine sends.
fn found(framing: &str) -> FramingResult {
    let delay = r#"{ type = "delay", delay = "5ms" }"#;
    let shaper = format!(
        r#"{{ type = "shaper", rate = "2mbit", framing = "{framing}", queue = {{ type = "fifo", limit = "32p" }} }}"#
    );
    let line = Network::served_line(&format!("{shaper}, {delay}"), delay);
    let checked = line.measured(&["shape", "overhead", "lo", "server", "--up"]);
    let mut measurements = checked.run.measurements.iter();
    let found = measurements.find_map(|m| match &m.outcome {
        Outcome::Framing(result) => Some(result.as_ref().clone()),
        _ => None,
    });
    found.expect("a result")
}

/// Floods of small packets in four laboratories at once are more than a machine carries beside other tests: the slow set
/// measures them, and `make test` floods lines in virtual time (`measure/src/shaping/overhead/tests.rs`).
pub(crate) fn floods_show_the_framing_of_a_line() {
    side_by_side(&[
        &|| shows("docsis"),
        &|| shows("ethernet"),
        &|| shows("pppoe-ptm"),
        &|| shows("pppoe-llcsnap"),
    ]);
}

fn shows(framing: &str) {
    let result = found(framing);
    assert_eq!(result.framing.as_deref(), Some(framing), "{result:#?}");
    let ratio = result.rate_bps.expect("a rate") / 2e6;
    assert!((0.98..1.02).contains(&ratio), "{result:#?}");
    assert_eq!(result.packets_per_s, None, "{result:#?}");
}
