//! Addresses of interfaces, and the neighbours on their links (RTM_GETADDR, RTM_GETNEIGH).

use std::net::IpAddr;

use nix::sys::socket::SockProtocol;

use super::attribute::{bytes_at, find, u32_at};
use super::connection::list;
use plumb_model::prefix::Prefix;

use super::NetlinkError;

pub(super) const RTM_NEWADDR: u16 = 20;
const RTM_GETADDR: u16 = 22;
const RTM_NEWNEIGH: u16 = 28;
const RTM_GETNEIGH: u16 = 30;

/// Length of `struct ifaddrmsg`: family, prefix length, flags, scope, index.
const ADDRESS_HEADER_BYTES: usize = 8;
/// Length of `struct ndmsg`: family, padding, index, state, flags, type.
const NEIGHBOUR_HEADER_BYTES: usize = 12;

/// `NUD_FAILED`, and the states that are no neighbours but the kernel's own entries
/// (`NUD_NOARP`, `linux/neighbour.h`).
const FAILED: u16 = 0x20;
const NO_ARP: u16 = 0x40;

/// An entry of the table of neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbour {
    /// Number of the interface.
    pub interface: u32,
    /// 4 or 6.
    pub ip_version: u8,
    /// It did not answer.
    pub failed: bool,
}

/// Every address of this namespace, with the number of its interface.
///
/// # Errors
/// Errors of the kernel.
pub fn addresses() -> Result<Vec<(u32, Prefix)>, NetlinkError> {
    let messages = list(
        SockProtocol::NetlinkRoute,
        RTM_GETADDR,
        &[0; ADDRESS_HEADER_BYTES],
        "addresses",
    )?;
    Ok(messages
        .iter()
        .filter(|message| message.kind == RTM_NEWADDR)
        .filter_map(|message| address(&message.body))
        .collect())
}

/// The neighbours that this namespace knows.
///
/// # Errors
/// Errors of the kernel.
pub fn neighbours() -> Result<Vec<Neighbour>, NetlinkError> {
    let messages = list(
        SockProtocol::NetlinkRoute,
        RTM_GETNEIGH,
        &[0; NEIGHBOUR_HEADER_BYTES],
        "neighbours",
    )?;
    Ok(messages
        .iter()
        .filter(|message| message.kind == RTM_NEWNEIGH)
        .filter_map(|message| neighbour(&message.body))
        .collect())
}

fn address(body: &[u8]) -> Option<(u32, Prefix)> {
    let attributes = body.get(ADDRESS_HEADER_BYTES..)?;
    // IFA_LOCAL is ours where the link has two ends, IFA_ADDRESS then the other's.
    let found = find(attributes, 2).or_else(|| find(attributes, 1))?;
    let prefix = Prefix {
        address: found.address()?,
        length: *body.get(1)?,
    };
    Some((u32_at(body, 4)?, prefix))
}

fn neighbour(body: &[u8]) -> Option<Neighbour> {
    let state = bytes_at(body, 8).map(u16::from_ne_bytes)?;
    // NDA_DST.
    let address = find(body.get(NEIGHBOUR_HEADER_BYTES..)?, 1)?.address()?;
    (state & NO_ARP == 0 && state != 0).then_some(Neighbour {
        interface: u32_at(body, 4)?,
        ip_version: match address {
            IpAddr::V4(_) => 4,
            IpAddr::V6(_) => 6,
        },
        failed: state & FAILED != 0,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::attribute::encode;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_address_and_a_neighbour_are_read() {
        let mut body = vec![2, 24, 0, 0];
        body.extend(5_u32.to_ne_bytes());
        body.extend(encode(1, &[192, 0, 2, 7]));
        let (index, prefix) = address(&body).unwrap();
        assert_eq!((index, prefix.to_string()), (5, "192.0.2.7/24".to_owned()));

        let mut body = vec![2, 0, 0, 0];
        body.extend(5_u32.to_ne_bytes());
        body.extend(FAILED.to_ne_bytes());
        body.extend([0, 0]);
        body.extend(encode(1, &[192, 0, 2, 9]));
        let read = neighbour(&body).unwrap();
        assert_eq!((read.interface, read.ip_version, read.failed), (5, 4, true));
        body.splice(8..10, NO_ARP.to_ne_bytes());
        assert_eq!(neighbour(&body), None, "the kernel's own entry");
    }

    #[test]
    fn the_loopback_has_its_address() {
        let all = addresses().unwrap();
        assert!(
            all.iter()
                .any(|(index, p)| *index == 1 && p.to_string() == "127.0.0.1/8")
        );
        assert!(neighbours().is_ok());
    }

    proptest! {
        #[test]
        fn never_panics(body in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = (address(&body), neighbour(&body));
        }
    }
}
