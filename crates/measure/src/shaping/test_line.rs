//! A line of emulated cells with a managed shaper before it, a load that always wants more, and probes, in virtual time.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use plumb_host::facts::Ticks;
use plumb_link::chain::{Chain, build_link};
use plumb_link::packet::Packet;
use plumb_link::spec::ChainSpec;
use plumb_link::time::Time;
use plumb_model::framing::Framing;
use plumb_wire::virtio::VirtioHeader;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64;

const PROBE_EVERY: Duration = Duration::from_millis(20);
const PROBE_BYTES: usize = 64;
/// What a shaper that is off lets pass: more than any line.
const OFF_BPS: f64 = 10e9;

/// What it is made of.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The cells of the line, as in a scenario.
    pub(crate) cells: String,
    pub(crate) framing: Framing,
    pub(crate) load_bps: f64,
    /// Mean of what the reverse path and the far end add to a probe.
    pub(crate) jitter_s: f64,
    /// What the machine that shapes does besides.
    pub(crate) processor: Processor,
    pub(crate) seed: u64,
}

/// The busiest processor of the machine that shapes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Processor {
    Idle,
    /// Full with something else, which leaves the shaper what it needs.
    Full,
    /// Full when so many bits a second pass the shaper; a third of the work remains without it.
    Most(f64),
}

/// One that is under load, or idle.
pub(crate) struct Running {
    chain: Chain,
    framing: Framing,
    load_every: Option<Duration>,
    jitter_s: f64,
    random: Pcg64,
    now: Time,
    next_load: Time,
    next_probe: Time,
    sent_probes: u32,
    came_probes: u32,
    idle_s: f64,
    pub(crate) carried_bits: f64,
    added_s: Vec<Option<f64>>,
    processor: Processor,
    is_on: bool,
    ran_s: f64,
    busy_s: f64,
}

#[derive(serde::Deserialize)]
struct File {
    chain: ChainSpec,
}

impl Line {
    /// The line after two seconds of rest, with the load beginning now.
    pub(crate) fn start(&self) -> Running {
        let text = format!(
            "chain = [{{ type = \"shaper\", name = \"managed\", rate = \"{}bit\", framing = \"{}\", queue = \"fq_codel\" }}, {}]",
            OFF_BPS, self.framing, self.cells
        );
        let chain = toml::from_str::<File>(&text).unwrap().chain;
        let [chain, _] = build_link(&chain, &ChainSpec::default(), [self.seed, 1]).unwrap();
        let mut running = Running {
            chain,
            framing: self.framing,
            load_every: None,
            jitter_s: self.jitter_s,
            random: Pcg64::seed_from_u64(self.seed),
            now: Time::ZERO,
            next_load: Time::MAX,
            next_probe: Time::ZERO,
            sent_probes: 0,
            came_probes: 0,
            idle_s: 0.0,
            carried_bits: 0.0,
            added_s: Vec::new(),
            processor: self.processor,
            is_on: false,
            ran_s: 0.0,
            busy_s: 0.0,
        };
        running.run(2.0);
        let mut idle: Vec<f64> = running.take_added().into_iter().flatten().collect();
        idle.sort_by(f64::total_cmp);
        running.idle_s = idle[idle.len() / 2];
        running.load_every = Some(Duration::from_secs_f64(1500.0 * 8.0 / self.load_bps));
        running.next_load = running.now;
        running
    }
}

impl Running {
    pub(crate) fn set(&mut self, rate_bps: Option<f64>) {
        self.is_on = rate_bps.is_some();
        let rate_bps = match (self.processor, rate_bps) {
            (Processor::Most(most_bps), Some(rate_bps)) => most_bps.min(rate_bps),
            (_, rate_bps) => rate_bps.unwrap_or(OFF_BPS),
        };
        let rate = format!("{}bit", rate_bps.round());
        self.chain
            .set(self.now, "managed", &[("rate", &rate)])
            .unwrap();
    }

    pub(crate) fn take_added(&mut self) -> Vec<Option<f64>> {
        std::mem::take(&mut self.added_s)
    }

    /// Two processors, of which one has nothing to do.
    pub(crate) fn processors(&self) -> [Ticks; 2] {
        [self.busy_s, 0.0].map(|busy_s| Ticks {
            all: (self.ran_s * 100.0) as u64,
            idle: ((self.ran_s - busy_s) * 100.0) as u64,
            ..Ticks::default()
        })
    }

    pub(crate) fn run(&mut self, seconds: f64) {
        let bits_before = self.carried_bits;
        self.pass(seconds);
        self.ran_s += seconds;
        let bps = (self.carried_bits - bits_before) / seconds;
        self.busy_s += seconds
            * match self.processor {
                Processor::Idle => 0.0,
                Processor::Full => 1.0,
                Processor::Most(most_bps) if self.is_on => (bps / most_bps).min(1.0),
                Processor::Most(most_bps) => (bps / most_bps / 3.0).min(1.0),
            };
    }

    fn pass(&mut self, seconds: f64) {
        let until = self.now + Duration::from_secs_f64(seconds);
        loop {
            let at = self.next_load.min(self.next_probe);
            if at > until {
                break;
            }
            self.now = at;
            if at == self.next_probe {
                self.next_probe = at + PROBE_EVERY;
                let number = self.sent_probes;
                self.sent_probes += 1;
                self.send(PROBE_BYTES, number);
            } else {
                self.next_load = at + self.load_every.unwrap();
                self.send(1500, 0);
            }
            self.receive();
        }
        self.now = until;
        self.receive();
    }

    fn send(&mut self, length: usize, number: u32) {
        let mut data = vec![
            0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ];
        data.extend([0, if length == PROBE_BYTES { 1 } else { 2 }, 0, 9]);
        data.resize(length, 0);
        let length = u16::try_from(length).unwrap().to_be_bytes();
        data[2..4].copy_from_slice(&length);
        data[32..36].copy_from_slice(&number.to_be_bytes());
        let packet = Packet::new(data, VirtioHeader::default(), self.now);
        self.chain.enqueue(self.now, packet);
    }

    fn receive(&mut self) {
        while let Some((at, packet)) = self.chain.dequeue(self.now) {
            let arrived = packet.arrived;
            let data = packet.into_data();
            let length = u32::try_from(data.len()).unwrap();
            self.carried_bits += f64::from(self.framing.wire_bytes(length)) * 8.0;
            if data.len() != PROBE_BYTES {
                continue;
            }
            let number = u32::from_be_bytes(data[32..36].try_into().unwrap());
            // Those between were lost.
            for _ in self.came_probes..number {
                self.added_s.push(None);
            }
            self.came_probes = number + 1;
            let jitter_s = -self.jitter_s * (1.0 - self.random.random::<f64>()).ln();
            let took_s = at.nanos_since(arrived) as f64 / 1e9 + jitter_s;
            self.added_s.push(Some(took_s - self.idle_s));
        }
    }
}

pub(crate) fn p95(added_s: &[Option<f64>]) -> f64 {
    let mut added: Vec<f64> = added_s.iter().map(|s| s.unwrap_or(f64::INFINITY)).collect();
    added.sort_by(f64::total_cmp);
    added[(added.len() as f64 * 0.95).ceil() as usize - 1]
}
