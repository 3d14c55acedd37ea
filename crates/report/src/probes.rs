//! Names of rows of probes: by their protocol, and by what else distinguishes them from others of the same phase.

use plumb_model::context::Phase;
use plumb_model::protocol::Protocol;

/// Probes of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Probes<'a> {
    pub(crate) phase: Phase,
    pub(crate) protocol: Protocol,
    /// Whom they were sent to. None where it is the far end.
    pub(crate) to: Option<&'a str>,
    /// How many were sent. None where that is not counted.
    pub(crate) sent: Option<u64>,
}

/// A name for each: `icmp`, where there are several or it is to another host than the first `icmp 192.0.2.1`, and where several
/// are to one address `icmp 192.0.2.1, 10 probes`.
pub(crate) fn names(rows: &[Probes<'_>]) -> Vec<String> {
    let first = rows.iter().find_map(|row| row.to);
    let name = |row: &Probes<'_>| {
        let alike =
            |other: &&Probes<'_>| (other.phase, other.protocol) == (row.phase, row.protocol);
        let alike: Vec<_> = rows.iter().filter(alike).collect();
        let same = alike.iter().filter(|other| other.to == row.to).count();
        let to = row.to.filter(|to| alike.len() > 1 || Some(*to) != first);
        let sent = row.sent.filter(|_| same > 1);
        let mut name = row.protocol.name().to_owned();
        if let Some(to) = to {
            name = format!("{name} {to}");
        }
        if let Some(sent) = sent {
            name = format!("{name}, {sent} probes");
        }
        name
    };
    rows.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_rows_have_one_name() {
        let probes = |phase, to, sent| Probes {
            phase,
            protocol: Protocol::Icmp,
            to: Some(to),
            sent: Some(sent),
        };
        let rows = [
            probes(Phase::Idle, "10.0.1.2", 211),
            probes(Phase::Idle, "10.0.1.2", 10),
            probes(Phase::Idle, "fd00::2", 10),
            probes(Phase::After, "10.0.1.2", 101),
        ];
        assert_eq!(
            names(&rows),
            [
                "icmp 10.0.1.2, 211 probes",
                "icmp 10.0.1.2, 10 probes",
                "icmp fd00::2",
                "icmp"
            ]
        );
    }
}
