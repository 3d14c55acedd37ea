//! Packets that are too large for the path: black holes (RFC 2923, section 2.1), and routers that
//! lower TCP's maximum segment size to keep out of them.

use plumb_model::finding::{
    Action, Actor, Cause, Evidence, Finding, Fix, Place, Severity, SysctlAction,
};
use plumb_model::results::Outcome;
use plumb_model::results::mtu::{MssResult, MtuResult};
use plumb_model::run::Measurement;

use crate::Case;

/// IP and TCP headers without options, by the version of the address.
fn headers_bytes(mtu: &MtuResult) -> u32 {
    if mtu.address.contains(':') { 60 } else { 40 }
}

pub(crate) fn examine(case: &Case<'_>) -> Vec<Finding> {
    let mtus = case.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::Mtu(mtu) => Some((m, mtu.as_ref())),
        _ => None,
    });
    mtus.flat_map(|(measurement, mtu)| {
        let clamped = mtu
            .mss
            .as_ref()
            .and_then(|mss| clamp(measurement, mtu, mss));
        black_hole(measurement, mtu).into_iter().chain(clamped)
    })
    .collect()
}

fn black_hole(measurement: &Measurement, mtu: &MtuResult) -> Option<Finding> {
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
        .is_some_and(|mss| mss + headers_bytes(mtu) <= path_bytes);
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
    let mut fixes = vec![Fix {
        on: Actor::Provider,
        summary: format!(
            "Let the router {place} send its ICMP errors (\"fragmentation needed\", \"packet too big\"), and let them through the firewalls on the way."
        ),
        action: None,
        commands: Vec::new(),
        expect: format!("plumb mtu finds {path_bytes} bytes by what routers tell."),
    }];
    if !saved {
        fixes.push(Fix {
            on: Actor::Router,
            summary: format!(
                "Lower TCP's maximum segment size to {} bytes in what passes to this path.",
                path_bytes.saturating_sub(headers_bytes(mtu))
            ),
            action: None,
            commands: Vec::new(),
            expect: "TCP gets through; UDP and QUIC are helped only by the errors.".to_owned(),
        });
    }
    if !probes && mtu.tcp.mtu_probing.is_some() {
        fixes.insert(
            0,
            Fix {
                on: Actor::ThisHost,
                summary:
                    "Let TCP of this host probe for itself when packets keep vanishing (RFC 4821)."
                        .to_owned(),
                action: Some(Action::Sysctl(SysctlAction {
                    key: "net.ipv4.tcp_mtu_probing".to_owned(),
                    value: "1".to_owned(),
                })),
                commands: Vec::new(),
                expect: "Connections from this host stall for some seconds and then go on."
                    .to_owned(),
            },
        );
    }
    Some(Finding {
        cause: Cause::PmtudBlackHole,
        place: Place::Path,
        severity,
        // The hop before it was seen to be reached by large packets, and small ones to get on.
        confidence: if after == 0 { 0.9 } else { 0.95 },
        matters_for: Vec::new(),
        summary: format!(
            "Packets above {path_bytes} bytes vanish {place} and nobody is told: {consequence}."
        ),
        evidence: vec![
            Evidence {
                measurement: measurement.id.clone(),
                field: "result.path_mtu_bytes".to_owned(),
                value: path_bytes.into(),
                rule: "the largest packet that got through, against the largest sent without an answer of any kind".to_owned(),
                threshold: mtu.largest_tried_bytes.into(),
            },
            Evidence {
                measurement: measurement.id.clone(),
                field: "result.black_hole_after".to_owned(),
                value: f64::from(after).into(),
                rule: "the last hop that large packets were seen to reach".to_owned(),
                threshold: f64::from(after).into(),
            },
        ],
        fixes,
        kb: "mtu".to_owned(),
    })
}

fn clamp(measurement: &Measurement, mtu: &MtuResult, mss: &MssResult) -> Option<Finding> {
    let (summary, field, value, threshold, confidence) = match (
        mss.lowered_to_bytes,
        mss.clamped_after,
    ) {
        (Some(bytes), Some(after)) => {
            let place = match after {
                0 => "before the first hop that tells".to_owned(),
                hop => format!("behind hop {hop}"),
            };
            let summary = format!(
                "A router {place} lowers TCP's maximum segment size from {} to {bytes} bytes.",
                mss.sent_bytes
            );
            let field = "result.mss.lowered_to_bytes";
            (summary, field, bytes, mss.sent_bytes, 0.99)
        }
        _ if mss.answer_below_path == Some(true) => {
            let (answered, path) = (mss.answered_bytes?, mtu.path_mtu_bytes?);
            let fits = path.saturating_sub(headers_bytes(mtu));
            let summary = format!(
                "TCP's maximum segment size came back as {answered} bytes where the path takes {fits}: lowered on the way, or set so at the far end."
            );
            // Which of the two is not told.
            (summary, "result.mss.answered_bytes", answered, fits, 0.6)
        }
        _ => return None,
    };
    Some(Finding {
        cause: Cause::MssClamped,
        place: Place::Path,
        severity: Severity::Info,
        confidence,
        matters_for: Vec::new(),
        summary,
        evidence: vec![Evidence {
            measurement: measurement.id.clone(),
            field: field.to_owned(),
            value: value.into(),
            rule: "bytes of the maximum segment size, against what was sent or fits".to_owned(),
            threshold: threshold.into(),
        }],
        fixes: Vec::new(),
        kb: "mtu".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::found;
    use plumb_model::results::mtu::{MtuDirection, MtuMethod, TcpMtu};

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
        found(examine, Outcome::Mtu(Box::new(mtu)))
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
        let [clamped] = findings(MtuResult {
            mss: Some(seen),
            ..quiet.clone()
        })
        .try_into()
        .unwrap();
        assert_eq!(
            (clamped.cause, clamped.severity),
            (Cause::MssClamped, Severity::Info)
        );
        assert!(clamped.summary.contains("behind hop 2") && clamped.summary.contains("1300"));
        let [unsure] = findings(MtuResult {
            mss: Some(mss(1300)),
            ..quiet.clone()
        })
        .try_into()
        .unwrap();
        assert!(unsure.confidence < 0.7 && unsure.summary.contains("or set so"));
        assert_eq!(
            findings(MtuResult {
                mss: Some(mss(1460)),
                ..quiet.clone()
            })
            .len(),
            0
        );
        assert_eq!(findings(quiet).len(), 0);
    }
}
