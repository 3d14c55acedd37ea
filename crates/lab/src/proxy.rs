//! A transparent TCP proxy at the customer's: it takes the connections that pass through its
//! node, and towards each side is the other one, by its address and port. A buffering one
//! examines a reply whole before the customer gets any of it: it waits until the server closes
//! or, on a connection that stays open, has been silent for a time.
//!
//! It knows nothing of HTTP, so it cannot find the end of a reply by its length.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use plumb_net::intercept;

use crate::error::LabError;

/// Connections at once; more are closed at once. Each has two threads and holds at most
/// [`MOST_HELD`].
const MOST_CONNECTIONS: usize = 64;

/// Bytes of a reply that are held back at most; a longer reply is passed on in parts of this size.
const MOST_HELD: usize = 16 << 20;

/// Bytes read at once.
const CHUNK: usize = 64 << 10;

/// How long one side may be silent, or take nothing, before the connection is given up.
const SILENCE: Duration = Duration::from_secs(120);

/// How long the server has to answer a SYN: Linux repeats it twice in this time.
const CONNECT_WITHIN: Duration = Duration::from_secs(5);

/// Where a proxy stands and what it does.
#[derive(Debug, Clone)]
pub struct Proxy {
    /// The interface that clients are at.
    pub clients: String,
    /// The interface that servers are at.
    pub servers: String,
    /// The port whose connections it takes.
    pub port: u16,
    /// Replies are held back until the server has been silent for this long, or has closed.
    pub hold: Option<Duration>,
}

impl Proxy {
    /// Takes connections in the network namespace of the calling thread, until the process ends.
    ///
    /// # Errors
    /// When the kernel refuses to intercept or to listen.
    pub fn run(&self) -> Result<(), LabError> {
        intercept::intercept(&self.clients, &self.servers, self.port)?;
        let listener = intercept::listen(self.port)?;
        let connections = Arc::new(AtomicUsize::new(0));
        loop {
            let (client, from) = match listener.accept() {
                Ok(accepted) => accepted,
                // The client gave up before it was its turn.
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(e) => return Err(e.into()),
            };
            // The server is spoken to in the family that the client used.
            let own_form = |at: SocketAddr| SocketAddr::new(at.ip().to_canonical(), at.port());
            let (from, to) = (own_form(from), own_form(client.local_addr()?));
            if connections.fetch_add(1, Ordering::Relaxed) >= MOST_CONNECTIONS {
                connections.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            let (connections, hold) = (Arc::clone(&connections), self.hold);
            thread::Builder::new().spawn(move || {
                // A connection that fails is closed on both sides, which is what clients see.
                let _ = relay(&client, from, to, hold);
                connections.fetch_sub(1, Ordering::Relaxed);
            })?;
        }
    }
}

/// Carries one connection. Both its threads end when both sides have closed, one has failed, or
/// [`SILENCE`] after the last byte.
fn relay(
    client: &TcpStream,
    from: SocketAddr,
    to: SocketAddr,
    hold: Option<Duration>,
) -> io::Result<()> {
    let server = &intercept::connect_as(from, to, CONNECT_WITHIN)?;
    for stream in [client, server] {
        stream.set_write_timeout(Some(SILENCE))?;
        stream.set_nodelay(true)?;
    }
    let give_up = || {
        let _ = client.shutdown(Shutdown::Both);
        let _ = server.shutdown(Shutdown::Both);
    };
    thread::scope(|scope| {
        thread::Builder::new().spawn_scoped(scope, || {
            if carry(client, server, None).is_err() {
                give_up();
            }
        })?;
        let carried = carry(server, client, hold);
        if carried.is_err() {
            give_up();
        }
        carried
    })
}

/// Carries bytes until `from` has closed, and then closes that half of `to`. With `hold`, bytes
/// go on when `from` was silent for that long, or has closed.
fn carry(mut from: &TcpStream, mut to: &TcpStream, hold: Option<Duration>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    let mut held = Vec::new();
    loop {
        let pause = hold.filter(|_| !held.is_empty());
        from.set_read_timeout(Some(pause.unwrap_or(SILENCE)))?;
        match from.read(&mut chunk) {
            Ok(0) => {
                to.write_all(&held)?;
                return to.shutdown(Shutdown::Write);
            }
            Ok(length) => held.extend_from_slice(chunk.get(..length).unwrap_or_default()),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock && pause.is_some() => {
                to.write_all(&held)?;
                held.clear();
            }
            Err(e) => return Err(e),
        }
        if hold.is_none() || held.len() >= MOST_HELD {
            to.write_all(&held)?;
            held.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;

    fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (near, listener.accept().unwrap().0)
    }

    #[test]
    fn a_held_reply_comes_when_the_server_pauses_or_closes() {
        let (mut server, from) = pair();
        let (to, mut client) = pair();
        let carrying =
            thread::spawn(move || carry(&from, &to, Some(Duration::from_millis(500))).unwrap());
        client.set_nonblocking(true).unwrap();
        server.write_all(b"one").unwrap();
        let mut got = [0; 16];
        let early = client.read(&mut got).unwrap_err();
        assert_eq!(early.kind(), io::ErrorKind::WouldBlock);
        client.set_nonblocking(false).unwrap();
        assert_eq!(client.read(&mut got).unwrap(), 3);
        server.write_all(b"two").unwrap();
        drop(server);
        let mut rest = String::new();
        client.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "two");
        carrying.join().unwrap();
    }
}
