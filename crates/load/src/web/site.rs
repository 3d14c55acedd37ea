//! A web server, and connections to it.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumb_net::tcp::{self, TcpOptions};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::control_client::ClientError;
use crate::tls::{TlsError, TlsSession};

/// How long a connection and its handshake may take: a lost SYN is retransmitted after 1 s and 3 s.
const CONNECTING: Duration = Duration::from_secs(8);

/// How a client makes sure whom it speaks with.
#[derive(Debug, Clone)]
pub struct Security {
    pub config: Arc<ClientConfig>,
    /// The name that the certificate must be for.
    pub server: ServerName<'static>,
}

/// A web server that may carry load.
#[derive(Debug, Clone)]
pub struct Site {
    /// As the user calls it.
    pub name: String,
    pub address: SocketAddr,
    /// Host and port as requests name them.
    pub authority: String,
    /// Absent for HTTP without TLS.
    pub security: Option<Security>,
}

/// What requests are made in.
pub(super) const HTTP2: &[u8] = b"h2";
pub(super) const HTTP1: &[u8] = b"http/1.1";

impl Site {
    /// A connection, and what encrypts it, for one of these protocols.
    ///
    /// # Errors
    /// When it does not come about.
    pub(super) fn connect(
        &self,
        options: &TcpOptions,
        protocols: &[&[u8]],
    ) -> Result<(TcpStream, Option<TlsSession>), ClientError> {
        let deadline = Instant::now() + CONNECTING;
        let socket = tcp::connect(self.address, CONNECTING, options).map_err(|why| {
            ClientError::Unreachable {
                name: self.name.clone(),
                port: self.address.port(),
                why: why.to_string(),
            }
        })?;
        let Some(security) = &self.security else {
            return Ok((socket, None));
        };
        let mut config = ClientConfig::clone(&security.config);
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let server = security.server.clone();
        let tls = TlsSession::connect_as(&socket, Arc::new(config), server, deadline);
        let tls = tls.map_err(|error| self.distrusted(error))?;
        Ok((socket, Some(tls)))
    }

    fn distrusted(&self, error: TlsError) -> ClientError {
        let is_certificate = matches!(
            error,
            TlsError::Certificate | TlsError::Protocol(rustls::Error::InvalidCertificate(_))
        );
        match is_certificate {
            true => ClientError::Distrusted {
                name: self.name.clone(),
                why: error.to_string(),
            },
            false => self.broken(&error.to_string()),
        }
    }

    pub(super) fn broken(&self, why: &str) -> ClientError {
        ClientError::Web {
            name: self.name.clone(),
            why: why.to_owned(),
        }
    }

    pub(super) fn scheme(&self) -> &'static str {
        match self.security {
            Some(_) => "https",
            None => "http",
        }
    }
}
