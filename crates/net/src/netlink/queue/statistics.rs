//! What disciplines and classes count: for all kinds alike, and of CAKE and FQ-CoDel what only they count.

use crate::netlink::attribute::{Attribute, attributes, find, u32_at, u64_at};

/// What every discipline and class counts (`linux/gen_stats.h`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counted {
    pub bytes: u64,
    pub packets: u64,
    pub drops: u64,
    pub overlimits: u64,
    pub requeues: u64,
    pub backlog_bytes: u64,
    pub queue_packets: u64,
    /// What only its kind counts (`TCA_STATS_APP`).
    pub own: Vec<u8>,
}

/// Reads what the kernel's dump has in `TCA_STATS2`.
pub(super) fn counted(statistics: &[u8]) -> Counted {
    let mut counted = Counted::default();
    // TCA_STATS_BASIC, and where there is one the 64 bits of its packets (TCA_STATS_PKT64).
    if let Some(basic) = find(statistics, 1) {
        counted.bytes = u64_at(basic.value, 0).unwrap_or_default();
        counted.packets = u32_at(basic.value, 8).unwrap_or_default().into();
    }
    if let Some(packets) = find(statistics, 8).and_then(|a| a.u64()) {
        counted.packets = packets;
    }
    // TCA_STATS_QUEUE: `struct gnet_stats_queue`.
    if let Some(queue) = find(statistics, 3) {
        let at = |place: usize| u32_at(queue.value, 4 * place).unwrap_or_default();
        counted.queue_packets = at(0).into();
        counted.backlog_bytes = at(1).into();
        counted.drops = at(2).into();
        counted.requeues = at(3).into();
        counted.overlimits = at(4).into();
    }
    if let Some(own) = find(statistics, 4) {
        counted.own = own.value.to_vec();
    }
    counted
}

/// One of CAKE's tins (`TCA_CAKE_TIN_STATS_*`). Times are in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tin {
    pub sent_packets: u64,
    pub sent_bytes: u64,
    pub dropped_packets: u64,
    pub acks_dropped_packets: u64,
    pub marked_packets: u64,
    pub backlog_packets: u64,
    pub backlog_bytes: u64,
    /// Rate up to which it has its priority, in bytes a second.
    pub threshold_rate: u64,
    /// Delay of the packets, as an average that follows each packet that leaves.
    pub mean_delay_us: u64,
    /// The same average, quick to rise and slow to fall.
    pub peak_delay_us: u64,
    /// The same of flows that are sparse.
    pub base_delay_us: u64,
    pub sparse_flows: u64,
    pub bulk_flows: u64,
    pub unresponsive_flows: u64,
}

/// The tins of a CAKE in its own order, from its own statistics (`TCA_CAKE_STATS_TIN_STATS`).
pub fn tins(own: &[u8]) -> Vec<Tin> {
    let all = find(own, 10).map(|all| all.value).unwrap_or_default();
    attributes(all).map(|tin| read_tin(tin.value)).collect()
}

fn read_tin(bytes: &[u8]) -> Tin {
    let mut tin = Tin::default();
    for attribute in attributes(bytes) {
        let value = whole(&attribute);
        match attribute.kind {
            2 => tin.sent_packets = value,
            3 => tin.sent_bytes = value,
            4 => tin.dropped_packets = value,
            6 => tin.acks_dropped_packets = value,
            8 => tin.marked_packets = value,
            10 => tin.backlog_packets = value,
            11 => tin.backlog_bytes = value,
            12 => tin.threshold_rate = value,
            18 => tin.peak_delay_us = value,
            19 => tin.mean_delay_us = value,
            20 => tin.base_delay_us = value,
            21 => tin.sparse_flows = value,
            22 => tin.bulk_flows = value,
            23 => tin.unresponsive_flows = value,
            _ => {}
        }
    }
    tin
}

/// A number of 32 or of 64 bits; the kernel has both kinds here.
fn whole(attribute: &Attribute<'_>) -> u64 {
    let long = attribute.u64();
    long.or_else(|| attribute.u32().map(u64::from))
        .unwrap_or_default()
}

/// `TCA_FQ_CODEL_XSTATS_QDISC` and `_CLASS`: the first number of `struct tc_fq_codel_xstats`.
const OF_DISCIPLINE: u32 = 0;
const OF_FLOW: u32 = 1;

/// Packets that an FQ-CoDel marked instead of dropping, from its own statistics.
pub fn fq_codel_marks(own: &[u8]) -> Option<u64> {
    (u32_at(own, 0)? == OF_DISCIPLINE).then_some(u32_at(own, 12)?.into())
}

/// How long the packet that left a flow of FQ-CoDel last had waited, in microseconds.
pub fn fq_codel_flow_delay_us(own: &[u8]) -> Option<u64> {
    (u32_at(own, 0)? == OF_FLOW).then_some(u32_at(own, 8)?.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute::{encode, nested, number};
    use proptest::prelude::*;

    #[test]
    fn tins_are_read_in_their_order() {
        let tin = |packets: u32, delay: u32| {
            vec![
                number(2, packets),
                encode(3, &u64::MAX.to_ne_bytes()),
                encode(12, &1_250_000_u64.to_ne_bytes()),
                number(19, delay),
            ]
        };
        let own = nested(10, &[nested(1, &tin(3, 500)), nested(2, &tin(4, 70))]);
        let read = tins(&own);
        let short: Vec<_> = read
            .iter()
            .map(|t| (t.sent_packets, t.mean_delay_us))
            .collect();
        assert_eq!(short, [(3, 500), (4, 70)]);
        assert!(
            read.iter()
                .all(|t| t.sent_bytes == u64::MAX && t.threshold_rate == 1_250_000)
        );
    }

    #[test]
    fn of_fq_codel_the_discipline_counts_marks_and_a_flow_its_delay() {
        let words = |words: &[u32]| -> Vec<u8> {
            words.iter().flat_map(|word| word.to_ne_bytes()).collect()
        };
        let discipline = words(&[0, 1514, 5, 77, 9, 0, 1, 0, 0, 0]);
        let flow = words(&[1, 0, 4200, 0, 0, 0, 0]);
        assert_eq!(fq_codel_marks(&discipline), Some(77));
        assert_eq!(fq_codel_flow_delay_us(&flow), Some(4200));
        assert_eq!(fq_codel_marks(&flow), None);
        assert_eq!(fq_codel_flow_delay_us(&discipline), None);
    }

    proptest! {
        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = (counted(&bytes), tins(&bytes));
            let _ = (fq_codel_marks(&bytes), fq_codel_flow_delay_us(&bytes));
        }
    }
}
