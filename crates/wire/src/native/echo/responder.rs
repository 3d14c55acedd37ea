//! The answering side of the echo, as a state machine: what comes in and when are arguments.

use std::net::SocketAddr;
use std::time::Duration;

use super::{CookieJar, Datagram, EPOCH, Kind};
use crate::native::spec::{ECHO_BURST, ECHO_LONGER_BURST_BYTES, ECHO_LONGER_BYTES_PER_S, ECHO_PPS};
use crate::recent::Recent;
use crate::share::{Bucket, Share};
use crate::stamp::ErrorEstimate;

/// Sessions whose probes are counted at once; 4096 of them take about half a megabyte.
const MAX_SOURCES: usize = 4096;

/// After this time without a probe a session is forgotten: its cookie is no longer good either.
const SOURCE_IDLE: Duration = Duration::from_secs(2 * EPOCH.as_secs());

/// Largest payload of UDP over IPv4 (RFC 768).
const MOST_BYTES: usize = 65_507;

/// What a responder did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EchoCounters {
    pub probes: u64,
    pub cookies: u64,
    /// Probes without a valid cookie, dropped.
    pub bad_cookies: u64,
    /// Datagrams above what one address may have answered, dropped.
    pub above_rate: u64,
    /// Datagrams that are none of this protocol's requests, dropped.
    pub ignored: u64,
    /// Answers that could not be sent.
    pub send_errors: u64,
}

/// What one address has drawn.
#[derive(Debug, Default)]
struct Drawn {
    answers: Bucket,
    longer_bytes: Bucket,
}

/// The answering side. It keeps a bounded count of probes a session, and nothing else.
pub struct Responder {
    jar: CookieJar,
    /// Probes by source and session.
    sources: Recent<(SocketAddr, u32), u32>,
    drawn: Recent<Share, Drawn>,
    counters: EchoCounters,
    clock: Option<ErrorEstimate>,
}

impl Responder {
    /// A responder whose cookies come from `jar`.
    pub fn new(jar: CookieJar) -> Self {
        Self {
            jar,
            sources: Recent::new(MAX_SOURCES, SOURCE_IDLE),
            drawn: Recent::new(MAX_SOURCES, SOURCE_IDLE),
            counters: EchoCounters::default(),
            clock: None,
        }
    }

    /// Answers say from now on how far the clock of their times may be off.
    pub fn tell_clock(&mut self, clock: ErrorEstimate) {
        self.clock = Some(clock);
    }

    /// What it did so far.
    pub fn counters(&self) -> EchoCounters {
        self.counters
    }

    /// The answer to `datagram`, as large as it or, with a cookie of its address, as it says; `None`
    /// when there is to be none. A cookie may date from an earlier holder of the address. So an answer is longer than
    /// its probe only up to `declared`, the largest size that a running phase of this address declared, and at a
    /// bounded rate.
    ///
    /// `now` is a time since any fixed origin that never goes back; `received_ns` is when the
    /// datagram came in, ns of CLOCK_REALTIME. The server's send time is left for
    /// [`set_server_send_time`](super::set_server_send_time).
    pub fn handle(
        &mut self,
        now: Duration,
        received_ns: i64,
        from: SocketAddr,
        datagram: &[u8],
        declared: Option<u32>,
    ) -> Option<Vec<u8>> {
        let Some(request) = Datagram::parse(datagram) else {
            self.counters.ignored += 1;
            return None;
        };
        let drawn = self.drawn.at(now, Share::of(from.ip()));
        // A client that runs a phase may draw more answers than the rate for probes allows.
        if declared.is_none() && !drawn.answers.draw(now, 1.0, ECHO_PPS, ECHO_BURST) {
            self.counters.above_rate += 1;
            return None;
        }
        let mut size = datagram.len();
        let answer = match request.kind {
            Kind::CookieRequest => {
                self.counters.cookies += 1;
                Datagram {
                    kind: Kind::CookieReply,
                    cookie: self.jar.cookie(now, from),
                    ..request
                }
            }
            Kind::Probe if self.jar.verify(now, from, &request.cookie) => {
                self.counters.probes += 1;
                let count = self.sources.at(now, (from, request.session));
                *count = count.saturating_add(1);
                let server_sequence = *count;
                if request.answer_bytes > 0 {
                    let wanted = usize::from(request.answer_bytes).min(MOST_BYTES);
                    let longer = wanted.saturating_sub(size) as f64;
                    let granted = longer == 0.0
                        || declared.is_some_and(|most| wanted <= most as usize)
                            && drawn.longer_bytes.draw(
                                now,
                                longer,
                                ECHO_LONGER_BYTES_PER_S,
                                ECHO_LONGER_BURST_BYTES,
                            );
                    if granted {
                        size = wanted;
                    }
                }
                Datagram {
                    kind: Kind::Reply,
                    server_sequence,
                    server_clock: self.clock,
                    ..request
                }
            }
            Kind::Probe => {
                self.counters.bad_cookies += 1;
                return None;
            }
            // Answering an answer would let two responders talk to each other for ever.
            Kind::CookieReply | Kind::Reply => {
                self.counters.ignored += 1;
                return None;
            }
        };
        Some(
            Datagram {
                server_receive_ns: received_ns,
                server_send_ns: 0,
                ..answer
            }
            .write(size),
        )
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::{Cookie, set_server_send_time};
    use super::*;
    use proptest::prelude::*;

    const T0: Duration = Duration::from_secs(5 * EPOCH.as_secs());

    fn client(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    fn responder() -> Responder {
        Responder::new(CookieJar::new([7; 32]))
    }

    fn fetch_cookie(responder: &mut Responder, now: Duration, from: SocketAddr) -> Cookie {
        let reply = responder
            .handle(now, 0, from, &Datagram::cookie_request(9).write(64), None)
            .unwrap();
        let reply = Datagram::parse(&reply).unwrap();
        assert_eq!((reply.kind, reply.session), (Kind::CookieReply, 9));
        reply.cookie
    }

    #[test]
    fn a_probe_is_answered_with_its_times_and_the_servers_count() {
        let mut responder = responder();
        let cookie = fetch_cookie(&mut responder, T0, client(4000));
        for (sequence, count) in [(0, 1), (3, 2), (3, 3)] {
            let probe = Datagram::probe(cookie, 9, sequence, -5);
            let mut reply = responder
                .handle(T0, 111, client(4000), &probe.write(100), None)
                .unwrap();
            assert_eq!(reply.len(), 100);
            set_server_send_time(&mut reply, 222);
            let expected = Datagram {
                kind: Kind::Reply,
                server_sequence: count,
                server_receive_ns: 111,
                server_send_ns: 222,
                ..probe
            };
            assert_eq!(Datagram::parse(&reply), Some(expected));
        }
        let new_session = Datagram::probe(cookie, 10, 0, 0).write(64);
        let reply = responder
            .handle(T0, 0, client(4000), &new_session, None)
            .unwrap();
        assert_eq!(Datagram::parse(&reply).unwrap().server_sequence, 1);
        assert_eq!(
            responder.counters(),
            EchoCounters {
                probes: 4,
                cookies: 1,
                ..EchoCounters::default()
            }
        );
    }

    #[test]
    fn answers_say_what_is_known_of_the_clock() {
        let mut responder = responder();
        let cookie = fetch_cookie(&mut responder, T0, client(4000));
        let said = |responder: &mut Responder| {
            let probe = Datagram::probe(cookie, 9, 0, 0).write(64);
            let reply = responder.handle(T0, 0, client(4000), &probe, None).unwrap();
            Datagram::parse(&reply).unwrap().server_clock
        };
        assert_eq!(said(&mut responder), None);
        let clock = ErrorEstimate::new(true, Duration::from_millis(1));
        responder.tell_clock(clock);
        assert_eq!(said(&mut responder), Some(clock));
    }

    #[test]
    fn a_foreign_or_expired_cookie_gets_nothing() {
        let mut responder = responder();
        let cookie = fetch_cookie(&mut responder, T0, client(4000));
        let probe = Datagram::probe(cookie, 9, 0, 0).write(64);
        assert!(
            responder
                .handle(T0, 0, client(4001), &probe, None)
                .is_none(),
            "another port"
        );
        let other = SocketAddr::from(([192, 0, 2, 2], 4000));
        assert!(
            responder.handle(T0, 0, other, &probe, None).is_none(),
            "another address"
        );
        assert!(
            responder
                .handle(T0 + EPOCH, 0, client(4000), &probe, None)
                .is_some(),
            "the epoch after"
        );
        assert!(
            responder
                .handle(T0 + 2 * EPOCH, 0, client(4000), &probe, None)
                .is_none(),
            "two epochs after"
        );
        let mut forged = cookie;
        forged[15] ^= 1;
        assert!(
            responder
                .handle(
                    T0,
                    0,
                    client(4000),
                    &Datagram::probe(forged, 9, 0, 0).write(64),
                    None
                )
                .is_none()
        );
        assert_eq!(responder.counters().bad_cookies, 4);
    }

    #[test]
    fn answers_are_not_answered() {
        let mut responder = responder();
        let cookie = fetch_cookie(&mut responder, T0, client(1));
        for kind in [Kind::CookieReply, Kind::Reply] {
            let datagram = Datagram {
                kind,
                ..Datagram::probe(cookie, 9, 0, 0)
            };
            assert!(
                responder
                    .handle(T0, 0, client(1), &datagram.write(64), None)
                    .is_none()
            );
        }
        assert_eq!(responder.counters().ignored, 2);
    }

    #[test]
    fn the_state_is_bounded_and_the_longest_silent_goes_first() {
        let mut responder = responder();
        let mut probe = |port: u16, now: Duration| {
            let cookie = responder.jar.cookie(now, client(port));
            let reply = responder
                .handle(
                    now,
                    0,
                    client(port),
                    &Datagram::probe(cookie, 1, 0, 0).write(64),
                    None,
                )
                .unwrap();
            assert!(responder.sources.len() <= MAX_SOURCES);
            Datagram::parse(&reply).unwrap().server_sequence
        };
        for port in 1..=MAX_SOURCES as u16 {
            assert_eq!(probe(port, T0 + Duration::from_millis(port.into())), 1);
        }
        let later = T0 + Duration::from_secs(30);
        assert_eq!(
            probe(1, later),
            2,
            "seen again, so port 2 is now the longest silent"
        );
        assert_eq!(probe(5000, later), 1);
        assert_eq!(probe(1, later), 3);
        assert_eq!(probe(2, later), 1, "was forgotten");
        assert_eq!(
            probe(1, later + SOURCE_IDLE + Duration::from_secs(1)),
            1,
            "idle for too long"
        );
    }

    proptest! {
        #[test]
        fn any_datagram_is_survived_and_never_amplified(
            datagrams in proptest::collection::vec(any_datagram(), 1..20), port: u16,
        ) {
            let mut responder = responder();
            for datagram in datagrams {
                if let Some(reply) = responder.handle(T0, 1, client(port), &datagram, None) {
                    prop_assert!(reply.len() <= datagram.len());
                }
            }
            let cookie = fetch_cookie(&mut responder, T0, client(port));
            let probe = Datagram::probe(cookie, 3, 1, 2).write(64);
            prop_assert!(responder.handle(T0, 1, client(port), &probe, None).is_some());
        }

        /// Larger answers go nowhere but where the cookie came from, and a phase runs that declared them.
        #[test]
        fn only_who_runs_a_phase_gets_more_than_it_sent(
            answer_bytes: u16, from: u16, to: u16, declared: Option<u16>,
        ) {
            let declared = declared.map(u32::from);
            let mut responder = responder();
            let cookie = fetch_cookie(&mut responder, T0, client(from));
            let probe = Datagram { answer_bytes, ..Datagram::probe(cookie, 3, 1, 2) }.write(100);
            let reply = responder.handle(T0, 1, client(to), &probe, declared);
            let expected = match usize::from(answer_bytes) {
                0 => 100,
                bytes if bytes > 100 && declared.is_none_or(|most| bytes > most as usize) => 100,
                bytes => bytes.clamp(super::super::MIN_BYTES, MOST_BYTES),
            };
            prop_assert_eq!(reply.map(|r| r.len()), (from == to).then_some(expected));
            let mut begging = Datagram::cookie_request(3);
            begging.answer_bytes = answer_bytes;
            let reply = responder.handle(T0, 1, client(to), &begging.write(64), declared);
            prop_assert_eq!(reply.map(|r| r.len()), Some(64));
        }
    }

    #[test]
    fn longer_answers_have_a_rate() {
        let mut responder = responder();
        let cookie = fetch_cookie(&mut responder, T0, client(1));
        let probe = Datagram {
            answer_bytes: 65_000,
            ..Datagram::probe(cookie, 3, 1, 2)
        };
        let mut bytes = 0;
        // Twenty a millisecond for a second: 1.3 GB.
        for round in 0..20_000_u64 {
            let now = T0 + Duration::from_micros(50) * round as u32;
            let reply = responder.handle(now, 1, client(1), &probe.write(92), Some(65_000));
            bytes += reply.unwrap().len() - 92;
        }
        let most = ECHO_LONGER_BYTES_PER_S + ECHO_LONGER_BURST_BYTES;
        assert!((bytes as f64) <= most, "{bytes}");
    }

    #[test]
    fn one_address_does_not_take_all_answers() {
        let mut responder = responder();
        let cookie = fetch_cookie(&mut responder, T0, client(1));
        let probe = Datagram::probe(cookie, 3, 1, 2);
        let nothing = Datagram {
            kind: Kind::Reply,
            ..probe
        }
        .write(64);
        for _ in 1..ECHO_BURST as u32 {
            responder.handle(T0, 1, client(2), &nothing, None);
        }
        let probe = probe.write(64);
        assert!(responder.handle(T0, 1, client(1), &probe, None).is_none());
        assert_eq!(responder.counters().above_rate, 1);
        // Beside a phase of its own it is still answered, and so are all others.
        assert!(
            responder
                .handle(T0, 1, client(1), &probe, Some(0))
                .is_some()
        );
        let other = SocketAddr::from(([192, 0, 2, 2], 1));
        fetch_cookie(&mut responder, T0, other);
    }

    /// Noise, and noise behind a valid beginning.
    fn any_datagram() -> impl Strategy<Value = Vec<u8>> {
        (
            any::<bool>(),
            proptest::collection::vec(any::<u8>(), 0..200),
        )
            .prop_map(|(framed, mut bytes)| {
                if framed {
                    bytes.iter_mut().zip(*b"PLMB\x01").for_each(|(b, m)| *b = m);
                    bytes.iter_mut().skip(5).take(1).for_each(|b| *b %= 6);
                }
                bytes
            })
    }
}
