//! One station of an Ethernet: the transmitting half of its MAC (IEEE 802.3 clause 4.2), with a
//! queue before it.

use std::collections::VecDeque;

use crate::backlog::Backlog;
use crate::cell::departures::Departures;
use crate::cell::shaper::backlog_delay::BacklogDelay;
use crate::packet::Packet;
use crate::queue::{AnyQueue, QueueSpec};
use crate::random::Random;
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;

/// Parameters of 10 and 100 Mbit/s (IEEE 802.3 clause 4.4.2), in bit times.
pub(super) const SLOT: u64 = 512;
const JAM: u64 = 32;
/// The gap between frames is 96: in its first two thirds carrier starts it again, in the rest
/// it does not (clause 4.2.3.2.2).
const GAP_FIRST: u64 = 64;
const GAP_REST: u64 = 32;
/// Preamble and start of frame (clause 3.1.1), which are sent to their end also in a collision.
const PREAMBLE: u64 = 64;
/// Attempts to send a frame, and the power of two at which the backoff stops growing.
const ATTEMPT_LIMIT: u32 = 16;
const BACKOFF_LIMIT: u32 = 10;
/// Bytes of the gap in `ethernet` framing, which are no bits of the frame.
const GAP_BYTES: u64 = 12;

/// Whether a station listens before it sends and while it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Duplex {
    Half,
    Full,
}

/// What a station is doing about the frame that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    /// It waits for its turn, and until then because of a collision.
    Waiting {
        until: Time,
    },
    /// It sends, until then unless there is a collision.
    Sending {
        since: Time,
        until: Time,
    },
    /// It makes sure that the other sees the collision.
    Jamming {
        until: Time,
        late: bool,
    },
}

/// The process Deference of clause 4.2.8: whether a transmission may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deference {
    Clear,
    /// A station sends; `sent` when it was this station.
    Busy {
        sent: bool,
    },
    /// The first part of the gap; after the station's own transmission it does not listen.
    GapFirst {
        until: Time,
        listens: bool,
    },
    /// The rest of the gap.
    GapRest {
        until: Time,
    },
}

/// What comes from the other station.
pub(super) struct Signal {
    pub(super) on: Time,
    /// When it ends; `None` while the other is still sending.
    pub(super) off: Option<Time>,
    heard: bool,
    /// Whether this station sent meanwhile, so that it received no frame.
    damaged: bool,
    /// The frame, when all of it was sent.
    pub(super) packet: Option<Packet>,
}

impl Signal {
    pub(super) fn from(on: Time) -> Self {
        Self {
            on,
            off: None,
            heard: false,
            damaged: false,
            packet: None,
        }
    }
}

/// How a signal of the other station ended.
pub(super) struct Received {
    pub(super) at: Time,
    pub(super) packet: Packet,
    pub(super) damaged: bool,
}

/// How a transmission ended.
pub(super) struct Sent {
    pub(super) at: Time,
    /// The frame, when all of it was sent.
    pub(super) packet: Option<Packet>,
}

pub(super) struct Station {
    pub(super) duplex: Duplex,
    /// A bit time in nanoseconds.
    pub(super) bit_ns: u64,
    pub(super) queue: Box<dyn AnyQueue<QueueSpec>>,
    /// The frame that the MAC has taken from the queue.
    pub(super) frame: Option<Packet>,
    /// How often it has collided.
    collisions: u32,
    random: Random,
    phase: Phase,
    deference: Deference,
    /// What comes from the other station, in order.
    pub(super) incoming: VecDeque<Signal>,
    /// What arrived at the other station and was not yet asked for.
    pub(super) done: Departures,
    /// What was dropped and not yet asked for.
    pub(super) drops: Tally,
    pub(super) delay: BacklogDelay,
}

impl Station {
    pub(super) fn new(
        duplex: Duplex,
        bit_ns: u64,
        queue: Box<dyn AnyQueue<QueueSpec>>,
        seed: u64,
        now: Time,
    ) -> Self {
        Self {
            duplex,
            bit_ns,
            queue,
            frame: None,
            collisions: 0,
            random: Random::new(seed),
            phase: Phase::Idle,
            deference: Deference::Clear,
            incoming: VecDeque::new(),
            done: Departures::default(),
            drops: Tally::new(),
            delay: BacklogDelay::new(now),
        }
    }

    /// When something happens by itself next, after `now`.
    pub(super) fn next(&self, now: Time) -> Option<Time> {
        let phase = match self.phase {
            Phase::Waiting { until } if until > now => Some(until),
            Phase::Sending { until, .. } | Phase::Jamming { until, .. } => Some(until),
            _ => None,
        };
        let gap = match self.deference {
            Deference::GapFirst { until, .. } | Deference::GapRest { until } => Some(until),
            _ => None,
        };
        let signals = self
            .incoming
            .iter()
            .filter_map(|signal| match signal.heard {
                false => Some(signal.on),
                true => signal.off,
            });
        signals.chain(phase).chain(gap).min()
    }

    /// Takes a packet into the queue.
    pub(super) fn enqueue(&mut self, now: Time, packet: Packet) {
        let held = self.frame.as_ref().map(Packet::backlog);
        self.queue
            .enqueue(now, packet, held.unwrap_or_default(), &mut self.drops);
        if self.phase == Phase::Idle {
            self.fetch(now);
        }
    }

    /// Takes the next frame from the queue.
    fn fetch(&mut self, now: Time) {
        self.collisions = 0;
        self.frame = self.queue.dequeue(now, &mut self.drops);
        self.phase = match self.frame {
            Some(_) => Phase::Waiting { until: now },
            None => Phase::Idle,
        };
    }

    /// Ends the transmission that ends at `now`, if one does.
    pub(super) fn end(&mut self, now: Time) -> Option<Sent> {
        match self.phase {
            Phase::Sending { until, .. } if until <= now => {
                let packet = self.frame.take();
                self.fetch(now);
                Some(Sent { at: now, packet })
            }
            Phase::Jamming { until, late } if until <= now => {
                self.after_collision(now, late);
                let packet = None;
                Some(Sent { at: now, packet })
            }
            _ => None,
        }
    }

    /// Gives the frame up, or backs off: a random number of slots below two to the power of its
    /// collisions (clause 4.2.3.2.5). Below 1 Gbit/s the standard's own transmitter would try
    /// again after a late collision too; controllers since the Am7990 (LANCE) do not.
    fn after_collision(&mut self, now: Time, late: bool) {
        self.collisions += 1;
        let gives_up = match late {
            true => Some(DropCause::LateCollision),
            false => (self.collisions >= ATTEMPT_LIMIT).then_some(DropCause::ExcessiveCollisions),
        };
        let Some(cause) = gives_up else {
            let slots = self
                .random
                .below_power_of_two(self.collisions.min(BACKOFF_LIMIT));
            let until = self.after(now, slots * SLOT);
            self.phase = Phase::Waiting { until };
            return;
        };
        if let Some(packet) = self.frame.take() {
            self.drops.drop(cause, &packet);
        }
        self.fetch(now);
    }

    /// Hears what comes and goes at `now`; returns a frame that has come to its end.
    pub(super) fn listen(&mut self, now: Time) -> Option<Received> {
        let is_half = self.duplex == Duplex::Half;
        let deaf = is_half && self.is_sending();
        let mut collides = false;
        for signal in &mut self.incoming {
            if !signal.heard && signal.on <= now {
                signal.heard = true;
                signal.damaged |= deaf;
                collides |= deaf;
            }
        }
        if collides {
            self.collide(now);
        }
        let over = |signal: &mut Signal| signal.off.is_some_and(|off| off <= now);
        let signal = self.incoming.pop_front_if(over)?;
        Some(Received {
            at: now,
            damaged: signal.damaged,
            packet: signal.packet?,
        })
    }

    /// Begins to send when it is time; returns whether it does.
    pub(super) fn begin(&mut self, now: Time) -> bool {
        let wants = matches!(self.phase, Phase::Waiting { until } if until <= now);
        let may = self.defer(now, wants);
        let Some(frame) = self.frame.as_ref().filter(|_| wants && may) else {
            return false;
        };
        let bits = frame.wire.total.saturating_sub(GAP_BYTES) * 8;
        let until = self.after(now, bits);
        self.phase = Phase::Sending { since: now, until };
        self.deference = Deference::Busy { sent: true };
        if self.duplex == Duplex::Half && self.senses_carrier() {
            for signal in self.incoming.iter_mut().filter(|signal| signal.heard) {
                signal.damaged = true;
            }
            self.collide(now);
        }
        true
    }

    /// Follows the medium; returns whether a transmission may begin now.
    fn defer(&mut self, now: Time, wants: bool) -> bool {
        loop {
            let (carrier, sends) = (self.senses_carrier(), self.is_sending());
            self.deference = match self.deference {
                Deference::Clear if carrier || sends => Deference::Busy { sent: sends },
                Deference::Clear => return true,
                Deference::Busy { sent } if carrier || sends => {
                    let sent = sent || sends;
                    self.deference = Deference::Busy { sent };
                    return false;
                }
                Deference::Busy { sent } => Deference::GapFirst {
                    until: self.after(now, GAP_FIRST),
                    listens: !sent,
                },
                Deference::GapFirst { listens: true, .. } if carrier => {
                    Deference::Busy { sent: false }
                }
                Deference::GapFirst { until, .. } if until <= now => Deference::GapRest {
                    until: self.after(until, GAP_REST),
                },
                Deference::GapRest { until } if until <= now => {
                    self.deference = Deference::Clear;
                    if wants {
                        // Whatever is on the medium by now.
                        return true;
                    }
                    continue;
                }
                Deference::GapFirst { .. } | Deference::GapRest { .. } => return false,
            };
        }
    }

    fn collide(&mut self, now: Time) {
        if let Phase::Sending { since, .. } = self.phase {
            let jam = now.max(self.after(since, PREAMBLE));
            self.phase = Phase::Jamming {
                until: self.after(jam, JAM),
                late: now > self.after(since, SLOT),
            };
        }
    }

    fn is_sending(&self) -> bool {
        matches!(self.phase, Phase::Sending { .. } | Phase::Jamming { .. })
    }

    fn senses_carrier(&self) -> bool {
        self.duplex == Duplex::Half && self.incoming.iter().any(|signal| signal.heard)
    }

    fn after(&self, time: Time, bits: u64) -> Time {
        Time::from_nanos(time.as_nanos().saturating_add(bits * self.bit_ns))
    }

    /// Samples the delay on the grid points before `end`: the time to send the queue and the rest of the frame, if no
    /// other station sends.
    pub(super) fn sample_delay(&mut self, end: Time) {
        let waiting = self.queue.backlog().wire_bytes;
        let (phase, bit_ns) = (self.phase, self.bit_ns);
        let frame = self.frame.as_ref().map_or(0, |frame| frame.wire.total);
        self.delay.sample(end, |at| match phase {
            Phase::Sending { until, .. } => until.nanos_since(at) + waiting * 8 * bit_ns,
            _ => (waiting + frame) * 8 * bit_ns,
        });
    }

    /// The queue and the frame being sent.
    pub(super) fn backlog(&self) -> Backlog {
        let frame = self.frame.as_ref().map(Packet::backlog);
        self.queue.backlog() + frame.unwrap_or_default()
    }
}
