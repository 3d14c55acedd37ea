//! Whether what a finding rests on was measured again in a later Run: only then is one that is missing there gone. A Run
//! that was interrupted, or asked for less, says nothing of the rest.

use plumb_model::context::Phase;
use plumb_model::finding::{Evidence, Finding};
use plumb_model::json;
use plumb_model::results::Direction;
use plumb_model::run::{Measurement, Run};
use serde_json::Value;

use crate::evidence::{is_search_of_sizes, streamed};
use crate::lengths::QUEUE_S;
use crate::{Case, causes, experiment, reading};

/// A load shows again what it did before where it lasted long enough for the largest queue, or this share of the time that
/// it lasted before.
const AS_LONG_RATIO: f64 = 0.9;

/// So large a share of the probes sent before shows their loss again.
const PROBES_RATIO: f64 = 0.5;

/// A load fills the queue that it filled before where it carries this share of its rate again: a shaper takes less from
/// it, and a path that loses packets more.
const RATE_RATIO: f64 = 0.8;

/// Whether a later Run shows what a finding rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// All of it was measured again.
    Measured,
    /// Latency was measured beside a load that carried too little to fill the queue.
    RateTooLow,
    NotMeasured,
}

/// Whether everything that a finding of `before` rests on was measured in `after`, too.
pub fn is_measured_again(finding: &Finding, before: &Run, after: &Run) -> bool {
    measured_again(finding, before, after) == Again::Measured
}

/// The same, and what keeps it from being so.
pub fn measured_again(finding: &Finding, before: &Run, after: &Run) -> Again {
    let was_measured = |evidence: &&Evidence| before.measurement(&evidence.measurement).is_some();
    let evidence = finding.evidence.iter().filter(was_measured);
    let each = evidence.filter_map(|evidence| {
        let was = before.measurement(&evidence.measurement)?;
        let mut all = after.measurements.iter();
        let again =
            all.any(|is| is_repeated(is, was, evidence, after)) || is_not_asked_for(was, after);
        Some(match again {
            false => Again::NotMeasured,
            true if !fills_the_queue(was, before, after) => Again::RateTooLow,
            true => Again::Measured,
        })
    });
    let mut worst = Again::Measured;
    for again in each {
        worst = match (worst, again) {
            (Again::NotMeasured, _) | (_, Again::NotMeasured) => Again::NotMeasured,
            (Again::RateTooLow, _) | (_, Again::RateTooLow) => Again::RateTooLow,
            _ => Again::Measured,
        };
    }
    worst
}

/// Whether the load beside which latency was measured carries about as much again; true of what is no latency under load.
fn fills_the_queue(was: &Measurement, before: &Run, after: &Run) -> bool {
    let mut all = Case::of(before).every_loaded();
    let Some(latency) = all.find(|loaded| loaded.measurement.id == was.id) else {
        return true;
    };
    let latency = latency.result;
    let phase = was.context.phase;
    let rate = |run: &Run, direction: Direction| {
        let of_phase = run.measurements.iter().filter(|m| m.context.phase == phase);
        let mut carried = of_phase.filter_map(|m| m.outcome.throughput());
        carried.find_map(|carried| (carried.direction == direction).then_some(carried.bps))
    };
    let directions = [Direction::Up, Direction::Down].into_iter();
    let mut loaded = directions.filter(|one| [*one, Direction::Both].contains(&latency.direction));
    loaded.all(|direction| {
        let rates = rate(before, direction).zip(rate(after, direction));
        rates.is_none_or(|(before, after)| after >= RATE_RATIO * before)
    })
}

/// Whether `is` shows what the evidence names of `was`.
fn is_repeated(is: &Measurement, was: &Measurement, evidence: &Evidence, after: &Run) -> bool {
    let (again, document) = (document(is), document(was));
    // In a list, as of the interfaces of a host, it is unknown which elements correspond.
    let was_there = field(&document, evidence).is_some();
    is.context.phase == was.context.phase
        && reading::experiment(is) == reading::experiment(was)
        && is_alike(&again, &document)
        && (!was_there || field(&again, evidence).is_some())
        && has_probes(&again, &document)
        && (!is_loaded(was) || is_as_long(is, was) && carries(after, was.context.phase))
}

fn is_loaded(measurement: &Measurement) -> bool {
    let phase = measurement.context.phase;
    let of_load = matches!(phase, Some(Phase::Up | Phase::Down | Phase::Both));
    of_load || reading::asked_s(measurement).is_some()
}

fn is_as_long(is: &Measurement, was: &Measurement) -> bool {
    is.duration_s >= QUEUE_S.min(AS_LONG_RATIO * was.duration_s)
}

/// Whether every direction that was loaded in a phase carried something: a queue that nothing fills is not gone.
fn carries(run: &Run, phase: Option<Phase>) -> bool {
    let mut of_phase = run.measurements.iter().filter(|m| m.context.phase == phase);
    of_phase.all(|measurement| {
        let carried = measurement.outcome.throughput();
        carried.is_none_or(|carried| carried.bytes > 0)
    })
}

/// Kind and result, as they are saved.
fn document(measurement: &Measurement) -> Value {
    json::to_value(&measurement.outcome).unwrap_or_default()
}

/// Whether two results are of the same kind, and where they have one of the same direction and protocol.
fn is_alike(a: &Value, b: &Value) -> bool {
    ["/kind", "/result/direction", "/result/protocol"]
        .into_iter()
        .all(|name| a.pointer(name) == b.pointer(name))
}

/// Whether enough probes were sent again, where some were sent; on a path, to its first hop.
fn has_probes(again: &Value, before: &Value) -> bool {
    ["/result/sent", "/result/hops/0/sent"]
        .into_iter()
        .all(|name| {
            let sent = |document: &Value| document.pointer(name).and_then(Value::as_f64);
            let before = sent(before).unwrap_or(0.0);
            sent(again).unwrap_or(0.0) >= PROBES_RATIO * before
        })
}

/// What the evidence names, where it is there.
fn field<'a>(document: &'a Value, evidence: &Evidence) -> Option<&'a Value> {
    let mut names = evidence.field.split('.');
    let found = names.try_fold(document, |value, name| value.get(name));
    found.filter(|value| !value.is_null())
}

/// Whether `was` is an experiment that nothing in `after` asks for any more: loads that were long enough fill packets and
/// the path there, and leave no sign.
fn is_not_asked_for(was: &Measurement, after: &Run) -> bool {
    let directions = match streamed(was) {
        Some((_, direction)) => vec![direction],
        None if is_search_of_sizes(was) => vec![Direction::Up, Direction::Down],
        None => return false,
    };
    let case = Case {
        measurements: &after.measurements,
        local: &after.local.host,
        far: after
            .target
            .as_ref()
            .and_then(|target| target.host.as_ref()),
        asked: None,
        log: None,
    };
    let left = causes::left(&case, &after.findings);
    directions.into_iter().all(|direction| {
        let mut signs = left.iter();
        case.full_load(direction).is_some() && !signs.any(|sign| experiment::asks(sign, direction))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plumb_model::context::Experiment;
    use plumb_model::finding::{Cause, Place};
    use plumb_model::results::Outcome;
    use plumb_model::results::mtu::MtuResult;
    use serde_json::json;

    use super::*;
    use crate::experiment::tests::{lost_above, made};
    use crate::experiment::{Wanted, wanted};
    use crate::testing::measurement;
    use crate::{Scope, diagnose};

    fn case(run: &Run) -> Case<'_> {
        Case {
            measurements: &run.measurements,
            local: &run.local.host,
            far: None,
            asked: None,
            log: None,
        }
    }

    /// With what is found in it today.
    fn judged(mut run: Run) -> Run {
        run.findings = diagnose(&case(&run), Scope::Path).0;
        run
    }

    /// A saved Run with the experiments that it asks for, which lose what is above so many times the rate of TCP.
    fn conducted(text: &str, times: f64) -> Run {
        let mut run = Run::from_json(text).unwrap();
        while let Some(Wanted::Stream(stream)) = wanted(&case(&run), true) {
            let lost = match stream.experiment {
                Experiment::Overload => lost_above(&run, stream, times),
                _ => 0.0,
            };
            made(&mut run, stream, 2000, lost, 0.0001);
        }
        judged(run)
    }

    fn healthy() -> Run {
        let run = conducted(
            include_str!("../fixtures/home-cable-managed.json"),
            f64::MAX,
        );
        assert_eq!(run.findings, []);
        run
    }

    fn is_gone(cause: Cause, before: &Run, after: &Run) -> bool {
        let finding = before.findings.iter().find(|f| f.cause == cause).unwrap();
        is_measured_again(finding, before, after)
    }

    /// A healthy Run whose measurements in one direction's phase are changed, and judged again.
    fn with_phase(phase: Phase, change: fn(&mut Measurement)) -> Run {
        let mut run = healthy();
        let of_phase = |m: &&mut Measurement| m.context.phase == Some(phase);
        run.measurements
            .iter_mut()
            .filter(of_phase)
            .for_each(change);
        judged(run)
    }

    #[test]
    fn what_experiments_found_is_gone_where_nothing_asks_for_them_any_more() {
        let policer = conducted(include_str!("../fixtures/policer.json"), 1.0);
        let duplex = conducted(include_str!("../fixtures/duplex-mismatch.json"), f64::MAX);
        let short = |m: &mut Measurement| m.duration_s = 3.0;
        let losing = |m: &mut Measurement| {
            m.series.remove("retransmits");
            if let Outcome::Throughput(result) = &mut m.outcome {
                result.tcp.retransmits = result.bytes / 1448;
            }
        };
        for (cause, before, phase) in [
            (Cause::Policer, &policer, Phase::Up),
            (Cause::DuplexMismatch, &duplex, Phase::Down),
        ] {
            assert!(is_gone(cause, before, &healthy()), "{cause:?}");
            assert!(
                !is_gone(cause, before, &with_phase(phase, short)),
                "{cause:?}"
            );
            // Something still loses segments, and no experiment says what.
            assert!(
                !is_gone(cause, before, &with_phase(phase, losing)),
                "{cause:?}"
            );
        }
        assert!(is_gone(
            Cause::Policer,
            &policer,
            &with_phase(Phase::Down, short)
        ));
    }

    #[test]
    fn a_black_hole_is_gone_where_both_directions_carry_full_packets() {
        let mut before = healthy();
        let mtu: MtuResult = serde_json::from_value(json!({
            "address": "192.0.2.1", "path_mtu_bytes": 1400, "path_mtu_at_least": false, "interface_mtu_bytes": 1500,
            "largest_tried_bytes": 1500, "partial": false, "method": "probed", "direction": "round_trip", "hops": [],
            "black_hole_after": 3, "sent": 40, "mss": null,
            "tcp": { "mtu_probing": 0, "base_mss_bytes": null, "min_pmtu_bytes": null, "known_mtu_bytes": null }
        }))
        .unwrap();
        let mut sizes = measurement(Outcome::Mtu(Box::new(mtu)));
        sizes.id = "sizes".to_owned();
        before.measurements.push(sizes);
        let before = judged(before);
        assert!(is_gone(Cause::PmtudBlackHole, &before, &healthy()));
        let nothing = |m: &mut Measurement| {
            if let Outcome::Throughput(result) = &mut m.outcome {
                (result.bytes, result.bps, result.steady_bps) = (0, 0.0, Some(0.0));
            }
        };
        let dead = with_phase(Phase::Down, nothing);
        assert!(!is_gone(Cause::PmtudBlackHole, &before, &dead));
    }

    #[test]
    fn loss_of_the_idle_path_is_gone_where_as_many_probes_were_sent() {
        let probes = |sent: u64, lost: u64| {
            let mut run = healthy();
            for measurement in &mut run.measurements {
                if let Outcome::Ping(ping) = &mut measurement.outcome {
                    (ping.sent, ping.received) = (sent, sent - lost);
                }
            }
            judged(run)
        };
        let gone = |sent| is_gone(Cause::PathLoss, &probes(250, 7), &probes(sent, 0));
        assert_eq!([20, 124, 125, 250].map(gone), [false, false, true, true]);
    }

    #[test]
    fn a_queue_is_gone_where_a_load_had_as_long_to_fill_it() {
        let lasting = |seconds: f64| {
            let mut run = healthy();
            let loaded = |m: &&mut Measurement| m.context.load.is_some();
            let loads = run.measurements.iter_mut().filter(loaded);
            loads.for_each(|measurement| measurement.duration_s = seconds);
            run
        };
        let found = |before: &Run| {
            let latency = |m: &&Measurement| {
                matches!(m.outcome, Outcome::LoadedLatency(_)) && m.context.phase == Some(Phase::Up)
            };
            let latency = before.measurements.iter().find(latency).unwrap();
            let rests_on = crate::evidence::fact(latency, "increase_s.p95", 0.7, "", 0.06);
            Finding {
                cause: Cause::BufferbloatUp,
                place: Place::Uplink,
                severity: plumb_model::finding::Severity::Critical,
                confidence: 0.9,
                matters_for: Vec::new(),
                summary: String::new(),
                evidence: vec![rests_on],
                fixes: Vec::new(),
                kb: String::new(),
            }
        };
        let gone = |before_s, after_s| {
            let before = lasting(before_s);
            is_measured_again(&found(&before), &before, &lasting(after_s))
        };
        // A path that loses packets carries too little to fill it.
        let (before, mut after) = (lasting(15.0), lasting(15.0));
        let finding = found(&before);
        for measurement in &mut after.measurements {
            if let Outcome::Throughput(result) = &mut measurement.outcome {
                result.bps *= 0.37;
            }
        }
        assert_eq!(measured_again(&finding, &before, &after), Again::RateTooLow);
        assert!(!gone(15.0, 8.0));
        assert!(gone(15.0, 14.0) && gone(60.0, 15.0) && gone(6.0, 5.9));
    }
}
