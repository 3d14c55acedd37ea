//! What has passed an interface, as a shaper counts it: with the framing of the line on each packet.

use std::io;

use plumb_model::framing::Framing;
use plumb_model::results::host::Interface;
use plumb_net::netlink::link::links;

/// The header of Ethernet, which the kernel counts on a device of that kind (ARPHRD_ETHER, `if_arp.h`), in bytes.
const ETHERNET: &str = "ethernet";
const ETHERNET_HEADER_BYTES: f64 = 14.0;

/// A larger packet was segments when it passed the line (RFC 894).
const MOST_IP_BYTES: f64 = 1500.0;

/// Packets and bytes that an interface sent, or received, since it came up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counter {
    bytes: u64,
    packets: u64,
}

/// The counters of an interface.
#[derive(Debug)]
pub struct Passed {
    index: u32,
    header_bytes: f64,
    framing: Framing,
    last: Option<[Counter; 2]>,
    bits: [f64; 2],
}

impl Passed {
    /// Of that interface, on a line of that framing.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn of(device: &str, framing: Framing) -> io::Result<Self> {
        let interface = find(|interface| interface.name == device)?;
        let ethernet = interface.hardware == ETHERNET;
        Ok(Self {
            index: interface.index,
            header_bytes: if ethernet { ETHERNET_HEADER_BYTES } else { 0.0 },
            framing,
            last: None,
            bits: [0.0; 2],
        })
    }

    /// Bits on the line since the first reading, up and down.
    ///
    /// # Errors
    /// When the interface is gone.
    pub fn read(&mut self) -> io::Result<[f64; 2]> {
        let counters = find(|interface| interface.index == self.index)?.counters;
        let counter = |bytes, packets| Counter { bytes, packets };
        self.take([
            counter(counters.tx_bytes, counters.tx_packets),
            counter(counters.rx_bytes, counters.rx_packets),
        ]);
        Ok(self.bits)
    }

    fn take(&mut self, now: [Counter; 2]) {
        let last = self.last.replace(now).unwrap_or(now);
        for ((bits, now), last) in self.bits.iter_mut().zip(now).zip(last) {
            // A counter that begins anew has counted something that is not known.
            let bytes = now.bytes.saturating_sub(last.bytes);
            let packets = now.packets.saturating_sub(last.packets);
            *bits += wire_bits(&self.framing, self.header_bytes, bytes, packets);
        }
    }
}

fn find(which: impl Fn(&Interface) -> bool) -> io::Result<Interface> {
    let all = links().map_err(io::Error::other)?;
    let found = all.into_iter().find(which);
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such interface"))
}

/// What packets of that number and sum take on the line, as if all were alike.
fn wire_bits(framing: &Framing, header_bytes: f64, bytes: u64, packets: u64) -> f64 {
    if packets == 0 {
        return 0.0;
    }
    let ip_bytes = (bytes as f64 / packets as f64 - header_bytes).max(0.0);
    let segments = (ip_bytes / MOST_IP_BYTES).ceil().max(1.0);
    let wire_bytes = framing.wire_bytes((ip_bytes / segments).round() as u32);
    f64::from(wire_bytes) * 8.0 * segments * packets as f64
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn packets_are_counted_with_their_framing_and_without_the_header_of_ethernet() {
        let docsis: Framing = "docsis".parse().unwrap();
        assert_eq!(wire_bits(&docsis, 14.0, 1514, 1), 1518.0 * 8.0);
        assert_eq!(wire_bits(&docsis, 0.0, 40 * 7, 7), 64.0 * 8.0 * 7.0);
        // A segment of TCP that the device was to split: 44 times 1448 bytes of payload behind one header.
        let large = wire_bits(&docsis, 14.0, 14 + 52 + 44 * 1448, 1);
        let split = 44.0 * 1518.0 * 8.0;
        assert!((large / split - 1.0).abs() < 0.04, "{large} {split}");
        assert_eq!(wire_bits(&docsis, 14.0, 0, 0), 0.0);
    }

    #[test]
    fn counters_that_begin_anew_take_nothing_away() {
        let counter = |bytes, packets| Counter { bytes, packets };
        let mut passed = Passed {
            index: 0,
            header_bytes: 0.0,
            framing: Framing::default(),
            last: None,
            bits: [0.0; 2],
        };
        passed.take([counter(5000, 5), counter(0, 0)]);
        passed.take([counter(7000, 7), counter(100, 1)]);
        assert_eq!(passed.bits, [16_000.0, 800.0]);
        passed.take([counter(100, 1), counter(100, 1)]);
        passed.take([counter(1100, 2), counter(100, 1)]);
        assert_eq!(passed.bits, [24_000.0, 800.0]);
    }
}
