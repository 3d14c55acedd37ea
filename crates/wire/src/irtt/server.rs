//! The server: sessions that are opened, echoed and closed. Pure.
//!
//! A session belongs to the address and port that opened it: its token is random, and only the receiver of the answer
//! knows it. No echo is longer than its request. The answer to an open is 8 bytes longer, as the protocol has it, or 2
//! more where the interval asked for is too short; how many of them go to one network is bounded. Opens may be forged,
//! so a session without any request makes room for the next.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use super::key::Key;
use super::packet::{Flags, Incoming, Packet};
use super::parameters::{Clock, Parameters, StampAt, VERSION};
use crate::share::{Bucket, Share};

/// Sessions at once, and of one address or /64: a few hosts behind one address, with a few sessions each.
const MOST_SESSIONS: usize = 1024;
const MOST_OF_A_SHARE: usize = 32;

/// A session in which nothing comes for so long is over (`expirationTime`).
const EXPIRES: Duration = Duration::from_secs(60);

/// Opens a second that are answered per network (/24, /64), and how many at once: the limit for a spoofer of its
/// addresses, who gains 8 bytes with each.
const OPENS_PER_S: f64 = 10.0;
const OPENS_AT_ONCE: f64 = 32.0;

/// Bytes by which the answer to an open may be longer: its token, and an interval that takes two bytes more.
const LONGER_BYTES: usize = 10;

/// Networks of which the opens are remembered; what is forgotten is the oldest.
const MOST_NETWORKS: usize = 4096;

/// How long a session continues beyond its duration (`maxDurationGrace`).
const GRACE: Duration = Duration::from_secs(2);

/// Requests that may come at once in a session, beyond its interval.
const BURST: f64 = 16.0;

/// What a session may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    pub longest: Duration,
    /// The shortest time between two requests.
    pub interval: Duration,
    /// The most bytes of a packet.
    pub length: usize,
}

/// A packet that came.
#[derive(Debug, Clone, Copy)]
pub struct Arrived<'a> {
    pub bytes: &'a [u8],
    pub from: SocketAddr,
    /// When: on the wall clock, in nanoseconds since 1970, and since any fixed time.
    pub wall_ns: i64,
    pub monotonic_ns: i64,
}

/// What is to be sent back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    pub bytes: Vec<u8>,
    pub dscp: u8,
}

#[derive(Debug)]
struct Session {
    peer: SocketAddr,
    parameters: Parameters,
    first: Option<Duration>,
    last: Duration,
    pace: Bucket,
    received: u32,
    highest: Option<u32>,
    /// Which of the last 64 were received: bit 0 is the highest.
    window: u64,
    is_window_valid: bool,
}

/// The sessions of a server.
#[derive(Debug)]
pub struct Server {
    key: Option<Key>,
    limits: Limits,
    sessions: HashMap<u64, Session>,
    /// When each network opened, by what is left to it.
    opens: HashMap<IpAddr, (Duration, Bucket)>,
}

impl Server {
    /// One that answers senders that have this key, or without one senders that have none.
    pub fn new(key: Option<Key>, limits: Limits) -> Self {
        Self {
            key,
            limits,
            sessions: HashMap::new(),
            opens: HashMap::new(),
        }
    }

    /// What is answered to a packet. `now` never goes back; `token` makes a random number; `stamp` says the wall clock's and
    /// the monotonic time at which the answer leaves.
    pub fn answer(
        &mut self,
        now: Duration,
        arrived: &Arrived<'_>,
        token: impl FnOnce() -> Option<u64>,
        stamp: impl FnOnce() -> (i64, i64),
    ) -> Option<Reply> {
        let key = self.key.clone();
        let request = Incoming::read(arrived.bytes, key.as_ref())?;
        // Two servers must not talk to each other.
        if request.flags.has(Flags::REPLY) {
            return None;
        }
        if request.flags.has(Flags::OPEN) {
            return self.open(now, arrived, &request, token);
        }
        let (token, rest) = request.rest.split_first_chunk()?;
        let token = u64::from_le_bytes(*token);
        let session = self.sessions.get(&token)?;
        if session.peer != arrived.from {
            return None;
        }
        if request.flags.has(Flags::CLOSE) {
            self.sessions.remove(&token);
            return None;
        }
        let sequence = u32::from_le_bytes(*rest.first_chunk()?);
        self.echo(now, arrived, (token, sequence), stamp)
    }

    /// Begins a session. A request with open and close only asks which parameters the server would agree to.
    fn open(
        &mut self,
        now: Duration,
        arrived: &Arrived<'_>,
        request: &Incoming<'_>,
        token: impl FnOnce() -> Option<u64>,
    ) -> Option<Reply> {
        let mut parameters = Parameters::read(request.rest)?;
        let is_asked_only = request.flags.has(Flags::CLOSE);
        if parameters.version != VERSION || !self.may_open(now, arrived.from.ip()) {
            return None;
        }
        parameters.duration = parameters.duration.min(self.limits.longest);
        parameters.interval = parameters.interval.max(self.limits.interval);
        parameters.length = parameters.length.min(self.limits.length);
        // Replies are filled with zeros.
        parameters.fill.clear();
        let answer_bytes = arrived.bytes.len() - request.rest.len() + 8 + parameters.write().len();
        if answer_bytes > arrived.bytes.len() + LONGER_BYTES {
            return None;
        }
        let mut flags = Flags::OPEN | Flags::REPLY;
        let token = match is_asked_only {
            true => {
                flags |= Flags::CLOSE;
                0
            }
            false => {
                self.make_room(now, arrived.from.ip())?;
                let token = token()?;
                let session = Session {
                    peer: arrived.from,
                    parameters: parameters.clone(),
                    first: None,
                    last: now,
                    pace: Bucket::default(),
                    received: 0,
                    highest: None,
                    window: 0,
                    is_window_valid: true,
                };
                self.sessions.insert(token, session);
                token
            }
        };
        let reply = Packet::new(flags, self.key.is_some())
            .with(&token.to_le_bytes())
            .with(&parameters.write());
        Some(Reply {
            bytes: reply.finish(0, self.key.as_ref()),
            dscp: 0,
        })
    }

    fn echo(
        &mut self,
        now: Duration,
        arrived: &Arrived<'_>,
        (token, sequence): (u64, u32),
        stamp: impl FnOnce() -> (i64, i64),
    ) -> Option<Reply> {
        let interval_s = self.limits.interval.as_secs_f64();
        let session = self.sessions.get_mut(&token)?;
        if !session.pace.draw(now, 1.0, 1.0 / interval_s, BURST) {
            return None;
        }
        session.last = now;
        session.count(sequence);
        let first = *session.first.get_or_insert(now);
        let is_over = now.saturating_sub(first) > self.limits.longest + GRACE;
        let close = if is_over { Flags::CLOSE } else { 0 };
        let mut packet = Packet::new(Flags::REPLY | close, self.key.is_some())
            .with(&token.to_le_bytes())
            .with(&sequence.to_le_bytes());
        let Parameters {
            stats,
            stamp_at,
            clock,
            length,
            type_of_service,
            ..
        } = session.parameters;
        if stats.count {
            packet = packet.with(&session.received.to_le_bytes());
        }
        if stats.window {
            let window = if session.is_window_valid {
                session.window
            } else {
                0
            };
            packet = packet.with(&window.to_le_bytes());
        }
        let received = (arrived.wall_ns, arrived.monotonic_ns);
        let sent = stamp();
        let middle = (midpoint(received.0, sent.0), midpoint(received.1, sent.1));
        let times = match stamp_at {
            StampAt::None => [None, None],
            StampAt::Receive => [Some(received), None],
            StampAt::Send => [Some(sent), None],
            StampAt::Both => [Some(received), Some(sent)],
            StampAt::Midpoint => [Some(middle), None],
        };
        for time in times.into_iter().flatten() {
            packet = packet.with(&written(time, clock));
        }
        // A request that is shorter than its answer would be is not irtt's.
        if packet.bytes.len() > arrived.bytes.len() {
            return None;
        }
        if is_over {
            self.sessions.remove(&token);
        }
        let length = length.min(arrived.bytes.len());
        Some(Reply {
            bytes: packet.finish(length, self.key.as_ref()),
            dscp: type_of_service >> 2,
        })
    }

    /// Whether the network of that address may open another session now.
    fn may_open(&mut self, now: Duration, from: IpAddr) -> bool {
        let network = network(from);
        if self.opens.len() >= MOST_NETWORKS && !self.opens.contains_key(&network) {
            let oldest = self.opens.iter().min_by_key(|(_, (at, _))| *at);
            if let Some(oldest) = oldest.map(|(network, _)| *network) {
                self.opens.remove(&oldest);
            }
        }
        let (at, bucket) = self.opens.entry(network).or_default();
        *at = now;
        bucket.draw(now, 1.0, OPENS_PER_S, OPENS_AT_ONCE)
    }

    /// Room for one more session of that address: where it has all that it may, its oldest is over; where all have, the oldest in
    /// which nothing was ever sent.
    fn make_room(&mut self, now: Duration, from: IpAddr) -> Option<()> {
        self.sessions
            .retain(|_, session| now.saturating_sub(session.last) < EXPIRES);
        let share = Share::of(from);
        let its = self
            .sessions
            .iter()
            .filter(|(_, s)| Share::of(s.peer.ip()) == share);
        let (count, oldest) = its.fold((0, None), |(count, oldest), (token, session)| {
            let oldest: Option<(Duration, u64)> = oldest;
            let this = (session.last, *token);
            (
                count + 1,
                Some(oldest.map_or(this, |oldest| oldest.min(this))),
            )
        });
        if count >= MOST_OF_A_SHARE
            && let Some((_, oldest)) = oldest
        {
            self.sessions.remove(&oldest);
        }
        if self.sessions.len() >= MOST_SESSIONS {
            let unused = self.sessions.iter().filter(|(_, s)| s.first.is_none());
            let oldest = unused.min_by_key(|(_, session)| session.last);
            let oldest = oldest.map(|(token, _)| *token)?;
            self.sessions.remove(&oldest);
        }
        Some(())
    }
}

impl Session {
    /// Counts a request that came.
    fn count(&mut self, sequence: u32) {
        self.received = self.received.wrapping_add(1);
        let Some(highest) = self.highest else {
            self.highest = Some(sequence);
            self.window = 1;
            return;
        };
        // Numbers go round.
        let ahead = sequence.wrapping_sub(highest);
        if ahead <= u32::MAX / 2 {
            self.window = self.window.checked_shl(ahead).unwrap_or(0) | 1;
            self.is_window_valid = true;
            self.highest = Some(sequence);
        } else {
            // A late one; the client does not know from which number such a window would count.
            self.is_window_valid = false;
            let behind = highest.wrapping_sub(sequence);
            self.window |= 1u64.checked_shl(behind).unwrap_or(0);
        }
    }
}

fn midpoint(first: i64, last: i64) -> i64 {
    first.saturating_add(last.saturating_sub(first) / 2)
}

/// A time as the clocks that were agreed on have it.
fn written((wall, monotonic): (i64, i64), clock: Clock) -> Vec<u8> {
    let wall = clock.wall.then(|| wall.to_le_bytes());
    let monotonic = clock.monotonic.then(|| monotonic.to_le_bytes());
    [wall, monotonic].into_iter().flatten().flatten().collect()
}

/// The network that an address is counted with where addresses may be forged: a /24, or a /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => (v4 & std::net::Ipv4Addr::new(255, 255, 255, 0)).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << 64)).into(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::irtt::parameters::Stats;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        longest: Duration::from_secs(60),
        interval: Duration::from_millis(1),
        length: 1472,
    };

    struct Talk {
        server: Server,
        key: Option<Key>,
        now: Duration,
    }

    impl Talk {
        fn new(key: Option<Key>) -> Self {
            Self {
                server: Server::new(key.clone(), LIMITS),
                key,
                now: Duration::ZERO,
            }
        }

        fn say(&mut self, from: &str, bytes: &[u8]) -> Option<Vec<u8>> {
            self.now += Duration::from_millis(10);
            let arrived = Arrived {
                bytes,
                from: from.parse().unwrap(),
                wall_ns: 1000,
                monotonic_ns: 10,
            };
            let token = self.now.as_nanos() as u64;
            let reply = self
                .server
                .answer(self.now, &arrived, || Some(token), || (3000, 30));
            reply.map(|reply| reply.bytes)
        }

        fn packet(&self, flags: u8, rest: &[u8], length: usize) -> Vec<u8> {
            let packet = Packet::new(flags, self.key.is_some()).with(rest);
            packet.finish(length, self.key.as_ref())
        }

        /// The token of a session that it opens, and what the server agreed to.
        fn open(&mut self, from: &str, parameters: &Parameters) -> Option<(u64, Parameters)> {
            let open = self.packet(Flags::OPEN, &parameters.write(), 0);
            let answer = self.say(from, &open)?;
            let request = Incoming::read(&answer, self.key.as_ref()).unwrap();
            let (token, rest) = request.rest.split_first_chunk().unwrap();
            Some((u64::from_le_bytes(*token), Parameters::read(rest).unwrap()))
        }

        fn echo(
            &mut self,
            from: &str,
            token: u64,
            sequence: u32,
            length: usize,
        ) -> Option<Vec<u8>> {
            let rest = [&token.to_le_bytes()[..], &sequence.to_le_bytes()].concat();
            let packet = self.packet(0, &rest, length);
            self.say(from, &packet)
        }
    }

    fn all() -> Parameters {
        Parameters {
            version: 1,
            duration: Duration::from_secs(3600),
            interval: Duration::from_micros(1),
            length: 9000,
            stats: Stats {
                count: true,
                window: true,
            },
            stamp_at: StampAt::Both,
            clock: Clock {
                wall: true,
                monotonic: true,
            },
            type_of_service: 0xb8,
            fill: b"rand".to_vec(),
        }
    }

    const HERE: &str = "192.0.2.1:5000";

    #[test]
    fn a_session_is_restricted_and_its_replies_have_what_was_agreed_on() {
        for key in [None, Key::new(b"secret")] {
            let tag = if key.is_some() { TAG } else { 0 };
            let mut talk = Talk::new(key);
            let (token, agreed) = talk.open(HERE, &all()).unwrap();
            let expected = Parameters {
                duration: LIMITS.longest,
                interval: LIMITS.interval,
                length: LIMITS.length,
                fill: Vec::new(),
                ..all()
            };
            assert_eq!(agreed, expected);
            for (sequence, count, window) in [(0, 1, 1), (1, 2, 0b11), (3, 3, 0b1101), (2, 4, 0)] {
                let reply = talk.echo(HERE, token, sequence, 300).unwrap();
                assert_eq!(reply.len(), 300);
                assert_eq!(reply[3] & 0x7, Flags::REPLY);
                let field = |at: usize| {
                    let at = at + tag;
                    u64::from_le_bytes(reply[at..at + 8].try_into().unwrap())
                };
                assert_eq!(field(4), token);
                assert_eq!(field(12) & 0xffff_ffff, u64::from(sequence));
                assert_eq!(field(16) & 0xffff_ffff, count);
                assert_eq!(field(20), window);
                assert_eq!([28, 36, 44, 52].map(field), [1000, 10, 3000, 30]);
            }
            // Another port has no session, nor does a token that was not given out.
            assert_eq!(talk.echo("192.0.2.1:5001", token, 4, 300), None);
            assert_eq!(talk.echo(HERE, token + 1, 4, 300), None);
            // Shorter than its answer would be.
            assert_eq!(talk.echo(HERE, token, 4, 59 + tag), None);
            let close = talk.packet(Flags::CLOSE, &token.to_le_bytes(), 0);
            assert_eq!(talk.say(HERE, &close), None);
            assert_eq!(talk.echo(HERE, token, 5, 300), None);
        }
    }

    #[test]
    fn forged_opens_keep_no_client_out() {
        let mut talk = Talk::new(None);
        let (used, _) = talk.open(HERE, &all()).unwrap();
        assert!(talk.echo(HERE, used, 0, 300).is_some());
        for number in 0..2000 {
            let from = format!("10.{}.{}.1:7", number / 250, number % 250);
            talk.open(&from, &all());
        }
        assert_eq!(talk.server.sessions.len(), MOST_SESSIONS);
        let (token, _) = talk.open("192.0.2.2:5000", &all()).unwrap();
        assert!(talk.echo("192.0.2.2:5000", token, 0, 300).is_some());
        assert!(
            talk.echo(HERE, used, 1, 300).is_some(),
            "what is used stays"
        );
    }

    #[test]
    fn no_answer_to_an_open_is_much_longer() {
        let mut talk = Talk::new(None);
        assert_eq!(talk.say(HERE, &[0x14, 0xa7, 0x5b, 1, 1, 2]), None);
        let plain = Parameters {
            fill: Vec::new(),
            ..all()
        };
        let open = talk.packet(Flags::OPEN, &plain.write(), 0);
        let answer = talk.say(HERE, &open).unwrap();
        assert!(
            answer.len() <= open.len() + LONGER_BYTES,
            "{}",
            answer.len()
        );
    }

    const TAG: usize = 16;

    #[test]
    fn a_key_is_needed_where_there_is_one_and_refused_where_there_is_none() {
        let open = Packet::new(Flags::OPEN, false)
            .with(&all().write())
            .finish(0, None);
        assert_eq!(Talk::new(Key::new(b"secret")).say(HERE, &open), None);
        let key = Key::new(b"another");
        let open = Packet::new(Flags::OPEN, true)
            .with(&all().write())
            .finish(0, key.as_ref());
        assert_eq!(Talk::new(Key::new(b"secret")).say(HERE, &open), None);
        assert_eq!(Talk::new(None).say(HERE, &open), None);
    }

    #[test]
    fn what_is_only_asked_begins_nothing() {
        let mut talk = Talk::new(None);
        let open = talk.packet(Flags::OPEN | Flags::CLOSE, &all().write(), 0);
        let answer = talk.say(HERE, &open).unwrap();
        assert_eq!(answer[3], Flags::OPEN | Flags::CLOSE | Flags::REPLY);
        assert_eq!(answer[4..12], [0; 8]);
        assert!(talk.server.sessions.is_empty());
    }

    #[test]
    fn a_network_gets_few_answers_to_opens_whatever_its_addresses_are() {
        let mut talk = Talk::new(None);
        let open = talk.packet(Flags::OPEN | Flags::CLOSE, &all().write(), 0);
        // 10 s in which one comes every 10 ms.
        let answered = (0..1000)
            .filter(|n| talk.say(&format!("192.0.2.{}:7", n % 256), &open).is_some())
            .count() as f64;
        let most = OPENS_AT_ONCE + 10.0 * OPENS_PER_S;
        assert!((most - 2.0..=most + 1.0).contains(&answered), "{answered}");
        assert!(talk.say("192.0.3.1:7", &open).is_some());
    }

    #[test]
    fn sessions_are_few_an_address_and_end_by_themselves() {
        let mut talk = Talk::new(None);
        let mut tokens = Vec::new();
        for port in 0..40 {
            talk.now += Duration::from_millis(200);
            let (token, _) = talk
                .open(&format!("192.0.2.1:{}", 5000 + port), &all())
                .unwrap();
            tokens.push(token);
        }
        assert_eq!(talk.server.sessions.len(), MOST_OF_A_SHARE);
        assert_eq!(
            talk.echo("192.0.2.1:5000", tokens[0], 0, 200),
            None,
            "the oldest is over"
        );
        assert!(talk.echo("192.0.2.1:5039", tokens[39], 0, 200).is_some());
        talk.now += LIMITS.longest + GRACE;
        let last = talk.echo("192.0.2.1:5039", tokens[39], 1, 200).unwrap();
        assert_eq!(last[3], Flags::REPLY | Flags::CLOSE);
        assert_eq!(talk.echo("192.0.2.1:5039", tokens[39], 2, 200), None);
        talk.now += EXPIRES;
        talk.open("198.51.100.1:1", &all()).unwrap();
        assert_eq!(talk.server.sessions.len(), 1);
    }

    #[test]
    fn faster_than_its_interval_it_does_not_answer() {
        let mut talk = Talk::new(None);
        let (token, _) = talk.open(HERE, &all()).unwrap();
        let mut answered = 0;
        for sequence in 0..1000 {
            // 100 µs each.
            talk.now -= Duration::from_micros(9900);
            answered += u32::from(talk.echo(HERE, token, sequence, 200).is_some());
        }
        assert!((100..=120).contains(&answered), "{answered}");
    }

    proptest! {
        #[test]
        fn no_echo_is_longer_than_its_request(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            flags in 0..16u8,
        ) {
            let mut talk = Talk::new(None);
            let _ = talk.say(HERE, &bytes);
            let (token, _) = talk.open(HERE, &all()).unwrap();
            let rest = [&token.to_le_bytes()[..], &bytes].concat();
            let packet = Packet::new(flags, false).with(&rest).finish(0, None);
            if let Some(reply) = talk.say(HERE, &packet) {
                let longest = packet.len() + if flags & Flags::OPEN != 0 { 8 } else { 0 };
                prop_assert!(reply.len() <= longest);
            }
        }
    }
}
