//! Checks that were made in the laboratory, whose truth is known.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::finding::Place;
use plumb_model::run::Run;
use serde_json::Value;

use super::*;
use crate::diagnose;

/// What a Run of `plumb check` in that scenario comes to today. Of its series those are kept that rules
/// read.
fn judged(run: &str) -> (Vec<Finding>, Verdict) {
    let run = Run::from_json(run).unwrap();
    let case = Case::of(&run);
    diagnose(&case, Scope::Path)
}

/// The same Run with measurements changed; `change` gets the kind of each.
fn changed(run: &str, change: impl Fn(&str, &mut Value)) -> Run {
    let mut run: Value = serde_json::from_str(run).unwrap();
    for measurement in run["measurements"].as_array_mut().unwrap() {
        let kind = measurement["kind"].as_str().unwrap().to_owned();
        change(&kind, measurement);
    }
    Run::from_json(&run.to_string()).unwrap()
}

/// Nothing else of note, and no grade, was found.
fn only(run: &str) -> (Clearance, Finding) {
    let (mut findings, verdict) = judged(run);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(verdict.latency_grade, None, "{verdict:?}");
    (verdict.clearance.unwrap(), findings.remove(0))
}

/// 10 Mbit/s up by a policer. Downloads have no limit, and used their share of the budget in 1.7 s, in which
/// the sender waited for its buffer 62 % of the time: that was the verdict once.
#[test]
fn a_policer_is_unexplained_and_no_buffer_is_blamed() {
    let run = include_str!("../../fixtures/policer.json");
    let (clearance, finding) = only(run);
    assert_eq!(clearance, Clearance::Unexplained);
    assert_eq!(
        (finding.cause, finding.place, finding.severity),
        (Cause::Unexplained, Place::Uplink, Severity::Warning)
    );
    assert!(
        finding
            .summary
            .contains("6.1 % of the segments of uploads are retransmitted"),
        "{}",
        finding.summary
    );
}

/// Two thirds of an upload's segments are retransmitted; 36 kbit/s pass of 10 Mbit/s.
#[test]
fn a_duplex_mismatch_is_not_a_loss_of_two_in_a_hundred() {
    let (findings, verdict) = judged(include_str!("../../fixtures/duplex-mismatch.json"));
    assert_ne!(verdict.clearance, Some(Clearance::Cleared));
    assert_eq!(verdict.latency_grade, None);
    let unexplained = findings.iter().find(|f| f.cause == Cause::Unexplained);
    let unexplained = unexplained.unwrap();
    assert_eq!(unexplained.severity, Severity::Warning);
    assert!(
        unexplained
            .summary
            .contains("67 % of the segments of uploads"),
        "{}",
        unexplained.summary
    );
}

/// Packets above 1400 bytes vanish up the path, and downloads used their share in 1.3 s.
#[test]
fn a_black_hole_carries_nothing() {
    let (clearance, finding) = only(include_str!("../../fixtures/mtu-black-hole.json"));
    assert_eq!(clearance, Clearance::Found);
    assert_eq!(
        (finding.cause, finding.place),
        (Cause::NothingCarried, Place::Uplink)
    );
    assert!(
        finding.summary.contains("small packets pass"),
        "{}",
        finding.summary
    );
}

/// 8 Mbit/s that loses 1.5 % of the packets in bursts of five.
#[test]
fn bursts_of_loss_are_no_health() {
    let (findings, verdict) = judged(include_str!("../../fixtures/bursts.json"));
    assert_eq!(verdict.clearance, Some(Clearance::Found), "{verdict:?}");
    assert_eq!(verdict.latency_grade, None);
    assert_eq!(findings[0].cause, Cause::PathLoss);
}

/// FQ-CoDel loses 0.8 % of an upload's segments, which is its way to say that the line is full.
#[test]
fn a_managed_line_is_cleared() {
    let (findings, verdict) = judged(include_str!("../../fixtures/home-cable-managed.json"));
    assert_eq!(findings, []);
    assert_eq!(verdict.clearance, Some(Clearance::Cleared), "{verdict:?}");
    assert_eq!(verdict.latency_grade, Some(Grade::A));
    assert_eq!(
        verdict.headline,
        "No fault found: 90.5 Mbit/s down and 18.0 Mbit/s up, round trips grow by at most 8.1 ms under load, no probe of the idle path was lost (below 1.9 %)."
    );
}

/// The worst finding, and that there is none besides of note.
fn worst(run: &str) -> Finding {
    let (mut findings, verdict) = judged(run);
    assert_eq!(verdict.clearance, Some(Clearance::Found));
    let of_note = findings.iter().filter(|f| f.severity > Severity::Info);
    assert_eq!(of_note.count(), 1, "{findings:#?}");
    findings.remove(0)
}

/// The line is down for 2 s of every 12.
#[test]
fn an_outage_explains_what_is_lost_and_stalls_meanwhile() {
    let found = worst(include_str!("../../fixtures/outage.json"));
    assert_eq!(
        (found.cause, found.severity),
        (Cause::Outage, Severity::Critical)
    );
    let longest = found.evidence[0].value.number().unwrap();
    assert!((longest - 2.0).abs() < 0.15, "{longest}");
}

/// 30 MB pass at 80 Mbit/s, and then 20 Mbit/s.
#[test]
fn a_boost_is_named_with_both_rates() {
    let found = worst(include_str!("../../fixtures/boost.json"));
    assert_eq!(
        (found.cause, found.place),
        (Cause::TokenBucket, Place::Uplink)
    );
    // 1448 of 1500 bytes of each.
    for rate in ["77.2 Mbit/s", "19.3 Mbit/s"] {
        assert!(found.summary.contains(rate), "{}", found.summary);
    }
}

/// The same with a bucket that is empty after 2.8 s: little of that is left where slow start must have ended.
#[test]
fn a_bucket_that_is_soon_empty_is_named() {
    const LEFT_OUT: usize = 13;
    let mut run = Run::from_json(include_str!("../../fixtures/boost.json")).unwrap();
    let upload = run.measurements.iter_mut().find(|measurement| {
        let carried = measurement.outcome.throughput();
        carried.is_some_and(|carried| carried.direction == plumb_model::results::Direction::Up)
    });
    for series in upload.unwrap().series.values_mut() {
        // The fast samples end at the fortieth; the last ones stay as they are.
        if series.values.len() > 100 {
            let lasts = series.values.last().copied().unwrap();
            series.values.drain(20..20 + LEFT_OUT);
            let whole = series.values.len() + LEFT_OUT;
            series.values.resize(whole, lasts);
        }
    }
    let (findings, _) = diagnose(&Case::of(&run), Scope::Path);
    let first = &findings[0];
    assert_eq!(
        (first.cause, first.place),
        (Cause::TokenBucket, Place::Uplink),
        "{}",
        first.summary
    );
    assert!(first.summary.contains("19.3 Mbit/s"), "{}", first.summary);
}

/// 30 and 10 Mbit/s by turns, for 6 s each.
#[test]
fn steps_of_the_rate_are_no_loss() {
    let found = worst(include_str!("../../fixtures/rate-steps.json"));
    assert_eq!(
        (found.cause, found.place),
        (Cause::RateVaries, Place::Uplink)
    );
    assert!(
        found.summary.contains("9.6") && found.summary.contains("28.9"),
        "{}",
        found.summary
    );
}

/// One bit in one of 200 packets down is wrong.
#[test]
fn corruption_is_told_from_loss() {
    let found = worst(include_str!("../../fixtures/corruption.json"));
    assert_eq!(
        (found.cause, found.place),
        (Cause::Corruption, Place::Downlink)
    );
}

/// 40 Mbit/s with a burst of 250 kB, over 90 ms: TCP sends 0.2 % again. Downloads have a queue of 90 ms.
#[test]
fn a_policer_on_a_long_path_is_named() {
    let (findings, _) = judged(include_str!("../../fixtures/policer-long-path.json"));
    let first = &findings[0];
    assert_eq!((first.cause, first.place), (Cause::Policer, Place::Uplink));
    assert!(first.summary.contains("40.1 Mbit/s"), "{}", first.summary);
}

/// 12 kB before 60 Mbit/s: 1.6 ms, over 50 ms.
#[test]
fn a_queue_too_short_for_the_path_is_named_with_its_length() {
    let found = worst(include_str!("../../fixtures/shallow-queue.json"));
    assert_eq!(
        (found.cause, found.place),
        (Cause::ShallowQueue, Place::Downlink)
    );
    assert!(found.summary.contains("holds 1.5 ms"), "{}", found.summary);
}

/// Bursts of five packets on the path down, 1.5 % in all. Uploads have a queue of 80 ms.
#[test]
fn bursts_of_loss_are_told_from_single_losses() {
    let (findings, _) = judged(include_str!("../../fixtures/bursts-paced.json"));
    let bursts = findings
        .iter()
        .find(|f| f.cause == Cause::PathLoss)
        .unwrap();
    assert_eq!(bursts.place, Place::Downlink);
    assert!(
        bursts.summary.contains("in bursts of"),
        "{}",
        bursts.summary
    );
    let single = worst(include_str!("../../fixtures/loss-at-random.json"));
    assert_eq!(
        (single.cause, single.place),
        (Cause::PathLoss, Place::Uplink)
    );
    assert!(
        single.summary.contains("lost singly, not in bursts"),
        "{}",
        single.summary
    );
}

/// 50 Mbit/s down and 500 kbit/s up with a queue of a second: the acknowledgements of a download fill the upload.
#[test]
fn a_download_that_waits_for_its_acknowledgements_is_no_queue_of_the_download() {
    let (findings, _) = judged(include_str!("../../fixtures/ack-starvation.json"));
    let found = |cause| findings.iter().find(|finding| finding.cause == cause);
    let starved = found(Cause::AckStarvation).unwrap();
    assert_eq!(
        (starved.place, starved.severity),
        (Place::Uplink, Severity::Critical)
    );
    assert!(
        starved.summary.contains("Downloads wait for their own"),
        "{}",
        starved.summary
    );
    assert_eq!(found(Cause::BufferbloatUp).unwrap().place, Place::Uplink);
    assert!(found(Cause::BufferbloatDown).is_none(), "{findings:#?}");
    assert!(found(Cause::RateVaries).is_none(), "{findings:#?}");
    // Without a clock that shows the direction it looks like one.
    let text = include_str!("../../fixtures/ack-starvation.json");
    let run = changed(text, |kind, measurement| {
        if kind == "loaded_latency" {
            measurement["result"]["one_way"] = Value::Null;
        }
    });
    let (findings, _) = diagnose(&Case::of(&run), Scope::Path);
    assert!(findings.iter().all(|f| f.cause != Cause::AckStarvation));
}

/// Datagrams at 80 % of an upload's rate waited nowhere, or others' packets kept them waiting.
#[test]
fn datagrams_below_the_rate_show_whose_queue_it_is() {
    let text = include_str!("../../fixtures/ack-starvation.json");
    let of_upload = |run: &Run| {
        let (findings, _) = diagnose(&Case::of(run), Scope::Path);
        let in_it = findings.into_iter().filter(|f| f.place == Place::Uplink);
        in_it.map(|f| f.cause).collect::<Vec<_>>()
    };
    let found = of_upload(&changed(text, |_, _| ()));
    assert!(found.contains(&Cause::BufferbloatUp), "{found:?}");
    let run = changed(text, |_, measurement| {
        if measurement["context"]["experiment"] == "paced" {
            measurement["result"]["standing_s"] = 0.4.into();
        }
    });
    let found = of_upload(&run);
    assert!(found.contains(&Cause::CrossTraffic), "{found:?}");
    assert!(!found.contains(&Cause::BufferbloatUp), "{found:?}");
}

/// What connections that share one queue lose is alike; on one of several paths it is not.
#[test]
fn streams_that_differ_in_nothing_but_their_ports_show_a_bad_path() {
    let found = |streams: [(u64, f64); 4]| {
        let text = include_str!("../../fixtures/rate-steps.json");
        let run = changed(text, |kind, measurement| {
            if kind != "throughput" {
                return;
            }
            let duration_s = measurement["duration_s"].as_f64().unwrap();
            for (number, (retransmits, bps)) in streams.into_iter().enumerate() {
                let stream = &mut measurement["result"]["streams"][number];
                stream["retransmits"] = retransmits.into();
                stream["bps"] = bps.into();
                stream["bytes"] = ((bps * duration_s / 8.0) as u64).into();
            }
        });
        let (findings, _) = diagnose(&Case::of(&run), Scope::Path);
        findings.iter().any(|f| f.cause == Cause::UnequalPaths)
    };
    assert!(found([(5, 8e6), (2, 9e6), (60, 1e6), (9, 8.5e6)]));
    // Alike, unlucky, or too few to decide.
    assert!(!found([(60, 2e6), (50, 2.2e6), (60, 1.5e6), (70, 2e6)]));
    assert!(!found([(90, 8e6), (80, 9e6), (60, 1e6), (99, 8.5e6)]));
    assert!(!found([(0, 8e6), (0, 9e6), (9, 0.1e6), (0, 8.5e6)]));
}

/// What TCP carries over a port is 1448 of 1538 bytes of its speed.
#[test]
fn the_speed_of_a_port_is_recognised() {
    let found = |bps: f64| {
        let text = include_str!("../../fixtures/home-cable-managed.json");
        let run = changed(text, |kind, measurement| {
            if kind == "throughput" {
                measurement["result"]["steady_bps"] = bps.into();
            }
        });
        let (findings, _) = diagnose(&Case::of(&run), Scope::Path);
        let port = findings.iter().find(|f| f.cause == Cause::PortSpeed);
        port.map(|finding| (finding.severity, finding.summary.contains("100 Mbit/s")))
    };
    assert_eq!(found(94.1e6), Some((Severity::Info, true)));
    assert_eq!([found(96.5e6), found(90e6), found(500e6)], [None; 3]);
}

/// A shaper is proposed below what the line kept, and none where no home's router stands before the queue.
#[test]
fn advice_follows_the_line() {
    let text = include_str!("../../fixtures/ack-starvation.json");
    let advice = |run: &Run| {
        let (findings, _) = diagnose(&Case::of(run), Scope::Path);
        let bloat = findings
            .into_iter()
            .find(|f| f.cause == Cause::BufferbloatUp);
        bloat.unwrap().fixes.remove(0)
    };
    let of_home = advice(&changed(text, |_, _| ()));
    assert!(of_home.action.is_some(), "{of_home:?}");
    let of_ocean = advice(&changed(text, |kind, measurement| match kind {
        "loaded_latency" => measurement["result"]["idle_rtt_s"]["min"] = 0.15.into(),
        "throughput" => measurement["result"]["steady_bps"] = 900e6.into(),
        _ => (),
    }));
    assert!(
        of_ocean.action.is_none() && of_ocean.summary.contains("BBR"),
        "{of_ocean:?}"
    );
}

/// Four downloads of another machine keep 150 ms of 50 Mbit/s filled before and beside ours.
#[test]
fn others_that_fill_the_line_are_no_queue_of_ours() {
    let (findings, _) = judged(include_str!("../../fixtures/cross-traffic.json"));
    let down = |finding: &&Finding| finding.place == Place::Downlink;
    let of_download: Vec<_> = findings.iter().filter(down).collect();
    assert_eq!(of_download.len(), 1, "{findings:#?}");
    let others = of_download[0];
    assert_eq!(
        (others.cause, others.severity),
        (Cause::CrossTraffic, Severity::Warning)
    );
    assert!(others.summary.contains("our share"), "{}", others.summary);
    assert!(findings.iter().all(|f| f.cause != Cause::PathLoss));
    // Delays that are independent of each other are no queue.
    let mut run = Run::from_json(include_str!("../../fixtures/cross-traffic.json")).unwrap();
    for measurement in &mut run.measurements {
        if let Some(series) = measurement.series.get_mut("rtt") {
            for (at, value) in series.values.iter_mut().enumerate() {
                *value = Some(0.020 + 0.020 * (at * 7 % 10) as f64);
            }
        }
    }
    let (findings, _) = diagnose(&Case::of(&run), Scope::Path);
    let others = findings.iter().find(|f| f.cause == Cause::CrossTraffic);
    let evidence = others.map_or(0, |others| others.evidence.len());
    assert!(evidence <= 1, "{others:?}");
}

/// The same line, whose queue holds datagrams up for longer and shorter times: it is managed, and drops too early.
#[test]
fn a_queue_that_is_managed_is_not_short() {
    let text = include_str!("../../fixtures/shallow-queue.json");
    let run = changed(text, |_, measurement| {
        if measurement["context"]["experiment"] == "overload" {
            let waits = &mut measurement["result"]["receiver"]["pdv_s"];
            (waits["p75"], waits["p95"]) = (0.010.into(), 0.030.into());
        }
    });
    let (findings, _) = diagnose(&Case::of(&run), Scope::Path);
    let causes: Vec<_> = findings.iter().map(|finding| finding.cause).collect();
    assert!(causes.contains(&Cause::QueueTargetLow), "{causes:?}");
    assert!(!causes.contains(&Cause::ShallowQueue), "{causes:?}");
}

/// An ADSL line behind a cable whose ends disagree about duplex: TCP loses 1.6 % of a download's segments, and probes beside it 13 %,
/// all on their way up, where small datagrams alone lose nothing.
#[test]
fn a_duplex_mismatch_before_a_slow_line_costs_what_is_small() {
    let run = include_str!("../../fixtures/duplex-mismatch-slow-line.json");
    let (findings, _) = judged(run);
    let causes: Vec<Cause> = findings.iter().map(|f| f.cause).collect();
    assert_eq!(causes, [Cause::DuplexMismatch]);
    // A box that takes no more packets loses small ones by themselves, too.
    let limited = changed(run, |kind, measurement| {
        let is_small = measurement["context"]["experiment"] == "small-packets";
        if let ("udp", true) = (kind, is_small) {
            let receiver = &mut measurement["result"]["receiver"];
            let sent = receiver["received"].as_u64().unwrap();
            receiver["received"] = (sent / 2).into();
            receiver["lost"] = (sent - sent / 2).into();
            receiver["lost_on_path"] = receiver["lost"].clone();
            receiver["loss_ratio"] = 0.5.into();
        }
    });
    let causes = |run: &Run| {
        let (findings, _) = diagnose(&Case::of(run), Scope::Path);
        findings.into_iter().map(|f| f.cause).collect::<Vec<_>>()
    };
    assert!(!causes(&limited).contains(&Cause::DuplexMismatch));
}

/// Another customer's download fills the interconnection all the while: before the load probes wait in it 71 ms, of which their own
/// fastest shows 22 ms, and the load adds 12 ms.
#[test]
fn a_queue_that_stood_before_the_load_is_not_the_loads() {
    let (findings, _) = judged(include_str!(
        "../../fixtures/congested-interconnection.json"
    ));
    let causes: Vec<Cause> = findings.iter().map(|f| f.cause).collect();
    assert_eq!(causes, [Cause::CongestedInterconnection]);
    assert!(
        findings[0].summary.contains("packets wait 71."),
        "{}",
        findings[0].summary
    );
}

/// A radio holds all packets for 1.06 s of every 4.7, before a line whose queue is managed well.
#[test]
fn what_is_released_at_once_is_no_fault_of_the_queue() {
    let (findings, _) = judged(include_str!("../../fixtures/handover-slow-line.json"));
    let causes: Vec<Cause> = findings.iter().map(|f| f.cause).collect();
    assert_eq!(causes, [Cause::Handover]);
}
