//! Connections on which nobody speaks for a time that the client named, and then this end does.

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_wire::native::control::silence::FIRST_WORD;
use plumb_wire::native::spec::{MAX_SILENT, MAX_SILENT_PER_ADDRESS};
use plumb_wire::share::Share;

use crate::events::Hushed;

/// How long a connection is kept after the first word, for TCP to send it again and the client to
/// have seen it, when there is no room for another.
const KEPT: Duration = Duration::from_secs(10);

/// How many silent connections there are, and of whom.
#[derive(Debug)]
pub(crate) struct SilentPlaces {
    most: usize,
    of: Mutex<HashMap<Share, usize>>,
}

impl SilentPlaces {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let of = Mutex::default();
        Arc::new(Self { most, of })
    }

    /// A place for one more; none where that address has as many as it may, or all together.
    pub(crate) fn take(self: &Arc<Self>, peer: IpAddr) -> Option<SilentPlace> {
        let share = Share::of(peer);
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = of.values().sum();
        let its = of.get(&share).copied().unwrap_or(0);
        if all >= self.most || its >= MAX_SILENT_PER_ADDRESS {
            return None;
        }
        of.insert(share, its + 1);
        let places = Arc::clone(self);
        Some(SilentPlace { places, share })
    }
}

/// The place of a silent connection, given back on drop.
#[derive(Debug)]
pub(crate) struct SilentPlace {
    places: Arc<SilentPlaces>,
    share: Share,
}

impl Drop for SilentPlace {
    fn drop(&mut self) {
        let mut of = self
            .places
            .of
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let left = of.get(&self.share).map_or(0, |its| its.saturating_sub(1));
        if left == 0 {
            of.remove(&self.share);
        } else {
            of.insert(self.share, left);
        }
    }
}

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
