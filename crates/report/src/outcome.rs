//! How applications fare, in words.

use plumb_diagnose::outcomes::{Fares, Limit, Percentile};
use plumb_model::context::Phase;
use plumb_model::goal::Purpose;

use crate::{number, phase};

/// Whether an application can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    Good,
    Fair,
    Bad,
    /// It was not measured.
    Unknown,
}

impl Use {
    /// Good and bad are what the bounds say that stand beside it.
    pub(crate) fn of(fares: &Fares) -> Self {
        match fares {
            Fares::NotMeasured(_) => Self::Unknown,
            Fares::Known { score, .. } if *score >= 1.0 => Self::Good,
            Fares::Known { score, .. } if *score > 0.0 => Self::Fair,
            Fares::Known { .. } => Self::Bad,
        }
    }

    /// A word for a page; also the class of its colour.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Bad => "bad",
            Self::Unknown => "–",
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

/// Why half of the packets are judged.
const TOO_FEW: &str = " (too few probes for 95 of 100)";

/// How an application fares: what limits it, under which load, and what is needed.
pub(crate) fn why(fares: &Fares) -> String {
    match fares {
        Fares::NotMeasured(directions) => {
            let flows: Vec<&str> = directions.iter().map(|of| phase::flow(*of)).collect();
            format!("not measured: the {} rate", flows.join(" and "))
        }
        Fares::Known { score, limit } => self::limit(limit, *score),
    }
}

/// The same in fewer words, for lines that have to be short, and a line for what is left out of all of them.
pub(crate) fn why_in_short(fares: &Fares) -> String {
    let text = why(fares).replacen(TOO_FEW, "", 1);
    text.replacen(Phase::Both.shown(), Phase::Both.name(), 1)
}

/// What the short forms leave out.
pub(crate) fn left_out<'a>(all: impl IntoIterator<Item = &'a Fares>) -> Option<String> {
    let few = all.into_iter().any(|fares| why(fares).contains(TOO_FEW));
    few.then(|| format!("Half of the packets:{TOO_FEW}").replace(['(', ')'], ""))
}

fn limit(limit: &Limit, score: f64) -> String {
    match limit {
        Limit::Latency {
            phase,
            percentile,
            rtt_s,
            optimal_s,
            worst_s,
        } => {
            let (packets, few) = match percentile {
                Percentile::P95 => ("95 of 100 packets", ""),
                Percentile::P95SentAgain => ("95 of 100 packets, those lost sent again,", ""),
                Percentile::Median => ("half of the packets", TOO_FEW),
            };
            format!(
                "{}: {packets} back within {}{few}; {}",
                phase.shown(),
                number::seconds(*rtt_s),
                bound(score, [*optimal_s, *worst_s], "_s")
            )
        }
        Limit::Loss {
            phase,
            ratio,
            optimal,
            worst,
        } => format!(
            "{}: {} lost, up and down together; {}",
            phase.shown(),
            number::percent(*ratio),
            bound(score, [*optimal, *worst], "_ratio")
        ),
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

/// Up to where it is good, or where it is bad from where.
fn bound(score: f64, [good, bad]: [f64; 2], field: &str) -> String {
    match score > 0.0 {
        true => format!("good up to {}", number::threshold(field, good)),
        false => format!("bad from {}", number::threshold(field, bad)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(rtt_s: f64, score: f64, percentile: Percentile) -> Fares {
        let limit = Limit::Latency {
            phase: Phase::Both,
            percentile,
            rtt_s,
            optimal_s: 0.1,
            worst_s: 1.0,
        };
        Fares::Known { score, limit }
    }

    #[test]
    fn a_word_agrees_with_the_bound_beside_it() {
        let said = |rtt_s, score| {
            let fares = latency(rtt_s, score, Percentile::P95);
            format!("{} {}", Use::of(&fares).name(), why(&fares))
        };
        assert_eq!(
            said(0.1, 1.0),
            "good both at once: 95 of 100 packets back within 100 ms; good up to 100 ms"
        );
        // Between both bounds it is neither, however near to one.
        assert_eq!(
            said(0.139, 0.957),
            "fair both at once: 95 of 100 packets back within 139 ms; good up to 100 ms"
        );
        assert_eq!(
            said(1.2, 0.0),
            "bad both at once: 95 of 100 packets back within 1.20 s; bad from 1 s"
        );
    }

    #[test]
    fn too_few_probes_are_named() {
        let few = latency(0.05, 1.0, Percentile::Median);
        assert_eq!(
            why(&few),
            "both at once: half of the packets back within 50.0 ms (too few probes for 95 of 100); good up to 100 ms"
        );
        assert_eq!(
            why_in_short(&few),
            "both: half of the packets back within 50.0 ms; good up to 100 ms"
        );
        let left = left_out([&few]);
        assert_eq!(
            left.as_deref(),
            Some("Half of the packets: too few probes for 95 of 100")
        );
        assert_eq!(left_out([&latency(0.05, 1.0, Percentile::P95)]), None);
    }

    #[test]
    fn what_was_not_measured_is_named() {
        use plumb_model::results::Direction;
        let fares = Fares::NotMeasured(vec![Direction::Down]);
        assert_eq!(why(&fares), "not measured: the download rate");
    }
}
