//! Addresses, routes and rules of routing (rtnetlink(7), `linux/rtnetlink.h`, `linux/fib_rules.h`).

use std::net::IpAddr;

use super::attribute::{address, attributes, bytes_at, encode, number, text, u32_at};
use super::connection::{CREATE, EXCLUSIVE, Message, REPLACE};
use super::neighbour::RTM_NEWADDR;
use super::{LOCAL_TABLE, MAIN_TABLE, Netlink, NetlinkError, NextHop, family};
use plumb_model::prefix::Prefix;

const RTM_NEWROUTE: u16 = 24;
const RTM_GETROUTE: u16 = 26;
const RTM_NEWRULE: u16 = 32;

/// Attributes of addresses (`IFA_*`), and the flag that leaves the search for duplicates out
/// (`IFA_F_NODAD`).
const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const NO_DUPLICATE_SEARCH: u32 = 2;

/// Attributes of routes (`RTA_*`).
const DESTINATION: u16 = 1;
const SOURCE: u16 = 2;
const INTERFACE: u16 = 4;
const GATEWAY: u16 = 5;
const PRIORITY: u16 = 6;
const NEXT_HOPS: u16 = 9;
const TABLE: u16 = 15;
const VIA: u16 = 18;

/// Kinds of routes (`RTN_*`), how far they reach (`RT_SCOPE_*`), and who set them (`RTPROT_STATIC`).
const UNICAST: u8 = 1;
const LOCAL: u8 = 2;
const MULTICAST: u8 = 5;
const UNIVERSE: u8 = 0;
const ON_LINK: u8 = 253;
const ON_HOST: u8 = 254;
const STATIC: u8 = 4;

/// Attributes of rules (`FRA_*`), and their action "look up a table" (`FR_ACT_TO_TBL`).
const RULE_INPUT: u16 = 3;
const RULE_PRIORITY: u16 = 6;
const RULE_MARK: u16 = 10;
const RULE_SUPPRESSED_LENGTH: u16 = 14;
const RULE_TABLE: u16 = 15;
const RULE_PROTOCOL: u16 = 22;
const RULE_SOURCE_PORTS: u16 = 23;
const RULE_DESTINATION_PORTS: u16 = 24;
const TO_TABLE: u8 = 1;

/// Length of `struct rtmsg`.
const ROUTE_HEADER_BYTES: usize = 12;

/// Which port of a packet a rule looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortOf {
    Source,
    Destination,
}

/// `struct rtmsg` of a new route: family, lengths of destination and source, type of service, table (0: an
/// attribute has it), protocol, scope, kind, flags.
fn route_header(family: u8, destination: u8, scope: u8, kind: u8) -> Vec<u8> {
    vec![
        family,
        destination,
        0,
        0,
        0,
        STATIC,
        scope,
        kind,
        0,
        0,
        0,
        0,
    ]
}

/// `struct fib_rule_hdr`: family, lengths of destination and source, type of service, table (0: an attribute has
/// it), two bytes of nothing, action, flags.
fn rule_header(family: u8) -> Vec<u8> {
    vec![family, 0, 0, 0, 0, 0, 0, TO_TABLE, 0, 0, 0, 0]
}

impl Netlink {
    /// Gives a link an address, which is in use at once: IPv6's search for duplicates is left out.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn add_address(&mut self, index: u32, ip: IpAddr, prefix: u8) -> Result<(), NetlinkError> {
        // `struct ifaddrmsg`: family, length of the prefix, flags, scope, index.
        let head = [family(ip), prefix, 0, UNIVERSE];
        let flags = ip.is_ipv6().then(|| number(IFA_FLAGS, NO_DUPLICATE_SEARCH));
        let body = [
            head.to_vec(),
            index.to_ne_bytes().to_vec(),
            address(IFA_LOCAL, ip),
            address(IFA_ADDRESS, ip),
            flags.unwrap_or_default(),
        ];
        self.request(RTM_NEWADDR, CREATE | EXCLUSIVE, &body, || {
            format!("give interface {index} the address {ip}/{prefix}")
        })
        .map(drop)
    }

    /// Sets the route to a prefix in a table, in the place of one that is there. Over several
    /// next hops the kernel chooses one for each flow.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_route(
        &mut self,
        to: Prefix,
        hops: &[NextHop],
        table: u32,
    ) -> Result<(), NetlinkError> {
        self.route(to, hops, table, UNICAST)
    }

    /// Says by which link multicast groups are sent to, and joined by programs that name no link.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_group_route(&mut self, groups: Prefix, interface: u32) -> Result<(), NetlinkError> {
        let hop = NextHop {
            interface,
            gateway: None,
        };
        // IPv4 knows a group by its address. IPv6 has a route to ff00::/8 in the local table
        // for every interface (addrconf_add_mroute, net/ipv6/addrconf.c), which comes first.
        let (table, kind) = match groups.address {
            IpAddr::V4(_) => (MAIN_TABLE, UNICAST),
            IpAddr::V6(_) => (LOCAL_TABLE, MULTICAST),
        };
        self.route(groups, &[hop], table, kind)
    }

    fn route(
        &mut self,
        to: Prefix,
        hops: &[NextHop],
        table: u32,
        kind: u8,
    ) -> Result<(), NetlinkError> {
        let scope = match hops {
            [hop] if hop.gateway.is_none() => ON_LINK,
            _ => UNIVERSE,
        };
        let gateway = |hop: &NextHop| hop.gateway.map(|gateway| address(GATEWAY, gateway));
        let onwards = match hops {
            [hop] => [
                number(INTERFACE, hop.interface),
                gateway(hop).unwrap_or_default(),
            ]
            .concat(),
            hops => {
                let hops = hops
                    .iter()
                    .map(|hop| next_hop(hop.interface, &gateway(hop).unwrap_or_default()));
                encode(NEXT_HOPS, &hops.collect::<Vec<_>>().concat())
            }
        };
        let body = [
            route_header(family(to.address), to.length, scope, kind),
            address(DESTINATION, to.address),
            number(TABLE, table),
            onwards,
        ];
        self.request(RTM_NEWROUTE, CREATE | REPLACE, &body, || {
            format!("set the route to {to} in table {table}")
        })
        .map(drop)
    }

    /// Makes every address of a family one of this machine's, in a table of its own.
    pub(crate) fn add_everything_local(
        &mut self,
        family: u8,
        loopback: u32,
        table: u32,
    ) -> Result<(), NetlinkError> {
        let body = [
            route_header(family, 0, ON_HOST, LOCAL),
            number(TABLE, table),
            number(INTERFACE, loopback),
        ];
        self.request(
            RTM_NEWROUTE,
            CREATE | EXCLUSIVE,
            &body,
            || "make every address local",
        )
        .map(drop)
    }

    /// The first step of packets to `to`, from `source` and by `interface` where they are given; `None` where it is
    /// an address of this host.
    pub(crate) fn find_route(
        &mut self,
        to: IpAddr,
        source: Option<IpAddr>,
        interface: Option<u32>,
    ) -> Result<Option<NextHop>, NetlinkError> {
        let bits = |address: IpAddr| Prefix::host(address).length;
        let mut head = vec![family(to), bits(to), source.map_or(0, bits)];
        head.resize(ROUTE_HEADER_BYTES, 0);
        let body = [
            head,
            address(DESTINATION, to),
            source.map_or_else(Vec::new, |source| address(SOURCE, source)),
            interface.map_or_else(Vec::new, |index| number(INTERFACE, index)),
        ];
        let answers = self.request(RTM_GETROUTE, 0, &body, || {
            format!("look up the route to {to}")
        })?;
        Ok(answers.iter().find_map(hop))
    }

    /// The first step of the default route of a family (`AF_*`): of the main table where it has one, and of the least metric.
    pub(crate) fn default_route(&mut self, family: u8) -> Result<Option<NextHop>, NetlinkError> {
        let mut head = vec![family];
        head.resize(ROUTE_HEADER_BYTES, 0);
        let listed = self.connection.list(RTM_GETROUTE, &head);
        let listed = listed.map_err(NetlinkError::when(|| "list the routes"))?;
        let defaults = listed.iter().filter_map(default_of);
        let best = defaults.min_by_key(|(table, metric, _)| (*table != MAIN_TABLE, *metric));
        Ok(best.map(|(.., hop)| hop))
    }

    /// Looks up packets with `mark` in `table`, unless the main table knows more of their destination than `to`.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn add_mark_rules(
        &mut self,
        to: Prefix,
        mark: u32,
        table: u32,
    ) -> Result<(), NetlinkError> {
        /// After the local table (0), before the main one (32766, `net/ipv4/fib_rules.c`).
        const PRIORITY: u32 = 100;
        let more_specific = number(RULE_SUPPRESSED_LENGTH, u32::from(to.length));
        for (priority, table, condition) in [
            (PRIORITY, MAIN_TABLE, more_specific),
            (PRIORITY + 1, table, Vec::new()),
        ] {
            let body = [
                rule_header(family(to.address)),
                number(RULE_PRIORITY, priority),
                number(RULE_MARK, mark),
                number(RULE_TABLE, table),
                condition,
            ];
            self.request(RTM_NEWRULE, CREATE | EXCLUSIVE, &body, || {
                format!("look up packets with mark {mark} in table {table}")
            })?;
        }
        Ok(())
    }

    /// Looks up TCP packets of a family that come in by `interface` from or to a port in `table`.
    pub(crate) fn add_port_rule(
        &mut self,
        family: u8,
        interface: &str,
        which: PortOf,
        port: u16,
        priority: u32,
        table: u32,
    ) -> Result<(), NetlinkError> {
        let ports = match which {
            PortOf::Source => RULE_SOURCE_PORTS,
            PortOf::Destination => RULE_DESTINATION_PORTS,
        };
        let body = [
            rule_header(family),
            number(RULE_TABLE, table),
            number(RULE_PRIORITY, priority),
            text(RULE_INPUT, interface),
            encode(RULE_PROTOCOL, &[libc::IPPROTO_TCP as u8]),
            // `struct fib_rule_port_range`: the first and the last.
            encode(ports, &[port, port].map(u16::to_ne_bytes).concat()),
        ];
        self.request(RTM_NEWRULE, CREATE | EXCLUSIVE, &body, || {
            format!("route TCP of port {port} that comes by {interface} to this machine")
        })
        .map(drop)
    }
}

/// `struct rtnexthop`: length, flags, weight less one, interface; and its attributes.
fn next_hop(interface: u32, attributes: &[u8]) -> Vec<u8> {
    const HEADER_BYTES: usize = 8;
    let length = u16::try_from(HEADER_BYTES + attributes.len()).unwrap_or(u16::MAX);
    let mut bytes = length.to_ne_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(interface.to_ne_bytes());
    bytes.extend(attributes);
    bytes
}

/// The table, the metric and the first step of a default route; `None` of other routes.
fn default_of(message: &Message) -> Option<(u32, u32, NextHop)> {
    let [_, 0, _, _, table, _, _, UNICAST, ..] = *message.body.as_slice() else {
        return None;
    };
    let attributes = || attributes(message.body.get(ROUTE_HEADER_BYTES..).unwrap_or_default());
    let of = |kind| attributes().find(|one| one.kind == kind)?.u32();
    // Of several next hops the first is taken.
    let several = attributes().find(|one| one.kind == NEXT_HOPS);
    let first = several.and_then(|several| first_of(several.value));
    Some((
        of(TABLE).unwrap_or(u32::from(table)),
        of(PRIORITY).unwrap_or(0),
        hop(message).or(first)?,
    ))
}

/// The first of several next hops (`struct rtnexthop`: length, flags, weight, interface; and its attributes).
fn first_of(hops: &[u8]) -> Option<NextHop> {
    const HEADER_BYTES: usize = 8;
    let length = bytes_at(hops, 0).map(u16::from_ne_bytes)?;
    let own = hops.get(HEADER_BYTES..usize::from(length))?;
    let (_, gateway) = step(own);
    Some(NextHop {
        interface: u32_at(hops, 4)?,
        gateway,
    })
}

/// The first step of a route; `None` where it ends at this host.
fn hop(message: &Message) -> Option<NextHop> {
    let kind = *message.body.get(7)?;
    if message.kind != RTM_NEWROUTE || kind == LOCAL {
        return None;
    }
    let (interface, gateway) = step(message.body.get(ROUTE_HEADER_BYTES..)?);
    Some(NextHop {
        interface: interface?,
        gateway,
    })
}

/// The interface and the gateway among attributes of a route.
fn step(bytes: &[u8]) -> (Option<u32>, Option<IpAddr>) {
    let mut interface = None;
    let mut gateway = None;
    for attribute in attributes(bytes) {
        match attribute.kind {
            INTERFACE => interface = attribute.u32(),
            GATEWAY => gateway = attribute.address(),
            // `struct rtvia`: an address of the other family, which stands before it.
            VIA => {
                gateway = match bytes_at(attribute.value, 0).map(u16::from_ne_bytes) {
                    Some(family) if i32::from(family) == libc::AF_INET => {
                        bytes_at::<4>(attribute.value, 2).map(IpAddr::from)
                    }
                    Some(family) if i32::from(family) == libc::AF_INET6 => {
                        bytes_at::<16>(attribute.value, 2).map(IpAddr::from)
                    }
                    _ => None,
                };
            }
            _ => {}
        }
    }
    (interface, gateway)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io;
    use std::os::fd::AsFd;

    use nix::sys::socket::SockProtocol;

    use super::*;
    use crate::namespace::Namespaces;
    use crate::netlink::attribute::find;
    use crate::netlink::connection::list;
    use crate::netlink::{interface_index, neighbour};

    fn message(kind: u8, attributes: &[Vec<u8>]) -> Message {
        let mut body = vec![0; ROUTE_HEADER_BYTES];
        body[7] = kind;
        body.extend(attributes.concat());
        Message {
            kind: RTM_NEWROUTE,
            body,
        }
    }

    #[test]
    fn the_gateway_is_read_from_a_route() {
        let gateway = IpAddr::from([192, 0, 2, 1]);
        let expected = |gateway| {
            Some(NextHop {
                interface: 7,
                gateway,
            })
        };
        let by = number(INTERFACE, 7);
        let read = |attributes: &[Vec<u8>]| hop(&message(UNICAST, attributes));
        assert_eq!(
            read(&[by.clone(), address(GATEWAY, gateway)]),
            expected(Some(gateway))
        );
        assert_eq!(
            read(std::slice::from_ref(&by)),
            expected(None),
            "a neighbour"
        );
        // A gateway of the other family (RFC 8950).
        let v6: IpAddr = "fe80::1".parse().unwrap();
        let IpAddr::V6(octets) = v6 else { panic!() };
        let via = [
            (libc::AF_INET6 as u16).to_ne_bytes().to_vec(),
            octets.octets().to_vec(),
        ];
        assert_eq!(
            read(&[by.clone(), encode(VIA, &via.concat())]),
            expected(Some(v6))
        );
        assert_eq!(hop(&message(LOCAL, &[by])), None, "this host");
        assert_eq!(read(&[]), None);
    }

    #[test]
    fn the_default_route_is_that_of_the_main_table_with_the_least_metric() {
        let network = Namespaces::create("default", || Ok::<_, io::Error>(())).unwrap();
        let other = Namespaces::create("beside", || Ok::<_, io::Error>(())).unwrap();
        network
            .in_network(|| {
                let mut netlink = Netlink::open().unwrap();
                netlink
                    .add_veth("here", "there", other.net().as_fd())
                    .unwrap();
                let here = interface_index("here")?;
                netlink.set_up(here, None).unwrap();
                let v4 = libc::AF_INET as u8;
                netlink.add_address(here, [10, 1, 0, 2].into(), 24).unwrap();
                let hop = |last| NextHop {
                    interface: here,
                    gateway: Some(IpAddr::from([10, 1, 0, last])),
                };
                let all = |address: [u8; 4], length| Prefix {
                    address: address.into(),
                    length,
                };
                // A route to the addresses of documentation is no default route.
                let documentation = all([192, 0, 2, 0], 24);
                netlink
                    .set_route(documentation, &[hop(9)], MAIN_TABLE)
                    .unwrap();
                assert_eq!(netlink.default_route(v4).unwrap(), None);
                let everywhere = all([0, 0, 0, 0], 0);
                netlink.set_route(everywhere, &[hop(8)], 300).unwrap();
                assert_eq!(netlink.default_route(v4).unwrap(), Some(hop(8)));
                netlink
                    .set_route(everywhere, &[hop(1), hop(3)], MAIN_TABLE)
                    .unwrap();
                assert_eq!(netlink.default_route(v4).unwrap(), Some(hop(1)));
                Ok::<_, io::Error>(())
            })
            .unwrap();
    }

    /// The check is what the kernel lists after the changes.
    #[test]
    fn addresses_routes_and_rules_are_what_the_kernel_then_lists() {
        let network = Namespaces::create("routing", || Ok::<_, io::Error>(())).unwrap();
        let other = Namespaces::create("peer", || Ok::<_, io::Error>(())).unwrap();
        network
            .in_network(|| {
                let mut netlink = Netlink::open().unwrap();
                netlink
                    .add_veth("here", "there", other.net().as_fd())
                    .unwrap();
                let here = interface_index("here")?;
                other.in_network(|| {
                    let there = interface_index("there")?;
                    Netlink::open().unwrap().set_up(there, None).unwrap();
                    Ok::<_, io::Error>(())
                })?;
                netlink.set_up(here, None).unwrap();
                for (own, gateways, far) in [
                    ("10.1.0.2", ["10.1.0.1", "10.1.0.9"], "10.7.0.0"),
                    ("fd01::2", ["fd01::1", "fd01::9"], "fd07::"),
                ] {
                    let own: IpAddr = own.parse().unwrap();
                    let far: IpAddr = far.parse().unwrap();
                    let (net, bits) = if own.is_ipv4() { (24, 32) } else { (64, 128) };
                    netlink.add_address(here, own, net).unwrap();
                    let all = neighbour::addresses().unwrap();
                    let as_listed = Prefix {
                        address: own,
                        length: net,
                    };
                    assert!(all.contains(&(here, as_listed)), "{all:?}");
                    let again = netlink.add_address(here, own, net).unwrap_err();
                    assert_eq!(again.source.raw_os_error(), Some(libc::EEXIST));

                    let to = Prefix {
                        address: far,
                        length: bits - 8,
                    };
                    let hops = gateways.map(|gateway| NextHop {
                        interface: here,
                        gateway: Some(gateway.parse().unwrap()),
                    });
                    for hops in [&hops[..1], &hops[1..], &hops[..]] {
                        netlink.set_route(to, hops, MAIN_TABLE).unwrap();
                        let found = netlink.find_route(far, Some(own), Some(here)).unwrap();
                        assert!(hops.contains(&found.unwrap()), "{found:?} of {hops:?}");
                    }
                    // Of IPv6 the route to an own address comes later than the address, from a work queue
                    // (net/ipv6/addrconf.c, addrconf_dad_work).
                    if own.is_ipv4() {
                        assert_eq!(netlink.find_route(own, None, None).unwrap(), None);
                    }
                    let nowhere = Prefix {
                        address: far,
                        length: bits + 1,
                    };
                    let error = netlink.set_route(nowhere, &hops, MAIN_TABLE).unwrap_err();
                    assert!(
                        error
                            .to_string()
                            .contains(&format!("the route to {nowhere}"))
                    );

                    netlink.add_mark_rules(to, 5, 300).unwrap();
                    let family = family(own);
                    netlink
                        .add_port_rule(family, "here", PortOf::Source, 443, 900, 301)
                        .unwrap();
                    let body = rule_header(family);
                    let rules = list(SockProtocol::NetlinkRoute, 34, &body, "rules").unwrap();
                    let rule = |priority| {
                        let of = |m: &Message, kind| find(&m.body[12..], kind)?.u32();
                        let rule = rules
                            .iter()
                            .find(|m| of(m, RULE_PRIORITY) == Some(priority))
                            .unwrap();
                        (
                            of(rule, RULE_MARK),
                            of(rule, RULE_TABLE),
                            of(rule, RULE_SUPPRESSED_LENGTH).filter(|n| *n != u32::MAX),
                            find(&rule.body[12..], RULE_SOURCE_PORTS)
                                .and_then(|a| u32_at(a.value, 0)),
                        )
                    };
                    let length = u32::from(to.length);
                    assert_eq!(rule(100), (Some(5), Some(MAIN_TABLE), Some(length), None));
                    assert_eq!(rule(101), (Some(5), Some(300), None, None));
                    let ports = u32::from_ne_bytes(
                        [443_u16.to_ne_bytes(), 443_u16.to_ne_bytes()]
                            .concat()
                            .try_into()
                            .unwrap(),
                    );
                    assert_eq!(rule(900), (None, Some(301), None, Some(ports)));
                }
                Ok::<_, io::Error>(())
            })
            .unwrap();
    }
}
