//! Options that sockets of several kinds share (socket(7), ip(7), ipv6(7)).

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};

use socket2::{Domain, Protocol, Socket};

/// An option by its level and number.
pub(crate) type OptionId = (i32, i32);

/// The marks of packets sent: DSCP and ECN, of IPv4 and of IPv6.
pub(crate) const TRAFFIC_CLASS: [OptionId; 2] = [
    (libc::SOL_IP, libc::IP_TOS),
    (libc::SOL_IPV6, libc::IPV6_TCLASS),
];

/// Stamps whose seconds have 64 bits, and the type of the control message with them (asm-generic/socket.h). The libc crate
/// has it for glibc alone.
pub(crate) const SO_TIMESTAMPING_NEW: libc::c_int = 65;

/// Whether packets may be fragmented. Its values are the same for both versions (linux/in.h, linux/in6.h).
pub(crate) const MTU_DISCOVERY: [OptionId; 2] = [
    (libc::SOL_IP, libc::IP_MTU_DISCOVER),
    (libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER),
];

/// Whether the socket reports ICMP errors about what was sent.
pub(crate) const ERRORS: [OptionId; 2] = [
    (libc::SOL_IP, libc::IP_RECVERR),
    (libc::SOL_IPV6, libc::IPV6_RECVERR),
];

/// Whether the socket reports the time to live, or hop limit, of incoming packets.
pub(crate) const HOPS: [OptionId; 2] = [
    (libc::SOL_IP, libc::IP_RECVTTL),
    (libc::SOL_IPV6, libc::IPV6_RECVHOPLIMIT),
];

/// Whether the socket reports the DSCP and ECN of incoming packets.
pub(crate) const MARKS: [OptionId; 2] = [
    (libc::SOL_IP, libc::IP_RECVTOS),
    (libc::SOL_IPV6, libc::IPV6_RECVTCLASS),
];

/// setsockopt(2) with a value in the kernel's byte order.
pub(crate) fn set_bytes(
    socket: &impl AsFd,
    (level, option): OptionId,
    value: &[u8],
) -> io::Result<()> {
    // SAFETY: the kernel only reads the value, which is alive and has the length that is passed. The descriptor is
    // borrowed, hence open.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
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

/// setsockopt(2) with an integer.
pub(crate) fn set(socket: &impl AsFd, option: OptionId, value: i32) -> io::Result<()> {
    set_bytes(socket, option, &value.to_ne_bytes())
}

/// The same with the option of IPv4 (`v4`) or of IPv6.
pub(crate) fn set_of(
    socket: &impl AsFd,
    v4: bool,
    [of_v4, of_v6]: [OptionId; 2],
    value: i32,
) -> io::Result<()> {
    set(socket, if v4 { of_v4 } else { of_v6 }, value)
}

/// Lets the packets sent from now on live for so many hops.
pub(crate) fn set_hop_limit(socket: &Socket, v4: bool, hops: u8) -> io::Result<()> {
    if v4 {
        socket.set_ttl_v4(hops.into())
    } else {
        socket.set_unicast_hops_v6(hops.into())
    }
}

/// Asks for a receive buffer of so many bytes of kernel memory; beyond net.core.rmem_max that takes
/// CAP_NET_ADMIN.
pub(crate) fn set_receive_buffer(socket: &Socket, bytes: u32) -> io::Result<()> {
    let bytes = i32::try_from(bytes).unwrap_or(i32::MAX);
    set(socket, (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE), bytes)
        .or_else(|_| set(socket, (libc::SOL_SOCKET, libc::SO_RCVBUF), bytes))
}

/// Makes a socket report ICMP errors about what was sent, and the time to live, or hop limit, of incoming packets.
pub(crate) fn tell_errors_and_hops(socket: &Socket, v4: bool) -> io::Result<()> {
    set_of(socket, v4, ERRORS, 1)?;
    set_of(socket, v4, HOPS, 1)
}

/// Makes a socket report how many packets it has dropped because its buffer was full (socket(7), SO_RXQ_OVFL).
pub(crate) fn tell_drops(socket: &Socket) -> io::Result<()> {
    set(socket, (libc::SOL_SOCKET, libc::SO_RXQ_OVFL), 1)
}

/// The address that a socket is bound to.
pub(crate) fn local_address(socket: &Socket) -> io::Result<SocketAddr> {
    let address = socket.local_addr()?.as_socket();
    address.ok_or_else(|| ErrorKind::Unsupported.into())
}

/// The domain of IPv4 (`v4`) or IPv6, and its protocol of messages.
pub(crate) fn icmp_of(v4: bool) -> (Domain, Protocol) {
    match v4 {
        true => (Domain::IPV4, Protocol::ICMPV4),
        false => (Domain::IPV6, Protocol::ICMPV6),
    }
}

/// Length of the IPv4 header at the start of a packet from a raw socket.
pub(crate) fn ip_header_bytes(packet: &[u8]) -> usize {
    packet
        .first()
        .map_or(0, |first| usize::from(first & 0x0f) * 4)
}
