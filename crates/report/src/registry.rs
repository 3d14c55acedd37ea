//! Which results there are. A new kind of measurement is a line here, and a file of `kinds`.

use std::any::Any;

use plumb_model::context::Phase;
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::{Measurement, Run};

use crate::phase::flow_in_phase;
use crate::show::{Show, Tables};

/// What a measurement shows.
pub(crate) fn shown(measurement: &Measurement) -> &dyn Show {
    match &measurement.outcome {
        Outcome::Ping(result) => result,
        Outcome::Pings(result) => &**result,
        Outcome::Path(result) => &**result,
        Outcome::Throughput(result) => result,
        Outcome::LoadedLatency(result) => result,
        Outcome::Port(result) => &**result,
        Outcome::PageLoad(result) => &**result,
        Outcome::Tcp(result) => result,
        Outcome::Udp(result) => &**result,
        Outcome::Quic(result) => &**result,
        Outcome::Transactions(result) => result,
        Outcome::App(result) => &**result,
        Outcome::AvailableBandwidth(result) => &**result,
        Outcome::Responsiveness(result) => &**result,
        Outcome::Gateway(result) => &**result,
        Outcome::Host(result) => &**result,
        Outcome::HostRates(result) => result,
        Outcome::HostDisk(result) => result,
        Outcome::HostCipher(result) => result,
        Outcome::Owd(result) => &**result,
        Outcome::Mtu(result) => &**result,
        Outcome::Capacity(result) => &**result,
        Outcome::Tune(result) => &**result,
        Outcome::Rehearsal(result) => &**result,
        Outcome::ShapedRate(result) => &**result,
        Outcome::Framing(result) => &**result,
        Outcome::Capture(result) => &**result,
        Outcome::CaptureSides(result) => &**result,
    }
}

/// The phase that a measurement says it belongs to, or that its result implies.
pub(crate) fn phase(measurement: &Measurement) -> Phase {
    let named = measurement.context.phase;
    named.unwrap_or_else(|| shown(measurement).phase())
}

/// A result of a kind, and where it stands in the Run.
pub(crate) struct Found<'a, T> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) phase: Phase,
    pub(crate) result: &'a T,
}

impl<T> Found<'_, T> {
    /// What flowed in that direction, beside what, and in which experiment.
    pub(crate) fn flow(&self, direction: Direction) -> String {
        let flow = flow_in_phase(self.phase, direction);
        match self.measurement.context.experiment {
            Some(experiment) => format!("{flow}, {experiment}"),
            None => flow,
        }
    }
}

/// The results of one kind, in the order of the Run.
pub(crate) fn all<T: Show>(run: &Run) -> impl Iterator<Item = Found<'_, T>> {
    run.measurements.iter().filter_map(|measurement| {
        let result: &dyn Any = shown(measurement);
        Some(Found {
            measurement,
            phase: phase(measurement),
            result: result.downcast_ref::<T>()?,
        })
    })
}

/// The same without where they stand.
pub(crate) fn results<T: Show>(run: &Run) -> impl Iterator<Item = &T> {
    all(run).map(|found| found.result)
}

/// The first result of every kind that the Run has.
fn kinds(run: &Run) -> impl Iterator<Item = &dyn Show> {
    let mut kinds = Vec::new();
    run.measurements.iter().filter_map(move |measurement| {
        let kind = std::mem::discriminant(&measurement.outcome);
        let first = !kinds.contains(&kind);
        kinds.push(kind);
        first.then(|| shown(measurement))
    })
}

/// The tables of every kind that the Run has.
pub(crate) fn tables(run: &Run) -> Tables {
    let mut tables = Tables::default();
    for first in kinds(run) {
        first.tables(run, &mut tables);
    }
    tables
}

/// What every kind comes to, in sentences.
pub(crate) fn sentences(run: &Run) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    for sentence in kinds(run).flat_map(|first| first.sentences(run)) {
        // Several Runs in one may have measured the same.
        if !sentences.contains(&sentence) {
            sentences.push(sentence);
        }
    }
    sentences
}
