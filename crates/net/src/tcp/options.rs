//! What a connection can be asked to be: socket options of tcp(7), ip(7) and socket(7), and what
//! the kernel made of them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use socket2::SockRef;

use crate::egress::Outlet;
use crate::socket_options::{set, set_bytes};

use super::info::{TcpInfo, get_option, tcp_info};

/// What a connection is to be. What is absent or false is left to the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TcpOptions {
    pub cc: Option<String>,
    /// Send and receive buffer (SO_SNDBUF, SO_RCVBUF), which then no longer grow by themselves.
    pub window_bytes: Option<u32>,
    /// Largest segment that this end announces and sends (TCP_MAXSEG); only before connecting.
    pub mss_bytes: Option<u16>,
    /// Most that leaves a second (SO_MAX_PACING_RATE).
    pub pacing_bytes_per_s: Option<u64>,
    /// DSCP of every packet, the SYN's too (RFC 2474).
    pub dscp: Option<u8>,
    /// Small segments leave at once (TCP_NODELAY).
    pub no_delay: bool,
    /// The SYN carries the first data (TCP Fast Open, RFC 7413).
    pub fast_open: bool,
    /// Multipath TCP (RFC 8684); only when the socket is made.
    pub mptcp: bool,
    /// The interface or address that its packets leave from; only before connecting.
    pub outlet: Outlet,
}

/// An option that the kernel did not take.
#[derive(Debug)]
pub struct NotTaken {
    /// Its name in the manual.
    pub option: &'static str,
    /// What the kernel said.
    pub error: io::Error,
}

impl TcpOptions {
    /// Sets what makes a difference on a socket that is not connected yet.
    pub(super) fn before_connecting(&self, socket: &impl AsFd) {
        // What is refused here is refused again, and reported, once the connection is established.
        let _ = self.set(socket);
        if let Some(mss) = self.mss_bytes {
            let _ = SockRef::from(socket).set_tcp_mss(u32::from(mss));
        }
        if self.fast_open {
            let _ = set_flag(socket, libc::TCP_FASTOPEN_CONNECT, 1);
        }
    }

    /// Sets the options that have an effect in any state of a socket; returns those that the kernel refused. A refused
    /// congestion control is not among them: [`set_congestion_control`] returns its error.
    pub fn set(&self, socket: &impl AsFd) -> Vec<NotTaken> {
        let sock = SockRef::from(socket);
        if let Some(name) = &self.cc {
            let _ = set_congestion_control(socket, name);
        }
        let mut refused = Vec::new();
        let mut took = |option, result: io::Result<()>| {
            refused.extend(result.err().map(|error| NotTaken { option, error }));
        };
        if let Some(bytes) = self.window_bytes {
            let bytes = bytes as usize;
            took("SO_SNDBUF", sock.set_send_buffer_size(bytes));
            took("SO_RCVBUF", sock.set_recv_buffer_size(bytes));
        }
        if let Some(rate) = self.pacing_bytes_per_s {
            took("SO_MAX_PACING_RATE", set_pacing_rate(socket, rate));
        }
        if let Some(dscp) = self.dscp {
            took("IP_TOS", set_dscp(socket, dscp));
        }
        if self.no_delay {
            took("TCP_NODELAY", sock.set_tcp_nodelay(true));
        }
        refused
    }
}

/// What became of a connection's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Negotiated {
    /// Both ends speak ECN (RFC 3168).
    pub ecn: bool,
    /// The SYN carried data and was acknowledged with it (RFC 7413).
    pub fast_open: bool,
    /// It runs Multipath TCP and has not fallen back (RFC 8684).
    pub mptcp: bool,
    /// Windows above 64 KiB can be announced (RFC 7323).
    pub window_scaling: bool,
    /// Selective acknowledgements are understood (RFC 2018).
    pub sack: bool,
    /// Segments carry timestamps (RFC 7323).
    pub timestamps: bool,
    /// Send buffer in bytes of payload and overhead, as SO_SNDBUF was granted.
    pub send_buffer_bytes: u32,
    /// Receive buffer, as SO_RCVBUF was granted.
    pub receive_buffer_bytes: u32,
}

/// Asks a connection what became of its options.
///
/// # Errors
/// When the descriptor is not a TCP socket.
pub fn negotiated(socket: &impl AsFd) -> io::Result<Negotiated> {
    let info = tcp_info(socket)?;
    let sock = SockRef::from(socket);
    // The kernel doubles what SO_SNDBUF and SO_RCVBUF ask for, for its own overhead (socket(7)).
    let granted = |bytes: usize| u32::try_from(bytes / 2).unwrap_or(u32::MAX);
    Ok(Negotiated {
        ecn: info.options & TcpInfo::ECN != 0,
        fast_open: info.options & TcpInfo::SYN_DATA != 0,
        mptcp: is_mptcp(socket),
        window_scaling: info.options & TcpInfo::WINDOW_SCALE != 0,
        sack: info.options & TcpInfo::SACK != 0,
        timestamps: info.options & TcpInfo::TIMESTAMPS != 0,
        send_buffer_bytes: granted(sock.send_buffer_size()?),
        receive_buffer_bytes: granted(sock.recv_buffer_size()?),
    })
}

/// Whether a connection runs Multipath TCP. One that fell back to TCP has no MPTCP_INFO.
fn is_mptcp(socket: &impl AsFd) -> bool {
    /// `SOL_MPTCP` of Linux `include/linux/socket.h`, `MPTCP_INFO` of `include/uapi/linux/mptcp.h`.
    const SOL_MPTCP: i32 = 284;
    const MPTCP_INFO: i32 = 1;
    // Whatever of it exists comes; one word is enough to see that it does.
    get_option(socket, SOL_MPTCP, MPTCP_INFO, &mut 0_u32).is_ok()
}

/// Sets the most that leaves a second, by the kernel's own pacing (SO_MAX_PACING_RATE).
///
/// # Errors
/// Errors of setsockopt.
pub fn set_pacing_rate(socket: &impl AsFd, bytes_per_s: u64) -> io::Result<()> {
    // The kernel takes an unsigned long (Linux 4.20).
    let option = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
    set_bytes(socket, option, &bytes_per_s.to_ne_bytes())
}

/// Makes a connection count as full when so many bytes wait in it that were never sent
/// (TCP_NOTSENT_LOWAT): what is written next then waits in the network alone, and not behind a
/// whole send buffer.
///
/// # Errors
/// Errors of setsockopt.
pub fn set_unsent_limit(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    let option = (libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT);
    set_bytes(socket, option, &bytes.to_ne_bytes())
}

/// Has a reader woken only when so many bytes wait for it (SO_RCVLOWAT), or the connection ends; what times out or does not block
/// reads what there is.
///
/// # Errors
/// Errors of setsockopt.
pub fn set_receive_least(socket: &impl AsFd, bytes: u32) -> io::Result<()> {
    let option = (libc::SOL_SOCKET, libc::SO_RCVLOWAT);
    set_bytes(socket, option, &bytes.to_ne_bytes())
}

/// How large the receive buffer is by now, in bytes (SO_RCVBUF).
///
/// # Errors
/// Errors of getsockopt.
pub fn receive_buffer_bytes(socket: &impl AsFd) -> io::Result<usize> {
    SockRef::from(socket).recv_buffer_size()
}

/// Sets an option of TCP to an integer.
pub(super) fn set_flag(socket: &impl AsFd, option: i32, value: i32) -> io::Result<()> {
    set(socket, (libc::IPPROTO_TCP, option), value)
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

/// Marks the packets of a socket with a DSCP (RFC 2474). Packets of the handshake carry it only when it is set before
/// connecting.
///
/// # Errors
/// Errors of setsockopt.
pub fn set_dscp(socket: &impl AsFd, dscp: u8) -> io::Result<()> {
    set_traffic_class(socket, dscp << 2)
}

/// The same with the ECN field in the two bits below the DSCP. On a TCP connection the kernel sets the ECN field
/// itself.
///
/// # Errors
/// Errors of setsockopt.
pub(crate) fn set_traffic_class(socket: &impl AsFd, class: u8) -> io::Result<()> {
    let (socket, field) = (SockRef::from(socket), u32::from(class));
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

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::tcp::tests::{pair, pair_with};
    use std::io::Write;
    use std::time::Duration;

    #[test]
    fn congestion_control_is_what_was_asked() {
        let (a, _b) = pair();
        assert_eq!(congestion_control(&a).unwrap(), "reno");
        let error = set_congestion_control(&a, "no-such").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_connection_is_what_it_was_asked_to_be() {
        let options = TcpOptions {
            window_bytes: Some(100_000),
            mss_bytes: Some(1000),
            pacing_bytes_per_s: Some(1_000_000),
            dscp: Some(10),
            no_delay: true,
            ..TcpOptions::default()
        };
        let (a, b) = pair_with(&options);
        assert!(options.set(&a).is_empty());
        let (info, became) = (tcp_info(&a).unwrap(), negotiated(&a).unwrap());
        // Timestamps take 12 bytes of each segment.
        assert_eq!(info.snd_mss_bytes, 988);
        assert_eq!(
            info.pacing_bytes_per_s.map(|rate| rate <= 1_000_000),
            Some(true)
        );
        assert_eq!(
            (became.send_buffer_bytes, became.receive_buffer_bytes),
            (100_000, 100_000)
        );
        assert!(!became.mptcp && !became.fast_open);
        assert_eq!(SockRef::from(&a).tos_v4().unwrap(), 40);
        assert!(a.nodelay().unwrap());
        // What one end announced binds the other.
        assert_eq!(tcp_info(&b).unwrap().snd_mss_bytes, 988);
    }

    #[test]
    fn multipath_tcp_is_told_from_its_fallback() {
        let multipath = TcpOptions {
            mptcp: true,
            ..TcpOptions::default()
        };
        let (a, b) = pair_with(&multipath);
        assert!(negotiated(&a).unwrap().mptcp && negotiated(&b).unwrap().mptcp);
        // A listener without it.
        let plain = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = plain.local_addr().unwrap();
        let mut fell_back =
            crate::tcp::connect(address, Duration::from_secs(2), &multipath).unwrap();
        fell_back.write_all(b"x").unwrap();
        assert!(!negotiated(&fell_back).unwrap().mptcp);
    }

    #[test]
    fn what_the_kernel_does_not_take_is_told() {
        let (a, _b) = pair_with(&TcpOptions {
            mptcp: true,
            ..TcpOptions::default()
        });
        let paced = TcpOptions {
            pacing_bytes_per_s: Some(1000),
            ..TcpOptions::default()
        };
        let refused = paced.set(&a);
        assert!(
            matches!(
                refused.as_slice(),
                [NotTaken {
                    option: "SO_MAX_PACING_RATE",
                    ..
                }]
            ),
            "{refused:?}"
        );
        assert!(paced.set(&pair().0).is_empty());
    }
}
