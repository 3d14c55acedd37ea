//! Echo requests are filtered, limited or answered later than other traffic.
//!
//! Firewalls drop ICMP, and routers and hosts answer it when they have nothing better to do (RFC 1812, section 4.3.2.8).
//! What pings lose there no other traffic loses.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::loss::{at_least_ratio, at_most_ratio};
use plumb_model::need::Need;
use plumb_model::protocol::Protocol;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Idle, fact};
use crate::facts::{Recorder, count, ratio, seconds};

/// Echoes lost for certain are this many times what UDP may lose at the most: two samples of one share differ by less.
const TIMES: f64 = 2.0;

/// So much later, in seconds, and by so large a share of UDP's round trip: more than a kernel and a program differ.
const LATER_S: f64 = 0.005;
const LATER_RATIO: f64 = 0.5;

/// Round trips of which the median is known.
const ENOUGH_ROUND_TRIPS: u64 = 20;

/// Both went to the same host at the same time.
const CONFIDENCE: f64 = 0.95;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "probes over UDP or TCP to the same host are all answered, and at once",
    needs: &[Need::Idle],
    resembles: &[(
        Cause::PathLoss,
        "loss takes probes over UDP and segments of TCP as well",
    )],
    examine: |case| examine(case).into_iter().collect(),
    ..Entry::PLAIN
};

pub(super) fn examine(case: &Case<'_>) -> Option<Finding> {
    let facts = case.facts(None);
    let icmp = facts.known("pings of the idle path", case.idle_by(Protocol::Icmp))?;
    let udp = facts.known("probes over UDP", case.idle_by(Protocol::Udp))?;
    if !facts.is("probes over UDP are answered", udp.result.received > 0) {
        return None;
    }
    lost(icmp, udp, facts).or_else(|| later(icmp, udp, facts))
}

fn lost(icmp: Idle<'_>, udp: Idle<'_>, facts: Recorder<'_>) -> Option<Finding> {
    let (sent, missing) = (icmp.sent(), icmp.lost());
    let least = at_least_ratio(sent, missing);
    let most_of_udp = at_most_ratio(udp.sent(), udp.lost());
    let what = match icmp.result.received {
        0 => "no answer at all".to_owned(),
        answered => format!("{answered} answers"),
    };
    let facts = facts.by("lost");
    let name = "least share of pings lost";
    let more = facts.above("pings lost", count(missing), 1.0)
        && facts.above(name, ratio(least), TIMES * most_of_udp);
    more.then(|| {
        let (sent_udp, lost_udp) = (udp.sent(), udp.lost());
        let lost_udp = match lost_udp {
            0 => format!("all {sent_udp} probes over UDP were answered"),
            lost => format!("{lost} of {sent_udp} probes over UDP got none"),
        };
        finding(
            format!(
                "Pings are held back, and not the traffic: {sent} echo requests got {what} while {lost_udp}. A firewall or a limit treats ICMP otherwise; what a ping loses here is no loss."
            ),
            fact(
                icmp.measurement,
                "loss_ratio",
                least,
                "share of echo requests lost at least, against twice what UDP probes may have lost; both with 97.5 %",
                TIMES * most_of_udp,
            ),
        )
    })
}

fn later(icmp: Idle<'_>, udp: Idle<'_>, facts: Recorder<'_>) -> Option<Finding> {
    let (echoes, probes) = (icmp.result.rtt_s?, udp.result.rtt_s?);
    let enough = echoes.count.min(probes.count) >= ENOUGH_ROUND_TRIPS;
    let threshold_s = probes.p50 + LATER_S.max(LATER_RATIO * probes.p50);
    let facts = facts.by("late");
    let late = facts.is("enough of both are answered", enough)
        && facts.above(
            "median round trip of pings",
            seconds(echoes.p50),
            threshold_s,
        );
    late.then(|| {
        finding(
            format!(
                "Pings are answered later than other traffic: echoes take {} and probes over UDP to the same host {}. What a ping shows here is not what traffic takes.",
                human_seconds(echoes.p50),
                human_seconds(probes.p50)
            ),
            fact(
                icmp.measurement,
                "rtt_s.p50",
                echoes.p50,
                "median of the echoes, against one and a half times the share of UDP probes",
                threshold_s,
            ),
        )
    })
}

fn finding(summary: String, evidence: Evidence) -> Finding {
    Finding {
        cause: Cause::IcmpHeldBack,
        place: Place::Path,
        severity: Severity::Info,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary,
        evidence: vec![evidence],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Judge this path by UDP and TCP. The filter's operator should let echoes pass, and \"packet too big\" in any case (RFC 4890, RFC 1191): without it large packets may vanish.",
            "Echo requests are answered like other probes.",
        )],
        kb: "ping".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found_in, idle};

    fn found(icmp: (u64, u64, f64), udp: (u64, u64, f64)) -> Vec<String> {
        let measured = [(Protocol::Udp, udp), (Protocol::Icmp, icmp)]
            .map(|(protocol, (sent, received, rtt_s))| idle(protocol, sent, received, rtt_s));
        let found = found_in(CAUSE.examine, &measured).into_iter();
        found.map(|finding| finding.summary).collect()
    }

    #[test]
    fn what_only_echoes_lose_is_no_loss() {
        let of = |icmp| found(icmp, (250, 250, 0.02));
        assert!(matches!(&of((50, 0, 0.0))[..], [one] if one.contains("no answer at all")));
        assert!(matches!(&of((50, 20, 0.02))[..], [one] if one.contains("20 answers")));
        assert_eq!(of((50, 50, 0.02)), [""; 0]);
        assert_eq!(of((50, 49, 0.02)), [""; 0], "one may be chance");
        // As UDP does: that is loss.
        assert_eq!(found((50, 40, 0.02), (250, 200, 0.02)), [""; 0]);
        assert_eq!(
            found((50, 0, 0.0), (250, 0, 0.0)),
            [""; 0],
            "nothing was measured"
        );
    }

    #[test]
    fn echoes_that_come_late_are_told_from_a_long_path() {
        let of = |icmp_s, udp_s| found((50, 50, icmp_s), (250, 250, udp_s)).len();
        assert_eq!(of(0.080, 0.020), 1);
        assert_eq!(of(0.024, 0.020), 0);
        assert_eq!(of(0.220, 0.200), 0);
        assert_eq!(of(0.004, 0.001), 0, "what a kernel takes longer for");
    }
}
