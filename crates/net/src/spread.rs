//! Dealing packets out in turn, one by one, whatever flow they belong to: nf_tables over netlink
//! (`linux/netfilter/nf_tables.h`, `linux/netfilter/nfnetlink.h`).
//!
//! The kernel's own choice between next hops is by flow. Here a counter marks the packets to a
//! prefix (`numgen inc` in nft(8)'s words), and rules of the routing policy look each mark up in a
//! table of its own.

use std::io;
use std::net::IpAddr;

use netlink_sys::protocols::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};

use crate::netlink::{Prefix, attribute};

/// Deals the packets to `to` out: the first gets `first_mark`, the next one the mark after it, and
/// so on through `marks` of them. In the network namespace of the calling thread, for packets that
/// pass through it and those that begin in it.
///
/// # Errors
/// Those of the kernel: `EPROTONOSUPPORT` or `ENOENT` where it lacks nf_tables or its number
/// generator.
pub fn deal_out(to: Prefix, first_mark: u32, marks: u32) -> io::Result<()> {
    let mut socket = Socket::new(NETLINK_NETFILTER)?;
    socket.bind_auto()?;
    socket.connect(&SocketAddr::new(0, 0))?;
    let (batch, requests) = batch(to, first_mark, marks);
    socket.send(&batch, 0)?;
    // One acknowledgement each; after an error the rest of the batch is undone.
    for _ in 0..requests {
        let (answer, _) = socket.recv_from_full()?;
        acknowledged(&answer)?;
    }
    Ok(())
}

/// The error in an answer (`struct nlmsgerr` behind `struct nlmsghdr`), if there is one.
fn acknowledged(answer: &[u8]) -> io::Result<()> {
    const HEADER: usize = 16;
    let code = answer
        .get(HEADER..HEADER + 4)
        .and_then(|bytes| Some(i32::from_ne_bytes(bytes.try_into().ok()?)));
    match code {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::InvalidData.into()),
    }
}

// nfnetlink.h: the subsystem and its batches.
const NFNL_SUBSYS_NFTABLES: u16 = 10;
const NFNL_MSG_BATCH_BEGIN: u16 = 0x10;
const NFNL_MSG_BATCH_END: u16 = 0x11;
// nf_tables.h: nf_tables_msg_types.
const NFT_MSG_NEWTABLE: u16 = 0;
const NFT_MSG_NEWCHAIN: u16 = 3;
const NFT_MSG_NEWRULE: u16 = 6;
// netlink.h: flags of requests.
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_ACK: u16 = 0x4;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;
/// An attribute made of attributes (netlink.h).
const NLA_F_NESTED: u16 = 0x8000;
/// The register that the expressions of a rule hand their values on in (NFT_REG_1).
const REGISTER: u32 = 1;
/// Priority of hooks that change packets before they are routed (NF_IP_PRI_MANGLE,
/// `netfilter_ipv4.h`).
const MANGLE: u32 = (-150i32) as u32;

/// The chains: name, type, hook (`enum nf_inet_hooks`). Packets from outside are marked before
/// they are routed; those of this machine have been, and a chain of type `route` routes them again.
const CHAINS: [(&str, &str, u32); 2] = [("passing", "filter", 0), ("own", "route", 3)];

/// Everything that [`deal_out`] sends, and how many of its messages are acknowledged.
fn batch(to: Prefix, first_mark: u32, marks: u32) -> (Vec<u8>, usize) {
    let create = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE;
    // NFPROTO_IPV4 and NFPROTO_IPV6.
    let family = if to.address.is_ipv4() { 2 } else { 10 };
    let message = |kind, flags, body: &[u8]| {
        let kind = NFNL_SUBSYS_NFTABLES << 8 | kind;
        message(kind, flags, family, 0, body)
    };
    // A table may be created twice: it then is the one that was there.
    let table = string(1, "plumb-lab");
    let mut requests = vec![message(NFT_MSG_NEWTABLE, create, &table)];
    for (name, kind, hook) in CHAINS {
        let hook = nested(4, &[number(1, hook), number(2, MANGLE)]);
        let body = [
            string(1, "plumb-lab"),
            string(3, name),
            hook,
            string(7, kind),
        ]
        .concat();
        requests.push(message(NFT_MSG_NEWCHAIN, create, &body));
        let rule = [
            string(1, "plumb-lab"),
            string(2, name),
            nested(4, &expressions(to, first_mark, marks)),
        ];
        requests.push(message(
            NFT_MSG_NEWRULE,
            create | NLM_F_APPEND,
            &rule.concat(),
        ));
    }
    let count = requests.len();
    let edge = |kind| self::message(kind, NLM_F_REQUEST, 0, NFNL_SUBSYS_NFTABLES, &[]);
    let bytes = [
        edge(NFNL_MSG_BATCH_BEGIN),
        requests.concat(),
        edge(NFNL_MSG_BATCH_END),
    ]
    .concat();
    (bytes, count)
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
    let data = |kind, bytes: &[u8]| nested(kind, &[attribute::encode(1, bytes)]);
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
    nested(1, &[string(1, name), nested(2, data)])
}

/// A netlink message of netfilter: `struct nlmsghdr`, `struct nfgenmsg`, attributes.
fn message(kind: u16, flags: u16, family: u8, resource: u16, body: &[u8]) -> Vec<u8> {
    const HEADERS: usize = 16 + 4;
    let mut bytes = Vec::with_capacity(HEADERS + body.len());
    bytes.extend(((HEADERS + body.len()) as u32).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    // Sequence number and port: answers come in order, and the kernel knows the port.
    bytes.extend([0; 8]);
    bytes.extend([family, 0]);
    bytes.extend(resource.to_be_bytes());
    bytes.extend(body);
    bytes
}

/// Numbers of nf_tables are in network order.
fn number(kind: u16, value: u32) -> Vec<u8> {
    attribute::encode(kind, &value.to_be_bytes())
}

fn string(kind: u16, value: &str) -> Vec<u8> {
    attribute::encode(kind, &[value.as_bytes(), &[0]].concat())
}

fn nested(kind: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    attribute::encode(kind | NLA_F_NESTED, &parts.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The messages of a batch by their lengths.
    fn split(mut bytes: &[u8]) -> Vec<&[u8]> {
        let mut messages = Vec::new();
        while bytes.len() >= 4 {
            let length = u32::from_ne_bytes(bytes[..4].try_into().unwrap()) as usize;
            let (message, rest) = bytes.split_at(length);
            messages.push(message);
            bytes = rest;
        }
        assert!(bytes.is_empty());
        messages
    }

    #[test]
    fn a_batch_is_whole_and_masks_the_prefix() {
        let to = Prefix {
            address: "10.0.8.0".parse().unwrap(),
            length: 21,
        };
        let (bytes, requests) = batch(to, 7, 2);
        let messages = split(&bytes);
        assert_eq!(requests, 5);
        assert_eq!(messages.len(), requests + 2, "and its two ends");
        let rule = messages[3];
        let has = |bytes: &[u8]| rule.windows(bytes.len()).any(|w| w == bytes);
        assert!(has(&[255, 255, 248, 0]), "a mask of 21 bits");
        assert!(has(&[10, 0, 8, 0]));
    }

    #[test]
    fn answers_are_read_with_care() {
        let mut answer = vec![0; 20];
        assert!(acknowledged(&answer).is_ok());
        answer[16..20].copy_from_slice(&(-libc::EPERM).to_ne_bytes());
        assert_eq!(
            acknowledged(&answer).unwrap_err().raw_os_error(),
            Some(libc::EPERM)
        );
        assert!(acknowledged(&answer[..17]).is_err());
    }
}
