//! TLS 1.3 (RFC 8446) on a data connection, after its preamble.
//!
//! The server makes itself a certificate when it starts and sends its fingerprint on the control connection; the client
//! accepts that one and no other. This is there to measure what encryption costs. It proves that both connections end
//! at the same server, not who the server is: the control connection is not encrypted itself.
//!
//! Every handshake is a full one, since there are no tickets. Encryption is done in this process;
//! the kernel's (kTLS) is not used, and the processor use shows what that costs.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_wire::native::control::Fingerprint;
use plumb_wire::tls::{client, provider};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection,
};

use crate::certificate::SelfSigned;
use crate::frames::{LinkError, remaining};
use crate::framing::Framing;

/// Why a connection did not become TLS.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The certificate has another fingerprint.
    #[error(
        "the certificate shown is not the one that the far end named: something on the path answers in its place"
    )]
    Certificate,
    /// What came is no TLS 1.3.
    #[error("the TLS handshake failed ({0})")]
    Protocol(rustls::Error),
    /// The connection failed, or took too long.
    #[error("the TLS handshake failed: {0}")]
    Link(#[from] LinkError),
    /// A file has no certificate, or no key.
    #[error("not a certificate or its key in PEM ({0})")]
    Pem(pem::Error),
    /// No certificate could be made.
    #[error("cannot make a certificate: the system gives no random numbers")]
    Generate,
}

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        match error {
            rustls::Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure) => {
                Self::Certificate
            }
            error => Self::Protocol(error),
        }
    }
}

impl From<io::Error> for TlsError {
    fn from(error: io::Error) -> Self {
        Self::Link(error.into())
    }
}

/// What a server shows: a key and a certificate, new at every start.
#[derive(Debug, Clone)]
pub struct Identity {
    config: Arc<ServerConfig>,
    fingerprint: Fingerprint,
}

impl Identity {
    /// A new one.
    ///
    /// # Errors
    /// When the machine gives no random numbers.
    pub fn generate() -> Result<Self, TlsError> {
        let made = SelfSigned::generate("plumb").map_err(|_| TlsError::Generate)?;
        let fingerprint = Fingerprint::of(&made.certificate);
        let key = PrivatePkcs8KeyDer::from(made.key);
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![made.certificate.into()], key.into())?;
        config.send_tls13_tickets = 0;
        Ok(Self {
            config: Arc::new(config),
            fingerprint,
        })
    }

    /// A server for any client: a certificate and its chain, and the key of it, as PEM (RFC 7468).
    ///
    /// # Errors
    /// When there is none of the two, or they do not fit.
    pub fn given(certificates: &[u8], key: &[u8]) -> Result<Self, TlsError> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificates)
            .collect::<Result<_, _>>()
            .map_err(TlsError::Pem)?;
        let fingerprint = chain.first().map(|first| Fingerprint::of(first));
        let fingerprint = fingerprint.ok_or(TlsError::Pem(pem::Error::NoItemsFound))?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(TlsError::Pem)?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        Ok(Self {
            config: Arc::new(config),
            fingerprint,
        })
    }

    /// The same for those who name what they speak, in the order in which it is preferred (RFC 7301).
    #[must_use]
    pub fn speaking(&self, protocols: &[&[u8]]) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Self {
            config: Arc::new(config),
            fingerprint: self.fingerprint,
        }
    }

    /// The same for QUIC, which has the protocol named (RFC 9001, section 8.1).
    pub(crate) fn for_quic(&self) -> ServerConfig {
        ServerConfig::clone(&self.speaking(&[ALPN]).config)
    }

    /// The fingerprint that clients are to check.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }
}

/// What a client accepts.
#[derive(Debug, Clone)]
pub struct Trust {
    config: Arc<ClientConfig>,
}

impl Trust {
    /// The certificate of this fingerprint, and no other.
    ///
    /// # Errors
    /// Only when the cryptography does not know TLS 1.3, which it does.
    pub fn in_certificate(fingerprint: Fingerprint) -> Result<Self, TlsError> {
        Ok(Self {
            config: Arc::new(client(Some(fingerprint))?),
        })
    }
}

impl Trust {
    /// The same for those who name what they speak, in the order in which it is preferred (RFC 7301).
    #[must_use]
    pub fn speaking(&self, protocols: &[&[u8]]) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        Self {
            config: Arc::new(config),
        }
    }

    /// The same for QUIC.
    pub(crate) fn for_quic(&self) -> ClientConfig {
        ClientConfig::clone(&self.speaking(&[ALPN]).config)
    }
}

/// Our own protocol, by its name on QUIC connections.
const ALPN: &[u8] = b"plumb";

/// The TLS state of one connection. The socket stays with its owner, who may look at it (as the
/// sampler of TCP_INFO does) while this one's owner reads or writes through [`Self::over`].
#[derive(Debug)]
pub struct TlsSession {
    /// More than a kilobyte.
    connection: Box<Connection>,
    handshake: Duration,
    incoming: Incoming,
}

impl TlsSession {
    /// The client's handshake on a blocking socket, complete by `deadline`.
    ///
    /// # Errors
    /// When it does not succeed by then, or the certificate is not the trusted one.
    pub fn connect(socket: &TcpStream, trust: &Trust, deadline: Instant) -> Result<Self, TlsError> {
        // The name is not checked: the fingerprint alone decides.
        let name = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
        let connection = ClientConnection::new(Arc::clone(&trust.config), name)?;
        shake(connection.into(), socket, deadline)
    }

    /// The client's handshake with the server of that name, as a configuration of its own says.
    ///
    /// # Errors
    /// When it does not succeed by `deadline`.
    pub fn connect_as(
        socket: &TcpStream,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
        deadline: Instant,
    ) -> Result<Self, TlsError> {
        shake(
            ClientConnection::new(config, name)?.into(),
            socket,
            deadline,
        )
    }

    /// The server's handshake, likewise.
    ///
    /// # Errors
    /// When it does not succeed by `deadline`.
    pub fn accept(
        socket: &TcpStream,
        identity: &Identity,
        deadline: Instant,
    ) -> Result<Self, TlsError> {
        let server = ServerConnection::new(Arc::clone(&identity.config))?;
        shake(server.into(), socket, deadline)
    }

    /// What both ends agreed to speak (RFC 7301); nothing where they did not say.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    /// How long the handshake took: one round trip at the client, and what both ends computed.
    pub fn handshake(&self) -> Duration {
        self.handshake
    }

    /// Name of the cipher suite, as in the IANA registry.
    pub fn cipher_suite(&self) -> &'static str {
        self.connection
            .negotiated_cipher_suite()
            .and_then(|suite| suite.suite().as_str())
            .unwrap_or("unknown")
    }

    /// Whether some of what was written has not gone to the socket yet.
    pub(crate) fn keeps_back(&self) -> bool {
        self.connection.wants_write()
    }

    /// Reads and writes payload over the socket on which the handshake was.
    pub fn over<'a>(&'a mut self, socket: &'a TcpStream) -> TlsPipe<'a> {
        TlsPipe {
            connection: &mut self.connection,
            incoming: &mut self.incoming,
            socket,
        }
    }
}

/// A socket: plain, encrypted or framed.
#[derive(Debug)]
pub enum Pipe<'a> {
    Plain(&'a TcpStream),
    Tls(TlsPipe<'a>),
    /// In what a protocol puts around it; that has the connection.
    Framed(&'a mut dyn Framing),
}

impl<'a> Pipe<'a> {
    /// The one or the other.
    pub fn new(socket: &'a TcpStream, tls: Option<&'a mut TlsSession>) -> Self {
        match tls {
            Some(session) => Self::Tls(session.over(socket)),
            None => Self::Plain(socket),
        }
    }
}

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(pipe) => pipe.read(buffer),
            Self::Framed(framing) => framing.read(buffer),
        }
    }
}

impl Write for Pipe<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(pipe) => pipe.write(bytes),
            Self::Framed(framing) => framing.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(_) => Ok(()),
            Self::Tls(pipe) => pipe.flush(),
            Self::Framed(framing) => framing.flush(),
        }
    }
}

/// Payload over an encrypted connection; blocks, times out or does neither as its socket does.
#[derive(Debug)]
pub struct TlsPipe<'a> {
    connection: &'a mut Connection,
    incoming: &'a mut Incoming,
    socket: &'a TcpStream,
}

/// Records that came and were not decrypted yet: read in larger portions than rustls, which takes a
/// record at a time, would ask the kernel for.
#[derive(Debug, Default)]
struct Incoming {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// Bytes that one call reads at least where they are there, and at most: several full records.
const INCOMING_BYTES: (usize, usize) = (4 * 1024, 128 * 1024);

impl Incoming {
    fn is_empty(&self) -> bool {
        self.start >= self.end
    }

    /// Reads more, if nothing is left, for a caller that wants so many bytes.
    fn fill(&mut self, mut socket: &TcpStream, wanted: usize) -> io::Result<()> {
        if !self.is_empty() {
            return Ok(());
        }
        let (least, most) = INCOMING_BYTES;
        let size = wanted.clamp(least, most);
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
        let count = socket.read(&mut self.buffer)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        (self.start, self.end) = (0, count);
        Ok(())
    }

    /// Hands on what the connection takes.
    fn feed(&mut self, connection: &mut Connection) -> io::Result<()> {
        let mut left = self.buffer.get(self.start..self.end).unwrap_or_default();
        self.start += connection.read_tls(&mut left)?;
        Ok(())
    }
}

impl Read for TlsPipe<'_> {
    /// Asks the socket once. What came and is no payload yet, such as a part of a record, ends the call as
    /// interrupted, so that who trickles does not keep its caller from looking at the time.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut asked = false;
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => (),
                done => return done,
            }
            if self.incoming.is_empty() && std::mem::replace(&mut asked, true) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            self.incoming.fill(self.socket, buffer.len())?;
            self.incoming.feed(self.connection)?;
            self.connection
                .process_new_packets()
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        }
    }
}

impl Write for TlsPipe<'_> {
    /// Takes nothing before all that it took has gone to the socket, so that all records but the
    /// last of a write are full, and then up to 64 KiB. A part may stay here when the
    /// socket takes no more: it goes with the next write, or with [`Self::flush`].
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.flush()?;
        let taken = self.connection.writer().write(bytes)?;
        match self.flush() {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            if self.connection.write_tls(&mut self.socket)? == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

/// A handshake must not wait until the preamble before it is acknowledged (Nagle, RFC 896); what
/// follows it is its owner's business.
fn shake(
    connection: Connection,
    socket: &TcpStream,
    deadline: Instant,
) -> Result<TlsSession, TlsError> {
    let nodelay = socket.nodelay()?;
    socket.set_nodelay(true)?;
    let session = shake_at_once(connection, socket, deadline)?;
    socket.set_nodelay(nodelay)?;
    Ok(session)
}

fn shake_at_once(
    mut connection: Connection,
    socket: &TcpStream,
    deadline: Instant,
) -> Result<TlsSession, TlsError> {
    let began = Instant::now();
    let mut socket = Timed { socket, deadline };
    loop {
        while connection.wants_write() {
            connection.write_tls(&mut socket)?;
        }
        if !connection.is_handshaking() {
            return Ok(TlsSession {
                connection: Box::new(connection),
                handshake: began.elapsed(),
                incoming: Incoming::default(),
            });
        }
        if connection.read_tls(&mut socket)? == 0 {
            return Err(LinkError::Closed.into());
        }
        if let Err(error) = connection.process_new_packets() {
            // The alert reports the reason to the far end.
            let _ = connection.write_tls(&mut socket);
            return Err(error.into());
        }
    }
}

/// A socket of which no call goes beyond the deadline.
struct Timed<'a> {
    socket: &'a TcpStream,
    deadline: Instant,
}

impl Read for Timed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.socket
            .set_read_timeout(Some(remaining(self.deadline)?))?;
        self.socket.read(buffer)
    }
}

impl Write for Timed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.socket
            .set_write_timeout(Some(remaining(self.deadline)?))?;
        self.socket.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
