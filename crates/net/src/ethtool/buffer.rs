//! Memory that the kernel may write an answer of unknown length into.
//!
//! Some commands write as much as the driver has, whatever length the caller gives, and a driver may have more by then
//! than it announced before. So the memory ends at an inaccessible page: the kernel copies from front to back
//! (`copy_to_user`), and what would go beyond fails there with EFAULT.

use std::io;
use std::os::fd::RawFd;
use std::ptr::NonNull;

/// Room for an answer: 8000 names of 32 bytes.
pub(super) const BYTES: usize = 256 * 1024;

/// At least a page on every machine that Linux runs on (64 KiB is the largest that is usual).
const GUARD_BYTES: usize = 64 * 1024;

const SIOCETHTOOL: libc::c_ulong = 0x8946;

#[derive(Debug)]
pub(super) struct Buffer(NonNull<u8>);

// SAFETY: the memory belongs to this value alone, which hands it out by reference only.
unsafe impl Send for Buffer {}

impl Buffer {
    pub(super) fn new() -> io::Result<Self> {
        // SAFETY: asks for new memory at a place of the kernel's choice; touches none that exists.
        let start = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                BYTES + GUARD_BYTES,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let buffer = Self(NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?);
        // SAFETY: the first BYTES of the mapping just made, which is longer.
        match unsafe { libc::mprotect(start, BYTES, libc::PROT_READ | libc::PROT_WRITE) } {
            0 => Ok(buffer),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Puts a request into the memory, makes the call and returns the memory.
    pub(super) fn exchange(
        &mut self,
        socket: RawFd,
        interface: &str,
        request: &[u32],
    ) -> io::Result<&[u8]> {
        let mut name = [0; libc::IFNAMSIZ];
        // The last byte stays the zero that ends the name.
        if interface.len() >= name.len() || interface.bytes().any(|byte| byte == 0) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        for (to, from) in name.iter_mut().zip(interface.bytes()) {
            *to = from as libc::c_char;
        }
        // SAFETY: the mapping is writable for BYTES and stays until `self` is dropped; `&mut self`
        // means that no other reference to it exists.
        let memory = unsafe { std::slice::from_raw_parts_mut(self.0.as_ptr(), BYTES) };
        memory.fill(0);
        let bytes = request.iter().flat_map(|word| word.to_ne_bytes());
        for (to, from) in memory.iter_mut().zip(bytes) {
            *to = from;
        }
        let mut ask = libc::ifreq {
            ifr_name: name,
            ifr_ifru: libc::__c_anonymous_ifr_ifru {
                ifru_data: self.0.as_ptr().cast(),
            },
        };
        // SAFETY: `ask` is a complete ifreq that outlives the call, its name ends with a zero, and
        // its pointer is to memory behind which, see above, the kernel cannot write. The commands
        // of this module are those that read.
        match unsafe { libc::ioctl(socket, SIOCETHTOOL as _, &raw mut ask) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(memory),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, of that length, to which no reference exists now.
        let _ = unsafe { libc::munmap(self.0.as_ptr().cast(), BYTES + GUARD_BYTES) };
    }
}
