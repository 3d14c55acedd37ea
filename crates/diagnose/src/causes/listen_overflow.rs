//! Connections are refused because a queue of them is full.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, events, fine, found, unknown};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a longer queue, or a faster server, leaves the counter of overflows still",
    needs: &[Need::CounterRates],
    audits: &[(Subject::ListeningQueues, audit)],
    ..Entry::PLAIN
};

/// The kernel's default of net.core.somaxconn since Linux 5.4.
const USUAL_BACKLOG: i64 = 4096;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let subject = "listening queues";
    let Some(overflows) = events(facts.host, "TcpExtListenOverflows") else {
        return vec![unknown(subject, "the counters of TCP could not be read")];
    };
    let listeners = &facts.host.sockets.listeners;
    let full = listeners
        .iter()
        .position(|l| l.backlog > 0 && l.waiting >= l.backlog);
    if overflows == 0 && full.is_none() {
        return vec![fine(
            subject,
            match listeners.len() {
                0 => "no program is listening".to_owned(),
                1 => "the one listening socket never had a full queue".to_owned(),
                several => format!("none of {several} listening sockets had a full queue"),
            },
        )];
    }
    let now = full.and_then(|place| Some((place, listeners.get(place)?)));
    let summary = match now {
        Some((_, listener)) => format!(
            "{}{} has {} connections waiting of {} that may: more are refused until it accepts some.",
            listener.local,
            listener
                .owner
                .as_ref()
                .map_or_else(String::new, |o| format!(
                    " ({}, process {})",
                    o.program, o.pid
                )),
            listener.waiting,
            listener.backlog
        ),
        None => {
            format!("{overflows} connections were refused because a listener's queue was full.")
        }
    };
    let mut draft = found(
        subject,
        Cause::ListenOverflow,
        if now.is_some() {
            Severity::Critical
        } else {
            Severity::Warning
        },
        &[PathKind::BusyServer],
        summary,
    )
    .evidence(facts.counted(
        "TcpExtListenOverflows",
        "connections refused at a full queue since the start",
        0.0,
    ));
    if let Some((place, listener)) = now {
        draft = draft.evidence(facts.evidence(
            format!("sockets.listeners[{place}].waiting"),
            listener.waiting as f64,
            "connections that wait, against the most that may",
            listener.backlog as f64,
        ));
    }
    let key = "net.core.somaxconn";
    let limit = facts
        .host
        .sysctl_numbers(key)
        .and_then(|n| n.first().copied());
    let judged = match limit {
        Some(limit) if limit < USUAL_BACKLOG => draft.sysctl(
            "Let queues be longer; the program must ask for it too (listen(2)), and be started again.",
            key,
            USUAL_BACKLOG.to_string(),
            "The counter stops, if the program accepts as fast as connections come on average.",
        ),
        _ => draft.advice(
            "The limit is not the kernel's: the program asks for a short queue, or accepts too slowly.",
            "The counter stops.",
        ),
    };
    vec![judged.done()]
}
