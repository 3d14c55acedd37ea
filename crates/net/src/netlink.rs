//! The little of rtnetlink(7) that lays out a network: links, addresses, routes.
//!
//! Blocking, one request at a time, in the network namespace of the calling thread.

use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkHeader, NetlinkMessage,
    NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressMessage, AddressScope};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// Main routing table (RT_TABLE_MAIN, `linux/rtnetlink.h`).
const MAIN_TABLE: u8 = 254;

/// Room for a request and for the answer; ours are a few hundred bytes.
const MESSAGE_BYTES: usize = 8192;

/// What the kernel said to a request.
#[derive(Debug, thiserror::Error)]
#[error("cannot {what}: {source}")]
pub struct NetlinkError {
    what: String,
    source: io::Error,
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

    /// Creates a pair of virtual Ethernet devices of the same name, one here and one in the
    /// namespace `peer_netns`.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_veth(&mut self, name: &str, peer_netns: BorrowedFd<'_>) -> Result<(), NetlinkError> {
        let mut peer = LinkMessage::default();
        peer.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::NetNsFd(peer_netns.as_raw_fd()),
        ];
        let mut link = LinkMessage::default();
        link.attributes = vec![
            LinkAttribute::IfName(name.to_owned()),
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Veth),
                LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(peer))),
            ]),
        ];
        self.request(
            RouteNetlinkMessage::NewLink(link),
            NLM_F_CREATE | NLM_F_EXCL,
            || format!("create the veth pair {name}"),
        )
    }

    /// Sets a link up, with a transmit queue of `queue_packets` when given.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn set_up(&mut self, index: u32, queue_packets: Option<u32>) -> Result<(), NetlinkError> {
        let mut link = LinkMessage::default();
        link.header.index = index;
        link.header.flags = LinkFlags::Up;
        link.header.change_mask = LinkFlags::Up;
        link.attributes = queue_packets
            .map(LinkAttribute::TxQueueLen)
            .into_iter()
            .collect();
        self.request(RouteNetlinkMessage::SetLink(link), 0, || {
            format!("set interface {index} up")
        })
    }

    /// Gives a link an address.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_address(
        &mut self,
        index: u32,
        address: Ipv4Addr,
        prefix: u8,
    ) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family = AddressFamily::Inet;
        message.header.prefix_len = prefix;
        message.header.scope = AddressScope::Universe;
        message.header.index = index;
        message.attributes = vec![
            AddressAttribute::Local(address.into()),
            AddressAttribute::Address(address.into()),
        ];
        self.request(
            RouteNetlinkMessage::NewAddress(message),
            NLM_F_CREATE | NLM_F_EXCL,
            || format!("give interface {index} the address {address}/{prefix}"),
        )
    }

    /// Adds a route by way of a gateway.
    ///
    /// # Errors
    /// Those of the kernel.
    pub fn add_route(
        &mut self,
        to: Ipv4Addr,
        prefix: u8,
        via: Ipv4Addr,
    ) -> Result<(), NetlinkError> {
        let mut message = RouteMessage::default();
        message.header.address_family = AddressFamily::Inet;
        message.header.destination_prefix_length = prefix;
        message.header.table = MAIN_TABLE;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(RouteAddress::Inet(to)),
            RouteAttribute::Gateway(RouteAddress::Inet(via)),
        ];
        self.request(
            RouteNetlinkMessage::NewRoute(message),
            NLM_F_CREATE | NLM_F_EXCL,
            || format!("add a route to {to}/{prefix} via {via}"),
        )
    }

    fn request(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        what: impl Fn() -> String,
    ) -> Result<(), NetlinkError> {
        let failed = |source| NetlinkError {
            what: what(),
            source,
        };
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
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
            _ => Ok(()),
        }
    }
}

/// Number of the interface of that name in the namespace of the calling thread.
///
/// # Errors
/// When there is none.
pub fn interface_index(name: &str) -> io::Result<u32> {
    nix::net::if_::if_nametoindex(name).map_err(io::Error::from)
}
