//! Memory of sockets: what was thrown away for want of it.

use plumb_model::finding::{Cause, PathKind, Severity};

use super::{ENOUGH, Facts, Judged, events, fine, found, one_in, ratio, unknown};

/// One segment in a million.
const DROP_RATIO: f64 = 1e-6;

/// Fragmented packets that could not be put together, of those that were tried.
const REASSEMBLY_RATIO: f64 = 0.01;

pub(super) fn examine(facts: &Facts<'_>) -> Vec<Judged> {
    vec![pressure(facts), pruned(facts), fragments(facts)]
}

fn pressure(facts: &Facts<'_>) -> Judged {
    let subject = "memory of TCP";
    let counts =
        ["TcpExtTCPMemoryPressures", "TcpExtTCPAbortOnMemory"].map(|name| events(facts.host, name));
    let [Some(pressures), Some(aborts)] = counts else {
        return unknown(subject, "the counters of TCP could not be read");
    };
    if pressures == 0 && aborts == 0 {
        return fine(subject, "TCP never had to save memory");
    }
    let severity = if aborts > 0 {
        Severity::Critical
    } else {
        Severity::Warning
    };
    found(
        subject,
        Cause::MemoryPressure,
        severity,
        &[PathKind::BusyServer, PathKind::LongPath],
        format!("TCP had to save memory {pressures} times, and ended {aborts} connections for want of it."),
    )
    .evidence(facts.counted("TcpExtTCPMemoryPressures", "times that all of TCP reached the middle value of tcp_mem", 0.0))
    .evidence(facts.counted("TcpExtTCPAbortOnMemory", "connections ended for want of memory or of room for orphans", 0.0))
    .advice(
        "Raise net.ipv4.tcp_mem (in pages) if the machine has memory to spare, or lower the largest buffers; look for programs that do not read.",
        "Both counters stop.",
    )
    .page("tcp-counters")
    .done()
}

fn pruned(facts: &Facts<'_>) -> Judged {
    let subject = "received segments thrown away";
    let names = [
        "TcpExtRcvPruned",
        "TcpExtOfoPruned",
        "TcpExtTCPRcvQDrop",
        "TcpExtTCPBacklogDrop",
        "TcpExtTCPOFODrop",
    ];
    let dropped: u64 = names
        .iter()
        .filter_map(|name| events(facts.host, name))
        .sum();
    let Some(received) = events(facts.host, "TcpInSegs") else {
        return unknown(subject, "the counters of TCP could not be read");
    };
    let share = ratio(dropped, received);
    if share < DROP_RATIO {
        return fine(
            subject,
            format!("{dropped} of {received} received segments found no room"),
        );
    }
    let worst = names
        .iter()
        .max_by_key(|name| events(facts.host, name))
        .copied()
        .unwrap_or("TcpExtRcvPruned");
    found(
        subject,
        Cause::ReceiveBufferPruned,
        Severity::Warning,
        &[PathKind::LongPath, PathKind::BusyServer],
        format!("{dropped} received segments were thrown away for want of buffer, and had to be retransmitted: {}.", one_in(share)),
    )
    .evidence(facts.counted(worst, "largest counter of its kind; `plumb explain tcp-counters`", 0.0))
    .advice(
        "A program reads too slowly, or sets its own receive buffer too small: `plumb host` shows who has data unread.",
        "The counters stop.",
    )
    .page("tcp-counters")
    .done()
}

fn fragments(facts: &Facts<'_>) -> Judged {
    let subject = "fragments";
    let (Some(failed), Some(fragments), Some(whole)) = (
        events(facts.host, "IpReasmFails"),
        events(facts.host, "IpReasmReqds"),
        events(facts.host, "IpReasmOKs"),
    ) else {
        return unknown(subject, "the counters of IP could not be read");
    };
    let share = ratio(failed, failed.saturating_add(whole));
    if share < REASSEMBLY_RATIO || failed < ENOUGH {
        return fine(
            subject,
            match fragments {
                0 => "no fragments were received".to_owned(),
                some => {
                    format!("{some} fragments were received, and {failed} packets not reassembled")
                }
            },
        );
    }
    found(
        subject,
        Cause::FragmentsLost,
        Severity::Warning,
        &[PathKind::LongPath, PathKind::Router],
        format!("{failed} packets could not be reassembled from their fragments, {:.0} % of those that arrived in fragments.", share * 100.0),
    )
    .place(plumb_model::finding::Place::Downlink)
    .sure(0.8)
    .evidence(facts.counted("IpReasmFails", "packets given up, compared with 1 % of those that were tried", (failed + whole) as f64 * REASSEMBLY_RATIO))
    .evidence(facts.counted("IpReasmTimeout", "of those, the ones that waited too long for a fragment", 0.0))
    .advice(
        "Let senders use smaller datagrams: one lost fragment loses the whole, and firewalls drop what has no ports. If IpReasmTimeout is much smaller, memory ran out: net.ipv4.ipfrag_high_thresh.",
        "The counter stops.",
    )
    .page("tcp-counters")
    .done()
}
