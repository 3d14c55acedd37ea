//! Strict priority (tc-prio(8), sch_prio.c): a band is served when all before it are empty. Each
//! band is a queue of any kind.
//!
//! Nothing limits what the first bands take: traffic that fills them starves the rest, as in the kernel.

use plumb_model::units::BitRate;
use plumb_wire::ip::IpPacket;
use serde::{Deserialize, Serialize};

use super::list::in_order_of_arrival;
use super::{Adjust, AnyQueue, Queue, QueueKinds};
use crate::backlog::Backlog;
use crate::packet::Packet;
use crate::settings::Settings;
use crate::tally::Tally;
use crate::time::Time;

/// `{ type = "priority", bands = [{ dscp = [46], ports = [53] }, { queue = "fq_codel" }] }`
///
/// A packet goes to the first band that names its DSCP or one of its ports, else to the band of
/// `priomap`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    bound(deserialize = "Q: Deserialize<'de> + Clone + Default")
)]
pub struct PrioritySpec<Q> {
    /// The band, counted from 0, of each of the kernel's 16 priorities; beyond the last band means the
    /// last.
    pub priomap: Vec<u8>,
    /// The bands, most important first.
    pub bands: Vec<Band<Q>>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(
    deny_unknown_fields,
    default,
    bound(deserialize = "Q: Deserialize<'de> + Clone + Default")
)]
pub struct Band<Q> {
    /// Differentiated services codepoints that belong here.
    pub dscp: Vec<u8>,
    /// TCP and UDP ports, of either end, that belong here.
    pub ports: Vec<u16>,
    /// Its queue; a limit in time is time on the whole line.
    pub queue: Q,
}

impl<Q: Clone + Default> Default for PrioritySpec<Q> {
    /// Three bands and the map of tc-prio(8).
    fn default() -> Self {
        Self {
            priomap: vec![1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1],
            bands: vec![Band::default(); 3],
        }
    }
}

impl<Q: Settings + Default> Settings for PrioritySpec<Q> {
    fn check(&self) -> Result<(), String> {
        // TCQ_PRIO_BANDS of the kernel.
        if !(2..=16).contains(&self.bands.len()) {
            return Err(format!(
                "{} bands are not possible: 2 to 16 are",
                self.bands.len()
            ));
        }
        if self.priomap.len() != 16 {
            return Err("priomap has the bands of 16 priorities".to_owned());
        }
        match self
            .bands
            .iter()
            .flat_map(|band| &band.dscp)
            .find(|dscp| **dscp > 63)
        {
            Some(dscp) => Err(format!("there is no DSCP {dscp}: they are 0 to 63")),
            None => Ok(()),
        }
    }
}

pub(crate) struct Priority<Q> {
    queues: Vec<Box<dyn AnyQueue<Q>>>,
    spec: PrioritySpec<Q>,
    /// The band of the packet that was sent last: what is on the line is its.
    serving: usize,
}

impl<Q: QueueKinds> Priority<Q> {
    pub(crate) fn new(spec: PrioritySpec<Q>, rate: BitRate, seed: u64) -> Self {
        let queues = (0u64..).zip(&spec.bands);
        Self {
            queues: queues
                .map(|(i, band)| band.queue.build(rate, seed.wrapping_add(i)))
                .collect(),
            spec,
            serving: 0,
        }
    }

    fn band(&self, packet: &Packet) -> usize {
        let Some(ip) = IpPacket::parse(&packet.data) else {
            return self.mapped(0);
        };
        let ports = ip.ports();
        let named = self.spec.bands.iter().position(|band| {
            band.dscp.contains(&ip.dscp())
                || ports.is_some_and(|(a, b)| band.ports.contains(&a) || band.ports.contains(&b))
        });
        named.unwrap_or_else(|| self.mapped(priority(ip.dscp())))
    }

    fn mapped(&self, priority: usize) -> usize {
        let band = self.spec.priomap.get(priority).copied().unwrap_or(0);
        usize::from(band).min(self.queues.len().saturating_sub(1))
    }
}

/// The priority that the kernel gives to a packet that it forwards: `ip_tos2prio`, by the two low
/// bits of the old precedence and TOS field that are not ECN's now.
fn priority(dscp: u8) -> usize {
    const BEST_EFFORT: usize = 0;
    const BULK: usize = 2;
    const INTERACTIVE_BULK: usize = 4;
    const INTERACTIVE: usize = 6;
    match dscp >> 1 & 3 {
        0 => BEST_EFFORT,
        1 => BULK,
        2 => INTERACTIVE,
        _ => INTERACTIVE_BULK,
    }
}

impl<Q: QueueKinds> Queue for Priority<Q> {
    fn enqueue(&mut self, now: Time, packet: Packet, on_line: Backlog, tally: &mut Tally) {
        let band = self.band(&packet);
        let on_line = if band == self.serving {
            on_line
        } else {
            Backlog::default()
        };
        if let Some(queue) = self.queues.get_mut(band) {
            queue.enqueue(now, packet, on_line, tally);
        }
    }

    fn dequeue(&mut self, now: Time, tally: &mut Tally) -> Option<Packet> {
        let bands = self.queues.iter_mut().enumerate();
        for (band, queue) in bands {
            if let Some(packet) = queue.dequeue(now, tally) {
                self.serving = band;
                return Some(packet);
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        let backlogs = self.queues.iter().map(|queue| queue.backlog());
        backlogs.fold(Backlog::default(), |sum, more| sum + more)
    }

    fn drain(&mut self) -> Vec<Packet> {
        in_order_of_arrival(self.queues.iter_mut().flat_map(|queue| queue.drain()))
    }
}

impl<Q: QueueKinds> Adjust for Priority<Q> {
    type Spec = PrioritySpec<Q>;

    fn reconfigure(&mut self, spec: PrioritySpec<Q>, rate: BitRate) -> bool {
        let possible = spec.bands.len() == self.queues.len()
            && self
                .queues
                .iter_mut()
                .zip(&spec.bands)
                .all(|(queue, band)| queue.set(&band.queue, rate));
        self.spec = spec;
        possible
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::packet::tests::udp;
    use crate::queue::AnyQueue;
    use crate::queue::QueueSpec;

    const RATE: BitRate = BitRate::from_bps(8_000_000);

    fn spec(text: &str) -> PrioritySpec<QueueSpec> {
        toml::from_str(text).unwrap()
    }

    fn with_dscp(dscp: u8, port: u16) -> Packet {
        udp(100, port, dscp << 2)
    }

    #[test]
    fn later_bands_wait_until_the_earlier_are_empty() {
        // A packet that no band names goes to the last band, because the map says so.
        let text = "bands = [{ dscp = [46] }, { ports = [53] }, {}]\npriomap = [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]";
        let spec = spec(text);
        let (mut q, mut tally) = (Priority::new(spec, RATE, 1), Tally::new());
        for packet in [
            with_dscp(0, 9000),
            with_dscp(0, 53),
            with_dscp(46, 9001),
            with_dscp(46, 53),
        ] {
            q.enqueue(Time::ZERO, packet, Backlog::default(), &mut tally);
        }
        assert_eq!(q.backlog().packets, 4);
        let next = |q: &mut Priority<QueueSpec>| {
            let packet = q.dequeue(Time::ZERO, &mut Tally::new()).unwrap();
            let ip = IpPacket::parse(&packet.data).unwrap();
            (ip.dscp(), ip.ports().unwrap().0)
        };
        // A packet that two bands name belongs to the first.
        assert_eq!([next(&mut q), next(&mut q)], [(46, 9001), (46, 53)]);
        q.enqueue(
            Time::ZERO,
            with_dscp(46, 9002),
            Backlog::default(),
            &mut tally,
        );
        assert_eq!(next(&mut q), (46, 9002));
        assert_eq!([next(&mut q), next(&mut q)], [(0, 53), (0, 9000)]);
        assert!(q.dequeue(Time::ZERO, &mut tally).is_none());
    }

    #[test]
    fn the_default_bands_are_the_kernels() {
        let q = Priority::new(PrioritySpec::<QueueSpec>::default(), RATE, 1);
        // Best effort, CS1; AF12 (TOS 0x30) asks for low delay, AF11 (0x28) for throughput; EF
        // (0xb8) for both, which the kernel calls interactive bulk.
        let bands = [0, 8, 12, 10, 46].map(|dscp| q.band(&with_dscp(dscp, 1)));
        assert_eq!(bands, [1, 1, 0, 2, 1]);
        // With fewer bands, the map's last one is the last that is there.
        let q = Priority::new(spec("bands = [{}, {}]"), RATE, 1);
        assert_eq!(q.band(&with_dscp(10, 1)), 1);
        assert_eq!(
            q.band(&Packet::new(vec![0; 20], Default::default(), Time::ZERO)),
            1
        );
    }

    #[test]
    fn each_band_has_its_own_queue_and_the_line_counts_for_the_band_it_serves() {
        let spec = spec(
            "bands = [{ dscp = [46], queue = { type = 'fifo', limit = '2p' } }, { queue = 'fq_codel' }]",
        );
        let (mut q, mut tally) = (Priority::new(spec, RATE, 1), Tally::new());
        let on_line = with_dscp(46, 1).backlog();
        q.enqueue(Time::ZERO, with_dscp(0, 1), Backlog::default(), &mut tally);
        assert!(q.dequeue(Time::ZERO, &mut tally).is_some());
        // A packet of the other band is on the line: it takes no room here.
        for _ in 0..3 {
            q.enqueue(Time::ZERO, with_dscp(46, 1), on_line, &mut tally);
        }
        assert_eq!((q.backlog().packets, tally.losses.len()), (2, 1));
        assert!(q.dequeue(Time::ZERO, &mut tally).is_some());
        q.enqueue(Time::ZERO, with_dscp(46, 1), on_line, &mut tally);
        assert_eq!((q.backlog().packets, tally.losses.len()), (1, 2));
    }

    #[test]
    fn settings_change_in_place_when_the_bands_stay_what_they_are() {
        let mut q = Priority::new(spec("bands = [{}, { queue = 'codel' }]"), RATE, 1);
        q.enqueue(
            Time::ZERO,
            with_dscp(0, 1),
            Backlog::default(),
            &mut Tally::new(),
        );
        let set = |q: &mut Priority<QueueSpec>, text| q.set(&QueueSpec::Priority(spec(text)), RATE);
        assert!(set(
            &mut q,
            "bands = [{ dscp = [46] }, { queue = { type = 'codel', target = '9ms' } }]"
        ));
        assert_eq!((q.band(&with_dscp(46, 1)), q.backlog().packets), (0, 1));
        assert!(!set(&mut q, "bands = [{}, {}]"));
        assert!(!set(&mut q, "bands = [{}, { queue = 'codel' }, {}]"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, says) in [
            ("bands = [{}]", "2 to 16"),
            ("bands = [{ dscp = [64] }, {}]", "no DSCP 64"),
            ("priomap = [1]", "16 priorities"),
        ] {
            assert!(spec(text).check().unwrap_err().contains(says));
        }
    }
}
