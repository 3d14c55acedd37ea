//! TCP sockets: connecting, listening, waiting. [`info`] is what the kernel says of a connection,
//! [`options`] what a connection can be asked to be, [`copyless`] how payload passes without a copy.

pub mod copyless;
pub mod info;
pub mod options;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

pub(crate) use info::get_option;
pub use info::{SocketMemory, TcpInfo, socket_memory, tcp_info};
pub use options::{
    Negotiated, NotTaken, TcpOptions, congestion_control, negotiated, receive_buffer_bytes,
    set_congestion_control, set_pacing_rate, set_receive_least, set_unsent_limit,
};

/// Connections that the kernel holds complete until they are accepted: more than the streams
/// of one phase, so that opening them all at once loses no SYN.
const LISTEN_BACKLOG: i32 = 1024;

/// Makes closing the socket abort the connection: unsent data is dropped and a RST sent
/// (SO_LINGER with time zero), so that no more data enters the queues of the path.
///
/// # Errors
/// Errors of setsockopt.
pub fn abort_on_close(socket: &impl AsFd) -> io::Result<()> {
    SockRef::from(socket).set_linger(Some(Duration::ZERO))
}

/// Makes closing the socket orderly again: what was written is still delivered.
///
/// # Errors
/// Errors of the kernel.
pub fn close_in_order(socket: &impl AsFd) -> io::Result<()> {
    SockRef::from(socket).set_linger(None)
}

/// Waits until the connection takes more data or fails; false when `longest` passed first.
///
/// # Errors
/// Errors of poll; an interrupted wait only ends early.
pub fn wait_writable(socket: &impl AsFd, longest: Duration) -> io::Result<bool> {
    wait(socket, PollFlags::POLLOUT, longest)
}

/// Waits until there is something to read, the end of it included; false when `longest` passed
/// first.
///
/// # Errors
/// Errors of poll; an interrupted wait only ends early.
pub fn wait_readable(file: &impl AsFd, longest: Duration) -> io::Result<bool> {
    wait(file, PollFlags::POLLIN, longest)
}

/// Waits until there is something to read, the end of it included, or the connection takes more
/// data; false when `longest` passed first.
///
/// # Errors
/// Errors of poll; an interrupted wait only ends early.
pub fn wait_readable_or_writable(socket: &impl AsFd, longest: Duration) -> io::Result<bool> {
    wait(socket, PollFlags::POLLIN | PollFlags::POLLOUT, longest)
}

fn wait(file: &impl AsFd, event: PollFlags, longest: Duration) -> io::Result<bool> {
    let mut fds = [PollFd::new(file.as_fd(), event)];
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
    /// A router or this host has no route there, or is not allowed to use it.
    #[error("unreachable ({0})")]
    Unreachable(io::Error),
    /// This host has no port left to connect from (connect(2), EADDRNOTAVAIL).
    #[error(
        "this host has no free port: too many connections, or a narrow net.ipv4.ip_local_port_range; widen it, or wait a minute for those that have ended"
    )]
    NoPort,
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
            io::ErrorKind::AddrNotAvailable => Self::NoPort,
            _ => Self::Other(error),
        }
    }
}

/// Connects within `timeout`, as `options` ask.
///
/// They are set before connecting, so that they apply to the handshake. The congestion control is set once more
/// afterwards, since a route (`ip route … congctl`) may impose another while connecting. A refused option is no error:
/// [`TcpOptions::set`] lists it, and [`negotiated`] reports what is in effect.
///
/// With Fast Open, and a cookie of the server from before, nothing leaves until something is
/// written.
///
/// # Errors
/// When there is no connection.
pub fn connect(
    address: SocketAddr,
    timeout: Duration,
    options: &TcpOptions,
) -> Result<TcpStream, ConnectError> {
    let new = |protocol| Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol));
    let socket = match options.mptcp {
        // Without Multipath TCP in the kernel (EPROTONOSUPPORT) the connection is plain.
        true => new(Protocol::MPTCP).or_else(|_| new(Protocol::TCP))?,
        false => new(Protocol::TCP)?,
    };
    options.before_connecting(&socket);
    let applied = options.outlet.apply(&socket, address);
    applied.map_err(ConnectError::Other)?;
    socket.connect_timeout(&address.into(), timeout)?;
    if let Some(name) = &options.cc {
        let _ = set_congestion_control(&socket, name);
    }
    Ok(socket.into())
}

/// Listens, without ever waiting in accept: [`accept`] does that. The unspecified IPv6 address
/// serves IPv4 too. Connections may use Fast Open where net.ipv4.tcp_fastopen allows it, and
/// Multipath TCP where the kernel has it; those that do not ask for it are plain TCP.
///
/// # Errors
/// Errors of bind and listen: AddrInUse when another program has the port.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let new = |protocol| Socket::new(Domain::for_address(address), Type::STREAM, Some(protocol));
    let socket = new(Protocol::MPTCP).or_else(|_| new(Protocol::TCP))?;
    if let IpAddr::V6(ip) = address.ip() {
        socket.set_only_v6(!ip.is_unspecified())?;
    }
    // Connections of an earlier process in TIME_WAIT do not hold the port.
    socket.set_reuse_address(true)?;
    // SO_RCVTIMEO would do, but a Multipath TCP listener does not honour it (Linux 6.18).
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    // As many connections may still wait for the end of their handshake; a kernel without Fast
    // Open serves without.
    let _ = options::set_flag(&socket, libc::TCP_FASTOPEN, LISTEN_BACKLOG);
    socket.listen(LISTEN_BACKLOG)?;
    Ok(socket.into())
}

/// A listener that another process opened, as [`listen`] has one.
///
/// # Errors
/// Where it is none.
pub fn adopt(listener: TcpListener) -> io::Result<TcpListener> {
    listener.set_nonblocking(true)?;
    let _ = options::set_flag(&listener, libc::TCP_FASTOPEN, LISTEN_BACKLOG);
    Ok(listener)
}

/// Makes the kernel keep the retransmission timeout constant for the first six retransmissions instead of doubling it,
/// while little is in flight (TCP_THIN_LINEAR_TIMEOUTS). For a connection of few small messages beside a load that
/// fills the same queue.
///
/// # Errors
/// Where the kernel does not know it.
pub fn retry_evenly(socket: &impl AsFd) -> io::Result<()> {
    /// From `include/uapi/linux/tcp.h`; the crate libc has no name for it.
    const TCP_THIN_LINEAR_TIMEOUTS: libc::c_int = 16;
    options::set_flag(socket, TCP_THIN_LINEAR_TIMEOUTS, 1)
}

/// Accepts a connection within `longest`.
///
/// # Errors
/// WouldBlock when none came; errors of accept.
pub fn accept(listener: &TcpListener, longest: Duration) -> io::Result<(TcpStream, SocketAddr)> {
    wait_readable(listener, longest)?;
    let (socket, peer) = listener.accept()?;
    // Linux does not pass it on; others do.
    socket.set_nonblocking(false)?;
    Ok((socket, peer))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};

    pub(super) fn pair() -> (TcpStream, TcpStream) {
        pair_with(&TcpOptions {
            cc: Some("reno".to_owned()),
            ..TcpOptions::default()
        })
    }

    pub(super) fn pair_with(options: &TcpOptions) -> (TcpStream, TcpStream) {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let client = connect(address, Duration::from_secs(2), options).unwrap();
        (client, accept(&listener, Duration::from_secs(2)).unwrap().0)
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
    fn a_reader_that_waits_for_much_is_woken_for_that_and_still_reads_what_there_is() {
        let (mut a, mut b) = pair();
        let wait = Duration::from_millis(50);
        set_receive_least(&b, 64 * 1024).unwrap();
        assert!(receive_buffer_bytes(&b).unwrap() >= 64 * 1024);
        a.write_all(&[0; 1000]).unwrap();
        assert!(!wait_readable(&b, wait).unwrap());
        b.set_nonblocking(true).unwrap();
        assert_eq!(b.read(&mut [0; 4096]).unwrap(), 1000);
        a.write_all(&[0; 128 * 1024]).unwrap();
        assert!(wait_readable(&b, Duration::from_secs(5)).unwrap());
    }

    #[test]
    fn a_closed_port_is_told_from_silence() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_eq!(
            accept(&listener, Duration::from_millis(20))
                .unwrap_err()
                .kind(),
            io::ErrorKind::WouldBlock
        );
        let address = listener.local_addr().unwrap();
        drop(listener);
        assert!(matches!(
            connect(address, Duration::from_secs(2), &TcpOptions::default()),
            Err(ConnectError::Refused)
        ));
    }

    #[test]
    fn fast_open_is_what_the_syn_carried() {
        let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = listener.local_addr().unwrap();
        let options = TcpOptions {
            fast_open: true,
            ..TcpOptions::default()
        };
        let mut said = Vec::new();
        // The first asks for the server's cookie, the second uses it.
        for _ in 0..2 {
            let mut client = connect(address, Duration::from_secs(2), &options).unwrap();
            client.write_all(b"hello").unwrap();
            let (mut server, _) = accept(&listener, Duration::from_secs(2)).unwrap();
            server.read_exact(&mut [0; 5]).unwrap();
            said.push((
                negotiated(&client).unwrap().fast_open,
                negotiated(&server).unwrap().fast_open,
            ));
        }
        // Bit 2 of net.ipv4.tcp_fastopen lets servers take part.
        let serves = crate::sysctl::read("net.ipv4.tcp_fastopen")
            .is_ok_and(|bits| bits.trim().parse::<u32>().is_ok_and(|bits| bits & 2 != 0));
        assert_eq!(said.last(), Some(&(serves, serves)));
    }
}
