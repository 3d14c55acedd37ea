//! Echoes over a WebSocket, by which the page of the responder measures round trips.

use std::io;
use std::time::{Duration, Instant};

use plumb_load::web::Channel;
use plumb_load::web::visited::Visited;
use plumb_net::tcp;
use plumb_wire::web::visit::ECHO_BYTES;
use tungstenite::protocol::{Role, WebSocketConfig};
use tungstenite::{Error, Message, WebSocket};

use super::routes::Site;

/// How long a connection of echoes lasts at most: twice what the page takes.
const LONGEST: Duration = Duration::from_secs(90);

/// A client that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_secs(5);

/// Bytes that are read at once: more echoes than there may be in a second.
const READ_BYTES: usize = 4 * 1024;

/// Echoes a second at most: twice what the page sends.
const MOST_PER_S: f64 = 40.0;

/// Answers until the client ends it or is gone, its time is over, or the gate is closed.
pub(super) fn run(channel: Channel, read: &[u8], visited: &Visited, site: &Site) {
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .max_message_size(Some(ECHO_BYTES))
        .max_frame_size(Some(ECHO_BYTES));
    let mut socket =
        WebSocket::from_partially_read(channel, read.to_vec(), Role::Server, Some(config));
    let began = Instant::now();
    let (mut heard, mut echoed) = (began, 0_u64);
    while began.elapsed() < LONGEST && heard.elapsed() < SILENCE && !site.gate.is_closed() {
        match socket.read() {
            Ok(message @ (Message::Text(_) | Message::Binary(_))) => {
                heard = Instant::now();
                echoed += 1;
                let part = message.to_text().ok().and_then(|text| text.bytes().next());
                let info = tcp::tcp_info(socket.get_ref().socket());
                if let (Some(part @ (b'i' | b'd' | b'u')), Ok(info)) = (part, info) {
                    visited.echoed(part, &info);
                }
                let too_many = echoed as f64 > MOST_PER_S * (began.elapsed().as_secs_f64() + 1.0);
                if too_many || !answered(socket.send(message)) {
                    break;
                }
            }
            Ok(Message::Close(_)) => {
                let _ = socket.flush();
                break;
            }
            Ok(_) => {}
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
    }
}

/// Whether an answer is on its way, or will be.
fn answered(sent: Result<(), Error>) -> bool {
    match sent {
        Ok(()) => true,
        Err(Error::Io(error)) => error.kind() == io::ErrorKind::WouldBlock,
        Err(_) => false,
    }
}
