//! The audit of a machine: pure rules over what `plumb host` read, each with what is fine as well as
//! with what is not.
//!
//! A rule looks at one subject. It says nothing of a subject that the machine does not have, and reports it as unknown
//! where the machine did not report it. Otherwise it says that the subject is fine, with the number that shows it, or
//! what is wrong and for which uses it matters.

mod audit;
mod broadcast;
mod clock;
mod coalescing;
mod drops;
mod energy;
mod errors;
mod judged;
mod limits;
mod link;
mod listen;
mod memory;
mod module;
mod mtu;
mod obsolete;
mod offloads;
mod pause;
mod power;
mod queueing;
mod softnet;
mod stages;
mod steering;
mod tcp;
#[cfg(test)]
pub(crate) mod tests;
mod udp;
pub(crate) mod wifi;

use plumb_model::finding::Finding;
use plumb_model::results::Outcome;
use plumb_model::results::host::HostResult;
use plumb_model::run::Measurement;

pub use audit::Audit;
use audit::conclude;
use judged::{ENOUGH, Facts, Found, Judged, events, fine, found, one_in, ratio, unknown};
pub use stages::stages;

use crate::Case;

/// Judges a machine. `measurement` is the name that evidence has for what was read.
pub fn audit(host: &HostResult, measurement: &str) -> Audit {
    let facts = Facts { host, measurement };
    let judged: Vec<Judged> = RULES.iter().flat_map(|rule| rule(&facts)).collect();
    conclude(judged)
}

/// Fields of what was read that count since the machine booted.
const COUNTERS: [&str; 8] = [
    "counters",
    "driver_counters",
    "carrier_changes",
    "drops",
    "softnet",
    "counts",
    "retries",
    "busy_ratio",
];

/// Whether a finding rests on what was counted since the machine booted, most of it at other times and for other
/// programs. `plumb host --live` has the rates.
pub(crate) fn is_of_counters(finding: &Finding) -> bool {
    let first = finding.evidence.first();
    first.is_some_and(|evidence| {
        let parts = evidence.field.split(['.', '[']);
        parts.into_iter().any(|part| COUNTERS.contains(&part))
    })
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
        let local = self.asked.is_some_and(|asked| asked.local);
        !local && self.measurements.iter().any(of_path)
    }
}

/// The rate in bit/s and the round trip in seconds that a machine's buffers are judged by.
pub fn long_path(host: &HostResult) -> (f64, f64) {
    tcp::long_path(&Facts {
        host,
        measurement: "",
    })
}

/// A rule of the audit.
type Rule = fn(&Facts<'_>) -> Vec<Judged>;

/// From the cable upwards.
const RULES: [Rule; 22] = [
    link::examine,
    errors::examine,
    pause::examine,
    energy::examine,
    module::examine,
    wifi::examine,
    mtu::examine,
    broadcast::examine,
    offloads::examine,
    queueing::examine,
    drops::examine,
    coalescing::examine,
    softnet::examine,
    steering::examine,
    power::examine,
    tcp::examine,
    udp::examine,
    listen::examine,
    memory::examine,
    limits::examine,
    obsolete::examine,
    clock::examine,
];
