//! Two small things that a responder does for its client without any load: it traces the path towards it,
//! and speaks first on connections that were silent.

use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use plumb_net::egress::Outlet;
use plumb_net::tcp::{self, ConnectError, TcpOptions};
use plumb_wire::native::control::report::clip;
use plumb_wire::native::control::silence::Silence;
use plumb_wire::native::control::trace::{TraceReport, TraceRequest};
use plumb_wire::native::control::{ClientMessage, ServerMessage, Token};

use crate::control_client::{Client, ClientError, Wait};
use crate::frames::write_all_by;

impl Client {
    /// Has the responder trace the path to this host, and waits for it for at most `within`, and for its turn
    /// before that where others are served first. The report has passed its check.
    ///
    /// # Errors
    /// When the responder refuses, goes away, does not answer in time, or reports what cannot be.
    pub fn trace_back(
        &self,
        request: &TraceRequest,
        within: Duration,
    ) -> Result<TraceReport, ClientError> {
        let mut deadline = Instant::now() + within;
        let mut wait = Wait::begin(&self.name, &self.caller, within);
        self.send(&ClientMessage::Trace(*request))?;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.next_message(left)? {
                Some(ServerMessage::Queued { ahead, after_s }) => {
                    deadline = wait.goes_on(ahead, after_s, within);
                }
                Some(ServerMessage::Traced(report)) => {
                    return match report.check(request, self.address().ip()) {
                        Ok(()) => Ok(*report),
                        Err(why) => Err(self.protocol_error(&why.to_string())),
                    };
                }
                Some(ServerMessage::TraceRefused {
                    id,
                    reason,
                    message,
                }) if id == request.id => {
                    return Err(ClientError::TraceRefused {
                        name: self.name.clone(),
                        reason,
                        message: clip(message),
                    });
                }
                Some(_) => return Err(self.protocol_error("it answered out of turn")),
                None if left.is_zero() => {
                    return Err(ClientError::TraceLate {
                        name: self.name.clone(),
                        within,
                    });
                }
                None => {}
            }
        }
    }

    /// What is needed to open connections that are to be silent; they end with this session.
    pub fn silent_connections(&self) -> SilentConnections {
        SilentConnections {
            address: self.address(),
            token: self.welcome().token,
            outlet: self.outlet.clone(),
        }
    }
}

/// Opens connections on which the responder speaks first.
#[derive(Debug, Clone)]
pub struct SilentConnections {
    address: SocketAddr,
    token: Token,
    outlet: Outlet,
}

impl SilentConnections {
    /// A connection on which neither end speaks from now on, until the responder does after `time`.
    ///
    /// # Errors
    /// When there is no connection within `timeout`.
    pub fn open(&self, time: Duration, timeout: Duration) -> Result<TcpStream, ConnectError> {
        let deadline = Instant::now() + timeout;
        let options = TcpOptions {
            outlet: self.outlet.clone(),
            ..TcpOptions::default()
        };
        let stream = tcp::connect(self.address, timeout, &options)?;
        let silence = Silence {
            token: self.token,
            time,
        };
        write_all_by(&stream, &silence.encode(), deadline)?;
        Ok(stream)
    }
}
