//! Making and changing network devices (rtnetlink(7), `linux/if_link.h`).

use std::os::fd::{AsRawFd, BorrowedFd};

use super::attribute::{encode, find, nested, number, text};
use super::connection::{CREATE, EXCLUSIVE};
use super::link::{HEADER_BYTES, RTM_GETLINK, RTM_NEWLINK, UP};
use super::{Netlink, NetlinkError};

const RTM_DELLINK: u16 = 17;
const RTM_SETLINK: u16 = 19;

const NAME: u16 = 3;
const MTU: u16 = 4;
const CONTROLLER: u16 = 10;
const QUEUE_PACKETS: u16 = 13;
const LINK_INFO: u16 = 18;
const ALIAS: u16 = 20;
const NAMESPACE_DESCRIPTOR: u16 = 28;
const MOST_SEGMENTS: u16 = 40;

/// In `LINK_INFO`: which driver (`IFLA_INFO_KIND`), and its settings (`IFLA_INFO_DATA`).
const KIND: u16 = 1;
const DATA: u16 = 2;

/// `VETH_INFO_PEER` of `linux/veth.h`.
const PEER: u16 = 1;

/// `IFLA_BR_STP_STATE` and `IFLA_BR_MCAST_SNOOPING`.
const SPANNING_TREE: u16 = 5;
const MULTICAST_SNOOPING: u16 = 23;

/// `IFF_MULTICAST` of `linux/if.h`.
const MULTICAST: u32 = 1 << 12;

/// `struct ifinfomsg`: family, hardware type, index, flags, and which of the flags change.
fn header(index: u32, flags: u32, changed: u32) -> Vec<u8> {
    [0, index, flags, changed].map(u32::to_ne_bytes).concat()
}

impl Netlink {
    /// Creates a pair of virtual Ethernet devices: `name` here and `peer` in the namespace
    /// `peer_netns`.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn add_veth(
        &mut self,
        name: &str,
        peer: &str,
        peer_netns: BorrowedFd<'_>,
    ) -> Result<(), NetlinkError> {
        let namespace = peer_netns.as_raw_fd().to_ne_bytes();
        let other = [
            header(0, 0, 0),
            text(NAME, peer),
            encode(NAMESPACE_DESCRIPTOR, &namespace),
        ];
        self.add_link(name, "veth", &[encode(PEER, &other.concat())])
    }

    /// Creates an Ethernet bridge that sends multicast out of every port and says nothing itself.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn add_bridge(&mut self, name: &str) -> Result<(), NetlinkError> {
        let silent = [
            encode(MULTICAST_SNOOPING, &[0]),
            // IEEE 802.1D's spanning tree off (BR_NO_STP): its ports forward at once.
            number(SPANNING_TREE, 0),
        ];
        self.add_link(name, "bridge", &silent)
    }

    /// Creates a device that sends what other devices received, redirected to it, to whom it was for (`ifb`): what it
    /// sends passes a queue.
    ///
    /// # Errors
    /// Errors of the kernel; "not supported" where it has no such devices.
    pub fn add_ifb(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.add_link(name, "ifb", &[])
    }

    /// Removes a device by its index.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn remove_link(&mut self, index: u32) -> Result<(), NetlinkError> {
        self.request(RTM_DELLINK, 0, &[header(index, 0, 0)], || {
            format!("remove interface {index}")
        })
        .map(drop)
    }

    fn add_link(&mut self, name: &str, kind: &str, data: &[Vec<u8>]) -> Result<(), NetlinkError> {
        let info = nested(LINK_INFO, &[text(KIND, kind), nested(DATA, data)]);
        let body = [header(0, 0, 0), text(NAME, name), info];
        self.request(RTM_NEWLINK, CREATE | EXCLUSIVE, &body, || {
            format!("create the {kind} device {name}")
        })
        .map(drop)
    }

    /// Makes a link a port of a bridge.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_bridge(&mut self, index: u32, bridge: u32) -> Result<(), NetlinkError> {
        let port = number(CONTROLLER, bridge);
        self.set_link(index, port, "make a port of interface")
    }

    /// Says whether a link carries multicast (IFF_MULTICAST). With it a router reports itself to
    /// the group of all IPv6 routers when it begins to forward; without, it does not.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_multicast(&mut self, index: u32, on: bool) -> Result<(), NetlinkError> {
        let flags = if on { MULTICAST } else { 0 };
        let body = [header(index, flags, MULTICAST)];
        self.request(RTM_SETLINK, 0, &body, || {
            format!("change the multicast flag of interface {index}")
        })
        .map(drop)
    }

    /// Lets no packet leave by a link that is more than one segment of TCP (or datagram of UDP).
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_single_segments(&mut self, index: u32) -> Result<(), NetlinkError> {
        let one = number(MOST_SEGMENTS, 1);
        self.set_link(index, one, "limit the segments of interface")
    }

    /// Notes something of a link for programs that list it (IFLA_IFALIAS), of up to 255 bytes.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_alias(&mut self, index: u32, alias: &str) -> Result<(), NetlinkError> {
        let alias = encode(ALIAS, alias.as_bytes());
        self.set_link(index, alias, "note the alias of interface")
    }

    /// Makes a link send that is up at both ends. The kernel by itself does so at once for a hundred links, and up to a
    /// second later for others (`__linkwatch_run_queue` in `net/core/link_watch.c`), but at once for a link that is
    /// asked about (`rtnl_getlink`, from Linux 6.8 on).
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn let_send(&mut self, index: u32) -> Result<(), NetlinkError> {
        self.mtu_bytes(index).map(drop)
    }

    /// The MTU of a link in bytes.
    ///
    /// # Errors
    /// When there is none of that number, and on errors of the kernel.
    pub fn mtu_bytes(&mut self, index: u32) -> Result<Option<u32>, NetlinkError> {
        let answers = self.request(RTM_GETLINK, 0, &[header(index, 0, 0)], || {
            format!("look at interface {index}")
        })?;
        let link = answers.iter().find(|answer| answer.kind == RTM_NEWLINK);
        Ok(link.and_then(|link| find(link.body.get(HEADER_BYTES..)?, MTU)?.u32()))
    }

    /// Sets the MTU of a link in bytes.
    ///
    /// # Errors
    /// Errors of the kernel, among them that the device takes no such MTU.
    pub fn set_mtu(&mut self, index: u32, bytes: u32) -> Result<(), NetlinkError> {
        let what = format!("set an MTU of {bytes} bytes at interface");
        self.set_link(index, number(MTU, bytes), &what)
    }

    /// Sets a link up, with a transmit queue of `queue_packets` when given.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_up(&mut self, index: u32, queue_packets: Option<u32>) -> Result<(), NetlinkError> {
        let queue = queue_packets.map(|packets| number(QUEUE_PACKETS, packets));
        let body = [header(index, UP, UP), queue.unwrap_or_default()];
        self.request(RTM_SETLINK, 0, &body, || {
            format!("set up interface {index}")
        })
        .map(drop)
    }

    /// Sets how many packets a queueing discipline without a limit of its own holds (IFLA_TXQLEN).
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn set_queue_length(&mut self, index: u32, packets: u32) -> Result<(), NetlinkError> {
        let length = number(QUEUE_PACKETS, packets);
        let what = "set the length of the transmit queue of interface";
        self.set_link(index, length, what)
    }

    fn set_link(&mut self, index: u32, attribute: Vec<u8>, what: &str) -> Result<(), NetlinkError> {
        let body = [header(index, 0, 0), attribute];
        self.request(RTM_SETLINK, 0, &body, || format!("{what} {index}"))
            .map(drop)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io;
    use std::os::fd::AsFd;

    use super::*;
    use crate::namespace::Namespaces;
    use crate::netlink::attribute::u32_at;
    use crate::netlink::link::links;
    use crate::netlink::{interface_index, interface_name};

    /// The check is what the kernel lists after the changes: each setting is read back.
    #[test]
    fn devices_are_made_and_changed_as_the_kernel_lists_them() {
        let network = Namespaces::create("devices", || Ok::<_, io::Error>(())).unwrap();
        let other = Namespaces::create("peer", || Ok::<_, io::Error>(())).unwrap();
        network
            .in_network(|| {
                let mut netlink = Netlink::open().unwrap();
                netlink
                    .add_veth("here", "there", other.net().as_fd())
                    .unwrap();
                netlink.add_bridge("br").unwrap();
                let (here, bridge) = (interface_index("here")?, interface_index("br")?);
                netlink.set_bridge(here, bridge).unwrap();
                netlink.set_single_segments(here).unwrap();
                netlink.set_alias(here, "a note").unwrap();
                netlink.set_mtu(here, 1300).unwrap();
                netlink.set_multicast(here, false).unwrap();
                netlink.set_up(here, Some(77)).unwrap();
                assert_eq!(netlink.mtu_bytes(here).unwrap(), Some(1300));
                let all = links().unwrap();
                let link = all.iter().find(|link| link.index == here).unwrap();
                assert_eq!(
                    (link.kind.as_deref(), link.alias.as_deref(), link.mtu_bytes),
                    (Some("veth"), Some("a note"), 1300)
                );
                assert_eq!(
                    (
                        link.controller,
                        link.gso_max_segments,
                        link.tx_queue_packets
                    ),
                    (Some(bridge), Some(1), Some(77))
                );
                assert!(link.up && !link.carrier, "the peer is still down");
                let answers = netlink.request(RTM_GETLINK, 0, &[header(here, 0, 0)], || "look");
                let flags = u32_at(&answers.unwrap()[0].body, 8).unwrap();
                assert_eq!(flags & (UP | MULTICAST), UP);

                let error = netlink.add_bridge("br").unwrap_err();
                assert_eq!(error.source.raw_os_error(), Some(libc::EEXIST));
                assert!(error.to_string().contains("create the bridge device br"));
                let error = netlink.set_mtu(here, 7).unwrap_err();
                assert!(error.to_string().starts_with(&format!(
                    "cannot set an MTU of 7 bytes at interface {here}: "
                )));
                let gone = netlink.mtu_bytes(4242).unwrap_err();
                assert_eq!(gone.source.raw_os_error(), Some(libc::ENODEV));
                Ok::<_, io::Error>(())
            })
            .unwrap();
        other
            .in_network(|| {
                let index = interface_index("there")?;
                assert_eq!(interface_name(index)?, "there");
                Ok::<_, io::Error>(())
            })
            .unwrap();
    }
}
