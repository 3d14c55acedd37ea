//! What a server sees of the visit of a browser: what came, and what its own TCP says.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use plumb_model::direction::OneDirection;
use plumb_net::tcp::{self, TcpInfo};
use plumb_wire::native::control::report::{Count, ReceiverLog, ReceiverTail, SenderLog};
use plumb_wire::native::spec::SAMPLE_INTERVAL;
use plumb_wire::web::visit::Visit;

use crate::tcp::sampler::tcp_sample;
use crate::tcp::tail;

/// Records of one connection that are kept: records of 20 s, and the page loads for 15 s.
const MOST_RECORDS: usize = 200;

/// Connections of one direction: what browsers open to one server (six), and some that broke.
const MOST_CONNECTIONS: usize = 8;

/// How much longer than this host knows of it a test may have taken, in seconds: its first connection may have been slow.
const EARLIER_S: f64 = 10.0;

/// How much longer the shortest round trip of the page may be than the shortest of this host's TCP, in seconds: what a
/// geostationary satellite adds, whose modem answers TCP in place of the browser (RFC 3135), and half of that for the
/// browser.
const LONGER_S: f64 = 1.0;

/// What a browser counted of a download is this part of what its TCP acknowledged at least, where that is more than a
/// browser keeps unread.
const COUNTED_PART: u64 = 8;
const UNREAD_BYTES: u64 = 1 << 20;

/// How a page contradicts what this host saw of the test. It is not judged then.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Contradiction {
    #[error("the test is said to have lasted longer than this responder has known of it")]
    Lasted,
    #[error(
        "the round trips are said to be longer by a second than those that this responder's TCP measured"
    )]
    RoundTrips,
    #[error(
        "less is said to have come of the download than an eighth of what was acknowledged in its time"
    )]
    Download,
}

/// A visit while it lasts.
#[derive(Debug, Default)]
pub struct Visited(Mutex<Seen>);

/// What was seen of it.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub down: Loaded,
    pub up: Loaded,
    /// What became of the echoes of each part of the test.
    pub echoes: BTreeMap<u8, Echoes>,
}

/// One direction under load.
#[derive(Debug, Clone, Default)]
pub struct Loaded {
    /// When its first body began.
    began: Option<Instant>,
    pub connections: BTreeMap<u16, Connection>,
}

/// A connection of it.
#[derive(Debug, Clone, Default)]
pub struct Connection {
    /// The numbers of the streams that it carried.
    pub streams: BTreeSet<u32>,
    /// What this host sent on it.
    pub sender: SenderLog,
    /// What came on it.
    pub receiver: ReceiverLog,
    bytes: u64,
    /// Largest packet that the path is known to take, once this host has sent on it.
    pub path_mtu_bytes: u32,
}

/// Echoes as this host's TCP sent them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Echoes {
    pub sent: u64,
    /// Segments that were retransmitted and had not come the first time.
    pub lost: u64,
    first_lost: Option<u64>,
}

/// A body that belongs to a visit, until it is dropped.
#[derive(Debug)]
pub struct Body {
    visited: Arc<Visited>,
    direction: OneDirection,
    port: u16,
}

impl Visited {
    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether anything was carried for it, which takes a turn.
    pub fn has_load(&self) -> bool {
        let seen = self.lock();
        !seen.down.connections.is_empty() || !seen.up.connections.is_empty()
    }

    /// What was seen, which is kept no longer.
    pub fn take(&self) -> Seen {
        std::mem::take(&mut *self.lock())
    }

    /// A body of a stream begins on the connection from the visitor's `port`; nothing where there are too many.
    pub fn begin(
        self: &Arc<Self>,
        direction: OneDirection,
        stream: u32,
        port: u16,
        socket: &TcpStream,
    ) -> Option<Body> {
        {
            let mut seen = self.lock();
            let loaded = seen.of(direction);
            loaded.began.get_or_insert_with(Instant::now);
            let is_full = loaded.connections.len() >= MOST_CONNECTIONS;
            if is_full && !loaded.connections.contains_key(&port) {
                return None;
            }
            // What the browser counts of a stream is counted once.
            let is_known = loaded.has(stream);
            let number = loaded.connections.len() as u32;
            let connection = loaded.connections.entry(port).or_insert_with(|| {
                let negotiated = tcp::negotiated(socket).unwrap_or_default();
                Connection {
                    sender: SenderLog {
                        tail: tail(number, socket, &negotiated),
                        samples: Vec::new(),
                    },
                    receiver: ReceiverLog {
                        tail: ReceiverTail {
                            stream: number,
                            ..ReceiverTail::default()
                        },
                        counts: Vec::new(),
                    },
                    ..Connection::default()
                }
            });
            if !is_known {
                connection.streams.insert(stream);
            }
        }
        let body = Body {
            visited: Arc::clone(self),
            direction,
            port,
        };
        body.look(socket);
        Some(body)
    }

    /// An echo was sent in a part of the test, on a socket of this state.
    pub fn echoed(&self, part: u8, info: &TcpInfo) {
        let again = u64::from(info.total_retransmits);
        let lost = again.saturating_sub(info.twice_segments.map_or(0, u64::from));
        let mut seen = self.lock();
        let echoes = seen.echoes.entry(part).or_default();
        echoes.sent += 1;
        let first = *echoes.first_lost.get_or_insert(lost);
        echoes.lost = lost.saturating_sub(first);
    }
}

impl Loaded {
    /// Whether a connection carried that stream.
    fn has(&self, stream: u32) -> bool {
        let mut connections = self.connections.values();
        connections.any(|connection| connection.streams.contains(&stream))
    }
}

impl Seen {
    /// Whether what a page says may be, where this host has known of the visit for so long.
    ///
    /// # Errors
    /// How it contradicts what was seen here.
    pub fn agrees(&self, visit: &Visit, known_s: f64) -> Result<(), Contradiction> {
        if visit.took_s() > known_s + EARLIER_S {
            return Err(Contradiction::Lasted);
        }
        let connections = || {
            self.down
                .connections
                .values()
                .chain(self.up.connections.values())
        };
        let samples = connections().flat_map(|connection| &connection.sender.samples);
        let tcp_s = samples.filter_map(|sample| sample.min_rtt_us).min();
        let tcp_s = tcp_s.map(|us| us as f64 / 1e6);
        let page_s = visit.idle.rtt_s.iter().copied().min_by(f64::total_cmp);
        if let (Some(page_s), Some(tcp_s)) = (page_s, tcp_s)
            && page_s > tcp_s + LONGER_S
        {
            return Err(Contradiction::RoundTrips);
        }
        let Some(down) = &visit.down else {
            return Ok(());
        };
        let counted = down.streams.iter().filter_map(|stream| stream.last());
        let counted = counted.fold(0_u64, |sum, bytes| sum.saturating_add(*bytes));
        let acknowledged: u64 = self.down.connections.values().map(acknowledged).sum();
        let unread = acknowledged.saturating_sub(counted);
        match unread > UNREAD_BYTES && counted < acknowledged / COUNTED_PART {
            true => Err(Contradiction::Download),
            false => Ok(()),
        }
    }

    fn of(&mut self, direction: OneDirection) -> &mut Loaded {
        match direction {
            OneDirection::Down => &mut self.down,
            OneDirection::Up => &mut self.up,
        }
    }
}

/// Payload that a connection's TCP had acknowledged while it was looked at.
fn acknowledged(connection: &Connection) -> u64 {
    let samples = &connection.sender.samples;
    match (samples.first(), samples.last()) {
        (Some(first), Some(last)) => last.bytes_acked.saturating_sub(first.bytes_acked),
        _ => 0,
    }
}

impl Body {
    /// Changes what is known of its connection, at so many seconds of its direction.
    fn change(&self, change: impl FnOnce(&mut Connection, f64)) {
        let mut seen = self.visited.lock();
        let loaded = seen.of(self.direction);
        let t_s = loaded
            .began
            .map_or(0.0, |began| began.elapsed().as_secs_f64());
        if let Some(connection) = loaded.connections.get_mut(&self.port) {
            change(connection, t_s);
        }
    }

    /// So much more came.
    pub fn came(&self, bytes: u64) {
        self.change(|connection, t_s| {
            connection.bytes += bytes;
            let counts = &mut connection.receiver.counts;
            let counts_are_full = counts.len() >= MOST_RECORDS;
            let count = Count {
                t_s,
                bytes: connection.bytes,
                ..Count::default()
            };
            // The last is always of now, and stays once it is an interval away from the one before.
            let stays = match counts.as_slice() {
                [.., before, last] => last.t_s - before.t_s >= SAMPLE_INTERVAL.as_secs_f64(),
                _ => true,
            };
            match counts.last_mut() {
                Some(last) if !stays || counts_are_full => *last = count,
                _ => counts.push(count),
            }
        });
    }

    /// Looks at what the kernel says of the connection, if it is time for that.
    pub fn look(&self, socket: &TcpStream) {
        self.change(|connection, t_s| {
            let samples = &mut connection.sender.samples;
            let last_s = samples.last().map(|sample| sample.t_s);
            let is_early = last_s.is_some_and(|last| t_s - last < SAMPLE_INTERVAL.as_secs_f64());
            if is_early || samples.len() >= MOST_RECORDS {
                return;
            }
            if let Ok(info) = tcp::tcp_info(socket) {
                let memory = tcp::socket_memory(socket).ok();
                samples.push(tcp_sample(
                    t_s,
                    &info,
                    memory.map(|memory| memory.sndbuf_bytes),
                ));
                connection.path_mtu_bytes = info.path_mtu_bytes;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;
    use std::thread::sleep;

    fn visit(idle_rtt_s: f64, down_bytes: u64) -> Visit {
        let json = format!(
            r#"{{"id":"0123456789abcdef","server":"s","agent":"B","resolution_s":1e-4,
                "idle":{{"began_s":0,"duration_s":5,"sent_s":[0.1],"rtt_s":[{idle_rtt_s}]}},
                "down":{{"began_s":5,"duration_s":15,"sent_s":[],"rtt_s":[],"counted_s":[14],"streams":[[{down_bytes}]]}},
                "up":null}}"#
        );
        plumb_wire::web::visit::parse(json.as_bytes()).unwrap()
    }

    #[test]
    fn a_page_that_contradicts_what_was_seen_is_found_out() {
        let mut seen = Seen::default();
        let connection = seen.down.connections.entry(7).or_default();
        for bytes_acked in [1000, 3_001_000] {
            let mut sample = tcp_sample(0.0, &TcpInfo::default(), None);
            sample.bytes_acked = bytes_acked;
            sample.min_rtt_us = Some(20_000);
            connection.sender.samples.push(sample);
        }
        let agrees = |rtt_s, bytes, known_s| seen.agrees(&visit(rtt_s, bytes), known_s);
        assert_eq!(agrees(0.03, 3_000_000, 21.0), Ok(()));
        // By satellite, with a modem that answers for the browser; and a browser that had not read it all.
        assert_eq!(agrees(0.7, 2_000_000, 21.0), Ok(()));
        assert_eq!(agrees(0.03, 3_000_000, 5.0), Err(Contradiction::Lasted));
        assert_eq!(agrees(4.9, 3_000_000, 21.0), Err(Contradiction::RoundTrips));
        assert_eq!(agrees(0.03, 0, 21.0), Err(Contradiction::Download));
    }

    #[test]
    fn what_comes_on_each_connection_is_counted_to_the_last_byte() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let visited = Arc::<Visited>::default();
        let body = visited.begin(OneDirection::Up, 0, 7, &socket).unwrap();
        for _ in 0..30 {
            body.came(1000);
            sleep(SAMPLE_INTERVAL / 10);
        }
        drop(body);
        let body = visited.begin(OneDirection::Up, 3, 7, &socket).unwrap();
        body.came(500);
        let again = visited.begin(OneDirection::Up, 0, 8, &socket).unwrap();
        again.came(1);
        let seen = visited.take();
        let connection = &seen.up.connections[&7];
        assert_eq!(connection.streams, BTreeSet::from([0, 3]));
        let other = &seen.up.connections[&8];
        assert!(other.streams.is_empty(), "a stream is of one connection");
        let counts = &connection.receiver.counts;
        assert_eq!(counts.last().unwrap().bytes, 30_500);
        // The first, one an interval, and one for now.
        assert!((3..=8).contains(&counts.len()), "{counts:?}");
        assert_eq!(connection.sender.samples.len(), 2, "one at each beginning");
        assert!(seen.down.connections.is_empty());
    }

    #[test]
    fn no_more_connections_are_kept_than_browsers_open() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let visited = Arc::<Visited>::default();
        let begin = |port| {
            visited
                .begin(OneDirection::Down, 0, port, &socket)
                .is_some()
        };
        let begun = (1..=20).filter(|port| begin(*port)).count();
        assert_eq!(begun, MOST_CONNECTIONS);
        assert!(begin(1), "one that is known is looked at again");
    }
}
