//! Settings of drivers over generic netlink (`linux/ethtool_netlink.h`, since Linux 5.7).
//!
//! What drivers are set to is read by [`crate::ethtool`], which every kernel answers. Changes are made here: a
//! message names the one setting that changes, where the ioctl would write back all its neighbours too.

use super::NetlinkError;
use super::attribute::{encode, find, nested, number, text};
use super::generic::Family;

/// Commands (`ETHTOOL_MSG_*`, user to kernel).
const FEATURES_SET: u8 = 12;
const RINGS_SET: u8 = 16;
const COALESCE_GET: u8 = 19;
const COALESCE_SET: u8 = 20;

/// The first attribute of every message names the interface (`ETHTOOL_A_*_HEADER`), in it by its name
/// (`ETHTOOL_A_HEADER_DEV_NAME`).
const HEADER: u16 = 1;
const DEVICE_NAME: u16 = 2;

/// `ETHTOOL_A_RINGS_RX`.
const RINGS_RECEIVE: u16 = 6;
/// `ETHTOOL_A_COALESCE_USE_ADAPTIVE_RX`.
const ADAPTIVE_RECEIVE: u16 = 11;
/// `ETHTOOL_A_FEATURES_WANTED`.
const WANTED: u16 = 3;
/// `ETHTOOL_A_BITSET_BITS`, `ETHTOOL_A_BITSET_BITS_BIT`, and in that a name and a flag.
const BITS: u16 = 3;
const BIT: u16 = 1;
const BIT_NAME: u16 = 2;
const BIT_VALUE: u16 = 3;

/// Changes settings of drivers in the network namespace of the thread that opened it.
pub struct Drivers {
    family: Family,
}

impl Drivers {
    /// Connects.
    ///
    /// # Errors
    /// When this kernel has no such interface (before Linux 5.6), and on errors of the kernel.
    pub fn open() -> Result<Self, NetlinkError> {
        Ok(Self {
            family: Family::open("ethtool", "settings of drivers")?,
        })
    }

    /// Whether the driver can fit its interrupts to what arrives: the kernel names only the parameters that
    /// a driver has (`coalesce_reply_size`, `net/ethtool/coalesce.c`).
    ///
    /// # Errors
    /// When the driver has no coalescing at all, or the interface has gone.
    pub fn can_adapt_receive(&mut self, interface: &str) -> Result<bool, NetlinkError> {
        let answers = self.ask(COALESCE_GET, interface, &[], "look at the coalescing")?;
        Ok(answers
            .iter()
            .any(|answer| find(answer, ADAPTIVE_RECEIVE).is_some()))
    }

    /// Lets the driver fit its interrupts to what arrives, or not.
    ///
    /// # Errors
    /// When the driver cannot, and on errors of the kernel.
    pub fn set_adaptive_receive(&mut self, interface: &str, on: bool) -> Result<(), NetlinkError> {
        let attribute = encode(ADAPTIVE_RECEIVE, &[u8::from(on)]);
        self.ask(COALESCE_SET, interface, &attribute, "set the coalescing")
            .map(drop)
    }

    /// Sets how many received packets the ring holds. Many drivers take the link down for a moment.
    ///
    /// # Errors
    /// When the driver cannot, or not so many, and on errors of the kernel.
    pub fn set_receive_ring(&mut self, interface: &str, packets: u32) -> Result<(), NetlinkError> {
        let attribute = number(RINGS_RECEIVE, packets);
        self.ask(RINGS_SET, interface, &attribute, "set the receive ring")
            .map(drop)
    }

    /// Switches an offload, by the kernel's name for it. That the kernel takes the wish does not mean that
    /// the driver follows it: read it back.
    ///
    /// # Errors
    /// When there is no offload of that name, and on errors of the kernel.
    pub fn set_offload(
        &mut self,
        interface: &str,
        feature: &str,
        on: bool,
    ) -> Result<(), NetlinkError> {
        let mut bit = vec![text(BIT_NAME, feature)];
        if on {
            bit.push(encode(BIT_VALUE, &[]));
        }
        let attribute = nested(WANTED, &[nested(BITS, &[nested(BIT, &bit)])]);
        self.ask(
            FEATURES_SET,
            interface,
            &attribute,
            &format!("switch {feature}"),
        )
        .map(drop)
    }

    fn ask(
        &mut self,
        command: u8,
        interface: &str,
        attribute: &[u8],
        what: &str,
    ) -> Result<Vec<Vec<u8>>, NetlinkError> {
        let header = nested(HEADER, &[text(DEVICE_NAME, interface)]);
        self.family
            .one(command, &[&header, attribute].concat())
            .map_err(|error| NetlinkError {
                what: format!("{what} of {interface}"),
                source: error.source,
            })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io;

    use super::*;
    use crate::ethtool::Ethtool;
    use crate::namespace::Namespaces;
    use crate::netlink::link::links;
    use crate::netlink::{Netlink, interface_index};

    /// In a namespace of its own, whose loopback no other test uses.
    #[test]
    fn an_offload_and_a_queue_length_are_set_and_read_back() {
        let network = Namespaces::create("drivers", || Ok::<_, io::Error>(())).unwrap();
        network
            .in_network(|| {
                let mut drivers = Drivers::open().unwrap();
                let mut ethtool = Ethtool::open()?;
                let names = ethtool.offload_names("lo")?;
                for on in [false, true] {
                    drivers
                        .set_offload("lo", "tx-tcp-segmentation", on)
                        .unwrap();
                    let offloads = ethtool.offloads("lo", &names)?;
                    let tso = offloads.iter().find(|o| o.name == "tx-tcp-segmentation");
                    assert_eq!(tso.map(|o| o.on), Some(on));
                }
                let index = interface_index("lo")?;
                Netlink::open()
                    .unwrap()
                    .set_queue_length(index, 321)
                    .unwrap();
                assert_eq!(links().unwrap()[0].tx_queue_packets, Some(321));
                // The loopback has neither rings nor interrupts, and says so.
                assert!(drivers.set_receive_ring("lo", 64).is_err());
                assert!(drivers.set_adaptive_receive("lo", true).is_err());
                assert!(drivers.can_adapt_receive("lo").is_err());
                let error = drivers
                    .set_offload("lo", "no-such-offload", true)
                    .unwrap_err();
                assert!(
                    error.to_string().contains("no-such-offload of lo"),
                    "{error}"
                );
                let gone = drivers.set_offload("gone0", "rx-gro", true).unwrap_err();
                assert!(gone.source.raw_os_error() == Some(libc::ENODEV), "{gone}");
                Ok::<_, io::Error>(())
            })
            .unwrap();
    }
}
