//! recvmsg(2), whose arguments the libraries do not cover, and the filters of raw sockets.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::AsRawFd;

use socket2::{SockAddr, Socket};

use super::control::CONTROL_BYTES;
use crate::socket_options::set_bytes;

/// What recvmsg(2) returned besides the bytes.
pub(crate) struct Message {
    pub(crate) len: usize,
    pub(crate) from: Option<SocketAddr>,
    /// Of a packet socket: whether it was sent, or for whom it came (packet(7), `sll_pkttype`).
    pub(crate) packet_type: Option<u8>,
    control: [u8; CONTROL_BYTES],
    control_len: usize,
}

impl Message {
    /// The control messages (cmsg(3)).
    pub(crate) fn control(&self) -> &[u8] {
        self.control.get(..self.control_len).unwrap_or_default()
    }
}

/// The next message of a socket that does not block; `None` when none is waiting.
pub(crate) fn receive_message(
    socket: &Socket,
    payload: &mut [u8],
    flags: i32,
) -> io::Result<Option<Message>> {
    loop {
        match recvmsg(socket, payload, flags) {
            Ok(message) => return Ok(Some(message)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn recvmsg(socket: &Socket, payload: &mut [u8], flags: i32) -> io::Result<Message> {
    let mut control = [0; CONTROL_BYTES];
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
        packet_type: packet_type(&from),
        from: from.as_socket(),
        control,
        control_len: header.msg_controllen as usize,
    })
}

fn packet_type(from: &SockAddr) -> Option<u8> {
    let is_link = i32::from(from.family()) == libc::AF_PACKET
        && from.len() as usize >= size_of::<libc::sockaddr_ll>();
    // SAFETY: the family says that the storage, which fits every address, holds a sockaddr_ll.
    is_link.then(|| unsafe { (*from.as_ptr().cast::<libc::sockaddr_ll>()).sll_pkttype })
}

/// Lets a raw socket receive echo replies and nothing else: types 0 (RFC 792) and 129 (RFC 4443).
pub(crate) fn only_echo_replies(socket: &Socket, v4: bool) -> io::Result<()> {
    only_icmp_types(socket, v4, &[if v4 { 0 } else { 129 }])
}

/// Lets a raw socket of ICMP (`v4`) or ICMPv6 receive these types and no others.
pub(crate) fn only_icmp_types(socket: &Socket, v4: bool, types: &[u8]) -> io::Result<()> {
    /// ICMP_FILTER and ICMP6_FILTER are the same number.
    const FILTER: i32 = 1;
    // ICMP_FILTER (linux/icmp.h) and ICMP6_FILTER (RFC 3542, section 3.2): a bit set blocks
    // that type. ICMP_FILTER knows the types up to 31.
    let mut words = [u32::MAX; 8];
    for kind in types {
        if let Some(word) = words.get_mut(usize::from(kind / 32)) {
            *word &= !(1 << (kind % 32));
        }
    }
    let filter: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    let (level, bytes) = if v4 {
        (libc::SOL_RAW, 4)
    } else {
        (libc::SOL_ICMPV6, 32)
    };
    let filter = filter.get(..bytes).unwrap_or_default();
    set_bytes(socket, (level, FILTER), filter)
}
