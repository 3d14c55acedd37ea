//! TCP's buffers for long paths.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::formula::{
    RECEIVE_WINDOW_RATIO, SEND_WINDOW_RATIO, bandwidth_delay_product, buffer_for,
    window_limited_rate,
};
use plumb_model::units::si;

use super::judged::{Facts, Judged, fine, found, unknown};

/// The round trip that a long path is judged by: across a continent and back, or an ocean.
const LONG_RTT_S: f64 = 0.1;

/// The rate that is asked of a host whose links report none.
const USUAL_BPS: f64 = 1e9;

/// A rate above which no single connection is expected to run.
const MOST_BPS: f64 = 10e9;

#[derive(Clone, Copy)]
pub(crate) enum Side {
    Send,
    Receive,
}

/// The rate in bit/s and the round trip in seconds that a machine's buffers are judged by: its fastest
/// link over a long path.
pub(super) fn long_path(facts: &Facts<'_>) -> (f64, f64) {
    let rate = facts
        .hardware()
        .filter_map(|(_, interface)| interface.link.as_ref()?.speed_bps)
        .reduce(f64::max)
        .map_or(USUAL_BPS, |bps| bps.min(MOST_BPS));
    (rate, LONG_RTT_S)
}

/// Whether one connection can fill this host's fastest link over a long path.
pub(crate) fn buffer(facts: &Facts<'_>, side: Side) -> Judged {
    let (key, name, cause, usable, verb) = match side {
        Side::Send => (
            "net.ipv4.tcp_wmem",
            "send buffer",
            Cause::SendBufferSmall,
            SEND_WINDOW_RATIO,
            "send",
        ),
        Side::Receive => (
            "net.ipv4.tcp_rmem",
            "receive buffer",
            Cause::ReceiveBufferSmall,
            RECEIVE_WINDOW_RATIO,
            "receive",
        ),
    };
    let numbers = facts.host.sysctl_numbers(key);
    let Some([least, initial, most]) = numbers.as_deref().and_then(|n| n.first_chunk()).copied()
    else {
        return unknown(name, format!("{key} could not be read"));
    };
    let (rate, _) = long_path(facts);
    let window = most.max(0) as f64 * usable;
    let can = window_limited_rate(window, LONG_RTT_S);
    if can >= rate {
        return fine(
            name,
            format!("over 100 ms one connection can {verb} {}", si(can, "bit/s")),
        );
    }
    let needed = bandwidth_delay_product(rate, LONG_RTT_S);
    let proposal = buffer_for(needed);
    found(
        name,
        cause,
        Severity::Info,
        &[PathKind::LongPath],
        format!("Over 100 ms one connection can {verb} about {} with the largest {name} of {}; {} would take more.", si(can, "bit/s"), si(most as f64, "B"), si(rate, "bit/s")),
    )
    .sure(0.9)
    .evidence(facts.evidence(format!("sysctls[{}].value", facts.place_of(key)), most as f64, &format!("largest {name}, against what {} over 100 ms takes in flight", si(rate, "bit/s")), needed))
    .sysctl(
        format!("Let the {name} grow to what {} over 100 ms takes; it grows only as far as a connection needs. It does nothing on a LAN.", si(rate, "bit/s")),
        key,
        format!("{least} {initial} {proposal}"),
        "One connection can fill the link over 100 ms, if the path and the other end can.",
    )
    .page("tcp-buffers")
    .done()
}
