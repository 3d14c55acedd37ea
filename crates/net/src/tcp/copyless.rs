//! Moving payload without copying it: sendfile(2) out, MSG_TRUNC (tcp(7)) in.
//!
//! sendfile hands the pages of a file to TCP by reference, on any path; where the device cannot
//! gather them, the kernel copies. MSG_ZEROCOPY was left aside: it needs its completions read, and
//! between namespaces and over loopback the kernel copies all that it sends.

use std::ffi::CStr;
use std::fs::File;
use std::io::{self, Write};
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A file in memory (memfd_create(2)) that holds these bytes.
///
/// # Errors
/// When the machine gives no descriptor or no memory.
pub fn memory_file(bytes: &[u8]) -> io::Result<File> {
    const NAME: &CStr = c"plumb-payload";
    // SAFETY: the name is a string that ends in NUL and outlives the call.
    let fd = unsafe { libc::memfd_create(NAME.as_ptr(), libc::MFD_CLOEXEC) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made, is open, and has no other owner.
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(fd) });
    file.write_all(bytes)?;
    Ok(file)
}

/// Sends up to `count` bytes from the beginning of a file without copying them.
///
/// # Errors
/// Like a write; WouldBlock on a socket that does not block and has no room.
pub fn send_from(socket: &TcpStream, file: &File, count: usize) -> io::Result<usize> {
    send_from_at(socket, file, 0, count)
}

/// Sends up to `count` bytes from a place in a file without copying them; 0 at its end.
///
/// # Errors
/// Like a write; WouldBlock on a socket that does not block and has no room.
pub fn send_from_at(
    socket: &TcpStream,
    file: &File,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    let mut offset =
        libc::off_t::try_from(offset).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: both descriptors are borrowed, hence open, and the offset is writable and outlives
    // the call.
    let sent =
        unsafe { libc::sendfile(socket.as_raw_fd(), file.as_raw_fd(), &raw mut offset, count) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

/// Takes up to `count` bytes out of the receive buffer without looking at them.
///
/// # Errors
/// Like a read.
pub fn discard(socket: &TcpStream, count: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC, TCP writes nothing to the buffer, which may be null (tcp(7)). The
    // descriptor is borrowed, hence open.
    let taken = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            std::ptr::null_mut(),
            count,
            libc::MSG_TRUNC,
        )
    };
    usize::try_from(taken).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tcp::TcpOptions;
    use crate::tcp::tests::{pair, pair_with};
    use std::io::Read;

    #[test]
    fn what_is_sent_from_a_file_arrives() {
        let (a, mut b) = pair();
        let file = memory_file(b"plumb").unwrap();
        assert_eq!(send_from(&a, &file, 3).unwrap(), 3);
        assert_eq!(send_from(&a, &file, 100).unwrap(), 5);
        let mut got = [0; 8];
        b.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"pluplumb");
        assert_eq!(send_from_at(&a, &file, 3, 100).unwrap(), 2);
        assert_eq!(send_from_at(&a, &file, 5, 100).unwrap(), 0, "its end");
    }

    #[test]
    fn what_is_discarded_is_gone() {
        for mptcp in [false, true] {
            let (mut a, mut b) = pair_with(&TcpOptions {
                mptcp,
                ..TcpOptions::default()
            });
            a.write_all(b"plumb").unwrap();
            assert_eq!(discard(&b, 3).unwrap(), 3);
            let mut got = [0; 2];
            b.read_exact(&mut got).unwrap();
            assert_eq!(&got, b"mb");
            drop(a);
            assert_eq!(discard(&b, 3).unwrap(), 0);
        }
    }
}
