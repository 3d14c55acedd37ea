//! The kernel's memory for sockets runs out.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, events, fine, found, unknown};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a higher limit, or fewer connections, leaves the counter still",
    needs: &[Need::CounterRates],
    audits: &[(Subject::TcpMemory, audit)],
    ..Entry::PLAIN
};

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    vec![judge(facts)]
}

fn judge(facts: &Facts<'_>) -> Judged {
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
