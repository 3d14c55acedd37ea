//! TUN devices: interfaces whose packets a program reads and writes
//! (`Documentation/networking/tuntap.rst`, `linux/if_tun.h`).
//!
//! With `IFF_VNET_HDR` every packet is preceded by a virtio-net header, so that TCP segments of
//! up to 64 KiB cross as they are and checksums are left to the end that needs them.

mod entrance;

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use nix::sys::uio::{readv, writev};

pub use self::entrance::Entrance;

/// Bytes of the virtio-net header before each packet (`struct virtio_net_hdr`).
pub const VNET_HEADER_BYTES: usize = 10;

/// The largest packet: IP counts its bytes in 16 bits, and a large segment is not longer.
pub const MAX_PACKET_BYTES: usize = 65_536;

mod request {

    nix::ioctl_write_int!(set_iff, b'T', 202);
    nix::ioctl_write_int!(set_offload, b'T', 208);
}

/// What the kernel may leave to the reader: checksums and TCP segmentation, for IPv4 and IPv6,
/// also of segments that carry ECN's CWR.
const OFFLOADS: libc::c_uint =
    libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;

/// A TUN device; it goes away when this is dropped.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Creates the device in the network namespace of the calling thread.
    ///
    /// The descriptor can then be used from any thread in any namespace.
    ///
    /// # Errors
    /// When /dev/net/tun is missing or may not be used, or the name is taken.
    pub fn create(name: &str) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open("/dev/net/tun")?;
        // SAFETY: ifreq is plain data, for which all zeroes is a valid value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays zero, so that the name is terminated.
        let room = request.ifr_name.len() - 1;
        if name.len() > room || name.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("interface name '{name}' is not 1 to {room} bytes long"),
            ));
        }
        for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
            *to = from as libc::c_char;
        }
        request.ifr_ifru.ifru_flags =
            (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as libc::c_short;
        // SAFETY: TUNSETIFF reads and writes one ifreq, which `request` is and outlives the call.
        unsafe { request::set_iff(file.as_raw_fd(), std::ptr::from_mut(&mut request) as u64) }?;
        // SAFETY: TUNSETOFFLOAD takes its flags by value.
        unsafe { request::set_offload(file.as_raw_fd(), u64::from(OFFLOADS)) }?;
        Ok(Self { file })
    }

    /// Reads one packet behind its virtio-net header and returns its length; `None` when there
    /// is none waiting.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn read(
        &self,
        header: &mut [u8; VNET_HEADER_BYTES],
        packet: &mut [u8],
    ) -> io::Result<Option<usize>> {
        let mut parts = [io::IoSliceMut::new(header), io::IoSliceMut::new(packet)];
        match readv(&self.file, &mut parts) {
            Ok(length) => Ok(Some(length.saturating_sub(VNET_HEADER_BYTES))),
            Err(nix::errno::Errno::EAGAIN | nix::errno::Errno::EINTR) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// Hands the kernel one packet. The receiving network stack runs within the call.
    ///
    /// # Errors
    /// Errors of the kernel; a malformed packet is `EINVAL`.
    pub fn write(&self, header: &[u8; VNET_HEADER_BYTES], packet: &[u8]) -> io::Result<()> {
        writev(
            &self.file,
            &[io::IoSlice::new(header), io::IoSlice::new(packet)],
        )?;
        Ok(())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
