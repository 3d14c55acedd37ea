//! The tests that wait for streams: whose they are shows the cookie, or the address where datagrams have none.

use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plumb_net::bulk::BulkSocket;
use plumb_wire::iperf3::COOKIE_BYTES;

/// A stream that came.
#[derive(Debug)]
pub(super) enum Stream {
    Tcp(TcpStream),
    Udp(BulkSocket),
}

#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<Vec<Session>>);

#[derive(Debug)]
struct Session {
    cookie: [u8; COOKIE_BYTES],
    peer: IpAddr,
    control: Arc<TcpStream>,
    streams: Sender<Stream>,
    is_udp: bool,
    /// How many more it waits for.
    missing: u32,
}

impl Sessions {
    /// A test that is about to run, from which the streams come as they are opened; as long as the place is kept.
    pub(super) fn enter(
        &self,
        cookie: [u8; COOKIE_BYTES],
        peer: IpAddr,
        control: &Arc<TcpStream>,
    ) -> Place<'_> {
        let (streams, opened) = channel();
        self.lock().push(Session {
            cookie,
            peer,
            control: Arc::clone(control),
            streams,
            is_udp: false,
            missing: 0,
        });
        Place {
            sessions: self,
            cookie,
            opened,
        }
    }

    /// Gives a connection to the test of that cookie; back where it begins one of its own.
    pub(super) fn hand_over(
        &self,
        cookie: &[u8; COOKIE_BYTES],
        peer: IpAddr,
        socket: TcpStream,
    ) -> Option<TcpStream> {
        let mut sessions = self.lock();
        let Some(session) = sessions
            .iter_mut()
            .find(|session| session.cookie == *cookie)
        else {
            return Some(socket);
        };
        if session.peer == peer && !session.is_udp && session.missing > 0 {
            session.missing -= 1;
            let _ = session.streams.send(Stream::Tcp(socket));
        }
        None
    }

    /// Whether a test of that address waits for streams of datagrams.
    pub(super) fn waits_for_datagrams(&self, peer: IpAddr) -> bool {
        let waits = |s: &Session| s.peer == peer && s.is_udp && s.missing > 0;
        self.lock().iter().any(waits)
    }

    /// Gives a stream of datagrams to the test of that address: it has one at a time.
    pub(super) fn begin_stream(&self, peer: IpAddr, stream: BulkSocket) {
        let mut sessions = self.lock();
        let mut waiting = sessions.iter_mut().filter(|s| s.is_udp && s.missing > 0);
        if let Some(session) = waiting.find(|session| session.peer == peer) {
            session.missing -= 1;
            let _ = session.streams.send(Stream::Udp(stream));
        }
    }

    /// Ends what is left.
    pub(super) fn end_all(&self) {
        for session in self.lock().iter() {
            let _ = session.control.shutdown(Shutdown::Both);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Session>> {
        // Every change is complete before anything that could panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a test among the others.
#[derive(Debug)]
pub(super) struct Place<'a> {
    sessions: &'a Sessions,
    cookie: [u8; COOKIE_BYTES],
    /// Streams as they are opened.
    pub(super) opened: Receiver<Stream>,
}

impl Place<'_> {
    /// From now on it waits for so many streams.
    pub(super) fn waits_for(&self, streams: u32, is_udp: bool) {
        let mut sessions = self.sessions.lock();
        if let Some(its) = sessions.iter_mut().find(|s| s.cookie == self.cookie) {
            (its.missing, its.is_udp) = (streams, is_udp);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.sessions.lock().retain(|s| s.cookie != self.cookie);
    }
}
