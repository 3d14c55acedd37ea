//! The two system calls whose arguments the libraries do not cover.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use socket2::{SockAddr, Socket};

/// What recvmsg(2) returned besides the bytes.
pub(crate) struct Message {
    pub(crate) len: usize,
    pub(crate) control_len: usize,
    pub(crate) from: Option<SocketAddr>,
}

/// recvmsg(2).
pub(crate) fn receive_message(
    socket: &Socket,
    payload: &mut [u8],
    control: &mut [u8],
    flags: i32,
) -> io::Result<Message> {
    let mut vector = libc::iovec {
        iov_base: payload.as_mut_ptr().cast(),
        iov_len: payload.len(),
    };
    // SAFETY: msghdr is plain data, for which all zeroes (null pointers, no lengths) is valid.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut vector;
    header.msg_iovlen = 1;
    header.msg_control = control.as_mut_ptr().cast();
    header.msg_controllen = control.len() as _;
    let receive = |name: *mut socket2::SockAddrStorage, name_len: *mut libc::socklen_t| {
        header.msg_name = name.cast();
        // SAFETY: `name_len` points to the size of the storage at `name`, as try_init promises.
        header.msg_namelen = unsafe { *name_len };
        // SAFETY: `header` describes memory that is exclusively ours and outlives the call, with
        // its true lengths: the address storage, `payload` through `vector`, and `control`.
        let len = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut header, flags) };
        let len = usize::try_from(len).map_err(|_| io::Error::last_os_error())?;
        // SAFETY: as above; the kernel wrote that many bytes of an address.
        unsafe { *name_len = header.msg_namelen };
        Ok(len)
    };
    // SAFETY: on success the kernel has written an address of the length that `receive` stores,
    // or none with length 0; the storage is zeroed before.
    let (len, from) = unsafe { SockAddr::try_init(receive) }?;
    Ok(Message {
        len: len.min(payload.len()),
        control_len: header.msg_controllen as usize,
        from: from.as_socket(),
    })
}

/// setsockopt(2) with a value in the kernel's byte order.
pub(crate) fn set_option(socket: &Socket, level: i32, option: i32, value: &[u8]) -> io::Result<()> {
    // SAFETY: the kernel only reads the value, which is alive and as long as it is told.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            value.as_ptr().cast(),
            value.len() as libc::socklen_t,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
