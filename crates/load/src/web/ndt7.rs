//! The client of NDT7's servers: a phase is one download or one upload.

use std::io::{self, Read, Write};
use std::net::TcpStream;
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
        let pieces = Pieces {
            channel,
            came: 0,
            is_next: true,
        };
        let socket = self.agree(pieces, path)?;
        let framing = Messages {
            socket,
            came: 0,
            reports: 0,
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
    fn agree(&self, pieces: Pieces, path: &str) -> Result<WebSocket<Pieces>, ClientError> {
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
        let mut agreeing = tungstenite::client::client_with_config(request, pieces, Some(config));
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

/// A connection that gives one piece and then says that it would block. A WebSocket gives messages whole, of up to 1 MiB:
/// at 40 Mbit/s that is one in 0.2 s, and what has come of it is to count when it comes.
#[derive(Debug)]
struct Pieces {
    channel: Channel,
    /// Bytes of the pieces since they were last taken.
    came: usize,
    is_next: bool,
}

impl Pieces {
    fn socket(&self) -> &TcpStream {
        self.channel.socket()
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.is_next, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = self.channel.read(buffer)?;
        self.came += count;
        self.is_next = false;
        Ok(count)
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.channel.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.channel.flush()
    }
}

/// Payload in messages of a WebSocket.
#[derive(Debug)]
struct Messages {
    socket: WebSocket<Pieces>,
    /// Bytes that came and were not read yet.
    came: usize,
    /// Bytes of reports among those that came, to be left out of what is read.
    reports: usize,
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
    /// Takes what has come. What the server reports is kept; what else comes is payload, or of no use.
    fn take(&mut self) -> io::Result<()> {
        let Message::Text(text) = self.socket.read().map_err(io_of)? else {
            return Ok(());
        };
        self.reports = self.reports.saturating_add(text.len());
        if let Ok(Measurement {
            tcp_info: Some(info),
            ..
        }) = serde_json::from_str(&text)
        {
            *self.reported.lock().unwrap_or_else(PoisonError::into_inner) = Some(info);
        }
        Ok(())
    }
}

impl Framing for Messages {}

impl Read for Messages {
    /// Counts what came but for reports, with the headers of messages; of the bytes themselves nothing is kept.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.came == 0 {
            let taken = self.take();
            let came = std::mem::take(&mut self.socket.get_mut().came);
            let reports = self.reports.min(came);
            self.reports -= reports;
            self.came = came - reports;
            match taken {
                _ if self.came > 0 => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => return Err(error),
                Ok(()) => return Err(io::ErrorKind::Interrupted.into()),
            }
        }
        let count = self.came.min(buffer.len());
        self.came -= count;
        Ok(count)
    }
}

impl Write for Messages {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // What is left of the last message goes first.
        self.flush()?;
        // One look for each message sent: a server that never stops would hold it here for ever.
        if tcp::wait_readable(self.socket.get_ref().socket(), Duration::ZERO)? {
            match self.take() {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
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
             included, and of a download what arrived, with its framing, and how often the server says that it retransmitted."
                .to_owned(),
        );
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use std::net::TcpListener;
    use tungstenite::protocol::Role;

    /// A client on the loopback, and the server's end of its connection.
    fn connected() -> (Messages, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let pieces = Pieces {
            channel: Channel::new(Arc::new(socket), None, POLL_INTERVAL).unwrap(),
            came: 0,
            is_next: true,
        };
        let messages = Messages {
            socket: WebSocket::from_raw_socket(pieces, Role::Client, None),
            came: 0,
            reports: 0,
            bytes: FIRST_BYTES,
            sent: 0,
            reported: Reported::default(),
        };
        (messages, listener.accept().unwrap().0)
    }

    /// What is read until nothing more comes.
    fn read(messages: &mut Messages) -> usize {
        let (mut buffer, mut count, mut silent) = ([0; 4096], 0, 0);
        while silent < 3 {
            match messages.read(&mut buffer) {
                Ok(bytes) => (count, silent) = (count + bytes, 0),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => silent += 1,
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::Interrupted),
            }
        }
        count
    }

    /// A header of a message of the server's (RFC 6455, section 5.2).
    fn header(kind: u8, bytes: usize) -> Vec<u8> {
        let length = (bytes as u64).to_be_bytes();
        [&[0x80 | kind, 127], &length[..]].concat()
    }

    #[test]
    fn what_has_come_of_a_message_counts_before_it_is_whole_and_reports_do_not() {
        const BINARY: u8 = 2;
        const TEXT: u8 = 1;
        let (mut messages, mut server) = connected();
        server.write_all(&header(BINARY, 100_000)).unwrap();
        server.write_all(&[0; 60_000]).unwrap();
        assert_eq!(read(&mut messages), 10 + 60_000);
        server.write_all(&[0; 40_000]).unwrap();
        let report = format!(r#"{{"TCPInfo":{{"TotalRetrans":7}},"More":"{:5000}"}}"#, "");
        server.write_all(&header(TEXT, report.len())).unwrap();
        server.write_all(report.as_bytes()).unwrap();
        // What had come of the report before it was whole is made good by what comes next.
        read(&mut messages);
        server.write_all(&header(BINARY, 20_000)).unwrap();
        server.write_all(&[0; 20_000]).unwrap();
        let whole = read(&mut messages);
        assert!(whole <= 10 + 20_000, "{whole}");
        let reported = messages.reported.lock().unwrap().unwrap();
        assert_eq!(reported.total_retrans, 7);
        assert_eq!(messages.reports, 0);
    }

    #[test]
    fn a_server_that_never_stops_does_not_hold_an_upload() {
        let (mut messages, mut server) = connected();
        let flood = [header(1, 2), b"{}".to_vec()].concat().repeat(2000);
        let mut reads = server.try_clone().unwrap();
        let floods = std::thread::spawn(move || while server.write_all(&flood).is_ok() {});
        let takes = std::thread::spawn(move || {
            let mut buffer = [0; 1 << 16];
            while reads.read(&mut buffer).is_ok_and(|count| count > 0) {}
        });
        let (written, is_written) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            for _ in 0..10 {
                match messages.write(&[0; FIRST_BYTES]) {
                    Ok(count) => assert!(count > 0),
                    Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
                }
            }
            written.send(()).unwrap();
        });
        let is_written = is_written.recv_timeout(Duration::from_secs(10));
        assert_eq!(is_written, Ok(()), "held by what it is sent");
        floods.join().unwrap();
        takes.join().unwrap();
    }
}
