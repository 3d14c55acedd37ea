//! Directions that carry nothing, and paths that stop carrying.

use super::*;

#[test]
fn a_direction_that_carries_nothing_is_the_finding() {
    // Small packets pass, nothing was acknowledged, and the send buffer is full all the time.
    let dead = Load {
        bps: 0.0,
        again: 0.0,
        network_ratio: 0.0,
        sndbuf_ratio: 1.0,
        ..HEALTHY
    };
    let (clearance, finding) = Check { up: dead, ..CHECK }.only_finding();
    assert_eq!(clearance, Clearance::Found);
    assert_eq!(
        (finding.cause, finding.place, finding.severity),
        (Cause::NothingCarried, Place::Uplink, Severity::Critical)
    );
    assert!(
        finding.summary.starts_with(
            "Uploads carry nothing: 0 bytes arrived in 15.00 s, while small packets pass"
        ),
        "{}",
        finding.summary
    );
}

/// A check whose far end fell silent 4.7 s into an upload of 8 s; whether probes still came back then.
fn fallen_silent(answered: bool) -> Vec<Measurement> {
    let up = Load {
        seconds: 8.0,
        ..HEALTHY
    };
    let mut measured = Check { up, ..CHECK }.measurements();
    measured.retain(|m| ["m1", "up-up", "latency-up"].contains(&m.id.as_str()));
    for measurement in &mut measured[1..] {
        measurement.ended = Ended::FarEndLost;
    }
    let passes = |t: f64| if t <= 4.7 { 50e6 } else { 0.0 };
    let bps = constant(Unit::BitsPerSecond, 8.0, passes);
    measured[1].series.insert("bps".to_owned(), bps);
    let mut rtt = constant(Unit::Seconds, 8.0, |_| 0.024);
    let lost = rtt.t_s.iter().zip(&mut rtt.values);
    let lost = lost.filter(|(t, _)| **t > 4.7 && !answered);
    lost.for_each(|(_, value)| *value = None);
    measured[2].series.insert("rtt".to_owned(), rtt);
    measured
}

#[test]
fn a_path_that_stops_carrying_is_the_finding_with_what_still_passes() {
    for (answered, place, passes) in [
        (
            true,
            Place::Uplink,
            "while small packets still pass (33 of 33 probes)",
        ),
        (
            false,
            Place::Path,
            "and none of 33 probes came back: the path or the far end is down",
        ),
    ] {
        let (findings, verdict) = judged(&fallen_silent(answered), Scope::Path);
        assert_eq!(findings.len(), 1, "{findings:#?}");
        assert_eq!(verdict.clearance, Some(Clearance::Found));
        assert_eq!(verdict.latency_grade, None);
        let found = &findings[0];
        assert_eq!(
            (found.cause, found.place, found.severity),
            (Cause::NothingCarried, place, Severity::Critical)
        );
        let begins = "The path stopped carrying our packets in the up phase: no payload arrived in its last 3.30 s, ";
        assert!(found.summary.starts_with(begins), "{}", found.summary);
        assert!(found.summary.contains(passes), "{}", found.summary);
        assert_eq!(verdict.headline, found.summary);
    }
}

#[test]
fn a_responder_that_ends_is_no_path_that_stops() {
    let mut measured = fallen_silent(true);
    let bps = constant(Unit::BitsPerSecond, 8.0, |_| 50e6);
    measured[1].series.insert("bps".to_owned(), bps);
    assert_eq!(judged(&measured, Scope::Path).0, []);
    // The time of the phase was over, and only the report is missing.
    measured[1].context = loaded(Phase::Up, 8.0);
    let (findings, _) = judged(&measured, Scope::Path);
    assert_eq!(
        (findings[0].cause, findings[0].place),
        (Cause::NothingCarried, Place::Downlink)
    );
    assert!(
        findings[0].summary.contains("report on it did not"),
        "{findings:?}"
    );
}

#[test]
fn a_short_phase_without_payload_is_not_measured() {
    let dead = Load {
        bps: 0.0,
        again: 0.0,
        seconds: 2.5,
        ..HEALTHY
    };
    let (findings, verdict) = Check { up: dead, ..CHECK }.judged();
    assert_eq!(findings, []);
    assert_eq!(verdict.clearance, Some(Clearance::NotMeasured));
    assert_eq!(verdict.latency_grade, None);
}
