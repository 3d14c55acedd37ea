//! The strategies in virtual time, on lines whose rates are known.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::results::TimestampSource;
use plumb_model::results::capacity::{CapacityEnd, Doubt, RateStatus, TrainMethod, TrainResult};
use plumb_wire::icmp_report::Report;
use proptest::prelude::*;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::hops::{HopsFound, HopsPlan, answers, hops};
use super::trains::{TrainsPlan, trains};
use crate::path::{Answer, AnswerKind, Answered, HopNetwork, Probe, ProbeId};
use crate::sample::{self, FarEnd, Moment};
use crate::strategy::{Event, Network};

const MS: u64 = 1_000_000;

/// A line, and the router behind it; the last is before the far end.
#[derive(Debug, Clone, Copy)]
struct Line {
    there_bps: f64,
    back_bps: f64,
    /// Propagation each way.
    delay_ns: u64,
    /// Answers this many probes a second at most.
    per_second: f64,
    /// Share of probes that wait for others' traffic, and for how long at most.
    busy: f64,
    wait_ns: f64,
}

fn line(bps: f64) -> Line {
    Line {
        there_bps: bps,
        back_bps: bps,
        delay_ns: MS,
        per_second: f64::INFINITY,
        busy: 0.0,
        wait_ns: 0.0,
    }
}

/// A path in virtual time.
#[derive(Debug)]
struct FakePath {
    now_ns: u64,
    lines: Vec<Line>,
    v6: bool,
    echoes: bool,
    /// Stamps and schedulers are late by up to this.
    noise_ns: f64,
    tokens: Vec<(f64, u64)>,
    random: Pcg64Mcg,
    queue: BTreeMap<(u64, ProbeId), Answered>,
    next: u64,
    /// It is set at that time.
    stop: Arc<AtomicBool>,
    stop_at_ns: u64,
}

impl FakePath {
    fn of(lines: &[Line]) -> Self {
        Self {
            now_ns: 0,
            tokens: vec![(6.0, 0); lines.len()],
            lines: lines.to_vec(),
            v6: false,
            echoes: false,
            noise_ns: 20_000.0,
            random: Pcg64Mcg::seed_from_u64(1),
            queue: BTreeMap::new(),
            next: 0,
            stop: Arc::new(AtomicBool::new(false)),
            stop_at_ns: u64::MAX,
        }
    }

    fn address(&self, hop: usize) -> IpAddr {
        if self.v6 {
            Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, hop as u16).into()
        } else {
            Ipv4Addr::new(192, 0, 2, hop as u8).into()
        }
    }

    fn plan(&self) -> HopsPlan {
        HopsPlan {
            target: self.address(self.lines.len()),
            max_hops: 30,
            largest_bytes: 1500,
            interval: Duration::from_millis(10),
            time: Duration::from_secs(60),
            bytes: 100_000_000,
            timeout: Duration::from_secs(1),
            seed: 1,
        }
    }

    fn answers(&mut self, hop: usize) -> bool {
        let per_second = self.lines[hop - 1].per_second;
        if per_second.is_infinite() {
            return true;
        }
        let (tokens, at_ns) = &mut self.tokens[hop - 1];
        let passed_s = (self.now_ns - *at_ns) as f64 / 1e9;
        (*tokens, *at_ns) = ((*tokens + passed_s * per_second).min(6.0), self.now_ns);
        if *tokens < 1.0 {
            return false;
        }
        *tokens -= 1.0;
        true
    }

    fn rtt_ns(&mut self, hop: usize, size: u16, back: u16) -> u64 {
        let mut ns = self.random.random::<f64>() * self.noise_ns;
        for line in &self.lines[..hop] {
            ns += f64::from(size) * 8e9 / line.there_bps + f64::from(back) * 8e9 / line.back_bps;
            ns += 2.0 * line.delay_ns as f64;
            if self.random.random_bool(line.busy) {
                ns += self.random.random::<f64>() * line.wait_ns;
            }
        }
        ns as u64
    }
}

impl HopNetwork for FakePath {
    fn now_ns(&mut self) -> u64 {
        self.now_ns
    }

    fn send(&mut self, probe: &Probe) -> io::Result<ProbeId> {
        let id = ProbeId(self.next);
        self.next += 1;
        let hop = usize::from(probe.hops).min(self.lines.len());
        if !self.answers(hop) {
            return Ok(id);
        }
        let far = hop == self.lines.len();
        let (headers, most) = if self.v6 { (48, 1232) } else { (28, 548) };
        let (kind, quoted) = match (far, self.echoes) {
            (true, true) => (AnswerKind::EchoReply, 0),
            (true, false) => (
                AnswerKind::Icmp(Report::Unreachable(if self.v6 { 4 } else { 3 })),
                probe.size_bytes.min(most),
            ),
            (false, _) => (
                AnswerKind::Icmp(Report::TimeExceeded(0)),
                probe.size_bytes.min(most),
            ),
        };
        let back = if quoted == 0 {
            probe.size_bytes
        } else {
            quoted + headers
        };
        let rtt_ns = self.rtt_ns(hop, probe.size_bytes, back);
        let answered = Answered {
            id,
            probe: *probe,
            rtt: Duration::from_nanos(rtt_ns),
            timestamps: TimestampSource::Kernel,
            answer: Answer {
                from: self.address(hop),
                kind,
                hop_limit: Some(64),
                quote: vec![0; quoted.into()],
                labels: Vec::new(),
                segment: Vec::new(),
            },
        };
        self.queue.insert((self.now_ns + rtt_ns, id), answered);
        Ok(id)
    }

    fn receive(&mut self, until_ns: u64) -> io::Result<Option<Answered>> {
        let arrived = match self.queue.first_key_value() {
            Some(((at, _), _)) if *at <= until_ns => self.queue.pop_first(),
            _ => None,
        };
        let until_ns = arrived.as_ref().map_or(until_ns, |((at, _), _)| *at);
        self.now_ns = self.now_ns.max(until_ns);
        if self.now_ns >= self.stop_at_ns {
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(arrived.map(|(_, answered)| answered))
    }
}

fn found(mut path: FakePath) -> HopsFound {
    let plan = path.plan();
    hops(&mut path, &plan, &AtomicBool::new(false), &mut |_, _| {}).unwrap()
}

/// Every line is told to within 10 %, and none above 400 Mbit/s is.
fn holds(found: &HopsFound, lines: &[Line]) {
    assert_eq!(found.hops.len(), lines.len(), "{found:?}");
    for (hop, line) in found.hops.iter().zip(lines) {
        let rate = &hop.line.rate;
        if line.there_bps > 4e8 {
            assert_eq!(rate.bps, None, "{line:?} {rate:?}");
            assert!(rate.at_least_bps.unwrap() <= line.there_bps);
        } else {
            let bps = rate.bps.unwrap_or_else(|| panic!("{line:?} {rate:?}"));
            assert!(
                (bps / line.there_bps - 1.0).abs() < 0.1,
                "{line:?} {rate:?}"
            );
        }
    }
}

#[test]
fn lines_in_any_order_are_told() {
    for rates in [
        [1e6, 1e7, 1e8, 5e7],
        [1e8, 1e7, 5e7, 1e6],
        [1e9, 1e8, 1e6, 1e9],
    ] {
        let lines = rates.map(line);
        let found = found(FakePath::of(&lines));
        holds(&found, &lines);
        assert!(
            found.reached && found.ended == CapacityEnd::Sure,
            "{:?}",
            found.ended
        );
    }
}

#[test]
fn the_way_back_is_told_apart() {
    let mut lines = [1e8, 1e7, 1e8].map(line);
    lines[1].back_bps = 1e6;
    let found = found(FakePath::of(&lines));
    holds(&found, &lines);
    let back = found.hops[1].line.back.clone().unwrap();
    assert!((back.bps.unwrap() / 1e6 - 1.0).abs() < 0.1, "{back:?}");
    // Latency is that of packets without size.
    let (latency_s, error_s) = found.hops[1].line.latency_s.unwrap();
    assert!(
        (latency_s - 2e-3).abs() <= error_s + 20e-6,
        "{latency_s} {error_s}"
    );
}

#[test]
fn other_traffic_does_not_show_in_the_rates() {
    let mut lines = [1e7, 1e8, 1e7].map(line);
    lines[0].busy = 0.4;
    lines[0].wait_ns = 2.4e6;
    lines[2].busy = 0.3;
    lines[2].wait_ns = 2.4e6;
    let found = found(FakePath::of(&lines));
    let rate = |at: usize| found.hops[at].line.rate.clone();
    for at in [0, 2] {
        assert!(
            (rate(at).bps.unwrap() / 1e7 - 1.0).abs() < 0.1,
            "{:?}",
            rate(at)
        );
    }
    // The fast line between may be told or bounded, and the bounds hold.
    assert!(
        rate(1).at_least_bps.unwrap() <= 1e8 && rate(1).at_most_bps.is_none_or(|most| most >= 1e8)
    );
    assert!(found.hops[0].queueing().unwrap().mean > 1e-4);
}

#[test]
fn a_router_that_answers_seldom_is_probed_seldom() {
    let mut lines = [1e7, 1e7, 1e6].map(line);
    lines[1].per_second = 10.0;
    let found = found(FakePath::of(&lines));
    holds(&found, &lines);
    let limited = &found.hops[1];
    assert!(limited.limited && !found.hops[0].limited);
    assert!(
        limited.received * 3 > limited.sent,
        "{} of {}",
        limited.received,
        limited.sent
    );
}

#[test]
fn a_silent_router_makes_one_line_of_two() {
    let mut lines = [1e7, 1e7, 1e6, 1e7].map(line);
    lines[1].per_second = 0.0;
    let mut path = FakePath::of(&lines);
    path.tokens[1] = (0.0, 0);
    let found = found(path);
    let rates: Vec<_> = found.hops.iter().map(|hop| &hop.line.rate).collect();
    assert_eq!(found.hops[1].address, None);
    assert_eq!(
        (rates[1].status, found.hops[2].line.lines),
        (RateStatus::Unknown, 2)
    );
    assert_eq!(rates[2].bps, None);
    assert!(
        (rates[2].at_least_bps.unwrap() / 0.909e6 - 1.0).abs() < 0.02,
        "{rates:?}"
    );
    assert!((rates[3].bps.unwrap() / 1e7 - 1.0).abs() < 0.1);
}

#[test]
fn echoes_bound_the_last_line_and_ipv6_needs_more_answers() {
    let lines = [1e7, 1e6].map(line);
    let mut path = FakePath::of(&lines);
    path.echoes = true;
    let echoed = found(path);
    let last = &echoed.hops[1].line.rate;
    assert!(
        last.doubts.contains(&Doubt::BothWays) && last.bps.is_none(),
        "{last:?}"
    );
    assert!(last.at_least_bps.unwrap() > 0.4e6 && last.at_least_bps.unwrap() <= 1e6);
    let lines = [1e8, 1e7, 5e7].map(line);
    let mut path = FakePath::of(&lines);
    path.v6 = true;
    let v6 = found(path);
    holds(&v6, &lines);
    assert!(v6.sent > echoed.sent);
}

#[test]
fn time_and_bytes_are_kept_to() {
    let mut path = FakePath::of(&[1e9, 1e8].map(line));
    path.noise_ns = 5e6;
    let plan = HopsPlan {
        bytes: 200_000,
        ..path.plan()
    };
    let found = hops(&mut path, &plan, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
    assert_eq!(found.ended, CapacityEnd::Bytes);
    assert!(found.sent_bytes <= 200_000);
    assert!(found.hops.iter().all(|hop| hop.line.rate.bps.is_none()));
    let plan = HopsPlan {
        time: Duration::from_secs(3),
        ..path.plan()
    };
    let before_ns = path.now_ns;
    let found = hops(&mut path, &plan, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
    assert_eq!(found.ended, CapacityEnd::Time);
    assert!(path.now_ns - before_ns < 4_000 * MS);
    let nobody = FakePath::of(&[Line {
        per_second: 0.0,
        ..line(1e7)
    }]);
    let mut nobody = FakePath {
        tokens: vec![(0.0, 0)],
        ..nobody
    };
    let plan = nobody.plan();
    let found = hops(&mut nobody, &plan, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
    assert!(found.hops.is_empty() && !found.reached);
}

/// Two lines; the router or the far end behind one of them answers so many probes and no more.
fn falls_silent(hop: usize, after: f64, stop_at_ns: u64) -> (HopsPlan, FakePath) {
    let mut lines = [1e7, 1e7].map(line);
    lines[hop - 1].per_second = 0.0;
    let mut path = FakePath::of(&lines);
    path.tokens[hop - 1].0 = after;
    path.stop_at_ns = stop_at_ns;
    let plan = HopsPlan {
        max_hops: 2,
        ..path.plan()
    };
    (plan, path)
}

#[test]
fn a_stop_ends_it_at_once_with_what_was_learnt() {
    let stopped = |hop, after, at_ms: u64| {
        let (plan, mut path) = falls_silent(hop, after, at_ms * MS);
        let stop = Arc::clone(&path.stop);
        let found = hops(&mut path, &plan, &stop, &mut |_, _| {}).unwrap();
        assert_eq!(found.ended, CapacityEnd::Stopped);
        let late_ms = path.now_ns / MS - at_ms;
        assert!(late_ms <= 100, "{late_ms} ms after {at_ms} ms");
        assert_eq!(found.sent, path.next);
        let largest: Vec<_> = found.hops.iter().map(|hop| hop.largest_bytes).collect();
        (found.reached, largest)
    };
    // Nobody answers from the first hop while it is found out who does.
    assert_eq!(stopped(1, 0.0, 150), (false, vec![]));
    // The far end answers small probes, and none of the larger ones.
    assert_eq!(stopped(2, 1.0, 700), (true, vec![Some(1500), None]));
    // It answers until it is measured how long a full packet takes.
    assert_eq!(stopped(2, 2.0, 2_500), (true, vec![Some(1500); 2]));
    let (plan, mut path) = falls_silent(2, 0.0, 700 * MS);
    let stop = Arc::clone(&path.stop);
    let error = answers(&mut path, plan.target, plan.timeout, &stop).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Interrupted);
    assert!(path.now_ns <= 800 * MS, "{}", path.now_ns);
}

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
            drops: 0,
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
fn silence_ends_soon() {
    let mut far = FakeFarEnd::of(1e7);
    far.silent = true;
    let stop = AtomicBool::new(false);
    let train = trains(&mut far, &TRAINS, TrainMethod::Echo, &stop, &mut |_| {}).unwrap();
    assert_eq!(train, None);
    assert!(far.now_ns < 6_000 * MS);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_line_is_told_wrongly(rates in proptest::collection::vec(5.5f64..9.5, 1..6), noise_us in 1u32..500, back in 5.5f64..9.5) {
        let mut lines: Vec<Line> = rates.iter().map(|exponent| line(10f64.powf(*exponent))).collect();
        lines[0].back_bps = 10f64.powf(back);
        let mut path = FakePath::of(&lines);
        path.noise_ns = f64::from(noise_us) * 1e3;
        let plan = HopsPlan { time: Duration::from_secs(20), ..path.plan() };
        let found = hops(&mut path, &plan, &AtomicBool::new(false), &mut |_, _| {}).unwrap();
        for (hop, line) in found.hops.iter().zip(&lines) {
            if let Some(bps) = hop.line.rate.bps {
                prop_assert!((bps / line.there_bps - 1.0).abs() < 0.1, "{:?} {:?}", line, hop.line.rate);
            }
        }
    }
}

/// Where the sockets stand for nothing.
#[test]
fn the_far_end_is_one_host() {
    let stop = AtomicBool::new(false);
    let to: SocketAddr = "224.0.0.1:7586".parse().unwrap();
    let error = super::send_trains("all", to, TrainMethod::Native, &TRAINS, &stop, &mut |_| {});
    assert!(error.unwrap_err().to_string().contains("many hosts"));
}
