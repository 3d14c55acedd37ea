//! Received segments are thrown away for want of buffer.

use plumb_model::finding::{Cause, PathKind, Place, Severity};
use plumb_model::need::Need;

use crate::dropped_here::{self, Dropped, Said};
use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, events, fine, found, one_in, ratio, unknown};
use crate::loss::LOSS_WARNING;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a larger receive buffer, or a reader that keeps up, leaves the counter still",
    needs: &[Need::CounterRates],
    resembles: &[(Cause::PathLoss, "there nothing that arrived is thrown away")],
    examine: |case| {
        dropped_here::worst(case, &SAID, |counted| {
            let drops = [
                "TcpExtRcvPruned",
                "TcpExtOfoPruned",
                "TcpExtTCPRcvQDrop",
                "TcpExtTCPBacklogDrop",
                "TcpExtTCPOFODrop",
            ];
            vec![Dropped::of(
                counted,
                drops.map(str::to_owned),
                counted.grown("TcpInSegs"),
            )]
        })
    },
    audits: &[(Subject::ReceivedSegments, audit)],
    explains: dropped_here::explains,
    ..Entry::PLAIN
};

/// Counted beside a check.
const SAID: Said = Said {
    cause: Cause::ReceiveBufferPruned,
    place: Place::ThisHost,
    what: "had no room in the receive buffers of TCP for",
    warning_ratio: LOSS_WARNING,
    fix: "A program reads too slowly, or sets its own receive buffer too small: `plumb host` shows which has data unread.",
    kb: "tcp-counters",
};

/// One segment in a million.
const DROP_RATIO: f64 = 1e-6;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    vec![judge(facts)]
}

fn judge(facts: &Facts<'_>) -> Judged {
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
