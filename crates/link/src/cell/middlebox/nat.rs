//! Network address translation (RFC 3022 section 4.1, with the manners of RFC 4787, RFC 5382 and
//! RFC 5508): many hosts behind one public address. The cell is written in both directions of a
//! link; inside is the link's first end, and `up` goes out.
//!
//! TCP, UDP and echoes are translated, and what ICMP errors quote of them. Everything else over
//! IPv4 is dropped, fragments too; IPv6 and link-local multicast (224.0.0.0/24) pass untouched.
//! There is no hairpinning: inside, the public address is the router's own.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plumb_model::units::duration_text;
use plumb_wire::ip::{FlowKey, ICMP, IpPacket, TCP, UDP};
use plumb_wire::rewrite::{End, TransportSum, refresh_icmp_checksum, set_end, set_icmp_address};
use serde::{Deserialize, Serialize};

use super::nat_table::{Endpoint, Table, Timeouts};
use crate::cell::filter::{Filter, Filtered, Outlet};
use crate::packet::Packet;
use crate::segment::{self, Crossing};
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::time::Time;

/// `{ type = "nat" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NatSpec {
    /// The public address, which must be routed to this link from outside; the address of the link's first end when
    /// absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Ipv4Addr>,
    /// How long a UDP mapping lives without traffic.
    #[serde(with = "duration_text")]
    pub udp_timeout: Duration,
    /// How long the mapping of an open TCP connection lives without traffic.
    #[serde(with = "duration_text")]
    pub tcp_timeout: Duration,
    /// How long the mapping of a TCP connection that is being opened or closed lives without traffic.
    #[serde(with = "duration_text")]
    pub tcp_transitory_timeout: Duration,
    /// How long the mapping of an ICMP echo identifier lives without traffic.
    #[serde(with = "duration_text")]
    pub icmp_timeout: Duration,
    /// Mappings at most; then new flows are dropped.
    pub max_mappings: u32,
}

impl Default for NatSpec {
    fn default() -> Self {
        Self {
            address: None,
            udp_timeout: Duration::from_secs(300), // RFC 4787 REQ-5, recommended
            tcp_timeout: Duration::from_secs(7440), // RFC 5382 REQ-5: 2 hours 4 minutes
            tcp_transitory_timeout: Duration::from_secs(240), // RFC 5382 REQ-5
            icmp_timeout: Duration::from_secs(60), // RFC 5508 REQ-1
            max_mappings: 65_536,                  // every port of one protocol
        }
    }
}

impl Settings for NatSpec {
    fn check(&self) -> Result<(), String> {
        match self.max_mappings {
            0 => Err("max_mappings = 0 would let no packet out: write at least 1".to_owned()),
            _ => Ok(()),
        }
    }
}

impl NatSpec {
    /// Takes the address of the link's first end for what was not given.
    pub(crate) fn settle(&mut self, first_end: &[IpAddr]) {
        let first = first_end.iter().find_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        });
        self.address = self.address.or(first);
    }
}

/// The translator's ends: for outgoing packets, and for incoming ones.
pub(crate) fn pair(spec: &NatSpec) -> [Filtered<Nat>; 2] {
    let shared = Arc::new(Mutex::new(State::new(spec)));
    [Direction::Out, Direction::In].map(|direction| {
        Filtered::new(Nat {
            direction,
            shared: Arc::clone(&shared),
        })
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Out,
    In,
}

impl Direction {
    /// The end of its packets that is inside.
    fn inside(self) -> End {
        match self {
            Self::Out => End::Source,
            Self::In => End::Destination,
        }
    }
}

pub(crate) struct Nat {
    direction: Direction,
    shared: Arc<Mutex<State>>,
}

/// What both ends know.
struct State {
    public: Ipv4Addr,
    timeouts: Timeouts,
    most: usize,
    table: Table,
    /// The ends' clocks may be a little apart.
    latest: Time,
}

impl State {
    fn new(spec: &NatSpec) -> Self {
        Self {
            // "This host" (RFC 1122 section 3.2.1.3), where no laboratory knows better.
            public: spec.address.unwrap_or(Ipv4Addr::UNSPECIFIED),
            timeouts: Timeouts {
                udp: spec.udp_timeout,
                tcp: spec.tcp_timeout,
                tcp_transitory: spec.tcp_transitory_timeout,
                icmp: spec.icmp_timeout,
            },
            most: spec.max_mappings as usize,
            table: Table::new(),
            latest: Time::ZERO,
        }
    }

    /// Translates the packet in place; `false` when it is none that is translated.
    fn translate(&mut self, packet: &mut Packet, direction: Direction) -> Result<bool, DropCause> {
        let Some(ip) = IpPacket::parse(&packet.data) else {
            return Ok(false);
        };
        let (IpAddr::V4(_), IpAddr::V4(destination)) = (ip.source(), ip.destination()) else {
            return Ok(false);
        };
        if matches!(destination.octets(), [224, 0, 0, _]) {
            return Ok(false);
        }
        if direction == Direction::In && destination != self.public {
            return Err(DropCause::NatNoMapping);
        }
        if ip.is_fragment() || ip.total_len() != packet.data.len() {
            return Err(DropCause::NatUntranslatable);
        }
        if ip.is_icmp_error() {
            return self.translate_error(packet, direction).map(|()| true);
        }
        let flow = endpoint(&ip.flow(), direction.inside(), ip.icmp_echo().is_some())
            .ok_or(DropCause::NatUntranslatable)?;
        let flags = ip.tcp_flags().unwrap_or_default();
        let (now, protocol) = (self.latest, flow.protocol);
        // Only questions go out, and only answers come in.
        let is_answer = matches!(ip.icmp_type(), Some((0, _)));
        let (address, port) = match direction {
            Direction::Out if protocol == ICMP && is_answer => {
                return Err(DropCause::NatNoMapping);
            }
            Direction::Out => {
                let (timeouts, most) = (&self.timeouts, self.most);
                let port = self.table.outward(now, flow, flags, timeouts, most);
                (self.public, port.ok_or(DropCause::NatTableFull)?)
            }
            Direction::In if protocol == ICMP && !is_answer => {
                return Err(DropCause::NatNoMapping);
            }
            Direction::In => {
                let (port, timeouts) = (flow.port, &self.timeouts);
                let inside = self.table.inward(now, protocol, port, flags, timeouts);
                let inside = inside.ok_or(DropCause::NatNoMapping)?;
                (inside.address, inside.port)
            }
        };
        if protocol == ICMP {
            segment::finalise_checksum(packet);
        }
        let sum = if packet.vnet.needs_csum {
            TransportSum::Partial
        } else {
            TransportSum::Complete
        };
        Ok(set_end(
            &mut packet.data,
            direction.inside(),
            address,
            port,
            sum,
        ))
    }

    /// Translates an ICMP error and the packet that it quotes, which went in the other direction (RFC 5508 section 4).
    fn translate_error(
        &mut self,
        packet: &mut Packet,
        direction: Direction,
    ) -> Result<(), DropCause> {
        /// Length of the ICMP header before the quotation (RFC 792).
        const ICMP_HEADER: usize = 8;
        segment::finalise_checksum(packet);
        let quote_at = IpPacket::parse(&packet.data).map_or(0, |ip| ip.header_len()) + ICMP_HEADER;
        let quoted_end = match direction {
            Direction::Out => End::Destination,
            Direction::In => End::Source,
        };
        let quote = packet.data.get_mut(quote_at..).unwrap_or_default();
        let flow = IpPacket::parse(quote)
            .and_then(|ip| endpoint(&ip.flow(), quoted_end, ip.icmp_echo().is_some()))
            .ok_or(DropCause::NatUntranslatable)?;
        let (outer, address, port) = match direction {
            Direction::Out => {
                let port = self.table.port_of(self.latest, flow);
                (
                    self.public,
                    self.public,
                    port.ok_or(DropCause::NatNoMapping)?,
                )
            }
            Direction::In => {
                let inside = self.table.inside_of(self.latest, flow.protocol, flow.port);
                let inside = inside
                    .filter(|_| flow.address == self.public)
                    .ok_or(DropCause::NatNoMapping)?;
                (inside.address, inside.address, inside.port)
            }
        };
        set_end(quote, quoted_end, address, port, TransportSum::Complete);
        set_icmp_address(&mut packet.data, direction.inside(), outer);
        refresh_icmp_checksum(&mut packet.data);
        Ok(())
    }
}

/// The port of a flow at one end; `None` when it has none.
fn endpoint(flow: &FlowKey, end: End, is_echo: bool) -> Option<Endpoint> {
    let (address, port) = match end {
        End::Source => (flow.source, flow.source_port),
        End::Destination => (flow.destination, flow.destination_port),
    };
    let port = match flow.protocol {
        TCP | UDP => port,
        ICMP if is_echo => flow.destination_port, // its identifier, whatever the end
        _ => return None,
    };
    match address {
        // Fragments, and quotations cut before the ports, have none.
        IpAddr::V4(address) if port != 0 || is_echo => Some(Endpoint {
            protocol: flow.protocol,
            address,
            port,
        }),
        _ => None,
    }
}

impl Filter for Nat {
    type Spec = NatSpec;
    const CROSSING: Crossing = Crossing::Whole;

    fn pass(&mut self, now: Time, mut packet: Packet, out: &mut Outlet<'_>) {
        let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        state.latest = state.latest.max(now);
        match state.translate(&mut packet, self.direction) {
            Ok(true) => out.forward_changed(packet),
            Ok(false) => out.forward(packet),
            Err(cause) => out.drop(cause, &packet),
        }
    }

    /// Mappings stay, with the new address; their time changes with their next packet.
    fn reconfigure(&mut self, _: Time, spec: NatSpec) {
        let mut state = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let (table, latest) = (
            std::mem::replace(&mut state.table, Table::new()),
            state.latest,
        );
        *state = State {
            table,
            latest,
            ..State::new(&spec)
        };
    }
}

#[cfg(test)]
mod tests;
