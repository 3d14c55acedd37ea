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
        } => format!(
            "{percentile} within {} {} (good {}, bad {})",
            number::seconds(*rtt_s),
            phase::when(*phase),
            number::threshold("_s", *optimal_s),
            number::threshold("_s", *worst_s)
        ),
        Limit::Loss {
            phase,
            ratio,
            optimal,
            worst,
        } => format!(
            "{} lost {} (good {}, bad {})",
            number::percent(*ratio),
            phase::when(*phase),
            number::percent(*optimal),
            number::percent(*worst)
        ),
        Limit::Rate {
            direction,
            bps,
            needed_bps,
        } => format!(
            "{} {} (needs {})",
            phase::flow(*direction),
            number::rate(*bps),
            number::threshold("_bps", *needed_bps)
        ),
    }
}
