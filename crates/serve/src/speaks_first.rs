//! Connections on which neither end speaks for a time that the client named, and then this end does.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use plumb_wire::native::control::silence::FIRST_WORD;
use plumb_wire::native::spec::MAX_SILENT;

use crate::events::Hushed;
use crate::silent_places::SilentPlace;

/// How long a connection is kept after the first word, for TCP to send it again and the client to
/// have seen it, when there is no room for another.
const KEPT: Duration = Duration::from_secs(10);

/// The silent connections of a session.
#[derive(Debug, Default)]
pub(crate) struct Silences {
    connections: Vec<Silent>,
}

#[derive(Debug)]
struct Silent {
    socket: TcpStream,
    due: Instant,
    spoken: bool,
    _place: SilentPlace,
}

impl Silences {
    /// Keeps a connection, on which this end speaks when its time is over; closes it when there are too many.
    pub(crate) fn take(&mut self, hushed: Hushed) {
        let Hushed {
            socket,
            time,
            place,
            ..
        } = hushed;
        let now = Instant::now();
        self.connections
            .retain(|silent| !(silent.spoken && now >= silent.due + KEPT));
        if self.connections.len() < MAX_SILENT && socket.set_nonblocking(true).is_ok() {
            self.connections.push(Silent {
                socket,
                due: now + time,
                spoken: false,
                _place: place,
            });
        }
    }

    /// How long until this end is to speak next.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let waiting = self.connections.iter().filter(|silent| !silent.spoken);
        let next = waiting.map(|silent| silent.due).min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Speaks where it is time.
    pub(crate) fn speak(&mut self) {
        let now = Instant::now();
        for silent in &mut self.connections {
            if !silent.spoken && now >= silent.due {
                silent.spoken = true;
                // One that the client has given up says so here, and needs nothing more.
                let _ = silent.socket.write(&[FIRST_WORD]);
            }
        }
    }
}
