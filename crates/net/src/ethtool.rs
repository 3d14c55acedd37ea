//! What a driver reports about its interface: ethtool's ioctl (`linux/ethtool.h`, SIOCETHTOOL).
//!
//! The ioctl and not its successor over netlink: only the ioctl has the drivers' own counters, and
//! every kernel has it. Nothing here changes anything.

mod buffer;
mod link_mode;
mod module;

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use plumb_model::results::host::{
    Channels, Coalescing, Duplex, LinkMode, Module, Offload, Pause, Rings,
};

use buffer::Buffer;

const GET_DRIVER: u32 = 0x03;
const GET_COALESCING: u32 = 0x0e;
const GET_RINGS: u32 = 0x10;
const GET_PAUSE: u32 = 0x12;
const GET_STRINGS: u32 = 0x1b;
const GET_STATISTICS: u32 = 0x1d;
const GET_SET_SIZES: u32 = 0x37;
const GET_FEATURES: u32 = 0x3a;
const GET_CHANNELS: u32 = 0x3c;
const GET_MODULE: u32 = 0x42;
const GET_MODULE_MEMORY: u32 = 0x43;
const GET_ENERGY: u32 = 0x44;
const GET_LINK: u32 = 0x4c;

/// Sets of names (`ETH_SS_*`).
const STATISTICS: u32 = 1;
const FEATURES: u32 = 4;

/// Length of a name (`ETH_GSTRING_LEN`).
const NAME_BYTES: usize = 32;

/// The value for an unknown speed (`SPEED_UNKNOWN`).
const UNKNOWN_SPEED: u32 = u32::MAX;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Driver {
    pub name: String,
    pub firmware: String,
    /// Where the device is on its bus.
    pub bus: String,
}

/// Asks drivers about interfaces of the network namespace of the thread that opened it.
#[derive(Debug)]
pub struct Ethtool {
    socket: UdpSocket,
    buffer: Buffer,
}

impl Ethtool {
    /// Opens.
    ///
    /// # Errors
    /// When there is no descriptor or no memory left.
    pub fn open() -> io::Result<Self> {
        Ok(Self {
            // Any socket will do; this one is bound to a port of the loopback that no other host can reach.
            socket: UdpSocket::bind("127.0.0.1:0").or_else(|_| UdpSocket::bind("[::1]:0"))?,
            buffer: Buffer::new()?,
        })
    }

    /// Who drives it.
    ///
    /// # Errors
    /// When the driver does not report it, or the interface is gone.
    pub fn driver(&mut self, interface: &str) -> io::Result<Driver> {
        let answer = self.ask(interface, &[GET_DRIVER])?;
        Ok(Driver {
            name: text(answer, 4),
            firmware: text(answer, 68),
            bus: text(answer, 100),
        })
    }

    /// The current mode of the link, and the modes that it supports.
    ///
    /// # Errors
    /// When the driver does not report it, or the interface is gone.
    pub fn link(&mut self, interface: &str) -> io::Result<LinkMode> {
        /// Where the masks follow (`struct ethtool_link_settings`).
        const MASKS_AT: usize = 48;
        /// Where the number of words of a mask stands, and the question with it in its place.
        const WORDS_AT: usize = 15;
        // Asked with none, the kernel answers with how many words a mask has, negative.
        let words = byte(self.ask(interface, &[GET_LINK])?, WORDS_AT)
            .cast_signed()
            .checked_neg()
            .unwrap_or_default();
        let with_words = u32::from_ne_bytes([0, 0, 0, words.cast_unsigned()]);
        let answer = self.ask(interface, &[GET_LINK, 0, 0, with_words])?;
        let words = usize::try_from(words).unwrap_or_default();
        let mask = |number: usize| {
            let begin = MASKS_AT + 4 * words * number;
            answer.get(begin..begin + 4 * words).unwrap_or_default()
        };
        let best = |number: usize| link_mode::best(mask(number)).map(|mbps| f64::from(mbps) * 1e6);
        Ok(LinkMode {
            speed_bps: match word(answer, 1) {
                0 | UNKNOWN_SPEED => None,
                mbps => Some(f64::from(mbps) * 1e6),
            },
            duplex: match byte(answer, 8) {
                0 => Some(Duplex::Half),
                1 => Some(Duplex::Full),
                _ => None,
            },
            // A driver without the modes reports "off", as it has nothing to negotiate.
            autonegotiation: link_mode::best(mask(0)).map(|_| byte(answer, 11) == 1),
            best_speed_bps: best(0),
            offered_speed_bps: best(1),
            partner_speed_bps: best(2),
        })
    }

    /// Pause frames.
    ///
    /// # Errors
    /// When the driver does not report it, or the interface is gone.
    pub fn pause(&mut self, interface: &str) -> io::Result<Pause> {
        let answer = self.ask(interface, &[GET_PAUSE])?;
        Ok(Pause {
            autonegotiation: word(answer, 1) != 0,
            receive: word(answer, 2) != 0,
            send: word(answer, 3) != 0,
        })
    }

    /// Descriptor rings.
    ///
    /// # Errors
    /// When the driver does not report it, or the interface is gone.
    pub fn rings(&mut self, interface: &str) -> io::Result<Rings> {
        let answer = self.ask(interface, &[GET_RINGS])?;
        Ok(Rings {
            receive_max_packets: word(answer, 1),
            send_max_packets: word(answer, 4),
            receive_packets: word(answer, 5),
            send_packets: word(answer, 8),
        })
    }

    /// Hardware queues.
    ///
    /// # Errors
    /// When the driver does not report it, or the interface is gone.
    pub fn channels(&mut self, interface: &str) -> io::Result<Channels> {
        let answer = self.ask(interface, &[GET_CHANNELS])?;
        Ok(Channels {
            combined_max: word(answer, 4),
            receive: word(answer, 5),
            send: word(answer, 6),
            combined: word(answer, 8),
        })
    }

    /// Interrupt coalescing; the kernel has microseconds.
    ///
    /// # Errors
    /// When the driver does not report it, or the interface is gone.
    pub fn coalescing(&mut self, interface: &str) -> io::Result<Coalescing> {
        let answer = self.ask(interface, &[GET_COALESCING])?;
        let seconds = |place: usize| f64::from(word(answer, place)) / 1e6;
        Ok(Coalescing {
            receive_s: seconds(1),
            receive_packets: word(answer, 2),
            send_s: seconds(5),
            send_packets: word(answer, 6),
            adaptive_receive: word(answer, 10) != 0,
            // Only netlink reports it ([`crate::netlink::driver`]).
            adaptive_receive_possible: None,
            adaptive_send: word(answer, 11) != 0,
        })
    }

    /// Whether energy-efficient Ethernet is in use.
    ///
    /// # Errors
    /// When the driver does not report it, or the interface is gone.
    pub fn energy_efficient(&mut self, interface: &str) -> io::Result<bool> {
        self.ask(interface, &[GET_ENERGY])
            .map(|answer| word(answer, 4) != 0)
    }

    /// Work that hardware and kernel take over, by its name. The names are the kernel's own, so
    /// they are asked for once and given again.
    ///
    /// # Errors
    /// When the interface has gone.
    pub fn offloads(&mut self, interface: &str, names: &[String]) -> io::Result<Vec<Offload>> {
        let blocks = names.len().div_ceil(32);
        let answer = self.ask(interface, &[GET_FEATURES, blocks as u32])?;
        // `struct ethtool_get_features_block`: available, requested, active, never changed.
        let bit = |index: usize, part: usize| {
            word(answer, 2 + 4 * (index / 32) + part) & (1 << (index % 32)) != 0
        };
        let named = names
            .iter()
            .enumerate()
            .filter(|(_, name)| !name.is_empty());
        Ok(named
            .map(|(index, name)| Offload {
                name: name.clone(),
                on: bit(index, 2),
                fixed: bit(index, 3) || !bit(index, 0),
            })
            .collect())
    }

    /// The names of the offloads of this kernel, in its order.
    ///
    /// # Errors
    /// When the interface has gone.
    pub fn offload_names(&mut self, interface: &str) -> io::Result<Vec<String>> {
        self.names(interface, FEATURES)
    }

    /// The driver's own counters.
    ///
    /// # Errors
    /// When the driver has none, or the interface has gone.
    pub fn statistics(&mut self, interface: &str) -> io::Result<Vec<(String, u64)>> {
        let names = self.names(interface, STATISTICS)?;
        let answer = self.ask(interface, &[GET_STATISTICS, names.len() as u32])?;
        let count = word(answer, 1) as usize;
        let value = |index: usize| {
            let bytes = answer.get(8 + 8 * index..)?.first_chunk()?;
            Some(u64::from_ne_bytes(*bytes))
        };
        // The driver may have changed the set in between; then names and values do not belong
        // together.
        if count != names.len() {
            return Ok(Vec::new());
        }
        let pairs = names.into_iter().enumerate();
        Ok(pairs
            .filter_map(|(index, name)| Some((name, value(index)?)))
            .collect())
    }

    /// What the optical module reports; `None` where its kind of memory is not known.
    ///
    /// # Errors
    /// When there is no module, it does not answer, or this user may not ask (CAP_NET_ADMIN).
    pub fn module(&mut self, interface: &str) -> io::Result<Option<Module>> {
        let answer = self.ask(interface, &[GET_MODULE])?;
        let (kind, length) = (word(answer, 1), word(answer, 2));
        let length = length.min(buffer::BYTES as u32 - 16);
        // `struct ethtool_eeprom`: command, magic, offset, length, then the bytes.
        let answer = self.ask(interface, &[GET_MODULE_MEMORY, 0, 0, length])?;
        let memory = answer.get(16..16 + length as usize).unwrap_or_default();
        Ok(module::read(kind, memory))
    }

    fn names(&mut self, interface: &str, set: u32) -> io::Result<Vec<String>> {
        // `struct ethtool_sset_info`: command, nothing, a mask of 64 bits, then the sizes of the
        // sets that there are.
        let mask = 1_u32 << set;
        let (low, high) = if cfg!(target_endian = "little") {
            (mask, 0)
        } else {
            (0, mask)
        };
        let answer = self.ask(interface, &[GET_SET_SIZES, 0, low, high])?;
        let size = match word(answer, 2) | word(answer, 3) {
            0 => 0,
            _ => word(answer, 4),
        };
        if size == 0 {
            return Ok(Vec::new());
        }
        let answer = self.ask(interface, &[GET_STRINGS, set, size])?;
        let size = (word(answer, 2) as usize).min(buffer::BYTES / NAME_BYTES);
        Ok((0..size)
            .map(|index| text_of(answer, 12 + NAME_BYTES * index))
            .collect())
    }

    /// Asks, and returns what the kernel wrote, behind which are zeroes.
    fn ask(&mut self, interface: &str, request: &[u32]) -> io::Result<&[u8]> {
        self.buffer
            .exchange(self.socket.as_raw_fd(), interface, request)
    }
}

fn word(bytes: &[u8], place: usize) -> u32 {
    let at = bytes.get(4 * place..).and_then(|rest| rest.first_chunk());
    at.map_or(0, |chunk| u32::from_ne_bytes(*chunk))
}

fn byte(bytes: &[u8], at: usize) -> u8 {
    bytes.get(at).copied().unwrap_or_default()
}

/// A name of 32 bytes that a zero may end.
fn text_of(bytes: &[u8], at: usize) -> String {
    let all = bytes.get(at..at + NAME_BYTES).unwrap_or_default();
    let end = all.iter().position(|byte| *byte == 0).unwrap_or(all.len());
    String::from_utf8_lossy(all.get(..end).unwrap_or_default()).into_owned()
}

/// The same where drivers write `N/A` for nothing.
fn text(bytes: &[u8], at: usize) -> String {
    let text = text_of(bytes, at);
    if text == "N/A" { String::new() } else { text }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_loopback_tells_its_offloads() {
        let mut ethtool = Ethtool::open().unwrap();
        let names = ethtool.offload_names("lo").unwrap();
        assert!(names.len() > 30, "{names:?}");
        let offloads = ethtool.offloads("lo", &names).unwrap();
        let of = |name: &str| offloads.iter().find(|o| o.name == name).unwrap();
        // `net/ethtool/common.c`, `drivers/net/loopback.c`.
        assert!(of("tx-tcp-segmentation").on && !of("tx-tcp-segmentation").fixed);
        assert!(of("vlan-challenged").fixed);
        assert!(!of("rx-lro").on);
        // It has neither a link nor rings.
        assert!(ethtool.link("lo").is_err() && ethtool.rings("lo").is_err());
    }

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let mut ethtool = Ethtool::open().unwrap();
        let gone = ethtool.driver("no-such0").unwrap_err();
        assert_eq!(gone.raw_os_error(), Some(libc::ENODEV));
        let long = ethtool
            .driver("a-name-longer-than-any-interface")
            .unwrap_err();
        assert_eq!(long.kind(), io::ErrorKind::InvalidInput);
    }
}
