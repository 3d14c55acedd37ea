//! Host fairness: hosts are hashed to buckets that share the line by deficit round robin, each
//! with a queue of its own, by default FQ-CoDel, which then shares among the host's flows. This is what a home router's
//! class tree does with one class per host (sch_drr.c, or HTB with equal classes).
//!
//! Left out: guaranteed rates and ceilings of single classes (HTB's rate and ceil). A busy host
//! borrows all that the others leave.

use std::collections::VecDeque;

use plumb_model::units::BitRate;
use plumb_wire::ip::IpPacket;
use serde::{Deserialize, Serialize};

use super::fq_codel::FqCodelSpec;
use super::list::in_order_of_arrival;
use super::{Adjust, AnyQueue, Queue, QueueKinds};
use crate::backlog::Backlog;
use crate::flow_hash::{bucket, host_hash};
use crate::packet::Packet;
use crate::settings::Settings;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "host_fair", by = "source" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    bound(deserialize = "Q: Deserialize<'de> + From<FqCodelSpec>")
)]
pub struct HostFairSpec<Q> {
    /// Which address is the host's: `source` in the direction up, `destination` in the direction down.
    pub by: HostAddress,
    /// Buckets that hosts are hashed to, 1…65536; two hosts in one share its share.
    #[serde(default = "default_buckets")]
    pub buckets: u32,
    /// Bytes on the line that a host may send in a round.
    #[serde(default = "default_quantum")]
    pub quantum: u32,
    /// The queue of each host; a limit in time is time on the whole line.
    #[serde(default = "default_leaf")]
    pub leaf: Box<Q>,
}

/// The end of a packet that is a host of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostAddress {
    Source,
    /// Whom it is for.
    Destination,
}

/// As FQ-CoDel has for flows (RFC 8290 section 4.1): ten hosts share a bucket with a chance of
/// 4 %.
fn default_buckets() -> u32 {
    1024
}

/// A full packet with its Ethernet header, as in RFC 8290 section 5.2.4.
fn default_quantum() -> u32 {
    1514
}

fn default_leaf<Q: From<FqCodelSpec>>() -> Box<Q> {
    Box::new(FqCodelSpec::default().into())
}

impl<Q: Settings + From<FqCodelSpec>> Settings for HostFairSpec<Q> {
    fn check(&self) -> Result<(), String> {
        if !(1..=65_536).contains(&self.buckets) {
            return Err("buckets are 1 to 65536".to_owned());
        }
        if self.quantum == 0 {
            return Err("the quantum is at least 1 byte".to_owned());
        }
        Ok(())
    }
}

pub(crate) struct HostFair<Q> {
    /// A bucket has a queue once it had a packet.
    hosts: Vec<Option<Host<Q>>>,
    /// Buckets with packets, the next to be served first.
    round: VecDeque<usize>,
    /// The bucket of the packet that was sent last: what is on the line is its.
    serving: usize,
    backlog: Backlog,
    spec: HostFairSpec<Q>,
    rate: BitRate,
    seed: u64,
}

struct Host<Q> {
    queue: Box<dyn AnyQueue<Q>>,
    /// Bytes on the line that it may still send in this round.
    deficit: i64,
    in_round: bool,
}

impl<Q: QueueKinds> HostFair<Q> {
    pub(crate) fn new(spec: HostFairSpec<Q>, rate: BitRate, seed: u64) -> Self {
        Self {
            hosts: (0..spec.buckets.max(1)).map(|_| None).collect(),
            round: VecDeque::new(),
            serving: 0,
            backlog: Backlog::default(),
            spec,
            rate,
            seed,
        }
    }

    fn host_of(&self, packet: &Packet) -> usize {
        let hash = IpPacket::parse(&packet.data).map_or(0, |ip| {
            let host = match self.spec.by {
                HostAddress::Source => ip.source(),
                HostAddress::Destination => ip.destination(),
            };
            host_hash(host, self.seed)
        });
        bucket(hash, self.hosts.len())
    }
}

impl<Q: QueueKinds> Queue for HostFair<Q> {
    fn enqueue(&mut self, now: Time, packet: Packet, on_line: Backlog, tally: &mut Tally) {
        let index = self.host_of(&packet);
        let Some(slot) = self.hosts.get_mut(index) else {
            return;
        };
        let host = slot.get_or_insert_with(|| Host {
            queue: self
                .spec
                .leaf
                .build(self.rate, self.seed.wrapping_add(index as u64)),
            deficit: 0,
            in_round: false,
        });
        let on_line = if index == self.serving {
            on_line
        } else {
            Backlog::default()
        };
        let elsewhere = self.backlog - host.queue.backlog();
        host.queue.enqueue(now, packet, on_line, tally);
        self.backlog = elsewhere + host.queue.backlog();
        if !host.in_round {
            host.in_round = true;
            host.deficit = i64::from(self.spec.quantum);
            self.round.push_back(index);
        }
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        loop {
            let index = *self.round.front()?;
            let host = self.hosts.get_mut(index)?.as_mut()?;
            if host.deficit <= 0 {
                host.deficit += i64::from(self.spec.quantum.max(1));
                self.round.rotate_left(1);
                continue;
            }
            let elsewhere = self.backlog - host.queue.backlog();
            let packet = host.queue.dequeue(now, tally);
            self.backlog = elsewhere + host.queue.backlog();
            if let Some(packet) = packet {
                host.deficit -= packet.wire.total as i64;
                self.serving = index;
                return Some(packet);
            }
            host.in_round = false;
            self.round.pop_front();
        }
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn drain(&mut self) -> Vec<Packet> {
        self.backlog = Backlog::default();
        let hosts = self.hosts.iter_mut().flatten();
        in_order_of_arrival(hosts.flat_map(|host| host.queue.drain()))
    }
}

impl<Q: QueueKinds> Adjust for HostFair<Q> {
    type Spec = HostFairSpec<Q>;

    fn reconfigure(&mut self, spec: HostFairSpec<Q>, rate: BitRate) -> bool {
        if (spec.by, spec.buckets) != (self.spec.by, self.spec.buckets) {
            return false;
        }
        let mut hosts = self.hosts.iter_mut().flatten();
        if !hosts.all(|host| host.queue.set(&spec.leaf, rate)) {
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
    use crate::queue::AnyQueue;
    use crate::queue::QueueSpec;
    use crate::queue::sim::{Control, Flow, cubic, reno, run, sparse};
    use plumb_model::framing::Framing;
    use std::time::Duration;

    const RATE: BitRate = BitRate::from_bps(8_000_000);

    fn queue(text: &str) -> HostFair<QueueSpec> {
        HostFair::new(toml::from_str(text).unwrap(), RATE, 1)
    }

    fn offer(
        q: &mut HostFair<QueueSpec>,
        tally: &mut Tally,
        source: u8,
        destination: u8,
        size: usize,
    ) {
        let mut packet = udp(size, u16::from(source), 0);
        (packet.data[15], packet.data[19]) = (source, destination);
        packet.frame(&Framing::default());
        q.enqueue(Time::ZERO, packet, Backlog::default(), tally);
    }

    #[test]
    fn hosts_get_equal_bytes_whatever_their_packets_size() {
        for (by, column) in [("source", 15), ("destination", 19)] {
            let (mut q, mut tally) = (queue(&format!("by = '{by}'")), Tally::new());
            for _ in 0..1500 {
                offer(&mut q, &mut tally, 1, 4, 300);
                offer(&mut q, &mut tally, 2, 5, 1500);
                offer(&mut q, &mut tally, 3, 6, 900);
            }
            let mut bytes = [0i64; 3];
            for _ in 0..900 {
                let packet = q.dequeue(Time::ZERO, &mut tally).unwrap();
                bytes[usize::from(packet.data[column] - 1) % 3] += packet.ip_bytes() as i64;
            }
            let (least, most) = (bytes.iter().min().unwrap(), bytes.iter().max().unwrap());
            assert!(most - least <= 2 * 1514, "{bytes:?}");
        }
    }

    #[test]
    fn by_hand_a_round() {
        let (mut q, mut tally) = (queue("by = 'source'\nleaf = 'fifo'"), Tally::new());
        for _ in 0..3 {
            offer(&mut q, &mut tally, 1, 9, 1000);
        }
        for _ in 0..3 {
            offer(&mut q, &mut tally, 2, 9, 1514);
        }
        // 1514 − 2 × 1000 leaves a debt of 486, which 1514 pays back for one more and a debt.
        let served: Vec<u8> = std::iter::from_fn(|| q.dequeue(Time::ZERO, &mut tally))
            .map(|packet| packet.data[15])
            .collect();
        assert_eq!(served, [1, 1, 2, 1, 2, 2]);
        assert_eq!(q.backlog(), Backlog::default());
    }

    #[test]
    fn the_seed_decides_which_hosts_share_a_bucket() {
        let spec = "by = 'source'\nbuckets = 4";
        let buckets = |seed| -> Vec<usize> {
            let q = HostFair::<QueueSpec>::new(toml::from_str(spec).unwrap(), RATE, seed);
            (0..40)
                .map(|host| {
                    let mut packet = udp(100, 1, 0);
                    packet.data[15] = host;
                    q.host_of(&packet)
                })
                .collect()
        };
        assert!((0..4).all(|i| buckets(1).contains(&i)));
        assert_ne!(buckets(1), buckets(2));
    }

    #[test]
    fn one_flow_and_three_get_half_each() {
        let by = "{type='host_fair', by='source'}";
        let pairs = [("rate", "20mbit"), ("queue", by)];
        let flows = [
            cubic(1, 40),
            cubic(2, 40),
            cubic(2, 40),
            cubic(2, 40),
            sparse(3),
        ];
        for seed in 1..4 {
            let outcomes = run(&pairs, &flows, 60, seed);
            let all: u64 = outcomes.iter().map(|o| o.bytes).sum();
            let share = outcomes[0].bytes as f64 / all as f64;
            assert!((share - 0.5).abs() < 0.05, "{share}");
            assert!(outcomes[4].quantile_wait_ms(1.0) <= 5.0);
        }
        // Flow fairness gives the one a quarter.
        let pairs = [("rate", "20mbit"), ("queue", "fq_codel")];
        let outcomes = run(&pairs, &flows[..4], 60, 1);
        let all: u64 = outcomes.iter().map(|o| o.bytes).sum();
        let share = outcomes[0].bytes as f64 / all as f64;
        assert!((share - 0.25).abs() < 0.05, "{share}");
    }

    /// The last case of the home experiments: a flood of 8 Mbit/s into an uplink of 6.2.
    #[test]
    fn a_flood_takes_half_of_the_line_from_another_host() {
        let flood = Flow {
            control: Control::Every(Duration::from_micros(1400)),
            size: 1400,
            ..reno(1, 20)
        };
        let by = "{type='host_fair', by='source'}";
        let outcomes = run(
            &[("rate", "6200kbit"), ("queue", by)],
            &[flood, reno(2, 40)],
            60,
            1,
        );
        let copy = outcomes[1].bytes as f64 * 8.0 / 40.0 / 6.2e6;
        assert!((copy - 0.5).abs() < 0.05, "{copy}");
        let outcomes = run(
            &[("rate", "6200kbit"), ("limit", "100ms")],
            &[flood, reno(2, 40)],
            60,
            1,
        );
        let copy = outcomes[1].bytes as f64 * 8.0 / 40.0 / 6.2e6;
        assert!(copy < 0.05, "{copy}");
    }

    #[test]
    fn settings_change_in_place_but_for_who_is_who() {
        let mut q = queue("by = 'source'");
        offer(&mut q, &mut Tally::new(), 1, 2, 100);
        let mut set = |text: &str| q.set(&QueueSpec::HostFair(toml::from_str(text).unwrap()), RATE);
        assert!(set(
            "by = 'source'\nquantum = 300\nleaf = { type = 'fq_codel', target = '9ms' }"
        ));
        assert!(!set("by = 'destination'"));
        assert!(!set("by = 'source'\nbuckets = 8"));
        assert!(!set("by = 'source'\nleaf = 'codel'"));
        assert_eq!(q.drain().len(), 1);
    }
}
