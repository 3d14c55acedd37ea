//! Descriptors that go from one process to another over a Unix socket (SCM_RIGHTS, unix(7)),
//! and whom such a socket leads to.

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, getsockopt, recvmsg, sendmsg, sockopt,
};

/// The most descriptors that are passed at once: the namespaces of a process.
pub const MAX_DESCRIPTORS: usize = 8;

/// Sends bytes with descriptors attached to the first of them.
///
/// # Errors
/// Errors of the kernel; [`io::ErrorKind::WriteZero`] when not all bytes went, which happens only to
/// more than a socket's buffer holds.
pub fn send(stream: &UnixStream, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let raw: Vec<RawFd> = descriptors.iter().map(AsRawFd::as_raw_fd).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let sent = sendmsg::<()>(
        stream.as_raw_fd(),
        &[IoSlice::new(bytes)],
        if raw.is_empty() { &[] } else { &rights },
        MsgFlags::MSG_NOSIGNAL,
        None,
    )?;
    if sent < bytes.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    Ok(())
}

/// Receives what there is, at most what `buffer` holds, and the descriptors attached to it.
///
/// # Errors
/// Errors of the kernel.
pub fn receive(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = nix::cmsg_space!([RawFd; MAX_DESCRIPTORS]);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(
        stream.as_raw_fd(),
        &mut slices,
        Some(&mut space),
        MsgFlags::MSG_CMSG_CLOEXEC,
    )?;
    let mut descriptors = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = control {
            // SAFETY: the kernel has just installed these descriptors in this process for this
            // message, and nothing else knows their numbers.
            descriptors.extend(
                raw.into_iter()
                    .map(|fd| unsafe { OwnedFd::from_raw_fd(fd) }),
            );
        }
    }
    Ok((message.bytes, descriptors))
}

/// Who is at the other end of a Unix socket, as it was when they met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The user, as this process's user namespace numbers users.
    pub user: u32,
    /// The process; `None` when it is in no PID namespace that this process sees.
    pub process: Option<u32>,
}

/// Whom this socket leads to (SO_PEERCRED).
///
/// # Errors
/// Errors of the kernel.
pub fn peer(stream: &UnixStream) -> io::Result<Peer> {
    let credentials = getsockopt(stream, sockopt::PeerCredentials)?;
    Ok(Peer {
        user: credentials.uid(),
        process: u32::try_from(credentials.pid()).ok().filter(|pid| *pid > 0),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use std::fs::File;
    use std::io::{Read, Write};
    use std::os::fd::AsFd;

    #[test]
    fn a_pipe_goes_through_a_socket() {
        let (here, there) = UnixStream::pair().unwrap();
        let (mut reader, writer) = std::io::pipe().unwrap();
        send(&here, b"take this\n", &[writer.as_fd()]).unwrap();
        drop(writer);
        let mut buffer = [0; 64];
        let (length, mut passed) = receive(&there, &mut buffer).unwrap();
        assert_eq!((&buffer[..length], passed.len()), (&b"take this\n"[..], 1));
        File::from(passed.remove(0)).write_all(b"through").unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "through");
        assert_eq!(peer(&here).unwrap().process, Some(std::process::id()));
        drop(here);
        assert_eq!(receive(&there, &mut buffer).unwrap().0, 0);
    }
}
