//! The forms that a path can be shown in, and what they show besides what was measured.

use plumb_model::results::path::PathResult;
use plumb_model::run::{Measurement, Run};

use super::order::Order;

/// A form of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `mtr --report`.
    MtrReport,
    /// `mtr --json`.
    MtrJson,
    /// `mtr --csv`.
    MtrCsv,
    Traceroute,
    Dot,
    GraphJson,
}

/// What the forms of other programs show besides what was measured.
#[derive(Debug, Clone)]
pub struct Shown<'a> {
    /// Which fields mtr's forms have.
    pub order: &'a Order,
    /// What this host is called.
    pub here: &'a str,
    /// Whether addresses stand behind names (mtr's -b).
    pub both: bool,
    /// Whether the networks of addresses stand before them (mtr's -z).
    pub networks: bool,
    /// Whether addresses stand alone (-n).
    pub numeric: bool,
    /// The last hop that was to be probed.
    pub last_hop: u8,
    /// Bytes of a whole packet, where that was chosen.
    pub size_bytes: Option<u16>,
    /// Type of service, or traffic class, of the probes.
    pub traffic_class: u8,
    pub fill: u8,
}

/// A path to be shown, and where it was measured.
pub(super) struct Traced<'a> {
    pub(super) run: &'a Run,
    pub(super) measurement: &'a Measurement,
    pub(super) path: &'a PathResult,
}

impl Traced<'_> {
    /// What was typed to name the target.
    pub(super) fn target(&self) -> &str {
        let target = self.run.target.as_ref();
        target.map_or("", |target| target.name.as_str())
    }

    /// Round trips of the probes of a hop, in their order.
    pub(super) fn round_trips(&self, ttl: u8) -> &[Option<f64>] {
        let series = self.measurement.series.get(&format!("rtt_hop_{ttl}"));
        series.map_or(&[][..], |series| series.values.as_slice())
    }
}
