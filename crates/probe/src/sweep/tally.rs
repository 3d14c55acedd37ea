//! What is kept of a target, whatever the number of its probes.

use std::time::Duration;

use crate::ping::sample::Said;

/// What is known of one target.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tally {
    pub sent: u64,
    /// Probes answered in time.
    pub received: u64,
    /// Answers beyond the first to the same probe.
    pub duplicates: u64,
    /// Answers to a probe of an earlier round than one already answered (RFC 4737).
    pub reordered: u64,
    /// Answers after the timeout, whose probes count as lost.
    pub late: u64,
    /// Probes that our own machine refused to send.
    pub refused: u64,
    /// Shortest and longest round trip, ns.
    pub min_ns: u64,
    pub max_ns: u64,
    /// What the latest ICMP error said, why the latest connection failed, or why our own machine did not
    /// send.
    pub error: Option<Box<str>>,
    /// What the latest answer was, where the protocol has several.
    pub said: Option<Said>,
    /// One above the latest round answered.
    next_round: u64,
    /// Mean of the round trips, and the sum of the squared differences from it (Welford), in ns.
    mean_ns: f64,
    squares: f64,
}

impl Tally {
    pub(super) fn answered(&mut self, rtt: Duration, round: u64) {
        let ns = u64::try_from(rtt.as_nanos()).unwrap_or(u64::MAX);
        self.min_ns = match self.received {
            0 => ns,
            _ => self.min_ns.min(ns),
        };
        self.max_ns = self.max_ns.max(ns);
        self.received += 1;
        let off = ns as f64 - self.mean_ns;
        self.mean_ns += off / self.received as f64;
        self.squares += off * (ns as f64 - self.mean_ns);
        if round < self.next_round {
            self.reordered += 1;
        } else {
            self.next_round = round + 1;
        }
    }

    /// Mean round trip; `None` without answers.
    pub fn mean_s(&self) -> Option<f64> {
        (self.received > 0).then_some(self.mean_ns / 1e9)
    }

    /// The population's standard deviation of the round trips.
    pub fn stddev_s(&self) -> Option<f64> {
        (self.received > 0).then(|| (self.squares / self.received as f64).max(0.0).sqrt() / 1e9)
    }
}
