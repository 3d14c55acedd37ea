//! Which results there are. A new kind of measurement is a line here, and a file of `kinds`.

use std::any::Any;

use plumb_model::context::Phase;
use plumb_model::results::Outcome;
use plumb_model::run::{Measurement, Run};

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

/// The tables of every kind that the Run has.
pub(crate) fn tables(run: &Run) -> Tables {
    let mut tables = Tables::default();
    let mut kinds = Vec::new();
    for measurement in &run.measurements {
        let kind = std::mem::discriminant(&measurement.outcome);
        if !kinds.contains(&kind) {
            kinds.push(kind);
            shown(measurement).tables(run, &mut tables);
        }
    }
    tables
}
