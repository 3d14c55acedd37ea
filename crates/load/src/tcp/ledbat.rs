//! LEDBAT++ (draft-irtf-iccrg-ledbat-plus-plus-01, after RFC 6817): the window of a sender that takes what no other
//! flow wants. It measures by round trips how long the queue of its path is, fills a queue that is short and leaves one
//! that is long to the flows that filled it.
//!
//! Pure: the caller looks at the connection some times each round trip, reports what it saw, and limits what leaves to
//! the window that it gets. The draft counts acknowledgements; here a look counts as all that came since the look
//! before, as a share of a round trip.
//!
//! Two things are not the draft's. A queue that is no longer than the target overflows before it seems long, and the
//! draft would take as much of it as any other TCP, until it happens to be the one whose packet is lost. So the target
//! is a part ([`OF_FULL_QUEUE`]) of what the queue holds, as far as losses and the longest delay show, and the draft's
//! target is the most. And where the target is short beside the path, the draft's decrease, W · (delay / target − 1) a
//! round trip, takes far more than is too much. Here the decrease is the part of the window that is in the queue beyond
//! the target, once until that shows.

use std::time::Duration;

/// Queueing delay aimed at, at most (section 4.2: 60 ms, so that voice stays below ITU-T G.114's
/// 150 ms); and how much a queue is taken to hold before more is known.
pub(super) const TARGET: Duration = Duration::from_millis(60);

/// The target is never less: as much is the noise of Wi-Fi and of busy hosts.
const LEAST_TARGET: Duration = Duration::from_millis(5);

/// The target as a divisor of the delay of a full queue: a Reno that halves its window
/// then leaves a third of the queue where its path is as long as a third of it, and CUBIC more.
const OF_FULL_QUEUE: u32 = 4;

/// Smallest window in segments (section 4.4: "down to 2 packets").
const LEAST_SEGMENTS: f64 = 2.0;

/// Where it begins, in segments: as little as a slowdown leaves.
const FIRST_SEGMENTS: f64 = LEAST_SEGMENTS;

/// Largest divisor of the gain (section 4.1: min(16, …)).
const MOST_DIVISOR: f64 = 16.0;

/// A decrease takes no more than this share a round trip (section 4.2: −W/2).
const MOST_DECREASE: f64 = 0.5;

/// Slow start ends at this share of the target (section 4.3).
const SLOW_START_ENDS: f64 = 0.75;

/// The first slowdown begins so many round trips after the first slow start (section 4.4).
const FIRST_SLOWDOWN_AFTER_ROUNDS: u32 = 2;

/// A slowdown holds the smallest window for so many round trips (section 4.4).
const SLOWDOWN_ROUNDS: u32 = 2;

/// From one slowdown to the next it takes so many times as long as the slowdown took until the
/// window was what it had been (section 4.4): a tenth of the time at most is lost to them.
const SLOWDOWN_PAUSE: u32 = 9;

/// What a look at the connection showed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Look {
    /// Time since the connection began.
    pub(super) at: Duration,
    /// Smoothed round trip, queue included.
    pub(super) round_trip: Duration,
    /// Smallest round trip: the path with an empty queue.
    pub(super) smallest: Duration,
    /// Segments retransmitted so far.
    pub(super) retransmits: u64,
    /// Largest payload of a segment.
    pub(super) segment_bytes: u32,
}

impl Look {
    /// What the queue holds packets up for.
    fn delay(&self) -> Duration {
        self.round_trip.saturating_sub(self.smallest)
    }
}

/// The window of one connection.
#[derive(Debug)]
pub(super) struct Ledbat {
    window_segments: f64,
    /// Where slow start gives way, in segments; none before the first delay or loss.
    threshold_segments: Option<f64>,
    /// The delay of the queue when it is full, as far as known.
    full_queue: Duration,
    slowdown: Slowdown,
    retransmits: u64,
    /// When a loss or a long queue was answered last: once a round trip.
    answered: Duration,
    before: Option<Duration>,
}

/// The time when the smallest window lets the queue drain, so that the smallest round trip is
/// seen: without it, each of several such senders would take the others' queue for the path.
#[derive(Debug, Clone, Copy)]
enum Slowdown {
    /// The first one comes after the first slow start.
    Before,
    Due(Duration),
    /// The smallest window, since then.
    Holding(Duration),
    /// The window grows again since the slowdown, which began then.
    Recovering(Duration),
}

impl Ledbat {
    pub(super) fn new() -> Self {
        Self {
            window_segments: FIRST_SEGMENTS,
            threshold_segments: None,
            full_queue: TARGET,
            slowdown: Slowdown::Before,
            retransmits: 0,
            answered: Duration::ZERO,
            before: None,
        }
    }

    /// Takes note of a look, and returns how many payload bytes a second may leave: one window each round trip.
    pub(super) fn look(&mut self, look: &Look) -> u64 {
        let round_s = look.round_trip.as_secs_f64();
        if round_s <= 0.0 {
            return u64::MAX;
        }
        let since = look.at.saturating_sub(self.before.unwrap_or(look.at));
        self.before = Some(look.at);
        self.loss(look);
        self.slow_down(look);
        if !matches!(self.slowdown, Slowdown::Holding(_)) {
            self.adapt(look, since.as_secs_f64() / round_s);
        }
        self.window_segments = self.window_segments.max(LEAST_SEGMENTS);
        (self.window_segments * f64::from(look.segment_bytes) / round_s) as u64
    }

    /// A loss halves the window, once each round trip, and shows what the queue holds.
    fn loss(&mut self, look: &Look) {
        let lost = look.retransmits > self.retransmits;
        self.retransmits = look.retransmits;
        if !lost || !self.is_settled(look) {
            return;
        }
        self.answered = look.at;
        self.window_segments /= 2.0;
        self.leave_slow_start(look);
        self.full_queue = look.delay();
    }

    /// Whether what was given up last may show in round trips.
    fn is_settled(&self, look: &Look) -> bool {
        look.at >= self.answered + look.round_trip
    }

    fn target(&self) -> Duration {
        (self.full_queue / OF_FULL_QUEUE).clamp(LEAST_TARGET, TARGET)
    }

    /// What follows from the delay in `rounds` round trips (sections 4.1 to 4.3).
    fn adapt(&mut self, look: &Look, rounds: f64) {
        self.full_queue = self.full_queue.max(look.delay());
        let delay = look.delay().as_secs_f64();
        let target = self.target().as_secs_f64();
        let divisor = (2.0 * target / look.smallest.as_secs_f64().max(1e-6)).ceil();
        let gain = 1.0 / divisor.clamp(1.0, MOST_DIVISOR);
        let in_slow_start = self
            .threshold_segments
            .is_none_or(|threshold| self.window_segments < threshold);
        if in_slow_start && delay > SLOW_START_ENDS * target && self.threshold_segments.is_none() {
            self.leave_slow_start(look);
        } else if in_slow_start && delay <= target {
            // Every segment acknowledged adds its gain.
            self.window_segments *= (1.0 + gain).powf(rounds);
            if let Some(threshold) = self.threshold_segments {
                self.window_segments = self.window_segments.min(threshold);
            }
        } else if delay <= target {
            self.window_segments += gain * rounds;
        } else if self.window_segments > LEAST_SEGMENTS && self.is_settled(look) {
            // At the smallest window, as after a slowdown, round trips of before may still be in the
            // smoothed one: what is grown back to then stays.
            let above = (delay - target) / look.round_trip.as_secs_f64();
            self.window_segments *= 1.0 - above.min(MOST_DECREASE);
            self.answered = look.at;
            self.threshold_segments = Some(self.window_segments);
        }
    }

    fn leave_slow_start(&mut self, look: &Look) {
        self.threshold_segments = Some(self.window_segments);
        if matches!(self.slowdown, Slowdown::Before) {
            let after = look.round_trip * FIRST_SLOWDOWN_AFTER_ROUNDS;
            self.slowdown = Slowdown::Due(look.at + after);
        }
    }

    fn slow_down(&mut self, look: &Look) {
        match self.slowdown {
            Slowdown::Due(at) if look.at >= at => {
                self.threshold_segments = Some(self.window_segments);
                self.window_segments = LEAST_SEGMENTS;
                self.slowdown = Slowdown::Holding(look.at);
            }
            Slowdown::Holding(since) if look.at >= since + look.round_trip * SLOWDOWN_ROUNDS => {
                self.slowdown = Slowdown::Recovering(since);
            }
            Slowdown::Recovering(since) => {
                let recovered = self
                    .threshold_segments
                    .is_none_or(|threshold| self.window_segments >= threshold);
                if recovered {
                    let took = look.at.saturating_sub(since);
                    self.slowdown = Slowdown::Due(look.at + took * SLOWDOWN_PAUSE);
                }
            }
            Slowdown::Before | Slowdown::Due(_) | Slowdown::Holding(_) => {}
        }
    }
}

#[cfg(test)]
mod tests;
