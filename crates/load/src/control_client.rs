//! The client's side of a control connection to the native responder: connecting, heartbeats,
//! and the messages of the far end. What a phase is made of is in [`crate::phase`].

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use plumb_net::egress::Outlet;
use plumb_net::tcp::{self, ConnectError, TcpOptions};
use plumb_wire::native::control::report::clip;
use plumb_wire::native::control::{ClientMessage, ErrorCode, Hex, Refusal, ServerMessage, Welcome};
use plumb_wire::native::key::{Key, NONCE_BYTES, Purpose};
use plumb_wire::native::spec::{
    HEARTBEAT_INTERVAL, MAX_CLIENT_FRAME_BYTES, MAX_FIRST_FRAME_BYTES, MAX_SERVER_FRAME_BYTES,
    SILENCE_TIMEOUT, VERSION,
};

use crate::frames::{LinkError, read_frame, read_frame_until, write_frame};
use crate::life::Life;

/// Messages that wait for [`Client::run_phase`]: between phases there are none, and during the
/// report of one the reader waits for it to catch up.
const WAITING_MESSAGES: usize = 64;

/// Longest wait for the answer to a message while heartbeats are answered.
pub(crate) const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// How often a caller hears that a responder serves others first.
const TOLD_EVERY: Duration = Duration::from_secs(10);

/// How a client presents itself to a responder.
#[derive(Debug, Clone)]
pub struct Caller {
    /// For how long it waits for a place, and for its turn with each phase, where the responder serves others first; a responder
    /// that would take longer refuses at once, and reports when to try again.
    pub longest: Duration,
    /// Is shown, at once and every ten seconds, the name of the responder and how it waits.
    pub told: fn(&str, Waiting),
    /// What it proves to have where the responder asks for a key.
    pub key: Option<Key>,
}

/// What a responder says of those whom it serves first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waiting {
    pub ahead: u32,
    /// In how much time it is this client's turn, as far as that is known.
    pub after: Option<Duration>,
}

impl Caller {
    /// It does not wait, and has no key.
    pub const PLAIN: Self = Self {
        longest: Duration::ZERO,
        told: |_, _| (),
        key: None,
    };
}

/// A wait for a turn at the responder.
pub(crate) struct Wait<'a> {
    name: &'a str,
    told: fn(&str, Waiting),
    /// When it ends whatever the responder says.
    last: Instant,
    tell: Instant,
}

impl<'a> Wait<'a> {
    pub(crate) fn begin(name: &'a str, caller: &Caller, timeout: Duration) -> Self {
        let now = Instant::now();
        Self {
            name,
            told: caller.told,
            last: now + caller.longest + timeout,
            tell: now,
        }
    }

    /// The responder says that the wait continues. Returns until when its next message must be there.
    pub(crate) fn goes_on(
        &mut self,
        ahead: u32,
        after_s: Option<f64>,
        within: Duration,
    ) -> Instant {
        let now = Instant::now();
        if now >= self.tell {
            self.tell = now + TOLD_EVERY;
            let after = after_s.and_then(|after_s| Duration::try_from_secs_f64(after_s).ok());
            (self.told)(self.name, Waiting { ahead, after });
        }
        (now + within).min(self.last)
    }
}

/// Why the far end could not be measured with. Each begins with the name that the user typed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The port is closed.
    #[error(
        "{name}: nothing listens on TCP port {port} (connection refused): start 'plumb serve' there, or name its port; 'plumb explain far-end' shows what can be had without it"
    )]
    Refused { name: String, port: u16 },
    /// The port did not answer.
    #[error(
        "{name}: TCP port {port} did not answer within {within:?}: a firewall may drop it; let it through, or check the address; 'plumb explain far-end' shows what can be had without a responder"
    )]
    TimedOut {
        name: String,
        port: u16,
        /// How long it was waited for.
        within: Duration,
    },
    /// There is no way to it.
    #[error(
        "{name}: TCP port {port} is not reachable ({why}): check the address and this host's routes"
    )]
    Unreachable {
        name: String,
        port: u16,
        /// What the system said.
        why: String,
    },
    /// The port accepts connections, and nothing answers on them.
    #[error(
        "{name}: TCP port {port} accepts connections but says nothing: it is not 'plumb serve', or it hangs; check what listens there"
    )]
    Mute { name: String, port: u16 },
    /// What listens there speaks something else.
    #[error("{name}: what listens on TCP port {port} is not 'plumb serve' ({why}): check the port")]
    NotPlumb {
        name: String,
        port: u16,
        why: String,
    },
    /// What listens there does not speak the protocol that was chosen.
    #[error("{name}: what listens on TCP port {port} is not an {protocol} server: check the port")]
    NotProtocol {
        name: String,
        port: u16,
        protocol: &'static str,
    },
    /// A web server that does not answer as its protocol has it.
    #[error("{name}: {why}")]
    Web { name: String, why: String },
    /// A web server that shows a certificate which no trusted authority signed.
    #[error(
        "{name}: {why}: give the authority that signed its certificate (--ca), or take any certificate (--insecure)"
    )]
    Distrusted { name: String, why: String },
    /// The far end's protocol has no such test.
    #[error(
        "{name}: {protocol} has no {what}: leave that option out, or run 'plumb serve' at the far end"
    )]
    NotInProtocol {
        name: String,
        protocol: &'static str,
        what: &'static str,
    },
    /// The responder serves this host's address with a key only.
    #[error(
        "{name}: the responder asks for a key: give the one that 'plumb serve' printed there, by --key or in PLUMB_KEY"
    )]
    NeedsKey { name: String },
    /// The responder ended the session and said why.
    #[error("{name}: the responder ended the session: {message}")]
    Ended {
        name: String,
        code: ErrorCode,
        message: String,
    },
    /// The responder went away.
    #[error(
        "{name}: lost the responder: {why}; look whether 'plumb serve' still runs there and the path is up"
    )]
    Lost { name: String, why: String },
    /// The responder does not grant the phase.
    #[error("{name}: the responder refused the load: {message}")]
    PhaseRefused {
        name: String,
        reason: Refusal,
        message: String,
    },
    /// The responder does not trace the reverse path.
    #[error("{name}: the responder does not trace the reverse path: {message}")]
    TraceRefused {
        name: String,
        reason: Refusal,
        message: String,
    },
    /// The responder did not report the reverse path in time.
    #[error("{name}: the responder did not report the reverse path within {within:?}: try again")]
    TraceLate {
        name: String,
        /// How long it was waited for.
        within: Duration,
    },
    /// A data connection could not be opened.
    #[error(
        "{name}: stream {stream} could not be opened ({why}), though the control connection was: ask for fewer streams, or look for a firewall or connection limit on the path"
    )]
    Stream {
        name: String,
        /// Number of the stream.
        stream: u32,
        /// What the system said.
        why: String,
        /// Whether nothing came back for as long as that is waited for.
        is_silence: bool,
    },
    /// This host could not do its part.
    #[error("{name}: this host could not run the load ({why}): ask for fewer streams")]
    Local {
        name: String,
        /// What the system said.
        why: String,
    },
    /// The caller cancelled before the load ran.
    #[error("{name}: cancelled before the load began")]
    Cancelled { name: String },
}

impl ClientError {
    /// Whether the data connections of a phase did not come about, though the session continues: the path loses most
    /// packets, or passes no further connection.
    pub fn is_without_connections(&self) -> bool {
        matches!(
            self,
            Self::Stream {
                is_silence: true,
                ..
            } | Self::PhaseRefused {
                reason: Refusal::NotAttached,
                ..
            }
        )
    }
}

/// A session with a native responder. Its heartbeats go on until it is dropped, which takes
/// two threads: one writes them, one reads what comes.
#[derive(Debug)]
pub struct Client {
    pub(crate) name: String,
    pub(crate) address: SocketAddr,
    /// By which way its packets leave this host.
    pub(crate) outlet: Outlet,
    pub(crate) caller: Caller,
    pub(crate) next_phase: u32,
    welcome: Welcome,
    link: Arc<Link>,
    messages: Option<Receiver<Result<ServerMessage, LinkError>>>,
    heart: Option<Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// The socket; whole frames are written under the lock.
#[derive(Debug)]
struct Link {
    socket: TcpStream,
    writing: Mutex<()>,
    life: Life,
}

impl Link {
    fn send(&self, message: &ClientMessage) -> Result<(), LinkError> {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        write_frame(
            &self.socket,
            message,
            MAX_CLIENT_FRAME_BYTES,
            Instant::now() + SILENCE_TIMEOUT,
        )
    }
}

impl Client {
    /// Connects to the responder at `address`, which the user calls `name`, and greets it, each
    /// within `timeout`.
    ///
    /// # Errors
    /// When there is no responder of this version.
    pub fn connect(
        name: &str,
        address: SocketAddr,
        timeout: Duration,
    ) -> Result<Self, ClientError> {
        Self::connect_by(&Outlet::default(), name, address, timeout)
    }

    /// The same by a way out of this host that the caller chooses; phases of load do not take it.
    ///
    /// # Errors
    /// As [`Client::connect`], and when there is no such way.
    pub fn connect_by(
        outlet: &Outlet,
        name: &str,
        address: SocketAddr,
        timeout: Duration,
    ) -> Result<Self, ClientError> {
        Self::connect_in_turn(outlet, name, address, timeout, Caller::PLAIN)
    }

    /// The same for a client that waits where the responder serves others first, or has a key.
    ///
    /// # Errors
    /// As [`Client::connect_by`], and when it would have to wait for longer.
    pub fn connect_in_turn(
        outlet: &Outlet,
        name: &str,
        address: SocketAddr,
        timeout: Duration,
        caller: Caller,
    ) -> Result<Self, ClientError> {
        let options = TcpOptions {
            outlet: outlet.clone(),
            ..TcpOptions::default()
        };
        Self::connect_as(&options, name, address, timeout, caller)
    }

    /// A session of its own with the same responder, over a connection whose segments have no more payload than that
    /// in bytes, both ways: for a path that swallows larger packets.
    ///
    /// # Errors
    /// As [`Client::connect`].
    pub fn with_segments_of(&self, mss_bytes: u16, timeout: Duration) -> Result<Self, ClientError> {
        let options = TcpOptions {
            mss_bytes: Some(mss_bytes),
            outlet: self.outlet.clone(),
            ..TcpOptions::default()
        };
        let caller = self.caller.clone();
        Self::connect_as(&options, &self.name, self.address, timeout, caller)
    }

    fn connect_as(
        options: &TcpOptions,
        name: &str,
        address: SocketAddr,
        timeout: Duration,
        caller: Caller,
    ) -> Result<Self, ClientError> {
        let (name, port) = (name.to_owned(), address.port());
        let socket = match tcp::connect(address, timeout, options) {
            Ok(socket) => socket,
            Err(ConnectError::Refused) => return Err(ClientError::Refused { name, port }),
            Err(ConnectError::TimedOut) => {
                return Err(ClientError::TimedOut {
                    name,
                    port,
                    within: timeout,
                });
            }
            Err(error @ ConnectError::NoPort) => {
                return Err(ClientError::Local {
                    name,
                    why: error.to_string(),
                });
            }
            Err(error) => {
                return Err(ClientError::Unreachable {
                    name,
                    port,
                    why: error.to_string(),
                });
            }
        };
        let wait = Wait::begin(&name, &caller, timeout);
        let welcome = greet(&socket, timeout, wait, &caller);
        let welcome = welcome.map_err(|error| error.named(&name, port))?;
        let mut client = Self::start(name, address, options.outlet.clone(), socket, welcome)?;
        client.caller = caller;
        Ok(client)
    }

    /// What the responder reported of itself.
    pub fn welcome(&self) -> &Welcome {
        &self.welcome
    }

    /// Whom it speaks to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where this end of the control connection is.
    ///
    /// # Errors
    /// Errors of the kernel.
    pub fn local_address(&self) -> std::io::Result<SocketAddr> {
        self.link.socket.local_addr()
    }

    fn start(
        name: String,
        address: SocketAddr,
        outlet: Outlet,
        socket: TcpStream,
        welcome: Welcome,
    ) -> Result<Self, ClientError> {
        let link = Arc::new(Link {
            socket,
            writing: Mutex::new(()),
            life: Life::begin(),
        });
        let (incoming, messages) = mpsc::sync_channel(WAITING_MESSAGES);
        let (heart, stopped) = mpsc::channel();
        let mut client = Self {
            name,
            address,
            outlet,
            caller: Caller::PLAIN,
            next_phase: 1,
            welcome,
            link: Arc::clone(&link),
            messages: Some(messages),
            heart: Some(heart),
            threads: Vec::new(),
        };
        let failed = |error: std::io::Error| ClientError::Local {
            name: client.name.clone(),
            why: error.to_string(),
        };
        let reading = Arc::clone(&link);
        let reader = Builder::new()
            .name("plumb-control".to_owned())
            .spawn(move || read_messages(&reading, &incoming));
        let reader = reader.map_err(failed)?;
        let heart = Builder::new()
            .name("plumb-heart".to_owned())
            .spawn(move || beat(&link, &stopped));
        let heart = heart.map_err(failed);
        // From here on dropping the client ends what was started.
        client.threads.push(reader);
        client.threads.push(heart?);
        Ok(client)
    }

    pub(crate) fn send(&self, message: &ClientMessage) -> Result<(), ClientError> {
        // The reader knows better why the connection failed, if it does.
        self.link.send(message).map_err(|error| {
            match self.next_message(Duration::from_millis(10)) {
                Err(told) => told,
                Ok(_) => self.lost(&error),
            }
        })
    }

    /// The next message, if one comes within `wait`.
    pub(crate) fn next_message(
        &self,
        wait: Duration,
    ) -> Result<Option<ServerMessage>, ClientError> {
        let Some(messages) = &self.messages else {
            return Ok(None);
        };
        match messages.recv_timeout(wait) {
            Ok(Ok(ServerMessage::Error { code, message })) => Err(ClientError::Ended {
                name: self.name.clone(),
                code,
                message: clip(message),
            }),
            Ok(Ok(message)) => Ok(Some(message)),
            Ok(Err(error)) => Err(self.lost(&error)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            // The reader ends once it has reported why.
            Err(RecvTimeoutError::Disconnected) => Err(self.lost(&LinkError::Closed)),
        }
    }

    pub(crate) fn lost(&self, error: &LinkError) -> ClientError {
        let why = match error {
            LinkError::Silent => format!("it said nothing for {} s", SILENCE_TIMEOUT.as_secs()),
            error => error.to_string(),
        };
        ClientError::Lost {
            name: self.name.clone(),
            why,
        }
    }

    /// So much payload of a phase has been carried by now, which shows that the far end is there.
    pub(crate) fn carried(&self, bytes: u64) {
        self.link.life.carried(bytes);
    }

    pub(crate) fn protocol_error(&self, why: &str) -> ClientError {
        ClientError::NotPlumb {
            name: self.name.clone(),
            port: self.address.port(),
            why: why.to_owned(),
        }
    }
}

impl Drop for Client {
    /// Ends the session and both threads, at once.
    fn drop(&mut self) {
        self.heart = None;
        self.messages = None;
        let _ = self.link.socket.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Why there was no Welcome.
enum GreetError {
    Link(LinkError),
    Refused(ErrorCode, String),
    NeedsKey,
    Unexpected,
}

impl GreetError {
    fn named(self, name: &str, port: u16) -> ClientError {
        let name = name.to_owned();
        match self {
            Self::Link(LinkError::Silent) => ClientError::Mute { name, port },
            Self::Link(error) => ClientError::NotPlumb {
                name,
                port,
                why: error.to_string(),
            },
            Self::Refused(code, message) => ClientError::Ended {
                name,
                code,
                message,
            },
            Self::NeedsKey => ClientError::NeedsKey { name },
            Self::Unexpected => ClientError::NotPlumb {
                name,
                port,
                why: "it answered out of turn".to_owned(),
            },
        }
    }
}

fn greet(
    socket: &TcpStream,
    timeout: Duration,
    mut wait: Wait<'_>,
    caller: &Caller,
) -> Result<Welcome, GreetError> {
    let mut deadline = Instant::now() + timeout;
    let waits_s = u32::try_from(caller.longest.as_secs()).unwrap_or(u32::MAX);
    let hello = ClientMessage::Hello {
        version: VERSION,
        plumb: env!("CARGO_PKG_VERSION").to_owned(),
        waits_s: (waits_s > 0).then_some(waits_s),
        unpacks: true,
    };
    let greet = || -> Result<(), LinkError> {
        socket.set_nodelay(true)?;
        // A kernel without it doubles its timeouts, as for any connection.
        let _ = tcp::retry_evenly(socket);
        write_frame(socket, &hello, MAX_FIRST_FRAME_BYTES, deadline)
    };
    greet().map_err(GreetError::Link)?;
    loop {
        match read_frame(socket, MAX_SERVER_FRAME_BYTES, deadline).map_err(GreetError::Link)? {
            ServerMessage::Welcome(welcome) => return Ok(*welcome),
            ServerMessage::Challenge { nonce: challenge } => {
                let key = caller.key.as_ref().ok_or(GreetError::NeedsKey)?;
                let proof = proof(key, challenge).map_err(GreetError::Link)?;
                let sent = write_frame(socket, &proof, MAX_FIRST_FRAME_BYTES, deadline);
                sent.map_err(GreetError::Link)?;
            }
            ServerMessage::Queued { ahead, after_s } => {
                deadline = wait.goes_on(ahead, after_s, SILENCE_TIMEOUT);
            }
            ServerMessage::Error { code, message } => {
                return Err(GreetError::Refused(code, clip(message)));
            }
            _ => return Err(GreetError::Unexpected),
        }
    }
}

/// The answer to a challenge.
fn proof(key: &Key, challenge: Hex<NONCE_BYTES>) -> Result<ClientMessage, LinkError> {
    let mut nonce = Hex([0; NONCE_BYTES]);
    getrandom::fill(&mut nonce.0).map_err(std::io::Error::from)?;
    let code = key.prove(Purpose::Session, challenge, nonce);
    Ok(ClientMessage::Proof { nonce, code })
}

/// Reads messages until the connection ends, fails, or is silent for [`SILENCE_TIMEOUT`] while no payload moves either, and
/// ends then at once. Pongs only count as a sign of life.
fn read_messages(link: &Link, incoming: &SyncSender<Result<ServerMessage, LinkError>>) {
    loop {
        let heard = Instant::now();
        let deadline = || link.life.silent_at(heard, SILENCE_TIMEOUT);
        match read_frame_until(&link.socket, MAX_SERVER_FRAME_BYTES, &deadline) {
            Ok(ServerMessage::Pong { .. }) => (),
            Ok(message) => {
                if incoming.send(Ok(message)).is_err() {
                    return;
                }
            }
            Err(error) => {
                let _ = incoming.send(Err(error));
                return;
            }
        }
    }
}

/// Writes a Ping every [`HEARTBEAT_INTERVAL`] until the client is dropped, at once then, or
/// the connection fails.
fn beat(link: &Link, stopped: &Receiver<()>) {
    let mut id = 0;
    while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(HEARTBEAT_INTERVAL) {
        if link.send(&ClientMessage::Ping { id }).is_err() {
            return;
        }
        id += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_the_path_lost_are_told_from_those_that_this_host_could_not_make() {
        let refused = |reason| ClientError::PhaseRefused {
            name: "server".to_owned(),
            reason,
            message: String::new(),
        };
        let stream = |is_silence| ClientError::Stream {
            name: "server".to_owned(),
            stream: 0,
            why: "no free port".to_owned(),
            is_silence,
        };
        let path = [refused(Refusal::NotAttached), stream(true)];
        let host = [refused(Refusal::Failed), stream(false)];
        assert!(path.iter().all(ClientError::is_without_connections));
        assert!(!host.iter().any(ClientError::is_without_connections));
    }
}
