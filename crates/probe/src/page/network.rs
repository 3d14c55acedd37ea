//! The sockets of a page load. Names are looked up and connections made by a thread each, which ends with what it does;
//! TLS and what comes after it pass through sockets that never wait, in the caller's thread.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use plumb_model::results::page_load::{HttpVersion, PageLoadResult};
use plumb_net::clock::monotonic_ns;
use plumb_net::tcp::{TcpOptions, abort_on_close, connect, tcp_info};
use plumb_net::wait;
use plumb_wire::url::{Origin, Scheme};
use rustls::client::ClientConnection;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, HandshakeKind, ProtocolVersion};

use super::loader::{Action, Loader};
use super::origin::{Established, Span, TlsDone};
use super::plan::{PageError, PagePlan};
use crate::root_store::disbelief;

/// How often a request to stop is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long one address may take to connect: a lost SYN is sent again after 1 s and 3 s (RFC 6298, and again).
const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// What is read from a socket at once, in bytes, and how often before the others have their turn.
const READ_BYTES: usize = 64 * 1024;
const READS: usize = 16;

/// What a thread reports.
enum Report {
    Resolved {
        server: usize,
        found: Result<Vec<SocketAddr>, String>,
        span: Span,
    },
    Connected {
        connection: usize,
        stream: TcpStream,
        address: SocketAddr,
        span: Span,
        rtt_s: Option<f64>,
    },
    NotConnected {
        connection: usize,
        why: String,
    },
}

/// A socket, with TLS or without.
struct Socket {
    connection: usize,
    stream: TcpStream,
    tls: Option<ClientConnection>,
    /// What is known of it before it is handed to the loader, while TLS is begun.
    opening: Option<Opening>,
    /// What TCP has not taken yet, without TLS.
    unsent: Vec<u8>,
    /// Requests are under way of which the loader does not know that they left.
    sending: bool,
}

struct Opening {
    address: SocketAddr,
    connect: Span,
    rtt_s: Option<f64>,
    tls_begun_ns: u64,
}

struct Network<'a> {
    plan: &'a PagePlan,
    deadline_ns: u64,
    tls: Arc<ClientConfig>,
    sockets: Vec<Socket>,
    reports: Receiver<Report>,
    reporter: Reporter,
    awoken: UnixStream,
}

/// What threads report by: a channel, and a byte that ends the wait for sockets.
struct Reporter {
    sender: Sender<Report>,
    wake: Arc<UnixStream>,
}

impl Reporter {
    fn another(&self) -> Self {
        Self {
            sender: self.sender.clone(),
            wake: Arc::clone(&self.wake),
        }
    }

    /// The receiver may be gone, which does no harm.
    fn report(&self, report: Report) {
        let _ = self.sender.send(report);
        let _ = (&*self.wake).write(&[0]);
    }
}

/// Loads the page once. Ends when everything has come or failed, within the plan's time, or within a tenth of a second of
/// `stop`.
///
/// # Errors
/// When this host cannot begin; whatever fails later is in the result.
pub fn load(plan: &PagePlan, stop: &AtomicBool) -> Result<PageLoadResult, PageError> {
    let failed = |why| PageError::Local {
        what: "a pair of sockets",
        why,
    };
    let (awoken, wake) = UnixStream::pair().map_err(failed)?;
    awoken.set_nonblocking(true).map_err(failed)?;
    wake.set_nonblocking(true).map_err(failed)?;
    let (sender, reports) = channel();
    let mut tls = ClientConfig::clone(&plan.trust.config());
    tls.alpn_protocols = match plan.version {
        Some(version) => vec![version.name().into()],
        None => [HttpVersion::Http2, HttpVersion::Http1]
            .map(|v| v.name().into())
            .to_vec(),
    };
    let begun_ns = monotonic_ns();
    let mut network = Network {
        plan,
        deadline_ns: begun_ns + nanoseconds(plan.limits.time),
        tls: Arc::new(tls),
        sockets: Vec::new(),
        reports,
        reporter: Reporter {
            sender,
            wake: Arc::new(wake),
        },
        awoken,
    };
    let mut loader = Loader::new(plan, begun_ns);
    loop {
        network.act(&mut loader);
        if loader.is_done() {
            break;
        }
        let now = monotonic_ns();
        if stop.load(Ordering::Relaxed) {
            loader.give_up("stopped before it was complete");
            break;
        }
        if now >= network.deadline_ns {
            let most = plan.limits.time.as_secs_f64();
            loader.give_up(&format!("not complete within {most} s"));
            break;
        }
        let until = network.deadline_ns.min(now + nanoseconds(LOOK_EVERY));
        network.wait(until).map_err(|why| PageError::Local {
            what: "waiting for sockets",
            why,
        })?;
        network.hear(&mut loader);
        network.read(&mut loader);
    }
    Ok(loader.result())
}

impl Network<'_> {
    /// Does what the loader wants, until it wants nothing more.
    fn act(&mut self, loader: &mut Loader) {
        loop {
            while let Some(action) = loader.next_action() {
                match action {
                    Action::Resolve { server } => {
                        if let Some(origin) = loader.origin(server) {
                            self.resolve(server, origin.clone());
                        }
                    }
                    Action::Connect { connection } => match loader.addresses(connection) {
                        Some((_, addresses)) => self.connect(connection, addresses.to_vec()),
                        None => loader.not_established(connection, "its address is not known"),
                    },
                    Action::Close { connection } => {
                        self.sockets
                            .retain(|socket| socket.connection != connection);
                    }
                }
            }
            if !self.send(loader) {
                return;
            }
        }
    }

    /// It ends within the resolver's own time limits (resolv.conf(5): 5 s for each of the servers, twice).
    fn resolve(&self, server: usize, origin: Origin) {
        let reporter = self.reporter.another();
        let ipv6 = self.plan.ipv6;
        thread::spawn(move || {
            let from_ns = monotonic_ns();
            let found = (origin.host.as_str(), origin.port).to_socket_addrs();
            let to_ns = monotonic_ns();
            let of_version = |address: &SocketAddr| ipv6.is_none_or(|v6| address.is_ipv6() == v6);
            let found = found.map(|all| all.filter(of_version).collect());
            reporter.report(Report::Resolved {
                server,
                found: found.map_err(|error: io::Error| error.to_string()),
                span: Span { from_ns, to_ns },
            });
        });
    }

    /// One address after the other, each within its time and the load's.
    fn connect(&self, connection: usize, addresses: Vec<SocketAddr>) {
        let reporter = self.reporter.another();
        let deadline_ns = self.deadline_ns;
        let options = TcpOptions {
            no_delay: true,
            outlet: self.plan.outlet.clone(),
            ..TcpOptions::default()
        };
        thread::spawn(move || {
            let from_ns = monotonic_ns();
            let mut why = String::new();
            for address in addresses {
                let left = Duration::from_nanos(deadline_ns.saturating_sub(monotonic_ns()));
                if left.is_zero() {
                    break;
                }
                match connect(address, CONNECT_TIMEOUT.min(left), &options) {
                    Ok(stream) => {
                        let to_ns = monotonic_ns();
                        reporter.report(Report::Connected {
                            connection,
                            rtt_s: handshake_rtt_s(&stream),
                            stream,
                            address,
                            span: Span { from_ns, to_ns },
                        });
                        return;
                    }
                    Err(error) => why = format!("{address}: {error}"),
                }
            }
            reporter.report(Report::NotConnected { connection, why });
        });
    }

    fn wait(&self, until_ns: u64) -> io::Result<()> {
        let sockets = self
            .sockets
            .iter()
            .map(|socket| (socket.stream.as_fd(), socket.has_unsent()));
        let awoken = [(self.awoken.as_fd(), false)];
        let all: Vec<(BorrowedFd<'_>, bool)> = sockets.chain(awoken).collect();
        wait::until_ready(&all, until_ns)
    }

    /// What the threads have done.
    fn hear(&mut self, loader: &mut Loader) {
        let mut bytes = [0; 256];
        while (&self.awoken).read(&mut bytes).is_ok_and(|count| count > 0) {}
        while let Ok(report) = self.reports.try_recv() {
            match report {
                Report::Resolved {
                    server,
                    found,
                    span,
                } => loader.resolved(server, found, span),
                Report::NotConnected { connection, why } => {
                    loader.not_established(connection, &why);
                }
                Report::Connected {
                    connection,
                    stream,
                    address,
                    span,
                    rtt_s,
                } => {
                    let opening = Opening {
                        address,
                        connect: span,
                        rtt_s,
                        tls_begun_ns: monotonic_ns(),
                    };
                    if let Err(why) = self.opened(loader, connection, stream, opening) {
                        loader.not_established(connection, &why);
                    }
                }
            }
        }
    }

    fn opened(
        &mut self,
        loader: &mut Loader,
        connection: usize,
        stream: TcpStream,
        opening: Opening,
    ) -> Result<(), String> {
        let Some((origin, _)) = loader.addresses(connection) else {
            return Ok(());
        };
        let _ = abort_on_close(&stream);
        stream
            .set_nonblocking(true)
            .map_err(|error| error.to_string())?;
        let mut socket = Socket {
            connection,
            stream,
            tls: None,
            opening: None,
            unsent: Vec::new(),
            sending: false,
        };
        match origin.scheme {
            Scheme::Http => {
                let version = self.plan.version.unwrap_or(HttpVersion::Http1);
                loader.established(connection, opening.established(version, None));
            }
            Scheme::Https => {
                let name = ServerName::try_from(origin.host.clone());
                let name = name.map_err(|error| error.to_string())?;
                let begun = ClientConnection::new(Arc::clone(&self.tls), name);
                let mut tls = begun.map_err(|error| error.to_string())?;
                // Requests are bounded in number and length.
                tls.set_buffer_limit(None);
                socket.tls = Some(tls);
                socket.opening = Some(opening);
            }
        }
        self.sockets.push(socket);
        Ok(())
    }

    /// Sends what is to be sent; whether the loader heard of anything that may make it want more.
    fn send(&mut self, loader: &mut Loader) -> bool {
        let mut lost = Vec::new();
        for socket in &mut self.sockets {
            let output = loader.take_output(socket.connection);
            socket.sending |= !output.is_empty();
            match socket.send(&output) {
                Ok(()) if socket.sending && !socket.has_unsent() => {
                    socket.sending = false;
                    loader.sent(socket.connection, monotonic_ns());
                }
                Ok(()) => {}
                Err(error) => lost.push((socket.connection, error.to_string())),
            }
        }
        for (connection, why) in &lost {
            self.lost(loader, *connection, Some(why));
        }
        !lost.is_empty()
    }

    fn read(&mut self, loader: &mut Loader) {
        let mut buffer = vec![0; READ_BYTES];
        let mut lost = Vec::new();
        for socket in &mut self.sockets {
            if let Some(end) = socket.read(&mut buffer, loader, self.plan.version) {
                lost.push((socket.connection, end.why));
            }
        }
        for (connection, why) in lost {
            self.lost(loader, connection, why.as_deref());
        }
    }

    /// A connection is over: in order, or for a reason.
    fn lost(&mut self, loader: &mut Loader, connection: usize, why: Option<&str>) {
        let at = self
            .sockets
            .iter()
            .position(|socket| socket.connection == connection);
        let Some(socket) = at.map(|at| self.sockets.swap_remove(at)) else {
            return;
        };
        match socket.opening {
            Some(_) => loader.not_established(
                connection,
                &format!(
                    "the TLS handshake failed: {}",
                    why.unwrap_or("the server ended the connection")
                ),
            ),
            None => loader.ended(connection, why, monotonic_ns()),
        }
    }
}

impl Opening {
    fn established(&self, version: HttpVersion, tls: Option<TlsDone>) -> Established {
        Established {
            address: self.address,
            connect: self.connect,
            rtt_s: self.rtt_s,
            tls,
            version,
        }
    }
}

/// The end of a connection.
struct End {
    why: Option<String>,
}

impl End {
    fn by(error: &io::Error) -> Self {
        let why = match error.kind() {
            // TLS without its farewell ends as TCP does (RFC 8446, section 6.1): HTTP knows whether all has come.
            io::ErrorKind::UnexpectedEof => None,
            _ => Some(error.to_string()),
        };
        Self { why }
    }
}

impl Socket {
    fn has_unsent(&self) -> bool {
        !self.unsent.is_empty() || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    fn send(&mut self, output: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => {
                tls.writer().write_all(output)?;
                while tls.wants_write() {
                    match tls.write_tls(&mut self.stream) {
                        Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                        Ok(_) => {}
                        Err(error) if is_waiting(&error) => break,
                        Err(error) => return Err(error),
                    }
                }
            }
            None => {
                self.unsent.extend_from_slice(output);
                while !self.unsent.is_empty() {
                    match self.stream.write(&self.unsent) {
                        Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                        Ok(count) => drop(self.unsent.drain(..count)),
                        Err(error) if is_waiting(&error) => break,
                        Err(error) => return Err(error),
                    }
                }
            }
        }
        Ok(())
    }

    /// Hands on what has come; the end of the connection where that has come too.
    fn read(
        &mut self,
        buffer: &mut [u8],
        loader: &mut Loader,
        forced: Option<HttpVersion>,
    ) -> Option<End> {
        for _ in 0..READS {
            let Some(tls) = &mut self.tls else {
                match self.stream.read(buffer) {
                    Ok(0) => return Some(End { why: None }),
                    Ok(count) => {
                        let came = buffer.get(..count).unwrap_or_default();
                        loader.received(self.connection, came, monotonic_ns());
                        continue;
                    }
                    Err(error) if is_waiting(&error) => return None,
                    Err(error) => return Some(End::by(&error)),
                }
            };
            let ended = match tls.read_tls(&mut self.stream) {
                Ok(count) => count == 0,
                Err(error) if is_waiting(&error) => return None,
                Err(error) => return Some(End::by(&error)),
            };
            let at_ns = monotonic_ns();
            if let Err(error) = tls.process_new_packets() {
                // The alert, which says the same to the server.
                let _ = tls.write_tls(&mut self.stream);
                let why = disbelief(&error).unwrap_or_else(|| error.to_string());
                return Some(End { why: Some(why) });
            }
            if !tls.is_handshaking()
                && let Some(opening) = self.opening.take()
            {
                let done = handshake(tls, opening.tls_begun_ns, at_ns);
                let version = match tls.alpn_protocol() {
                    Some(name) if name == HttpVersion::Http2.name().as_bytes() => {
                        HttpVersion::Http2
                    }
                    _ => HttpVersion::Http1,
                };
                if forced == Some(HttpVersion::Http2) && version != HttpVersion::Http2 {
                    self.opening = Some(opening);
                    let why = "the server offers no HTTP/2 (ALPN)".to_owned();
                    return Some(End { why: Some(why) });
                }
                loader.established(self.connection, opening.established(version, Some(done)));
            }
            loop {
                match tls.reader().read(buffer) {
                    Ok(0) => return Some(End { why: None }),
                    Ok(count) => {
                        let came = buffer.get(..count).unwrap_or_default();
                        loader.received(self.connection, came, at_ns);
                    }
                    Err(error) if is_waiting(&error) => break,
                    Err(error) => return Some(End::by(&error)),
                }
            }
            if ended {
                return Some(End { why: None });
            }
        }
        None
    }
}

fn handshake(tls: &ClientConnection, from_ns: u64, to_ns: u64) -> TlsDone {
    let version = tls.protocol_version();
    let retried = tls.handshake_kind() == Some(HandshakeKind::FullWithHelloRetryRequest);
    TlsDone {
        handshake: Span { from_ns, to_ns },
        version: version.map_or_else(String::new, |version| {
            format!("{version:?}").replace("TLSv1_", "TLS 1.")
        }),
        round_trips: match version {
            Some(ProtocolVersion::TLSv1_3) => 1 + u64::from(retried),
            _ => 2,
        },
    }
}

/// The round trip of TCP's handshake as the kernel timed it; `None` where the SYN was sent again.
fn handshake_rtt_s(stream: &TcpStream) -> Option<f64> {
    let info = tcp_info(stream).ok()?;
    let timed = info.srtt_us > 0 && info.total_retransmits == 0;
    timed.then(|| f64::from(info.srtt_us) / 1e6)
}

fn is_waiting(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos())
        .unwrap_or(u64::MAX / 2)
        .min(u64::MAX / 2)
}

#[cfg(test)]
mod tests;
