//! Options of TCP that a connection lacks though both ends offer them: something on the path strips them.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::results::{Direction, TcpSender};
use plumb_model::run::HostFacts;

use crate::Case;
use crate::evidence::{Carried, fact};

/// Both ends told that they offer it, and a connection came about without: SYNs are rarely changed by chance.
const CONFIDENCE: f64 = 0.97;

/// An option of TCP's handshake.
pub(crate) struct TcpOption {
    pub(crate) cause: Cause,
    /// As it is called.
    pub(crate) name: &'static str,
    /// Field of `tcp` that says whether all streams had it.
    pub(crate) field: &'static str,
    pub(crate) had: fn(&TcpSender) -> Option<bool>,
    pub(crate) offered: fn(&HostFacts) -> Option<bool>,
    /// How bad its absence is where it was seen to hold a load back, and otherwise, with what it comes to: a clause.
    pub(crate) costs: fn(Carried<'_>) -> (Severity, String),
}

impl TcpOption {
    /// A finding where a connection lacks it and both ends offer it. Connections of both directions are opened alike,
    /// so that the direction in which it costs most says it all.
    pub(crate) fn stripped(&self, case: &Case<'_>) -> Vec<Finding> {
        let offered = |host: &HostFacts| (self.offered)(host) == Some(true);
        if !offered(case.local) || !case.far.is_some_and(offered) {
            return Vec::new();
        }
        let loads = [Direction::Up, Direction::Down, Direction::Both];
        let without = loads
            .into_iter()
            .flat_map(|direction| case.carried(direction))
            .filter(|carried| (self.had)(&carried.result.tcp) == Some(false))
            .map(|carried| (carried, (self.costs)(carried)))
            .max_by_key(|(_, (severity, _))| *severity);
        let found = without.map(|(carried, (severity, costs))| Finding {
            cause: self.cause,
            place: Place::Path,
            severity,
            confidence: CONFIDENCE,
            matters_for: Vec::new(),
            summary: format!(
                "Something on the path strips {} from TCP's handshakes, though both ends offer it: {costs}.",
                self.name
            ),
            evidence: vec![fact(
                carried.measurement,
                format_args!("tcp.{}", self.field),
                "false",
                "whether all streams had it, where both hosts' settings offer it",
                "true",
            )],
            fixes: vec![Fix::advice(
                Actor::Provider,
                "Find the firewall, load balancer or accelerator that rewrites SYNs (`plumb path HOST --tcp` shows at which hop the option disappears) and have it pass options that it does not know (RFC 793, section 3.1).",
                format!("Connections have {}.", self.name),
            )],
            kb: "tcp-buffers".to_owned(),
        });
        found.into_iter().collect()
    }
}
