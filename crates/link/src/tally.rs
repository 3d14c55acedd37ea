//! What a cell counts while packets pass.

use std::collections::BTreeMap;

use crate::packet::Packet;
use crate::queue::Backlog;
use crate::stats::{CellStats, Count, DropCause};
use crate::summary::Summary;
use crate::time::Time;

/// The counters of a cell, or of a whole chain.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) offered: Count,
    pub(crate) delivered: Count,
    pub(crate) tcp_payload_bytes: u64,
    dropped: [Count; DropCause::ALL.len()],
    pub(crate) marked: u64,
    pub(crate) sojourn: Summary,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            offered: Count::default(),
            delivered: Count::default(),
            tcp_payload_bytes: 0,
            dropped: Default::default(),
            marked: 0,
            sojourn: Summary::new(),
        }
    }

    pub(crate) fn offer(&mut self, packet: &Packet) {
        self.offered.packets += u64::from(packet.segments());
        self.offered.bytes += packet.ip_bytes();
    }

    /// Counts a packet that leaves at `at` and came in at `since`.
    pub(crate) fn deliver(&mut self, packet: &Packet, since: Time, at: Time) {
        let packets = u64::from(packet.segments());
        self.delivered.packets += packets;
        self.delivered.bytes += packet.ip_bytes();
        self.tcp_payload_bytes += packet.tcp_payload_bytes();
        self.sojourn.record(at.nanos_since(since), packets);
    }

    pub(crate) fn drop(&mut self, cause: DropCause, what: Backlog) {
        if let Some(count) = self.dropped.get_mut(cause as usize) {
            count.packets += what.packets;
            count.bytes += what.ip_bytes;
        }
    }

    fn dropped_bytes(&self) -> u64 {
        self.dropped.iter().map(|count| count.bytes).sum()
    }

    fn dropped(&self) -> BTreeMap<String, u64> {
        DropCause::ALL
            .iter()
            .zip(&self.dropped)
            .filter(|(_, count)| count.packets > 0)
            .map(|(cause, count)| (cause.name().to_owned(), count.packets))
            .collect()
    }

    /// The report of a cell of this kind that holds `backlog`.
    pub(crate) fn stats(&self, kind: &str, backlog: Backlog) -> CellStats {
        CellStats {
            kind: kind.to_owned(),
            offered: self.offered,
            delivered: self.delivered,
            delivered_tcp_payload_bytes: self.tcp_payload_bytes,
            dropped: self.dropped(),
            dropped_bytes: self.dropped_bytes(),
            marked: self.marked,
            backlog: Count {
                packets: backlog.packets,
                bytes: backlog.ip_bytes,
            },
            sojourn_s: self.sojourn.distribution(),
            queue_delay_s: None,
            queue_delay: None,
        }
    }
}
