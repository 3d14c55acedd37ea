//! What rules look at: the measurements of a path, and how to find one among them.

use plumb_model::results::{
    Direction, LoadedLatencyResult, Outcome, PingResult, ProbeProtocol, ThroughputResult,
};
use plumb_model::run::{HostFacts, Measurement};

use crate::reading;

/// What is known of a path.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// What was measured.
    pub measurements: &'a [Measurement],
    /// This machine.
    pub local: &'a HostFacts,
    /// The far machine, where it told of itself.
    pub far: Option<&'a HostFacts>,
}

/// How much of a path the measurements are to judge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All of it: an all-clear is given where everything that one needs is healthy.
    Path,
    /// A part: what is wrong is found, and nothing is cleared.
    Part,
}

impl<'a> Case<'a> {
    /// Round trips while `direction` was loaded.
    pub(crate) fn loaded_latency(
        &self,
        direction: Direction,
    ) -> Option<(&'a Measurement, &'a LoadedLatencyResult)> {
        self.measurements.iter().find_map(|m| match &m.outcome {
            Outcome::LoadedLatency(result) if result.direction == direction => Some((m, result)),
            _ => None,
        })
    }

    /// What was carried while `direction` was loaded: of both, each by itself.
    pub(crate) fn loads(
        &self,
        direction: Direction,
    ) -> impl Iterator<Item = (&'a Measurement, &'a ThroughputResult)> + use<'a> {
        self.measurements.iter().filter_map(move |m| {
            let Outcome::Throughput(result) = &m.outcome else {
                return None;
            };
            let loaded = match reading::loads_both(m) {
                true => Direction::Both,
                false => result.direction,
            };
            (loaded == direction).then_some((m, result))
        })
    }

    /// What was carried in `direction` while the other was idle.
    pub(crate) fn throughput_alone(
        &self,
        direction: Direction,
    ) -> Option<(&'a Measurement, &'a ThroughputResult)> {
        self.loads(direction).next()
    }

    /// Probes of the idle path. The responder answers every one of its own; hosts limit how many
    /// echoes they answer, and filters may let only those pass.
    pub(crate) fn idle_ping(&self) -> Option<(&'a Measurement, &'a PingResult)> {
        let idle = |protocol: ProbeProtocol| {
            self.measurements.iter().find_map(|m| match &m.outcome {
                Outcome::Ping(ping) if ping.protocol == protocol && reading::is_idle(m) => {
                    Some((m, ping))
                }
                _ => None,
            })
        };
        let [udp, icmp] = [ProbeProtocol::Udp, ProbeProtocol::Icmp].map(idle);
        let answered = |ping: &(_, &PingResult)| ping.1.received > 0;
        udp.filter(answered)
            .or(icmp.filter(answered))
            .or(udp)
            .or(icmp)
    }
}
