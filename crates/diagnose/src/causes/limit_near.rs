//! A table or a limit of this machine is nearly full.

use plumb_model::finding::{Cause, PathKind, Severity};
use plumb_model::need::Need;

use crate::entry::{Entry, Family};
use crate::host::{Facts, Judged, Subject, events, fine, found};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a higher limit has room",
    needs: &[Need::Machine],
    audits: &[(Subject::Limits, audit)],
    ..Entry::PLAIN
};

/// Share of a limit from which on it is near.
const NEAR_RATIO: f64 = 0.8;

/// Files that a server with many connections needs to be allowed; each connection is one.
const SERVER_FILES: u64 = 4096;

fn audit(facts: &Facts<'_>) -> Vec<Judged> {
    let mut judged = Vec::new();
    let host = facts.host;
    if let (Some(open), Some(most)) = (host.files.open, host.files.open_max) {
        judged.push(near(
            facts,
            "open files",
            "files.open",
            open,
            most,
            "fs.file-max",
            &[PathKind::BusyServer],
        ));
    }
    for (place, table) in host.neighbours.iter().enumerate() {
        if let Some(most) = table.max_entries {
            let key = format!("net.ipv{}.neigh.default.gc_thresh3", table.ip_version);
            let subject = format!("neighbour table of IPv{}", table.ip_version);
            judged.push(near(
                facts,
                &subject,
                &format!("neighbours[{place}].entries"),
                table.entries,
                most,
                &key,
                &[PathKind::Lan, PathKind::Router],
            ));
        }
    }
    let number = |key: &str| {
        host.sysctl_numbers(key)
            .and_then(|n| u64::try_from(*n.first()?).ok())
    };
    if let (Some(count), Some(most)) = (
        number("net.netfilter.nf_conntrack_count"),
        number("net.netfilter.nf_conntrack_max"),
    ) {
        let place = host
            .sysctls
            .iter()
            .position(|s| s.key == "net.netfilter.nf_conntrack_count")
            .unwrap_or_default();
        judged.push(near(
            facts,
            "connection tracking",
            &format!("sysctls[{place}].value"),
            count,
            most,
            "net.netfilter.nf_conntrack_max",
            &[PathKind::Router, PathKind::BusyServer],
        ));
    }
    judged.extend(time_wait(facts));
    judged.extend(descriptors(facts));
    judged
}

fn near(
    facts: &Facts<'_>,
    subject: &str,
    field: &str,
    count: u64,
    most: u64,
    key: &str,
    matters_for: &[PathKind],
) -> Judged {
    let limit = most as f64 * NEAR_RATIO;
    if (count as f64) < limit || most == 0 {
        return fine(subject, format!("{count} of {most}"));
    }
    let severity = if count >= most {
        Severity::Critical
    } else {
        Severity::Warning
    };
    found(
        subject,
        Cause::LimitNear,
        severity,
        matters_for,
        format!("{count} of {most} are used ({subject}); beyond that, new ones are refused."),
    )
    .evidence(facts.evidence(
        field,
        count as f64,
        "in use now, compared with four fifths of the most",
        limit,
    ))
    .sysctl(
        "Raise the limit, once it is known who needs so many.",
        key,
        most.saturating_mul(4).min(i64::MAX as u64).to_string(),
        "Room again.",
    )
    .done()
}

fn time_wait(facts: &Facts<'_>) -> Option<Judged> {
    let overflows = events(facts.host, "TcpExtTCPTimeWaitOverflow")?;
    let subject = "TIME_WAIT";
    if overflows == 0 {
        return Some(fine(subject, "no TIME_WAIT connection was cut short"));
    }
    Some(
        found(
            subject,
            Cause::LimitNear,
            Severity::Info,
            &[PathKind::BusyServer],
            format!("{overflows} TIME_WAIT connections were cut short, because net.ipv4.tcp_max_tw_buckets was reached."),
        )
        .evidence(facts.counted("TcpExtTCPTimeWaitOverflow", "connections dropped from TIME_WAIT", 0.0))
        .advice(
            "Raise net.ipv4.tcp_max_tw_buckets if there is memory; better, keep connections open for several requests.",
            "The counter stops.",
        )
        .done(),
    )
}

fn descriptors(facts: &Facts<'_>) -> Option<Judged> {
    let most = facts.host.files.per_process?;
    let subject = "files a program";
    let hard = facts.host.files.per_process_max.unwrap_or(most);
    if hard >= SERVER_FILES {
        return Some(fine(
            subject,
            format!("a program may open {most} files, and raise that to {hard} itself"),
        ));
    }
    Some(
        found(
            subject,
            Cause::LimitNear,
            Severity::Info,
            &[PathKind::BusyServer],
            format!("A program started from here may open {hard} files at most, and every connection is one."),
        )
        .evidence(facts.evidence("files.per_process_max", hard as f64, "RLIMIT_NOFILE, as far as it may be raised", SERVER_FILES as f64))
        .advice("Raise it where the server is started: LimitNOFILE= of its systemd unit, or limits.conf.", "Room for more connections.")
        .done(),
    )
}
