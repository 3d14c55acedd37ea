//! What of a measurement's context the tables need.

use plumb_model::context::{Load, LoadShape};
use plumb_model::run::Measurement;

fn load(measurement: &Measurement) -> Option<&Load> {
    measurement.context.load.as_ref()
}

/// The pacing that was asked for, where all streams were alike.
pub(crate) fn pacing_bps(measurement: &Measurement) -> Option<f64> {
    load(measurement)?.pacing_bps()
}

/// Whether its load was made for counting round trips a minute.
pub(crate) fn is_rpm(measurement: &Measurement) -> bool {
    load(measurement).is_some_and(|load| load.shape == LoadShape::Responsiveness)
}

/// Whether different flows were asked for side by side.
pub(crate) fn has_flows(measurement: &Measurement) -> bool {
    load(measurement).is_some_and(|load| load.flows.len() > 1)
}

/// How many streams its load had in each direction.
pub(crate) fn streams(measurement: &Measurement) -> Option<u64> {
    load(measurement).map(|load| load.streams.into())
}

/// The class of traffic of each stream, by its number; empty where all are best effort.
pub(crate) fn stream_classes(measurement: &Measurement) -> Vec<String> {
    load(measurement).map_or_else(Vec::new, |load| load.stream_classes.clone())
}
