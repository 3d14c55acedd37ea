//! Probes by plumb's UDP echo, and the cookie that its far end wants to see.

use std::io;

use plumb_net::clock::monotonic_ns;
use plumb_wire::native::echo::{Cookie, Datagram, EPOCH, Kind, MIN_BYTES};

use crate::ping::channel::Channel;
use crate::ping::greeting::greet;
use crate::ping::plan::{Plan, ProbeError, Sizes};
use crate::ping::sample::{Answer, FarClock, FarEnd};
use crate::ping::socket::random_u32;
use crate::ping::strategy::{Event, Network};

/// How long the answer to each request for the first cookie is waited for: 3 s in all, above the
/// fullest queue that is met in homes.
const COOKIE_WAITS_NS: [u64; 5] = [600_000_000; 5];

/// A cookie is renewed at half of the time that it is sure to be good for.
const COOKIE_RENEWAL_NS: u64 = EPOCH.as_secs() * 1_000_000_000 / 2;

/// After this time without an answer a new cookie is asked for: the far end may have been
/// started anew, or a NAT on the way may have given us another port.
const SILENCE_NS: u64 = 3_000_000_000;

/// The network of UDP probes to one far end.
pub(crate) struct UdpEcho {
    channel: Channel,
    session: u32,
    sizes: Sizes,
    /// Size that answers are asked to have; as large as the probes where it is 0.
    answer_bytes: u16,
    cookie: Cookie,
    /// When the cookie came, when one was last asked for, and when a probe was last answered.
    cookie_ns: u64,
    asked_ns: u64,
    answered_ns: u64,
    far_clock: Option<FarClock>,
}

impl UdpEcho {
    /// Opens the socket and fetches the first cookie.
    pub(crate) fn open(plan: &Plan) -> Result<Self, ProbeError> {
        let session = random_u32(&plan.far_end())?;
        let now = monotonic_ns();
        let mut this = Self {
            channel: Channel::udp(plan)?,
            session,
            sizes: plan.sizes,
            answer_bytes: 0,
            cookie: Cookie::default(),
            cookie_ns: 0,
            asked_ns: now,
            answered_ns: now,
            far_clock: None,
        };
        greet(
            &mut this,
            plan,
            &COOKIE_WAITS_NS,
            |this, _| this.ask_for_cookie(),
            |this, _, until_ns| {
                let event = this.receive(until_ns)?;
                Ok((this.cookie_ns != 0, event))
            },
            |why, unanswered| ProbeError::NoEcho {
                far_end: plan.far_end(),
                why,
                unanswered,
            },
        )?;
        Ok(this)
    }

    /// The same with answers as small as they can be.
    pub(crate) fn with_small_answers(self) -> Self {
        Self {
            answer_bytes: MIN_BYTES as u16,
            ..self
        }
    }

    fn ask_for_cookie(&mut self) -> io::Result<()> {
        self.asked_ns = monotonic_ns();
        self.channel.send(
            None,
            &Datagram::cookie_request(self.session).write(MIN_BYTES),
        )
    }

    /// Whether to ask for another cookie: at most once in [`SILENCE_NS`], when the one we have
    /// grows old or nothing is answered any more.
    fn wants_cookie(&self, now_ns: u64) -> bool {
        let past = |then_ns: u64, ns: u64| now_ns.saturating_sub(then_ns) > ns;
        past(self.asked_ns, SILENCE_NS)
            && (past(self.cookie_ns, COOKIE_RENEWAL_NS) || past(self.answered_ns, SILENCE_NS))
    }
}

impl Network for UdpEcho {
    fn id(&self) -> u32 {
        self.session
    }

    fn far_clock(&self) -> Option<FarClock> {
        self.far_clock
    }

    fn send(&mut self, sequence: u32) -> io::Result<()> {
        if self.wants_cookie(monotonic_ns()) {
            // When the request cannot be sent, neither can the probe, which reports the reason.
            let _ = self.ask_for_cookie();
        }
        let sent_ns = i64::try_from(monotonic_ns()).unwrap_or(i64::MAX);
        let probe = Datagram {
            answer_bytes: self.answer_bytes,
            ..Datagram::probe(self.cookie, self.session, sequence, sent_ns)
        };
        let bytes = probe.write(self.sizes.of(sequence));
        self.channel.send(Some(sequence), &bytes)
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>> {
        let Self {
            channel,
            session,
            cookie,
            cookie_ns,
            answered_ns,
            far_clock,
            ..
        } = self;
        channel.receive_datagram(until_ns, |packet, at| {
            let datagram =
                Datagram::parse(packet).filter(|datagram| datagram.session == *session)?;
            match datagram.kind {
                Kind::CookieReply => {
                    *cookie = datagram.cookie;
                    *cookie_ns = at.monotonic_ns;
                    None
                }
                Kind::Reply => {
                    *answered_ns = at.monotonic_ns;
                    *far_clock = datagram.server_clock.map(FarClock::from).or(*far_clock);
                    Some(Answer {
                        far_end: Some(FarEnd {
                            received_ns: datagram.server_receive_ns,
                            sent_ns: datagram.server_send_ns,
                            // The server counts from 1, this one included.
                            count: datagram.server_sequence.checked_sub(1),
                            hop_limit: None,
                        }),
                        ..Answer::at(at, datagram.client_sequence)
                    })
                }
                Kind::CookieRequest | Kind::Probe => None,
            }
        })
    }
}
