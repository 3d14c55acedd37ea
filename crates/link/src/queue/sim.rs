//! A closed loop for tests: flows that answer to losses and marks, over a shaper with a queue, in
//! virtual time. Enough of TCP to put a queue under the load that its authors had in mind: Reno
//! (RFC 5681, its answer to marks RFC 3168), CUBIC (RFC 9438), DCTCP (RFC 8257), and a flow that sends now and then.
//!
//! What it leaves out: handshakes, timeouts and delayed acknowledgements. A loss is known to the
//! sender one round trip without queues after it happened.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use plumb_wire::ip::{Ecn, IpPacket};
use rand::RngExt;

use crate::cell::Cell;
use crate::cell::shaper::{Shaper, ShaperSpec};
use crate::packet::tests::udp;
use crate::packet::{FlowNumber, Packet};
use crate::random::Random;
use crate::spec::CellSpec;
use crate::time::Time;

/// When a flow sends.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Control {
    /// Greedy, halves its window once a round trip with a loss or a mark.
    Reno,
    /// Greedy, CUBIC at home speeds, where RFC 9438 section 4.3 decides: reduces by 30 %, grows
    /// by half a packet a round trip up to its former window and by one beyond.
    Cubic,
    /// Greedy, reduces its window by half the share of marked packets.
    Dctcp,
    /// One packet every such interval, whatever happens.
    Every(Duration),
}

/// A flow from host 10.0.0.`host` to host 10.0.0.`host`, so that either end identifies it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) host: u8,
    pub(crate) control: Control,
    /// The ECN field of its packets.
    pub(crate) ecn: u8,
    /// IP bytes of each packet.
    pub(crate) size: usize,
    /// The round trip without queues.
    pub(crate) rtt: Duration,
}

/// A greedy flow of full-sized packets without ECN.
pub(crate) fn reno(host: u8, rtt_ms: u64) -> Flow {
    Flow {
        host,
        control: Control::Reno,
        ecn: 0,
        size: 1500,
        rtt: Duration::from_millis(rtt_ms),
    }
}

/// A greedy flow such as today's systems send.
pub(crate) fn cubic(host: u8, rtt_ms: u64) -> Flow {
    Flow {
        control: Control::Cubic,
        ..reno(host, rtt_ms)
    }
}

/// A greedy flow of a scalable congestion control (L4S).
pub(crate) fn dctcp(host: u8, rtt_ms: u64) -> Flow {
    Flow {
        control: Control::Dctcp,
        ecn: 1,
        ..reno(host, rtt_ms)
    }
}

/// A flow of 200-byte packets, one every 20 ms: a call.
pub(crate) fn sparse(host: u8) -> Flow {
    Flow {
        control: Control::Every(Duration::from_millis(20)),
        size: 200,
        ..reno(host, 20)
    }
}

/// What became of a flow after the warm-up.
#[derive(Debug, Default, Clone)]
pub(crate) struct Outcome {
    /// Seconds that each packet waited, its own sending apart.
    pub(crate) waits: Vec<f64>,
    pub(crate) bytes: u64,
    pub(crate) lost: u64,
    pub(crate) marked: u64,
}

impl Outcome {
    pub(crate) fn mean_wait_ms(&self) -> f64 {
        1e3 * self.waits.iter().sum::<f64>() / self.waits.len() as f64
    }

    /// The wait that this share of the packets does not exceed.
    pub(crate) fn quantile_wait_ms(&self, share: f64) -> f64 {
        let mut waits = self.waits.clone();
        waits.sort_by(f64::total_cmp);
        1e3 * waits[((waits.len() - 1) as f64 * share) as usize]
    }
}

/// A sender, in packets.
struct Sender {
    flow: Flow,
    window: f64,
    threshold: f64,
    /// The window before the last reduction.
    former: f64,
    in_flight: u64,
    /// No further reduction before this.
    reduced_until: Time,
    /// DCTCP's estimate of the share of marked packets, and the counts of this round.
    alpha: f64,
    acked: u64,
    acked_marked: u64,
    round_ends: Time,
}

enum Event {
    Ack { marked: bool, round_trip: Duration },
    Lost,
    Timer,
}

impl Sender {
    fn new(flow: Flow) -> Self {
        Self {
            flow,
            window: 10.0, // RFC 6928
            threshold: f64::INFINITY,
            former: 0.0,
            in_flight: 0,
            reduced_until: Time::ZERO,
            alpha: 1.0,
            acked: 0,
            acked_marked: 0,
            round_ends: Time::ZERO,
        }
    }

    fn reduce(&mut self, now: Time, factor: f64, round_trip: Duration) {
        if now >= self.reduced_until {
            self.former = self.window;
            self.window = (self.window * factor).max(2.0);
            self.threshold = self.window;
            self.reduced_until = now + round_trip;
        }
    }

    /// What a loss, or a mark for those that take one for it, leaves of the window.
    fn factor(&self) -> f64 {
        if self.flow.control == Control::Cubic {
            0.7
        } else {
            0.5
        }
    }

    /// Packets that the window grows in a round trip.
    fn growth(&self) -> f64 {
        let slower = self.flow.control == Control::Cubic && self.window < self.former;
        if slower {
            3.0 * (1.0 - 0.7) / (1.0 + 0.7)
        } else {
            1.0
        }
    }

    fn on_ack(&mut self, now: Time, marked: bool, round_trip: Duration) {
        self.in_flight -= 1;
        let slow_start = self.window < self.threshold;
        self.window += if slow_start {
            1.0
        } else {
            self.growth() / self.window
        };
        if self.flow.control != Control::Dctcp {
            if marked {
                self.reduce(now, self.factor(), round_trip);
            }
            return;
        }
        self.acked += 1;
        self.acked_marked += u64::from(marked);
        if now >= self.round_ends {
            let share = self.acked_marked as f64 / self.acked as f64;
            self.alpha += (share - self.alpha) / 16.0;
            (self.acked, self.acked_marked) = (0, 0);
            self.round_ends = now + round_trip;
        }
        if marked {
            self.reduce(now, 1.0 - self.alpha / 2.0, round_trip);
        }
    }
}

/// Sends `flows` over a shaper of these settings for `seconds`, and returns the outcomes of all but the first third of
/// that time, which is the warm-up.
pub(crate) fn run(
    shaper: &[(&str, &str)],
    flows: &[Flow],
    seconds: u64,
    seed: u64,
) -> Vec<Outcome> {
    let CellSpec::Shaper(spec) = CellSpec::from_pairs("shaper", shaper).unwrap() else {
        unreachable!()
    };
    let mut sim = Simulation::new(spec, flows, seed);
    let end = Time::ZERO + Duration::from_secs(seconds);
    sim.warm = Time::from_nanos(end.as_nanos() / 3);
    sim.run(end);
    sim.outcomes
}

struct Simulation {
    shaper: Shaper,
    rate: u64,
    senders: Vec<Sender>,
    outcomes: Vec<Outcome>,
    /// Events by time, then in order of their making.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    events: Vec<(usize, Event)>,
    random: Random,
    warm: Time,
}

impl Simulation {
    fn new(spec: ShaperSpec, flows: &[Flow], seed: u64) -> Self {
        let mut sim = Self {
            rate: spec.rate.map_or(0, |rate| rate.bps()),
            shaper: Shaper::new(spec, seed, Time::ZERO),
            senders: flows.iter().copied().map(Sender::new).collect(),
            outcomes: vec![Outcome::default(); flows.len()],
            due: BinaryHeap::new(),
            events: Vec::new(),
            random: Random::new(seed),
            warm: Time::ZERO,
        };
        for flow in 0..flows.len() {
            // Flows do not start in step.
            let start = sim.random.generator().random_range(0..100_000_000);
            sim.at(Time::from_nanos(start), flow, Event::Timer);
        }
        sim
    }

    fn at(&mut self, time: Time, flow: usize, event: Event) {
        self.due.push(Reverse((time, self.events.len())));
        self.events.push((flow, event));
    }

    fn run(&mut self, end: Time) {
        loop {
            let event = self.due.peek().map_or(Time::MAX, |Reverse((at, _))| *at);
            let now = event.min(self.shaper.next_event().unwrap_or(Time::MAX));
            if now > end {
                return;
            }
            while let Some((at, packet)) = self.shaper.dequeue(now) {
                self.arrive(at, &packet);
            }
            self.note_losses(now);
            if event == now {
                let Some(Reverse((_, number))) = self.due.pop() else {
                    return;
                };
                let (flow, event) = std::mem::replace(&mut self.events[number], (0, Event::Timer));
                self.happen(now, flow, event);
            }
        }
    }

    fn happen(&mut self, now: Time, flow: usize, event: Event) {
        let sender = &mut self.senders[flow];
        match event {
            Event::Ack { marked, round_trip } => sender.on_ack(now, marked, round_trip),
            Event::Lost => {
                sender.in_flight -= 1;
                sender.reduce(now, sender.factor(), sender.flow.rtt * 2);
            }
            Event::Timer => {}
        }
        if let Control::Every(interval) = sender.flow.control {
            if matches!(event, Event::Timer) {
                self.send(now, flow);
                self.at(now + interval, flow, Event::Timer);
            }
            return;
        }
        while self.senders[flow].in_flight < self.senders[flow].window as u64 {
            self.send(now, flow);
        }
    }

    fn send(&mut self, now: Time, number: usize) {
        let sender = &mut self.senders[number];
        sender.in_flight += 1;
        let flow = sender.flow;
        let mut packet = udp(flow.size, number as u16 + 1, flow.ecn);
        (packet.data[15], packet.data[19]) = (flow.host, flow.host);
        packet.flow = FlowNumber(number as u32);
        self.shaper.enqueue(now, packet);
        self.note_losses(now);
    }

    fn note_losses(&mut self, now: Time) {
        for loss in std::mem::take(&mut self.shaper.tally().losses) {
            let flow = loss.flow.0 as usize;
            let known = now + self.senders[flow].flow.rtt;
            self.at(known, flow, Event::Lost);
            self.outcomes[flow].lost += u64::from(now >= self.warm);
        }
    }

    fn arrive(&mut self, at: Time, packet: &Packet) {
        let flow = packet.flow.0 as usize;
        let sending = packet.wire.total * 8_000_000_000 / self.rate;
        let inside = at.nanos_since(packet.entered);
        let marked = IpPacket::parse(&packet.data).unwrap().ecn() == Ecn::Ce;
        if at >= self.warm {
            let outcome = &mut self.outcomes[flow];
            outcome
                .waits
                .push(inside.saturating_sub(sending) as f64 / 1e9);
            outcome.bytes += packet.ip_bytes();
            outcome.marked += u64::from(marked);
        }
        // Round trips differ by up to 0.1 ms, as they do: without, flows would fall into step.
        let jitter = Duration::from_nanos(self.random.generator().random_range(0..100_000));
        let round_trip = self.senders[flow].flow.rtt + jitter + Duration::from_nanos(inside);
        let ack = at + (round_trip - Duration::from_nanos(inside));
        self.at(ack, flow, Event::Ack { marked, round_trip });
    }
}
