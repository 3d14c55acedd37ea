//! The mappings of a network address translator: which port of the public address is mapped to which port of which host
//! inside. Endpoint-independent (RFC 4787 section 4.1): an inside port has one mapping for all its peers, and any host
//! outside may use it.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::time::Duration;

use plumb_wire::ip::{FIN, RST, SYN, TCP, UDP};

use crate::time::Time;

/// Ports below this are only given to hosts inside that use the same one.
const FIRST_FREE_PORT: u16 = 1024;

/// A port, or the identifier of an ICMP echo, of a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Endpoint {
    pub(super) protocol: u8,
    pub(super) address: Ipv4Addr,
    pub(super) port: u16,
}

/// How long mappings live without traffic.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    pub(super) udp: Duration,
    pub(super) tcp: Duration,
    /// Of a TCP connection that is being opened or closed.
    pub(super) tcp_transitory: Duration,
    pub(super) icmp: Duration,
}

struct Mapping {
    inside: Endpoint,
    phase: Phase,
    expires: Time,
}

/// What a mapping knows of its TCP connection (RFC 5382 section 5).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Opening,
    Established,
    Closing,
}

impl Phase {
    fn after(self, tcp_flags: u8) -> Self {
        if tcp_flags & (FIN | RST) != 0 {
            return Self::Closing;
        }
        match (self, tcp_flags & SYN != 0) {
            (Self::Opening, false) => Self::Established,
            (Self::Closing, true) => Self::Opening,
            (same, _) => same,
        }
    }
}

pub(super) struct Table {
    by_inside: HashMap<Endpoint, u16>,
    by_port: HashMap<(u8, u16), Mapping>,
    /// Before this none expires.
    earliest: Time,
}

impl Table {
    pub(super) fn new() -> Self {
        Self {
            by_inside: HashMap::new(),
            by_port: HashMap::new(),
            earliest: Time::MAX,
        }
    }

    /// The public port for a packet that goes out, with a new mapping when there is none;
    /// `None` when `most` are there already, or all ports are taken.
    pub(super) fn outward(
        &mut self,
        now: Time,
        inside: Endpoint,
        tcp_flags: u8,
        timeouts: &Timeouts,
        most: usize,
    ) -> Option<u16> {
        let port = match self.port_of(now, inside) {
            Some(port) => port,
            None => self.add(now, inside, most)?,
        };
        self.refresh(now, (inside.protocol, port), tcp_flags, timeouts);
        Some(port)
    }

    /// The host inside that a packet from outside is for.
    pub(super) fn inward(
        &mut self,
        now: Time,
        protocol: u8,
        port: u16,
        tcp_flags: u8,
        timeouts: &Timeouts,
    ) -> Option<Endpoint> {
        let inside = self.inside_of(now, protocol, port)?;
        self.refresh(now, (protocol, port), tcp_flags, timeouts);
        Some(inside)
    }

    /// The public port of a host's, without keeping the mapping alive.
    pub(super) fn port_of(&self, now: Time, inside: Endpoint) -> Option<u16> {
        let port = *self.by_inside.get(&inside)?;
        self.inside_of(now, inside.protocol, port).map(|_| port)
    }

    /// Whose public port it is, without keeping the mapping alive.
    pub(super) fn inside_of(&self, now: Time, protocol: u8, port: u16) -> Option<Endpoint> {
        let mapping = self.by_port.get(&(protocol, port))?;
        (mapping.expires > now).then_some(mapping.inside)
    }

    /// A mapping that [`Self::refresh`] is going to give its time.
    fn add(&mut self, now: Time, inside: Endpoint, most: usize) -> Option<u16> {
        if let Some(expired) = self.by_inside.remove(&inside) {
            self.by_port.remove(&(inside.protocol, expired));
        }
        if self.by_port.len() >= most {
            self.sweep(now);
        }
        if self.by_port.len() >= most {
            return None;
        }
        let port = self.free_port(now, inside)?;
        if let Some(expired) = self.by_port.remove(&(inside.protocol, port)) {
            self.by_inside.remove(&expired.inside);
        }
        self.by_inside.insert(inside, port);
        let mapping = Mapping {
            inside,
            phase: Phase::Opening,
            expires: now,
        };
        self.by_port.insert((inside.protocol, port), mapping);
        Some(port)
    }

    /// The host's own port when it is free (RFC 4787 section 4.2.1, port preservation), or the
    /// next that is.
    fn free_port(&self, now: Time, inside: Endpoint) -> Option<u16> {
        let is_free = |port: &u16| self.inside_of(now, inside.protocol, *port).is_none();
        let after = inside.port.max(FIRST_FREE_PORT);
        let mut candidates = std::iter::once(inside.port)
            .chain(after..=u16::MAX)
            .chain(FIRST_FREE_PORT..after);
        candidates.find(is_free)
    }

    fn refresh(&mut self, now: Time, key: (u8, u16), tcp_flags: u8, timeouts: &Timeouts) {
        let Some(mapping) = self.by_port.get_mut(&key) else {
            return;
        };
        mapping.phase = mapping.phase.after(tcp_flags);
        let timeout = match (key.0, mapping.phase) {
            (TCP, Phase::Established) => timeouts.tcp,
            (TCP, _) => timeouts.tcp_transitory,
            (UDP, _) => timeouts.udp,
            _ => timeouts.icmp,
        };
        mapping.expires = now + timeout;
        self.earliest = self.earliest.min(mapping.expires);
    }

    /// Takes out what has expired.
    fn sweep(&mut self, now: Time) {
        if now < self.earliest {
            return;
        }
        self.by_port.retain(|_, mapping| mapping.expires > now);
        let by_port = &self.by_port;
        self.by_inside
            .retain(|inside, port| by_port.contains_key(&(inside.protocol, *port)));
        let expiries = self.by_port.values().map(|mapping| mapping.expires);
        self.earliest = expiries.min().unwrap_or(Time::MAX);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::indexing_slicing)]
    use super::*;
    use plumb_wire::ip::{ACK, ICMP};

    const TIMEOUTS: Timeouts = Timeouts {
        udp: Duration::from_secs(300),
        tcp: Duration::from_secs(7440),
        tcp_transitory: Duration::from_secs(240),
        icmp: Duration::from_secs(60),
    };

    fn s(seconds: u64) -> Time {
        Time::from_nanos(seconds * 1_000_000_000)
    }

    fn host(protocol: u8, last: u8, port: u16) -> Endpoint {
        Endpoint {
            protocol,
            address: Ipv4Addr::new(10, 0, 0, last),
            port,
        }
    }

    #[test]
    fn ports_are_kept_or_the_next_free_ones() {
        let mut table = Table::new();
        let mut out = |host| table.outward(s(0), host, 0, &TIMEOUTS, 100);
        assert_eq!(out(host(UDP, 1, 5000)), Some(5000));
        assert_eq!(out(host(UDP, 2, 5000)), Some(5001));
        assert_eq!(out(host(UDP, 3, 5000)), Some(5002));
        assert_eq!(out(host(UDP, 1, 5000)), Some(5000));
        assert_eq!(out(host(TCP, 2, 5000)), Some(5000), "another protocol");
        assert_eq!(out(host(UDP, 1, 53)), Some(53));
        assert_eq!(out(host(UDP, 2, 53)), Some(1024));
        assert_eq!(out(host(UDP, 1, 65_535)), Some(65_535));
        assert_eq!(out(host(UDP, 2, 65_535)), Some(1025));
        let inside = |protocol, port| table.inside_of(s(0), protocol, port);
        assert_eq!(inside(UDP, 5001), Some(host(UDP, 2, 5000)));
        assert_eq!(inside(UDP, 5003), None);
    }

    #[test]
    fn every_protocol_has_its_time() {
        let mut table = Table::new();
        let flows = [
            (host(UDP, 1, 1), 0, 300),
            (host(ICMP, 1, 2), 0, 60),
            (host(TCP, 1, 3), SYN, 240),
        ];
        for (flow, flags, lives) in flows {
            table.outward(s(0), flow, flags, &TIMEOUTS, 9);
            let just = Time::from_nanos(s(lives).as_nanos() - 1);
            assert!(table.inside_of(just, flow.protocol, flow.port).is_some());
            assert!(
                table
                    .inside_of(s(lives), flow.protocol, flow.port)
                    .is_none()
            );
        }
        // Both directions keep a mapping alive.
        table.inward(s(200), UDP, 1, 0, &TIMEOUTS);
        assert!(table.port_of(s(499), host(UDP, 1, 1)).is_some());
        assert!(table.port_of(s(500), host(UDP, 1, 1)).is_none());
    }

    #[test]
    fn connections_live_long_only_while_they_are_established() {
        let mut table = Table::new();
        let flow = host(TCP, 1, 9);
        // Whether it lives longer than one that is being opened or closed.
        let mut lives = |at: u64, flags| {
            table.outward(s(at), flow, flags, &TIMEOUTS, 9);
            let before = Time::from_nanos(s(at + 7440).as_nanos() - 1);
            let lives = [s(at + 239), s(at + 240), before, s(at + 7440)]
                .map(|at| table.port_of(at, flow).is_some());
            assert!(lives[0] && !lives[3]);
            assert_eq!(lives[1], lives[2]);
            lives[1]
        };
        assert!(!lives(0, SYN));
        assert!(lives(1, ACK));
        assert!(!lives(2, FIN | ACK));
        assert!(!lives(3, ACK), "still closing");
        assert!(!lives(4, SYN));
        assert!(lives(5, ACK));
        assert!(!lives(6, RST));
    }

    #[test]
    fn a_full_table_takes_new_flows_when_old_ones_expire() {
        let mut table = Table::new();
        let mut out = |at, port| table.outward(s(at), host(UDP, 1, port), 0, &TIMEOUTS, 2);
        assert_eq!(out(0, 1), Some(1));
        assert_eq!(out(1, 2), Some(2));
        assert_eq!(out(2, 3), None);
        assert_eq!(out(299, 1), Some(1));
        assert_eq!(out(300, 3), None);
        assert_eq!(out(301, 3), Some(3), "the second has expired");
        assert_eq!(out(302, 4), None);
        assert_eq!((table.by_port.len(), table.by_inside.len()), (2, 2));
    }

    #[test]
    fn no_port_is_left() {
        let mut table = Table::new();
        let all = 1..=u16::MAX;
        for port in all {
            table.outward(s(0), host(UDP, 1, port), 0, &TIMEOUTS, 1 << 20);
        }
        let more = host(UDP, 2, 80);
        assert_eq!(table.outward(s(0), more, 0, &TIMEOUTS, 1 << 20), None);
        assert_eq!(table.outward(s(300), more, 0, &TIMEOUTS, 1 << 20), Some(80));
        assert_eq!(table.port_of(s(300), host(UDP, 1, 80)), None);
    }
}
