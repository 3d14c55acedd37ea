//! Rules about routes, tried together: one must not find what another means.

#![allow(clippy::unwrap_used)]

use plumb_model::finding::{Actor, Cause, Finding, Severity};
use plumb_model::protocol::Protocol;
use plumb_model::results::Outcome;
use plumb_model::results::path::{
    Alteration, AlteredField, ArrivedMarks, EcnField, HopAnswers, MarksBetweenEnds, PathDistance,
    PathHop, PathLoss, PathResult, RouteChange,
};

use crate::testing;

fn path() -> PathResult {
    PathResult {
        protocol: Protocol::Icmp,
        port: None,
        address: "192.0.2.1".to_owned(),
        reached: true,
        cycles: 3,
        hops: Vec::new(),
        loss: None,
        routes: Vec::new(),
        changes: Vec::new(),
        alterations: Vec::new(),
        quoting_hops: Some(3),
        marks: None,
        syn_ack: None,
        multipath: None,
        distance: None,
        way_back: None,
        symmetry: None,
    }
}

fn found(path: PathResult) -> Vec<Finding> {
    testing::found_by_any(Outcome::Path(Box::new(path)))
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
    // It may be this host itself that finds no host on its link.
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
    // A hop that refuses is no finding where the target has answered as well.
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
    assert_eq!(found(by_chance), []);
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
        (Cause::DscpChanged, Severity::Info),
        (Cause::PathLoss, Severity::Critical),
        (Cause::RouteDetour, Severity::Info),
        (Cause::RouteFlapping, Severity::Warning),
    ];
    assert_eq!(causes, wanted);
    assert!(
        found
            .get(1)
            .unwrap()
            .summary
            .contains("between hop 2 and hop 3")
    );
}

/// A path whose hops have these addresses.
fn through(far: &str, hops: &[&str]) -> PathResult {
    let hop = |(index, address): (usize, &&str)| PathHop {
        ttl: index as u8 + 1,
        address: Some((*address).to_owned()),
        addresses: Vec::new(),
        name: None,
        asn: None,
        as_name: None,
        place: None,
        sent: 3,
        received: 3,
        unanswered_ratio: 0.0,
        answers: HopAnswers::Well,
        rtt_s: None,
        last_rtt_s: None,
        annotation: None,
        this_host: false,
        mpls: Vec::new(),
        return_hops: None,
        notes: Vec::new(),
    };
    PathResult {
        address: far.to_owned(),
        hops: hops.iter().enumerate().map(hop).collect(),
        ..path()
    }
}

#[test]
fn translation_is_named_on_paths_to_public_addresses_alone() {
    let causes = |far: &str, hops: &[&str]| {
        let found = found(through(far, hops)).into_iter();
        found.map(|finding| finding.cause).collect::<Vec<_>>()
    };
    let home = "192.168.1.1";
    assert_eq!(
        causes("9.9.9.9", &[home, "100.64.3.1", "62.0.0.1"]),
        [Cause::ProviderNat]
    );
    assert_eq!(
        causes("9.9.9.9", &[home, "192.168.0.1", "62.0.0.1"]),
        [Cause::DoubleNat]
    );
    // Both: the provider's explains the private address behind it.
    assert_eq!(
        causes("9.9.9.9", &[home, "10.0.0.1", "100.64.3.1"]),
        [Cause::ProviderNat]
    );
    assert_eq!(causes("9.9.9.9", &[home, "62.0.0.1"]), []);
    assert_eq!(
        causes("10.9.9.9", &[home, "10.0.0.1"]),
        [],
        "a private network"
    );
    assert_eq!(causes("100.70.0.9", &["100.64.0.1"]), [], "an overlay");
    assert_eq!(
        causes("64:ff9b::909:909", &["2001:db8::1"]),
        [Cause::ProviderNat]
    );
}

/// Packets with DSCP 34 and ECT(0) that arrived with these: how many, DSCP, ECN.
fn arrived(of: &[(u64, u8, EcnField)]) -> Vec<ArrivedMarks> {
    let each = of.iter().map(|(packets, dscp, ecn)| ArrivedMarks {
        sent_ecn: Some(EcnField::Ect0),
        dscp: *dscp,
        ecn: *ecn,
        packets: *packets,
    });
    each.collect()
}

/// The same of replies, whose ECN field as sent is unknown.
fn returned(of: &[(u64, u8)]) -> Vec<ArrivedMarks> {
    let each = of.iter().map(|(packets, dscp)| ArrivedMarks {
        sent_ecn: None,
        dscp: *dscp,
        ecn: EcnField::NotEct,
        packets: *packets,
    });
    each.collect()
}

fn between_ends(up: Vec<ArrivedMarks>, down: Vec<ArrivedMarks>) -> PathResult {
    let marks = MarksBetweenEnds {
        dscp: 34,
        sent: 8,
        up,
        down,
    };
    PathResult {
        marks: Some(marks),
        ..path()
    }
}

#[test]
fn marks_that_only_the_ends_see_changed_are_named_with_their_direction() {
    use EcnField::{Ce, Ect0, NotEct};
    let named = |up: &[_], down: &[_]| {
        let found = found(between_ends(arrived(up), returned(down)));
        let each = found.into_iter().map(|f| (f.cause, f.summary));
        each.collect::<Vec<_>>()
    };
    // As sent, marked by a queue, and changed once or twice among many or few.
    assert_eq!(named(&[(8, 34, Ect0)], &[(8, 34)]), []);
    assert_eq!(named(&[(8, 34, Ce)], &[]), []);
    assert_eq!(
        named(&[(4, 34, Ect0), (4, 0, NotEct)], &[(7, 34), (1, 0)]),
        []
    );
    assert_eq!(named(&[(2, 0, NotEct)], &[(2, 0)]), []);
    assert_eq!(
        named(&[(8, 2, Ect0)], &[(8, 34)]),
        [(
            Cause::DscpChanged,
            "The DSCP of packets to 192.0.2.1 is changed on the forward path (up): from 34 to 2 (8 of 8).".to_owned()
        )]
    );
    assert_eq!(
        named(&[(8, 34, Ect0)], &[(1, 34), (3, 0)]),
        [(
            Cause::DscpChanged,
            "The DSCP of packets from 192.0.2.1 is changed on the reverse path (down): from 34 to 0 (3 of 4).".to_owned()
        )]
    );
    assert_eq!(
        named(&[(2, 34, Ce), (5, 34, NotEct)], &[(8, 34)]),
        [(
            Cause::EcnCleared,
            "The ECN field of packets to 192.0.2.1 is changed on the forward path (up): from ECT(0) to Not-ECT (5 of 7)."
                .to_owned()
        )]
    );
}

#[test]
fn what_a_hop_quotes_and_the_far_end_receives_is_one_finding() {
    let mut cleared = between_ends(arrived(&[(8, 34, EcnField::NotEct)]), returned(&[(8, 34)]));
    cleared.alterations = vec![Alteration {
        field: AlteredField::Ecn,
        sent: "ECT(0)".to_owned(),
        seen: "Not-ECT".to_owned(),
        seen_at_ttl: 3,
        intact_at_ttl: Some(2),
    }];
    let [cleared] = found(cleared).try_into().unwrap();
    assert!(
        cleared.summary.contains("behind hop 2"),
        "{}",
        cleared.summary
    );
    let fields: Vec<_> = cleared.evidence.iter().map(|e| e.field.as_str()).collect();
    assert_eq!(
        fields,
        ["result.alterations.0.seen_at_ttl", "result.marks.up.0.ecn"]
    );
}
