//! Whether a client of the native protocol may have a session: by its address, or by the key.

use std::net::{IpAddr, TcpStream};
use std::time::Instant;

use plumb_load::frames::{LinkError, read_frame};
use plumb_wire::native::control::{ClientMessage, ErrorCode, Hex, ServerMessage};
use plumb_wire::native::key::{Key, NONCE_BYTES, Purpose};
use plumb_wire::native::spec::{GREETING_TIMEOUT, MAX_FIRST_FRAME_BYTES};

use crate::policy::Access;
use crate::session::send;
use crate::shared::Shared;

/// The session does not take place. The client was sent the reason where that was possible.
#[derive(Debug)]
pub(crate) struct Denied;

/// Lets a client pass that needs no key or proves that it has it, within [`GREETING_TIMEOUT`].
pub(crate) fn check(shared: &Shared, socket: &TcpStream, peer: IpAddr) -> Result<(), Denied> {
    let policy = shared.policy.get();
    match (policy.access(peer), &policy.key) {
        (Access::Free, _) => Ok(()),
        (Access::WithKey, Some(key)) => {
            let why = match is_proved(shared, socket, peer, key) {
                Ok(Some(true)) => return Ok(()),
                Ok(Some(false)) => {
                    "the key is not the one of this responder: 'plumb serve' printed it when it started"
                }
                Ok(None) => {
                    "it looks at one wrong key a second of an address, and 50 of all: try again"
                }
                Err(_) => return Err(Denied),
            };
            Err(deny(socket, why))
        }
        (Access::WithKey | Access::Denied, _) => {
            let why = format!(
                "it does not serve {peer}: its list of addresses leaves it out, or nothing lets strangers in (--key, --public)"
            );
            Err(deny(socket, &why))
        }
    }
}

fn deny(socket: &TcpStream, why: &str) -> Denied {
    let error = ServerMessage::Error {
        code: ErrorCode::Denied,
        message: why.to_owned(),
    };
    // A client that is gone needs no reason.
    let _ = send(socket, &error);
    Denied
}

/// Challenges the client, and reads its answer; nothing where it comes too soon after a wrong one.
fn is_proved(
    shared: &Shared,
    socket: &TcpStream,
    peer: IpAddr,
    key: &Key,
) -> Result<Option<bool>, LinkError> {
    let mut challenge = Hex([0; NONCE_BYTES]);
    getrandom::fill(&mut challenge.0).map_err(std::io::Error::from)?;
    send(socket, &ServerMessage::Challenge { nonce: challenge })?;
    let deadline = Instant::now() + GREETING_TIMEOUT;
    Ok(match read_frame(socket, MAX_FIRST_FRAME_BYTES, deadline)? {
        ClientMessage::Proof { nonce, code } => shared.proved.attempt(peer, || {
            key.proves(Purpose::Session, challenge, nonce, code)
        }),
        // What is no proof tries no key.
        _ => Some(false),
    })
}
