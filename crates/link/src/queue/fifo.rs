//! First in, first out, with a bound: what does not fit is dropped at the tail, or makes room at
//! the head. The queue of a modem, and of pfifo, bfifo (tc-bfifo(8)) and pfifo_head_drop.

use plumb_model::units::BitRate;
use serde::{Deserialize, Serialize};

use super::single::{Algorithm, Bounded, Buffer, Single};
use crate::backlog::Backlog;
use crate::limit::Limit;
use crate::packet::Packet;
use crate::segment;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "fifo", limit = "700ms" }`
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FifoSpec {
    /// What the buffer holds, the packet that is being sent included. When absent it holds
    /// everything, up to 256 MB; what is dropped there is counted as `memory`, because it is the
    /// machine's limit and not the link's.
    pub limit: Limit,
    /// What goes when a packet comes to a full buffer.
    pub drop: DropAt,
}

/// Which end of a full queue loses a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropAt {
    /// The oldest that wait, until the new one fits (pfifo_head_drop in sch_fifo.c): the sender
    /// learns of it a queue's delay earlier.
    Head,
    #[default]
    Tail,
}

/// What a queue holds whose scenario does not say: as much as a laboratory may take of its
/// machine's memory, so that nothing is dropped by surprise.
const UNSAID: Limit = Limit::Bytes(256_000_000);

impl Default for FifoSpec {
    fn default() -> Self {
        Self {
            limit: UNSAID,
            drop: DropAt::Tail,
        }
    }
}

impl Settings for FifoSpec {}

impl Bounded for FifoSpec {
    fn limit(&self) -> Limit {
        self.limit
    }
}

/// The queue. A packet occupies its room until its last bit has left the line, and an empty
/// buffer takes any packet, so that no limit stops a line for good.
pub(crate) type Fifo = Single<InOrder>;

/// What decides: nothing but the room.
pub(crate) struct InOrder;

impl Fifo {
    pub(crate) fn new(spec: FifoSpec, rate: BitRate) -> Self {
        Self::with(InOrder, spec, rate)
    }
}

impl Buffer<FifoSpec> {
    fn cause(&self) -> DropCause {
        match self.spec.limit {
            UNSAID => DropCause::Memory,
            _ => DropCause::Overflow,
        }
    }

    fn takes(&self, held: Backlog, more: Backlog) -> bool {
        held.packets == 0 || self.allows(held + more)
    }

    /// Drops at the head until `more` fits or nothing is left that could go.
    fn make_room(&mut self, on_line: Backlog, more: Backlog, tally: &mut Tally) {
        while !self.takes(self.list.backlog() + on_line, more) {
            let Some(oldest) = self.list.pop() else {
                return;
            };
            tally.drop(self.cause(), &oldest);
        }
    }

    /// Takes of a large segment what fits, as if its segments came one by one in this instant:
    /// the leading ones that fit, and the last, which may be shorter, also when some before it
    /// did not.
    fn enqueue_parts(&mut self, packet: &Packet, held: Backlog, tally: &mut Tally) {
        let segments = packet.segments();
        let one = Backlog {
            packets: 1,
            ip_bytes: packet.segment_ip_bytes(),
            wire_bytes: packet.wire.segment,
        };
        let room = self
            .spec
            .limit
            .room(held, one, self.rate)
            .max(u64::from(held.packets == 0));
        let leading = u32::try_from(room).unwrap_or(u32::MAX).min(segments - 1);
        let mut taken = Backlog::default();
        if leading > 0 {
            let piece = segment::piece(packet, 0, leading);
            taken += piece.backlog();
            self.list.push(piece);
        }
        let last = segment::piece(packet, segments - 1, 1);
        if self.takes(held + taken, last.backlog()) {
            taken += last.backlog();
            self.list.push(last);
        }
        tally.drop_part(self.cause(), packet, packet.backlog() - taken);
    }
}

impl Algorithm for InOrder {
    type Spec = FifoSpec;

    fn enqueue(
        &mut self,
        buffer: &mut Buffer<FifoSpec>,
        _: Time,
        packet: Packet,
        on_line: Backlog,
        tally: &mut Tally,
    ) {
        if buffer.spec.drop == DropAt::Head {
            buffer.make_room(on_line, packet.backlog(), tally);
        }
        let held = buffer.list.backlog() + on_line;
        if buffer.allows(held + packet.backlog()) {
            buffer.list.push(packet);
        } else if packet.segments() > 1 {
            buffer.enqueue_parts(&packet, held, tally);
        } else if held.packets == 0 {
            buffer.list.push(packet);
        } else {
            tally.drop(buffer.cause(), &packet);
        }
    }

    fn takes_large_segments(spec: &FifoSpec) -> bool {
        spec.drop == DropAt::Tail
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::{ACK, tcp, udp};
    use crate::queue::Queue;
    use crate::stats::Count;
    use plumb_model::framing::Framing;

    const RATE: BitRate = BitRate::from_bps(20_000_000);

    fn offer(limit: &str, framing: &str, sizes: &[usize]) -> (Vec<usize>, u64) {
        offer_dropping(DropAt::Tail, limit, framing, sizes)
    }

    fn offer_dropping(
        drop: DropAt,
        limit: &str,
        framing: &str,
        sizes: &[usize],
    ) -> (Vec<usize>, u64) {
        let framing: Framing = framing.parse().unwrap();
        let mut fifo = Fifo::new(
            FifoSpec {
                limit: limit.parse().unwrap(),
                drop,
            },
            RATE,
        );
        let mut tally = Tally::new();
        for size in sizes {
            let mut packet = udp(*size, 1, 0);
            packet.frame(&framing);
            fifo.enqueue(Time::ZERO, packet, Backlog::default(), &mut tally);
        }
        let dropped = tally.stats("fifo", Backlog::default()).dropped_packets();
        (fifo.drain().iter().map(|p| p.data.len()).collect(), dropped)
    }

    #[test]
    fn drops_at_the_tail_what_does_not_fit_to_the_byte() {
        assert_eq!(
            offer("3000B", "docsis", &[1500, 1500, 40]),
            (vec![1500, 1500], 1)
        );
        // A small packet may fit where a large one did not.
        assert_eq!(
            offer("3039B", "docsis", &[1500, 1500, 40, 39]),
            (vec![1500, 1500, 39], 1)
        );
        assert_eq!(offer("2p", "docsis", &[1500, 40, 40]), (vec![1500, 40], 1));
        // 1214.4 µs are 3036 bytes at 20 Mbit/s: two frames of 1518.
        assert_eq!(
            offer("1214400ns", "docsis", &[1500, 1500, 40]),
            (vec![1500, 1500], 1)
        );
        assert_eq!(offer("1214399ns", "docsis", &[1500, 1500]), (vec![1500], 1));
    }

    #[test]
    fn drops_the_oldest_until_the_new_one_fits() {
        let offer = |limit, sizes| offer_dropping(DropAt::Head, limit, "docsis", sizes);
        assert_eq!(offer("2p", &[100, 200, 300]), (vec![200, 300], 1));
        assert_eq!(
            offer("3000B", &[600, 700, 1500, 1400]),
            (vec![1500, 1400], 2)
        );
        // What is larger than the buffer is alone in it.
        assert_eq!(offer("1000B", &[600, 100, 1500]), (vec![1500], 2));
        assert_eq!(offer("1000B", &[1500, 100]), (vec![100], 1));
    }

    #[test]
    fn the_packet_on_the_line_cannot_make_room() {
        let spec = FifoSpec {
            limit: Limit::Packets(2),
            drop: DropAt::Head,
        };
        let (mut fifo, mut tally) = (Fifo::new(spec, RATE), Tally::new());
        for size in [100, 200, 300] {
            let packet = udp(size, 1, 0);
            let on_line = packet.backlog();
            fifo.enqueue(Time::ZERO, packet, on_line, &mut tally);
        }
        let left: Vec<usize> = fifo.drain().iter().map(|p| p.data.len()).collect();
        assert_eq!((left, tally.losses.len()), (vec![300], 2));
    }

    #[test]
    fn an_empty_buffer_takes_any_packet() {
        assert_eq!(offer("1B", "raw", &[1500, 1500]), (vec![1500], 1));
    }

    #[test]
    fn a_queue_without_a_limit_drops_nothing_by_surprise() {
        let mut tally = Tally::new();
        let mut fifo = Fifo::new(FifoSpec::default(), RATE);
        // Large segments, or the test itself would need 256 MB.
        let mut packet = tcp(false, 60_000, 1, ACK);
        packet.frame(&Framing::default());
        let each = packet.backlog();
        let fit = 256_000_000 / each.ip_bytes;
        for _ in 0..fit {
            fifo.enqueue(Time::ZERO, packet.clone(), Backlog::default(), &mut tally);
        }
        assert_eq!(tally.stats("fifo", fifo.backlog()).dropped_packets(), 0);
        fifo.enqueue(Time::ZERO, packet, Backlog::default(), &mut tally);
        let stats = tally.stats("fifo", fifo.backlog());
        assert!(stats.dropped["memory"] > 0, "{:?}", stats.dropped);
    }

    #[test]
    fn takes_the_segments_that_fit_and_the_short_last_one() {
        let mut fifo = Fifo::new(
            FifoSpec {
                limit: "4700B".parse().unwrap(),
                drop: DropAt::Tail,
            },
            RATE,
        );
        let mut tally = Tally::new();
        let mut packet = tcp(false, 4 * 1448 + 100, 1448, ACK);
        packet.frame(&Framing::default());
        tally.offer(&packet);
        fifo.enqueue(Time::ZERO, packet, Backlog::default(), &mut tally);
        let kept = fifo.backlog();
        // Three of 1500, not the fourth, then the last of 152.
        assert_eq!((kept.packets, kept.ip_bytes), (4, 4652));
        let stats = tally.stats("fifo", kept);
        assert_eq!((stats.dropped_packets(), stats.dropped_bytes), (1, 1500));
        assert_eq!(
            stats.offered,
            Count {
                packets: 5,
                bytes: 4 * 1500 + 152
            }
        );
        assert_eq!(
            fifo.drain()
                .iter()
                .map(Packet::segments)
                .collect::<Vec<_>>(),
            [3, 1]
        );
    }
}
