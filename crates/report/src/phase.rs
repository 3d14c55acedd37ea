//! The phases of a Run before people.

use plumb_model::context::Phase;
use plumb_model::results::Direction;

/// The phases in the order in which they are shown.
pub(crate) const PHASES: [Phase; 6] = [
    Phase::Idle,
    Phase::Up,
    Phase::Down,
    Phase::Both,
    Phase::After,
    Phase::Silence,
];

/// When a latency was measured, to follow the word "latency".
pub(crate) fn when(phase: Phase) -> &'static str {
    match phase {
        Phase::Idle => "when idle",
        Phase::Up => "under upload",
        Phase::Down => "under download",
        Phase::Both => "under both at once",
        Phase::After => "after the load",
        Phase::Silence => "after a silence",
    }
}

/// The noun for what flows in a direction.
pub(crate) fn flow(direction: Direction) -> &'static str {
    Phase::from(direction).shown()
}

/// `upload`, or `both: upload` where the other direction was loaded too.
pub(crate) fn flow_in_phase(phase: Phase, direction: Direction) -> String {
    if phase == direction.into() {
        flow(direction).to_owned()
    } else {
        format!("{}: {}", phase.name(), flow(direction))
    }
}
