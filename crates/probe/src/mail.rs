//! A letter handed to a mail server (RFC 5321), within a time, on a connection of its own.

use std::net::IpAddr;
use std::time::{Duration, Instant};

pub use plumb_wire::mail::address::Address;
pub use plumb_wire::mail::letter::Letter;
use plumb_wire::mail::reply::{Replies, Reply};
pub use plumb_wire::mail::session::{Login, Refusal, Security, Submission};
use plumb_wire::mail::session::{Next, Session};

use crate::deadline::Connection;
use crate::root_store::Trust;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// A name, or an address.
    pub host: String,
    pub port: u16,
}

/// What is handed to it, without what the connection shows.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// With an empty `client`, which is then the address of this end.
    pub submission: Submission,
    /// Whose certificates are believed.
    pub trust: Trust,
}

impl Server {
    /// Hands a letter over: the recipients for whom the server did not take it, while it did for others.
    ///
    /// # Errors
    /// When the server accepted it for no recipient within `timeout`: the reason, in words.
    pub fn hand(&self, outgoing: Outgoing, timeout: Duration) -> Result<Vec<Refusal>, String> {
        self.converse(outgoing, timeout)
            .map_err(|why| format!("{}:{} {why}", self.host, self.port))
    }

    fn converse(&self, outgoing: Outgoing, timeout: Duration) -> Result<Vec<Refusal>, String> {
        let Outgoing {
            mut submission,
            trust,
        } = outgoing;
        let failed = |why: String| format!("cannot be spoken to: {why}");
        let deadline = Instant::now() + timeout;
        let mut connection = Connection::to(&self.host, self.port, deadline).map_err(failed)?;
        if submission.security == Security::Wrapped {
            connection.begin_tls(&self.host, &trust).map_err(failed)?;
        }
        if submission.client.is_empty() {
            submission.client = literal(connection.local());
        }
        let (mut session, mut replies) = (Session::new(submission), Replies::default());
        loop {
            let reply = next(&mut connection, &mut replies).map_err(failed)?;
            let mut next = session.step(&reply);
            if next == Next::BeginTls {
                // What came before TLS may be anybody's (RFC 3207, section 6).
                if replies.has_more() {
                    return Err("says more before TLS than it was asked".to_owned());
                }
                connection.begin_tls(&self.host, &trust).map_err(failed)?;
                next = session.encrypted();
            }
            match next {
                Next::Send(bytes) => connection.send(&bytes).map_err(failed)?,
                Next::Taken(refused) => {
                    // It has the letter; that it hears the end is courtesy.
                    let _ = connection.send(b"QUIT\r\n");
                    return Ok(refused);
                }
                Next::Failed(why) => {
                    let _ = connection.send(b"QUIT\r\n");
                    return Err(why);
                }
                Next::BeginTls => return Err("begins TLS twice".to_owned()),
            }
        }
    }
}

/// The next reply. It ends with the reply, with the connection, or with the deadline.
fn next(connection: &mut Connection, replies: &mut Replies) -> Result<Reply, String> {
    let mut buffer = [0; 2048];
    loop {
        if let Some(reply) = replies.take()? {
            return Ok(reply);
        }
        match connection.receive(&mut buffer)? {
            0 => return Err("the connection ended".to_owned()),
            count => replies.push(buffer.get(..count).unwrap_or_default()),
        }
    }
}

/// An address as a client names itself by it (RFC 5321, section 4.1.3).
fn literal(address: Option<IpAddr>) -> String {
    match address {
        Some(IpAddr::V4(address)) => format!("[{address}]"),
        Some(IpAddr::V6(address)) => format!("[IPv6:{address}]"),
        None => "localhost".to_owned(),
    }
}

#[cfg(test)]
pub(crate) mod tests;
