//! What a path does that it should not: packets lost or refused, a route that flaps, marks cleared, a
//! detour.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::results::Outcome;
use plumb_model::results::path::{AlteredField, PathResult, refusal};
use plumb_model::run::Measurement;
use plumb_model::units::human_seconds;

use crate::Case;
use crate::loss::{LOSS_CRITICAL, LOSS_WARNING};

/// So many changes of the route in one measurement are flapping; fewer are maintenance.
const FLAPS: f64 = 3.0;

/// The rule.
pub(crate) fn examine(case: &Case<'_>) -> Vec<Finding> {
    case.measurements
        .iter()
        .filter_map(|m| match &m.outcome {
            Outcome::Path(path) => Some((m, path.as_ref())),
            _ => None,
        })
        .flat_map(|(m, path)| {
            let found = [
                loss(m, path),
                refused(m, path),
                changes(m, path),
                detour(m, path),
            ];
            found.into_iter().flatten().chain(bleached(m, path))
        })
        .collect()
}

fn evidence(m: &Measurement, field: &str, value: f64, rule: &str, threshold: f64) -> Evidence {
    Evidence {
        measurement: m.id.clone(),
        field: format!("result.{field}"),
        value: value.into(),
        rule: rule.to_owned(),
        threshold: threshold.into(),
    }
}

fn finding(
    cause: Cause,
    (severity, confidence): (Severity, f64),
    summary: String,
    evidence: Vec<Evidence>,
    fix: (Actor, &str, &str),
) -> Finding {
    let (on, what, expect) = fix;
    Finding {
        cause,
        place: Place::Path,
        severity,
        confidence,
        matters_for: Vec::new(),
        summary,
        evidence,
        fixes: vec![Fix {
            on,
            summary: what.to_owned(),
            action: None,
            commands: Vec::new(),
            expect: expect.to_owned(),
        }],
        kb: "path".to_owned(),
    }
}

/// How an address at a hop is called.
fn at(path: &PathResult, ttl: u8) -> String {
    let hop = path.hops.iter().find(|hop| hop.ttl == ttl);
    let name = hop.and_then(|hop| hop.name.as_ref().or(hop.address.as_ref()));
    match name {
        Some(name) => format!("hop {ttl} ({name})"),
        None => format!("hop {ttl}"),
    }
}

fn loss(m: &Measurement, path: &PathResult) -> Option<Finding> {
    let loss = path.loss.as_ref()?;
    // Few probes leave the share wide open.
    let severity = if loss.at_least_ratio >= LOSS_CRITICAL {
        Severity::Critical
    } else if loss.at_least_ratio >= LOSS_WARNING {
        Severity::Warning
    } else {
        Severity::Info
    };
    let where_ = if loss.earliest_ttl == loss.latest_ttl {
        format!("beginning at {}", at(path, loss.begins_at_ttl))
    } else {
        format!(
            "beginning between {} and {}",
            at(path, loss.earliest_ttl),
            at(path, loss.latest_ttl)
        )
    };
    let summary = format!(
        "Packets are lost on the path to {}: {} of {} probes to hop {} and beyond ({:.1} %, and of all packets at least {:.1} %), {where_}.",
        path.address,
        loss.lost_beyond,
        loss.sent_beyond,
        loss.begins_at_ttl,
        loss.ratio * 100.0,
        loss.at_least_ratio * 100.0
    );
    // One lost probe may be chance; ten are not.
    let confidence = 1.0 - 0.5f64.powf(loss.lost as f64);
    let mut found = finding(
        Cause::PathLoss,
        (severity, confidence.min(0.99)),
        summary,
        vec![
            evidence(
                m,
                "loss.at_least_ratio",
                loss.at_least_ratio,
                "share lost at and beyond the hop where loss begins, at least, with 97.5 %",
                LOSS_WARNING,
            ),
            evidence(
                m,
                "loss.lost",
                loss.lost as f64,
                "probes lost to the last hop",
                1.0,
            ),
        ],
        (
            Actor::Provider,
            "Look at the line before that hop and the queue that leads into it; the loss may be on the answers' way back as well.",
            "no probes lost beyond that hop",
        ),
    );
    if loss.latest_ttl <= 1 {
        found.place = Place::LocalSegment;
    }
    Some(found)
}

/// A router says that packets go no further.
fn refused(m: &Measurement, path: &PathResult) -> Option<Finding> {
    if path.reached {
        return None;
    }
    let mut marks = path.hops.iter().enumerate().filter_map(|(index, hop)| {
        let mark = hop.annotation.as_deref().filter(|m| !m.starts_with("!F"))?;
        Some((index, hop.ttl, mark))
    });
    let (index, ttl, mark) = marks.next()?;
    let severity = match mark {
        "!N" | "!H" => Severity::Critical,
        _ => Severity::Warning,
    };
    let this_host = path.hops.get(index).is_some_and(|hop| hop.this_host);
    let summary = if this_host {
        format!(
            "Packets to {} do not leave this host: whoever is next on the way does not answer to its address ({mark}).",
            path.address
        )
    } else {
        format!(
            "Packets to {} are refused at {}: {} ({mark}).",
            path.address,
            at(path, ttl),
            refusal(mark)
        )
    };
    let fix = match this_host {
        true => (
            Actor::ThisHost,
            "Look at `ip route get` and `ip neigh`: the far end, or the gateway, is down, is not on that link, or has another address.",
            "an answer of the target",
        ),
        false => (
            Actor::Provider,
            "Check the address, then ask who runs that hop: a route is missing behind it, the host is down, or a filter refuses probes of this kind (--icmp, --udp and --tcp are different kinds).",
            "an answer of the target",
        ),
    };
    let mut fact = evidence(
        m,
        &format!("hops.{index}.annotation"),
        0.0,
        "an ICMP error that says why packets are not forwarded, against none",
        0.0,
    );
    (fact.value, fact.threshold) = (mark.into(), "none".into());
    Some(finding(
        Cause::PathRefused,
        (severity, 0.99),
        summary,
        vec![fact],
        fix,
    ))
}

/// One change is an event; many are a fault.
fn changes(m: &Measurement, path: &PathResult) -> Option<Finding> {
    let changes = path.changes.len() as f64;
    let first = path.changes.first()?;
    let since = format!(
        "at {}, from {} on",
        human_seconds(first.at_s),
        at(path, first.ttl)
    );
    let fact = |threshold| {
        evidence(
            m,
            "changes.length",
            changes,
            "changes of the route",
            threshold,
        )
    };
    if changes < FLAPS {
        let times = if changes > 1.0 {
            "twice, first"
        } else {
            "once,"
        };
        return Some(finding(
            Cause::RouteChanged,
            (Severity::Info, 0.95),
            format!(
                "The route to {} changed {times} {since}, while it was watched.",
                path.address
            ),
            vec![fact(1.0)],
            (
                Actor::Provider,
                "Watch for longer (--continuous): a single change is maintenance, or a line that failed.",
                "one route for as long as it is watched",
            ),
        ));
    }
    Some(finding(
        Cause::RouteFlapping,
        (Severity::Warning, 0.95),
        format!(
            "The route to {} changed {changes} times while it was watched, first {since}.",
            path.address
        ),
        vec![fact(FLAPS)],
        (
            Actor::Provider,
            "Ask who runs the routers at and before that hop for the reason: a line that comes and goes, or routing that does not settle.",
            "one route for as long as it is watched",
        ),
    ))
}

fn bleached(m: &Measurement, path: &PathResult) -> Vec<Finding> {
    let cause = |field| match field {
        AlteredField::Dscp => Some((Cause::DscpChanged, "The DSCP of packets")),
        AlteredField::Ecn => Some((Cause::EcnCleared, "The ECN field of packets")),
        _ => None,
    };
    let changes = path.alterations.iter().enumerate();
    changes
        .filter_map(|(index, change)| {
            let (cause, what) = cause(change.field)?;
            // A mark of congestion is what the field is for.
            if change.seen == "CE" {
                return None;
            }
            let behind = match change.intact_at_ttl {
                Some(ttl) => format!("behind {}", at(path, ttl)),
                None => "before the first hop that tells".to_owned(),
            };
            let summary = format!(
                "{what} to {} is changed from {} to {}, {behind}.",
                path.address, change.sent, change.seen
            );
            Some(finding(
                cause,
                (Severity::Info, 0.95),
                summary,
                vec![evidence(
                    m,
                    &format!("alterations.{index}.seen_at_ttl"),
                    change.seen_at_ttl.into(),
                    "the first hop that quotes another value than was sent",
                    1.0,
                )],
                (
                    Actor::Provider,
                    "Rely on no mark beyond that hop, or ask who runs it to leave the field alone: DSCP by agreement, ECN by RFC 3168.",
                    "the field as it was sent at every hop",
                ),
            ))
        })
        .collect()
}

fn detour(m: &Measurement, path: &PathResult) -> Option<Finding> {
    let distance = path.distance.as_ref()?;
    let ttl = distance.detour_ttl?;
    let summary = format!(
        "The path to {} takes a detour by {}: {:.0} km along the known places for {:.0} km directly.",
        path.address,
        at(path, ttl),
        distance.along_path_m / 1000.0,
        distance.direct_m / 1000.0
    );
    Some(finding(
        Cause::RouteDetour,
        (Severity::Info, 0.6),
        summary,
        vec![evidence(
            m,
            "distance.along_path_m",
            distance.along_path_m,
            "metres along the places of the hops, against twice the direct distance",
            2.0 * distance.direct_m,
        )],
        (
            Actor::Provider,
            "Check the places (databases are often wrong), then ask the networks on both sides of that hop where they exchange traffic.",
            "a path nearer to the direct distance",
        ),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing;
    use plumb_model::results::path::{
        Alteration, HopAnswers, PathDistance, PathHop, PathLoss, PathProtocol, RouteChange,
    };

    fn path() -> PathResult {
        PathResult {
            protocol: PathProtocol::Icmp,
            port: None,
            address: "192.0.2.1".to_owned(),
            reached: true,
            cycles: 3,
            hops: Vec::new(),
            loss: None,
            routes: Vec::new(),
            changes: Vec::new(),
            alterations: Vec::new(),
            syn_ack: None,
            multipath: None,
            distance: None,
            way_back: None,
            symmetry: None,
        }
    }

    fn found(path: PathResult) -> Vec<Finding> {
        testing::found(examine, Outcome::Path(Box::new(path)))
    }

    #[test]
    fn a_sound_path_has_no_findings() {
        assert_eq!(found(path()), vec![]);
    }

    #[test]
    fn a_refusal_is_named_and_no_loss() {
        let mut refusing = path();
        refusing.reached = false;
        refusing.hops = vec![PathHop {
            ttl: 1,
            address: Some("10.0.0.2".to_owned()),
            addresses: Vec::new(),
            name: None,
            asn: None,
            as_name: None,
            place: None,
            sent: 3,
            received: 1,
            unanswered_ratio: 2.0 / 3.0,
            answers: HopAnswers::Unclear,
            rtt_s: None,
            last_rtt_s: None,
            annotation: Some("!N".to_owned()),
            this_host: false,
            mpls: Vec::new(),
            return_hops: None,
            notes: Vec::new(),
        }];
        let [refused] = found(refusing.clone()).try_into().unwrap();
        assert_eq!(
            (refused.cause, refused.severity),
            (Cause::PathRefused, Severity::Critical)
        );
        assert!(
            refused
                .summary
                .contains("hop 1 (10.0.0.2): it has no route")
        );
        // It may be this host itself that finds nobody on its link.
        let mut own = refusing.clone();
        if let Some(hop) = own.hops.first_mut() {
            (hop.this_host, hop.annotation) = (true, Some("!H".to_owned()));
        }
        let [refused] = found(own).try_into().unwrap();
        assert!(refused.summary.contains("do not leave this host"));
        assert_eq!(
            refused.fixes.first().map(|fix| fix.on),
            Some(Actor::ThisHost)
        );
        // Somebody who has the target's answer as well was asked for something else.
        refusing.reached = true;
        assert_eq!(found(refusing), vec![]);
    }

    #[test]
    fn each_fault_is_named() {
        let mut bad = path();
        bad.loss = Some(PathLoss {
            ratio: 0.1,
            at_least_ratio: 0.05,
            sent_beyond: 100,
            lost_beyond: 10,
            begins_at_ttl: 3,
            earliest_ttl: 2,
            latest_ttl: 3,
            sent: 100,
            lost: 10,
        });
        bad.changes = vec![
            RouteChange {
                at_s: 2.0,
                after_s: 1.0,
                time: None,
                from_route: 0,
                to_route: 1,
                ttl: 2,
            };
            3
        ];
        let change = |field, sent: &str, seen: &str| Alteration {
            field,
            sent: sent.to_owned(),
            seen: seen.to_owned(),
            seen_at_ttl: 3,
            intact_at_ttl: Some(2),
        };
        bad.alterations = vec![
            change(AlteredField::Dscp, "46", "0"),
            change(AlteredField::Ecn, "ECT(0)", "CE"),
            change(AlteredField::Mss, "1460", "1300"),
        ];
        bad.distance = Some(PathDistance {
            along_path_m: 9e6,
            direct_m: 1e6,
            light_rtt_s: 0.01,
            along_light_rtt_s: 0.09,
            rtt_s: None,
            detour_ttl: Some(2),
        });
        let mut by_chance = path();
        by_chance.loss = bad.loss.clone().map(|loss| PathLoss {
            ratio: 1.0 / 3.0,
            at_least_ratio: 0.018,
            sent_beyond: 3,
            lost_beyond: 1,
            sent: 3,
            lost: 1,
            ..loss
        });
        let [unsure] = found(by_chance).try_into().unwrap();
        assert_eq!(unsure.severity, Severity::Warning);
        assert!(
            unsure.summary.contains("1 of 3 probes"),
            "{}",
            unsure.summary
        );
        let mut once = path();
        once.changes = bad.changes.iter().take(1).cloned().collect();
        let [changed] = found(once).try_into().unwrap();
        assert_eq!(
            (changed.cause, changed.severity),
            (Cause::RouteChanged, Severity::Info)
        );
        assert!(
            changed.summary.contains("changed once, at"),
            "{}",
            changed.summary
        );
        let found = found(bad);
        let causes: Vec<_> = found.iter().map(|f| (f.cause, f.severity)).collect();
        let wanted = [
            (Cause::PathLoss, Severity::Critical),
            (Cause::RouteFlapping, Severity::Warning),
            (Cause::RouteDetour, Severity::Info),
            (Cause::DscpChanged, Severity::Info),
        ];
        assert_eq!(causes, wanted);
        assert!(
            found
                .first()
                .unwrap()
                .summary
                .contains("between hop 2 and hop 3")
        );
    }
}
