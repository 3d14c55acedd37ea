//! TCP sockets: what the kernel says of a connection, and the few options that load needs.
//!
//! `struct tcp_info` is Linux `include/uapi/linux/tcp.h`. It grows at its end from release to
//! release and the kernel returns as much as it has, so the length it returns decides which
//! fields exist. `SO_MEMINFO` is `include/uapi/linux/sock_diag.h`.

use std::io;
use std::mem::{offset_of, size_of};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

/// Connections that the kernel holds complete until they are accepted: more than the streams
/// of one phase, so that opening them all at once loses no SYN.
const LISTEN_BACKLOG: i32 = 1024;

/// What the kernel's TCP says of a connection. Times in microseconds, as the kernel has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TcpInfo {
    /// State (`TCP_ESTABLISHED` is 1, `TCP_CLOSE` 7).
    pub state: u8,
    /// What both ends agreed on, and saw: bits `TCPI_OPT_*` of `linux/tcp.h`.
    pub options: u8,
    /// Largest packet that the path is known to take.
    pub path_mtu_bytes: u32,
    /// Largest payload of a segment sent.
    pub snd_mss_bytes: u32,
    /// Segments sent and not yet acknowledged.
    pub unacked_segments: u32,
    /// Segments that the receiver acknowledged out of order (SACK) and not yet in order.
    pub sacked_segments: u32,
    /// Smoothed round trip.
    pub srtt_us: u32,
    /// Smallest round trip in the kernel's window; absent before the first.
    pub min_rtt_us: Option<u32>,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Segments sent again, ever.
    pub total_retransmits: u32,
    /// Bytes acknowledged, the SYN's one included.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Bytes in the send buffer never sent yet.
    pub notsent_bytes: u32,
    /// Time with data outstanding or to send.
    pub busy_us: u64,
    /// Part of it held back by the receiver's window.
    pub rwnd_limited_us: u64,
    /// Part of it held back by the send buffer.
    pub sndbuf_limited_us: u64,
    /// Payload bytes sent, those sent again included (Linux 4.19).
    pub bytes_sent: Option<u64>,
    /// Payload bytes sent again (Linux 4.19).
    pub bytes_retrans: Option<u64>,
    /// Window that the peer advertises (Linux 5.4).
    pub snd_wnd_bytes: Option<u32>,
}

impl TcpInfo {
    /// Both ends send timestamps (RFC 7323).
    pub const TIMESTAMPS: u8 = 1;
    /// Both ends understand selective acknowledgements (RFC 2018).
    pub const SACK: u8 = 2;
    /// Both ends scale their windows (RFC 7323).
    pub const WINDOW_SCALE: u8 = 4;
    /// Both ends speak ECN (RFC 3168).
    pub const ECN: u8 = 8;
    /// A packet came that bore an ECN codepoint.
    pub const ECN_SEEN: u8 = 16;

    /// Payload sent and not yet acknowledged.
    pub fn in_flight_bytes(&self) -> u64 {
        match (self.bytes_sent, self.bytes_retrans) {
            // One acknowledged byte is the SYN.
            (Some(sent), Some(again)) => sent
                .saturating_sub(again)
                .saturating_sub(self.bytes_acked.saturating_sub(1)),
            _ => u64::from(self.unacked_segments) * u64::from(self.snd_mss_bytes),
        }
    }
}

/// `struct tcp_info` up to tcpi_total_rto_time (Linux 6.7).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawTcpInfo {
    state: u8,
    ca_state: u8,
    retransmits: u8,
    probes: u8,
    backoff: u8,
    options: u8,
    wscale: u8,
    /// Bit 0: tcpi_delivery_rate_app_limited; bits 1 and 2: tcpi_fastopen_client_fail.
    flags: u8,
    rto: u32,
    ato: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked: u32,
    sacked: u32,
    lost: u32,
    retrans: u32,
    fackets: u32,
    last_data_sent: u32,
    last_ack_sent: u32,
    last_data_recv: u32,
    last_ack_recv: u32,
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt: u32,
    rttvar: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt: u32,
    data_segs_in: u32,
    data_segs_out: u32,
    delivery_rate: u64,
    busy_time: u64,
    rwnd_limited: u64,
    sndbuf_limited: u64,
    delivered: u32,
    delivered_ce: u32,
    bytes_sent: u64,
    bytes_retrans: u64,
    dsack_dups: u32,
    reord_seen: u32,
    rcv_ooopack: u32,
    snd_wnd: u32,
    rcv_wnd: u32,
    rehash: u32,
    total_rto: u16,
    total_rto_recoveries: u16,
    total_rto_time: u32,
}

/// Reads TCP_INFO.
///
/// # Errors
/// When the descriptor is not a TCP socket.
pub fn tcp_info(socket: &impl AsFd) -> io::Result<TcpInfo> {
    let mut raw = RawTcpInfo::default();
    let length = get_option(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut raw)?;
    Ok(decode(&raw, length))
}

/// Takes from `raw` what its first `length` bytes, those that the kernel wrote, hold.
fn decode(raw: &RawTcpInfo, length: usize) -> TcpInfo {
    macro_rules! since {
        ($field:ident, $type:ty) => {
            (length >= offset_of!(RawTcpInfo, $field) + size_of::<$type>()).then_some(raw.$field)
        };
    }
    TcpInfo {
        state: raw.state,
        options: raw.options,
        path_mtu_bytes: raw.pmtu,
        snd_mss_bytes: raw.snd_mss,
        unacked_segments: raw.unacked,
        sacked_segments: raw.sacked,
        srtt_us: raw.rtt,
        // All ones, and zero on some kernels, stand for "none yet".
        min_rtt_us: Some(raw.min_rtt).filter(|us| *us != u32::MAX && *us != 0),
        cwnd_segments: raw.snd_cwnd,
        total_retransmits: raw.total_retrans,
        bytes_acked: raw.bytes_acked,
        bytes_received: raw.bytes_received,
        notsent_bytes: raw.notsent_bytes,
        busy_us: raw.busy_time,
        rwnd_limited_us: raw.rwnd_limited,
        sndbuf_limited_us: raw.sndbuf_limited,
        bytes_sent: since!(bytes_sent, u64),
        bytes_retrans: since!(bytes_retrans, u64),
        snd_wnd_bytes: since!(snd_wnd, u32),
    }
}

/// Memory of a socket (SO_MEMINFO), in bytes of kernel memory, not of payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SocketMemory {
    /// Limit of the receive buffer.
    pub rcvbuf_bytes: u32,
    /// Limit of the send buffer.
    pub sndbuf_bytes: u32,
}

/// Reads SO_MEMINFO.
///
/// # Errors
/// When the kernel has no such option (before Linux 4.12).
pub fn socket_memory(socket: &impl AsFd) -> io::Result<SocketMemory> {
    // SK_MEMINFO_VARS is 9: RMEM_ALLOC, RCVBUF, WMEM_ALLOC, SNDBUF, …
    let mut values = [0_u32; 9];
    get_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut values)?;
    let [_, rcvbuf_bytes, _, sndbuf_bytes, ..] = values;
    Ok(SocketMemory {
        rcvbuf_bytes,
        sndbuf_bytes,
    })
}

/// Types made of integers alone, for which every pattern of bits is a value.
trait Plain: Copy {}
impl Plain for RawTcpInfo {}
impl Plain for [u32; 9] {}

/// getsockopt(2) into `value`; the number of bytes that the kernel wrote.
fn get_option<T: Plain>(
    socket: &impl AsFd,
    level: i32,
    name: i32,
    value: &mut T,
) -> io::Result<usize> {
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is writable for `length` bytes, the kernel writes at most as many, and T
    // is `Plain`, so whatever it writes is a valid T. The descriptor is borrowed, hence open.
    let rc = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            level,
            name,
            std::ptr::from_mut(value).cast(),
            &raw mut length,
        )
    };
    if rc != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(length as usize)
}

/// The congestion control that a socket runs.
///
/// # Errors
/// When the descriptor is not a TCP socket.
pub fn congestion_control(socket: &impl AsFd) -> io::Result<String> {
    let name = SockRef::from(socket).tcp_congestion()?;
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(name.get(..end).unwrap_or_default()).into_owned())
}

/// Makes a socket run the congestion control of that name (TCP_CONGESTION).
///
/// # Errors
/// NotFound when the kernel has none of that name, PermissionDenied when only privileged
/// processes may use it (net.ipv4.tcp_allowed_congestion_control).
pub fn set_congestion_control(socket: &impl AsFd, name: &str) -> io::Result<()> {
    SockRef::from(socket).set_tcp_congestion(name.as_bytes())
}

/// Marks the packets of a socket with a DSCP (RFC 2474). Those of a connection in its handshake
/// bear it only when it is set before connecting.
///
/// # Errors
/// Those of setsockopt.
pub fn set_dscp(socket: &impl AsFd, dscp: u8) -> io::Result<()> {
    let (socket, field) = (SockRef::from(socket), u32::from(dscp) << 2);
    match socket.local_addr()?.as_socket() {
        Some(SocketAddr::V6(_)) => {
            socket.set_tclass_v6(field)?;
            // For IPv4-mapped addresses; refused on sockets for IPv6 alone.
            let _ = socket.set_tos_v4(field);
            Ok(())
        }
        _ => socket.set_tos_v4(field),
    }
}

/// Makes closing the socket abort the connection: unsent data is dropped and a RST sent
/// (SO_LINGER with time zero), so that nothing goes on feeding the queues of the path.
///
/// # Errors
/// Those of setsockopt.
pub fn abort_on_close(socket: &impl AsFd) -> io::Result<()> {
    SockRef::from(socket).set_linger(Some(Duration::ZERO))
}

/// Waits until the connection takes more data or fails; false when `longest` passed first.
///
/// # Errors
/// Those of poll; an interrupted wait only ends early.
pub fn wait_writable(socket: &impl AsFd, longest: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
    match poll(
        &mut fds,
        PollTimeout::try_from(longest).unwrap_or(PollTimeout::MAX),
    ) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The host answered that nothing listens there.
    #[error("connection refused")]
    Refused,
    /// Nothing came back in the time given.
    #[error("no answer")]
    TimedOut,
    /// A router or this host has no way there, or is not allowed to use it.
    #[error("unreachable ({0})")]
    Unreachable(io::Error),
    /// Something else.
    #[error("{0}")]
    Other(io::Error),
}

impl From<io::Error> for ConnectError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Self::Refused,
            io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => Self::TimedOut,
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
                Self::Unreachable(error)
            }
            _ => Self::Other(error),
        }
    }
}

/// Connects within `timeout`, with the congestion control `cc` where the kernel allows it.
///
/// The algorithm is set before connecting, so that it sees the handshake, and once more after
/// it, since a route (`ip route … congctl`) may impose another as it connects. A refusal is no
/// error: [`congestion_control`] tells what the socket runs.
///
/// # Errors
/// When there is no connection.
pub fn connect(
    address: SocketAddr,
    timeout: Duration,
    cc: Option<&str>,
) -> Result<TcpStream, ConnectError> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if let Some(name) = cc {
        let _ = set_congestion_control(&socket, name);
    }
    socket.connect_timeout(&address.into(), timeout)?;
    if let Some(name) = cc {
        let _ = set_congestion_control(&socket, name);
    }
    Ok(socket.into())
}

/// Listens. The unspecified IPv6 address serves IPv4 too. `accept` gives up with WouldBlock
/// after `accept_timeout`, so that its thread can look whether it is to stop.
///
/// # Errors
/// Those of bind and listen: AddrInUse when another program has the port.
pub fn listen(address: SocketAddr, accept_timeout: Duration) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if let IpAddr::V6(ip) = address.ip() {
        socket.set_only_v6(!ip.is_unspecified())?;
    }
    // Connections of an earlier process in TIME_WAIT do not hold the port.
    socket.set_reuse_address(true)?;
    // accept(2) honours SO_RCVTIMEO.
    socket.set_read_timeout(Some(accept_timeout))?;
    socket.bind(&address.into())?;
    socket.listen(LISTEN_BACKLOG)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};

    fn pair() -> (TcpStream, TcpStream) {
        let listener = listen("127.0.0.1:0".parse().unwrap(), Duration::from_secs(2)).unwrap();
        let client = connect(
            listener.local_addr().unwrap(),
            Duration::from_secs(2),
            Some("reno"),
        )
        .unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn layout_is_the_kernels() {
        // Offsets of include/uapi/linux/tcp.h on 64-bit machines.
        assert_eq!(offset_of!(RawTcpInfo, rto), 8);
        assert_eq!(offset_of!(RawTcpInfo, pacing_rate), 104);
        assert_eq!(offset_of!(RawTcpInfo, delivery_rate), 160);
        assert_eq!(offset_of!(RawTcpInfo, bytes_sent), 200);
        assert_eq!(offset_of!(RawTcpInfo, snd_wnd), 228);
        assert_eq!(offset_of!(RawTcpInfo, rcv_wnd), 232);
        assert_eq!(size_of::<RawTcpInfo>(), 248);
    }

    #[test]
    fn info_counts_what_was_sent() {
        let (mut a, mut b) = pair();
        a.write_all(&[7; 5000]).unwrap();
        let mut got = [0; 5000];
        b.read_exact(&mut got).unwrap();
        // The acknowledgement may be delayed, by up to 40 ms on Linux.
        std::thread::sleep(Duration::from_millis(80));
        let (sender, receiver) = (tcp_info(&a).unwrap(), tcp_info(&b).unwrap());
        assert_eq!(sender.state, 1);
        assert_eq!(sender.bytes_sent, Some(5000));
        assert_eq!(sender.bytes_acked, 5001);
        assert_eq!(sender.in_flight_bytes(), 0);
        assert_eq!(receiver.bytes_received, 5000);
        assert!(sender.srtt_us > 0 && sender.cwnd_segments > 0 && sender.snd_mss_bytes > 500);
        assert!(sender.snd_wnd_bytes.is_some_and(|w| w > 1000));
        let memory = socket_memory(&a).unwrap();
        assert!(memory.rcvbuf_bytes > 1000 && memory.sndbuf_bytes > 1000);
    }

    #[test]
    fn a_short_answer_has_no_late_fields() {
        let raw = RawTcpInfo {
            snd_wnd: 9,
            bytes_sent: 8,
            unacked: 2,
            snd_mss: 100,
            ..Default::default()
        };
        let old = decode(&raw, 192);
        assert_eq!(
            (old.bytes_sent, old.snd_wnd_bytes, old.in_flight_bytes()),
            (None, None, 200)
        );
        let partly = decode(&raw, 231);
        assert_eq!((partly.bytes_sent, partly.snd_wnd_bytes), (Some(8), None));
    }

    #[test]
    fn congestion_control_is_what_was_asked() {
        let (a, _b) = pair();
        assert_eq!(congestion_control(&a).unwrap(), "reno");
        let error = set_congestion_control(&a, "no-such").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn abort_resets_the_peer() {
        let (a, mut b) = pair();
        abort_on_close(&a).unwrap();
        drop(a);
        let error = b.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }

    #[test]
    fn a_closed_port_is_told_from_silence() {
        let listener = listen("127.0.0.1:0".parse().unwrap(), Duration::from_millis(20)).unwrap();
        assert_eq!(
            listener.accept().unwrap_err().kind(),
            io::ErrorKind::WouldBlock
        );
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(matches!(
            connect(address, Duration::from_secs(2), None),
            Err(ConnectError::Refused)
        ));
    }
}
