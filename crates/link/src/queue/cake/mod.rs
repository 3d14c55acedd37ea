//! CAKE (tc-cake(8)), as the kernel's sch_cake.c does it in its shaped mode. The cell's shaper
//! is the shaper, with its rate and framing; this is what is before it: tins by DSCP, flows and
//! hosts with fair shares in each, COBALT on every flow, an ACK filter, and DSCP washing.
//!
//! As in shaped mode, a tin that keeps below its rate goes first, the one of the higher number
//! among several; when all are above, the one that is due first does. The weights of the
//! kernel's unlimited mode play no part.
//!
//! What differs: a NAT's inside addresses cannot be looked up (`nat`), so a packet's hosts are
//! those that it names on this link; memory is counted in IP bytes, where the kernel counts what
//! its buffers occupy; firewall marks and filters, `ingress` and `autorate-ingress` do not exist;
//! the ACK filter does not look into 6in4 tunnels. Large segments come split, as with
//! `split-gso`.

mod ack_filter;
#[cfg(test)]
mod behaviour;
mod cobalt;
mod diffserv;
mod hosts;
mod isolation;
mod rtt;
mod spec;
mod tin;

use plumb_model::units::BitRate;
use plumb_wire::ip::IpPacket;
use plumb_wire::rewrite;

use super::list::in_order_of_arrival;
use super::{Adjust, Queue};
use crate::backlog::Backlog;
use crate::packet::Packet;
use crate::random::Random;
use crate::stats::DropCause;
use crate::tally::Tally;
use crate::time::Time;
pub use ack_filter::AckFilter;
pub use diffserv::Tins;
pub use isolation::Isolation;
pub use spec::CakeSpec;
use tin::{Service, Tin, TinSettings};

/// The lowest rate of a tin, in bytes a second (MIN_RATE).
const LEAST_RATE: u64 = 64;

pub(crate) struct Cake {
    tins: Vec<Tin>,
    spec: CakeSpec,
    rate: BitRate,
    seed: u64,
    random: Random,
}

impl Cake {
    pub(crate) fn new(spec: CakeSpec, rate: BitRate, seed: u64) -> Self {
        Self {
            tins: tins(&spec, rate).map(Tin::new).collect(),
            spec,
            rate,
            seed,
            random: Random::new(seed),
        }
    }

    /// Drops from the head of the fattest flow of all tins.
    fn drop_from_fattest(&mut self, now: Time, tally: &mut Tally) {
        let fattest = self
            .tins
            .iter_mut()
            .filter_map(|tin| tin.fattest().map(|(flow, ip_bytes)| (tin, flow, ip_bytes)))
            .max_by_key(|(_, _, ip_bytes)| *ip_bytes);
        if let Some((tin, flow, _)) = fattest {
            tin.drop_from(now, flow, tally);
        }
    }
}

/// The settings of the tins before a line of this rate.
fn tins(spec: &CakeSpec, rate: BitRate) -> impl Iterator<Item = TinSettings> {
    let CakeSpec { isolation, rtt, .. } = *spec;
    let rates = spec.tins.rates(rate.bps() / 8).into_iter();
    rates.map(move |rate| TinSettings::new(isolation, rate.max(LEAST_RATE), rtt))
}

/// The tin whose turn it is: of those below their rates the last, or that which is due first.
fn choose(tins: &mut [Tin], now: Time) -> Option<&mut Tin> {
    let mut best: Option<&mut Tin> = None;
    for tin in tins.iter_mut().filter(|tin| tin.is_active()) {
        let due = tin.next_packet();
        let better = |best: &&mut Tin| due <= best.next_packet();
        if due <= now || best.as_ref().is_none_or(better) {
            best = Some(tin);
        }
    }
    best
}

impl Queue for Cake {
    fn enqueue(&mut self, now: Time, mut packet: Packet, _: Backlog, tally: &mut Tally) {
        let CakeSpec {
            tins,
            isolation,
            ack_filter,
            wash,
            ..
        } = self.spec;
        let ip = IpPacket::parse(&packet.data);
        let dscp = ip.as_ref().map_or(0, IpPacket::dscp);
        let hashes = isolation.hashes(&packet, ip.as_ref(), self.seed);
        if wash && dscp != 0 && rewrite::set_dscp(&mut packet.data, 0) {
            tally.changed += 1;
        }
        let Some(tin) = self.tins.get_mut(tins.tin(dscp)) else {
            return;
        };
        let superseded = |list: &_| ack_filter.superseded(list);
        if let Some(ack) = tin.enqueue(now, packet, hashes, superseded, &mut self.random) {
            tally.drop(DropCause::AckFilter, &ack);
        }
        let memory = self.spec.memory(self.rate);
        while self.backlog().ip_bytes > memory {
            self.drop_from_fattest(now, tally);
        }
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        let mut service = Service {
            now,
            random: &mut self.random,
            tally,
            look_after_decaying: true,
        };
        while self.tins.iter().any(|tin| tin.backlog().packets > 0) {
            let packet = choose(&mut self.tins, now)?.dequeue(&mut service);
            if packet.is_some() {
                return packet;
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        let tins = self.tins.iter().map(Tin::backlog);
        tins.fold(Backlog::default(), |sum, more| sum + more)
    }

    fn drain(&mut self) -> Vec<Packet> {
        in_order_of_arrival(self.tins.iter_mut().flat_map(Tin::drain))
    }
}

impl Adjust for Cake {
    type Spec = CakeSpec;

    fn reconfigure(&mut self, spec: CakeSpec, rate: BitRate) -> bool {
        if spec.tins != self.spec.tins {
            return false;
        }
        for (tin, settings) in self.tins.iter_mut().zip(tins(&spec, rate)) {
            tin.configure(settings);
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
    use plumb_model::framing::Framing;
    use plumb_model::units::ByteCount;
    use std::time::Duration;

    const RATE: BitRate = BitRate::from_bps(20_000_000);

    fn queue(spec: CakeSpec) -> (Cake, Tally) {
        (Cake::new(spec, RATE, 1), Tally::new())
    }

    fn offer(queue: &mut (Cake, Tally), ms: u64, size: usize, port: u16, tos: u8) {
        let mut packet = udp(size, port, tos);
        packet.entered = Time::from_nanos(ms * 1_000_000);
        packet.frame(&Framing::default());
        let (queue, tally) = queue;
        queue.enqueue(packet.entered, packet, Backlog::default(), tally);
    }

    fn serve(queue: &mut (Cake, Tally), ms: u64) -> Option<Packet> {
        let (queue, tally) = queue;
        queue.dequeue(Time::from_nanos(ms * 1_000_000), tally)
    }

    fn port(packet: &Packet) -> u16 {
        u16::from_be_bytes([packet.data[20], packet.data[21]])
    }

    fn dropped(queue: &(Cake, Tally), cause: &str) -> u64 {
        let stats = queue.1.stats("", Backlog::default());
        stats.dropped.get(cause).copied().unwrap_or(0)
    }

    /// Codepoints shifted to their place in the ToS byte.
    const EF: u8 = 46 << 2;
    const CS1: u8 = 8 << 2;

    #[test]
    fn overflow_drops_from_the_head_of_the_fattest_flow_of_all_tins() {
        let mut q = queue(CakeSpec {
            memory_limit: Some(ByteCount::from_bytes(10_000)),
            ..Default::default()
        });
        for ms in 0..6 {
            offer(&mut q, ms, 1000, 1, CS1);
        }
        for ms in 6..10 {
            offer(&mut q, ms, 1000, 2, 0);
        }
        assert_eq!(dropped(&q, "overflow"), 0);
        offer(&mut q, 10, 1000, 2, 0);
        assert_eq!(dropped(&q, "overflow"), 1);
        let left = q.0.drain();
        let ports: Vec<u16> = left.iter().map(port).collect();
        assert_eq!(ports, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2]);
        assert_eq!(left[0].entered, Time::from_nanos(1_000_000));
    }

    #[test]
    fn a_packet_that_exceeds_the_memory_by_itself_is_dropped() {
        let mut q = queue(CakeSpec {
            memory_limit: Some(ByteCount::from_bytes(999)),
            ..Default::default()
        });
        offer(&mut q, 1, 1000, 1, 0);
        assert_eq!(dropped(&q, "overflow"), 1);
        assert!(serve(&mut q, 2).is_none());
        offer(&mut q, 3, 999, 1, 0);
        assert!(serve(&mut q, 3).is_some());
    }

    #[test]
    fn an_ef_packet_passes_bulk_below_its_share_and_not_above() {
        let mut q = queue(CakeSpec {
            tins: Tins::Diffserv4,
            ..Default::default()
        });
        for _ in 0..50 {
            offer(&mut q, 0, 1000, 1, 0);
        }
        // 1000 bytes are 0.4 ms for best effort, whose rate is the line's: it is due again when
        // the line is.
        for _ in 0..3 {
            assert_eq!(serve(&mut q, 1).map(|p| port(&p)), Some(1));
        }
        offer(&mut q, 2, 1000, 2, EF);
        offer(&mut q, 2, 1000, 2, EF);
        assert_eq!(serve(&mut q, 2).map(|p| port(&p)), Some(2));
        // At a quarter of the rate its second is due 1.6 ms after its first.
        assert_eq!(serve(&mut q, 2).map(|p| port(&p)), Some(1));
        assert_eq!(serve(&mut q, 3).map(|p| port(&p)), Some(1));
        assert_eq!(serve(&mut q, 4).map(|p| port(&p)), Some(2));
        // Without tins it waits for its turn among the flows, although it is sparse.
        let mut q = queue(CakeSpec {
            tins: Tins::Besteffort,
            isolation: Isolation::Flowblind,
            ..Default::default()
        });
        offer(&mut q, 0, 1000, 1, 0);
        offer(&mut q, 0, 1000, 2, EF);
        assert_eq!(serve(&mut q, 1).map(|p| port(&p)), Some(1));
    }

    #[test]
    fn tins_share_the_line_by_their_thresholds() {
        // All are backlogged; the line sends 1000 bytes each 0.4 ms. Below their rates go voice
        // (25 %), then bulk (6.25 %), and best effort has the rest.
        let mut q = queue(CakeSpec {
            memory_limit: Some(ByteCount::from_bytes(1 << 30)),
            rtt: Duration::from_secs(3600),
            ..Default::default()
        });
        for _ in 0..3000 {
            for (port, tos) in [(1, 0), (2, CS1), (3, EF)] {
                offer(&mut q, 0, 1000, port, tos);
            }
        }
        let mut packets = [0u64; 4];
        for slot in 1..=3200u64 {
            let packet = q.0.dequeue(Time::from_nanos(slot * 400_000), &mut q.1);
            packets[usize::from(port(&packet.unwrap()))] += 1;
        }
        assert!(packets[3].abs_diff(800) <= 2, "{packets:?}");
        assert!(packets[2].abs_diff(200) <= 2, "{packets:?}");
    }

    #[test]
    fn washing_clears_the_codepoint_after_the_tin_was_chosen() {
        for (wash, tos) in [(false, EF | 2), (true, 2)] {
            let mut q = queue(CakeSpec {
                wash,
                ..Default::default()
            });
            offer(&mut q, 0, 1000, 1, 0);
            offer(&mut q, 0, 1000, 2, EF | 2);
            offer(&mut q, 0, 1000, 2, 0);
            let first = serve(&mut q, 1).unwrap();
            assert_eq!((port(&first), first.data[1]), (2, tos));
            assert_eq!(plumb_wire::checksum::checksum(&first.data[..20]), 0);
            assert_eq!(q.1.changed, u64::from(wash));
        }
    }

    #[test]
    fn new_settings_leave_what_waits_where_it_is() {
        let mut q = queue(CakeSpec::default());
        for i in 0..10 {
            offer(&mut q, i, 1000, i as u16, 0);
        }
        let changed = CakeSpec {
            isolation: Isolation::Flows,
            rtt: Duration::from_millis(10),
            ..Default::default()
        };
        assert!(q.0.set(&QueueSpec::Cake(changed), RATE));
        assert_eq!(q.0.backlog().packets, 10);
        let other = CakeSpec {
            tins: Tins::Diffserv8,
            ..changed
        };
        assert!(!q.0.set(&QueueSpec::Cake(other), RATE));
        assert_eq!(std::iter::from_fn(|| serve(&mut q, 11)).count(), 10);
    }

    #[test]
    fn what_is_no_ip_is_best_effort() {
        let mut q = queue(CakeSpec::default());
        let mut packet = Packet::new(vec![0; 60], Default::default(), Time::ZERO);
        packet.frame(&Framing::default());
        q.0.enqueue(Time::ZERO, packet, Backlog::default(), &mut q.1);
        assert_eq!(serve(&mut q, 1).unwrap().data, vec![0; 60]);
    }
}
