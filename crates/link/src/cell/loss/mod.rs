//! Cells that lose packets. One file a model.

pub mod bernoulli;
pub mod gilbert_elliott;
pub mod index;
pub mod markov4;
pub mod periodic;

use crate::cell::filter::{Filter, Outlet};
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::stats::DropCause;
use crate::time::Time;

/// Which packets are lost.
pub(crate) trait LossModel: Send {
    type Spec;

    /// Whether the next packet is.
    fn loses(&mut self, packet: &Packet) -> bool;

    fn reconfigure(&mut self, spec: Self::Spec);
}

/// A cell that loses the packets its model selects. Link-local multicast, which hosts send unasked, always passes: it
/// would shift the numbers of the packets that are meant.
pub(crate) struct Loss<M>(pub(crate) M);

impl<M: LossModel> Filter for Loss<M> {
    type Spec = M::Spec;
    const CROSSING: Crossing = Crossing::Split;

    fn pass(&mut self, _: Time, packet: Packet, out: &mut Outlet<'_>) {
        if !packet.is_link_multicast() && self.0.loses(&packet) {
            out.drop(DropCause::Loss, &packet);
        } else {
            out.forward(packet);
        }
    }

    fn reconfigure(&mut self, _: Time, spec: M::Spec) {
        self.0.reconfigure(spec);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::{listener_report, udp};
    use crate::spec::CellSpec;

    /// Which of so many packets a cell loses, counted from 0, when its seed is 7.
    pub(crate) fn lost(kind: &str, pairs: &[(&str, &str)], count: u64) -> Vec<u64> {
        lost_of(kind, pairs, (0..count).map(|_| udp(100, 1, 0)))
    }

    pub(crate) fn lost_of(
        kind: &str,
        pairs: &[(&str, &str)],
        packets: impl Iterator<Item = Packet>,
    ) -> Vec<u64> {
        let spec = CellSpec::from_pairs(kind, pairs).unwrap();
        let mut cell = spec.build(7, Time::ZERO).own();
        let mut lost = Vec::new();
        for (index, packet) in (0..).zip(packets) {
            cell.enqueue(Time::from_nanos(index), packet);
            if cell.dequeue(Time::from_nanos(index)).is_none() {
                lost.push(index);
            }
        }
        let stats = cell.stats(Time::MAX, kind);
        assert_eq!(stats.dropped_packets(), lost.len() as u64);
        lost
    }

    /// Lengths of the runs of consecutive losses.
    pub(crate) fn runs(lost: &[u64]) -> Vec<usize> {
        lost.chunk_by(|a, b| a + 1 == *b)
            .map(<[u64]>::len)
            .collect()
    }

    #[test]
    fn listener_reports_do_not_shift_what_is_lost() {
        // Before each packet a report, which is never lost: packet i is number 2 i + 1.
        let packets = (0..120).map(|i| match i % 2 {
            0 => listener_report(),
            _ => udp(100, 1, 0),
        });
        let lost = lost_of("loss", &[("ratio", "5%")], packets);
        assert_eq!(lost, [20, 22, 28, 31, 51].map(|i| 2 * i + 1));
        let packets = [listener_report(), udp(100, 1, 0)].into_iter();
        assert_eq!(lost_of("loss", &[("ratio", "1")], packets), [1]);
    }
}
