//! The strategy in virtual time, over a narrow line whose rate is known.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_model::results::capacity::{Doubt, TrainMethod, TrainResult};
use plumb_net::egress::Outlet;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::capacity::send_trains;
use crate::path::Target;
use crate::ping::sample::{self, FarEnd, Moment};

const MS: u64 = 1_000_000;

/// A far end behind one narrow line, in virtual time.
struct FakeFarEnd {
    now_ns: u64,
    /// From one packet to the next as they are sent.
    sending_ns: u64,
    /// The line: until when it is busy, and what it takes for a packet.
    free_ns: u64,
    packet_ns: u64,
    /// A token bucket before it: packets that pass at once, and how many it holds.
    tokens: f64,
    holds: f64,
    filled_ns: u64,
    /// Another packet comes between with this probability.
    others: f64,
    /// Arrivals are stamped together every so often.
    bunches_ns: u64,
    silent: bool,
    /// This host's own queue takes so many packets at once.
    queue_packets: usize,
    random: Pcg64Mcg,
    events: BTreeMap<(u64, u64), Event>,
    next: u64,
}

impl FakeFarEnd {
    fn of(bps: f64) -> Self {
        Self {
            now_ns: 0,
            sending_ns: 5_000,
            free_ns: 0,
            packet_ns: (1500.0 * 8e9 / bps) as u64,
            tokens: 0.0,
            holds: 0.0,
            filled_ns: 0,
            others: 0.0,
            bunches_ns: 1,
            silent: false,
            queue_packets: usize::MAX,
            random: Pcg64Mcg::seed_from_u64(3),
            events: BTreeMap::new(),
            next: 0,
        }
    }

    fn push(&mut self, at_ns: u64, event: Event) {
        self.next += 1;
        self.events.insert((at_ns, self.next), event);
    }
}

impl Network for FakeFarEnd {
    fn id(&self) -> u32 {
        0
    }

    fn now(&mut self) -> Moment {
        Moment {
            monotonic_ns: self.now_ns,
            realtime_ns: self.now_ns,
            uncertainty_ns: 0,
        }
    }

    fn send(&mut self, sequence: u32) -> io::Result<()> {
        if self.events.len() >= self.queue_packets {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        self.now_ns += self.sending_ns;
        let now_ns = self.now_ns;
        self.push(
            now_ns,
            Event::Departed {
                sequence,
                ns: now_ns,
            },
        );
        let filled = (now_ns - self.filled_ns) as f64 / self.packet_ns as f64;
        (self.tokens, self.filled_ns) = ((self.tokens + filled).min(self.holds), now_ns);
        let left_ns = if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            now_ns
        } else {
            let more = if self.random.random_bool(self.others) {
                2
            } else {
                1
            };
            self.free_ns = self.free_ns.max(now_ns) + more * self.packet_ns;
            self.free_ns
        };
        if self.silent {
            return Ok(());
        }
        let arrived_ns = (left_ns + 10 * MS).next_multiple_of(self.bunches_ns);
        let answer = sample::Answer {
            sequence,
            at: Moment {
                monotonic_ns: arrived_ns,
                realtime_ns: arrived_ns,
                uncertainty_ns: 0,
            },
            kernel_ns: Some(arrived_ns),
            measured: None,
            said: None,
            far_end: Some(FarEnd {
                received_ns: arrived_ns as i64 + 77,
                sent_ns: arrived_ns as i64 + 78,
                count: None,
                hop_limit: None,
            }),
            hop_limit: None,
            drops: plumb_net::udp_counters::Drops::default(),
        };
        self.push(arrived_ns, Event::Answered(answer));
        Ok(())
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Event>> {
        match self.events.first_key_value() {
            Some(((at, _), _)) if *at <= until_ns => {
                let ((at, _), event) = self.events.pop_first().unwrap();
                self.now_ns = self.now_ns.max(at);
                Ok(Some(event))
            }
            _ => {
                self.now_ns = self.now_ns.max(until_ns);
                Ok(None)
            }
        }
    }
}

const TRAINS: TrainsPlan = TrainsPlan {
    packet_bytes: 1500,
    longest_packets: 400,
    bytes: 10_000_000,
    time: Duration::from_secs(60),
};

fn sent(mut far: FakeFarEnd) -> TrainResult {
    let stop = AtomicBool::new(false);
    trains(&mut far, &TRAINS, TrainMethod::Native, &stop, &mut |_| {})
        .unwrap()
        .unwrap()
}

#[test]
fn trains_tell_the_narrowest_place() {
    for bps in [1e6, 1e7, 1e8, 5e8] {
        let train = sent(FakeFarEnd::of(bps));
        assert!(
            (train.rate.bps.unwrap() / bps - 1.0).abs() < 0.01,
            "{train:?}"
        );
        assert!(train.rate.doubts.is_empty() && train.burst.is_none());
        let least = (0.02 * bps / 12_000.0) as u32;
        assert!(train.longest_packets >= least.min(400), "{bps}: {train:?}");
    }
}

#[test]
fn whenever_it_ends_something_is_told_and_nothing_wrong() {
    for packets in (8..1000).step_by(8) {
        let plan = TrainsPlan {
            bytes: packets * 1500,
            ..TRAINS
        };
        let stop = AtomicBool::new(false);
        let mut far = FakeFarEnd::of(1e8);
        let found = trains(&mut far, &plan, TrainMethod::Native, &stop, &mut |_| {});
        let rate = found.unwrap().unwrap().rate;
        let least = rate.at_least_bps.unwrap();
        assert!((0.85e8..=1e8).contains(&least), "{packets}: {rate:?}");
        assert!(rate.at_most_bps.is_none_or(|most| most >= 1e8));
        assert!(rate.bps.is_none_or(|bps| (bps / 1e8 - 1.0).abs() < 0.01));
    }
}

#[test]
fn what_is_as_fast_as_the_sender_is_not_told() {
    let train = sent(FakeFarEnd::of(5e9));
    assert_eq!((train.rate.bps, train.rate.at_most_bps), (None, None));
    assert_eq!(train.rate.doubts, [Doubt::Sender]);
    assert!(train.rate.at_least_bps.unwrap() > 2e9);
}

#[test]
fn a_token_bucket_is_named_with_its_size() {
    // The larger one holds some trains of 256 packets whole.
    for holds in [200.0, 300.0] {
        let mut far = FakeFarEnd::of(5e6);
        (far.tokens, far.holds) = (holds, holds);
        let train = sent(far);
        let burst = train.burst.unwrap();
        assert!(
            (train.rate.bps.unwrap() / 5e6 - 1.0).abs() < 0.05,
            "{train:?}"
        );
        assert!(
            (burst.bucket_bytes / (holds * 1500.0) - 1.0).abs() < 0.1,
            "{burst:?}"
        );
        assert!(train.rate.doubts.contains(&Doubt::TokenBucket));
    }
}

#[test]
fn other_packets_between_are_noticed() {
    let mut far = FakeFarEnd::of(1e8);
    far.others = 0.4;
    let train = sent(far);
    assert_eq!(train.rate.bps, None);
    assert!(
        train.rate.doubts.contains(&Doubt::CrossTraffic),
        "{train:?}"
    );
    assert!(train.rate.at_least_bps.unwrap() <= 1e8 && train.rate.at_most_bps.unwrap() >= 1e8);
}

#[test]
fn bunched_stamps_are_seen_through_or_refused() {
    let mut far = FakeFarEnd::of(1e8);
    far.bunches_ns = 1_500_000;
    let train = sent(far);
    assert!(train.rate.doubts.contains(&Doubt::Bunched), "{train:?}");
    assert!(
        (train.rate.bps.unwrap() / 1e8 - 1.0).abs() < 0.1,
        "{train:?}"
    );
    let mut far = FakeFarEnd::of(1e8);
    far.bunches_ns = 8_000_000;
    let train = sent(far);
    assert!(
        train.rate.bps.is_none() && train.rate.doubts.contains(&Doubt::Bunched),
        "{train:?}"
    );
}

#[test]
fn what_was_not_sent_is_not_lost() {
    let mut far = FakeFarEnd::of(1e7);
    far.queue_packets = 20;
    let train = sent(far);
    assert!(train.longest_packets > 20, "{train:?}");
    assert_eq!(train.received, train.sent);
}

#[test]
fn silence_ends_soon() {
    let mut far = FakeFarEnd::of(1e7);
    far.silent = true;
    let stop = AtomicBool::new(false);
    let train = trains(&mut far, &TRAINS, TrainMethod::Echo, &stop, &mut |_| {}).unwrap();
    assert_eq!(train, None);
    assert!(far.now_ns < 6_000 * MS);
}

/// Through `send_trains` itself, with its own sockets.
#[test]
fn the_far_end_is_one_host() {
    let stop = AtomicBool::new(false);
    let to = Target {
        name: "all".to_owned(),
        address: "224.0.0.1:7586".parse().unwrap(),
        outlet: Outlet::default(),
    };
    let error = send_trains(&to, TrainMethod::Native, &TRAINS, &stop, &mut |_| {});
    assert!(error.unwrap_err().to_string().contains("many hosts"));
}
