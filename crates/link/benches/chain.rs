//! How many packets a second a core takes through a chain in virtual time.
//!
//! Counts the processor time of its own thread, so that other programs on the machine change
//! little. Prints the profile that it was built with (`cargo bench` builds as for a release), and
//! a line for each chain: its name and millions of packets a second.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::time::Duration;

use plumb_link::chain::{Chain, build_link};
use plumb_link::packet::Packet;
use plumb_link::spec::ChainSpec;
use plumb_link::time::Time;
use plumb_wire::virtio::VirtioHeader;

/// Packets a run: half a second of work at the speed that is aimed at.
const PACKETS: u64 = 2_000_000;
/// Runs, of which the median counts.
const RUNS: usize = 5;
/// Packets that come at once, so that the queue has to work.
const BURST: u64 = 32;
/// From burst to burst: 1500 bytes take 12 µs at 1 Gbit/s, so the line is busy for 95 % of it.
const GAP: Duration = Duration::from_nanos(BURST * 12_632);

/// What the first chain is to reach, in packets a second: it is what most scenarios are made of.
const LEAST_PPS: f64 = 5e6;

const CHAINS: [(&str, &str); 3] = [
    (
        "rate-queue-loss-delay",
        r#"chain = [
            { type = "shaper", rate = "1gbit", queue = { type = "fifo", limit = "100ms" } },
            { type = "loss", ratio = "0.1%" },
            { type = "delay", delay = "10ms" },
        ]"#,
    ),
    (
        "rate-fq_codel-delay",
        r#"chain = [
            { type = "shaper", rate = "1gbit", queue = "fq_codel" },
            { type = "delay", delay = "10ms" },
        ]"#,
    ),
    ("delay", r#"chain = [{ type = "delay", delay = "10ms" }]"#),
];

#[derive(serde::Deserialize)]
struct File {
    chain: ChainSpec,
}

fn main() {
    let profile = match cfg!(debug_assertions) {
        true => "dev",
        false => "release",
    };
    println!("chains in virtual time, a core, {profile} profile");
    for (number, (name, text)) in CHAINS.into_iter().enumerate() {
        let spec = toml::from_str::<File>(text).unwrap().chain;
        let mut speeds: Vec<f64> = (0..RUNS).map(|_| packets_a_second(&spec)).collect();
        speeds.sort_by(f64::total_cmp);
        let median = speeds[RUNS / 2];
        let bound = match number {
            0 if median >= LEAST_PPS => format!(" >= {}: pass", LEAST_PPS / 1e6),
            0 => format!(" >= {}: FAIL", LEAST_PPS / 1e6),
            _ => String::new(),
        };
        println!("{name:<24} {:6.2} Mpps{bound}", median / 1e6);
    }
}

fn packets_a_second(spec: &ChainSpec) -> f64 {
    let [mut chain, _] = build_link(spec, &ChainSpec::default(), [1, 2]).unwrap();
    // Buffers go round, as they do in a driver.
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let mut now = Time::ZERO;
    let mut left = 0;
    let started = thread_cpu_time();
    for number in 0..PACKETS {
        if number % BURST == 0 {
            now += GAP;
        }
        let data = spare.pop().unwrap_or_else(|| template(number));
        chain.enqueue(now, Packet::new(data, VirtioHeader::default(), now));
        left += drain(&mut chain, now, &mut spare);
    }
    let took = thread_cpu_time() - started;
    assert!(left > PACKETS * 9 / 10);
    PACKETS as f64 / took.as_secs_f64()
}

fn drain(chain: &mut Chain, now: Time, spare: &mut Vec<Vec<u8>>) -> u64 {
    let mut count = 0;
    while let Some((_, packet)) = chain.dequeue(now) {
        spare.push(packet.into_data());
        count += 1;
    }
    count
}

/// A UDP packet of 1500 bytes, of one of eight flows.
fn template(number: u64) -> Vec<u8> {
    let mut data = vec![
        0x45, 0, 0x05, 0xdc, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0x10,
    ];
    data.push((number % 8) as u8);
    data.resize(1500, 0);
    data
}

fn thread_cpu_time() -> Duration {
    let time = nix::time::clock_gettime(nix::time::ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap();
    time.into()
}
