//! What to probe with: the sockets that are allowed, and what is missing without privileges.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use plumb_net::privilege::allow_raw_sockets;

use super::probe::{Answered, HopNetwork, Probe, ProbeId};
use super::raw::RawHops;
use super::target::{ProtocolAndPort, Target};
use super::unprivileged::UnprivilegedHops;

/// What this process may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    Raw,
    /// A ping socket: no quotations, no MPLS labels, one flow.
    Ping,
    /// The error queue of a UDP socket: the same, and each hop has a flow of its own.
    Udp,
}

impl Access {
    /// What is missing without privileges and how to grant it; `None` where nothing is.
    pub fn missing(self) -> Option<String> {
        let missing = match self {
            Self::Raw => return None,
            Self::Ping => {
                "the probes are ICMP echoes of a ping socket: what routers quote (changes of DSCP, ECN and \
                 addresses, MPLS labels, TCP's maximum segment size), TCP probes and other flows are not seen"
            }
            Self::Udp => {
                "the probes are UDP datagrams with a port for each hop, which may take different paths where \
                 routers share traffic; what routers quote (changes of DSCP, ECN and addresses, MPLS labels, \
                 TCP's maximum segment size) and TCP probes are not seen"
            }
        };
        Some(format!(
            "Without CAP_NET_RAW {missing}. To grant it: {}",
            allow_raw_sockets()
        ))
    }
}

/// Why a path cannot be explored.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The target is many hosts, or none.
    #[error(
        "cannot explore the path to {name}: {address} is no single host, but a broadcast or multicast address"
    )]
    NotOneHost {
        /// As the user typed it.
        name: String,
        address: IpAddr,
    },
    /// TCP needs raw sockets.
    #[error(
        "cannot explore the path to {name} with TCP: that needs raw sockets ({source}). Run as root, grant them \
         ({}), or leave --tcp out",
        allow_raw_sockets()
    )]
    TcpNeedsRaw {
        /// As the user typed it.
        name: String,
        /// What the raw socket said.
        source: io::Error,
    },
    /// Ping sockets are not allowed.
    #[error(
        "cannot explore the path to {name} with ICMP: raw socket: {raw}; ping socket: {ping}. Run as root, grant \
         raw sockets ({}), or probe by UDP",
        allow_raw_sockets()
    )]
    Icmp {
        /// As the user typed it.
        name: String,
        /// What the raw socket said.
        raw: io::Error,
        /// What the ping socket said.
        ping: io::Error,
    },
    /// There is no way there from this host.
    #[error("cannot explore the path to {name}: {source}. Look at `ip route get {address}`")]
    NoRoute {
        /// As the user typed it.
        name: String,
        address: IpAddr,
        /// What the kernel said.
        source: io::Error,
    },
    /// Something that should always work did not.
    #[error("cannot explore the path to {name}: {what}: {source}")]
    Local {
        /// As the user typed it.
        name: String,
        what: &'static str,
        source: io::Error,
    },
}

/// The network, and what it may do.
#[derive(Debug)]
pub enum Opened {
    Raw(Box<RawHops>),
    /// By a ping socket or the error queue of a UDP socket.
    Unprivileged(Box<UnprivilegedHops>, Access),
}

impl Opened {
    /// What it may do.
    pub fn access(&self) -> Access {
        match self {
            Self::Raw(_) => Access::Raw,
            Self::Unprivileged(_, access) => *access,
        }
    }
}

impl HopNetwork for Opened {
    fn now_ns(&mut self) -> u64 {
        match self {
            Self::Raw(raw) => raw.now_ns(),
            Self::Unprivileged(hops, _) => hops.now_ns(),
        }
    }

    fn send(&mut self, probe: &Probe) -> io::Result<ProbeId> {
        match self {
            Self::Raw(raw) => raw.send(probe),
            Self::Unprivileged(hops, _) => hops.send(probe),
        }
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Answered>> {
        match self {
            Self::Raw(raw) => raw.receive(until_ns),
            Self::Unprivileged(hops, _) => hops.receive(until_ns),
        }
    }

    fn dropped_here(&self) -> u64 {
        match self {
            Self::Raw(raw) => raw.dropped_here(),
            Self::Unprivileged(hops, _) => hops.dropped_here(),
        }
    }

    fn as_sent(&self, id: ProbeId, probe: &Probe) -> Vec<u8> {
        match self {
            Self::Raw(raw) => raw.as_sent(id, probe),
            Self::Unprivileged(hops, _) => hops.as_sent(id, probe),
        }
    }
}

/// Opens what is allowed: raw sockets, or those that any user may open.
///
/// # Errors
/// When the target cannot be explored, or not by this protocol; each says what to do.
pub fn open(target: &Target, protocol: ProtocolAndPort) -> Result<Opened, OpenError> {
    let session = getrandom::u32().map_err(|error| OpenError::Local {
        name: target.name.clone(),
        what: "drawing a random number",
        source: io::Error::other(error.to_string()),
    })?;
    open_as(target, protocol, session)
}

/// The same with a number that marks its probes; equal ones make equal flows, which take one route.
///
/// # Errors
/// As [`open`].
pub fn open_as(
    target: &Target,
    protocol: ProtocolAndPort,
    session: u32,
) -> Result<Opened, OpenError> {
    let name = || target.name.clone();
    let address = target.address.ip();
    if is_not_one_host(address) || is_broadcast_here(target.address) {
        return Err(OpenError::NotOneHost {
            name: name(),
            address,
        });
    }
    let raw = match RawHops::open(target, protocol, session) {
        Ok(raw) => return Ok(Opened::Raw(Box::new(raw))),
        Err(error) => error,
    };
    if raw.kind() != io::ErrorKind::PermissionDenied {
        return Err(no_route(target, raw));
    }
    let access = match protocol {
        ProtocolAndPort::Tcp { .. } => {
            return Err(OpenError::TcpNeedsRaw {
                name: name(),
                source: raw,
            });
        }
        ProtocolAndPort::Icmp => Access::Ping,
        ProtocolAndPort::Udp { .. } => Access::Udp,
    };
    match UnprivilegedHops::open(target, protocol, session) {
        Ok(hops) => Ok(Opened::Unprivileged(Box::new(hops), access)),
        Err(ping) if ping.kind() == io::ErrorKind::PermissionDenied => Err(OpenError::Icmp {
            name: name(),
            raw,
            ping,
        }),
        Err(error) => Err(no_route(target, error)),
    }
}

fn no_route(target: &Target, source: io::Error) -> OpenError {
    OpenError::NoRoute {
        name: target.name.clone(),
        address: target.address.ip(),
        source,
    }
}

fn is_not_one_host(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.is_multicast() || v4.is_broadcast() || v4.is_unspecified(),
        IpAddr::V6(v6) => v6.is_multicast() || v6.is_unspecified(),
    }
}

/// Whether it is the broadcast address of a network of this host: the kernel refuses to connect a socket to it without
/// `SO_BROADCAST` (EACCES, `net/ipv4/datagram.c`). Connecting sends nothing.
fn is_broadcast_here(mut address: SocketAddr) -> bool {
    if address.is_ipv6() {
        return false;
    }
    address.set_port(9);
    let connected = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).and_then(|s| s.connect(address));
    connected.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::probe::AnswerKind;
    use super::*;
    use crate::path::UDP_PORT;
    use plumb_net::egress::Outlet;
    use plumb_wire::icmp::Version;
    use std::net::TcpListener;

    fn target(address: &str, port: u16) -> Target {
        Target {
            name: address.to_owned(),
            address: SocketAddr::new(address.parse().unwrap(), port),
            outlet: Outlet::default(),
        }
    }

    /// Answers to two probes, over the loopback.
    fn answers(network: &mut impl HopNetwork) -> Vec<Answered> {
        let sent = [3, 4].map(|hops| network.send(&Probe::to(hops)).unwrap());
        let until = network.now_ns() + 3_000_000_000;
        let mut seen = Vec::new();
        while seen.len() < sent.len() && network.now_ns() < until {
            seen.extend(network.receive(until).unwrap());
        }
        seen.sort_by_key(|answered| answered.id);
        assert_eq!(seen.iter().map(|a| a.id).collect::<Vec<_>>(), sent);
        seen
    }

    #[test]
    fn this_host_answers_every_protocol() {
        for address in ["127.0.0.1", "::1"] {
            let listener = TcpListener::bind((address, 0)).unwrap();
            let open_port = listener.local_addr().unwrap().port();
            let port = UDP_PORT;
            for (protocol, wanted) in [
                (ProtocolAndPort::Icmp, AnswerKind::EchoReply),
                (ProtocolAndPort::Tcp { port: 1 }, AnswerKind::Reset),
                (ProtocolAndPort::Tcp { port: open_port }, AnswerKind::SynAck),
            ] {
                let mut network = open(&target(address, 0), protocol).unwrap();
                // One connection at a time.
                let first = network.send(&Probe::to(9)).unwrap();
                let until = network.now_ns() + 3_000_000_000;
                let answered = loop {
                    if let Some(answered) = network.receive(until).unwrap() {
                        break answered;
                    }
                    assert!(network.now_ns() < until, "{protocol:?}");
                };
                assert_eq!((answered.id, answered.answer.kind), (first, wanted));
                assert!(answered.answer.is_arrival(address.parse().unwrap()));
            }
            let mut network = open(&target(address, 0), ProtocolAndPort::Udp { port }).unwrap();
            for answered in answers(&mut network) {
                let answer = &answered.answer;
                let AnswerKind::Icmp(report) = answer.kind else {
                    unreachable!("{answer:?}")
                };
                assert!(report.is_port_unreachable(answer.version()));
                assert_eq!(answer.quoted().unwrap().hop_limit(), answered.probe.hops);
                assert!(answer.is_arrival(address.parse().unwrap()));
            }
        }
    }

    #[test]
    fn so_it_does_to_the_unprivileged() {
        for address in ["127.0.0.1", "::1"] {
            let to = target(address, 0);
            let port = UDP_PORT;
            let mut network =
                UnprivilegedHops::open(&to, ProtocolAndPort::Udp { port }, 7).unwrap();
            for answered in answers(&mut network) {
                let version = answered.answer.version();
                assert!(
                    matches!(answered.answer.kind, AnswerKind::Icmp(report) if report.is_port_unreachable(version))
                );
                assert_eq!(version == Version::V4, address == "127.0.0.1");
            }
            let tcp = UnprivilegedHops::open(&to, ProtocolAndPort::Tcp { port }, 7);
            assert_eq!(tcp.unwrap_err().kind(), io::ErrorKind::Unsupported);
        }
    }

    #[test]
    fn many_hosts_are_no_target() {
        for address in [
            "255.255.255.255",
            "127.255.255.255",
            "224.0.0.1",
            "0.0.0.0",
            "ff02::1",
            "::",
        ] {
            let refused = open(&target(address, 0), ProtocolAndPort::Icmp);
            assert!(
                matches!(refused, Err(OpenError::NotOneHost { .. })),
                "{address}"
            );
        }
    }
}
