//! What is asked of a trace.

use std::net::SocketAddr;
use std::time::Duration;

use plumb_model::results::path::MapPlace;
use plumb_probe::path::atlas::Atlas;
use plumb_probe::path::trace::TracePlan;
use plumb_probe::path::{ProtocolAndPort, Target};

/// What is wanted of a path.
#[derive(Debug)]
pub struct Wanted {
    pub target: Target,
    /// What probes are made of; when absent, what gets through.
    pub protocol: Option<ProtocolAndPort>,
    pub plan: TracePlan,
    /// How sure to be that all ways are found, 0…1, where they are wanted.
    pub all_paths: Option<f64>,
    /// Whether names are looked up.
    pub names: bool,
    pub atlas: Atlas,
    /// The resolver that is asked for the networks that no database has; where it is absent, none is asked.
    pub networks_by: Option<SocketAddr>,
    /// Whether the reverse path is wanted too.
    pub back: Back,
    /// Whether a responder is known to be there, whose reflector reports the marks of packets.
    pub has_responder: bool,
    /// Where this host is, when it is not to be looked up by its address.
    pub here: Option<MapPlace>,
}

impl Wanted {
    /// The hops to a target, by whatever gets through and without their names; at most a second for each that is silent.
    pub fn hops(target: Target) -> Self {
        Self {
            plan: TracePlan {
                timeout: Duration::from_secs(1),
                ..TracePlan::new(target.address.ip())
            },
            protocol: None,
            all_paths: None,
            names: false,
            atlas: Atlas::default(),
            networks_by: None,
            back: Back::No,
            has_responder: false,
            here: None,
            target,
        }
    }
}

/// Whether the reverse path is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Back {
    No,
    /// Where a responder answers on that TCP port, for which the trace hardly waits.
    IfAnswered(u16),
    /// It is: that there is none on that TCP port is a failure.
    Required(u16),
}

impl Back {
    pub(super) fn port(self) -> Option<u16> {
        match self {
            Self::No => None,
            Self::IfAnswered(port) | Self::Required(port) => Some(port),
        }
    }
}
