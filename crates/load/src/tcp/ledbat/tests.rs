//! LEDBAT++ on a simulated link, in virtual time.

use super::*;
use std::collections::VecDeque;

/// Payload of a segment.
const SEGMENT: u32 = 1448;

/// How often the connection is looked at, and the link moves on.
const STEP: Duration = Duration::from_millis(5);

/// A link of one queue, as fluid: a flow that sends a share of what comes gets that share of the rate.
struct Link {
    bytes_per_s: f64,
    base: Duration,
    queue_bytes: f64,
    limit_bytes: f64,
    /// Whose packets are lost when it overflows: everybody's, or the other's alone.
    spares_background: bool,
}

impl Link {
    fn new(mbps: f64, base_ms: u64, queue_ms: f64) -> Self {
        let bytes_per_s = mbps * 1e6 / 8.0;
        Self {
            bytes_per_s,
            base: Duration::from_millis(base_ms),
            queue_bytes: 0.0,
            limit_bytes: bytes_per_s * queue_ms / 1e3,
            spares_background: false,
        }
    }

    fn round_trip(&self) -> Duration {
        self.base + Duration::from_secs_f64(self.queue_bytes / self.bytes_per_s)
    }

    /// Takes what both send in a step; what each of them got through, and whether it overflowed.
    fn carry(&mut self, offered: [f64; 2]) -> ([f64; 2], bool) {
        let all = offered[0] + offered[1];
        let room = self.bytes_per_s * STEP.as_secs_f64();
        let queued = (self.queue_bytes + all - room).max(0.0);
        let lost = (queued - self.limit_bytes).max(0.0);
        let before = self.queue_bytes;
        self.queue_bytes = queued - lost;
        let through = all - lost - (self.queue_bytes - before);
        let share = |part: f64| if all > 0.0 { through * part / all } else { 0.0 };
        ([share(offered[0]), share(offered[1])], lost > 0.0)
    }
}

/// A flow of Reno (RFC 5681), which takes all that it can.
struct Reno {
    window_bytes: f64,
    quiet_until: Duration,
}

impl Reno {
    fn offer(&mut self, at: Duration, link: &Link) -> f64 {
        let rounds = STEP.as_secs_f64() / link.round_trip().as_secs_f64();
        if at >= self.quiet_until {
            self.window_bytes += f64::from(SEGMENT) * rounds;
        }
        self.window_bytes * rounds
    }

    fn loss(&mut self, at: Duration, link: &Link) {
        if at >= self.quiet_until {
            self.window_bytes /= 2.0;
            self.quiet_until = at + link.round_trip();
        }
    }
}

/// What happened in the last part of a simulation.
struct Seen {
    background_ratio: f64,
    used_ratio: f64,
    longest_queue: Duration,
    mean_queue: Duration,
}

/// Runs for `seconds`, with Reno from and until these seconds, and looks at what is from
/// `look_from_s` on.
fn simulate(mut link: Link, seconds: u32, reno: (u32, u32), look_from_s: u32) -> Seen {
    let mut ledbat = Ledbat::new();
    let mut other = Reno {
        window_bytes: 10.0 * f64::from(SEGMENT),
        quiet_until: Duration::ZERO,
    };
    let (mut retransmits, mut at) = (0, Duration::ZERO);
    let (mut got, mut steps) = ([0.0, 0.0], 0_u32);
    let mut last_through = 0.0;
    let (mut longest, mut sum) = (Duration::ZERO, Duration::ZERO);
    // The smallest round trip is what the connection saw, not what the path is.
    let mut smallest = link.round_trip();
    // What an acknowledgement shows is as old as the path from the queue and back, and smoothed.
    let mut past = VecDeque::from([(at, link.round_trip())]);
    let mut smoothed = link.round_trip();
    while at < Duration::from_secs(seconds.into()) {
        let seen_at = at.saturating_sub(link.base);
        while past.get(1).is_some_and(|(then, _)| *then <= seen_at) {
            past.pop_front();
        }
        let told = past.front().map_or(smoothed, |(_, round_trip)| *round_trip);
        smallest = smallest.min(told);
        let acknowledged = last_through / f64::from(2 * SEGMENT);
        let kept = (7.0_f64 / 8.0).powf(acknowledged);
        smoothed = smoothed.mul_f64(kept) + told.mul_f64(1.0 - kept);
        past.push_back((at, link.round_trip()));
        let rate = ledbat.look(&Look {
            at,
            round_trip: smoothed,
            smallest,
            retransmits,
            segment_bytes: SEGMENT,
        });
        let on =
            (Duration::from_secs(reno.0.into())..Duration::from_secs(reno.1.into())).contains(&at);
        let offered = [
            rate as f64 * STEP.as_secs_f64(),
            if on { other.offer(at, &link) } else { 0.0 },
        ];
        let (through, overflowed) = link.carry(offered);
        last_through = through[0];
        if overflowed {
            retransmits += u64::from(!link.spares_background);
            other.loss(at, &link);
        }
        if at >= Duration::from_secs(look_from_s.into()) {
            let queue = link.round_trip() - link.base;
            got[0] += through[0];
            got[1] += through[1];
            longest = longest.max(queue);
            sum += queue;
            steps += 1;
        }
        at += STEP;
    }
    let room = link.bytes_per_s * STEP.as_secs_f64() * f64::from(steps);
    Seen {
        background_ratio: got[0] / room,
        used_ratio: (got[0] + got[1]) / room,
        longest_queue: longest,
        mean_queue: sum / steps.max(1),
    }
}

const NEVER: (u32, u32) = (0, 0);

#[test]
fn alone_it_uses_the_link_and_keeps_the_queue_at_its_target() {
    for (mbps, base_ms) in [(5.0, 20), (20.0, 160), (50.0, 20), (50.0, 100), (500.0, 10)] {
        let seen = simulate(Link::new(mbps, base_ms, 400.0), 60, NEVER, 10);
        assert!(
            seen.background_ratio > 0.85,
            "{mbps} Mbit/s, {base_ms} ms: {}",
            seen.background_ratio
        );
        assert!(
            seen.mean_queue < TARGET && seen.longest_queue < 2 * TARGET,
            "{mbps} Mbit/s, {base_ms} ms: {:?}, {:?}",
            seen.mean_queue,
            seen.longest_queue
        );
    }
}

#[test]
fn it_yields_to_whoever_fills_a_queue() {
    for (mbps, base_ms, queue_ms) in [(20.0, 20, 200.0), (50.0, 40, 120.0), (10.0, 18, 700.0)] {
        // Reno adds a segment each round trip, and takes a while until it has filled the queue.
        let seen = simulate(Link::new(mbps, base_ms, queue_ms), 300, (5, 300), 150);
        assert!(
            seen.background_ratio < 0.1 && seen.used_ratio > 0.9,
            "{mbps} Mbit/s, {queue_ms} ms of queue: {} of {}",
            seen.background_ratio,
            seen.used_ratio
        );
    }
}

#[test]
fn it_yields_whoever_loses_packets() {
    // Queues about as long as the draft's target, of which it never sees the end by itself.
    for queue_ms in [40.0, 60.0, 80.0] {
        let mut link = Link::new(20.0, 20, queue_ms);
        link.spares_background = true;
        let seen = simulate(link, 60, (0, 60), 5);
        assert!(
            seen.background_ratio < 0.1 && seen.used_ratio > 0.9,
            "{queue_ms} ms of queue: {} of {}",
            seen.background_ratio,
            seen.used_ratio
        );
    }
}

#[test]
fn a_queue_that_overflows_below_the_target_lowers_the_target() {
    let beside = simulate(Link::new(50.0, 20, 40.0), 60, (5, 60), 20);
    assert!(
        beside.background_ratio < 0.15,
        "{}",
        beside.background_ratio
    );
    let alone = simulate(Link::new(50.0, 20, 40.0), 60, NEVER, 10);
    assert!(alone.background_ratio > 0.85, "{}", alone.background_ratio);
    assert!(
        alone.mean_queue < Duration::from_millis(25),
        "{:?}",
        alone.mean_queue
    );
}

#[test]
fn it_comes_back_when_the_others_are_done() {
    let seen = simulate(Link::new(20.0, 20, 200.0), 50, (5, 25), 35);
    assert!(seen.background_ratio > 0.8, "{}", seen.background_ratio);
}

#[test]
fn the_path_is_seen_empty_now_and_then() {
    // From 10 s on, some slowdown lets the queue drain to nothing.
    let mut link = Link::new(50.0, 20, 400.0);
    let mut ledbat = Ledbat::new();
    let (mut at, mut emptied, mut filled) = (Duration::ZERO, 0, false);
    while at < Duration::from_secs(60) {
        let rate = ledbat.look(&Look {
            at,
            round_trip: link.round_trip(),
            smallest: link.base,
            retransmits: 0,
            segment_bytes: SEGMENT,
        });
        link.carry([rate as f64 * STEP.as_secs_f64(), 0.0]);
        let queue = link.round_trip() - link.base;
        if filled && queue.is_zero() {
            emptied += 1;
        }
        filled = queue > TARGET / 4 || filled && !queue.is_zero();
        at += STEP;
    }
    assert!((3..=40).contains(&emptied), "{emptied} times");
}

#[test]
fn a_connection_without_a_round_trip_is_left_alone() {
    let mut ledbat = Ledbat::new();
    let nothing = Look {
        at: Duration::from_secs(1),
        round_trip: Duration::ZERO,
        smallest: Duration::ZERO,
        retransmits: 0,
        segment_bytes: SEGMENT,
    };
    assert_eq!(ledbat.look(&nothing), u64::MAX);
}
