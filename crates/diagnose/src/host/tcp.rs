//! TCP's settings for long paths, and what its counters say of loss.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::formula::{
    RECEIVE_WINDOW_RATIO, SEND_WINDOW_RATIO, bandwidth_delay_product, buffer_for,
    window_limited_rate,
};
use plumb_model::units::si;

use super::{Facts, Judged, events, fine, found, unknown};

/// Whether a variable is judged here, so that no other rule does it again.
pub(super) fn judges(key: &str) -> bool {
    key == DISCOVERY || FEATURES.iter().any(|(feature, ..)| *feature == key)
}

/// Path MTU discovery of IPv4.
const DISCOVERY: &str = "net.ipv4.ip_no_pmtu_disc";

/// What no path should miss: variable, value when on, what it is, without it.
const FEATURES: [(&str, &str, &str, Severity); 4] = [
    (
        "net.ipv4.tcp_window_scaling",
        "Window scaling",
        "windows end at 64 KiB: 5.2 Mbit/s over 100 ms (RFC 7323)",
        Severity::Critical,
    ),
    (
        "net.ipv4.tcp_sack",
        "Selective acknowledgement",
        "one lost segment is repaired in a round trip, and each further one takes another (RFC 2018)",
        Severity::Warning,
    ),
    (
        "net.ipv4.tcp_timestamps",
        "Timestamps",
        "round trips are measured less often, sequence numbers may wrap unseen at high rates, and tcp_tw_reuse cannot work (RFC 7323)",
        Severity::Warning,
    ),
    (
        "net.ipv4.tcp_moderate_rcvbuf",
        "Autotuning of the receive buffer",
        "every connection keeps its initial buffer",
        Severity::Warning,
    ),
];

/// The round trip that a long path is judged by: across a continent and back, or an ocean.
const LONG_RTT_S: f64 = 0.1;

/// The rate that is asked of a host whose links report none.
const USUAL_BPS: f64 = 1e9;

/// A rate above which no single connection is expected to run.
const MOST_BPS: f64 = 10e9;

/// Segments sent before their share retransmitted says anything.
const ENOUGH_SENT: u64 = 10_000;

/// Shares retransmitted that are worth knowing, and worth fixing.
const RETRANSMIT_INFO: f64 = 0.01;
const RETRANSMIT_WARNING: f64 = 0.03;

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    let mut judged: Vec<Judged> = FEATURES
        .iter()
        .map(|feature| self::feature(facts, *feature))
        .collect();
    judged.push(discovery(facts));
    judged.extend(
        [Side::Send, Side::Receive]
            .into_iter()
            .map(|side| buffer(facts, side)),
    );
    judged.push(retransmits(facts));
    judged
}

fn place(facts: &Facts<'_>, key: &str) -> usize {
    facts
        .host
        .sysctls
        .iter()
        .position(|s| s.key == key)
        .unwrap_or_default()
}

fn feature(
    facts: &Facts<'_>,
    (key, name, without, severity): (&str, &str, &str, Severity),
) -> Judged {
    match facts.host.sysctl(key) {
        None => unknown(name, format!("{key} could not be read")),
        Some("0") => found(
            name,
            Cause::TcpFeatureOff,
            severity,
            &[PathKind::LongPath, PathKind::BusyServer],
            format!("{name} is switched off ({key} = 0): {without}."),
        )
        .evidence(facts.evidence(
            format!("sysctls[{}].value", place(facts, key)),
            0.0,
            "on (1) or off (0)",
            1.0,
        ))
        .sysctl(
            "Switch it on again; advice to switch it off is from before 2005.",
            key,
            "1".to_owned(),
            "New connections use it.",
        )
        .page("tcp-buffers")
        .done(),
        Some(_) => fine(name, "on"),
    }
}

fn discovery(facts: &Facts<'_>) -> Judged {
    let key = DISCOVERY;
    match facts.host.sysctl(key) {
        None => unknown("path MTU discovery", format!("{key} could not be read")),
        Some("0") => fine("path MTU discovery", "on"),
        Some(value) => found(
            "path MTU discovery",
            Cause::TcpFeatureOff,
            Severity::Warning,
            &[PathKind::LongPath],
            format!("Path MTU discovery is switched off for IPv4 ({key} = {value}): packets may be fragmented on the path, which costs loss and processor time."),
        )
        .evidence(facts.evidence(format!("sysctls[{}].value", place(facts, key)), value.parse().unwrap_or(1.0), "0 leaves discovery on", 0.0))
        .sysctl("Leave it on, and let TCP probe where ICMP is filtered (net.ipv4.tcp_mtu_probing = 1, RFC 4821).", key, "0".to_owned(), "No fragments of TCP.")
        .done(),
    }
}

#[derive(Clone, Copy)]
enum Side {
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
fn buffer(facts: &Facts<'_>, side: Side) -> Judged {
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
    .evidence(facts.evidence(format!("sysctls[{}].value", place(facts, key)), most as f64, &format!("largest {name}, against what {} over 100 ms takes in flight", si(rate, "bit/s")), needed))
    .sysctl(
        format!("Let the {name} grow to what {} over 100 ms takes; it grows only as far as a connection needs. It does nothing on a LAN.", si(rate, "bit/s")),
        key,
        format!("{least} {initial} {proposal}"),
        "One connection can fill the link over 100 ms, if the path and the other end can.",
    )
    .page("tcp-buffers")
    .done()
}

fn retransmits(facts: &Facts<'_>) -> Judged {
    let subject = "segments retransmitted";
    let (Some(again), Some(sent)) = (
        events(facts.host, "TcpRetransSegs"),
        events(facts.host, "TcpOutSegs"),
    ) else {
        return unknown(subject, "the counters of TCP could not be read");
    };
    if sent < ENOUGH_SENT {
        return fine(
            subject,
            format!("{again} of {sent} segments were retransmitted, too few to judge"),
        );
    }
    let share = again as f64 / sent as f64;
    if share < RETRANSMIT_INFO {
        return fine(
            subject,
            format!("{:.2} % of all segments were retransmitted", share * 100.0),
        );
    }
    found(
        subject,
        Cause::RetransmitsHigh,
        if share < RETRANSMIT_WARNING { Severity::Info } else { Severity::Warning },
        &[PathKind::LongPath, PathKind::BusyServer],
        format!("{:.1} % of all segments that this host sent since it began were retransmitted.", share * 100.0),
    )
    .place(Place::Uplink)
    .sure(0.6)
    .evidence(facts.counted("TcpRetransSegs", "segments retransmitted, against 1 % of those sent", sent as f64 * RETRANSMIT_INFO))
    .evidence(facts.counted("TcpExtTCPTimeouts", "of the losses, those that cost a timeout", 0.0))
    .advice(
        "Find the path that loses: `plumb host` lists connections with their retransmissions, `plumb check HOST` measures one path. The count is of all paths together.",
        "A smaller share in `plumb host --live`.",
    )
    .page("tcp-counters")
    .done()
}
