//! UDP sockets drop datagrams for want of buffer.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::host::{ENOUGH, Facts, Judged, Subject, events, fine, found, one_in, ratio, unknown};
use crate::loss::LOSS_WARNING;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a larger socket buffer leaves the kernel's counter of drops still",
    needs: &[Need::CounterRates],
    resembles: &[(
        Cause::PathLoss,
        "there the kernel's counter of drops stands still",
    )],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            let drops = [
                "UdpRcvbufErrors",
                "Udp6RcvbufErrors",
                "UdpMemErrors",
                "Udp6MemErrors",
            ];
            let received = counted.sum(["UdpInDatagrams", "Udp6InDatagrams"]);
            vec![Dropped::of(counted, drops.map(str::to_owned), received)]
        })
    },
    audits: &[(Subject::Datagrams, audit)],
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check.
const SAID: Said = Said {
    cause: Cause::UdpBufferSmall,
    place: Place::ThisHost,
    what: "had no room in the receive buffers of UDP sockets for",
    warning_ratio: LOSS_WARNING,
    fix: "Let programs ask for larger buffers (net.core.rmem_max), give those that ask for none a larger one (net.core.rmem_default), and see which one reads too slowly: `ss -uam` shows the drops of each socket.",
    kb: "udp",
};

/// One datagram in a hundred thousand: a call or a QUIC connection notices more.
const DROP_RATIO: f64 = 1e-5;

/// What receivers of QUIC and video ask for, in bytes (quic-go and Chromium: 7.5 MB and 2 MB).
const WANTED_BYTES: i64 = 7_864_320;

/// What a program gets that asks for no buffer, in bytes: five times the kernel's own 212,992, so that a burst of 500 datagrams
/// of 1500 bytes, which count twice, fits.
const DEFAULT_BYTES: i64 = 1_048_576;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
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
    let limit = |key: &str| {
        let numbers = facts.host.sysctl_numbers(key);
        numbers.and_then(|n| n.first().copied())
    };
    let draft = found(
        subject,
        Cause::UdpBufferSmall,
        Severity::Warning,
        &PathKind::ALL,
        format!("{dropped} datagrams were dropped because a program's receive buffer was full: {} since boot.", one_in(share)),
    )
    .evidence(facts.counted("UdpRcvbufErrors", "datagrams over IPv4 dropped at a full receive buffer", 0.0));
    const MAX: &str = "net.core.rmem_max";
    const DEFAULT: &str = "net.core.rmem_default";
    let draft = match limit(MAX) {
        Some(limit) if limit < WANTED_BYTES => draft.sysctl(
            "Let programs ask for larger buffers. One that is too slow loses datagrams whatever the buffer.",
            MAX,
            WANTED_BYTES.to_string(),
            "The counter stops, once the program is started again and asks for more.",
        ),
        _ => draft.advice("The limit is high enough: the program must ask for a larger buffer (SO_RCVBUF) or read faster.", "The counter stops."),
    };
    let draft = match limit(DEFAULT) {
        Some(limit) if limit < DEFAULT_BYTES => draft.sysctl(
            "Give programs that ask for no buffer a larger one: most ask for none.",
            DEFAULT,
            DEFAULT_BYTES.to_string(),
            "The counter stops, once the program is started again.",
        ),
        _ => draft,
    };
    vec![draft.page("udp").done()]
}
