//! Sockets of this namespace (sock_diag(7), `linux/inet_diag.h`).

use std::net::{IpAddr, SocketAddr};

use nix::sys::socket::SockProtocol;
use plumb_model::protocol::Transport;

use super::NetlinkError;
use super::attribute::{attributes, bytes_at, u32_at};
use super::connection::list;
use crate::tcp::TcpInfo;

/// `SOCK_DIAG_BY_FAMILY`.
const BY_FAMILY: u16 = 20;

/// Length of `struct inet_diag_msg`, and of `struct inet_diag_req_v2`.
const HEADER_BYTES: usize = 72;
const REQUEST_BYTES: usize = 56;

/// Attributes (`INET_DIAG_INFO`, `_CONG`, `_SKMEMINFO`); to ask for one is bit `number - 1`.
const INFO: u16 = 2;
const CONGESTION: u16 = 4;
const MEMORY: u16 = 7;
const EXTENSIONS: u8 = (1 << (INFO - 1)) | (1 << (CONGESTION - 1)) | (1 << (MEMORY - 1));

/// `TCP_ESTABLISHED` and `TCP_LISTEN` of `net/tcp_states.h`.
pub const ESTABLISHED: u8 = 1;
pub const LISTEN: u8 = 10;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InetSocket {
    /// `TCP_*` of `net/tcp_states.h`.
    pub state: u8,
    pub local: SocketAddr,
    pub remote: SocketAddr,
    /// Its number in the file system of sockets; 0 when no program holds it.
    pub inode: u32,
    /// Bytes not read; of a listener, connections that wait.
    pub receive_queue: u32,
    /// Bytes not acknowledged; of a listener, how many may wait.
    pub send_queue: u32,
    pub congestion_control: Option<String>,
    pub info: Option<TcpInfo>,
    /// Limits of receive and send buffer, and packets dropped.
    pub memory: Option<(u32, u32, u32)>,
}

/// All sockets of a transport in both families, in the namespace of the calling thread.
///
/// # Errors
/// Errors of the kernel.
pub fn sockets(transport: Transport) -> Result<Vec<InetSocket>, NetlinkError> {
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut request = [0_u8; REQUEST_BYTES];
        let protocol = match transport {
            Transport::Tcp => libc::IPPROTO_TCP,
            Transport::Udp => libc::IPPROTO_UDP,
        };
        // Family, protocol, extensions, padding; then the states as a mask: all.
        let head = [
            family as u8,
            protocol as u8,
            EXTENSIONS,
            0,
            255,
            255,
            255,
            255,
        ];
        for (to, from) in request.iter_mut().zip(head) {
            *to = from;
        }
        let messages = list(
            SockProtocol::NetlinkSockDiag,
            BY_FAMILY,
            &request,
            "sockets",
        )?;
        found.extend(messages.iter().filter_map(|message| socket(&message.body)));
    }
    Ok(found)
}

fn socket(body: &[u8]) -> Option<InetSocket> {
    // `struct inet_diag_sockid` begins at 4: ports, then 16 bytes for each address.
    let v4 = i32::from(*body.first()?) == libc::AF_INET;
    let end = |port: usize, address: usize| -> Option<SocketAddr> {
        let port = bytes_at(body, port).map(u16::from_be_bytes)?;
        let ip: IpAddr = if v4 {
            bytes_at::<4>(body, address)?.into()
        } else {
            bytes_at::<16>(body, address)?.into()
        };
        Some(SocketAddr::new(ip, port))
    };
    let mut read = InetSocket {
        state: *body.get(1)?,
        local: end(4, 8)?,
        remote: end(6, 24)?,
        receive_queue: u32_at(body, 56)?,
        send_queue: u32_at(body, 60)?,
        inode: u32_at(body, 68)?,
        congestion_control: None,
        info: None,
        memory: None,
    };
    for attribute in attributes(body.get(HEADER_BYTES..)?) {
        match attribute.kind {
            INFO => read.info = Some(TcpInfo::from_bytes(attribute.value)),
            CONGESTION => read.congestion_control = Some(attribute.text()),
            MEMORY => {
                // SK_MEMINFO_RCVBUF is 1, _SNDBUF 3, _DROPS 8 (`linux/sock_diag.h`).
                let at = |place: usize| u32_at(attribute.value, 4 * place);
                read.memory = at(1)
                    .zip(at(3))
                    .map(|(receive, send)| (receive, send, at(8).unwrap_or_default()));
            }
            _ => {}
        }
    }
    Some(read)
}

/// The kernel's name of a state, as ss(8) has it.
pub fn state_name(state: u8) -> &'static str {
    match state {
        1 => "ESTAB",
        2 => "SYN-SENT",
        3 => "SYN-RECV",
        4 => "FIN-WAIT-1",
        5 => "FIN-WAIT-2",
        6 => "TIME-WAIT",
        7 => "UNCONN",
        8 => "CLOSE-WAIT",
        9 => "LAST-ACK",
        10 => "LISTEN",
        11 => "CLOSING",
        12 => "NEW-SYN-RECV",
        _ => "OTHER",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;

    fn inode(socket: &impl AsRawFd) -> u32 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        let text = link.to_string_lossy().into_owned();
        text.trim_start_matches("socket:[")
            .trim_end_matches(']')
            .parse()
            .unwrap()
    }

    #[test]
    fn our_own_sockets_are_listed() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let client = TcpStream::connect(at).unwrap();
        let (server, _) = listener.accept().unwrap();
        let all = sockets(Transport::Tcp).unwrap();
        let by = |inode: u32| all.iter().find(|s| s.inode == inode).unwrap();
        let listening = by(inode(&listener));
        assert_eq!((listening.state, listening.local), (LISTEN, at));
        assert!(listening.send_queue > 0, "its backlog");
        let connected = by(inode(&client));
        assert_eq!((connected.state, connected.remote), (ESTABLISHED, at));
        assert!(connected.info.unwrap().snd_mss_bytes > 500);
        assert!(connected.congestion_control.is_some() && connected.memory.is_some());
        assert_eq!(by(inode(&server)).remote, client.local_addr().unwrap());

        let udp = UdpSocket::bind("[::1]:0").unwrap();
        let found = sockets(Transport::Udp).unwrap();
        let ours = found.iter().find(|s| s.inode == inode(&udp)).unwrap();
        assert_eq!(ours.local, udp.local_addr().unwrap());
    }

    proptest! {
        #[test]
        fn never_panics(body in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = socket(&body);
        }
    }
}
