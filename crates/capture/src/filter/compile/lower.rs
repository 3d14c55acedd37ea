//! Conditions as tests of a packet. The order of the tests is libpcap's: a load outside of a packet refuses it, and so
//! what is loaded first matters where a packet was cut.

use super::arithmetic::relation;
use super::header::{V6_BYTES, in_v4, in_v6, not_later_fragment, v4_header, v6_next};
use super::layout::Layout;
use super::place::Place;
use super::tree::Tree;
use crate::filter::bpf::{Instruction, Width, code};
use crate::filter::error::FilterError;
use crate::filter::syntax::{Condition, Direction, Network, Protocol};

/// Where addresses are in what a frame carries, the source first: IPv4 (RFC 791), ARP for IPv4 over Ethernet (RFC 826),
/// IPv6 (RFC 8200), and in the frame.
const V4_ADDRESSES: [u32; 2] = [12, 16];
const ARP_ADDRESSES: [u32; 2] = [14, 24];
const V6_ADDRESSES: [u32; 2] = [8, 24];
const STATIONS: [u32; 2] = [6, 0];
/// Where ports are in TCP, UDP and SCTP, the source first.
const PORTS: [u32; 2] = [0, 2];
/// What has ports, in the order in which libpcap asks.
const WITH_PORTS: [Protocol; 3] = [Protocol::Sctp, Protocol::Tcp, Protocol::Udp];

/// The tests of a condition. `vlan` changes where what comes later in the text is looked for, whatever joins them.
pub(super) fn lower(condition: &Condition, layout: &mut Layout) -> Result<Tree, FilterError> {
    Ok(match condition {
        Condition::All(members) => Tree::All(all(members, layout)?),
        Condition::Any(members) => Tree::Any(all(members, layout)?),
        Condition::Not(of) => lower(of, layout)?.not(),
        Condition::Protocol(protocol) => has(*protocol, layout),
        Condition::Address {
            protocol,
            direction,
            network,
        } => address(*protocol, *direction, *network, layout),
        Condition::Ports {
            transport,
            direction,
            ports,
        } => {
            let of = transport
                .as_ref()
                .map_or(&WITH_PORTS[..], std::slice::from_ref);
            Tree::Any(vec![
                ports_in_v6(of, *direction, *ports, layout),
                ports_in_v4(of, *direction, *ports, layout),
            ])
        }
        Condition::InIp { within, number } => match within {
            Some(Protocol::Ip) => in_v4(layout, *number),
            Some(Protocol::Ip6) => in_v6(layout, *number),
            _ => in_either(layout, *number),
        },
        Condition::EtherType(number) => layout.has_ether_type(*number),
        Condition::Station { direction, mac, at } => {
            layout.need_ethernet("ether", *at)?;
            directed(*direction, STATIONS, |at| station(*mac, Place::fixed(at)))
        }
        Condition::Vlan { id, at } => {
            layout.need_ethernet("vlan", *at)?;
            layout.enter_vlan(*id)
        }
        Condition::Relation(of) => relation(of, layout)?,
    })
}

fn all(members: &[Condition], layout: &mut Layout) -> Result<Vec<Tree>, FilterError> {
    let members = members.iter().map(|member| lower(member, layout));
    members.collect()
}

/// A test of the source, the destination, or both.
fn directed(direction: Direction, places: [u32; 2], test: impl Fn(u32) -> Tree) -> Tree {
    let [source, destination] = places;
    match direction {
        Direction::Source => test(source),
        Direction::Destination => test(destination),
        Direction::Either => Tree::Any(vec![test(source), test(destination)]),
        Direction::Both => Tree::All(vec![test(source), test(destination)]),
    }
}

/// That a packet has a protocol.
fn has(protocol: Protocol, layout: &Layout) -> Tree {
    match (protocol, protocol.number_in_ip()) {
        (Protocol::Icmp | Protocol::Igmp, Some(number)) => in_v4(layout, number),
        (Protocol::Icmp6, Some(number)) => in_v6(layout, number),
        (_, Some(number)) => in_either(layout, number),
        (_, None) => layout.carries(protocol),
    }
}

fn in_either(layout: &Layout, number: u32) -> Tree {
    Tree::Any(vec![in_v4(layout, number), in_v6(layout, number)])
}

fn address(
    protocol: Option<Protocol>,
    direction: Direction,
    network: Network,
    layout: &Layout,
) -> Tree {
    let payload = layout.payload();
    let of_v4 = |protocol, places, address, mask| {
        let test = |place| Tree::masked(payload.plus(place), Width::Four, mask, address);
        Tree::All(vec![
            layout.carries(protocol),
            directed(direction, places, test),
        ])
    };
    match network {
        Network::V4 { address, mask } => {
            let found = [Protocol::Ip, Protocol::Arp, Protocol::Rarp].into_iter();
            let found = found.filter(|known| protocol.is_none_or(|protocol| protocol == *known));
            let tests = found.map(|known| {
                let places = match known {
                    Protocol::Ip => V4_ADDRESSES,
                    _ => ARP_ADDRESSES,
                };
                of_v4(known, places, address.to_bits(), mask)
            });
            Tree::Any(tests.collect())
        }
        Network::V6 { address, mask } => {
            let words = |of: u128| [96, 64, 32, 0].map(|shift| (of >> shift) as u32);
            let (address, mask) = (words(address.to_bits()), words(mask));
            let test = |place: u32| {
                let places = (place..).step_by(4).map(|at| payload.plus(at));
                let words = places.zip(address.into_iter().zip(mask));
                let tests = words
                    .map(|(at, (word, mask))| Tree::masked(at, Width::Four, mask, word))
                    .collect();
                Tree::All(tests)
            };
            Tree::All(vec![
                layout.carries(Protocol::Ip6),
                directed(direction, V6_ADDRESSES, test),
            ])
        }
    }
}

/// That an Ethernet address stands at a place; its end is looked at first.
fn station(mac: [u8; 6], place: Place) -> Tree {
    let [a, b, c, d, e, f] = mac;
    Tree::All(vec![
        Tree::equal(place.plus(2), Width::Four, u32::from_be_bytes([c, d, e, f])),
        Tree::equal(place, Width::Two, u32::from(u16::from_be_bytes([a, b]))),
    ])
}

/// That a protocol is one of those with ports.
fn one_of(protocols: &[Protocol], test: impl Fn(u32) -> Tree) -> Tree {
    let numbers = protocols
        .iter()
        .filter_map(|protocol| protocol.number_in_ip());
    Tree::Any(numbers.map(test).collect())
}

fn ports_in_v6(of: &[Protocol], direction: Direction, ports: [u16; 2], layout: &Layout) -> Tree {
    let begin = layout.payload().plus(V6_BYTES);
    let test = |place| within(begin.plus(place).load(Width::Two), ports);
    Tree::All(vec![
        layout.carries(Protocol::Ip6),
        one_of(of, |number| v6_next(layout, number)),
        directed(direction, PORTS, test),
    ])
}

fn ports_in_v4(of: &[Protocol], direction: Direction, ports: [u16; 2], layout: &Layout) -> Tree {
    let test = |place| {
        let indexed = code::LOAD_INDEXED | Width::Two.code();
        let mut load = v4_header(layout);
        load.push(Instruction::plain(indexed, layout.payload().at + place));
        within(load, ports)
    };
    Tree::All(vec![
        one_of(of, |number| in_v4(layout, number)),
        not_later_fragment(layout),
        directed(direction, PORTS, test),
    ])
}

/// That a port is one of a range.
fn within(load: Vec<Instruction>, ports: [u16; 2]) -> Tree {
    let [first, last] = ports.map(u32::from);
    if first == last {
        return Tree::test(load, code::JUMP_EQUAL, first);
    }
    Tree::All(vec![
        Tree::test(load.clone(), code::JUMP_GREATER_EQUAL, first),
        Tree::test(load, code::JUMP_GREATER, last).not(),
    ])
}
