//! The little of rtnetlink(7) that lays out a network: links, addresses, routes, rules.
//!
//! Blocking, one request at a time, in the network namespace of the calling thread.

pub mod attribute;
pub mod driver;
mod dump;
mod generic;
pub mod link;
pub mod neighbour;
pub mod queue;
pub mod socket;
pub mod tcp_metrics;
pub mod wifi;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressFlags, AddressMessage, AddressScope};
use netlink_packet_route::link::{
    InfoBridge, InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAttribute, RouteMessage, RouteNextHop, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// The routing table of ordinary routes (RT_TABLE_MAIN, `linux/rtnetlink.h`).
pub const MAIN_TABLE: u32 = 254;

/// The table of a machine's own addresses, and of IPv6's multicast groups (RT_TABLE_LOCAL): it is
/// looked at before all others.
pub const LOCAL_TABLE: u32 = 255;

/// Room for a request and for the answer; ours are a few hundred bytes.
const MESSAGE_BYTES: usize = 8192;

/// What the kernel said to a request.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {source}")]
pub struct NetlinkError {
    pub(crate) what: String,
    pub(crate) source: io::Error,
}

impl NetlinkError {
    /// Whether this kernel does not have the part that was asked.
    pub fn is_absent(&self) -> bool {
        // EPROTONOSUPPORT: no such protocol of netlink; EOPNOTSUPP: no such question.
        self.source.kind() == io::ErrorKind::NotFound
            || matches!(
                self.source.raw_os_error(),
                Some(libc::EPROTONOSUPPORT | libc::EOPNOTSUPP)
            )
    }
}

/// The addresses that share their first `length` bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    /// The first of them.
    pub address: IpAddr,
    /// How many bits they share.
    pub length: u8,
}

impl Prefix {
    /// A single address.
    pub fn host(address: IpAddr) -> Self {
        let length = if address.is_ipv4() { 32 } else { 128 };
        Self { address, length }
    }
}

impl std::fmt::Display for Prefix {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// Where a packet goes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// Number of the interface.
    pub interface: u32,
    /// The neighbour that takes it on; none when the destination is the neighbour.
    pub gateway: Option<IpAddr>,
}

/// A connection to the kernel's routing subsystem.
pub struct Netlink {
    socket: Socket,
    sequence: u32,
}

impl Netlink {
    /// Connects in the network namespace of the calling thread, where the socket then stays.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn open() -> Result<Self, NetlinkError> {
        let connect = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(socket)
        };
        let socket = connect().map_err(|source| NetlinkError {
            what: "open a netlink socket".into(),
            source,
        })?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Creates a pair of virtual Ethernet devices: `name` here and `peer` in the namespace
    /// `peer_netns`.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_veth(
        &mut self,
        name: &str,
        peer: &str,
        peer_netns: BorrowedFd<'_>,
    ) -> Result<(), NetlinkError> {
        let mut other = LinkMessage::default();
        other.attributes = vec![
            LinkAttribute::IfName(peer.to_owned()),
            LinkAttribute::NetNsFd(peer_netns.as_raw_fd()),
        ];
        self.add_link(name, InfoKind::Veth, InfoData::Veth(InfoVeth::Peer(other)))
    }

    /// Creates an Ethernet bridge that sends multicast out of every port and says nothing itself.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_bridge(&mut self, name: &str) -> Result<(), NetlinkError> {
        let silent = vec![
            InfoBridge::MulticastSnooping(false),
            // IEEE 802.1D's spanning tree off (BR_NO_STP): its ports forward at once.
            InfoBridge::StpState(netlink_packet_route::link::BridgeStpState::Disabled),
        ];
        self.add_link(name, InfoKind::Bridge, InfoData::Bridge(silent))
    }

    fn add_link(&mut self, name: &str, kind: InfoKind, data: InfoData) -> Result<(), NetlinkError> {
        let what = || format!("create the {kind} device {name}");
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![LinkInfo::Kind(kind.clone()), LinkInfo::Data(data)]),
        ];
        self.request(
            RouteNetlinkMessage::NewLink(link),
            NLM_F_CREATE | NLM_F_EXCL,
            what,
        )
    }

    /// Makes a link a port of a bridge.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_bridge(&mut self, index: u32, bridge: u32) -> Result<(), NetlinkError> {
        self.set_link(
            index,
            LinkFlags::empty(),
            LinkFlags::empty(),
            vec![LinkAttribute::Controller(bridge)],
            "make a port of interface",
        )
    }

    /// Says whether a link carries multicast (IFF_MULTICAST). With it a router reports itself to
    /// the group of all IPv6 routers when it begins to forward; without, it does not.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_multicast(&mut self, index: u32, on: bool) -> Result<(), NetlinkError> {
        let flags = if on {
            LinkFlags::Multicast
        } else {
            LinkFlags::empty()
        };
        self.set_link(
            index,
            flags,
            LinkFlags::Multicast,
            Vec::new(),
            "change the multicast flag of interface",
        )
    }

    /// Lets no packet leave by a link that is more than one segment of TCP (or datagram of UDP).
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_single_segments(&mut self, index: u32) -> Result<(), NetlinkError> {
        self.set_link(
            index,
            LinkFlags::empty(),
            LinkFlags::empty(),
            vec![LinkAttribute::GsoMaxSegs(1)],
            "limit the segments of interface",
        )
    }

    /// Notes something of a link for whoever lists it (IFLA_IFALIAS), of up to 255 bytes.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_alias(&mut self, index: u32, alias: &str) -> Result<(), NetlinkError> {
        self.set_link(
            index,
            LinkFlags::empty(),
            LinkFlags::empty(),
            vec![LinkAttribute::IfAlias(alias.to_owned())],
            "note the alias of interface",
        )
    }

    /// The MTU of a link in bytes.
    ///
    /// # Errors
    /// When there is none of that number, and those of the kernel.
    pub fn mtu_bytes(&mut self, index: u32) -> Result<Option<u32>, NetlinkError> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        let answer = self.exchange(RouteNetlinkMessage::GetLink(link), 0, || {
            format!("look at interface {index}")
        })?;
        let Some(RouteNetlinkMessage::NewLink(link)) = answer else {
            return Ok(None);
        };
        Ok(link
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Mtu(bytes) => Some(*bytes),
                _ => None,
            }))
    }

    /// Sets the MTU of a link in bytes.
    ///
    /// # Errors
    /// Those of the kernel, among them that the device takes no such MTU.
    pub fn set_mtu(&mut self, index: u32, bytes: u32) -> Result<(), NetlinkError> {
        self.set_link(
            index,
            LinkFlags::empty(),
            LinkFlags::empty(),
            vec![LinkAttribute::Mtu(bytes)],
            &format!("set an MTU of {bytes} bytes at interface"),
        )
    }

    /// Sets a link up, with a transmit queue of `queue_packets` when given.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_up(&mut self, index: u32, queue_packets: Option<u32>) -> Result<(), NetlinkError> {
        self.set_link(
            index,
            LinkFlags::Up,
            LinkFlags::Up,
            queue_packets
                .map(LinkAttribute::TxQueueLen)
                .into_iter()
                .collect(),
            "set up interface",
        )
    }

    /// Sets how many packets a queueing discipline without a limit of its own holds (IFLA_TXQLEN).
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_queue_length(&mut self, index: u32, packets: u32) -> Result<(), NetlinkError> {
        self.set_link(
            index,
            LinkFlags::empty(),
            LinkFlags::empty(),
            vec![LinkAttribute::TxQueueLen(packets)],
            "set the length of the transmit queue of interface",
        )
    }

    fn set_link(
        &mut self,
        index: u32,
        flags: LinkFlags,
        changed: LinkFlags,
        attributes: Vec<LinkAttribute>,
        what: &str,
    ) -> Result<(), NetlinkError> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = flags;
        link.header.change_mask = changed;
        link.attributes = attributes;
        self.request(RouteNetlinkMessage::SetLink(link), 0, || {
            format!("{what} {index}")
        })
    }

    /// Gives a link an address, which is in use at once: IPv6's search for duplicates is left out.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_address(
        &mut self,
        index: u32,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family = family(address);
        message.header.prefix_len = prefix;
        message.header.scope = AddressScope::Universe;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(address),
            AddressAttribute::Address(address),
        ];
        if address.is_ipv6() {
            message
                .attributes
                .push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        self.request(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
            || format!("give interface {index} the address {address}/{prefix}"),
        )
    }

    /// Sets the route to a prefix in a table, in the place of one that is there. Over several
    /// next hops the kernel chooses one for each flow.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_route(
        &mut self,
        to: Prefix,
        hops: &[NextHop],
        table: u32,
    ) -> Result<(), NetlinkError> {
        self.route(to, hops, table, RouteType::Unicast)
    }

    /// Says by which link multicast groups are sent to, and joined by programs that name no link.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_group_route(&mut self, groups: Prefix, interface: u32) -> Result<(), NetlinkError> {
        let hop = NextHop {
            interface,
            gateway: None,
        };
        // IPv4 knows a group by its address. IPv6 has a route to ff00::/8 in the local table
        // for every interface (addrconf_add_mroute, net/ipv6/addrconf.c), which comes first.
        let (table, kind) = match groups.address {
            IpAddr::V4(_) => (MAIN_TABLE, RouteType::Unicast),
            IpAddr::V6(_) => (LOCAL_TABLE, RouteType::Multicast),
        };
        self.route(groups, &[hop], table, kind)
    }

    fn route(
        &mut self,
        to: Prefix,
        hops: &[NextHop],
        table: u32,
        kind: RouteType,
    ) -> Result<(), NetlinkError> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(to.address);
        message.header.destination_prefix_length = to.length;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = match hops {
            [hop] if hop.gateway.is_none() => RouteScope::Link,
            _ => RouteScope::Universe,
        };
        message.header.kind = kind;
        let destination = RouteAttribute::Destination(to.address.into());
        message.attributes = vec![destination, RouteAttribute::Table(table)];
        let gateway = |hop: &NextHop| hop.gateway.map(|g| RouteAttribute::Gateway(g.into()));
        match hops {
            [hop] => {
                message.attributes.push(RouteAttribute::Oif(hop.interface));
                message.attributes.extend(gateway(hop));
            }
            hops => {
                let hops = hops.iter().map(|hop| {
                    let mut next = RouteNextHop::default();
                    next.interface_index = hop.interface;
                    next.attributes = gateway(hop).into_iter().collect();
                    next
                });
                message
                    .attributes
                    .push(RouteAttribute::MultiPath(hops.collect()));
            }
        }
        self.request(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_REPLACE,
            || format!("set the route to {to} in table {table}"),
        )
    }

    /// Looks up packets that bear `mark` in `table`, unless the main table knows more of their
    /// destination than `to`.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_mark_rules(
        &mut self,
        to: Prefix,
        mark: u32,
        table: u32,
    ) -> Result<(), NetlinkError> {
        /// After the local table (0), before the main one (32766, `net/ipv4/fib_rules.c`).
        const PRIORITY: u32 = 100;
        let more_specific = RuleAttribute::SuppressPrefixLen(u32::from(to.length));
        for (priority, table, condition) in [
            (PRIORITY, MAIN_TABLE, Some(more_specific)),
            (PRIORITY + 1, table, None),
        ] {
            let mut message = RuleMessage::default();
            message.header.family = family(to.address);
            message.header.action = RuleAction::ToTable;
            message.attributes = vec![
                RuleAttribute::Priority(priority),
                RuleAttribute::FwMark(mark),
                RuleAttribute::Table(table),
            ];
            message.attributes.extend(condition);
            self.request(
                RouteNetlinkMessage::NewRule(message),
                NLM_F_CREATE | NLM_F_EXCL,
                || format!("look up packets with mark {mark} in table {table}"),
            )?;
        }
        Ok(())
    }

    pub(crate) fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        what: impl Fn() -> String,
    ) -> Result<(), NetlinkError> {
        self.exchange(message, NLM_F_ACK | flags, what).map(|_| ())
    }

    /// Sends a message and returns what the answer holds, if anything.
    pub(crate) fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        what: impl Fn() -> String,
    ) -> Result<Option<RouteNetlinkMessage>, NetlinkError> {
        let failed = |source| NetlinkError {
            what: what(),
            source,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(message));
        message.finalize();
        let mut buffer = vec![0; message.buffer_len().max(MESSAGE_BYTES)];
        message.serialize(&mut buffer);
        let length = message.buffer_len();
        self.socket
            .send(buffer.get(..length).unwrap_or_default(), 0)
            .map_err(failed)?;

        let mut answer = Vec::with_capacity(MESSAGE_BYTES);
        self.socket.recv(&mut answer, 0).map_err(failed)?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
            .map_err(|e| failed(io::Error::new(io::ErrorKind::InvalidData, e.to_string())))?;
        match answer.payload {
            NetlinkPayload::Error(e) if e.code.is_some() => Err(failed(e.to_io())),
            NetlinkPayload::InnerMessage(message) => Ok(Some(message)),
            _ => Ok(None),
        }
    }
}

pub(crate) fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

/// Number of the interface of that name in the namespace of the calling thread.
///
/// # Errors
/// When there is none.
pub fn interface_index(name: &str) -> io::Result<u32> {
    nix::net::if_::if_nametoindex(name).map_err(io::Error::from)
}

/// The name of the interface of an index, in the network namespace of the calling thread.
///
/// # Errors
/// When there is none.
pub fn interface_name(index: u32) -> io::Result<String> {
    let name = nix::net::if_::if_indextoname(index).map_err(io::Error::from)?;
    Ok(name.to_string_lossy().into_owned())
}
