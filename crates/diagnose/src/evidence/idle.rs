//! Probes of the path before any load.

use plumb_model::loss::{at_least_ratio, at_most_ratio};
use plumb_model::protocol::Protocol;
use plumb_model::results::{Outcome, PingResult};
use plumb_model::run::Measurement;

use crate::{Case, reading};

/// Probes of the idle path.
#[derive(Clone, Copy)]
pub(crate) struct Idle<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a PingResult,
}

impl Idle<'_> {
    /// Probes that left this host: what it dropped itself says nothing of the path.
    pub(crate) fn sent(self) -> u64 {
        self.result.sent.saturating_sub(self.result.dropped_here)
    }

    /// Probes that were not answered.
    pub(crate) fn lost(self) -> u64 {
        self.sent().saturating_sub(self.result.received)
    }

    /// Share of all packets that it loses at least, with 97.5 %.
    pub(crate) fn loss_at_least(self) -> f64 {
        at_least_ratio(self.sent(), self.lost())
    }

    /// The same at most.
    pub(crate) fn loss_at_most(self) -> f64 {
        at_most_ratio(self.sent(), self.lost())
    }
}

impl<'a> Case<'a> {
    /// Probes of the idle path. The responder answers every one of its own; hosts limit how many
    /// echoes they answer, and filters may let only those pass. A browser has echoes over TCP alone.
    pub(crate) fn idle(&self) -> Option<Idle<'a>> {
        let all = [Protocol::Udp, Protocol::Icmp, Protocol::WebSocket];
        let all = all.map(|protocol| self.idle_by(protocol));
        let mut answered = all
            .into_iter()
            .flatten()
            .filter(|idle| idle.result.received > 0);
        answered.next().or(all.into_iter().flatten().next())
    }
    /// Single probes with seconds of silence before each.
    pub(crate) fn after_silence(&self) -> Option<Idle<'a>> {
        let all = [Protocol::Icmp, Protocol::Udp].into_iter();
        let mut all = all.flat_map(|protocol| self.probes_by(protocol));
        all.find(|probes| reading::follows_silence(probes.measurement))
    }

    /// Idle probes of one protocol.
    pub(crate) fn idle_by(&self, protocol: Protocol) -> Option<Idle<'a>> {
        let mut probes = self.probes_by(protocol);
        probes.find(|probes| reading::is_idle(probes.measurement))
    }

    /// Probes by one protocol, in whatever phase.
    pub(crate) fn probes_by(&self, protocol: Protocol) -> impl Iterator<Item = Idle<'a>> + use<'a> {
        let all = self.measurements.iter();
        all.filter_map(move |measurement| match &measurement.outcome {
            Outcome::Ping(result) if result.protocol == protocol => Some(Idle {
                measurement,
                result,
            }),
            _ => None,
        })
    }
}
