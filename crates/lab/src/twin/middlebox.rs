//! Boxes that change or drop packets by what they carry, as findings name them.

use plumb_model::direction::OneDirection;
use plumb_model::finding::Cause;

use super::draft::{Draft, Link, Order};
use super::measured::Measured;

/// What a cause puts into each direction of the line: up and down, as TOML.
const BOXES: [(Cause, &str, &str); 8] = [
    (Cause::WindowScalingStripped, WSCALE, WSCALE),
    (Cause::SackStripped, SACK, SACK),
    (Cause::TimestampsStripped, TIMESTAMPS, TIMESTAMPS),
    (Cause::EcnCleared, ECN, ECN),
    (Cause::Ect1Bleached, ECT1, ECT1),
    (Cause::EcnSynDropped, "{ type = \"ecn_syn_drop\" }", ""),
    (Cause::DscpChanged, DSCP, ""),
    (Cause::UdpBlocked, UDP, UDP),
];

const WSCALE: &str =
    "{ type = \"strip_tcp_options\", name = \"no-wscale\", options = [\"wscale\"] }";
const SACK: &str = "{ type = \"strip_tcp_options\", name = \"no-sack\", options = [\"sack\"] }";
const TIMESTAMPS: &str =
    "{ type = \"strip_tcp_options\", name = \"no-timestamps\", options = [\"timestamps\"] }";
const ECN: &str = "{ type = \"ecn_bleach\" }";
const ECT1: &str = "{ type = \"ecn_bleach\", name = \"ect1\", only = \"ect1\" }";
const DSCP: &str = "{ type = \"dscp_bleach\" }";
/// Every datagram is larger than a bucket of one byte.
const UDP: &str =
    "{ type = \"policer\", name = \"no-udp\", rate = \"8bit\", burst = \"1B\", match = \"udp\" }";

pub(super) fn put(measured: &Measured<'_>, draft: &mut Draft) {
    for (cause, up, down) in BOXES {
        let Some(found) = measured.finding(cause) else {
            continue;
        };
        for (direction, toml) in [(OneDirection::Up, up), (OneDirection::Down, down)] {
            if !toml.is_empty() {
                let why = format!("Finding {}.", found.cause.name());
                draft.put(
                    Link::Line,
                    direction,
                    Order::Middlebox,
                    toml.to_owned(),
                    why,
                );
            }
        }
    }
    if measured.finding(Cause::DscpChanged).is_some() {
        draft.unknown("to which codepoint the path sets the DSCP: 0 here");
    }
    if measured.finding(Cause::EcnCleared).is_some() {
        draft.unknown("in which direction the ECN field is cleared: in both here");
    }
}
