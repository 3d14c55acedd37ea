//! Looking on while a link carries packets: a log of what became of each, and captures at the
//! ends. Whoever looks never holds up the link: what is not taken in time is counted instead.

mod capture;
mod log;
mod scribe;

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use plumb_link::outcome::Outcome;
use plumb_link::packet::Packet;
use plumb_link::time::Time;
use plumb_wire::pcapng::Direction;

use serde::{Deserialize, Serialize};

use self::capture::Capture;
use self::log::Log;
pub(crate) use self::scribe::Scribe;
use crate::error::LabError;
use crate::instance::Instance;
use crate::scenario::{LinkEnd, Way};

/// What waits for an observer at most: 4000 packets, of which few are large segments.
const MOST_WAITING: usize = 4000;

/// What somebody wants to see.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sight {
    /// What becomes of every packet in these directions, `LINK.up` or `LINK.down`; in all when
    /// there are none. A line of JSON each.
    Log(Vec<String>),
    /// The packets that pass an end of a link, as pcapng.
    Capture {
        /// The link.
        link: String,
        /// The node at that end.
        node: String,
    },
}

/// Somebody who looks on, and writes down what there is to see.
pub(crate) enum Observer {
    Log(Log),
    Capture(Capture),
}

impl Observer {
    /// Begins to look on, and to write.
    pub(crate) fn begin(
        instance: &Instance,
        sight: &Sight,
        out: &mut impl Write,
    ) -> Result<Self, LabError> {
        let observation = Observation::new();
        let scenario = instance.scenario();
        let started = instance.started_unix_ns();
        match sight {
            Sight::Log(ends) => {
                let ends: Vec<LinkEnd> = match ends.is_empty() {
                    true => instance.directions()?.cloned().collect(),
                    false => ends
                        .iter()
                        .map(|end| LinkEnd::try_from(end.clone()).map_err(LabError::Control))
                        .collect::<Result<_, _>>()?,
                };
                for end in ends {
                    instance.add_tap(&end, observation.tap(end.clone(), Wants::Outcomes))?;
                }
                let log = Log(observation);
                log.begin(out, &scenario.name, scenario.seed, started)?;
                Ok(Self::Log(log))
            }
            Sight::Capture { link, node } => {
                let name = format!("{link} at {node}");
                if let Some(cable) = instance.cable(link, node)? {
                    let capture = Capture::of_kernel(cable);
                    capture.begin(out, &scenario.name, &name)?;
                    return Ok(Self::Capture(capture));
                }
                let [first, second] = instance.ends(link)?;
                let [up, down] = if node == first {
                    [Wants::AtSender, Wants::AtReceiver]
                } else if node == second {
                    [Wants::AtReceiver, Wants::AtSender]
                } else {
                    return Err(no_end(link, node, &[first, second]));
                };
                for (way, wants) in [(Way::Up, up), (Way::Down, down)] {
                    let link = link.clone();
                    let end = LinkEnd { link, way };
                    instance.add_tap(&end, observation.tap(end.clone(), wants))?;
                }
                let capture = Capture::of_carried(observation, started);
                capture.begin(out, &scenario.name, &name)?;
                Ok(Self::Capture(capture))
            }
        }
    }

    /// Writes what there is to see within a time; `false` when that was nothing.
    pub(crate) fn write(&mut self, out: &mut impl Write, within: Duration) -> io::Result<bool> {
        match self {
            Self::Log(log) => log.write(out, within),
            Self::Capture(capture) => capture.write(out, within),
        }
    }
}

/// Somebody asked for an end that a link does not have.
pub(crate) fn no_end(link: &str, node: &str, ends: &[&str]) -> LabError {
    LabError::Control(format!(
        "'{node}' is not at {link}, which joins {}",
        ends.join(", ")
    ))
}

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

/// Something that an observer is told.
pub(crate) enum Seen {
    /// A packet at an end of the link.
    Packet {
        at: Time,
        direction: Direction,
        packet: Packet,
    },
    /// What became of packets of a direction, and of how many more nobody kept account.
    Outcomes {
        of: Arc<LinkEnd>,
        outcomes: Vec<Outcome>,
        missed: u64,
    },
}

/// What a driver tells an observer through.
pub(crate) struct Tap {
    wants: Wants,
    of: Arc<LinkEnd>,
    sender: SyncSender<Seen>,
    missed: Arc<AtomicU64>,
    /// Whether the observer has gone.
    gone: bool,
}

/// An observer's side.
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
    fn next(&self, within: Duration) -> Option<Seen> {
        self.receiver.recv_timeout(within).ok()
    }

    /// How much was not taken in time since the last call.
    fn missed(&self) -> u64 {
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

    /// Tells what became of packets.
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
