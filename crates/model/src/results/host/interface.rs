//! Network interfaces: hardware, driver, link, queues, counters.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Wifi;
use crate::vocabulary;

/// A network interface with its settings and counters.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Number of the interface in its network namespace.
    pub index: u32,
    /// Hardware type in words (`linux/if_arp.h`), such as `ethernet`, `loopback` and `none`.
    pub hardware: String,
    /// Kind of a virtual interface, such as `veth`, `bridge` and `tun`. Null for hardware.
    pub kind: Option<String>,
    /// Note that an administrator gave it (IFLA_IFALIAS). Null without one. plumb's laboratory notes `plumb lab`.
    pub alias: Option<String>,
    /// Whether it was set up (IFF_UP).
    pub up: bool,
    /// Whether the other end of the cable is there (IFF_LOWER_UP).
    pub carrier: bool,
    /// How often the carrier came or went. Null where the kernel does not count it.
    pub carrier_changes: Option<u32>,
    /// Number of the bridge or bond that it is a part of. Null where it is a part of none.
    pub controller: Option<u32>,
    /// Addresses with their prefix lengths, such as `192.0.2.7/24`.
    pub addresses: Vec<String>,
    /// Largest IP packet in bytes.
    pub mtu_bytes: u32,
    /// Largest MTU in bytes that the driver takes. Null where the driver has no limit.
    pub max_mtu_bytes: Option<u32>,
    /// Name of the driver. Null where the kernel does not report it.
    pub driver: Option<String>,
    /// Version of the firmware. Null where the driver does not report it.
    pub firmware: Option<String>,
    /// The bus between the hardware and the processor. Null for a virtual interface.
    pub bus: Option<Bus>,
    /// Speed and duplex that both ends negotiated. Null where the driver does not report it.
    pub link: Option<LinkMode>,
    /// Pause frames (IEEE 802.3 annex 31B). Null where the driver has none.
    pub pause: Option<Pause>,
    /// Whether Energy-efficient Ethernet (IEEE 802.3az) is in use. Null where the driver does not report it.
    pub energy_efficient: Option<bool>,
    /// Work that the hardware, or the kernel in large pieces, takes over.
    pub offloads: Vec<Offload>,
    /// Descriptors between driver and hardware. Null where the driver does not report them.
    pub rings: Option<Rings>,
    /// Queues of the hardware. Null where the driver does not report them.
    pub channels: Option<Channels>,
    /// How long the hardware waits before it interrupts. Null where the driver does not report it.
    pub coalescing: Option<Coalescing>,
    /// Length of the transmit queue in packets (IFLA_TXQLEN). Null where the kernel does not report it.
    pub tx_queue_packets: Option<u32>,
    /// Largest packet in bytes that the stack gives to the driver, to be split (IFLA_GSO_MAX_SIZE). Null where the
    /// kernel does not report it.
    pub gso_max_bytes: Option<u32>,
    /// Largest number of segments in such a packet (IFLA_GSO_MAX_SEGS). Null where the kernel does not report it.
    pub gso_max_segments: Option<u32>,
    /// Byte queue limits of the transmit queues.
    pub byte_limits: Vec<ByteLimit>,
    /// Which processors serve which queue.
    pub steering: Vec<Steering>,
    /// Counters since the interface came into being.
    pub counters: LinkCounters,
    /// The driver's own counters of errors and drops, those that are not zero.
    pub driver_counters: std::collections::BTreeMap<String, u64>,
    /// The radio of the interface. Null where it has none.
    pub wifi: Option<Wifi>,
    /// The optical module. Null where there is none, or where it does not report its values.
    pub module: Option<Module>,
    /// Neighbours that the kernel knows on this link, both families.
    pub neighbours: u64,
}

impl Interface {
    /// What plumb's laboratory notes of the TUN devices that its links end in.
    pub const LAB_ALIAS: &str = "plumb lab";

    /// Whether it carries packets in other packets to somewhere else: the kernel's own tunnels, and TUN
    /// devices, through which programs do the same. Links of the laboratory are TUN devices too, and bear its
    /// note. PPP is none: access lines (PPPoE) and modems are reached by it.
    pub fn is_tunnel(&self) -> bool {
        match self.kind.as_deref() {
            Some(
                "wireguard" | "ovpn" | "ipip" | "sit" | "gre" | "ip6gre" | "ip6tnl" | "vti"
                | "vti6" | "xfrm",
            ) => true,
            // With Ethernet frames (TAP) it is a virtual machine's.
            Some("tun") => {
                self.hardware == "none" && self.alias.as_deref() != Some(Self::LAB_ALIAS)
            }
            _ => false,
        }
    }
}

/// A bus, by the part between device and processor that decides its speed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bus {
    /// Kind of the bus, such as `pci`, `usb` and `virtio`.
    pub kind: String,
    /// Address of the device on the bus. Null where it has none.
    pub address: Option<String>,
    /// What the bus carries in each direction in bit/s, line coding taken off; of USB the signalling rate. Null where
    /// it is unknown.
    pub speed_bps: Option<f64>,
    /// What the device could use in a better slot, in bit/s. Null where it is unknown.
    pub best_speed_bps: Option<f64>,
}

vocabulary! {
    /// Whether both ends may send at once.
    pub enum Duplex {
        /// One end at a time.
        Half = "half",
        /// Both ends at once.
        Full = "full",
    }
}

/// A link at present, and the best that it could be.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkMode {
    /// Rate of the link in bit/s. Null where it is unknown, as without a carrier.
    pub speed_bps: Option<f64>,
    /// Duplex of the link. Null where it is unknown.
    pub duplex: Option<Duplex>,
    /// Whether both ends negotiate these (IEEE 802.3 clause 28). Null where the driver does not report it.
    pub autonegotiation: Option<bool>,
    /// Highest rate in bit/s that this end's hardware supports. Null where the driver does not report it.
    pub best_speed_bps: Option<f64>,
    /// Highest rate in bit/s that this end offers. Null where the driver does not report it.
    pub offered_speed_bps: Option<f64>,
    /// Highest rate in bit/s that the other end offers. Null where the driver does not report it.
    pub partner_speed_bps: Option<f64>,
}

/// Use of pause frames (IEEE 802.3 annex 31B).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Pause {
    /// Whether both ends negotiate pause frames.
    pub autonegotiation: bool,
    /// Whether received pause frames stop this end.
    pub receive: bool,
    /// Whether this end sends pause frames when its buffers fill.
    pub send: bool,
}

/// An offload and its state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Offload {
    /// The kernel's name of the offload (`ethtool -k`, as in `net/ethtool/common.c`), such as `tx-tcp-segmentation`.
    pub name: String,
    /// Whether the offload is in use.
    pub on: bool,
    /// Whether the offload cannot be changed.
    pub fixed: bool,
}

/// Descriptor rings between driver and hardware.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Rings {
    /// Received packets that fit the ring.
    pub receive_packets: u32,
    /// Received packets that fit the largest ring of the hardware.
    pub receive_max_packets: u32,
    /// Packets to send that fit the ring.
    pub send_packets: u32,
    /// Packets to send that fit the largest ring of the hardware.
    pub send_max_packets: u32,
}

/// Queues of the hardware, by what they do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Channels {
    /// Queues of the hardware that send and receive.
    pub combined: u32,
    /// The most such queues that the hardware has.
    pub combined_max: u32,
    /// Queues of the hardware that only receive.
    pub receive: u32,
    /// Queues of the hardware that only send.
    pub send: u32,
}

/// Interrupt coalescing: how long the hardware gathers packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Coalescing {
    /// Longest wait after a packet was received, in seconds.
    pub receive_s: f64,
    /// Most packets received before an interrupt. 0 has no meaning.
    pub receive_packets: u32,
    /// Longest wait after a packet was sent, in seconds.
    pub send_s: f64,
    /// Most packets sent before an interrupt.
    pub send_packets: u32,
    /// The driver adapts the receiving side to the traffic.
    pub adaptive_receive: bool,
    /// Whether the driver can do so. Null where the kernel does not report it (before Linux 5.7).
    pub adaptive_receive_possible: Option<bool>,
    /// The driver adapts the sending side.
    pub adaptive_send: bool,
}

impl Coalescing {
    /// A fixed wait that the round trips of a LAN notice, in seconds.
    pub const LONG_WAIT_S: f64 = 250e-6;

    /// Whether a packet that comes alone waits for long.
    pub fn waits_long(&self) -> bool {
        self.receive_s > Self::LONG_WAIT_S
    }

    /// Whether every packet received interrupts at once.
    pub fn interrupts_for_each(&self) -> bool {
        self.receive_s == 0.0 && self.receive_packets <= 1
    }
}

/// Byte queue limits of one transmit queue (`lib/dynamic_queue_limits.c`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ByteLimit {
    /// Number of the queue.
    pub queue: u32,
    /// The limit now in bytes. 0 before the driver has used it, or when it never does.
    pub limit_bytes: u64,
    /// Bytes in the hardware's queue now.
    pub inflight_bytes: u64,
    /// The most bytes that the limit may grow to. Null where it could not be read.
    pub limit_max_bytes: Option<u64>,
}

/// Which processors serve a queue of the interface.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Steering {
    /// Name of the queue, such as `rx-0` or `tx-3`.
    pub queue: String,
    /// Processors as the kernel's hexadecimal mask: RPS for a receiving queue, XPS for a sending one.
    pub cpus: String,
    /// Number of flows that RFS follows. Null for a sending queue.
    pub flows: Option<u32>,
}

/// `struct rtnl_link_stats64` of `linux/if_link.h`; 64 bits, so they do not wrap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkCounters {
    /// Good packets that were received.
    pub rx_packets: u64,
    /// Packets that were sent.
    pub tx_packets: u64,
    /// Bytes of the good packets received.
    pub rx_bytes: u64,
    /// Bytes of the packets sent.
    pub tx_bytes: u64,
    /// Bad packets received, of every kind that the hardware counts.
    pub rx_errors: u64,
    /// Packets that could not be sent, of every kind that the hardware counts.
    pub tx_errors: u64,
    /// Packets received and not processed, for want of resources or because their protocol is not supported.
    pub rx_dropped: u64,
    /// Packets dropped before they were sent, for want of resources.
    pub tx_dropped: u64,
    /// Multicast packets that were received.
    pub multicast: u64,
    /// Collisions while sending, in half duplex.
    pub collisions: u64,
    /// Packets received with an invalid length.
    pub rx_length_errors: u64,
    /// Packets lost because the receiver's FIFO overflowed.
    pub rx_over_errors: u64,
    /// Packets received with a wrong checksum of the frame.
    pub rx_crc_errors: u64,
    /// Packets received that were not aligned to whole bytes.
    pub rx_frame_errors: u64,
    /// Packets lost because the receiver's FIFO had no room.
    pub rx_fifo_errors: u64,
    /// Packets that the hardware dropped because the host had no buffer for them.
    pub rx_missed_errors: u64,
    /// Packets not sent because of too many collisions, or because the transmitter gave up.
    pub tx_aborted_errors: u64,
    /// Packets not sent because the carrier was lost.
    pub tx_carrier_errors: u64,
    /// Packets not sent because the transmitter's FIFO ran empty.
    pub tx_fifo_errors: u64,
    /// Missing heartbeats (SQE tests) after a packet, in old half-duplex Ethernet.
    pub tx_heartbeat_errors: u64,
    /// Packets not sent because of a late collision.
    pub tx_window_errors: u64,
    /// Compressed packets received, as with PPP.
    pub rx_compressed: u64,
    /// Compressed packets sent, as with PPP.
    pub tx_compressed: u64,
    /// Packets received and dropped because the interface is not designated to receive, such as the backup of a bond.
    pub rx_nohandler: u64,
}

impl LinkCounters {
    /// Names and values in the kernel's order.
    pub fn named(&self) -> [(&'static str, u64); 24] {
        [
            ("rx_packets", self.rx_packets),
            ("tx_packets", self.tx_packets),
            ("rx_bytes", self.rx_bytes),
            ("tx_bytes", self.tx_bytes),
            ("rx_errors", self.rx_errors),
            ("tx_errors", self.tx_errors),
            ("rx_dropped", self.rx_dropped),
            ("tx_dropped", self.tx_dropped),
            ("multicast", self.multicast),
            ("collisions", self.collisions),
            ("rx_length_errors", self.rx_length_errors),
            ("rx_over_errors", self.rx_over_errors),
            ("rx_crc_errors", self.rx_crc_errors),
            ("rx_frame_errors", self.rx_frame_errors),
            ("rx_fifo_errors", self.rx_fifo_errors),
            ("rx_missed_errors", self.rx_missed_errors),
            ("tx_aborted_errors", self.tx_aborted_errors),
            ("tx_carrier_errors", self.tx_carrier_errors),
            ("tx_fifo_errors", self.tx_fifo_errors),
            ("tx_heartbeat_errors", self.tx_heartbeat_errors),
            ("tx_window_errors", self.tx_window_errors),
            ("rx_compressed", self.rx_compressed),
            ("tx_compressed", self.tx_compressed),
            ("rx_nohandler", self.rx_nohandler),
        ]
    }
}

/// An optical module (SFF-8472, SFF-8636). Powers as ratios to a milliwatt in decibels.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Module {
    /// Standard of the module's memory.
    pub standard: String,
    /// Temperature in degrees Celsius. Null where the module does not report it.
    pub temperature_c: Option<f64>,
    /// Light received in dBm, by lane; null for a lane without light.
    pub receive_dbm: Vec<Option<f64>>,
    /// Light sent in dBm, by lane; null for a lane without light.
    pub send_dbm: Vec<Option<f64>>,
    /// Received light in dBm below which the module warns. Null where it has no such limit.
    pub receive_low_dbm: Option<f64>,
    /// Received light in dBm above which the module warns. Null where it has no such limit.
    pub receive_high_dbm: Option<f64>,
}

/// Share of received packets that found the receive ring full, from which on a transfer over a long path
/// notices: one in a million.
pub const OVERRUN_RATIO: f64 = 1e-6;

/// From this rate on a processor that sees every packet alone is what ends the rate: 1 Gbit/s is
/// 81,000 packets of 1500 bytes a second.
pub const FAST_BPS: f64 = 1e9;

impl LinkCounters {
    /// Received packets that the hardware dropped because its ring was full.
    pub fn overruns(&self) -> u64 {
        self.rx_missed_errors
            .saturating_add(self.rx_fifo_errors)
            .saturating_add(self.rx_over_errors)
    }
}

impl Interface {
    /// Whether a program at the other side of it decides how packets are split and queued: a TUN device.
    pub fn is_a_programs(&self) -> bool {
        self.kind.as_deref() == Some("tun")
    }

    /// Whether hardware sits behind it: it has a bus.
    pub fn is_physical(&self) -> bool {
        self.bus.is_some()
    }

    /// Whether it is the guest's half of a card that a hypervisor makes: it interrupts only while the guest
    /// sleeps (`virtqueue_enable_cb`), whatever its coalescing is set to.
    pub fn is_paravirtual(&self) -> bool {
        let driver = self.driver.as_deref();
        driver.is_some_and(|driver| driver.starts_with("virtio"))
    }

    /// Whether packets pass: up, with a carrier, and not the loopback.
    pub fn is_in_use(&self) -> bool {
        self.up && self.carrier && self.hardware != "loopback"
    }

    /// The offload of that name.
    pub fn offload(&self, name: &str) -> Option<&Offload> {
        self.offloads.iter().find(|offload| offload.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tunnels_are_told_from_the_laboratorys_links_and_access_lines() {
        let of = |kind: Option<&str>, hardware: &str, alias: Option<&str>| Interface {
            kind: kind.map(str::to_owned),
            hardware: hardware.to_owned(),
            alias: alias.map(str::to_owned),
            ..Interface::default()
        };
        for tunnel in [
            of(Some("wireguard"), "none", None),
            of(Some("tun"), "none", None),
            of(Some("tun"), "none", Some("to the office")),
            of(Some("gre"), "gre", None),
        ] {
            assert!(tunnel.is_tunnel(), "{tunnel:?}");
        }
        for none in [
            of(Some("tun"), "none", Some(Interface::LAB_ALIAS)),
            of(Some("tun"), "ethernet", None),
            of(Some("ppp"), "ppp", None),
            of(Some("veth"), "ethernet", None),
            of(None, "ethernet", None),
        ] {
            assert!(!none.is_tunnel(), "{none:?}");
        }
    }
}
