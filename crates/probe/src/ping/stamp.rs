//! Probes by STAMP (RFC 8762), answered by any reflector of STAMP or TWAMP Light.

use std::io;

use plumb_net::clock::{discipline, realtime_ns};
use plumb_wire::stamp::{self, ErrorEstimate, Reply, Request};

use crate::ping::channel::Channel;
use crate::ping::greeting::greet;
use crate::ping::plan::{Key, Plan, ProbeError, Sizes};
use crate::ping::sample::{Answer, FarClock, FarEnd};
use crate::ping::socket::random_u32;
use crate::ping::strategy::{Event, Network};

/// How long the answers to the first packets are waited for: 3.5 s in all, above the fullest queue
/// that is met in homes. Each waits longer than the one before, so that also an answer slower than
/// the first wait is met.
const GREETING_WAITS_NS: [u64; 3] = [500_000_000, 1_000_000_000, 2_000_000_000];

/// The number of the first probe. Those before it are for greetings, so that a reflector that counts
/// for itself has always counted less: its numbers cannot be taken for those that it only copies.
const FIRST_NUMBER: u32 = 16;

/// What a clock of which the kernel says nothing may be off by (include/linux/timex.h, NTP_PHASE_LIMIT).
const UNKNOWN_ERROR: std::time::Duration = std::time::Duration::from_secs(16);

/// The network of STAMP packets to one reflector.
pub(crate) struct StampEcho {
    channel: Channel,
    key: Option<stamp::Key>,
    session: u16,
    sizes: Sizes,
    /// The reflector's number of the first probe, where it counts.
    first_count: u32,
    far_clock: Option<FarClock>,
}

impl StampEcho {
    /// Opens the socket, and sees that there is a reflector.
    pub(crate) fn open(plan: &Plan) -> Result<Self, ProbeError> {
        let session = random_u32(&plan.far_end())?;
        let key = match &plan.key {
            Some(Key::Stamp(key)) => Some(key.clone()),
            _ => None,
        };
        let mut this = Self {
            channel: Channel::udp(plan)?,
            key,
            // Zero means no session (RFC 8972, section 3).
            session: ((session >> 16) as u16).max(1),
            sizes: plan.sizes,
            first_count: 0,
            far_clock: None,
        };
        this.greet(plan)?;
        Ok(this)
    }

    /// Exchanges a packet before the first probe, by which the reflector's count is known.
    fn greet(&mut self, plan: &Plan) -> Result<(), ProbeError> {
        greet(
            self,
            plan,
            &GREETING_WAITS_NS,
            |this, number| this.write(number, None),
            |this, number, until_ns| {
                let mut greeted = None;
                let event = this.listen(until_ns, |reply| greeted = Some(*reply))?;
                // Of several, only the answer to the latest says how many were counted before.
                let reply = greeted.filter(|reply| reply.request.sequence == number);
                if let Some(reply) = reply {
                    this.first_count = reply.sequence.wrapping_add(1);
                }
                Ok((reply.is_some(), event))
            },
            |why, _| ProbeError::NoReflector {
                far_end: plan.far_end(),
                why,
            },
        )
    }

    /// Sends a packet of that number; `probe` is the number of the probe that it is.
    fn write(&mut self, number: u32, probe: Option<u32>) -> io::Result<()> {
        let request = Request {
            sequence: number,
            sent_ns: i64::try_from(realtime_ns()).unwrap_or(i64::MAX),
            error: local_error(),
            session: self.session,
        };
        let size = self.sizes.of(probe.unwrap_or(0));
        let packet = request.write(self.key.as_ref(), &[], size);
        self.channel.send(probe, &packet)
    }

    /// The next event; every answer of this session is shown.
    fn listen(&mut self, until_ns: u64, mut show: impl FnMut(&Reply)) -> io::Result<Option<Event>> {
        let Self {
            channel,
            key,
            session,
            first_count,
            far_clock,
            ..
        } = self;
        channel.receive_datagram(until_ns, |packet, at| {
            // Reflectors that know only RFC 8762 send zero there, and reflectors of TWAMP any value.
            let reply = Reply::parse(packet, key.as_ref())?;
            if reply.session != *session && reply.session != 0 {
                return None;
            }
            show(&reply);
            *far_clock = Some(reply.error.into());
            let sequence = reply.request.sequence.checked_sub(FIRST_NUMBER)?;
            let counts = reply.sequence != reply.request.sequence;
            Some(Answer {
                far_end: Some(FarEnd {
                    received_ns: reply.received_ns,
                    sent_ns: reply.sent_ns,
                    count: counts.then(|| reply.sequence.wrapping_sub(*first_count)),
                    hop_limit: Some(reply.request_hops),
                }),
                ..Answer::at(at, sequence)
            })
        })
    }
}

/// How far this host's clock may be off, as packets say it.
pub(crate) fn local_error() -> ErrorEstimate {
    discipline().map_or(ErrorEstimate::new(false, UNKNOWN_ERROR), |clock| {
        ErrorEstimate::new(clock.synchronised, clock.max_error)
    })
}

impl Network for StampEcho {
    fn id(&self) -> u32 {
        self.session.into()
    }

    fn far_clock(&self) -> Option<FarClock> {
        self.far_clock
    }

    fn send(&mut self, sequence: u32) -> io::Result<()> {
        self.write(sequence.wrapping_add(FIRST_NUMBER), Some(sequence))
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>> {
        self.listen(until_ns, |_| ())
    }
}
