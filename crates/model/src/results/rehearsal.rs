//! What a fix did to the twin of a path.

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finding::{Actor, Cause, Place};

/// The twin of a path, measured unchanged or with fixes of the Run that it was made from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsalResult {
    /// Fixes that were applied together; empty where the twin was measured unchanged.
    pub fixes: Vec<RehearsedFix>,
    /// Rank among all that was rehearsed, by the measured effect, from 1. Null where nothing got better, and for the
    /// unchanged twin.
    pub rank: Option<u64>,
    /// Figures that it is compared with: of the original path for the unchanged twin, of the unchanged twin for fixes.
    pub before: PathFigures,
    /// Figures that were measured. Null where it was not rehearsed.
    pub after: Option<PathFigures>,
    /// Why it was not rehearsed, as a clause that follows "because". Null where it was.
    pub why_not: Option<String>,
    /// Figures that got better by more than twins differ from their originals, the most first.
    pub gains: Vec<RehearsedChange>,
    /// Figures that got worse by more than that, the most first.
    pub harms: Vec<RehearsedChange>,
}

/// A fix of a finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsedFix {
    /// Cause that the finding reports.
    pub cause: Cause,
    /// Place of the finding.
    pub place: Place,
    /// Number of the fix in its finding, from 0.
    pub fix: u64,
    /// The actor who would make the change.
    pub on: Actor,
    /// What was done, as the fix says it.
    pub summary: String,
}

/// The figures of a path that a fix may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PathFigures {
    /// Median round trip in seconds on the idle path. Null where it was not measured.
    pub idle_rtt_s: Option<f64>,
    /// Payload in bit/s that uploads carried. Null where it was not measured.
    pub up_bps: Option<f64>,
    /// Payload in bit/s that downloads carried. Null where it was not measured.
    pub down_bps: Option<f64>,
    /// 95th percentile of round trips in seconds beside an upload. Null where it was not measured.
    pub up_loaded_rtt_s: Option<f64>,
    /// 95th percentile of round trips in seconds beside a download. Null where it was not measured.
    pub down_loaded_rtt_s: Option<f64>,
    /// 95th percentile of round trips in seconds of another host at the same router while this one loaded the path. Null where
    /// it was not measured.
    pub neighbour_rtt_s: Option<f64>,
}

/// A figure that changed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RehearsedChange {
    /// Which figure it is.
    pub figure: PathFigure,
    /// Value before, in the unit of the figure.
    pub before: f64,
    /// Value after, in the unit of the figure.
    pub after: f64,
}

vocabulary! {
    /// Which figure of a path it is.
    pub enum PathFigure {
        /// Round trips of the idle path.
        IdleRtt = "idle-rtt" as "idle round trips",
        /// Payload that uploads carry.
        UpRate = "up-rate" as "upload",
        /// Payload that downloads carry.
        DownRate = "down-rate" as "download",
        /// Round trips beside an upload.
        UpLoadedRtt = "up-loaded-rtt" as "round trips under upload",
        /// Round trips beside a download.
        DownLoadedRtt = "down-loaded-rtt" as "round trips under download",
        /// Round trips of another host at the same router.
        NeighbourRtt = "neighbour-rtt" as "round trips of another host",
    }
}

impl PathFigure {
    /// Whether more of it is better.
    pub fn is_rate(self) -> bool {
        matches!(self, Self::UpRate | Self::DownRate)
    }
}

impl PathFigures {
    /// Each figure with its value.
    pub fn all(&self) -> [(PathFigure, Option<f64>); 6] {
        [
            (PathFigure::IdleRtt, self.idle_rtt_s),
            (PathFigure::UpRate, self.up_bps),
            (PathFigure::DownRate, self.down_bps),
            (PathFigure::UpLoadedRtt, self.up_loaded_rtt_s),
            (PathFigure::DownLoadedRtt, self.down_loaded_rtt_s),
            (PathFigure::NeighbourRtt, self.neighbour_rtt_s),
        ]
    }

    /// The value of one of them.
    pub fn of(&self, figure: PathFigure) -> Option<f64> {
        let mut all = self.all().into_iter();
        all.find_map(|(this, value)| value.filter(|_| this == figure))
    }
}
