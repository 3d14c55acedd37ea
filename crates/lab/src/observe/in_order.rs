//! Packets in the order of their stamps. The drivers of both directions report a packet after they passed it on, each
//! when it runs again, so that the answer to a packet may be reported before it.

use std::collections::BTreeMap;
use std::time::Duration;

use plumb_link::packet::Packet;
use plumb_wire::pcapng::Direction;

/// How late a packet may be reported: a driver that waits for a processor does so for some milliseconds.
const HOLD: Duration = Duration::from_millis(50);

struct Held {
    direction: Direction,
    packet: Packet,
    /// When it was reported, by the monotonic clock.
    reported_ns: u64,
}

/// Packets that are held until no earlier one is to be expected.
#[derive(Default)]
pub(super) struct InOrder {
    /// By stamp in nanoseconds since 1970, and the order in which they were reported.
    held: BTreeMap<(u64, u64), Held>,
    reported: u64,
}

impl InOrder {
    pub(super) fn add(&mut self, unix_ns: u64, direction: Direction, packet: Packet, now_ns: u64) {
        let held = Held {
            direction,
            packet,
            reported_ns: now_ns,
        };
        self.held.insert((unix_ns, self.reported), held);
        self.reported += 1;
    }

    /// The next that has been held long enough.
    pub(super) fn next(&mut self, now_ns: u64) -> Option<(u64, Direction, Packet)> {
        let first = self.held.first_entry()?;
        let (unix_ns, _) = *first.key();
        let waited_ns = now_ns.saturating_sub(first.get().reported_ns);
        let held = (u128::from(waited_ns) >= HOLD.as_nanos()).then(|| first.remove())?;
        Some((unix_ns, held.direction, held.packet))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_link::time::Time;
    use plumb_wire::virtio::VirtioHeader;

    #[test]
    fn an_answer_that_is_reported_first_comes_second() {
        const MS: u64 = 1_000_000;
        let packet = |byte| Packet::new(vec![byte], VirtioHeader::default(), Time::ZERO);
        let mut packets = InOrder::default();
        packets.add(1000 * MS + 60, Direction::Outbound, packet(2), 7 * MS);
        packets.add(1000 * MS, Direction::Inbound, packet(1), 8 * MS);
        packets.add(1000 * MS + 60, Direction::Outbound, packet(3), 9 * MS);
        assert!(packets.next(57 * MS).is_none());
        let mut next = || packets.next(59 * MS).unwrap().2.data[0];
        assert_eq!([next(), next(), next()], [1, 2, 3]);
        assert!(packets.is_empty());
    }
}
