//! Senders whose window is known, in virtual time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use proptest::prelude::*;

use super::*;

const FULL: u32 = 1448;
const RTT_NS: u64 = 40_000_000;

/// A sender with a window of so many segments, which acknowledgements release one by one.
struct Sender {
    all: Congestion,
    now: u64,
    next: u32,
    acked: u32,
    window: u32,
    /// What held it back after its latest payload.
    held: Held,
}

impl Sender {
    /// One that has sent its first window; its numbers begin anew soon.
    fn new(window: u32) -> Self {
        let acked = u32::MAX - 50 * FULL;
        let first = Sent {
            now: 0,
            end: acked.wrapping_add(FULL),
            heard: Heard { ack: acked, ns: 0 },
            waited_ns: 0,
            slack_ns: RTT_NS / 8,
            held: Held::Application,
            has_gaps: false,
        };
        let mut sender = Self {
            all: Congestion::new(&first),
            now: 0,
            next: first.end,
            acked,
            window,
            held: Held::CongestionWindow,
        };
        sender.fill(window);
        sender
    }

    fn in_flight(&self) -> u32 {
        self.next.wrapping_sub(self.acked) / FULL
    }

    /// Sends until so many segments are on their way.
    fn fill(&mut self, segments: u32) {
        while self.in_flight() < segments {
            self.next = self.next.wrapping_add(FULL);
            self.all.data(&Sent {
                now: self.now,
                end: self.next,
                heard: Heard {
                    ack: self.acked,
                    ns: self.now,
                },
                waited_ns: 0,
                slack_ns: RTT_NS / 8,
                held: self.held,
                has_gaps: false,
            });
        }
    }

    /// All that is on its way is acknowledged, within a round trip; the window grows by one segment for every so many.
    fn round(&mut self, every: u32) {
        let segments = self.in_flight();
        for number in 1..=segments {
            self.now += RTT_NS / u64::from(segments);
            self.acked = self.acked.wrapping_add(FULL);
            self.window += u32::from(number % every == 0);
            self.fill(self.window);
        }
    }

    fn lose(&mut self) {
        self.all.repeated(self.now, self.next, self.acked);
        self.now += RTT_NS;
        self.acked = self.next;
        self.window /= 2;
        self.fill(self.window);
    }

    /// The window, and what is said of it, in segments.
    fn windows(&self) -> (u32, u32) {
        (self.window, self.all.estimate().unwrap() / FULL)
    }

    fn result(&self) -> CongestionResult {
        let result = self.all.result(0).unwrap();
        let sum = result.slow_start_ratio
            + result.avoidance_ratio
            + result.recovery_ratio
            + result.rwnd_ratio
            + result.app_ratio;
        assert!((sum - 1.0).abs() < 1e-9, "{result:?}");
        result
    }
}

#[test]
fn windows_are_followed_through_slow_start_avoidance_and_recovery() {
    let mut sender = Sender::new(10);
    for _ in 0..4 {
        sender.round(1);
    }
    // The last segments are on their way, and nothing was released by their acknowledgement yet.
    let (window, estimate) = sender.windows();
    assert!(window - estimate <= 2, "{window} {estimate}");
    assert_eq!(sender.all.phase().1, CongestionPhase::SlowStart);
    for _ in 0..10 {
        sender.round(40);
        let (window, estimate) = sender.windows();
        assert!(window.abs_diff(estimate) <= 1, "{window} {estimate}");
    }
    let (since, phase) = sender.all.phase();
    assert_eq!(phase, CongestionPhase::Avoidance);
    assert!(since.abs_diff(4 * RTT_NS) <= RTT_NS, "{since}");
    let grown = sender.window;
    sender.lose();
    for _ in 0..5 {
        sender.round(100);
    }
    let (window, estimate) = sender.windows();
    assert!(
        window < grown && window.abs_diff(estimate) <= 1,
        "{window} {estimate}"
    );
    let result = sender.result();
    assert_eq!(result.recoveries, 1);
    // Of 20 round trips, to one at each border.
    let expected = [
        (result.slow_start_ratio, 4.0),
        (result.avoidance_ratio, 15.0),
        (result.recovery_ratio, 1.0),
    ];
    for (ratio, rounds) in expected {
        assert!((ratio * 20.0 - rounds).abs() <= 1.0, "{result:?}");
    }
    assert_eq!(result.app_ratio + result.rwnd_ratio, 0.0);
    let end_s = result.slow_start_end_s.unwrap();
    assert!((end_s - 0.16).abs() <= 0.04, "{end_s}");
    let largest = result.max_bytes.unwrap() / u64::from(FULL);
    assert!(largest.abs_diff(u64::from(grown)) <= 2, "{largest} {grown}");
}

#[test]
fn what_else_holds_it_back_is_no_window_of_congestion() {
    for (held, of) in [
        (Held::Receiver, CongestionPhase::ReceiveWindow),
        (Held::Application, CongestionPhase::Application),
    ] {
        let mut sender = Sender::new(10);
        for _ in 0..3 {
            sender.round(1);
        }
        sender.held = held;
        for _ in 0..10 {
            sender.round(u32::MAX);
        }
        assert_eq!((sender.all.phase().1, sender.all.estimate()), (of, None));
        let result = sender.result();
        let ratio = result.rwnd_ratio + result.app_ratio;
        assert!((ratio * 13.0 - 10.0).abs() <= 1.0, "{result:?}");
        assert!(result.slow_start_end_s.is_none(), "{result:?}");
    }
}

#[test]
fn after_silence_it_begins_anew() {
    let mut sender = Sender::new(10);
    for _ in 0..3 {
        sender.round(1);
    }
    sender.acked = sender.next;
    sender.now += 2_000_000_000;
    sender.window = 10;
    sender.fill(10);
    sender.round(1);
    let (window, estimate) = sender.windows();
    assert!(window - estimate <= 1, "{window} {estimate}");
    assert!(sender.result().app_ratio > 0.8);
}

proptest! {
    #[test]
    fn whatever_comes_the_shares_are_of_the_whole(
        steps in prop::collection::vec((0..400_000_000_u64, any::<u32>(), any::<u32>(), 0..5_u8), 1..200)
    ) {
        let mut all: Option<Congestion> = None;
        let mut now = 0;
        for (ns, end, known, kind) in steps {
            now += ns;
            let held = [Held::CongestionWindow, Held::Receiver, Held::Application];
            let heard = Heard { ack: known, ns: now };
            let sent = Sent { now, end, heard, waited_ns: ns, slack_ns: RTT_NS, held: held[usize::from(kind % 3)], has_gaps: kind == 4 };
            match &mut all {
                None => all = Some(Congestion::new(&sent)),
                Some(all) if kind == 3 => all.repeated(now, end, known),
                Some(all) => all.data(&sent),
            }
        }
        if let Some(result) = all.and_then(|all| all.result(0)) {
            let sum = result.slow_start_ratio + result.avoidance_ratio + result.recovery_ratio + result.rwnd_ratio + result.app_ratio;
            prop_assert!((sum - 1.0).abs() < 1e-9, "{result:?}");
        }
    }
}
