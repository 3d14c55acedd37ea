//! Why nothing could be measured.

use plumb_host::disk::DiskError;
use plumb_load::ClientError;
use plumb_model::protocol::Protocol;
use plumb_model::results::path::refusal;
use plumb_net::egress::source_towards;
use plumb_probe::ProbeError;
use plumb_probe::mtu::SearchError;
use plumb_probe::path::{Nowhere, OpenError, Target};

/// A measurement that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum MeasureError {
    /// The responder could not be reached, refused, or went away.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// Probes could not be sent.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A path could not be explored.
    #[error(transparent)]
    Path(#[from] OpenError),
    /// The sizes that a path takes could not be found.
    #[error(
        "cannot find how large packets to {name} may be: {source}; try again, or with more --tries and a longer --timeout"
    )]
    Mtu {
        /// As the user typed it.
        name: String,
        source: SearchError,
    },
    #[error(
        "nothing gets to {name}: {by} says that {why} ({mark}); check the address, that it is up, and the routes (plumb path shows them)"
    )]
    Nowhere {
        /// As the user typed it.
        name: String,
        by: String,
        why: &'static str,
        /// The same as traceroute's mark.
        mark: String,
    },
    /// The lines of a path could not be measured.
    #[error(
        "cannot measure what the lines to {name} carry: {source}; look at `ip route get` and the interface, then try again"
    )]
    Capacity {
        /// As the user typed it.
        name: String,
        source: std::io::Error,
    },
    #[error(
        "nothing came back from {name}: it does not answer {tried}; check the name, that it is up, and the firewalls on the path. {notes}"
    )]
    Silence {
        /// As the user typed it.
        name: String,
        tried: String,
        /// What else was seen.
        notes: String,
    },
    /// Without an answer, whatever was tried.
    #[error(
        "nothing came back from {name}.\nTried: {tried}.{seen}\nIt is down, the address is wrong, or a firewall drops what is sent to it.\nNext: `plumb path {name}` shows how far packets get, `plumb check --local` whether this machine's line is well."
    )]
    NobodyThere {
        /// As the user typed it.
        name: String,
        tried: String,
        /// What was seen meanwhile, behind a blank or empty.
        seen: String,
    },
    #[error("nothing was sent to {name}: {notes}")]
    NothingSent {
        /// As the user typed it.
        name: String,
        notes: String,
    },
    /// Nothing but errors came back.
    #[error("{tried} did not get to {name}: {notes}")]
    NotReached {
        /// As the user typed it.
        name: String,
        tried: String,
        /// What the errors said.
        notes: String,
    },
    /// The responder carries fewer streams.
    #[error(
        "{name}: the responder allows {allowed} streams at once, and this takes {wanted}: ask for fewer (--streams), or start it with --max-streams {wanted}"
    )]
    Streams {
        /// As the user typed it.
        name: String,
        /// Streams of the largest phase.
        wanted: u32,
        /// Streams that the responder allows.
        allowed: u32,
    },
    /// The responder allows shorter phases.
    #[error(
        "{name}: the responder allows phases of {allowed_s} s: ask for less (--duration), or start it with a larger --max-duration"
    )]
    Duration {
        /// As the user typed it.
        name: String,
        /// Longest phase that the responder allows.
        allowed_s: f64,
    },
    /// An end does not have the congestion control that was asked for.
    #[error(
        "{end} has no congestion control '{name}': it has {known}; load its module (modprobe tcp_{name}) or choose one of those"
    )]
    CongestionControl {
        /// As the user typed it.
        name: String,
        end: &'static str,
        known: String,
    },
    /// The far end went away, or silent, before all was measured.
    #[error("measured in part only: {why}")]
    InPart { why: String },
    /// A file system could not be timed.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The reverse path was asked for, and no responder reported it.
    #[error("the reverse path is unknown: {why}")]
    ReversePath { why: String },
    /// A setting could not be changed, or the rate with it not be measured.
    #[error(transparent)]
    Tuning(Box<dyn std::error::Error + Send + Sync>),
    /// The user stopped it.
    #[error("stopped before anything could be said")]
    Cancelled,
    /// Something that should always work did not.
    #[error("{what}: {source}")]
    Local {
        what: &'static str,
        source: std::io::Error,
    },
}

impl MeasureError {
    /// No host is at an address, as a router or this host reports.
    pub(crate) fn nowhere(target: &Target, nowhere: &Nowhere) -> Self {
        let own = source_towards(target.address, &target.outlet);
        let this_host = own.is_ok_and(|own| own == nowhere.from);
        Self::Nowhere {
            name: target.name.clone(),
            by: match this_host {
                true => "this host itself".to_owned(),
                false => format!("router {}", nowhere.from),
            },
            why: refusal(&nowhere.mark),
            mark: nowhere.mark.clone(),
        }
    }
}

/// What came of probes that nothing answered.
pub(crate) struct Unanswered<'a> {
    /// The far end, as the user typed it.
    pub(crate) name: String,
    /// What probes were made of.
    pub(crate) protocol: Protocol,
    /// How many left this host.
    pub(crate) sent: u64,
    /// Whether ICMP errors came back.
    pub(crate) errors: bool,
    /// What else was seen.
    pub(crate) notes: &'a [String],
}

impl From<Unanswered<'_>> for MeasureError {
    fn from(unanswered: Unanswered<'_>) -> Self {
        let Unanswered {
            name,
            protocol,
            sent,
            errors,
            notes,
        } = unanswered;
        let tried = format!("{} probes", protocol.name().to_uppercase());
        match (sent, errors) {
            (0, _) => Self::NothingSent {
                name,
                notes: notes.join("; "),
            },
            (_, true) => Self::NotReached {
                name,
                tried,
                notes: notes.join("; "),
            },
            (_, false) => Self::Silence {
                name,
                tried,
                notes: notes.join(" "),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_that_is_not_there_gets_four_short_lines() {
        let said = MeasureError::NobodyThere {
            name: "server.example".to_owned(),
            tried: "ICMP echo, TCP ports 7586 (plumb serve), 443 and 80".to_owned(),
            seen: String::new(),
        }
        .to_string();
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines.len(), 4, "{said}");
        // The longest fills two lines of a terminal.
        assert!(lines.iter().all(|line| line.len() <= 2 * 79), "{said}");
    }

    #[test]
    fn what_is_known_of_probes_that_nothing_answered_is_said_and_no_more() {
        let notes = ["why".to_owned()];
        let said = |sent, errors| {
            MeasureError::from(Unanswered {
                name: "there".to_owned(),
                protocol: Protocol::Icmp,
                sent,
                errors,
                notes: &notes,
            })
            .to_string()
        };
        assert_eq!(said(0, false), "nothing was sent to there: why");
        assert_eq!(said(3, true), "ICMP probes did not get to there: why");
        assert!(said(3, false).contains("check the name"));
    }
}
