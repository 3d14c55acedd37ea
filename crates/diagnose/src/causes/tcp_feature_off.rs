//! A part of TCP that every path needs is switched off.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, fine, found, unknown};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a connection opened with it switched on carries more",
    needs: &[Need::Machine],
    audits: &[(Subject::TcpFeatures, audit)],
    ..Entry::PLAIN
};

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

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let features = FEATURES.iter();
    let judged = features.map(|feature| self::feature(facts, *feature));
    judged.chain([discovery(facts)]).collect()
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
            format!("sysctls[{}].value", facts.place_of(key)),
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
        .evidence(facts.evidence(format!("sysctls[{}].value", facts.place_of(key)), value.parse().unwrap_or(1.0), "0 leaves discovery on", 0.0))
        .sysctl("Leave it on, and let TCP probe where ICMP is filtered (net.ipv4.tcp_mtu_probing = 1, RFC 4821).", key, "0".to_owned(), "No fragments of TCP.")
        .done(),
    }
}
