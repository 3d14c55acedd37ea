//! Queues: what waits before a line, what is let in, and what leaves next. One file an
//! algorithm.

pub mod cake;
pub mod codel;
pub mod docsis_pie;
pub mod dualpi2;
pub mod fifo;
pub(crate) mod flow_hash;
pub mod fq_codel;
pub mod host_fair;
pub mod pie;
pub mod priority;
pub mod red;
#[cfg(test)]
pub(crate) mod sim;
mod ticks;

use std::collections::VecDeque;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use plumb_model::units::BitRate;

use crate::packet::Packet;
use crate::settings::kinds;
use crate::tally::Tally;
use crate::time::Time;

/// What a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Backlog {
    /// Packets as they are on the wire.
    pub packets: u64,
    /// Their IP bytes.
    pub ip_bytes: u64,
    /// Their bytes on the line, with framing.
    pub wire_bytes: u64,
}

/// A queue before a line. Packets come framed, in time order.
pub(crate) trait Queue: Send {
    /// Takes a packet or drops it. `on_line` is what the line holds of the packet that it is
    /// sending: a buffer keeps a packet until its last bit has left.
    fn enqueue(&mut self, now: Time, packet: Packet, on_line: Backlog, tally: &mut Tally);

    /// The packet to send next; the line is free at `now`.
    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet>;

    /// What waits.
    fn backlog(&self) -> Backlog;

    /// Whether a packet may be a large segment; most algorithms decide about each packet of the
    /// wire.
    fn takes_large_segments(&self) -> bool {
        false
    }

    /// Takes new settings without disturbing what waits; `false` when it must be built anew.
    fn reconfigure(&mut self, spec: &QueueSpec, rate: BitRate) -> bool;

    /// Gives up what waits, in order of arrival.
    fn drain(&mut self) -> Vec<Packet>;
}

kinds! {
    "queue",
    /// A queue: a table with a `type`, or the type alone.
    pub enum QueueSpec {
        /// First in, first out.
        Fifo(fifo::FifoSpec) = "fifo",
        /// CoDel (RFC 8289).
        Codel(codel::CodelSpec) = "codel",
        /// FQ-CoDel (RFC 8290).
        FqCodel(fq_codel::FqCodelSpec) = "fq_codel",
        /// Random early detection (Floyd and Jacobson 1993).
        Red(red::RedSpec) = "red",
        /// PIE (RFC 8033).
        Pie(pie::PieSpec) = "pie",
        /// The PIE of cable modems (RFC 8034).
        DocsisPie(docsis_pie::DocsisPieSpec) = "docsis_pie",
        /// DualPI2 (RFC 9332).
        DualPi2(dualpi2::DualPi2Spec) = "dualpi2",
        /// Strict priority, with a queue in each band.
        Priority(priority::PrioritySpec) = "priority",
        /// An equal share for each host, with a queue for each.
        HostFair(host_fair::HostFairSpec) = "host_fair",
        /// CAKE (tc-cake(8)).
        Cake(cake::CakeSpec) = "cake",
    }
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self::Fifo(fifo::FifoSpec::default())
    }
}

/// Builds the queue that `spec` describes.
pub(crate) fn build(spec: &QueueSpec, rate: BitRate, seed: u64) -> Box<dyn Queue> {
    match spec {
        QueueSpec::Fifo(spec) => Box::new(fifo::Fifo::new(*spec, rate)),
        QueueSpec::Codel(spec) => Box::new(codel::CodelQueue::new(*spec, rate)),
        QueueSpec::FqCodel(spec) => Box::new(fq_codel::FqCodel::new(*spec, rate, seed)),
        QueueSpec::Red(spec) => Box::new(red::Red::new(*spec, rate, seed)),
        QueueSpec::Pie(spec) => Box::new(pie::Pie::new(*spec, rate, seed)),
        QueueSpec::DocsisPie(spec) => Box::new(docsis_pie::DocsisPie::new(*spec, rate, seed)),
        QueueSpec::DualPi2(spec) => Box::new(dualpi2::DualPi2::new(*spec, rate, seed)),
        QueueSpec::Priority(spec) => Box::new(priority::Priority::new(spec.clone(), rate, seed)),
        QueueSpec::HostFair(spec) => Box::new(host_fair::HostFair::new(spec.clone(), rate, seed)),
        QueueSpec::Cake(spec) => Box::new(cake::Cake::new(*spec, rate, seed)),
    }
}

/// The packets of several queues as they came.
fn in_order_of_arrival(packets: impl Iterator<Item = Packet>) -> Vec<Packet> {
    let mut packets: Vec<Packet> = packets.collect();
    packets.sort_by_key(|packet| packet.entered);
    packets
}

/// Packets in order, and how much they are.
#[derive(Debug, Default)]
pub(crate) struct PacketList {
    packets: VecDeque<Packet>,
    backlog: Backlog,
}

impl PacketList {
    pub(crate) fn push(&mut self, packet: Packet) {
        self.backlog += packet.backlog();
        self.packets.push_back(packet);
    }

    pub(crate) fn pop(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.backlog -= packet.backlog();
        Some(packet)
    }

    pub(crate) fn front(&self) -> Option<&Packet> {
        self.packets.front()
    }

    /// From the head on.
    pub(crate) fn iter(&self) -> std::collections::vec_deque::Iter<'_, Packet> {
        self.packets.iter()
    }

    /// Takes out the packet at this index, counted from the head.
    pub(crate) fn remove(&mut self, index: usize) -> Option<Packet> {
        let packet = self.packets.remove(index)?;
        self.backlog -= packet.backlog();
        Some(packet)
    }

    pub(crate) fn backlog(&self) -> Backlog {
        self.backlog
    }

    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Packet> + '_ {
        self.backlog = Backlog::default();
        self.packets.drain(..)
    }
}

impl Add for Backlog {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            ip_bytes: self.ip_bytes + other.ip_bytes,
            wire_bytes: self.wire_bytes + other.wire_bytes,
        }
    }
}

impl Sub for Backlog {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            packets: self.packets - other.packets,
            ip_bytes: self.ip_bytes - other.ip_bytes,
            wire_bytes: self.wire_bytes - other.wire_bytes,
        }
    }
}

impl AddAssign for Backlog {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Backlog {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
