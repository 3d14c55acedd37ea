//! How applications fare, in words.

use plumb_diagnose::outcomes::Limit;
use plumb_model::goal::Purpose;

use crate::{number, phase};

/// Whether an application can be used, by its score from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Good,
    Fair,
    Bad,
}

impl Use {
    pub(crate) fn of(score: f64) -> Self {
        match score {
            score if score >= 0.9 => Self::Good,
            score if score >= 0.5 => Self::Fair,
            _ => Self::Bad,
        }
    }

    /// A word for a page; also the class of its colour.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Bad => "bad",
        }
    }
}

/// Of what a score is, for everybody.
pub(crate) fn what(application: Purpose) -> &'static str {
    match application {
        Purpose::Call => "Calls",
        Purpose::Game => "Games",
        Purpose::Video => "Video",
        Purpose::Web => "Browsing",
        other => other.name(),
    }
}

/// What limits an application: the load under which it was measured, and what is needed.
pub(crate) fn limit(limit: &Limit) -> String {
    match limit {
        Limit::Latency {
            phase,
            percentile,
            rtt_s,
            optimal_s,
            worst_s,
        } => {
            let measured = number::seconds(*rtt_s);
            format!(
                "{percentile} back within {measured} {}; {}",
                phase::when(*phase),
                bounds(&measured, [*optimal_s, *worst_s], "_s")
            )
        }
        Limit::Loss {
            phase,
            ratio,
            optimal,
            worst,
        } => {
            let measured = number::percent(*ratio);
            format!(
                "{measured} of packets lost {}; {}",
                phase::when(*phase),
                bounds(&measured, [*optimal, *worst], "_ratio")
            )
        }
        Limit::Rate {
            direction,
            bps,
            needed_bps,
        } => format!(
            "{} {}; needs {}",
            phase::flow(*direction),
            number::rate(*bps),
            number::threshold("_bps", *needed_bps)
        ),
    }
}

/// Where it is good and where it is bad, in the unit of what was measured, which is written once where all have it.
fn bounds(measured: &str, bounds: [f64; 2], field: &str) -> String {
    let [good, bad] = bounds.map(|bound| number::threshold(field, bound));
    let unit = measured.rfind(' ').and_then(|at| measured.get(at..));
    let bare = |bound: &str| bound.strip_suffix(unit?).map(str::to_owned);
    match (bare(&good), bare(&bad)) {
        (Some(good), Some(bad)) => format!("good {good}, bad {bad}"),
        _ => format!("good {good}, bad {bad}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_counted_in_packets_and_its_unit_is_written_once() {
        let latency = |rtt_s: f64, worst_s: f64| {
            limit(&Limit::Latency {
                phase: plumb_model::context::Phase::Up,
                percentile: "95 of 100 packets",
                rtt_s,
                optimal_s: 0.2,
                worst_s,
            })
        };
        assert_eq!(
            latency(0.717, 0.7),
            "95 of 100 packets back within 717 ms under upload; good 200, bad 700"
        );
        assert!(latency(0.717, 1.0).ends_with("good 200 ms, bad 1 s"));
        assert!(latency(2.0, 0.7).ends_with("good 200 ms, bad 700 ms"));
    }
}
