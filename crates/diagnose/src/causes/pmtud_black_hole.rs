//! Large packets vanish on the path, and no message reports it.
//!
//! RFC 2923, section 2.1.

use plumb_model::context::SMALL_SEGMENT_BYTES;
use plumb_model::finding::{Action, Actor, Cause, Finding, Fix, Place, Severity, SysctlAction};
use plumb_model::need::Need;

use plumb_model::results::Direction;
use plumb_model::units::si;

use crate::Case;
use crate::entry::{Amount, Entry, Family, Often, every_sign};
use crate::evidence::{Sizes, fact};

/// A load of full packets carried nothing, and one of small ones right after it did.
const SEGMENTS_CONFIDENCE: f64 = 0.9;

/// A far end that answers no large packet would look the same; it was asked over UDP as well.
const ANSWERS_CONFIDENCE: f64 = 0.85;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    often: Often {
        home: 0.0,
        campus: 0.0,
        cloud: 1.0,
        mobile: 0.0,
    },
    vanishes: "smaller packets get through: a lower maximum segment size, or a lower MTU of this host",
    needs: &[Need::PacketSizes],
    resembles: &[(
        Cause::PathLoss,
        "loss takes small packets as well as large ones",
    )],
    amount: Amount::PacketSize,
    examine: |case| {
        let of = |sizes| [black_hole(sizes), of_answers(sizes)];
        let found: Vec<_> = case.sizes().flat_map(of).flatten().collect();
        let facts = case.facts(None).by("sizes");
        if facts
            .known("a search for the largest packet", case.sizes().next())
            .is_some()
        {
            facts.is("large packets vanish without a report", !found.is_empty());
        }
        let directions = [Direction::Up, Direction::Down].into_iter();
        let by_loads = directions.filter_map(|direction| of_segments(case, direction));
        match found.is_empty() {
            true => by_loads.collect(),
            false => found,
        }
    },
    explains: every_sign,
    ..Entry::PLAIN
};

fn black_hole(sizes: Sizes<'_>) -> Option<Finding> {
    let mtu = sizes.result;
    let after = mtu.black_hole_after?;
    let path_bytes = mtu.path_mtu_bytes?;
    let place = match after {
        0 => "behind this host".to_owned(),
        hop => format!("behind hop {hop}"),
    };
    // What TCP sends is bounded by what the far end announced, if that came through.
    let saved = mtu
        .mss
        .as_ref()
        .and_then(|mss| mss.answered_bytes)
        .is_some_and(|mss| mss + sizes.headers_bytes() <= path_bytes);
    let probes = mtu.tcp.mtu_probing.is_some_and(|mode| mode > 0);
    let consequence = match (saved, probes) {
        (true, _) => {
            "TCP is kept below that by its maximum segment size; UDP, QUIC and tunnels are not"
        }
        (false, true) => "TCP of this host will find out after some timeouts; other hosts hang",
        (false, false) => "connections open, and hang as soon as they send full packets",
    };
    let severity = if saved || probes {
        Severity::Warning
    } else {
        Severity::Critical
    };
    let mut fixes = vec![Fix::advice(
        Actor::Provider,
        format!(
            "Let the router {place} send its ICMP errors (\"fragmentation needed\", \"packet too big\"), and let them through the firewalls on the path."
        ),
        format!("plumb mtu finds {path_bytes} bytes by what routers report."),
    )];
    if !saved {
        fixes.push(Fix::advice(
            Actor::Router,
            format!(
                "Lower TCP's maximum segment size to {} bytes in what passes to this path.",
                path_bytes.saturating_sub(sizes.headers_bytes())
            ),
            "TCP gets through; UDP and QUIC are helped only by the errors.",
        ));
    }
    if !probes && mtu.tcp.mtu_probing.is_some() {
        let probe = SysctlAction {
            key: "net.ipv4.tcp_mtu_probing".to_owned(),
            value: "1".to_owned(),
        };
        let advice = Fix::advice(
            Actor::ThisHost,
            "Let TCP of this host probe for itself when packets keep vanishing (RFC 4821).",
            "Connections from this host stall for some seconds and then go on.",
        );
        fixes.insert(0, advice.by(Action::Sysctl(probe)));
    }
    Some(Finding {
        cause: Cause::PmtudBlackHole,
        place: Place::Path,
        severity,
        // The hop before it was seen to be reached by large packets, and small ones to get on.
        confidence: if after == 0 { 0.9 } else { 0.95 },
        matters_for: Vec::new(),
        summary: format!(
            "Packets above {path_bytes} bytes vanish {place} without a message: {consequence}."
        ),
        evidence: vec![
            fact(
                sizes.measurement,
                "path_mtu_bytes",
                path_bytes,
                "largest packet that got through, against the largest that was sent and never answered",
                mtu.largest_tried_bytes,
            ),
            fact(
                sizes.measurement,
                "black_hole_after",
                f64::from(after),
                match after {
                    0 => "hops that large packets were seen to reach",
                    _ => "last hop that large packets reached",
                },
                f64::from(after),
            ),
        ],
        fixes,
        kb: "mtu".to_owned(),
    })
}

/// Large packets get there, and answers as large do not come back.
fn of_answers(sizes: Sizes<'_>) -> Option<Finding> {
    let mtu = sizes.result;
    let back_bytes = mtu.way_back_bytes?;
    let sent_bytes = mtu.path_mtu_bytes?;
    // What the far end sends is bounded by what arrived there of this host's announcement.
    let mss = mtu.mss.as_ref();
    let saved = mss
        .and_then(|mss| mss.lowered_to_bytes)
        .is_some_and(|mss| mss + sizes.headers_bytes() <= back_bytes);
    let severity = match saved {
        true => Severity::Warning,
        false => Severity::Critical,
    };
    let consequence = match saved {
        true => "TCP is kept below that by its maximum segment size; UDP, QUIC and tunnels are not",
        false => "downloads open, and hang as soon as the far end sends full packets",
    };
    let mss_bytes = back_bytes.saturating_sub(sizes.headers_bytes());
    Some(Finding {
        cause: Cause::PmtudBlackHole,
        place: Place::Downlink,
        severity,
        confidence: ANSWERS_CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Packets above {back_bytes} bytes vanish on the path from the far end, without a message: {consequence}."
        ),
        evidence: vec![fact(
            sizes.measurement,
            "way_back_bytes",
            back_bytes,
            "largest packet that came back, against the largest that got there",
            sent_bytes,
        )],
        fixes: vec![
            Fix::advice(
                Actor::Router,
                format!(
                    "Lower TCP's maximum segment size to {mss_bytes} bytes in what passes from here: the far end then sends no larger ones."
                ),
                "TCP gets through; UDP and QUIC are helped only by the errors.",
            ),
            Fix::advice(
                Actor::Provider,
                "Let the routers on the far end's path send their ICMP errors (\"fragmentation needed\", \"packet too big\") to it, and let them through the firewalls before it.",
                "Answers as large as the probes come back.",
            ),
        ],
        kb: "mtu".to_owned(),
    })
}

/// TCP carries nothing in full packets, and something in small ones.
fn of_segments(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction).by("loads");
    let full = facts.known("a load", case.carried_alone(direction))?;
    if !facts.is("nothing is carried in full packets", full.is_nothing(case)) {
        return None;
    }
    let small = facts.known("a load of small packets", case.small_segments(direction))?;
    let (from, end) = match direction {
        Direction::Up => ("to", Actor::ThisHost),
        _ => ("from", Actor::FarHost),
    };
    Some(Finding {
        cause: Cause::PmtudBlackHole,
        place: Place::line(direction),
        severity: Severity::Critical,
        confidence: SEGMENTS_CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "Large packets vanish on the path {from} the far end, without a message: {direction}loads carry nothing, and {} in segments of {SMALL_SEGMENT_BYTES} bytes.",
            si(small.result.bps, "bit/s")
        ),
        evidence: vec![fact(
            small.measurement,
            "bytes",
            small.result.bytes as f64,
            "payload that arrived in small segments, against that in full ones",
            full.result.bytes as f64,
        )],
        fixes: vec![
            Fix::advice(
                Actor::Router,
                format!(
                    "Lower TCP's maximum segment size to {SMALL_SEGMENT_BYTES} bytes in what passes from here; `plumb mtu` towards `plumb serve` shows whether more pass."
                ),
                "TCP gets through; UDP and QUIC are helped only by the errors.",
            ),
            Fix::advice(
                end,
                "Lower the MTU of this end's interface, or let its firewall pass ICMP errors (\"fragmentation needed\", \"packet too big\") from the routers on the path.",
                "Packets as large as the path carries arrive.",
            ),
        ],
        kb: "mtu".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::found_by_any;
    use plumb_model::results::Outcome;
    use plumb_model::results::mtu::{MssResult, MtuDirection, MtuMethod, MtuResult, TcpMtu};

    fn mtu() -> MtuResult {
        MtuResult {
            address: "192.0.2.1".to_owned(),
            path_mtu_bytes: Some(1400),
            path_mtu_at_least: false,
            interface_mtu_bytes: Some(1500),
            largest_tried_bytes: 1500,
            partial: false,
            method: MtuMethod::Probed,
            direction: MtuDirection::RoundTrip,
            hops: Vec::new(),
            black_hole_after: Some(3),
            way_back_bytes: None,
            sent: 40,
            mss: None,
            tcp: TcpMtu {
                mtu_probing: Some(0),
                ..TcpMtu::default()
            },
        }
    }

    fn mss(answered: u32) -> MssResult {
        MssResult {
            port: 443,
            sent_bytes: 1460,
            hops: Vec::new(),
            answered_bytes: Some(answered),
            clamped_after: None,
            lowered_to_bytes: None,
            answer_below_path: Some(answered + 40 < 1400),
        }
    }

    fn findings(mtu: MtuResult) -> Vec<Finding> {
        found_by_any(Outcome::Mtu(Box::new(mtu)))
    }

    #[test]
    fn a_black_hole_is_worse_where_tcp_falls_into_it() {
        let [hole] = findings(mtu()).try_into().unwrap();
        assert_eq!(
            (hole.cause, hole.severity),
            (Cause::PmtudBlackHole, Severity::Critical)
        );
        assert!(
            hole.summary
                .contains("above 1400 bytes vanish behind hop 3")
        );
        assert!(hole.fixes.first().unwrap().action.is_some());
        let mut probing = mtu();
        probing.tcp.mtu_probing = Some(1);
        let [hole] = findings(probing).try_into().unwrap();
        assert_eq!(hole.severity, Severity::Warning);
        assert!(hole.fixes.iter().all(|fix| fix.action.is_none()));
        let saved = findings(MtuResult {
            mss: Some(mss(1360)),
            ..mtu()
        });
        assert_eq!(
            saved.iter().map(|f| f.severity).collect::<Vec<_>>(),
            [Severity::Warning]
        );
        // It is lower already.
        let mut fixes = saved.iter().flat_map(|f| &f.fixes);
        assert!(fixes.all(|fix| !fix.summary.contains("maximum segment size")));
    }

    #[test]
    fn a_clamp_is_told_with_the_hop_where_that_was_seen() {
        let quiet = MtuResult {
            black_hole_after: None,
            ..mtu()
        };
        let seen = MssResult {
            clamped_after: Some(2),
            lowered_to_bytes: Some(1300),
            ..mss(1460)
        };
        // That 1400 bytes pass is known as well.
        let [clamped, smaller] = findings(MtuResult {
            mss: Some(seen),
            ..quiet.clone()
        })
        .try_into()
        .unwrap();
        assert_eq!(
            (clamped.cause, clamped.severity),
            (Cause::MssClamped, Severity::Info)
        );
        assert_eq!(smaller.cause, Cause::TunnelOverhead);
        assert!(clamped.summary.contains("behind hop 2") && clamped.summary.contains("1300"));
        let [unsure, _] = findings(MtuResult {
            mss: Some(mss(1300)),
            ..quiet.clone()
        })
        .try_into()
        .unwrap();
        assert!(unsure.confidence < 0.7 && unsure.summary.contains("or set so"));
        let causes = |mtu| {
            let found = findings(mtu).into_iter();
            found.map(|finding| finding.cause).collect::<Vec<_>>()
        };
        let fits = MtuResult {
            mss: Some(mss(1460)),
            ..quiet.clone()
        };
        assert_eq!(causes(fits), [Cause::TunnelOverhead]);
        assert_eq!(causes(quiet), [Cause::TunnelOverhead]);
    }
}
