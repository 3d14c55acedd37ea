//! What the kernel says of a connection: TCP_INFO and SO_MEMINFO.
//!
//! `struct tcp_info` is Linux `include/uapi/linux/tcp.h`. It grows at its end from release to
//! release and the kernel returns as much as it has, so the length it returns decides which
//! fields exist. `SO_MEMINFO` is `include/uapi/linux/sock_diag.h`.

use std::io;
use std::mem::{offset_of, size_of};
use std::os::fd::{AsFd, AsRawFd};

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
    pub srtt_us: u32,
    /// Smallest round trip in the kernel's window; absent before the first.
    pub min_rtt_us: Option<u32>,
    /// Congestion window in segments.
    pub cwnd_segments: u32,
    /// Where slow start ends, in segments; absent before the first loss or delay that sets it.
    pub ssthresh_segments: Option<u32>,
    /// Rate at which segments leave at most; absent when nothing limits it.
    pub pacing_bytes_per_s: Option<u64>,
    /// Rate at which the receiver lately acknowledged (Linux 4.9).
    pub delivery_bytes_per_s: u64,
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
    /// Segments that the peer reports to have received twice (D-SACK, RFC 2883; Linux 4.19).
    pub twice_segments: Option<u32>,
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
    /// The SYN carried data, and the SYN's answer acknowledged it (TCP Fast Open, RFC 7413).
    pub const SYN_DATA: u8 = 32;

    /// What the kernel wrote elsewhere than into a socket option (INET_DIAG_INFO); what is missing
    /// at the end counts as not known.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut raw = RawTcpInfo::default();
        let length = bytes.len().min(size_of::<RawTcpInfo>());
        // SAFETY: `raw` is writable for its size, of which `length` is at most all; `bytes` is
        // readable for `length`; they do not overlap. RawTcpInfo is `Plain`: any bytes are a value.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut raw).cast::<u8>(), length);
        }
        decode(&raw, length)
    }

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

/// `TCP_INFINITE_SSTHRESH` of Linux `include/net/tcp.h`: slow start has no end yet.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

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
        // All ones, and zero on some kernels, mean "none yet".
        min_rtt_us: Some(raw.min_rtt).filter(|us| *us != u32::MAX && *us != 0),
        cwnd_segments: raw.snd_cwnd,
        ssthresh_segments: Some(raw.snd_ssthresh)
            .filter(|segments| (1..INFINITE_SSTHRESH).contains(segments)),
        pacing_bytes_per_s: Some(raw.pacing_rate).filter(|rate| *rate != u64::MAX),
        delivery_bytes_per_s: raw.delivery_rate,
        total_retransmits: raw.total_retrans,
        bytes_acked: raw.bytes_acked,
        bytes_received: raw.bytes_received,
        notsent_bytes: raw.notsent_bytes,
        busy_us: raw.busy_time,
        rwnd_limited_us: raw.rwnd_limited,
        sndbuf_limited_us: raw.sndbuf_limited,
        bytes_sent: since!(bytes_sent, u64),
        bytes_retrans: since!(bytes_retrans, u64),
        twice_segments: since!(dsack_dups, u32),
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
    /// Packets dropped because the receive buffer was full.
    pub drops: u32,
}

/// Reads SO_MEMINFO.
///
/// # Errors
/// When the kernel has no such option (before Linux 4.12).
pub fn socket_memory(socket: &impl AsFd) -> io::Result<SocketMemory> {
    // SK_MEMINFO_VARS is 9: RMEM_ALLOC, RCVBUF, WMEM_ALLOC, SNDBUF, …, DROPS.
    let mut values = [0_u32; 9];
    get_option(socket, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut values)?;
    let [_, rcvbuf_bytes, _, sndbuf_bytes, .., drops] = values;
    Ok(SocketMemory {
        rcvbuf_bytes,
        sndbuf_bytes,
        drops,
    })
}

/// Types made of integers alone, for which every pattern of bits is a value.
pub(crate) trait Plain: Copy {}
impl Plain for RawTcpInfo {}
impl Plain for [u32; 9] {}
impl Plain for u32 {}

/// getsockopt(2) into `value`; the number of bytes that the kernel wrote.
pub(crate) fn get_option<T: Plain>(
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tcp::tests::pair;
    use std::io::{Read, Write};
    use std::time::Duration;

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
}
