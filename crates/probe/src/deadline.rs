//! A connection on which all is to happen before a deadline, with TLS or without.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Instant;

use plumb_net::tcp::{TcpOptions, connect};
use rustls::client::ClientConnection;

use crate::exchange::{allow_until, session};
use crate::root_store::{Trust, unbelieved};

/// So many addresses of a name are tried.
const MOST_ADDRESSES: usize = 4;

/// Such a connection. It is closed with it.
pub(crate) struct Connection {
    stream: TcpStream,
    tls: Option<ClientConnection>,
    deadline: Instant,
}

impl Connection {
    /// To a host. Looking up its name takes what the resolver takes.
    pub(crate) fn to(host: &str, port: u16, deadline: Instant) -> Result<Self, String> {
        let addresses = (host, port)
            .to_socket_addrs()
            .map_err(|error| format!("the name {host} was not found: {error}"))?;
        let stream = connected(addresses.take(MOST_ADDRESSES), deadline)?;
        Ok(Self {
            stream,
            tls: None,
            deadline,
        })
    }

    /// Begins TLS, with a certificate for that host that `trust` believes.
    pub(crate) fn begin_tls(&mut self, host: &str, trust: &Trust) -> Result<(), String> {
        let mut tls = session(host, trust)?;
        while tls.is_handshaking() {
            allow_until(&self.stream, self.deadline)?;
            tls.complete_io(&mut self.stream)
                .map_err(|error| format!("the TLS handshake failed: {}", in_words(&error)))?;
        }
        self.tls = Some(tls);
        Ok(())
    }

    /// The address of this end.
    pub(crate) fn local(&self) -> Option<IpAddr> {
        self.stream.local_addr().ok().map(|local| local.ip())
    }

    pub(crate) fn send(&mut self, mut bytes: &[u8]) -> Result<(), String> {
        while !bytes.is_empty() {
            allow_until(&self.stream, self.deadline)?;
            let written = match &mut self.tls {
                Some(tls) => rustls::Stream::new(tls, &mut self.stream).write(bytes),
                None => self.stream.write(bytes),
            };
            let count =
                written.map_err(|error| format!("it could not be sent: {}", in_words(&error)))?;
            if count == 0 {
                return Err("the connection ended".to_owned());
            }
            bytes = bytes.get(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// What came: as much as fits, and nothing where the connection ended.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        allow_until(&self.stream, self.deadline)?;
        let read = match &mut self.tls {
            Some(tls) => rustls::Stream::new(tls, &mut self.stream).read(buffer),
            None => self.stream.read(buffer),
        };
        read.map_err(|error| in_words(&error))
    }
}

/// An error for a user who has written what is believed into a file.
fn in_words(error: &std::io::Error) -> String {
    let tls = error.get_ref().and_then(|source| source.downcast_ref());
    match tls.and_then(unbelieved) {
        Some(why) => {
            format!("{why} (ca = \"/FILE\" names who may sign it, insecure = true takes any)")
        }
        None => crate::exchange::in_words(error),
    }
}

fn connected(
    addresses: impl Iterator<Item = SocketAddr>,
    deadline: Instant,
) -> Result<TcpStream, String> {
    let mut why = "the name has no address".to_owned();
    for address in addresses {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        match connect(address, left, &TcpOptions::default()) {
            Ok(stream) => return Ok(stream),
            Err(error) => why = format!("no connection to {address}: {error}"),
        }
    }
    Err(why)
}
