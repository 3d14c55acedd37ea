//! The client: a session that is opened, its echoes, and its end. Pure.
//!
//! It asks for what one-way delays and losses need: the server's count of what it received, and its wall clock at receiving and
//! sending.

use std::time::Duration;

use super::key::{Key, TAG_BYTES};
use super::packet::{Flags, Incoming, Packet};
use super::parameters::{Clock, Parameters, StampAt, Stats, VERSION};

/// Bytes of a reply without a key: magic and flags, token, sequence number, the server's count, and two times.
const REPLY_BYTES: usize = 4 + 8 + 4 + 4 + 2 * 8;

/// What client and server agreed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    /// How long the session lasts at most.
    pub duration: Duration,
    /// The shortest time between two echoes.
    pub interval: Duration,
}

/// Why a server that answered is of no use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("it opens no session")]
    Closed,
    #[error("it speaks version {0} of the protocol, and not version {VERSION}")]
    Version(i64),
    #[error("it does not count and stamp what it receives")]
    Stamps,
    #[error("it takes packets of {0} bytes at most")]
    Length(usize),
}

/// The answer to an echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Echoed {
    pub sequence: u32,
    /// Packets of the session that the server has received, this one included.
    pub received: u32,
    /// The server's wall clock at receiving, in nanoseconds since 1970.
    pub received_ns: i64,
    /// The same at sending.
    pub sent_ns: i64,
    /// Whether the server has ended the session with it.
    pub is_last: bool,
}

/// The client of one session.
#[derive(Debug)]
pub struct Client {
    key: Option<Key>,
    wanted: Parameters,
    token: Option<u64>,
}

impl Client {
    /// Bytes of the smallest packet.
    pub const fn least_bytes(has_key: bool) -> usize {
        REPLY_BYTES + if has_key { TAG_BYTES } else { 0 }
    }

    /// One that asks for echoes of up to `length` bytes, an `interval` apart, for so long.
    pub fn new(key: Option<Key>, wanted: Agreed, length: usize, dscp: Option<u8>) -> Self {
        let wanted = Parameters {
            version: VERSION,
            duration: wanted.duration,
            interval: wanted.interval,
            length,
            stats: Stats {
                count: true,
                window: false,
            },
            stamp_at: StampAt::Both,
            clock: Clock {
                wall: true,
                monotonic: false,
            },
            type_of_service: dscp.unwrap_or(0) << 2,
            fill: Vec::new(),
        };
        Self {
            key,
            wanted,
            token: None,
        }
    }

    /// The packet that opens the session.
    pub fn open(&self) -> Vec<u8> {
        Packet::new(Flags::OPEN, self.key.is_some())
            .with(&self.wanted.write())
            .finish(0, self.key.as_ref())
    }

    /// Reads the answer to the open packet; `None` for every other packet.
    pub fn opened(&mut self, packet: &[u8]) -> Option<Result<Agreed, Refusal>> {
        let answer = Incoming::read(packet, self.key.as_ref())?;
        if !answer.flags.has(Flags::OPEN | Flags::REPLY) || self.token.is_some() {
            return None;
        }
        let (token, rest) = answer.rest.split_first_chunk()?;
        let agreed = Parameters::read(rest)?;
        let token = u64::from_le_bytes(*token);
        let refusal = if answer.flags.has(Flags::CLOSE) || token == 0 {
            Some(Refusal::Closed)
        } else if agreed.version != VERSION {
            Some(Refusal::Version(agreed.version))
        } else if (agreed.stats, agreed.stamp_at, agreed.clock)
            != (self.wanted.stats, self.wanted.stamp_at, self.wanted.clock)
        {
            Some(Refusal::Stamps)
        } else if agreed.length < self.wanted.length {
            Some(Refusal::Length(agreed.length))
        } else {
            None
        };
        if let Some(refusal) = refusal {
            return Some(Err(refusal));
        }
        self.token = Some(token);
        Some(Ok(Agreed {
            duration: agreed.duration,
            interval: agreed.interval,
        }))
    }

    /// A packet to be echoed, of so many bytes; `None` before the session is open.
    pub fn echo(&self, sequence: u32, length: usize) -> Option<Vec<u8>> {
        let echo = self.of_session(0)?.with(&sequence.to_le_bytes());
        let length = length.max(Self::least_bytes(self.key.is_some()));
        Some(echo.finish(length, self.key.as_ref()))
    }

    /// Reads the answer to an echo; `None` for every other packet.
    pub fn reply(&self, packet: &[u8]) -> Option<Echoed> {
        let answer = Incoming::read(packet, self.key.as_ref())?;
        if !answer.flags.has(Flags::REPLY) || answer.flags.has(Flags::OPEN) {
            return None;
        }
        let (token, rest) = answer.rest.split_first_chunk()?;
        if Some(u64::from_le_bytes(*token)) != self.token {
            return None;
        }
        let (sequence, rest) = rest.split_first_chunk()?;
        let (received, rest) = rest.split_first_chunk()?;
        let (received_ns, rest) = rest.split_first_chunk()?;
        let sent_ns = rest.first_chunk()?;
        Some(Echoed {
            sequence: u32::from_le_bytes(*sequence),
            received: u32::from_le_bytes(*received),
            received_ns: i64::from_le_bytes(*received_ns),
            sent_ns: i64::from_le_bytes(*sent_ns),
            is_last: answer.flags.has(Flags::CLOSE),
        })
    }

    /// The packet that ends the session, which the server does not answer; `None` before it is open.
    pub fn close(&self) -> Option<Vec<u8>> {
        Some(self.of_session(Flags::CLOSE)?.finish(0, self.key.as_ref()))
    }

    fn of_session(&self, flags: u8) -> Option<Packet> {
        let packet = Packet::new(flags, self.key.is_some());
        Some(packet.with(&self.token?.to_le_bytes()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::irtt::server::{Arrived, Limits, Server};
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        longest: Duration::from_secs(60),
        interval: Duration::from_millis(1),
        length: 1472,
    };

    const WANTED: Agreed = Agreed {
        duration: Duration::from_secs(3600),
        interval: Duration::from_millis(20),
    };

    fn key() -> Option<Key> {
        Key::new(b"Jefe")
    }

    /// What a server answers to a packet that comes at that second.
    fn answer(server: &mut Server, at_s: u64, bytes: &[u8]) -> Option<Vec<u8>> {
        let arrived = Arrived {
            bytes,
            from: "192.0.2.1:40000".parse().unwrap(),
            wall_ns: 1000,
            monotonic_ns: 10,
        };
        let now = Duration::from_secs(at_s);
        let reply = server.answer(now, &arrived, || Some(7), || (3000, 30));
        reply.map(|reply| reply.bytes)
    }

    #[test]
    fn a_session_is_opened_echoed_and_closed() {
        for key in [None, key()] {
            let mut server = Server::new(key.clone(), LIMITS);
            let mut client = Client::new(key.clone(), WANTED, 100, Some(46));
            assert_eq!(client.echo(0, 100), None);
            let opened = answer(&mut server, 0, &client.open()).unwrap();
            let agreed = client.opened(&opened).unwrap().unwrap();
            assert_eq!(agreed.duration, LIMITS.longest);
            assert_eq!(agreed.interval, WANTED.interval);
            for sequence in 0..3 {
                let echo = client.echo(sequence, 100).unwrap();
                assert_eq!(echo.len(), 100);
                let replied = answer(&mut server, 1, &echo).unwrap();
                assert_eq!(replied.len(), 100);
                let expected = Echoed {
                    sequence,
                    received: sequence + 1,
                    received_ns: 1000,
                    sent_ns: 3000,
                    is_last: false,
                };
                assert_eq!(client.reply(&replied), Some(expected));
            }
            // Beyond its time the server ends the session.
            let replied = answer(&mut server, 100, &client.echo(3, 0).unwrap()).unwrap();
            assert!(client.reply(&replied).unwrap().is_last);
            assert_eq!(answer(&mut server, 100, &client.close().unwrap()), None);
        }
    }

    #[test]
    fn a_server_that_cannot_is_refused() {
        let short = Limits {
            length: 60,
            ..LIMITS
        };
        let mut server = Server::new(None, short);
        let mut client = Client::new(None, WANTED, 100, None);
        let opened = answer(&mut server, 0, &client.open()).unwrap();
        assert_eq!(client.opened(&opened), Some(Err(Refusal::Length(60))));
        let says = |flags: u8, token: u64, change: fn(&mut Parameters)| {
            let mut client = Client::new(None, WANTED, 100, None);
            let mut parameters = client.wanted.clone();
            change(&mut parameters);
            let packet = Packet::new(flags, false)
                .with(&token.to_le_bytes())
                .with(&parameters.write());
            client.opened(&packet.finish(0, None))
        };
        let reply = Flags::OPEN | Flags::REPLY;
        let refused = |refusal| Some(Err(refusal));
        assert_eq!(
            says(reply | Flags::CLOSE, 1, |_| ()),
            refused(Refusal::Closed)
        );
        assert_eq!(says(reply, 0, |_| ()), refused(Refusal::Closed));
        assert_eq!(
            says(reply, 1, |p| p.version = 2),
            refused(Refusal::Version(2))
        );
        assert_eq!(
            says(reply, 1, |p| p.stamp_at = StampAt::Midpoint),
            refused(Refusal::Stamps)
        );
        assert_eq!(says(Flags::OPEN, 1, |_| ()), None);
        assert!(matches!(says(reply, 1, |_| ()), Some(Ok(_))));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_not(bytes in proptest::collection::vec(any::<u8>(), 0..80), flags in 0u8..16) {
            let mut packet = vec![0x14, 0xa7, 0x5b, flags];
            packet.extend(&bytes);
            for key in [None, key()] {
                let mut client = Client::new(key, WANTED, 100, None);
                let _ = client.opened(&packet);
                client.token = Some(0);
                let _ = client.reply(&packet);
            }
        }
    }
}
