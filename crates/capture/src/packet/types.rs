//! What is known of a packet.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use plumb_model::results::capture::Layer;
use plumb_model::vocabulary::Vocabulary as _;

use super::end::End;
use super::frame_control::Wireless;
use super::segment::Segment;

/// The protocols of a packet, the outermost first, eight at most: a byte each, which is one more than the place of the
/// protocol in its vocabulary.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Layers(u64);

/// Layers that there is room for.
const MOST_LAYERS: u32 = 8;

impl Layers {
    /// Adds one; whether there was room.
    #[inline]
    pub(crate) fn push(&mut self, layer: Layer) -> bool {
        let count = (u64::BITS - self.0.leading_zeros()).div_ceil(8);
        if count >= MOST_LAYERS {
            return false;
        }
        self.0 |= (layer as u64 + 1) << (8 * count);
        true
    }

    /// All of them, the outermost first.
    pub(crate) fn to_vec(self) -> Vec<Layer> {
        let places = self
            .0
            .to_le_bytes()
            .into_iter()
            .take_while(|place| *place > 0);
        places
            .filter_map(|place| {
                Layer::WORDS
                    .get(usize::from(place) - 1)
                    .map(|(layer, _)| *layer)
            })
            .collect()
    }

    /// The outermost so many.
    pub(crate) fn first(self, count: usize) -> Self {
        match count {
            8.. => self,
            _ => Self(self.0 & ((1 << (8 * count)) - 1)),
        }
    }
}

/// An address of either version of IP: one of version 4 is mapped into version 6 (RFC 4291, section 2.5.5.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Address {
    high: u64,
    low: u64,
}

impl Address {
    #[inline]
    pub(super) fn v4(bytes: [u8; 4]) -> Self {
        Self {
            high: 0,
            low: 0xffff_0000_0000 | u64::from(u32::from_be_bytes(bytes)),
        }
    }

    #[inline]
    pub(super) fn v6(bytes: [u8; 16]) -> Self {
        let whole = u128::from_be_bytes(bytes);
        Self {
            high: (whole >> 64) as u64,
            low: whole as u64,
        }
    }

    /// The address as the standard library has it.
    pub(crate) fn ip(self) -> IpAddr {
        let whole = u128::from(self.high) << 64 | u128::from(self.low);
        Ipv6Addr::from_bits(whole).to_canonical()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.ip().fmt(f)
    }
}

/// The innermost IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Network {
    pub source: Address,
    pub destination: Address,
    /// DSCP and ECN, in one byte.
    pub traffic_class: u8,
    pub ttl: u8,
    /// Identification of IPv4; 0 in IPv6.
    pub ident: u16,
    /// Protocol number, after extension headers.
    pub protocol: u8,
}

/// What IP carries in a packet.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Transport<'a> {
    Tcp(Segment<'a>),
    Udp {
        ports: [u16; 2],
        payload: &'a [u8],
    },
    Icmp {
        v6: bool,
        kind: u8,
        code: u8,
        /// From behind the checksum on.
        body: &'a [u8],
    },
    /// Another protocol, or a fragment beyond the first.
    Other,
    #[default]
    None,
}

/// A packet, as far as it was read.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Packet<'a> {
    pub layers: Layers,
    pub network: Option<Network>,
    pub transport: Transport<'a>,
    /// What the innermost IP header carries, as far as it was captured, and how long it was on the wire.
    pub carried: &'a [u8],
    pub carried_bytes: u32,
    /// Whether the frame was sent to everybody or to a group.
    pub broadcast: bool,
    /// The frame, where it is of a wireless LAN.
    pub wireless: Option<Wireless>,
    /// Whether it is ARP.
    pub arp: bool,
    /// Whether it is a fragment of IP beyond the first.
    pub later_fragment: bool,
    pub end: End,
}

impl Packet<'_> {
    /// Notes a layer; packets of too many are read no further, which bounds tunnels within tunnels.
    #[inline]
    pub(super) fn layer(&mut self, layer: Layer) -> Result<(), End> {
        match self.layers.push(layer) {
            true => Ok(()),
            false => Err(End::Unread),
        }
    }
}
