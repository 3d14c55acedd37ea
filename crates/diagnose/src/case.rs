//! What rules look at: the measurements of a path. How to find one among them stands in [`evidence`](crate::evidence).

use plumb_model::results::Outcome;
use plumb_model::results::host::HostResult;
use plumb_model::run::{HostFacts, Measurement};

/// What is known of a path.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    pub measurements: &'a [Measurement],
    pub local: &'a HostFacts,
    /// The far machine, where it told of itself.
    pub far: Option<&'a HostFacts>,
}

impl<'a> Case<'a> {
    /// What was read of this machine, and the measurements that it is of.
    pub fn hosts(&self) -> impl Iterator<Item = (&'a str, &'a HostResult)> + use<'a> {
        self.measurements.iter().filter_map(|m| match &m.outcome {
            Outcome::Host(host) => Some((m.id.as_str(), &**host)),
            _ => None,
        })
    }

    /// Whether something else was measured than this machine.
    pub(crate) fn has_path(&self) -> bool {
        let of_path = |m: &Measurement| !matches!(m.outcome, Outcome::Host(_));
        self.measurements.iter().any(of_path)
    }
}

/// How much of a path the measurements are to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it: an all-clear is given where everything that one needs is healthy.
    Path,
    /// A part: what is wrong is found, and nothing is cleared.
    Part,
}
