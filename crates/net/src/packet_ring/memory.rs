//! What of a packet ring needs the kernel's structures: the memory that both have, and options without a safe name.

use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use socket2::{SockAddr, Socket};

use crate::socket_options::set_bytes;

/// A block holds the largest packet that Linux makes, of half a megabyte (GRO_MAX_SIZE).
pub(super) const BLOCK_BYTES: usize = 1 << 20;
/// Together 32 MB: a quarter of a second at 1 Gbit/s.
pub(super) const BLOCKS: usize = 32;

/// The place of `block_status` in `struct tpacket_block_desc`, and its values.
const STATUS_AT: usize = 8;
const OF_KERNEL: u32 = 0;
const OF_USER: u32 = 1;
/// Options of SOL_PACKET (linux/if_packet.h).
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_ADD_MEMBERSHIP: libc::c_int = 1;
const PACKET_MR_PROMISC: u16 = 1;

/// The blocks of a ring, of which one at a time is looked at.
#[derive(Debug)]
pub(super) struct Blocks {
    start: NonNull<u8>,
    /// Which block comes next, or is looked at.
    index: usize,
}

// SAFETY: the memory belongs to this value alone, and has no tie to the thread that mapped it.
unsafe impl Send for Blocks {}

impl Blocks {
    /// The blocks of a socket whose PACKET_RX_RING has `BLOCKS` blocks.
    pub(super) fn of(socket: &Socket) -> io::Result<Self> {
        // SAFETY: asks for new memory at a place of the kernel's choice; the descriptor is borrowed, hence open.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BLOCK_BYTES * BLOCKS,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                socket.as_raw_fd(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, index: 0 })
    }

    fn status(&self) -> &AtomicU32 {
        let at = (self.index % BLOCKS) * BLOCK_BYTES + STATUS_AT;
        // SAFETY: inside of the mapping, as `index` is taken by the number of blocks; aligned, as blocks begin at pages;
        // the kernel and this program alone write it, both as one word.
        unsafe { AtomicU32::from_ptr(self.start.as_ptr().add(at).cast()) }
    }

    /// Whether the kernel handed the block over.
    pub(super) fn is_ready(&self) -> bool {
        self.status().load(Ordering::Acquire) & OF_USER != 0
    }

    /// The block where it was handed over, else nothing.
    pub(super) fn bytes(&self) -> &[u8] {
        if !self.is_ready() {
            return &[];
        }
        let at = (self.index % BLOCKS) * BLOCK_BYTES;
        // SAFETY: inside of the mapping; the kernel does not write a block that it has handed over until `give_back`,
        // which needs this value for itself.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(at), BLOCK_BYTES) }
    }

    /// Gives the block back to the kernel, and moves to the next.
    pub(super) fn give_back(&mut self) {
        self.status().store(OF_KERNEL, Ordering::Release);
        self.index = (self.index + 1) % BLOCKS;
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `of`, to which no reference exists now.
        let _ = unsafe { libc::munmap(self.start.as_ptr().cast(), BLOCK_BYTES * BLOCKS) };
    }
}

/// Number and hardware (ARPHRD_ of linux/if_arp.h) of a packet socket's interface.
fn parts(address: &SockAddr) -> (libc::c_int, u16) {
    // SAFETY: the storage is large enough for any address, and each of its bytes is initialised.
    let link = unsafe { &*address.as_ptr().cast::<libc::sockaddr_ll>() };
    (link.sll_ifindex, link.sll_hatype)
}

pub(super) fn hardware(address: &SockAddr) -> u16 {
    parts(address).1
}

/// Lets packets come that are for others (PACKET_MR_PROMISC), as long as the socket is open.
pub(super) fn listen_to_all(socket: &Socket, address: &SockAddr) -> io::Result<()> {
    // struct packet_mreq: the interface, the kind, and an address that this kind has not.
    let mut request = parts(address).0.to_ne_bytes().to_vec();
    request.extend(PACKET_MR_PROMISC.to_ne_bytes());
    request.extend([0; 10]);
    set_bytes(socket, (libc::SOL_PACKET, PACKET_ADD_MEMBERSHIP), &request)
}

/// How many packets were lost since this was asked last.
pub(super) fn dropped(socket: &Socket) -> io::Result<u64> {
    /// `struct tpacket_stats_v3`: packets, drops, and how often the ring was full.
    const WORDS: usize = 3;
    let mut words = [0_u32; WORDS];
    let mut length = size_of_val(&words) as libc::socklen_t;
    // SAFETY: the kernel writes at most `length` bytes into `words`, which has as many; the descriptor is borrowed, hence
    // open.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_PACKET,
            PACKET_STATISTICS,
            words.as_mut_ptr().cast(),
            &mut length,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let [_, dropped, _] = words;
    Ok(dropped.into())
}
