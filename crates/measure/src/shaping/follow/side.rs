//! One direction of a line that is followed: whether it is loaded, how its queue is emptied when there is one, and how its
//! rate grows while there is none. Pure.

use super::course::Course;
use super::reflectors::Delay;

/// From probe to probe of one reflector, in seconds, while a direction is loaded.
pub(super) const PROBE_LOADED_S: f64 = 0.1;

/// From this added delay on, in seconds, a queue forms: half of what may be added, of which probes see the beginning, and three
/// times CoDel's target (RFC 8289), which the shaper's own queue adds for those that do not yield.
const LATE_S: f64 = 0.015;

/// Below this it is empty again.
pub(super) const CLEAR_S: f64 = 0.008;

/// A direction is loaded that carried this part of its rate over this time, in seconds.
const LOADED_RATIO: f64 = 0.7;
const LOAD_WINDOW_S: f64 = 0.3;

/// A direction that is known to be late is loaded from this part of its rate on, and one that was loaded before a queue came
/// remains so: its line may be much slower than the rate.
const LATE_LOADED_RATIO: f64 = 0.1;

/// One direction is shut alone for so many times the queue that is seen, and so many seconds more: a round trip, the time to
/// the next probe and some.
const ALONE_RATIO: f64 = 1.2;
const ALONE_S: f64 = 0.4;

/// A load counts for so long after it ended: the delay that it made is seen a round trip later.
const LOADED_FOR_S: f64 = 0.5;

/// While a queue drains the shaper lets this part of its rate pass, for as long as the queue that was seen takes by that, and some.
/// Then it lets more pass until a probe says whether the queue is gone: what is held back while that probe is under way is lost.
const DRAIN_RATIO: f64 = 0.3;
const DRAIN_MARGIN: f64 = 1.3;
const HOLD_RATIO: f64 = 0.85;
const HOLD_S: f64 = 0.05;

/// A queue that came within the time of a probe is of a line that has become several times slower. On a long path a
/// queue reaches that length by itself before a probe shows it, by this part of a second more for each second of round
/// trip beyond the round trips of a near path.
const DRAIN_FAST_RATIO: f64 = 0.06;
const FAST_S: f64 = 0.040;
const FAST_RTT_RATIO: f64 = 0.25;
const NEAR_RTT_S: f64 = 0.050;

/// For as long as the queue is that long, less and less passes from look to look.
const DRAIN_FASTER_RATIO: f64 = 0.9;

/// A delay that is still this part of what it was, so many seconds after a queue of that length would have been gone, is not of
/// this queue.
const STAYS_RATIO: f64 = 0.5;
const STAYS_S: f64 = 1.5;

/// A queue that was short is of a line that is not much slower than it was, whatever a short time says of its rate.
const LITTLE_SLOWER_RATIO: f64 = 0.85;

/// After a queue, this part of what the line carried.
const BELOW_RATIO: f64 = 0.95;

/// How fast the rate grows under load, a second: up to near the last rate that was too high, past it, and beyond, where it
/// grows faster each second.
const GROWTH: f64 = 0.30;
const GROWTH_NEAR: f64 = 0.05;
const GROWTH_BEYOND: f64 = 0.12;
const GROWTH_FASTER: f64 = 0.15;
const GROWTH_MOST: f64 = 0.40;
const NEAR_RATIO: std::ops::Range<f64> = 0.96..1.03;

/// Where the last two rates that were too high are within this part of each other, the line is steady, and is tried more slowly.
const STEADY_RATIO: f64 = 0.05;
const GROWTH_STEADY: f64 = 0.025;

/// Growth is slower where a probe needs longer than this to say what came of it, in seconds, so that as much is queued by then.
const FEEDBACK_S: f64 = 0.13;

/// Where both directions were shut at once, what passed may be of a direction that had no queue: it keeps this part of its rate.
const DOUBTFUL_RATIO: f64 = 0.6;

/// How long a rate is remembered that the line carried before it became slower, in seconds.
const REMEMBERED_S: f64 = 2.0;

/// Without any reflector, towards the rate that is known to be good.
const GROWTH_BLIND: f64 = 0.05;

/// Between which rates it may go.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    pub least_bps: f64,
    /// What a search found: where it begins, and where it goes when it cannot see.
    pub base_bps: f64,
    pub most_bps: f64,
}

impl Limits {
    /// For a direction without a shaper: more than any line carries, so that it is never loaded.
    pub const NOT_SHAPED: Self = Self {
        least_bps: 1e15,
        base_bps: 1e15,
        most_bps: 1e15,
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tick {
    Done,
    /// The delay does not depend on what this direction sends.
    NotOfThisQueue,
}

#[derive(Debug)]
pub(super) struct Side {
    limits: Limits,
    pub(super) rate_bps: f64,
    /// Bits that have passed, and that the rate allowed.
    passed: Course,
    allowed: Course,
    loaded_until_s: f64,
    /// When the queue was last empty, by the time at which the probe was sent.
    clear_s: f64,
    /// The last rate that was too high, and since when the rate is beyond it.
    ceiling_bps: Option<f64>,
    ceiling_s: f64,
    beyond_s: f64,
    ticked_s: f64,
    step_s: f64,
    /// What passed lately of what was allowed.
    pub(super) carried_ratio: f64,
    pub(super) draining: Option<Draining>,
    /// Whether the last two rates that were too high agree.
    is_steady: bool,
    /// A round trip without a queue.
    rtt_s: f64,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Draining {
    since_s: f64,
    /// When the queue began to form, and what had passed by then.
    empty_s: f64,
    bits: f64,
    rate_before_bps: f64,
    first_s: f64,
    longest_s: f64,
    /// Whether the line has become several times slower.
    is_fast: bool,
    /// Until when as little passes as drains the queue that was seen.
    short_until_s: f64,
    /// Whether the other direction was shut as well, and nothing says whose queue it was.
    is_doubtful: bool,
    /// Whether the other direction is loaded and not shut, so that a delay that stays may be of its queue.
    pub(super) is_alone: bool,
}

/// How long a queue takes to drain, and some.
fn drained_in_s(queue_s: f64) -> f64 {
    queue_s * DRAIN_MARGIN / (1.0 - DRAIN_RATIO)
}

impl Draining {
    /// The other direction is shut as well: patience begins now.
    pub(super) fn doubt(&mut self, now_s: f64) {
        if !self.is_doubtful {
            self.since_s = now_s;
        }
        self.is_doubtful = true;
        self.is_alone = false;
    }

    /// What comes of one direction that is shut while the other one is not.
    pub(super) fn alone(&self, now_s: f64, delay: Delay) -> Alone {
        let (since_s, enough_s) = (now_s - self.since_s, ALONE_S + ALONE_RATIO * self.longest_s);
        let shrinks = delay.added_s < STAYS_RATIO * self.longest_s;
        match shrinks {
            true if since_s < 2.0 * enough_s => Alone::Goes,
            false if since_s < enough_s => Alone::Goes,
            true => Alone::NotEnough,
            false => Alone::InVain,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alone {
    Goes,
    /// The queue became no shorter.
    InVain,
    /// It became shorter and is not gone.
    NotEnough,
}

impl Side {
    pub(super) fn new(limits: Limits) -> Self {
        Self {
            limits,
            rate_bps: limits.base_bps,
            passed: Course::default(),
            allowed: Course::default(),
            loaded_until_s: f64::NEG_INFINITY,
            clear_s: f64::NEG_INFINITY,
            ceiling_bps: None,
            ceiling_s: f64::NEG_INFINITY,
            beyond_s: 0.0,
            ticked_s: f64::NEG_INFINITY,
            step_s: 0.0,
            carried_ratio: 0.0,
            draining: None,
            is_steady: false,
            rtt_s: 0.0,
        }
    }

    pub(super) fn is_loaded(&self) -> bool {
        self.ticked_s <= self.loaded_until_s
    }

    /// Takes note of what has passed, beside a delay that may be known to be of this direction alone, and of the round trip
    /// without a queue.
    pub(super) fn count(
        &mut self,
        now_s: f64,
        bits: f64,
        delay: Option<Delay>,
        is_own: bool,
        rtt_s: f64,
    ) {
        self.rtt_s = rtt_s;
        let was_loaded = self.is_loaded();
        self.step_s = (now_s - self.ticked_s).clamp(0.0, 0.5);
        self.ticked_s = now_s;
        self.passed.reach(now_s, bits);
        self.allowed.add(now_s, self.rate_bps * self.step_s);
        let allowed_bits = self.allowed.since(now_s - LOAD_WINDOW_S);
        self.carried_ratio = self.passed.since(now_s - LOAD_WINDOW_S) / allowed_bits.max(1.0);
        let is_late = delay.is_some_and(|delay| delay.added_s > LATE_S);
        let loaded_ratio = match is_late && (is_own || was_loaded) {
            true => LATE_LOADED_RATIO,
            false => LOADED_RATIO,
        };
        // While it drains the shaper holds the load back; whether there is one shows as well.
        if self.carried_ratio >= loaded_ratio {
            self.loaded_until_s = now_s + LOADED_FOR_S;
        }
    }

    /// Has the rate again that it had before it was shut.
    pub(super) fn give_back(&mut self) {
        if let Some(draining) = self.draining.take() {
            self.set(draining.rate_before_bps);
        }
    }

    pub(super) fn tick(&mut self, now_s: f64, delay: Option<Delay>, waits: bool) -> Tick {
        match (self.draining, delay) {
            (Some(draining), Some(delay)) => self.drain(now_s, draining, delay),
            (Some(draining), None) => {
                // No reflector answers any more: what was known before is worth more than a shut line.
                self.draining = None;
                self.set(draining.rate_before_bps * LITTLE_SLOWER_RATIO);
                Tick::Done
            }
            (None, Some(delay)) => {
                if delay.added_s <= CLEAR_S {
                    self.clear_s = self.clear_s.max(delay.sent_s);
                }
                if !self.is_loaded() {
                    return Tick::Done;
                }
                match (delay.added_s > LATE_S, waits) {
                    (true, true) => {}
                    (true, false) => self.begin_draining(now_s, delay),
                    (false, _) => self.grow(now_s),
                }
                Tick::Done
            }
            // A line that no reflector sees is left alone: that all reflectors are gone says nothing of it. What was
            // found by measuring is safe, so the rate may return to that; to lower it to that would punish the line for
            // the reflectors.
            (None, None) => {
                if self.is_loaded() && self.rate_bps < self.limits.base_bps {
                    let grown_bps = self.rate_bps * (1.0 + GROWTH_BLIND * self.step_s);
                    self.set(grown_bps.min(self.limits.base_bps));
                }
                Tick::Done
            }
        }
    }

    fn begin_draining(&mut self, now_s: f64, delay: Delay) {
        // At most as long ago as the queue that is seen can have taken to form at the slowest.
        let empty_s = self.clear_s.max(delay.sent_s - 1.0);
        let is_fast = delay.added_s >= self.fast_s();
        self.draining = Some(Draining {
            since_s: now_s,
            empty_s,
            bits: self.passed.at(empty_s),
            rate_before_bps: self.rate_bps,
            first_s: delay.added_s,
            longest_s: delay.added_s,
            is_fast,
            short_until_s: now_s + drained_in_s(delay.added_s),
            is_doubtful: false,
            is_alone: false,
        });
        let ratio = match is_fast {
            true => DRAIN_FAST_RATIO,
            false => DRAIN_RATIO,
        };
        self.set(self.rate_bps * ratio);
    }

    /// How long the queue of a line is that has become several times slower.
    fn fast_s(&self) -> f64 {
        FAST_S + FAST_RTT_RATIO * (self.rtt_s - NEAR_RTT_S).max(0.0)
    }

    /// How long it takes until a probe says what came of a rate.
    fn feedback_s(&self) -> f64 {
        self.rtt_s + PROBE_LOADED_S
    }

    fn drain(&mut self, now_s: f64, mut draining: Draining, delay: Delay) -> Tick {
        let before_bps = draining.rate_before_bps;
        draining.longest_s = draining.longest_s.max(delay.added_s);
        draining.is_fast |= delay.added_s >= self.fast_s();
        self.draining = Some(draining);
        if delay.added_s <= CLEAR_S && delay.sent_s > draining.empty_s {
            self.end_draining(now_s, &draining, delay);
            return Tick::Done;
        }
        let patience_s = STAYS_S + draining.longest_s;
        let stays = delay.added_s >= STAYS_RATIO * draining.first_s;
        if now_s - draining.since_s > patience_s && stays && !draining.is_alone {
            self.draining = None;
            self.set(before_bps);
            return Tick::NotOfThisQueue;
        }
        if delay.added_s >= self.fast_s() {
            let fast_bps = before_bps * DRAIN_FAST_RATIO;
            self.set(self.rate_bps.min(fast_bps) * DRAIN_FASTER_RATIO);
        } else if !draining.is_fast && now_s >= draining.short_until_s {
            let held_until_s = draining.short_until_s + self.feedback_s() + HOLD_S;
            if now_s < held_until_s {
                self.set(before_bps * HOLD_RATIO);
            } else {
                // It was longer than it seemed.
                draining.short_until_s = now_s + drained_in_s(delay.added_s);
                // One that has not shrunk at all is of a line that is slower than what was let pass.
                draining.is_fast = delay.added_s >= STAYS_RATIO * draining.longest_s;
                self.draining = Some(draining);
                self.set(match draining.is_fast {
                    true => before_bps * DRAIN_FAST_RATIO,
                    false => before_bps * DRAIN_RATIO,
                });
            }
        }
        Tick::Done
    }

    /// The queue is gone: what passed since it was empty before is the line's rate.
    fn end_draining(&mut self, now_s: f64, draining: &Draining, delay: Delay) {
        let before_bps = draining.rate_before_bps;
        let passed_bits = self.passed.at(delay.sent_s) - draining.bits;
        let line_bps = passed_bits / (delay.sent_s - draining.empty_s).max(0.01);
        let least_bps = match draining.is_fast {
            true => 0.0,
            false => before_bps * LITTLE_SLOWER_RATIO,
        };
        let line_bps = line_bps.max(least_bps).min(before_bps);
        let ceiling_before_bps = self.ceiling_bps.unwrap_or(self.limits.base_bps);
        let ceiling_bps = self.ceiling_after(now_s, line_bps);
        self.is_steady = self
            .ceiling_bps
            .is_some_and(|before_bps| (line_bps / before_bps - 1.0).abs() < STEADY_RATIO);
        self.draining = None;
        self.clear_s = delay.sent_s;
        self.ceiling_bps = Some(ceiling_bps);
        self.ceiling_s = now_s;
        self.beyond_s = 0.0;
        self.set(line_bps * BELOW_RATIO);
        if draining.is_doubtful {
            self.set(self.rate_bps.max(before_bps * DOUBTFUL_RATIO));
            self.ceiling_bps = Some(ceiling_bps.max(ceiling_before_bps.min(before_bps)));
            self.is_steady = false;
        }
    }

    /// What the rate soon grows to again. A line that was slow for a moment is not slower for that: what it carried before is
    /// forgotten over seconds.
    fn ceiling_after(&self, now_s: f64, line_bps: f64) -> f64 {
        let before_bps = self.ceiling_bps.unwrap_or(self.limits.base_bps);
        let left = (-(now_s - self.ceiling_s) / REMEMBERED_S).exp();
        line_bps.max(line_bps + (before_bps - line_bps) * left)
    }

    fn grow(&mut self, now_s: f64) {
        let near = self
            .ceiling_bps
            .map(|ceiling_bps| self.rate_bps / ceiling_bps);
        let growth = match near {
            Some(ratio) if ratio < NEAR_RATIO.start => GROWTH,
            Some(ratio) if ratio < NEAR_RATIO.end && self.is_steady => GROWTH_STEADY,
            Some(ratio) if ratio < NEAR_RATIO.end => GROWTH_NEAR,
            _ => {
                if self.beyond_s == 0.0 {
                    self.beyond_s = now_s;
                }
                let faster = GROWTH_FASTER * (now_s - self.beyond_s);
                (GROWTH_BEYOND + faster).min(GROWTH_MOST)
            }
        };
        let growth = growth * (FEEDBACK_S / self.feedback_s()).min(1.0);
        self.set(self.rate_bps * (1.0 + growth * self.step_s));
    }

    fn set(&mut self, rate_bps: f64) {
        // What drains may go below the least rate, for as long as it takes.
        let least_bps = match self.draining {
            Some(_) => self.limits.least_bps * DRAIN_FAST_RATIO,
            None => self.limits.least_bps,
        };
        self.rate_bps = rate_bps.max(least_bps).min(self.limits.most_bps);
    }
}
