//! What a cell counts while packets pass.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::backlog::Backlog;
use crate::packet::{FlowNumber, Packet};
use crate::stats::{CellStats, Count, DropCause};
use crate::time::Time;
use plumb_model::summary::Summary;
use plumb_model::vocabulary::Vocabulary as _;

/// The counters of a cell, or of a whole chain.
#[derive(Debug)]
pub(crate) struct Tally {
    pub(crate) offered: Count,
    pub(crate) delivered: Count,
    pub(crate) tcp_payload_bytes: u64,
    dropped: [Count; DropCause::WORDS.len()],
    pub(crate) marked: u64,
    duplicated: Count,
    /// Packets whose bytes the cell changed, congestion marks apart.
    pub(crate) changed: u64,
    /// Packets that left after one that came later.
    pub(crate) reordered: u64,
    /// Packets of the cell's own that it sent back.
    pub(crate) replied: u64,
    pub(crate) sojourn: Summary,
    /// The longest time that a large segment kept the cell's line.
    pub(crate) longest_piece: Duration,
    /// What was dropped and not yet reported to the chain.
    pub(crate) losses: Vec<Loss>,
}

/// A packet, or a part of a large segment, that was dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Loss {
    pub(crate) cause: DropCause,
    pub(crate) flow: FlowNumber,
    /// Of the packet in the chain.
    pub(crate) number: u64,
    pub(crate) arrived: Time,
    pub(crate) what: Count,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            offered: Count::default(),
            delivered: Count::default(),
            tcp_payload_bytes: 0,
            dropped: Default::default(),
            marked: 0,
            duplicated: Count::default(),
            changed: 0,
            reordered: 0,
            replied: 0,
            sojourn: Summary::new(),
            longest_piece: Duration::ZERO,
            losses: Vec::new(),
        }
    }

    pub(crate) fn offer(&mut self, packet: &Packet) {
        self.offered += Count::of(packet);
    }

    /// Counts a second copy that the cell made.
    pub(crate) fn duplicate(&mut self, packet: &Packet) {
        self.duplicated += Count::of(packet);
    }

    /// Counts a packet that is forwarded as fragments, which are more packets and bytes than the packet.
    pub(crate) fn fragment(&mut self, whole: &Packet, fragments: Count) {
        let whole = Count::of(whole);
        self.duplicated.packets += fragments.packets.saturating_sub(whole.packets);
        self.duplicated.bytes += fragments.bytes.saturating_sub(whole.bytes);
    }

    /// Counts a packet that leaves at `at` and came in at `since`. What the cell sent back was
    /// never offered.
    pub(crate) fn deliver(&mut self, packet: &Packet, since: Time, at: Time) {
        if packet.back {
            return;
        }
        let packets = u64::from(packet.segments());
        self.delivered += Count::of(packet);
        self.tcp_payload_bytes += packet.tcp_payload_bytes();
        self.sojourn.record(at.nanos_since(since), packets);
    }

    /// Counts a packet that the cell's line began to send at `began` and has sent at `at`.
    pub(crate) fn sent(&mut self, packet: &Packet, began: Time, at: Time) {
        if packet.segments() > 1 {
            self.longest_piece = self.longest_piece.max(at - began);
        }
    }

    pub(crate) fn drop(&mut self, cause: DropCause, packet: &Packet) {
        self.drop_part(cause, packet, packet.backlog());
    }

    /// Counts a part of a large segment as dropped.
    pub(crate) fn drop_part(&mut self, cause: DropCause, packet: &Packet, what: Backlog) {
        self.losses.push(Loss {
            cause,
            flow: packet.flow,
            number: packet.number,
            arrived: packet.arrived,
            what: Count {
                packets: what.packets,
                bytes: what.ip_bytes,
            },
        });
        if let Some(count) = self.dropped.get_mut(cause as usize) {
            count.packets += what.packets;
            count.bytes += what.ip_bytes;
        }
    }

    /// Takes over what another counted as dropped, marked and changed.
    pub(crate) fn take_drops(&mut self, other: &mut Self) {
        for (count, more) in self.dropped.iter_mut().zip(&mut other.dropped) {
            *count += std::mem::take(more);
        }
        self.marked += std::mem::take(&mut other.marked);
        self.changed += std::mem::take(&mut other.changed);
        self.losses.append(&mut other.losses);
    }

    fn dropped_bytes(&self) -> u64 {
        self.dropped.iter().map(|count| count.bytes).sum()
    }

    fn dropped(&self) -> BTreeMap<String, u64> {
        DropCause::WORDS
            .iter()
            .zip(&self.dropped)
            .filter(|(_, count)| count.packets > 0)
            .map(|((_, word), count)| ((*word).to_owned(), count.packets))
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
            duplicated: self.duplicated,
            changed: self.changed,
            reordered: self.reordered,
            replied: self.replied,
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
