//! The client of NDT7's servers: a phase is one download or one upload.

use std::io::{self, Read, Write};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_net::tcp;
use plumb_wire::web::ndt7::{
    DOWNLOAD, FIRST_BYTES, LARGEST_BYTES, LASTS, Measurement, SUBPROTOCOL, TcpInfo, UPLOAD,
    next_bytes,
};
use tungstenite::handshake::client::generate_key;
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Bytes, Error, HandshakeError, Message, WebSocket};

use super::channel::Channel;
use super::site::{HTTP1, Site};
use crate::asked::{Asked, Has, cannot};
use crate::control_client::ClientError;
use crate::framing::Framing;
use crate::one_ended::{Looks, carry, conclude};
use crate::outcome::PhaseOutcome;
use crate::peer::{Carries, Peer};
use crate::phase_controller::Conductor;
use crate::phase_plan::PhasePlan;
use crate::phase_state::POLL_INTERVAL;
use crate::phase_watch::Progress;
use crate::streams::{Stream, Streams};
use crate::tcp::TcpLoad;
use crate::tcp::options::options;

const PROTOCOL: &str = "NDT7";

/// How long a server has to agree to a WebSocket.
const AGREEING: Duration = Duration::from_secs(5);

/// A server of NDT7.
#[derive(Debug, Clone)]
pub struct Ndt7 {
    pub site: Site,
    /// Path and query of each direction: M-Lab's carry a token.
    pub download: String,
    pub upload: String,
}

impl Ndt7 {
    /// A server at its usual paths.
    pub fn at(site: Site) -> Self {
        Self {
            site,
            download: DOWNLOAD.to_owned(),
            upload: UPLOAD.to_owned(),
        }
    }

    fn open(&self, asked: &Asked, reported: &Reported) -> Result<(Stream, bool), ClientError> {
        let is_download = asked.down > 0;
        let (socket, tls) = self.site.connect(&options(&asked.flow), &[HTTP1])?;
        let local = |error: io::Error| ClientError::Local {
            name: self.site.name.clone(),
            why: error.to_string(),
        };
        let kept = socket.try_clone().map_err(local)?;
        let channel = Channel::new(Arc::new(socket), tls, POLL_INTERVAL).map_err(local)?;
        let path = match is_download {
            true => &self.download,
            false => &self.upload,
        };
        let socket = self.agree(channel, path)?;
        let framing = Messages {
            socket,
            came: Bytes::new(),
            bytes: FIRST_BYTES,
            sent: 0,
            reported: Arc::clone(reported),
        };
        let stream = Stream::Tcp(TcpLoad {
            number: 0,
            flow: asked.flow.clone(),
            socket: kept,
            tls: None,
            framing: Some(Box::new(framing)),
            file: None,
        });
        Ok((stream, is_download))
    }

    /// Shakes hands (RFC 6455, section 4).
    fn agree(&self, channel: Channel, path: &str) -> Result<WebSocket<Channel>, ClientError> {
        let site = &self.site;
        let scheme = if site.security.is_some() { "wss" } else { "ws" };
        let request = tungstenite::http::Request::builder()
            .uri(format!("{scheme}://{}{path}", site.authority))
            .header("Host", &site.authority)
            .header("Connection", "Upgrade")
            .header("Upgrade", "websocket")
            .header("Sec-WebSocket-Version", "13")
            .header("Sec-WebSocket-Key", generate_key())
            .header("Sec-WebSocket-Protocol", SUBPROTOCOL)
            .header("User-Agent", concat!("plumb/", env!("CARGO_PKG_VERSION")))
            .body(())
            .map_err(|error| site.broken(&error.to_string()))?;
        let config = WebSocketConfig::default()
            .max_message_size(Some(LARGEST_BYTES))
            .max_frame_size(Some(LARGEST_BYTES));
        let until = Instant::now() + AGREEING;
        let mut agreeing = tungstenite::client::client_with_config(request, channel, Some(config));
        loop {
            match agreeing {
                Ok((socket, _)) => return Ok(socket),
                Err(HandshakeError::Interrupted(mid)) if Instant::now() < until => {
                    agreeing = mid.handshake();
                }
                Err(HandshakeError::Interrupted(_)) => {
                    return Err(site.broken("the server did not answer in time"));
                }
                Err(HandshakeError::Failure(Error::Http(answer))) => {
                    let status = answer.status();
                    return Err(site.broken(&match status.as_u16() {
                        503 | 429 => format!("the NDT7 server is busy (HTTP {})", status.as_u16()),
                        404 => "it is no NDT7 server (HTTP 404)".to_owned(),
                        code => format!("the NDT7 server answered HTTP {code}"),
                    }));
                }
                Err(HandshakeError::Failure(error)) => {
                    return Err(site.broken(&format!("it is no NDT7 server ({error})")));
                }
            }
        }
    }
}

/// What the server's kernel last knew of the connection, as it reported.
type Reported = Arc<Mutex<Option<TcpInfo>>>;

/// Payload in messages of a WebSocket.
#[derive(Debug)]
struct Messages {
    socket: WebSocket<Channel>,
    /// What came and was not read yet.
    came: Bytes,
    /// Of the next message.
    bytes: usize,
    sent: u64,
    reported: Reported,
}

fn io_of(error: Error) -> io::Error {
    match error {
        Error::Io(error) => error,
        Error::ConnectionClosed | Error::AlreadyClosed => {
            io::Error::new(io::ErrorKind::UnexpectedEof, "the server ended the test")
        }
        error => io::Error::other(error.to_string()),
    }
}

impl Messages {
    /// Takes a message: payload, if it is some.
    fn take(&mut self) -> io::Result<Option<Bytes>> {
        match self.socket.read().map_err(io_of)? {
            Message::Binary(bytes) => Ok(Some(bytes)),
            Message::Text(text) => {
                // What is no report is nothing that we use.
                if let Ok(Measurement {
                    tcp_info: Some(info),
                    ..
                }) = serde_json::from_str(&text)
                {
                    *self.reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(info);
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }
}

impl Framing for Messages {}

impl Read for Messages {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.came.is_empty() {
            match self.take() {
                Ok(bytes) => self.came = bytes.unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error),
            }
        }
        if self.came.is_empty() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = self.came.len().min(buffer.len());
        let bytes = self.came.split_to(count);
        buffer
            .get_mut(..count)
            .unwrap_or_default()
            .copy_from_slice(&bytes);
        Ok(count)
    }
}

impl Write for Messages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is left of the last message goes first.
        self.flush()?;
        while tcp::wait_readable(self.socket.get_ref().socket(), Duration::ZERO)? {
            self.take()?;
        }
        let count = self.bytes.min(bytes.len());
        let message = Bytes::copy_from_slice(bytes.get(..count).unwrap_or(bytes));
        match self.socket.write(Message::Binary(message)).map_err(io_of) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
            _ => {}
        }
        self.sent += count as u64;
        self.bytes = next_bytes(self.bytes, self.sent);
        match self.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(count),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush().map_err(io_of)
    }
}

impl Peer for Ndt7 {
    fn carries(&self) -> Carries {
        Carries {
            both: false,
            streams: 1,
            datagrams: false,
            ..Carries::EVERYTHING
        }
    }

    fn run_phase(
        &mut self,
        plan: &PhasePlan,
        conductor: &mut dyn Conductor,
        progress: &dyn Fn(Progress),
        cancel: &AtomicBool,
    ) -> Result<PhaseOutcome, ClientError> {
        let name = &self.site.name;
        let asked = Asked::of(plan, name, PROTOCOL, Has::Loads)?;
        if asked.down + asked.up != 1 {
            let what = "test of several connections, or of both directions at once";
            return Err(cannot(name, PROTOCOL, what));
        }
        let reported = Reported::default();
        let (stream, is_download) = self.open(&asked, &reported)?;
        let mut streams = Streams::default();
        match is_download {
            true => streams.incoming.push(stream),
            false => streams.outgoing.push(stream),
        }
        let wait = |within| {
            std::thread::sleep(within);
            Ok(())
        };
        // The server ends it then.
        let plan = &PhasePlan {
            duration: plan.duration.min(LASTS),
            ..plan.clone()
        };
        let looks = Looks {
            conductor,
            progress,
            cancel,
        };
        let carried = carry(name, streams, None, plan, looks, || (), wait)?;
        let mut outcome = conclude(name, plan, carried, None)?;
        let reported = *reported.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(down), Some(info)) = (&mut outcome.down, reported) {
            let again = u64::try_from(info.total_retrans).unwrap_or(0);
            down.result.tcp.retransmits = again;
            for stream in &mut down.result.streams {
                stream.retransmits = again;
            }
        }
        outcome.notes.push(
            "The far end is an NDT7 server: of an upload it is known what its TCP acknowledged, framing and encryption (0.2 % of it) \
             included, and of a download what arrived, and how often the server says that it retransmitted."
                .to_owned(),
        );
        Ok(outcome)
    }
}
