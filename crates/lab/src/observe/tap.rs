//! Between a driver and an observer: a bounded channel, which the driver never waits for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use plumb_link::outcome::Outcome;
use plumb_link::packet::Packet;
use plumb_link::time::Time;
use plumb_wire::pcapng::Direction;

use crate::scenario::LinkEnd;

/// What waits for an observer at most: 4000 packets, of which few are large segments.
pub(super) const MOST_WAITING: usize = 4000;

/// What an observer wants of one direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wants {
    /// What became of each packet.
    Outcomes,
    /// The packets that pass the sender's end.
    AtSender,
    /// The packets that pass the receiver's end.
    AtReceiver,
}

/// A message from a driver to an observer.
pub(crate) enum Seen {
    /// A packet at an end of the link.
    Packet {
        at: Time,
        direction: Direction,
        packet: Packet,
    },
    /// What became of packets of a direction, and how many more went unrecorded.
    Outcomes {
        of: Arc<LinkEnd>,
        outcomes: Vec<Outcome>,
        missed: u64,
    },
}

/// The channel through which a driver reports to an observer.
pub(crate) struct Tap {
    wants: Wants,
    of: Arc<LinkEnd>,
    sender: SyncSender<Seen>,
    missed: Arc<AtomicU64>,
    /// Whether the observer has gone.
    gone: bool,
}

pub(crate) struct Observation {
    sender: SyncSender<Seen>,
    receiver: Receiver<Seen>,
    missed: Arc<AtomicU64>,
}

impl Observation {
    pub(crate) fn new() -> Self {
        let (sender, receiver) = sync_channel(MOST_WAITING);
        Self {
            sender,
            receiver,
            missed: Arc::default(),
        }
    }

    /// A tap for the driver of a direction.
    pub(crate) fn tap(&self, of: LinkEnd, wants: Wants) -> Tap {
        Tap {
            wants,
            of: Arc::new(of),
            sender: self.sender.clone(),
            missed: Arc::clone(&self.missed),
            gone: false,
        }
    }

    /// What comes next; `None` when nothing came for so long.
    pub(super) fn next(&self, within: Duration) -> Option<Seen> {
        self.receiver.recv_timeout(within).ok()
    }

    /// How much was not taken in time since the last call.
    pub(super) fn missed(&self) -> u64 {
        self.missed.swap(0, Ordering::Relaxed)
    }
}

impl Tap {
    /// Whether anybody is still there.
    pub(crate) fn is_live(&self) -> bool {
        !self.gone
    }

    pub(crate) fn wants_outcomes(&self) -> bool {
        self.wants == Wants::Outcomes
    }

    /// A packet came into the link.
    pub(crate) fn entered(&mut self, at: Time, packet: &Packet) {
        if self.wants == Wants::AtSender {
            self.packet(at, Direction::Outbound, packet);
        }
    }

    /// A packet left the link, or was sent back.
    pub(crate) fn left(&mut self, at: Time, packet: &Packet) {
        let wanted = match packet.back {
            true => Wants::AtSender,
            false => Wants::AtReceiver,
        };
        if self.wants == wanted {
            self.packet(at, Direction::Inbound, packet);
        }
    }

    fn packet(&mut self, at: Time, direction: Direction, packet: &Packet) {
        self.tell(Seen::Packet {
            at,
            direction,
            packet: packet.clone(),
        });
    }

    /// Reports what became of packets.
    pub(crate) fn outcomes(&mut self, outcomes: Vec<Outcome>, missed: u64) {
        if self.wants_outcomes() && (missed > 0 || !outcomes.is_empty()) {
            let of = Arc::clone(&self.of);
            self.tell(Seen::Outcomes {
                of,
                outcomes,
                missed,
            });
        }
    }

    fn tell(&mut self, seen: Seen) {
        match self.sender.try_send(seen) {
            Ok(()) => {}
            Err(TrySendError::Full(seen)) => {
                let count = match seen {
                    Seen::Packet { .. } => 1,
                    Seen::Outcomes {
                        outcomes, missed, ..
                    } => outcomes.len() as u64 + missed,
                };
                self.missed.fetch_add(count, Ordering::Relaxed);
            }
            Err(TrySendError::Disconnected(_)) => self.gone = true,
        }
    }
}
