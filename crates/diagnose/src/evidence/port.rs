//! TCP ports that were tried.

use plumb_model::results::port::{NOBODYS_ADDRESS, PortState};
use plumb_model::results::{Outcome, PortResult};
use plumb_model::run::Measurement;

use crate::Case;

/// A port of one address.
#[derive(Clone, Copy)]
pub(crate) struct Port<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a PortResult,
}

impl Port<'_> {
    /// Whether the address is the one that no host has.
    pub(crate) fn is_nobodys(self) -> bool {
        self.result.address == NOBODYS_ADDRESS.to_string()
    }

    pub(crate) fn is_ipv6(self) -> bool {
        self.result.address.contains(':')
    }

    /// Whether nothing came back, or a router said that there is no way. A host that refuses is there.
    pub(crate) fn is_out_of_reach(self) -> bool {
        let state = self.result.state;
        matches!(state, Some(PortState::Filtered | PortState::Unreachable))
    }
}

impl<'a> Case<'a> {
    pub(crate) fn ports(&self) -> impl Iterator<Item = Port<'a>> + use<'a> {
        self.measurements
            .iter()
            .filter_map(|measurement| match &measurement.outcome {
                Outcome::Port(result) => Some(Port {
                    measurement,
                    result,
                }),
                _ => None,
            })
    }

    /// One port by IPv4 and by IPv6, where a name has both.
    pub(crate) fn port_by_both(&self) -> Option<[Port<'a>; 2]> {
        let mut by_v6 = self.ports().filter(|port| port.is_ipv6());
        by_v6.find_map(|v6| {
            let mut by_v4 = self
                .ports()
                .filter(|port| !port.is_ipv6() && !port.is_nobodys());
            let v4 = by_v4.find(|v4| v4.result.port == v6.result.port)?;
            Some([v4, v6])
        })
    }
}
