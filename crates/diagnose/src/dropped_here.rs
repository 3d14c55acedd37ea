//! Packets that this machine itself dropped or damaged while the path was measured, by its own counters before and
//! after each phase: what several causes of a host share.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};

use crate::Case;
use crate::entry::is_about;
use crate::evidence::Counted;
use crate::loss::LOSS_WARNING;
use crate::signs::{Kind, Sign, percent};

/// Fewer packets may have come of anything.
const LEAST_PACKETS: u64 = 10;

/// TCP sends what is lost again more than once.
const SENT_AGAIN: f64 = 3.0;

/// A part of the packets of a phase.
pub(crate) struct Dropped<'a> {
    counted: Counted<'a>,
    /// The largest of the counters.
    counter: String,
    /// Packets that were lost here, and all that were counted, those included.
    lost: u64,
    all: u64,
}

/// How a cause speaks of them.
pub(crate) struct Said {
    pub(crate) cause: Cause,
    pub(crate) place: Place,
    /// What happened to them: a clause that follows "eth0 ".
    pub(crate) what: &'static str,
    /// From which share on it is worth fixing.
    pub(crate) warning_ratio: f64,
    pub(crate) fix: &'static str,
    pub(crate) kb: &'static str,
}

impl<'a> Dropped<'a> {
    /// What an interface lost, of what it carried in a direction (`rx` or `tx`), by all counters of a kind.
    pub(crate) fn at(
        counted: Counted<'a>,
        interface: &str,
        way: &str,
        counters: &[&str],
    ) -> Option<Self> {
        let carried = counted.of(interface, &format!("{way}_packets"));
        let named = |counter: &&str| format!("{interface}.{counter}");
        Self::of(counted, counters.iter().map(named), carried)
    }

    /// What some counters lost beside `carried` packets that were not.
    pub(crate) fn of(
        counted: Counted<'a>,
        counters: impl IntoIterator<Item = String>,
        carried: u64,
    ) -> Option<Self> {
        let counters: Vec<String> = counters.into_iter().collect();
        let lost = counted.sum(counters.iter().map(String::as_str));
        let largest = counters.into_iter().max_by_key(|name| counted.grown(name));
        (lost >= LEAST_PACKETS).then_some(Self {
            counted,
            counter: largest?,
            lost,
            all: carried.saturating_add(lost),
        })
    }

    fn ratio(&self) -> f64 {
        self.lost as f64 / self.all.max(1) as f64
    }

    fn finding(self, said: &Said) -> Finding {
        let ratio = self.ratio();
        Finding {
            cause: said.cause,
            place: said.place,
            severity: match ratio >= said.warning_ratio {
                true => Severity::Warning,
                false => Severity::Info,
            },
            confidence: CONFIDENCE,
            matters_for: Vec::new(),
            summary: format!(
                "This machine {} {} of {} packets ({}) {}, by its own counters: the path did not lose these.",
                said.what,
                self.lost,
                self.all,
                percent(ratio),
                self.counted.during()
            ),
            evidence: vec![Evidence {
                measurement: self.counted.measurement.id.clone(),
                field: format!("result.grown.{}", self.counter),
                value: ratio.into(),
                rule: format!(
                    "{} packets by this counter and others of its kind, as a share of all that were counted meanwhile",
                    self.lost
                ),
                threshold: said.warning_ratio.into(),
            }],
            fixes: vec![Fix::advice(
                Actor::ThisHost,
                said.fix,
                "The counter stands still in the next check.",
            )],
            kb: said.kb.to_owned(),
        }
    }
}

/// The kernel counted them; that they were the measurement's own packets is nearly always so.
const CONFIDENCE: f64 = 0.95;

/// The phase in which most were lost.
pub(crate) fn worst<'a>(
    case: &Case<'a>,
    said: &Said,
    of: impl Fn(Counted<'a>) -> Vec<Option<Dropped<'a>>>,
) -> Vec<Finding> {
    let facts = case.facts(None).by("while measured");
    let counted = facts.known(
        "this machine's counters beside each phase",
        case.counted().next(),
    );
    let all = case.counted().flat_map(of).flatten();
    let worst = all.max_by(|a, b| a.ratio().total_cmp(&b.ratio()));
    if counted.is_some() {
        facts.is(
            "these counters grew by 10 packets or more in a phase",
            worst.is_some(),
        );
    }
    worst.map(|worst| worst.finding(said)).into_iter().collect()
}

/// Whether this machine's own counters grew by half of what a finding says that the path lost, beside the measurement that
/// it rests on: the path is not to be blamed then.
pub(crate) fn accounts_for(case: &Case<'_>, finding: &Finding) -> bool {
    let Some(evidence) = finding.decisive() else {
        return false;
    };
    let Some(lost) = evidence.value.number().filter(|lost| *lost > 0.0) else {
        return false;
    };
    let mut all = case.measurements.iter();
    let Some(measured) = all.find(|one| one.id == evidence.measurement) else {
        return false;
    };
    let mut beside = case.counted().filter(|counted| {
        let from_s = counted.measurement.at_s;
        (from_s..=from_s + counted.measurement.duration_s).contains(&measured.at_s)
    });
    beside.any(|counted| of_all_packets(counted) >= OF_LOSSES_RATIO * lost)
}

/// From this share of the losses on they are this machine's.
const OF_LOSSES_RATIO: f64 = 0.5;

/// What an interface loses on receiving and on sending, and what sockets have no room for.
const AT_INTERFACE: [&str; 10] = [
    "rx_crc_errors",
    "rx_frame_errors",
    "rx_length_errors",
    "rx_missed_errors",
    "rx_fifo_errors",
    "rx_over_errors",
    "tx_dropped",
    "qdisc_drops",
    "tx_carrier_errors",
    "tx_aborted_errors",
];
const AT_SOCKETS: [&str; 2] = ["UdpRcvbufErrors", "Udp6RcvbufErrors"];

/// The share of all packets of a phase that this machine lost by its counters; 0 where those are few.
fn of_all_packets(counted: Counted<'_>) -> f64 {
    let interfaces = counted.interfaces();
    let of = |counters: &[&str]| -> u64 {
        let each = interfaces.iter();
        let each = each.flat_map(|name| counters.iter().map(|counter| counted.of(name, counter)));
        each.fold(0, u64::saturating_add)
    };
    let lost = of(&AT_INTERFACE).saturating_add(counted.sum(AT_SOCKETS));
    let carried = of(&["rx_packets", "tx_packets"]);
    match lost >= LEAST_PACKETS {
        true => lost as f64 / carried.saturating_add(lost) as f64,
        false => 0.0,
    }
}

/// Whether a finding accounts for a sign. One of counters that grew during the check does for about as many losses as
/// were counted; one of the audit, which says how the machine is set, for any.
pub(crate) fn explains(finding: &Finding, sign: &Sign) -> bool {
    let Some(first) = finding.decisive() else {
        return false;
    };
    let counted = first.field.starts_with("result.grown.");
    let share = first.value.number().filter(|_| counted);
    match (sign.kind, share) {
        (Kind::Window, _) => false,
        (_, None) => !counted,
        (Kind::Retransmissions | Kind::ProbesLost, Some(share)) => {
            is_about(finding, sign) && sign.ratio <= SENT_AGAIN * share
        }
        (_, Some(share)) => is_about(finding, sign) && share >= LOSS_WARNING,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::{counted, counting, found_in, idle};
    use crate::{causes, entry::Entry};
    use plumb_model::protocol::Protocol;

    fn entry(cause: Cause) -> &'static Entry {
        causes::entry(cause)
    }

    fn severity(cause: Cause, grown: &[(&str, u64)]) -> Vec<Severity> {
        let found = counted(entry(cause).examine, grown).into_iter();
        found.map(|finding| finding.severity).collect()
    }

    #[test]
    fn what_a_machine_drops_is_found_where_it_does() {
        let carried = [("eth0.rx_packets", 90_000), ("eth0.rx_bytes", 90_000_000)];
        let with = |name, lost| [carried[0], carried[1], (name, lost)];
        for (cause, name) in [
            (Cause::LinkErrors, "eth0.rx_crc_errors"),
            (Cause::ReceiveOverrun, "eth0.rx_missed_errors"),
            (Cause::QueueDrops, "eth0.qdisc_drops"),
            (Cause::UdpBufferSmall, "UdpRcvbufErrors"),
            (Cause::ReceiveBufferPruned, "TcpExtTCPRcvQDrop"),
        ] {
            assert_eq!(
                severity(cause, &with(name, 9_000)),
                [Severity::Warning],
                "{name}"
            );
            assert_eq!(severity(cause, &with(name, 9)), [], "{name}");
            let others = entry(Cause::BacklogDrops);
            assert_eq!(counted(others.examine, &with(name, 9_000)), []);
        }
        // An interface that carried nothing of it is not of the path.
        let beside = [
            carried[0],
            carried[1],
            ("eth1.rx_packets", 50),
            ("eth1.rx_crc_errors", 50),
        ];
        assert_eq!(severity(Cause::LinkErrors, &beside), []);
        // What TCP loses at a full queue of its own, one in a hundred, is no fault.
        let sent = [("eth0.tx_packets", 90_000), ("eth0.qdisc_drops", 300)];
        assert_eq!(severity(Cause::QueueDrops, &sent), [Severity::Info]);
    }

    #[test]
    fn a_path_is_not_blamed_for_what_this_machine_lost() {
        let losing = idle(Protocol::Udp, 250, 225, 0.02);
        let found = |lost: u64| {
            let grown = [
                ("eth0.rx_packets", 230),
                ("eth0.rx_bytes", 20_000),
                ("eth0.rx_crc_errors", lost),
            ];
            let mut counted = counting(&grown);
            counted.id = "m2".to_owned();
            let all = [losing.clone(), counted];
            found_in(entry(Cause::PathLoss).examine, &all).len()
        };
        assert_eq!(found(25), 0);
        assert_eq!(found(0), 1);
    }
}
