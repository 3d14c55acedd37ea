//! What a measurement says of the circumstances under which it was made: the one place of this crate
//! that reads its context.

use plumb_model::context::{Experiment, Load, LoadFlow, Phase};
use plumb_model::run::{Ended, Measurement};

/// Whether nothing of ours loaded the path, before all load.
pub(crate) fn is_idle(measurement: &Measurement) -> bool {
    measurement.context.phase == Some(Phase::Idle)
}

/// Whether it is of single probes with seconds of silence between them.
pub(crate) fn follows_silence(measurement: &Measurement) -> bool {
    measurement.context.phase == Some(Phase::Silence)
}

/// Whether both directions were loaded at once.
pub(crate) fn loads_both(measurement: &Measurement) -> bool {
    measurement.context.phase == Some(Phase::Both)
}

/// How long the phase was to last, in seconds.
pub(crate) fn asked_s(measurement: &Measurement) -> Option<f64> {
    Some(measurement.context.load.as_ref()?.duration_s)
}

/// Whether its share of the budget ended it.
pub(crate) fn ended_by_budget(measurement: &Measurement) -> bool {
    measurement.ended == Ended::Budget
}

/// Whether the far end fell silent or went away in it.
pub(crate) fn lost_far_end(measurement: &Measurement) -> bool {
    measurement.ended == Ended::FarEndLost
}

/// The experiment that it was.
pub(crate) fn experiment(measurement: &Measurement) -> Option<Experiment> {
    measurement.context.experiment
}

/// Whether the load was set to carry less than the path lets through.
pub(crate) fn is_held_on_purpose(measurement: &Measurement) -> bool {
    measurement.context.load.as_ref().is_some_and(Load::is_held)
}

/// Whether a setting of its streams held it back: a window, a rate, or yielding to others.
pub(crate) fn is_paced_on_purpose(measurement: &Measurement) -> bool {
    let load = measurement.context.load.as_ref();
    load.is_some_and(|load| load.flows.iter().any(LoadFlow::is_held))
}

/// What a load's context calls a file that is standard input.
pub const STANDARD_INPUT: &str = "standard input";

/// Whether what was sent came from a program through standard input, and from no file of its own.
pub(crate) fn is_fed_by_program(measurement: &Measurement) -> bool {
    let from = measurement
        .context
        .load
        .as_ref()
        .and_then(|load| load.from.as_deref());
    from == Some(STANDARD_INPUT)
}
