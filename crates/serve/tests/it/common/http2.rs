//! HTTP/2 by hand (RFC 9113), for a client that does not keep to the rules: it writes the frames that a test wants, and counts
//! what comes.

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_load::tls::{Identity, TlsSession, Trust};
use plumb_load::web::Channel;

use super::{TIMEOUT, connect_from};

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PING: u8 = 6;
const SETTINGS: u8 = 4;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// SETTINGS_INITIAL_WINDOW_SIZE and the largest that there is, and the same for the connection.
const LARGE_WINDOW: u32 = 0x7fff_0000;

/// A frame that came.
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

/// A connection of a client.
pub(crate) struct Http2 {
    channel: Channel,
    came: Vec<u8>,
    next_stream: u32,
}

impl Http2 {
    /// Connects from that address, with a window of that size for each stream.
    pub(crate) fn connect(
        responder: SocketAddr,
        source: [u8; 4],
        identity: &Identity,
        window: Option<u32>,
    ) -> Self {
        let socket = connect_from(responder, source);
        let trust = Trust::in_certificate(identity.fingerprint()).unwrap();
        let trust = trust.speaking(&[b"h2"]);
        let tls = TlsSession::connect(&socket, &trust, Instant::now() + TIMEOUT).unwrap();
        let longest = Duration::from_millis(50);
        let mut client = Self {
            channel: Channel::new(Arc::new(socket), Some(tls), longest).unwrap(),
            came: Vec::new(),
            next_stream: 1,
        };
        client.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let window = window.unwrap_or(LARGE_WINDOW).to_be_bytes();
        client.frame(SETTINGS, 0, 0, &[&[0, 4], &window[..]].concat());
        client.frame(8, 0, 0, &LARGE_WINDOW.to_be_bytes());
        client
    }

    /// Writes as much as the connection takes; whether it took all.
    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> bool {
        let until = Instant::now() + TIMEOUT;
        while !bytes.is_empty() && Instant::now() < until {
            match self.channel.write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return false,
            }
        }
        let _ = self.channel.flush();
        bytes.is_empty()
    }

    pub(crate) fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> bool {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
        self.write(&[&head, payload].concat())
    }

    /// Asks, and leaves the request open where it is to have a body; the stream.
    pub(crate) fn ask(&mut self, method: &str, path: &str, has_body: bool) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        // Literal fields without indexing (RFC 7541, section 6.2.2): names 2 and 4 are the method and the path, 1 the
        // authority; `:scheme https` stands whole in the table.
        let mut fields = vec![0x87];
        for (name, value) in [(2, method), (4, path), (1, "here")] {
            fields.extend([name, u8::try_from(value.len()).unwrap()]);
            fields.extend(value.as_bytes());
        }
        let ends = if has_body { 0 } else { END_STREAM };
        self.frame(HEADERS, END_HEADERS | ends, stream, &fields);
        stream
    }

    /// The next frame that comes within that time. Settings are answered.
    pub(crate) fn next(&mut self, within: Duration) -> Option<Frame> {
        let until = Instant::now() + within;
        loop {
            if let Some(frame) = self.whole() {
                if frame.kind == SETTINGS
                    && frame.payload.len() % 6 == 0
                    && !frame.payload.is_empty()
                {
                    self.frame(SETTINGS, 1, 0, &[]);
                }
                return Some(frame);
            }
            let mut buffer = [0; 64 * 1024];
            match self.channel.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.came.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(_) => return None,
            }
            if Instant::now() >= until {
                return None;
            }
        }
    }

    fn whole(&mut self) -> Option<Frame> {
        let head = self.came.get(..9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, stream) = (
            head[3],
            u32::from_be_bytes([head[5], head[6], head[7], head[8]]),
        );
        let payload = self.came.get(9..9 + length)?.to_vec();
        self.came.drain(..9 + length);
        Some(Frame {
            kind,
            stream,
            payload,
        })
    }

    /// The stream of the next frame of that kind, which comes within that time.
    pub(crate) fn until(&mut self, kind: u8, within: Duration) -> u32 {
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let frame = self.next(left).expect("such a frame");
            if frame.kind == kind {
                return frame.stream;
            }
        }
    }

    /// Bytes of bodies that come within that time.
    pub(crate) fn body_bytes(&mut self, within: Duration) -> u64 {
        let until = Instant::now() + within;
        let mut bytes = 0;
        while let Some(frame) = self.next(until.saturating_duration_since(Instant::now())) {
            if frame.kind == DATA {
                bytes += frame.payload.len() as u64;
            }
        }
        bytes
    }
}
