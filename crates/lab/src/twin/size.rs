//! How large packets may be, and whether senders learn of it.

use plumb_model::direction::OneDirection;
use plumb_model::finding::{Cause, Place};

use super::draft::{Draft, Link, Order};
use super::measured::Measured;

/// What each interface of the twin takes, in bytes: Ethernet's.
const USUAL_BYTES: u32 = 1500;

/// IPv6 passes no smaller links (RFC 8200, section 5), in bytes.
const LEAST_BYTES: u32 = 1280;

/// Headers of IPv4 and TCP, in bytes.
const HEADERS_BYTES: f64 = 40.0;

/// An IPv4 packet is no larger (RFC 791, section 3.1), in bytes.
const MOST_BYTES: f64 = 65_535.0;

pub(super) fn put(measured: &Measured<'_>, draft: &mut Draft) {
    clamped(measured, draft);
    let sizes = measured.run.measurements.iter();
    let Some(mtu) = sizes.rev().find_map(|m| m.outcome.mtu()) else {
        if measured.finding(Cause::PmtudBlackHole).is_some() {
            draft.unknown("how large packets may be: none was searched for, and large ones vanish (plumb mtu)");
        }
        return;
    };
    let hole = measured.finding(Cause::PmtudBlackHole);
    let silent = hole.is_some();
    let mut any = false;
    for (direction, bytes) in [
        (OneDirection::Up, mtu.path_mtu_bytes),
        (
            OneDirection::Down,
            mtu.way_back_bytes
                .or(mtu.path_mtu_bytes.filter(|_| !silent)),
        ),
    ] {
        let Some(bytes) = bytes.filter(|bytes| *bytes < USUAL_BYTES && !mtu.path_mtu_at_least)
        else {
            continue;
        };
        if bytes < LEAST_BYTES {
            draft.unknown(format!(
                "why only packets of {bytes} bytes pass: the twin has IPv6, which needs {LEAST_BYTES}"
            ));
        }
        let icmp = match silent {
            true => ", icmp = false, fragment = false",
            false => "",
        };
        let toml = format!(
            "{{ type = \"mtu\", bytes = {}{icmp} }}",
            bytes.max(LEAST_BYTES)
        );
        let why = match silent {
            true => "Larger packets vanish without a message.",
            false => "Larger packets do not pass, and their senders learn of it.",
        };
        draft.put(Link::Line, direction, Order::Size, toml, why);
        any = true;
    }
    if silent && !any {
        let place = hole.map_or(Place::Path, |hole| hole.place);
        draft.unknown(format!(
            "from which size on packets vanish ({}): the twin lets all pass",
            place.name()
        ));
    }
}

/// TCP's segments as small as those that the load sent.
fn clamped(measured: &Measured<'_>, draft: &mut Draft) {
    if measured.finding(Cause::MssClamped).is_none() {
        return;
    }
    for directed in measured.directions() {
        let bytes = (directed.packet_bytes - HEADERS_BYTES).clamp(1.0, MOST_BYTES - HEADERS_BYTES);
        let toml = format!("{{ type = \"mss_clamp\", bytes = {bytes:.0} }}");
        // The segment size that a host announces bounds what comes towards it.
        let towards = match directed.direction {
            OneDirection::Up => OneDirection::Down,
            OneDirection::Down => OneDirection::Up,
        };
        let why = "TCP's segments were no larger, though more passes.";
        draft.put(Link::Line, towards, Order::Middlebox, toml, why);
    }
}
