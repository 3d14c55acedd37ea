//! One TCP connection and what is said on it, each part timed: connecting, TLS, the first byte.
//! It is reset at its end, so that nothing half open stays behind.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plumb_model::protocol::Protocol;
use plumb_model::results::TimestampSource;
use plumb_net::egress::Outlet;
use plumb_net::tcp::{ConnectError, TcpOptions, abort_on_close, connect, tcp_info};
use plumb_wire::certificate;
use plumb_wire::http_head::{Head, MAX_HEAD_BYTES, head_request};
use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;

use crate::ping::plan::{Plan, bare_host};
use crate::root_store::{Trust, disbelief};

/// Of a banner so many bytes are kept.
const MAX_BANNER_BYTES: usize = 512;

/// What is said on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Talk {
    /// The far end as the user typed it, which the server is asked for.
    pub host: String,
    /// To begin with TLS, and whose certificates to believe then.
    pub tls: Option<Trust>,
    /// Then ask for the head of this page; `None` to say nothing.
    pub path: Option<String>,
    /// Where nothing is asked: how long to wait for what the server says by itself.
    pub listen: Duration,
    /// DSCP of the packets (RFC 2474).
    pub dscp: Option<u8>,
    /// By which way they leave this host.
    pub outlet: Outlet,
}

impl Talk {
    /// What the probes of a plan say whose probes are connections.
    pub(crate) fn of(plan: &Plan) -> Self {
        let http = plan.protocol != Protocol::Tcp;
        Self {
            host: plan.name.clone(),
            tls: plan.trust.clone(),
            path: http.then(|| plan.ask.clone().unwrap_or_else(|| "/".to_owned())),
            listen: Duration::ZERO,
            dscp: plan.dscp,
            outlet: plan.outlet.clone(),
        }
    }

    /// The name or address that TLS asks for: which interface leads there is this host's affair
    /// (RFC 4007).
    fn server(&self) -> &str {
        let host = bare_host(&self.host);
        host.split_once('%').map_or(host, |(address, _)| address)
    }

    /// The same as HTTP writes it (RFC 3986 section 3.2.2).
    fn http_host(&self) -> Cow<'_, str> {
        let server = self.server();
        match server.contains(':') {
            true => format!("[{server}]").into(),
            false => server.into(),
        }
    }

    /// Whether the server is asked for something, so that a connection alone is no answer.
    pub(crate) fn asks(&self) -> bool {
        self.path.is_some()
    }
}

/// What was seen of a connection.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// From SYN to established.
    pub connect: Duration,
    /// Who timed that: the kernel, unless the SYN had to be sent again.
    pub connect_stamps: TimestampSource,
    /// Whether the SYN was sent more than once, so that the time is not one round trip.
    pub syn_again: bool,
    pub local: Option<SocketAddr>,
    /// The TLS handshake, if there was one.
    pub tls: Option<TlsSeen>,
    /// From the request, or where nothing was asked from the connection, to the first byte.
    pub first_byte: Option<Duration>,
    /// The answer's head, where it was one.
    pub head: Option<Head>,
    /// The text that the server sent unasked.
    pub banner: Option<String>,
    /// Where nothing was asked: how long after that the server ended the connection without a word.
    pub closed: Option<Duration>,
    /// Why it ended before all was seen.
    pub error: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSeen {
    /// How long it took.
    pub handshake: Duration,
    pub version: String,
    /// The cipher suite, by its IANA name.
    pub cipher_suite: String,
    /// The names that the certificate is for.
    pub names: Vec<String>,
    /// When the certificate ends, s since 1970; `None` where that cannot be read.
    pub valid_until_s: Option<i64>,
}

/// Why there was no connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoConnection {
    /// Nothing listens there: a reset came after that time.
    Refused(Duration),
    NoAnswer,
    /// A router, or this host, reported that there is no route, or that it is forbidden.
    Unreachable(String),
    /// Our own machine could not.
    Local(String),
}

/// Connects, says what is to be said, and resets the connection.
///
/// # Errors
/// When there is no connection within `timeout`; what fails later is in the exchange.
pub fn exchange(
    address: SocketAddr,
    talk: &Talk,
    timeout: Duration,
) -> Result<Exchange, NoConnection> {
    let options = TcpOptions {
        no_delay: true,
        dscp: talk.dscp,
        outlet: talk.outlet.clone(),
        ..TcpOptions::default()
    };
    let begun = Instant::now();
    let stream = match connect(address, timeout, &options) {
        Ok(stream) => stream,
        Err(ConnectError::Refused) => return Err(NoConnection::Refused(begun.elapsed())),
        Err(ConnectError::TimedOut) => return Err(NoConnection::NoAnswer),
        Err(ConnectError::Unreachable(error)) => {
            return Err(NoConnection::Unreachable(error.to_string()));
        }
        Err(error @ ConnectError::NoPort) => {
            return Err(NoConnection::Local(error.to_string()));
        }
        Err(ConnectError::Other(error)) => return Err(other(&error)),
    };
    let by_clock = begun.elapsed();
    let _ = abort_on_close(&stream);
    let info = tcp_info(&stream).ok();
    let syn_again = info.as_ref().is_some_and(|info| info.total_retransmits > 0);
    // The only round trip that the kernel has seen so far is the one of the SYN.
    let by_kernel = info
        .filter(|info| info.srtt_us > 0 && !syn_again)
        .map(|info| Duration::from_micros(info.srtt_us.into()));
    let mut seen = Exchange {
        connect: by_kernel.unwrap_or(by_clock),
        connect_stamps: match by_kernel {
            Some(_) => TimestampSource::Kernel,
            None => TimestampSource::User,
        },
        syn_again,
        local: stream.local_addr().ok(),
        tls: None,
        first_byte: None,
        head: None,
        banner: None,
        closed: None,
        error: None,
    };
    if let Err(error) = converse(stream, talk, begun + timeout, &mut seen) {
        seen.error = Some(error);
    }
    Ok(seen)
}

/// EACCES and EPERM come from a firewall's or a route's prohibition.
fn other(error: &io::Error) -> NoConnection {
    match error.kind() {
        io::ErrorKind::PermissionDenied => NoConnection::Unreachable(error.to_string()),
        _ => NoConnection::Local(error.to_string()),
    }
}

fn converse(
    mut stream: TcpStream,
    talk: &Talk,
    deadline: Instant,
    seen: &mut Exchange,
) -> Result<(), String> {
    let Some(trust) = &talk.tls else {
        return speak(&mut stream, None, talk, deadline, seen);
    };
    let begun = Instant::now();
    let mut session = session(talk.server(), trust)?;
    while session.is_handshaking() {
        allow_until(&stream, deadline)?;
        session
            .complete_io(&mut stream)
            .map_err(|error| format!("the TLS handshake failed: {}", in_words(&error)))?;
    }
    let own = session.peer_certificates().and_then(|chain| chain.first());
    seen.tls = Some(TlsSeen {
        handshake: begun.elapsed(),
        version: session
            .protocol_version()
            .map_or_else(String::new, |version| {
                format!("{version:?}").replace("TLSv1_", "TLS 1.")
            }),
        cipher_suite: session
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str())
            .unwrap_or_default()
            .to_owned(),
        names: own
            .map(|der| certificate::dns_names(der))
            .unwrap_or_default(),
        valid_until_s: own.and_then(|der| certificate::valid_until_s(der)),
    });
    speak(&mut stream, Some(&mut session), talk, deadline, seen)
}

fn speak(
    stream: &mut TcpStream,
    mut session: Option<&mut ClientConnection>,
    talk: &Talk,
    deadline: Instant,
    seen: &mut Exchange,
) -> Result<(), String> {
    let deadline = match &talk.path {
        Some(_) => deadline,
        None if talk.listen.is_zero() => return Ok(()),
        None => deadline.min(Instant::now() + talk.listen),
    };
    let asked = Instant::now();
    if let Some(path) = &talk.path {
        let request = head_request(&talk.http_host(), path);
        let written = match &mut session {
            Some(session) => rustls::Stream::new(*session, stream).write_all(&request),
            None => stream.write_all(&request),
        };
        written.map_err(|error| format!("the request could not be sent: {}", in_words(&error)))?;
    }
    let mut bytes = Vec::new();
    let mut buffer = [0; 2048];
    loop {
        if allow_until(stream, deadline).is_err() {
            break;
        }
        let read = match &mut session {
            Some(session) => rustls::Stream::new(*session, stream).read(&mut buffer),
            None => stream.read(&mut buffer),
        };
        let count = match read {
            Ok(0) => {
                seen.closed = Some(asked.elapsed());
                break;
            }
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // Time is up, or the connection ended; what came before counts.
            Err(error) => {
                let waiting = [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut];
                seen.closed = (!waiting.contains(&error.kind())).then(|| asked.elapsed());
                break;
            }
        };
        seen.first_byte.get_or_insert_with(|| asked.elapsed());
        bytes.extend_from_slice(buffer.get(..count).unwrap_or_default());
        let whole = bytes.windows(4).any(|w| w == b"\r\n\r\n");
        if talk.path.is_none() || whole || bytes.len() > MAX_HEAD_BYTES {
            break;
        }
    }
    if talk.path.is_none() {
        seen.closed = seen.closed.filter(|_| bytes.is_empty());
        bytes.truncate(MAX_BANNER_BYTES);
        let text = String::from_utf8_lossy(&bytes).trim().to_owned();
        seen.banner = (!text.is_empty()).then_some(text);
        return Ok(());
    }
    seen.closed = None;
    seen.head = Head::parse(&bytes);
    match (&seen.head, seen.first_byte) {
        (Some(_), _) => Ok(()),
        (None, Some(_)) => Err("what came is not HTTP/1".to_owned()),
        (None, None) => Err("no answer to the request".to_owned()),
    }
}

/// Lets reads and writes of a socket take until then; an error when that is now.
pub(crate) fn allow_until(stream: &TcpStream, deadline: Instant) -> Result<(), String> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return Err("time is up".to_owned());
    }
    let failed = |error: io::Error| error.to_string();
    stream.set_read_timeout(Some(left)).map_err(failed)?;
    stream.set_write_timeout(Some(left)).map_err(failed)
}

pub(crate) fn in_words(error: &io::Error) -> String {
    let tls = error.get_ref().and_then(|source| source.downcast_ref());
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        _ => tls.and_then(disbelief).unwrap_or_else(|| error.to_string()),
    }
}

pub(crate) fn session(host: &str, trust: &Trust) -> Result<ClientConnection, String> {
    let name = ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
    ClientConnection::new(trust.config(), name).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;
    use std::thread;

    fn talk(path: Option<&str>, listen_ms: u64) -> Talk {
        Talk {
            host: "localhost".to_owned(),
            tls: None,
            path: path.map(str::to_owned),
            listen: Duration::from_millis(listen_ms),
            dscp: None,
            outlet: Outlet::default(),
        }
    }

    /// A server that says this to one client, after it has read something where it is to.
    fn server(
        reads: bool,
        says: &'static [u8],
    ) -> (SocketAddr, thread::JoinHandle<io::Result<usize>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut buffer = [0; 1024];
            if reads {
                assert!(stream.read(&mut buffer).unwrap() > 0);
            }
            stream.write_all(says).unwrap();
            // The end of the connection.
            stream.read(&mut buffer)
        });
        (address, thread)
    }

    const LONG: Duration = Duration::from_secs(5);

    #[test]
    fn a_banner_a_head_and_silence_are_told_apart_and_the_connection_is_reset() {
        let (address, thread) = server(false, b"SSH-2.0-test\r\n");
        let seen = exchange(address, &talk(None, 2000), LONG).unwrap();
        assert_eq!(seen.banner.as_deref(), Some("SSH-2.0-test"));
        assert!(seen.first_byte.is_some() && seen.connect_stamps == TimestampSource::Kernel);
        let end = thread.join().unwrap().unwrap_err();
        assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
        let (address, _thread) = server(true, b"HTTP/1.1 204 No\r\nServer: x\r\n\r\n");
        let seen = exchange(address, &talk(Some("/"), 0), LONG).unwrap();
        assert_eq!(seen.head.unwrap().status, 204);
        let (address, _thread) = server(false, b"");
        let seen = exchange(address, &talk(None, 50), LONG).unwrap();
        assert_eq!(
            (seen.banner, seen.first_byte, seen.closed, seen.error),
            (None, None, None, None)
        );
        let (address, _thread) = server(true, b"what?");
        let seen = exchange(address, &talk(Some("/"), 0), Duration::from_millis(300)).unwrap();
        assert!(seen.error.unwrap().contains("not HTTP"));
    }

    #[test]
    fn a_server_that_hangs_up_without_a_word_is_no_silent_one() {
        for (says, hung_up) in [(&b""[..], true), (b"220 ready\r\n", false)] {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let thread = thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                stream.write_all(says).unwrap();
            });
            let seen = exchange(address, &talk(None, 2000), LONG).unwrap();
            assert_eq!(seen.closed.is_some(), hung_up, "{seen:?}");
            assert_eq!(seen.banner.is_some(), !hung_up);
            thread.join().unwrap();
        }
    }

    #[test]
    fn a_closed_port_refuses() {
        // Discard (RFC 863), where nothing listens and which no program gets that asks for any port.
        let closed = SocketAddr::from(([127, 0, 0, 1], 9));
        let refused = exchange(closed, &talk(None, 0), LONG);
        assert!(
            matches!(refused, Err(NoConnection::Refused(_))),
            "{refused:?}"
        );
    }

    #[test]
    fn a_server_is_asked_for_by_the_host_alone_however_it_was_typed() {
        for (typed, server, http_host) in [
            ("server", "server", "server"),
            ("server:8443", "server", "server"),
            ("192.0.2.1:80", "192.0.2.1", "192.0.2.1"),
            ("2001:db8::1", "2001:db8::1", "[2001:db8::1]"),
            ("[2001:db8::1]", "2001:db8::1", "[2001:db8::1]"),
            ("[2001:db8::1]:8443", "2001:db8::1", "[2001:db8::1]"),
            ("fe80::1%eth0", "fe80::1", "[fe80::1]"),
        ] {
            let talk = Talk {
                host: typed.to_owned(),
                ..talk(None, 0)
            };
            assert_eq!((talk.server(), &*talk.http_host()), (server, http_host));
            assert!(session(talk.server(), &Trust::anyone().unwrap()).is_ok());
        }
    }

    #[test]
    fn what_is_no_tls_is_said() {
        let (address, _thread) = server(true, b"no TLS at all, but text");
        let tls = Talk {
            tls: Some(Trust::anyone().unwrap()),
            ..talk(None, 0)
        };
        let seen = exchange(address, &tls, LONG).unwrap();
        assert!(seen.tls.is_none() && seen.error.unwrap().contains("TLS handshake failed"));
    }
}
