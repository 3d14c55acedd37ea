//! Datagrams that found no room.

use plumb_model::finding::{Cause, PathKind, Severity};

use super::{ENOUGH, Facts, Judged, events, fine, found, one_in, ratio, unknown};

/// One datagram in a hundred thousand: a call or a QUIC connection notices more.
const DROP_RATIO: f64 = 1e-5;

/// What receivers of QUIC and video ask for, in bytes (quic-go and Chromium: 7.5 MB and 2 MB).
const WANTED_BYTES: i64 = 7_864_320;

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    let subject = "UDP receive buffers";
    let v4 = events(facts.host, "UdpRcvbufErrors");
    let v6 = events(facts.host, "Udp6RcvbufErrors");
    let Some(v4) = v4 else {
        return vec![unknown(subject, "the counters of UDP could not be read")];
    };
    let received: u64 = ["UdpInDatagrams", "Udp6InDatagrams"]
        .into_iter()
        .filter_map(|name| events(facts.host, name))
        .sum();
    let dropped = v4.saturating_add(v6.unwrap_or_default());
    let share = ratio(dropped, received.saturating_add(dropped));
    if share < DROP_RATIO || dropped < ENOUGH {
        return vec![fine(
            subject,
            format!("{dropped} of {received} datagrams found a full receive buffer"),
        )];
    }
    let key = "net.core.rmem_max";
    let limit = facts
        .host
        .sysctl_numbers(key)
        .and_then(|n| n.first().copied());
    let draft = found(
        subject,
        Cause::UdpBufferSmall,
        Severity::Warning,
        &PathKind::ALL,
        format!("{dropped} datagrams were dropped because a program's receive buffer was full: {} since boot.", one_in(share)),
    )
    .evidence(facts.counted("UdpRcvbufErrors", "datagrams over IPv4 dropped at a full receive buffer", 0.0));
    vec![match limit {
        Some(limit) if limit < WANTED_BYTES => draft.sysctl(
            "Let programs ask for larger buffers. A program that asks for none gets net.core.rmem_default, and one that is too slow loses whatever the buffer.",
            key,
            WANTED_BYTES.to_string(),
            "The counter stops, once the program is started again and asks for more.",
        ),
        _ => draft.advice("The limit is high enough: the program must ask for a larger buffer (SO_RCVBUF) or read faster.", "The counter stops."),
    }
    .page("udp")
    .done()]
}
