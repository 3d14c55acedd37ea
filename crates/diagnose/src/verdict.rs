//! The one sentence that a check ends in.

use plumb_model::finding::{Finding, Severity, Verdict};
use plumb_model::grade::Grade;
use plumb_model::results::{Direction, Outcome};
use plumb_model::units::{human_seconds, si};

use crate::Case;

pub(crate) fn verdict(case: &Case<'_>, findings: &[Finding]) -> Verdict {
    let grades = case.measurements.iter().filter_map(|m| match &m.outcome {
        Outcome::LoadedLatency(result) => Some(result.grade),
        _ => None,
    });
    // A phase that lost too many probes for a grade, or all, may be worse than every other, except
    // where nothing is worse.
    let unanswered = [Direction::Up, Direction::Down]
        .into_iter()
        .any(|direction| {
            case.throughput_alone(direction).is_some() && case.loaded_latency(direction).is_none()
        });
    let ungraded = unanswered || grades.clone().any(|grade| grade.is_none());
    let grade = grades
        .flatten()
        .max()
        .filter(|worst| !ungraded || *worst == Grade::F);
    let headline = match findings.first() {
        Some(worst) if worst.severity > Severity::Info => worst.summary.clone(),
        _ => healthy(case, grade),
    };
    Verdict { headline, grade }
}

fn healthy(case: &Case<'_>, grade: Option<Grade>) -> String {
    let rate = |direction| {
        case.throughput_alone(direction)
            .map(|(_, t)| si(t.steady_bps.unwrap_or(t.bps), "bit/s"))
    };
    let both_told = [Direction::Up, Direction::Down]
        .into_iter()
        .all(|direction| case.loaded_latency(direction).is_some());
    if !both_told {
        return "Nothing was found that holds this path back, as far as it could be measured: see the notes.".to_owned();
    }
    let worst_increase = case
        .measurements
        .iter()
        .filter_map(|m| match &m.outcome {
            Outcome::LoadedLatency(result) => Some(result.increase_s.p95),
            _ => None,
        })
        .reduce(f64::max);
    match (
        rate(Direction::Down),
        rate(Direction::Up),
        worst_increase,
        grade,
    ) {
        (Some(down), Some(up), Some(increase), Some(grade)) => format!(
            "Nothing holds this path back: {down} down, {up} up, and round trips grow by no more than {} under load (grade {}).",
            human_seconds(increase),
            grade.name()
        ),
        _ => "Nothing was found that holds this path back, as far as it could be measured."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::testing::measurement;
    use plumb_model::distribution::Distribution;
    use plumb_model::run::{HostFacts, Measurement};
    use serde_json::json;

    fn throughput(direction: &str) -> Measurement {
        let result = json!({
            "direction": direction, "protocol": "tcp", "bps": 1e7, "steady_bps": 1e7, "bytes": 10_000_000,
            "cc": "cubic", "streams": [],
            "tcp": {
                "retransmits": 0, "min_rtt_s": 0.02, "max_srtt_s": 0.03, "mss_bytes": 1448,
                "send_buffer_bytes": null, "max_in_flight_bytes": 50_000,
                "limited": { "rwnd_ratio": 0.0, "sndbuf_ratio": 0.0, "app_ratio": 0.0, "network_ratio": 1.0 },
            },
            "tcp_receiver": { "receive_buffer_bytes": null, "max_window_bytes": null },
            "cpu": { "local_ratio": 0.1, "remote_ratio": null },
        });
        measurement(Outcome::Throughput(serde_json::from_value(result).unwrap()))
    }

    fn loaded(direction: &str, grade: Option<&str>) -> Measurement {
        let spread = Distribution::of([0.02; 100]);
        let result = json!({
            "direction": direction, "protocol": "udp", "idle_rtt_s": spread, "rtt_s": spread,
            "increase_s": spread, "loss_ratio": 0.0, "grade": grade, "grade_table": null,
        });
        measurement(Outcome::LoadedLatency(
            serde_json::from_value(result).unwrap(),
        ))
    }

    #[test]
    fn a_phase_that_tells_nothing_is_not_the_best() {
        let grade = |measurements: &[Measurement]| {
            let case = Case {
                measurements,
                local: &HostFacts::default(),
                far: None,
            };
            verdict(&case, &[]).grade
        };
        let [up, down] = ["up", "down"].map(throughput);
        let a = |direction| loaded(direction, Some("A"));
        let both = [up.clone(), a("up"), down.clone(), a("down")];
        assert_eq!(grade(&both), Some(Grade::A));
        let some_lost = [up.clone(), loaded("up", None), down.clone(), a("down")];
        assert_eq!(grade(&some_lost), None);
        let all_lost = [up.clone(), down.clone(), a("down")];
        assert_eq!(grade(&all_lost), None);
        // Nothing is worse than that.
        let worst = [up, down, loaded("down", Some("F"))];
        assert_eq!(grade(&worst), Some(Grade::F));
    }
}
