//! The packets that wait in a queue.

use std::collections::VecDeque;

use crate::backlog::Backlog;
use crate::packet::Packet;

/// The packets of several queues as they came.
pub(super) fn in_order_of_arrival(packets: impl Iterator<Item = Packet>) -> Vec<Packet> {
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
