//! FQ-CoDel (RFC 8290): flows hashed to queues, each under CoDel, served by deficit round robin
//! with new flows first. Follows the kernel's sch_fq_codel.c where the RFC leaves room.

use std::collections::VecDeque;
use std::time::Duration;

use plumb_model::units::{BitRate, ByteCount, duration_text};
use serde::{Deserialize, Serialize};

use super::codel::{Codel, INTERVAL, Parameters, TARGET, check_times};
use super::list::{PacketList, in_order_of_arrival};
use super::{Adjust, Queue};
use crate::backlog::Backlog;
use crate::flow_hash::{bucket, reseeded};
use crate::limit::Limit;
use crate::packet::Packet;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "fq_codel" }`; the defaults are from RFC 8290 and tc-fq_codel(8).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FqCodelSpec {
    /// What may wait in all queues together.
    pub limit: Limit,
    /// IP bytes that may wait in all queues together.
    pub memory_limit: ByteCount,
    /// Queues that flows are hashed to, 1…65536.
    pub flows: u32,
    /// Bytes on the line that a flow may send in a round.
    pub quantum: u32,
    #[serde(with = "duration_text")]
    pub target: Duration,
    #[serde(with = "duration_text")]
    pub interval: Duration,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
}

impl Default for FqCodelSpec {
    fn default() -> Self {
        Self {
            limit: Limit::Packets(10_240),
            memory_limit: ByteCount::from_bytes(32 << 20),
            flows: 1024,
            quantum: 1514,
            target: TARGET,
            interval: INTERVAL,
            ecn: true,
        }
    }
}

impl Settings for FqCodelSpec {
    fn check(&self) -> Result<(), String> {
        if !FLOWS.contains(&self.flows) {
            let (least, most) = (FLOWS.start(), FLOWS.end());
            return Err(format!("flows are {least} to {most}"));
        }
        if self.quantum == 0 {
            return Err("the quantum is at least 1 byte".to_owned());
        }
        check_times(self.target, self.interval)
    }
}

/// Packets dropped at once from the fattest flow on overload.
const DROP_BATCH: u32 = 64;
/// The range of the number of queues, as in sch_fq_codel.c.
const FLOWS: std::ops::RangeInclusive<u32> = 1..=65_536;

/// The queues. Deficits and the quantum count bytes on the line; limits and the choice of the
/// fattest flow count IP bytes.
pub(crate) struct FqCodel {
    flows: Vec<Flow>,
    /// Flows that just became active, and those that were served: indices into `flows`.
    new_flows: VecDeque<usize>,
    old_flows: VecDeque<usize>,
    backlog: Backlog,
    spec: FqCodelSpec,
    rate: BitRate,
    seed: u64,
}

#[derive(Default)]
struct Flow {
    list: PacketList,
    codel: Codel,
    /// Bytes on the line that the flow may still send in this round.
    deficit: i64,
    /// Whether the flow is on the list of new or of old flows.
    listed: bool,
}

impl FqCodel {
    pub(crate) fn new(spec: FqCodelSpec, rate: BitRate, seed: u64) -> Self {
        let count = spec.flows.clamp(*FLOWS.start(), *FLOWS.end());
        Self {
            flows: (0..count).map(|_| Flow::default()).collect(),
            new_flows: VecDeque::new(),
            old_flows: VecDeque::new(),
            backlog: Backlog::default(),
            spec,
            rate,
            seed,
        }
    }

    fn within_limits(&self) -> bool {
        self.spec.limit.allows(self.backlog, self.rate)
            && self.backlog.ip_bytes <= self.spec.memory_limit.bytes()
    }

    /// Drops from the head of the flow with the most bytes, up to half of it or a batch.
    fn drop_from_fattest(&mut self, tally: &mut Tally) {
        let Some(flow) = self
            .flows
            .iter_mut()
            .max_by_key(|flow| flow.list.backlog().ip_bytes)
        else {
            return;
        };
        let enough = flow.list.backlog().ip_bytes / 2;
        let mut dropped = Backlog::default();
        for _ in 0..DROP_BATCH {
            let Some(packet) = flow.list.pop() else { break };
            dropped += packet.backlog();
            tally.drop(DropCause::Overflow, &packet);
            // The kernel raises CoDel's drop rate too.
            flow.codel.count = flow.codel.count.saturating_add(1);
            if dropped.ip_bytes >= enough {
                break;
            }
        }
        self.backlog -= dropped;
    }

    fn flow_of(&self, packet: &Packet) -> usize {
        bucket(reseeded(packet.flow_hash, self.seed), self.flows.len())
    }
}

impl Queue for FqCodel {
    fn enqueue(&mut self, _: Time, packet: Packet, _: Backlog, tally: &mut Tally) {
        let index = self.flow_of(&packet);
        let Some(flow) = self.flows.get_mut(index) else {
            return;
        };
        self.backlog += packet.backlog();
        flow.list.push(packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.spec.quantum);
            self.new_flows.push_back(index);
        }
        while !self.within_limits() && self.backlog.packets > 0 {
            self.drop_from_fattest(tally);
        }
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        let FqCodelSpec {
            target,
            interval,
            ecn,
            quantum,
            ..
        } = self.spec;
        let parameters = Parameters {
            target,
            interval,
            ecn,
        };
        loop {
            let from_new = !self.new_flows.is_empty();
            let head = if from_new {
                &mut self.new_flows
            } else {
                &mut self.old_flows
            };
            let index = *head.front()?;
            let flow = self.flows.get_mut(index)?;
            if flow.deficit <= 0 {
                flow.deficit += i64::from(quantum.max(1));
                head.pop_front();
                self.old_flows.push_back(index);
                continue;
            }
            let elsewhere = self.backlog - flow.list.backlog();
            let packet =
                flow.codel
                    .next(now, &parameters, &mut flow.list, elsewhere.ip_bytes, tally);
            self.backlog = elsewhere + flow.list.backlog();
            match packet {
                Some(packet) => {
                    flow.deficit -= packet.wire.total as i64;
                    return Some(packet);
                }
                // An emptied new flow passes through the old ones once, so that it cannot come
                // back as new at once and starve them.
                None if from_new && !self.old_flows.is_empty() => {
                    self.new_flows.pop_front();
                    self.old_flows.push_back(index);
                }
                None => {
                    flow.listed = false;
                    if from_new {
                        &mut self.new_flows
                    } else {
                        &mut self.old_flows
                    }
                    .pop_front();
                }
            }
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn drain(&mut self) -> Vec<Packet> {
        self.backlog = Backlog::default();
        in_order_of_arrival(self.flows.iter_mut().flat_map(|flow| flow.list.drain()))
    }
}

impl Adjust for FqCodel {
    type Spec = FqCodelSpec;

    fn reconfigure(&mut self, spec: FqCodelSpec, rate: BitRate) -> bool {
        if spec.flows != self.spec.flows {
            return false;
        }
        (self.spec, self.rate) = (spec, rate);
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::udp;
    use crate::queue::sim::{reno, run, sparse};
    use plumb_model::framing::Framing;

    const RATE: BitRate = BitRate::from_bps(10_000_000);

    fn queue(spec: FqCodelSpec) -> FqCodel {
        FqCodel::new(spec, RATE, 7)
    }

    fn offer(queue: &mut FqCodel, tally: &mut Tally, at: Time, size: usize, port: u16, ecn: u8) {
        let mut packet = udp(size, port, ecn);
        packet.entered = at;
        packet.frame(&Framing::default());
        queue.enqueue(at, packet, Backlog::default(), tally);
    }

    fn port(packet: &Packet) -> u16 {
        packet.data[20] as u16 * 256 + packet.data[21] as u16
    }

    fn ms(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_sparse_flow_goes_ahead_of_a_bulk_flow() {
        let (mut q, mut tally) = (queue(FqCodelSpec::default()), Tally::new());
        for _ in 0..50 {
            offer(&mut q, &mut tally, Time::ZERO, 1500, 1, 0);
        }
        // The bulk flow spends its first quantum as a new flow.
        assert_eq!(port(&q.dequeue(ms(1), &mut tally).unwrap()), 1);
        assert_eq!(port(&q.dequeue(ms(2), &mut tally).unwrap()), 1);
        offer(&mut q, &mut tally, ms(3), 100, 2, 0);
        assert_eq!(port(&q.dequeue(ms(3), &mut tally).unwrap()), 2);
        assert_eq!(port(&q.dequeue(ms(4), &mut tally).unwrap()), 1);
        // It stays ahead while it is sparse.
        offer(&mut q, &mut tally, ms(10), 100, 2, 0);
        let next: Vec<u16> = (0..2)
            .map(|_| port(&q.dequeue(ms(10), &mut tally).unwrap()))
            .collect();
        assert!(next.contains(&2), "{next:?}");
    }

    #[test]
    fn a_flow_that_keeps_emptying_does_not_starve_the_others() {
        let (mut q, mut tally) = (queue(FqCodelSpec::default()), Tally::new());
        for _ in 0..20 {
            offer(&mut q, &mut tally, Time::ZERO, 1500, 1, 0);
            offer(&mut q, &mut tally, Time::ZERO, 1500, 3, 0);
        }
        let mut next = |q: &mut FqCodel| port(&q.dequeue(ms(1), &mut tally).unwrap());
        let first: Vec<u16> = (0..4).map(|_| next(&mut q)).collect();
        assert_eq!(first, [1, 1, 3, 3]);
        offer(&mut q, &mut Tally::new(), ms(1), 100, 2, 0);
        assert_eq!(next(&mut q), 2);
        assert_ne!(next(&mut q), 2);
        // It is an old flow now and waits for its turn.
        offer(&mut q, &mut Tally::new(), ms(1), 100, 2, 0);
        assert_ne!(next(&mut q), 2);
    }

    #[test]
    fn backlogged_flows_get_equal_shares_of_the_line() {
        let (mut q, mut tally) = (queue(FqCodelSpec::default()), Tally::new());
        for _ in 0..1500 {
            offer(&mut q, &mut tally, Time::ZERO, 300, 1, 0);
        }
        for _ in 0..300 {
            offer(&mut q, &mut tally, Time::ZERO, 1500, 2, 0);
        }
        let mut bytes = [0i64; 3];
        for _ in 0..600 {
            let packet = q.dequeue(ms(1), &mut tally).unwrap();
            bytes[usize::from(port(&packet))] += packet.ip_bytes() as i64;
        }
        assert!((bytes[1] - bytes[2]).abs() <= 2 * 1514, "{bytes:?}");
    }

    #[test]
    fn overload_drops_from_the_head_of_the_fattest_flow() {
        let limit = crate::limit::Limit::Packets(100);
        let (mut q, mut tally) = (
            queue(FqCodelSpec {
                limit,
                ..Default::default()
            }),
            Tally::new(),
        );
        for i in 0..90 {
            offer(&mut q, &mut tally, ms(i), 1000, 1, 0);
        }
        for i in 90..101 {
            offer(&mut q, &mut tally, ms(i), 1000, 2, 0);
        }
        // Half of the bytes of the fat flow of 90 go, the oldest first.
        assert_eq!(tally.stats("", q.backlog()).dropped["overflow"], 45);
        assert_eq!(q.backlog().packets, 56);
        // CoDel's count of that flow grew with them.
        assert_eq!(q.flows.iter().map(|flow| flow.codel.count).max(), Some(45));
        let left = q.drain();
        assert_eq!(left.iter().filter(|p| port(p) == 2).count(), 11);
        assert_eq!(left[0].entered, ms(45));
    }

    #[test]
    fn memory_is_a_limit_too_and_a_batch_is_64() {
        let memory_limit = plumb_model::units::ByteCount::from_bytes(200_000);
        let (mut q, mut tally) = (
            queue(FqCodelSpec {
                memory_limit,
                ..Default::default()
            }),
            Tally::new(),
        );
        for _ in 0..201 {
            offer(&mut q, &mut tally, Time::ZERO, 1000, 1, 0);
        }
        assert_eq!(tally.stats("", q.backlog()).dropped["overflow"], 64);
        assert_eq!(q.backlog().ip_bytes, 137_000);
    }

    #[test]
    fn each_flow_has_its_own_codel_and_capable_flows_are_marked() {
        let (mut q, mut tally) = (queue(FqCodelSpec::default()), Tally::new());
        for _ in 0..2000 {
            offer(&mut q, &mut tally, Time::ZERO, 1000, 1, 2);
            offer(&mut q, &mut tally, Time::ZERO, 1000, 2, 0);
        }
        let mut marked = [0; 3];
        for t in 0..400 {
            let packet = q.dequeue(ms(t), &mut tally).unwrap();
            let ce = plumb_wire::ip::IpPacket::parse(&packet.data).unwrap().ecn()
                == plumb_wire::ip::Ecn::Ce;
            marked[usize::from(port(&packet))] += u64::from(ce);
        }
        assert!(marked[1] >= 3 && marked[2] == 0, "{marked:?}");
        let stats = tally.stats("", q.backlog());
        assert_eq!(stats.marked, marked[1]);
        assert!(stats.dropped["codel"] >= 3);
    }

    #[test]
    fn the_seed_decides_which_flows_share_a_queue() {
        let collisions = |seed| {
            let q = FqCodel::new(
                FqCodelSpec {
                    flows: 64,
                    ..Default::default()
                },
                RATE,
                seed,
            );
            let queues: Vec<usize> = (0..200).map(|port| q.flow_of(&udp(100, port, 0))).collect();
            assert!(queues.iter().all(|i| *i < 64));
            assert!((0..64).filter(|i| queues.contains(i)).count() > 50);
            queues
        };
        assert_eq!(collisions(1), collisions(1));
        assert_ne!(collisions(1), collisions(2));
    }

    #[test]
    fn any_setting_serves_and_ends() {
        let spec = FqCodelSpec {
            flows: 0,
            quantum: 0,
            interval: Duration::ZERO,
            target: Duration::ZERO,
            ..Default::default()
        };
        let (mut q, mut tally) = (queue(spec), Tally::new());
        for i in 0..20 {
            offer(&mut q, &mut tally, Time::ZERO, 100, i, 0);
        }
        let served = std::iter::from_fn(|| q.dequeue(ms(1), &mut tally)).count() as u64;
        assert_eq!(served + tally.stats("", q.backlog()).dropped_packets(), 20);
    }

    #[test]
    fn a_fifo_fills_and_fq_codel_keeps_the_sparse_flow_ahead() {
        let flows = [reno(1, 40), reno(2, 40), sparse(3)];
        let [bulk, _, call] = &run(&[("rate", "20mbit"), ("limit", "200ms")], &flows, 60, 1)[..]
        else {
            panic!()
        };
        assert!(bulk.mean_wait_ms() > 100.0 && call.mean_wait_ms() > 100.0);
        let pairs = [("rate", "20mbit"), ("queue", "fq_codel")];
        let [a, b, call] = &run(&pairs, &flows, 60, 1)[..] else {
            panic!()
        };
        assert!(
            call.quantile_wait_ms(1.0) <= 5.0,
            "{}",
            call.quantile_wait_ms(1.0)
        );
        assert_eq!(call.lost, 0);
        let share = a.bytes as f64 / (a.bytes + b.bytes) as f64;
        assert!((share - 0.5).abs() < 0.03, "{share}");
        let used = (a.bytes + b.bytes + call.bytes) as f64 * 8.0 / 40.0 / 20e6;
        assert!(used > 0.9, "{used}");
    }
}
