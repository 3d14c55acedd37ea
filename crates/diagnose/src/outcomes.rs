//! How applications fare on a path, by Quality of Outcome (draft-ietf-ippm-qoo): each has a row of what is optimal and
//! what is unacceptable, and its score is the worst of latency, loss and rate.
//!
//! The draft standardises no thresholds; each row names the source of its own.

use std::cmp::Ordering;

use plumb_model::context::Phase;
use plumb_model::distribution::Distribution;
use plumb_model::goal::Purpose;
use plumb_model::results::Direction;
use plumb_model::run::Run;

use crate::Case;

/// What an application needs of a path.
pub struct Requirement {
    pub application: Purpose,
    /// Round trip in seconds that is optimal, and from which on it is unacceptable; `None` where a buffer hides it.
    pub rtt_s: Option<(f64, f64)>,
    /// The same of the share of packets lost.
    pub loss_ratio: Option<(f64, f64)>,
    /// The least rate towards this host, and away from it, in bit/s; all or nothing.
    pub down_bps: f64,
    pub up_bps: f64,
    /// Where the numbers come from.
    pub source: &'static str,
}

/// One row for each application; the draft names none.
pub const REQUIREMENTS: [Requirement; 4] = [
    Requirement {
        application: Purpose::Call,
        rtt_s: Some((0.2, 0.7)),
        loss_ratio: Some((0.01, 0.03)),
        down_bps: 1.5e6,
        up_bps: 1.5e6,
        source: "ITU-T G.114 (150 and 400 ms from mouth to ear) less 50 ms of codec (G.1010), twice; loss of \
                 Microsoft's network requirements for Teams (1 %) and G.1010, table I.1 (3 %); Teams' rate of a video call",
    },
    Requirement {
        application: Purpose::Game,
        rtt_s: Some((0.04, 0.08)),
        loss_ratio: Some((0.01, 0.05)),
        down_bps: 15e6,
        up_bps: 0.5e6,
        source: "NVIDIA's requirements for GeForce NOW (40 ms recommended, 80 ms needed, 15 Mbit/s for 720p at 60 \
                 frames/s); loss of the worked example of draft-ietf-ippm-qoo",
    },
    Requirement {
        application: Purpose::Video,
        rtt_s: None,
        loss_ratio: None,
        down_bps: 5e6,
        up_bps: 0.0,
        source: "Netflix's recommended speed for 1080p (5 Mbit/s); delay and loss are hidden by its buffer",
    },
    Requirement {
        application: Purpose::Web,
        rtt_s: Some((0.1, 1.0)),
        loss_ratio: None,
        down_bps: 2e6,
        up_bps: 0.0,
        source: "Nielsen 1993 (1 s keeps the flow of thought, 10 s the attention) over the ten round trips of a page; \
                 2.5 MB of a page (HTTP Archive) within 10 s",
    },
];

/// How an application fares.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub application: Purpose,
    pub fares: Fares,
}

/// What is known of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Fares {
    Known {
        /// 0 is unacceptable, 1 optimal.
        score: f64,
        limit: Limit,
    },
    /// What the path carries in these directions was not measured, and the application needs it.
    NotMeasured(Vec<Direction>),
}

/// Which round trip is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Percentile {
    /// That within which 95 of 100 packets are back.
    P95,
    /// The same where more than 5 of 100 are lost: those have to be sent again.
    P95SentAgain,
    /// The median, where there were too few probes for the other.
    Median,
}

/// What sets the score: the worst of all.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    Latency {
        /// What loaded the path in the measurement with the worst score.
        phase: Phase,
        percentile: Percentile,
        rtt_s: f64,
        optimal_s: f64,
        worst_s: f64,
    },
    Loss {
        phase: Phase,
        ratio: f64,
        optimal: f64,
        worst: f64,
    },
    Rate {
        direction: Direction,
        bps: f64,
        needed_bps: f64,
    },
}

/// What a lost packet takes longer at least, in seconds: the retransmission timeout that a connection begins with (RFC 6298,
/// section 2.1), and a page opens several.
const SENT_AGAIN_S: f64 = 1.0;

/// Share of packets beyond the 95th percentile.
const BEYOND_P95: f64 = 0.05;

/// So many samples lie beyond a percentile before it is one: fewer are chance.
const BEYOND: f64 = 10.0;

/// The 95th percentile of all packets, as far as the samples carry it.
fn percentile(rtt: &Distribution, lost_ratio: f64) -> (f64, Percentile) {
    if lost_ratio > BEYOND_P95 {
        return (rtt.p50 + SENT_AGAIN_S, Percentile::P95SentAgain);
    }
    match rtt.count as f64 * 0.05 >= BEYOND {
        true => (rtt.p95, Percentile::P95),
        false => (rtt.p50, Percentile::Median),
    }
}

/// What a value is worth between what is optimal, 1, and what is unacceptable, 0; beyond them in proportion.
fn worth(value: f64, (optimal, worst): (f64, f64)) -> f64 {
    1.0 - (value - optimal) / (worst - optimal)
}

/// The score of what it is worth.
fn score(worth: f64) -> f64 {
    worth.clamp(0.0, 1.0)
}

/// Which is worse: among those that are unacceptable the one that is farthest beyond it.
fn worse(a: f64, b: f64) -> Ordering {
    let beyond = a.min(0.0).total_cmp(&b.min(0.0));
    beyond.then(score(a).total_cmp(&score(b)))
}

/// How each application fares, as far as the Run shows it, always the same applications; none where neither round trips
/// nor a load were measured. What is not measured limits nothing, so that the idle path alone flatters.
pub fn outcomes(run: &Run) -> Vec<Outcome> {
    let case = Case::of(run);
    let answered = case.idle().is_some_and(|idle| idle.result.rtt_s.is_some());
    if !answered && !case.carried_any() {
        return Vec::new();
    }
    REQUIREMENTS.iter().map(|row| outcome(&case, row)).collect()
}

fn outcome(case: &Case<'_>, row: &Requirement) -> Outcome {
    let idle = case.idle().and_then(|idle| {
        let lost = idle.lost() as f64 / idle.sent().max(1) as f64;
        Some((Phase::Idle, idle.result.rtt_s?, lost))
    });
    let loads = case.every_loaded().filter(|loaded| loaded.shows_queue());
    let loads = loads.map(|loaded| {
        let result = loaded.result;
        (result.direction.into(), result.rtt_s, result.loss_ratio)
    });
    let seen: Vec<(Phase, Distribution, f64)> = idle.into_iter().chain(loads).collect();
    let mut limits: Vec<(f64, Limit)> = Vec::new();
    let mut unknown = Vec::new();
    let loaded = case.carried_any();
    for (direction, needed_bps) in [(Direction::Down, row.down_bps), (Direction::Up, row.up_bps)] {
        if needed_bps <= 0.0 {
            continue;
        }
        let carried = case.carried_alone(direction);
        let nothing = carried.filter(|carried| carried.is_nothing(case));
        let Some(bps) = nothing
            .map(|_| 0.0)
            .or_else(|| Some(case.full_load(direction)?.bps()))
        else {
            unknown.push(direction);
            continue;
        };
        let worth = match bps >= needed_bps {
            true => 1.0,
            false => bps / needed_bps - 1.0,
        };
        let limit = Limit::Rate {
            direction,
            bps,
            needed_bps,
        };
        limits.push((worth, limit));
    }
    for (phase, rtt, ratio) in &seen {
        if let Some((optimal, worst)) = row.loss_ratio {
            let limit = Limit::Loss {
                phase: *phase,
                ratio: *ratio,
                optimal,
                worst,
            };
            limits.push((worth(*ratio, (optimal, worst)), limit));
        }
        if let Some((optimal_s, worst_s)) = row.rtt_s {
            // What is sent once only has a bound of its own for what is lost.
            let lost_ratio = if row.loss_ratio.is_some() {
                0.0
            } else {
                *ratio
            };
            let (rtt_s, percentile) = percentile(rtt, lost_ratio);
            let limit = Limit::Latency {
                phase: *phase,
                percentile,
                rtt_s,
                optimal_s,
                worst_s,
            };
            limits.push((worth(rtt_s, (optimal_s, worst_s)), limit));
        }
    }
    // Among equals the last: that under the heaviest load.
    let worst = limits.into_iter().rev();
    let worst = worst.min_by(|a, b| worse(a.0, b.0));
    // Where the path was loaded, and not in a direction that it needs, it is unknown whether it fares well.
    let open = loaded && !unknown.is_empty();
    let fares = match worst {
        Some((worth, limit)) if !open || worth <= 0.0 => Fares::Known {
            score: score(worth),
            limit,
        },
        _ => Fares::NotMeasured(unknown),
    };
    Outcome {
        application: row.application,
        fares,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worked_example_of_the_draft() {
        // 350 ms between 200 and 500, 375 between 300 and 600, 2 % between 1 and 5.
        assert!((worth(0.35, (0.2, 0.5)) - 0.5).abs() < 1e-9);
        assert!((worth(0.375, (0.3, 0.6)) - 0.75).abs() < 1e-9);
        assert!((worth(0.02, (0.01, 0.05)) - 0.75).abs() < 1e-9);
        assert_eq!(score(worth(0.1, (0.2, 0.5))), 1.0);
        assert_eq!(score(worth(9.0, (0.2, 0.5))), 0.0);
    }

    #[test]
    fn a_percentile_rests_on_ten_samples_beyond_it() {
        let of = |count: u32| {
            Distribution::of((0..count).map(f64::from)).map(|d| percentile(&d, 0.05).1)
        };
        assert_eq!(of(50), Some(Percentile::Median));
        assert_eq!(of(200), Some(Percentile::P95));
        assert_eq!(of(5000), Some(Percentile::P95));
    }

    #[test]
    fn a_packet_of_a_page_that_is_lost_is_sent_again() {
        let of_20_ms = Distribution::of([0.02; 300]);
        let of = |lost_ratio| of_20_ms.as_ref().map(|rtt| percentile(rtt, lost_ratio).0);
        assert_eq!(of(0.04), Some(0.02));
        assert_eq!(of(0.12), Some(1.02));
    }

    #[test]
    fn of_what_is_unacceptable_the_farthest_beyond_limits() {
        assert_eq!(worse(-3.0, -0.2), Ordering::Less);
        assert_eq!(worse(-0.2, 0.5), Ordering::Less);
        assert_eq!(worse(0.5, 0.6), Ordering::Less);
        // Both are as good as can be.
        assert_eq!(worse(1.3, 7.0), Ordering::Equal);
    }

    #[test]
    fn an_application_whose_rate_was_not_measured_keeps_its_row() {
        let mut run = Run::from_json(include_str!("../fixtures/home-cable-managed.json"))
            .unwrap_or_else(|error| panic!("{error}"));
        let names = |run: &Run| -> Vec<Purpose> {
            outcomes(run).iter().map(|row| row.application).collect()
        };
        let all = names(&run);
        assert_eq!(all.len(), REQUIREMENTS.len());
        run.measurements
            .retain(|m| m.context.phase != Some(Phase::Down));
        assert_eq!(names(&run), all);
        let mut rows = outcomes(&run).into_iter();
        let video = rows.find(|row| row.application == Purpose::Video);
        assert_eq!(
            video.map(|row| row.fares),
            Some(Fares::NotMeasured(vec![Direction::Down]))
        );
        run.measurements.clear();
        assert_eq!(names(&run), []);
    }
}
