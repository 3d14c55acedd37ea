//! Kernel time stamps of packets (Linux Documentation/networking/timestamping.rst), taken in
//! software with CLOCK_REALTIME.
//!
//! A packet received is stamped as the driver hands it to the network stack. A packet sent is
//! stamped as it enters the packet scheduler (SOF_TIMESTAMPING_TX_SCHED): the queue of our own
//! host is part of the path, the scheduling of our process is not.

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

use socket2::Socket;

use crate::datagram::{control, receive_message};
use crate::socket_options::{SO_TIMESTAMPING_NEW, set_bytes};

/// Which packets of a socket are stamped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamped {
    Received,
    /// Those received, and those sent: their stamps come through the error queue.
    Both,
}

/// Asks for stamps. Asking anew makes the kernel number the packets sent from 0 again.
pub(crate) fn enable(socket: &Socket, stamped: Stamped) -> io::Result<()> {
    let receive = libc::SOF_TIMESTAMPING_SOFTWARE | libc::SOF_TIMESTAMPING_RX_SOFTWARE;
    let send = libc::SOF_TIMESTAMPING_TX_SCHED
        | libc::SOF_TIMESTAMPING_OPT_ID
        | libc::SOF_TIMESTAMPING_OPT_TSONLY;
    let set = |flags: u32| {
        let option = (libc::SOL_SOCKET, SO_TIMESTAMPING_NEW);
        set_bytes(socket, option, &flags.to_ne_bytes())
    };
    // The count restarts when OPT_ID goes from off to on (net/core/sock.c, sock_set_timestamping).
    set(receive)?;
    match stamped {
        Stamped::Received => Ok(()),
        Stamped::Both => set(receive | send),
    }
}

/// Waits until the kernel timestamps what it receives; returns whether it does.
///
/// The first socket to ask switches stamping on through a work queue (net/core/dev.c,
/// net_enable_timestamp), so that packets may still come in without stamps for a while. To be
/// called while a socket that asked is open; it sends packets over the loopback until one has a timestamp. On a host whose
/// processors are taken for tens of milliseconds the queue is late: it waits for 1 s while packets come without one,
/// and for 50 ms without a loopback.
pub(crate) fn await_receive_stamps() -> bool {
    const WITHOUT_LOOPBACK: Duration = Duration::from_millis(50);
    const WITH_LOOPBACK: Duration = Duration::from_secs(1);
    let begun = Instant::now();
    loop {
        let patience = match loopback_packet_is_stamped() {
            Ok(true) => return true,
            Ok(false) => WITH_LOOPBACK,
            Err(_) => WITHOUT_LOOPBACK,
        };
        if begun.elapsed() > patience {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn loopback_packet_is_stamped() -> io::Result<bool> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    socket.connect(socket.local_addr()?)?;
    let socket = Socket::from(socket);
    socket.set_nonblocking(true)?;
    enable(&socket, Stamped::Received)?;
    socket.send(&[0])?;
    let message = receive_message(&socket, &mut [0], 0)?;
    let stamp = message.and_then(|message| control::Beside::parse(message.control()).kernel_ns);
    Ok(stamp.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamping_is_seen_to_begin() {
        assert!(await_receive_stamps());
    }
}
