//! Captures of an interface through memory that the kernel shares (packet(7), TPACKET_V3): packets come in blocks, and
//! those that were not read in time are counted.

mod block;
mod memory;

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{Domain, SockAddr, SockFilter, Socket, Type};

use self::block::{Block, COOKED_BYTES, Record};
use self::memory::{BLOCK_BYTES, BLOCKS, Blocks};
use crate::clock::monotonic_ns;
use crate::link_address::{address, link_address};
use crate::socket_options::{set, set_bytes};
use crate::wait;

/// Options of SOL_PACKET (linux/if_packet.h).
const PACKET_RX_RING: libc::c_int = 5;
const PACKET_VERSION: libc::c_int = 10;
/// The version with blocks, TPACKET_V3 (linux/if_packet.h).
const VERSION_3: i32 = 2;
/// A block that is not full is handed over after this: the view of a terminal is at most that late.
const HANDED_OVER_MS: u32 = 20;
/// After this time whatever had passed is handed over: the kernel looks no more often than its clock ticks.
pub const HANDED_OVER: Duration = Duration::from_millis(3 * HANDED_OVER_MS as u64);
/// The kernel asks for a frame size, although frames of version 3 have any size. A multiple of TPACKET_ALIGNMENT.
const FRAME_BYTES: u32 = 2048;

/// Link types (the list of LINKTYPE_ values of libpcap).
const ETHERNET: u16 = 1;
const COOKED_2: u16 = 276;
/// Both addresses of Ethernet, behind which a VLAN tag stands.
const ADDRESSES_BYTES: usize = 12;

/// The name that means all interfaces.
pub const ANY: &str = "any";
/// The number of all interfaces in addresses of packet sockets.
const ALL: u32 = 0;

/// An instruction of classic BPF: code, jumps, and the constant (linux/filter.h).
pub type Instruction = (u16, u8, u8, u32);

/// An interface before its packets are taken.
#[derive(Debug)]
pub struct Interface {
    socket: Socket,
    address: SockAddr,
    hardware: u16,
}

impl Interface {
    /// The interface of this name in the network namespace of the calling thread, or all interfaces for [`ANY`].
    ///
    /// # Errors
    /// When there is none, or packet sockets are not allowed (CAP_NET_RAW).
    pub fn open(name: &str) -> io::Result<Self> {
        let (silent, every) = match name {
            ANY => (address(ALL, 0)?, address(ALL, EVERY_PROTOCOL)?),
            name => (link_address(name, 0)?, link_address(name, EVERY_PROTOCOL)?),
        };
        // Protocol 0: nothing comes before the filter is there, and none from other interfaces.
        let mut socket = Socket::new(Domain::PACKET, Type::RAW, None)?;
        socket.bind(&silent)?;
        let hardware = match name {
            ANY => libc::ARPHRD_VOID,
            _ => memory::hardware(&socket.local_addr()?),
        };
        if !has_ethernet(hardware) {
            socket = Socket::new(Domain::PACKET, Type::DGRAM, None)?;
            socket.bind(&silent)?;
        }
        socket.set_nonblocking(true)?;
        Ok(Self {
            socket,
            address: every,
            hardware,
        })
    }

    /// The link type of its packets (LINKTYPE_ of libpcap): Ethernet, or Linux's own header where there is another.
    pub fn link(&self) -> u16 {
        match has_ethernet(self.hardware) {
            true => ETHERNET,
            false => COOKED_2,
        }
    }

    /// Takes packets from now on: of each at most `snaplen` bytes, and only those that a program for [`Self::link`] lets
    /// pass. One for another link than Ethernet, or with a VLAN tag that the kernel keeps elsewhere, passes here whatever
    /// the program decides: a caller that minds checks the packet again.
    ///
    /// # Errors
    /// When the kernel refuses the memory, the program, or the interface.
    pub fn start(
        self,
        snaplen: u32,
        promiscuous: bool,
        program: &[Instruction],
    ) -> io::Result<PacketRing> {
        let Self {
            socket,
            address,
            hardware,
        } = self;
        let program = match has_ethernet(hardware) {
            true => program,
            false => &[],
        };
        socket.attach_filter(&passing(program, snaplen))?;
        set(&socket, (libc::SOL_PACKET, PACKET_VERSION), VERSION_3)?;
        let frames = (BLOCK_BYTES * BLOCKS) as u32 / FRAME_BYTES;
        let request = [
            BLOCK_BYTES as u32,
            BLOCKS as u32,
            FRAME_BYTES,
            frames,
            HANDED_OVER_MS,
            0,
            0,
        ];
        let request: Vec<u8> = request.iter().flat_map(|word| word.to_ne_bytes()).collect();
        set_bytes(&socket, (libc::SOL_PACKET, PACKET_RX_RING), &request)?;
        let blocks = Blocks::of(&socket)?;
        if promiscuous {
            memory::listen_to_all(&socket, &address)?;
        }
        socket.bind(&address)?;
        Ok(PacketRing {
            socket,
            blocks,
            taken: None,
            is_ethernet: has_ethernet(hardware),
            rebuilt: Vec::new(),
            current: Record::default(),
            dropped: 0,
        })
    }
}

/// What is received and what is sent (linux/if_ether.h).
const EVERY_PROTOCOL: u16 = libc::ETH_P_ALL as u16;

fn has_ethernet(hardware: u16) -> bool {
    matches!(hardware, libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK)
}

/// A program that keeps `snaplen` bytes of each packet that passes `program`. The kernel removes VLAN tags from packets
/// before programs see them, so packets with a tag pass. An empty program passes all.
fn passing(program: &[Instruction], snaplen: u32) -> Vec<SockFilter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    const HAS_TAG: u32 = (libc::SKF_AD_OFF + libc::SKF_AD_VLAN_TAG_PRESENT) as u32;
    let keep = SockFilter::new(RETURN, 0, 0, snaplen);
    if program.is_empty() {
        return vec![keep];
    }
    let tagged = [
        SockFilter::new(LOAD, 0, 0, HAS_TAG),
        SockFilter::new(IF_EQUAL, 1, 0, 0),
        keep,
    ];
    let own = program.iter().map(|(code, jt, jf, k)| match *code {
        RETURN if *k > 0 => SockFilter::new(RETURN, 0, 0, snaplen),
        code => SockFilter::new(code, *jt, *jf, *k),
    });
    tagged.into_iter().chain(own).collect()
}

/// A packet that passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Captured<'a> {
    /// When, in nanoseconds since 1970.
    pub unix_ns: u64,
    /// Its first bytes, as many as were to be kept.
    pub bytes: &'a [u8],
    /// Its length on the wire, in bytes.
    pub original_bytes: u32,
    /// Whether this host sent it.
    pub sent: bool,
}

/// Packets of an interface.
#[derive(Debug)]
pub struct PacketRing {
    socket: Socket,
    blocks: Blocks,
    /// What is left of the block that was handed over.
    taken: Option<Block>,
    is_ethernet: bool,
    /// A packet that the kernel keeps in parts: with its VLAN tag, or with the header that replaces any link header.
    rebuilt: Vec<u8>,
    current: Record,
    dropped: u64,
}

impl PacketRing {
    /// Moves to the next packet; `false` where none came within that time.
    ///
    /// # Errors
    /// Errors of the kernel: `ENETDOWN` where the interface went down or is gone.
    pub fn advance(&mut self, within: Duration) -> io::Result<bool> {
        let waited = u64::try_from(within.as_nanos()).unwrap_or(u64::MAX);
        let until_ns = monotonic_ns().saturating_add(waited);
        // Each turn takes a packet or a block, or waits; it ends at `until_ns`.
        loop {
            if let Some(block) = &mut self.taken {
                match block.next(self.blocks.bytes()) {
                    // The loopback has each packet twice, as sent and as received.
                    Some(record) if record.is_sent_over_loopback() => continue,
                    Some(record) => {
                        self.current = record;
                        self.rebuild();
                        return Ok(true);
                    }
                    None => {
                        self.taken = None;
                        self.blocks.give_back();
                    }
                }
            }
            if self.blocks.is_ready() {
                self.taken = Some(Block::begin(self.blocks.bytes()));
                continue;
            }
            if let Some(error) = self.socket.take_error()? {
                return Err(error);
            }
            if monotonic_ns() >= until_ns {
                return Ok(false);
            }
            wait::until(&[self.socket.as_fd()], until_ns)?;
        }
    }

    /// The packet that [`Self::advance`] went on to.
    pub fn packet(&self) -> Captured<'_> {
        let (bytes, added) = match self.rebuilt.is_empty() {
            true => (self.current.bytes(self.blocks.bytes()), 0),
            false => {
                let own = self.current.captured();
                (&self.rebuilt[..], self.rebuilt.len().saturating_sub(own))
            }
        };
        Captured {
            unix_ns: self.current.unix_ns,
            bytes,
            original_bytes: self.current.original_bytes.saturating_add(added as u32),
            sent: self.current.sent,
        }
    }

    /// How many packets were lost since the beginning because they were not read in time.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn dropped(&mut self) -> io::Result<u64> {
        // The kernel forgets them as they are read.
        let more = memory::dropped(&self.socket)?;
        self.dropped = self.dropped.saturating_add(more);
        Ok(self.dropped)
    }

    /// Puts together what the kernel keeps apart.
    fn rebuild(&mut self) {
        self.rebuilt.clear();
        let bytes = self.current.bytes(self.blocks.bytes());
        match (self.is_ethernet, self.current.vlan) {
            (true, None) => {}
            (true, Some(tag)) => {
                let Some((addresses, rest)) = bytes.split_at_checked(ADDRESSES_BYTES) else {
                    return;
                };
                self.rebuilt.extend(addresses);
                self.rebuilt.extend(tag);
                self.rebuilt.extend(rest);
            }
            (false, _) => {
                self.rebuilt.reserve(COOKED_BYTES + bytes.len());
                self.rebuilt.extend(self.current.cooked());
                self.rebuilt.extend(bytes);
            }
        }
    }
}

#[cfg(test)]
mod tests;
