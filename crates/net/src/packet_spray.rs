//! Dealing packets out in turn, one by one, whatever flow they belong to: nf_tables over netlink
//! (`linux/netfilter/nf_tables.h`, `linux/netfilter/nfnetlink.h`).
//!
//! The kernel's own choice between next hops is by flow. Here a counter marks the packets to a
//! prefix (`numgen inc` in nft(8)'s words), and rules of the routing policy look each mark up in a
//! table of its own.

use std::io;
use std::net::IpAddr;

use nix::sys::socket::SockProtocol;

use crate::netlink::attribute::{encode, nested, text};
use crate::netlink::connection::{APPEND, CREATE, Connection, Request};
use plumb_model::prefix::Prefix;

/// Deals the packets to `to` out: the first gets `first_mark`, the next one the mark after it, and
/// so on through `marks` of them. In the network namespace of the calling thread, for packets that
/// pass through it and those that begin in it.
///
/// # Errors
/// Errors of the kernel: `EPROTONOSUPPORT` or `ENOENT` where it lacks nf_tables or its number
/// generator.
pub fn deal_out(to: Prefix, first_mark: u32, marks: u32) -> io::Result<()> {
    let edge = |kind| request(kind, 0, 0, NFNL_SUBSYS_NFTABLES, &[]);
    Connection::open(SockProtocol::NetlinkNetFilter)?.batch(
        &edge(NFNL_MSG_BATCH_BEGIN),
        &requests(to, first_mark, marks),
        &edge(NFNL_MSG_BATCH_END),
    )
}

// nfnetlink.h: the subsystem and its batches.
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
// nf_tables.h: nf_tables_msg_types.
const NFT_MSG_NEWTABLE: u16 = 0;
const NFT_MSG_NEWCHAIN: u16 = 3;
const NFT_MSG_NEWRULE: u16 = 6;
/// The register that the expressions of a rule hand their values on in (NFT_REG_1).
const REGISTER: u32 = 1;
/// Priority of hooks that change packets before they are routed (NF_IP_PRI_MANGLE,
/// `netfilter_ipv4.h`).
const MANGLE: u32 = (-150i32) as u32;

/// The chains: name, type, hook (`enum nf_inet_hooks`). Packets from outside are marked before
/// they are routed. Packets of this machine are routed already, and a chain of type `route` routes them again.
const CHAINS: [(&str, &str, u32); 2] = [("passing", "filter", 0), ("own", "route", 3)];

/// The table, and in each of its chains the rule.
fn requests(to: Prefix, first_mark: u32, marks: u32) -> Vec<Request> {
    // NFPROTO_IPV4 and NFPROTO_IPV6.
    let family = if to.address.is_ipv4() { 2 } else { 10 };
    let request = |kind, flags, body: &[u8]| {
        let kind = NFNL_SUBSYS_NFTABLES << 8 | kind;
        request(kind, flags, family, 0, body)
    };
    // A table may be created twice: it then is the one that was there.
    let table = text(1, "plumb-lab");
    let mut requests = vec![request(NFT_MSG_NEWTABLE, CREATE, &table)];
    for (name, kind, hook) in CHAINS {
        let hook = nested(4, &[number(1, hook), number(2, MANGLE)]);
        let body = [text(1, "plumb-lab"), text(3, name), hook, text(7, kind)].concat();
        requests.push(request(NFT_MSG_NEWCHAIN, CREATE, &body));
        let rule = [
            text(1, "plumb-lab"),
            text(2, name),
            nested(4, &expressions(to, first_mark, marks)),
        ];
        requests.push(request(NFT_MSG_NEWRULE, CREATE | APPEND, &rule.concat()));
    }
    requests
}

/// A rule: destination within the prefix, then count, then mark.
fn expressions(to: Prefix, first_mark: u32, marks: u32) -> Vec<Vec<u8>> {
    /// Where IPv4 and IPv6 have the destination (RFC 791 section 3.1, RFC 8200 section 3).
    const OFFSETS: [u32; 2] = [16, 24];
    let [v4, v6] = OFFSETS;
    let (offset, wanted) = match to.address {
        IpAddr::V4(address) => (v4, address.octets().to_vec()),
        IpAddr::V6(address) => (v6, address.octets().to_vec()),
    };
    let length = wanted.len() as u32;
    let mask: Vec<u8> = (0..wanted.len() as u32)
        .map(|byte| {
            let bits = u32::from(to.length).saturating_sub(8 * byte).min(8);
            (0xff00u32 >> bits) as u8
        })
        .collect();
    let zeroes = vec![0; wanted.len()];
    let data = |kind, bytes: &[u8]| nested(kind, &[encode(1, bytes)]);
    vec![
        // Register, base (NFT_PAYLOAD_NETWORK_HEADER), offset, length.
        expression(
            "payload",
            &[
                number(1, REGISTER),
                number(2, 1),
                number(3, offset),
                number(4, length),
            ],
        ),
        // From register, to register, length, mask, what to add.
        expression(
            "bitwise",
            &[
                number(1, REGISTER),
                number(2, REGISTER),
                number(3, length),
                data(4, &mask),
                data(5, &zeroes),
            ],
        ),
        // Register, operation (NFT_CMP_EQ), value.
        expression(
            "cmp",
            &[number(1, REGISTER), number(2, 0), data(3, &wanted)],
        ),
        // Register, modulus, type (NFT_NG_INCREMENTAL), offset.
        expression(
            "numgen",
            &[
                number(1, REGISTER),
                number(2, marks),
                number(3, 0),
                number(4, first_mark),
            ],
        ),
        // Key (NFT_META_MARK), from register.
        expression("meta", &[number(2, 3), number(3, REGISTER)]),
    ]
}

/// One expression as an element of a list (NFTA_LIST_ELEM): its name and its data.
fn expression(name: &str, data: &[Vec<u8>]) -> Vec<u8> {
    nested(1, &[text(1, name), nested(2, data)])
}

/// A request of netfilter: `struct nfgenmsg`, attributes.
fn request(kind: u16, flags: u16, family: u8, resource: u16, attributes: &[u8]) -> Request {
    let [high, low] = resource.to_be_bytes();
    Request {
        kind,
        flags,
        body: [&[family, 0, high, low], attributes].concat(),
    }
}

/// Numbers of nf_tables are in network order.
fn number(kind: u16, value: u32) -> Vec<u8> {
    encode(kind, &value.to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_mask_the_prefix() {
        let to = Prefix {
            address: "10.0.8.0".parse().unwrap(),
            length: 21,
        };
        let requests = requests(to, 7, 2);
        assert_eq!(
            requests.len(),
            5,
            "a table, and two chains with a rule each"
        );
        let rule = &requests[2];
        let has = |bytes: &[u8]| rule.body.windows(bytes.len()).any(|w| w == bytes);
        assert!(has(&[255, 255, 248, 0]), "a mask of 21 bits");
        assert!(has(&[10, 0, 8, 0]));
    }
}
