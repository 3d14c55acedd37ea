//! Those that look on while something is measured.

use std::time::Duration;

use plumb_load::Progress;
use plumb_probe::Seen;

#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl Watcher for Nobody {
    fn step(&self, _name: &str, _takes: Duration) {}

    fn update(&self, _text: &str) {}
}

/// Receives reports of the progress; a progress line, or a sink that ignores them.
pub trait Watcher: Sync {
    /// A step begins that takes about so long.
    fn step(&self, name: &str, takes: Duration);

    /// How the step goes, in a few words.
    fn update(&self, text: &str);

    /// A part of the plan begins, the `number`th of `of`; the plan takes about so much longer.
    fn part(&self, _number: usize, _of: usize, _left: Duration) {}

    /// The latest round trip of the probes that run beside the steps.
    fn round_trip(&self, _rtt: Duration) {}

    /// What a load carries at the moment.
    fn carried(&self, _now: &Progress) {}

    /// What became of one probe.
    fn probe(&self, _seen: &Seen) {}
}
