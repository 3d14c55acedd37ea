//! Handshakes of TLS (RFC 8446): who is asked for, which version is chosen, and when its parts pass. Of the bytes of a
//! connection the server's name alone is kept.

mod hello;
mod stream;

use plumb_model::results::capture::TlsResult;

use crate::packet::Segment;
use hello::{TLS_1_3, version_name};
use stream::{Record, Stream};

const NS_PER_S: f64 = 1e9;

/// A connection that begins with a ClientHello.
#[derive(Debug, Clone)]
pub(crate) struct Tls {
    began_ns: u64,
    client: Stream,
    /// None where the capture lacks the server's initial sequence number.
    server: Option<Stream>,
    server_hello_ns: Option<u64>,
    /// When the client's first two records of application data came.
    encrypted_ns: [Option<u64>; 2],
}

impl Tls {
    /// Whether a connection that begins with this payload is one of TLS: a record of the handshake, in which a
    /// ClientHello begins.
    pub(crate) fn begins(payload: &[u8]) -> bool {
        matches!(
            payload,
            [stream::HANDSHAKE, 3, _, _, _, hello::CLIENT_HELLO, ..]
        )
    }

    /// A connection whose sides' first bytes have these sequence numbers.
    pub(crate) fn new(client: u32, server: Option<u32>, now: u64) -> Self {
        Self {
            began_ns: now,
            client: Stream::new(client),
            server: server.map(Stream::new),
            server_hello_ns: None,
            encrypted_ns: [None; 2],
        }
    }

    /// Takes in a segment with payload.
    #[inline]
    pub(crate) fn segment(&mut self, is_up: bool, segment: &Segment<'_>, now: u64) {
        match (is_up, &mut self.server) {
            (true, _) => {
                let [first, second] = &mut self.encrypted_ns;
                if second.is_none() {
                    self.client.segment(segment, &mut |record| {
                        if record == Record::ApplicationData {
                            let place = if first.is_none() {
                                &mut *first
                            } else {
                                &mut *second
                            };
                            place.get_or_insert(now);
                        }
                    });
                }
            }
            (false, Some(server)) if !server.hello.is_over() => {
                let hello_ns = &mut self.server_hello_ns;
                server.segment(segment, &mut |record| {
                    if record == Record::Handshake {
                        hello_ns.get_or_insert(now);
                    }
                });
            }
            (false, _) => {}
        }
    }

    pub(crate) fn result(&self) -> TlsResult {
        let chosen = self
            .server
            .as_ref()
            .and_then(|server| server.hello.version());
        let [first, second] = self.encrypted_ns;
        let application_ns = match (chosen, first, self.server_hello_ns) {
            // Early data (RFC 8446, section 2.3).
            (_, Some(first), Some(hello)) if first < hello => Some(first),
            // The first is the client's Finished.
            (Some(TLS_1_3), ..) => second,
            (Some(_), first, _) => first,
            (None, ..) => None,
        };
        let seconds = |ns: u64| ns.saturating_sub(self.began_ns) as f64 / NS_PER_S;
        TlsResult {
            server_name: self.client.hello.server_name(),
            version: chosen.map(version_name),
            server_hello_s: self.server_hello_ns.map(seconds),
            application_data_s: application_ns.map(seconds),
            retried: self
                .server
                .as_ref()
                .is_some_and(|server| server.hello.is_retry()),
        }
    }
}

#[cfg(test)]
#[path = "tls/tests.rs"]
mod tests;
