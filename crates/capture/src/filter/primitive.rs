//! The simplest conditions: qualifiers, and the address, port or number that they are about.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::address::{is_address, mac, network, not_an_address};
use super::error::FilterError;
use super::names;
use super::number::{looks_like_number, number};
use super::stream::{Stream, unexpected};
use super::syntax::{Condition, Direction, Protocol};
use super::words::Word;

/// The largest EtherType that is none but a length (IEEE 802.3).
const LONGEST_FRAME_BYTES: u32 = 1500;
/// Numbers of protocols have a byte.
const LARGEST_IN_IP: u32 = 255;
const LARGEST_PORT: u32 = 65_535;

/// What the words before an address or a number say about it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Qualifiers {
    pub(super) protocol: Option<Protocol>,
    direction: Direction,
    kind: Kind,
}

/// What follows the qualifiers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    /// An address with or without a length.
    #[default]
    Address,
    Host,
    Net,
    Port,
    PortRange,
    Proto,
}

/// Reads the qualifiers behind the word of a protocol, if there was one; nothing where there are none.
pub(super) fn qualifiers(
    stream: &mut Stream<'_>,
    protocol: Option<Protocol>,
) -> Result<Option<Qualifiers>, FilterError> {
    let direction = direction(stream);
    let kind = match stream.peek() {
        "host" => Kind::Host,
        "net" => Kind::Net,
        "port" => Kind::Port,
        "portrange" => Kind::PortRange,
        "proto" if direction.is_none() => Kind::Proto,
        _ if direction.is_some() => Kind::Address,
        _ => return Ok(None),
    };
    if let (Some(word), Some(protocol)) = (stream.ahead(0), protocol) {
        fits(word, protocol, kind)?;
    }
    if kind != Kind::Address {
        stream.pass();
    }
    Ok(Some(Qualifiers {
        protocol,
        direction: direction.unwrap_or_default(),
        kind,
    }))
}

/// `src`, `dst`, and both joined by a word.
fn direction(stream: &mut Stream<'_>) -> Option<Direction> {
    let (one, other) = match stream.peek() {
        "src" => (Direction::Source, "dst"),
        "dst" => (Direction::Destination, "src"),
        _ => return None,
    };
    stream.pass();
    if stream.text_ahead(1) != other {
        return Some(one);
    }
    let joined = match stream.peek() {
        "or" | "||" => Direction::Either,
        "and" | "&&" => Direction::Both,
        _ => return Some(one),
    };
    stream.pass();
    stream.pass();
    Some(joined)
}

/// Refuses what a protocol has not.
fn fits(word: Word<'_>, protocol: Protocol, kind: Kind) -> Result<(), FilterError> {
    use Protocol::{Arp, Ip, Ip6, Link, Rarp, Sctp, Tcp, Udp};
    let (has, accepted) = match kind {
        Kind::Port | Kind::PortRange => (
            matches!(protocol, Tcp | Udp | Sctp),
            "`tcp`, `udp` and `sctp` have ports",
        ),
        Kind::Proto => (
            matches!(protocol, Link | Ip | Ip6),
            "`ether`, `ip` and `ip6` have `proto`",
        ),
        Kind::Net => (
            matches!(protocol, Ip | Ip6 | Arp | Rarp),
            "`ip`, `ip6`, `arp` and `rarp` have networks",
        ),
        Kind::Address | Kind::Host => (
            matches!(protocol, Link | Ip | Ip6 | Arp | Rarp),
            "`ether`, `ip`, `ip6`, `arp` and `rarp` have addresses",
        ),
    };
    match has {
        true => Ok(()),
        false => Err(mismatch(word, protocol.word(), accepted)),
    }
}

fn mismatch(word: Word<'_>, qualifier: &'static str, accepted: &'static str) -> FilterError {
    FilterError::Mismatch {
        word: word.text.to_owned(),
        at: word.at,
        qualifier,
        accepted,
    }
}

/// The condition of an address, port or number under its qualifiers.
pub(super) fn identifier(
    stream: &mut Stream<'_>,
    qualifiers: Qualifiers,
) -> Result<Condition, FilterError> {
    match qualifiers.kind {
        Kind::Address | Kind::Host | Kind::Net => address(stream, qualifiers),
        Kind::Port => {
            let word = stream.take("the number of a port")?;
            let port = port(word, word.text)?;
            Ok(ports(qualifiers, [port, port]))
        }
        Kind::PortRange => {
            let word = stream.take("two numbers of ports, as in 8000-8010")?;
            let (first, last) = word.text.split_once('-').unwrap_or((word.text, word.text));
            let (first, last) = (port(word, first)?, port(word, last)?);
            Ok(ports(qualifiers, [first.min(last), first.max(last)]))
        }
        Kind::Proto => proto(stream, qualifiers.protocol),
    }
}

fn ports(qualifiers: Qualifiers, ports: [u16; 2]) -> Condition {
    Condition::Ports {
        transport: qualifiers.protocol,
        direction: qualifiers.direction,
        ports,
    }
}

fn port(word: Word<'_>, text: &str) -> Result<u16, FilterError> {
    let accepted = "the number of a port";
    if text.is_empty() || is_address(text) {
        return Err(unexpected(word, accepted));
    }
    if !looks_like_number(text) {
        return Err(match text.starts_with(|c: char| c.is_ascii_alphabetic()) {
            true => FilterError::ServiceName {
                word: word.text.to_owned(),
                at: word.at,
            },
            false => unexpected(word, accepted),
        });
    }
    let value = within(word, text, LARGEST_PORT)?;
    u16::try_from(value).map_err(|_| unexpected(word, accepted))
}

/// A number that may be so large.
pub(super) fn within(word: Word<'_>, text: &str, most: u32) -> Result<u32, FilterError> {
    match number(text) {
        Some(value) if value <= most => Ok(value),
        None if !looks_like_number(text) => Err(unexpected(word, "a number")),
        _ => Err(FilterError::TooLarge {
            word: word.text.to_owned(),
            at: word.at,
            most,
        }),
    }
}

fn proto(stream: &mut Stream<'_>, within_what: Option<Protocol>) -> Result<Condition, FilterError> {
    if within_what == Some(Protocol::Link) {
        let accepted = "an EtherType from 0x5dd on, or one of ip, ip6, arp and rarp";
        let word = stream.take(accepted)?;
        let value = match names::ether_type(word.text) {
            Some(value) => value,
            None if looks_like_number(word.text) => within(word, word.text, u32::from(u16::MAX))?,
            None => return Err(unexpected(word, accepted)),
        };
        // Of Apple's protocols libpcap looks into 802.2 too, which is left out here.
        return match value > LONGEST_FRAME_BYTES && !matches!(value, 0x809b | 0x80f3) {
            true => Ok(Condition::EtherType(value)),
            false => Err(unexpected(word, accepted)),
        };
    }
    let accepted = "the number of a protocol, or one of icmp, igmp, tcp, udp, icmp6 and sctp";
    let word = stream.take(accepted)?;
    let number = match names::in_ip(word.text) {
        Some(number) => number,
        None if looks_like_number(word.text) => within(word, word.text, LARGEST_IN_IP)?,
        None => return Err(unexpected(word, accepted)),
    };
    Ok(Condition::InIp {
        within: within_what,
        number,
    })
}

fn address(stream: &mut Stream<'_>, qualifiers: Qualifiers) -> Result<Condition, FilterError> {
    let (protocol, direction) = (qualifiers.protocol, qualifiers.direction);
    if protocol == Some(Protocol::Link) {
        let word = stream.take("an Ethernet address, as in 02:00:00:00:00:01")?;
        let mac = mac(word.text);
        let mac =
            mac.ok_or_else(|| unexpected(word, "an Ethernet address, as in 02:00:00:00:00:01"))?;
        let at = word.at;
        return Ok(Condition::Station { direction, mac, at });
    }
    let word = stream.take("an address")?;
    if mac(word.text).is_some() {
        return Err(unexpected(
            word,
            "an address of IP; `ether host` stands before an Ethernet address",
        ));
    }
    let address = word
        .text
        .parse::<IpAddr>()
        .map_err(|_| not_an_address(word))?;
    let fits = match address {
        IpAddr::V4(_) => protocol != Some(Protocol::Ip6),
        IpAddr::V6(_) => matches!(protocol, None | Some(Protocol::Ip6)),
    };
    if let (false, Some(protocol)) = (fits, protocol) {
        let accepted = "this address is of the other version of IP";
        return Err(mismatch(word, protocol.word(), accepted));
    }
    let bits = match address {
        IpAddr::V4(_) => Ipv4Addr::BITS,
        IpAddr::V6(_) => Ipv6Addr::BITS,
    };
    let length = match (qualifiers.kind, stream.peek()) {
        (Kind::Host, "/") => {
            return Err(stream.unexpected("no length behind a host; `net` stands before a network"));
        }
        (_, "/") => {
            stream.pass();
            let length = stream.take("the length of the network in bits")?;
            within(length, length.text, bits)?
        }
        (Kind::Net, _) => {
            return Err(stream.unexpected("/ and the length of the network in bits"));
        }
        _ => bits,
    };
    Ok(Condition::Address {
        protocol,
        direction,
        network: network(word, address, length)?,
    })
}
