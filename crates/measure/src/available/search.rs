//! In which steps the highest UDP rate is found of which no more than 1 % is lost (PERT guides,
//! "Available bandwidth measurements"). Pure.
//!
//! The guide starts a little below the rate of TCP, raises it a little for as long as less than
//! 1 % is lost, with ten seconds a step, and goes back with smaller steps. Here it is quicker and
//! disturbs others for a shorter time:
//!
//! - A step that fills a queue need not last until the queue overflows. Where delay grows by so
//!   many seconds a second, as much of what is sent would be lost in the end
//!   ([`Seen::queued_ratio`]).
//! - What arrives of too much is about what the path carries, so the next step tries that.
//! - The raise doubles from step to step, so that a TCP that was far too slow costs few steps; but
//!   no step has more than twice the rate before.

use plumb_model::results::available_bandwidth::{RateStep, SearchEnd, StepVerdict};

/// Share that may be lost: the guide's "in good practice the packet loss threshold is 1%".
const LOSS_THRESHOLD: f64 = 0.01;

/// The search ends when the lowest rate that failed is no more than this above the highest that
/// passed, or than what the sender sent of what it was asked for differed from step to step: it
/// cannot aim closer. Closer than the loss that is allowed would mean nothing.
const RESOLUTION: f64 = 0.015;

/// However badly the sender aims, a bracket wider than this is not a result.
const COARSEST_RESOLUTION: f64 = 0.03;

/// The first step as a part of TCP's rate: "slightly below the reported TCP throughput".
const FIRST_OF_TCP: f64 = 0.95;

/// The first raise; it doubles with each step that passes.
const FIRST_RAISE: f64 = 0.1;

/// Largest raise: to twice the rate.
const MOST_RAISE: f64 = 1.0;

/// A try at what arrived of too much is made a little below it, where it should pass.
const BELOW_ARRIVED: f64 = 0.99;

/// As far above that try, what arrived is still the best guess.
const NEAR: f64 = 1.05;

/// When even the first rate divided by this loses, and loses about as much, the loss does not come
/// from the rate.
const FRACTION_THAT_MUST_PASS: f64 = 8.0;

/// A sender that sends less than this part of what it was asked for goes no faster.
const SENDER_KEEPS_UP: f64 = 0.9;

/// A sender that sent less than this part was held up for 45 ms of 1.5 s, and what went through the same machine with it.
const UNDISTURBED: f64 = 0.97;

/// So many times the part that was not sent may have been lost or have waited by that: a line drawn through delays that jump
/// once in the middle rises half as fast again.
const BY_HOLD_UP: f64 = 2.0;

/// Most steps: 0.1 doubled six times is beyond ten times TCP's rate, as many to close in, and some to try again.
const MOST_STEPS: usize = 20;

/// What a step showed.
#[derive(Debug, Clone, Copy)]
pub struct Seen {
    /// UDP payload a second that was asked for.
    pub asked_bps: f64,
    pub duration_s: f64,
    /// UDP payload a second that the sender's kernel took.
    pub sent_bps: f64,
    /// UDP payload a second that was received.
    pub received_bps: f64,
    /// Share of the packets sent that was lost before it reached the receiving socket.
    pub loss_ratio: f64,
    /// Share of the packets sent that the receiving socket dropped.
    pub dropped_here_ratio: f64,
    /// Seconds by which the delay grew each second.
    pub queued_ratio: f64,
}

/// A search that is going on.
#[derive(Debug)]
pub struct Search {
    first_bps: f64,
    raise: f64,
    passed_bps: Option<f64>,
    failed_bps: Option<f64>,
    /// Whether it was the receiving host that failed there, and not the path.
    failed_at_receiver: bool,
    /// What arrived in the last step that failed.
    arrived_bps: Option<f64>,
    /// The most that arrived of what the path lost nothing of, though its receiver did not take all.
    carried_bps: Option<f64>,
    /// What the sender made of the last step and of the one before. A busy one leaves out some slots of its schedule each
    /// time, and would never get to where it is to try unless it is asked for as much more; one that was held up once would
    /// then send too much.
    kept_ratios: [f64; 2],
    /// What the last step tried, where it failed and that is in doubt.
    doubted_bps: Option<f64>,
    steps: Vec<RateStep>,
    ended: Option<SearchEnd>,
}

impl Search {
    /// Begins at what TCP carried.
    pub fn from_tcp(tcp_bps: f64) -> Self {
        Self {
            first_bps: tcp_bps * FIRST_OF_TCP,
            raise: FIRST_RAISE,
            passed_bps: None,
            failed_bps: None,
            failed_at_receiver: false,
            arrived_bps: None,
            carried_bps: None,
            kept_ratios: [1.0; 2],
            doubted_bps: None,
            steps: Vec::new(),
            ended: None,
        }
    }

    /// The rate of the next step; none when the search is over.
    pub fn next_bps(&self) -> Option<f64> {
        if self.ended.is_some() {
            return None;
        }
        let decided = (self.passed_bps, self.failed_bps);
        let tries_bps = self.doubted_bps.unwrap_or_else(|| match decided {
            (None, None) => self.first_bps,
            (Some(passed), None) => passed * (1.0 + self.raise),
            // Nothing has passed yet: what arrived first, and then in halves.
            (None, Some(failed)) => match self.arrived_bps {
                Some(arrived) if self.steps.len() == 1 => {
                    (arrived * BELOW_ARRIVED).min(failed / (1.0 + RESOLUTION))
                }
                _ => failed / 2.0,
            },
            (Some(passed), Some(failed)) => self.between(passed, failed),
        });
        let [before, last] = self.kept_ratios;
        Some(tries_bps / before.max(last))
    }

    /// What arrived of too much is a better guess than the middle: first a little below it, then
    /// as closely above what passed as the result is to be.
    fn between(&self, passed: f64, failed: f64) -> f64 {
        let closely = passed * (1.0 + RESOLUTION);
        match self.arrived_bps.map(|arrived| arrived * BELOW_ARRIVED) {
            Some(guess) if guess >= closely && guess < failed => guess,
            Some(guess) if guess <= closely && closely < failed && guess * NEAR > passed => closely,
            _ => (passed + failed) / 2.0,
        }
    }

    /// Takes note of a step, and decides whether another one follows.
    pub fn record(&mut self, seen: &Seen) {
        let verdict = verdict(seen);
        self.steps.push(RateStep {
            asked_bps: seen.asked_bps,
            duration_s: seen.duration_s,
            sent_bps: seen.sent_bps,
            received_bps: seen.received_bps,
            loss_ratio: seen.loss_ratio,
            dropped_here_ratio: seen.dropped_here_ratio,
            queued_ratio: seen.queued_ratio,
            verdict,
        });
        // A sender that left some slots of its schedule out has tried what it sent.
        let tried_bps = seen.sent_bps.min(seen.asked_bps);
        let [_, before] = self.kept_ratios;
        self.kept_ratios = [before, kept_ratio(seen.asked_bps, seen.sent_bps)];
        // What failed is tried again before it counts where a hold-up of its sender accounts for it, or where as much had passed.
        let missing = 1.0 - tried_bps / seen.asked_bps;
        let is_held_up = missing > 1.0 - UNDISTURBED
            && slowed_ratio(seen) <= LOSS_THRESHOLD + BY_HOLD_UP * missing;
        let has_passed = self.passed_bps.is_some_and(|bps| tried_bps <= bps);
        let is_doubtful = verdict == StepVerdict::Lost && (is_held_up || has_passed);
        let was_doubted = self.doubted_bps.is_some();
        self.doubted_bps = (is_doubtful && !was_doubted).then_some(tried_bps);
        match verdict {
            _ if self.doubted_bps.is_some() => {}
            StepVerdict::Passed => {
                self.passed_bps = Some(self.passed_bps.map_or(tried_bps, |bps| bps.max(tried_bps)));
                self.raise = (self.raise * 2.0).min(MOST_RAISE);
            }
            StepVerdict::Lost | StepVerdict::ReceiverTooSlow => {
                let at_receiver = verdict == StepVerdict::ReceiverTooSlow;
                if self.failed_bps.is_none_or(|bps| tried_bps < bps) {
                    (self.failed_bps, self.failed_at_receiver) = (Some(tried_bps), at_receiver);
                }
                self.arrived_bps = Some(seen.received_bps);
                if at_receiver && slowed_ratio(seen) <= LOSS_THRESHOLD {
                    let most = self.carried_bps.unwrap_or(0.0).max(seen.received_bps);
                    self.carried_bps = Some(most);
                }
            }
            StepVerdict::SenderTooSlow => {
                self.passed_bps = Some(self.passed_bps.map_or(tried_bps, |bps| bps.max(tried_bps)));
                // One that has sent as much before was only held up, and tries again; so does one that
                // was not too slow in the step before.
                let has_sent = self.steps.iter().map(|step| step.sent_bps);
                let has_sent = has_sent.fold(0.0, f64::max) >= seen.asked_bps * SENDER_KEEPS_UP;
                let before = self.steps.iter().rev().nth(1);
                if !has_sent && before.is_some_and(|step| step.verdict == verdict) {
                    self.ended = Some(SearchEnd::SenderTooSlow);
                }
            }
        }
        self.ended = self.ended.or_else(|| self.end());
    }

    fn end(&self) -> Option<SearchEnd> {
        match (self.passed_bps, self.failed_bps) {
            // Where exactly the host fails is not what is searched.
            (Some(_), Some(_)) if self.failed_at_receiver => Some(SearchEnd::ReceiverTooSlow),
            (Some(passed), Some(failed)) if failed <= passed * (1.0 + self.resolution()) => {
                Some(SearchEnd::Found)
            }
            (None, Some(failed)) if failed <= self.first_bps / FRACTION_THAT_MUST_PASS => {
                Some(match self.failed_at_receiver {
                    true => SearchEnd::ReceiverTooSlow,
                    false => SearchEnd::LossAtAnyRate,
                })
            }
            _ if self.steps.len() >= MOST_STEPS => Some(SearchEnd::OutOfSteps),
            _ => None,
        }
    }

    /// How closely this sender can close in.
    fn resolution(&self) -> f64 {
        let kept = |step: &RateStep| kept_ratio(step.asked_bps, step.sent_bps);
        let kept = self.steps.iter().map(kept);
        let (least, most) = kept.fold((1.0, 0.0), |(least, most): (f64, f64), kept| {
            (least.min(kept), most.max(kept))
        });
        (most - least).clamp(RESOLUTION, COARSEST_RESOLUTION)
    }

    /// Ends it here, unless it has ended.
    pub fn stop(&mut self, why: SearchEnd) {
        self.ended.get_or_insert(why);
    }

    /// What came of it. Where the path itself did not fail, its rate is not known: it is at least what
    /// passed.
    pub fn finish(self) -> Outcome {
        let ended = self.ended.unwrap_or(SearchEnd::OutOfSteps);
        let of_the_path = self.failed_bps.is_some()
            && !self.failed_at_receiver
            && ended != SearchEnd::SenderTooSlow;
        let bps = self.passed_bps.filter(|_| of_the_path);
        Outcome {
            bps,
            // One that was sent slower than asked for, and lost, may have been below one that passed.
            above_bps: self
                .failed_bps
                .filter(|failed| of_the_path && bps.is_none_or(|bps| bps < *failed)),
            at_least_bps: [self.passed_bps, self.carried_bps]
                .into_iter()
                .flatten()
                .filter(|_| !of_the_path)
                .reduce(f64::max),
            ended,
            steps: self.steps,
        }
    }
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Highest rate that passed; absent where nothing is known of what the path does not carry.
    pub bps: Option<f64>,
    /// Lowest rate that failed; likewise.
    pub above_bps: Option<f64>,
    /// What the path carries at least, there.
    pub at_least_bps: Option<f64>,
    pub ended: SearchEnd,
    pub steps: Vec<RateStep>,
}

/// What part of what it was asked for a sender that keeps up has sent.
fn kept_ratio(asked_bps: f64, sent_bps: f64) -> f64 {
    (sent_bps / asked_bps).clamp(SENDER_KEEPS_UP, 1.0)
}

/// What the path lost, or would have in the end.
fn slowed_ratio(seen: &Seen) -> f64 {
    seen.loss_ratio + seen.queued_ratio.max(0.0)
}

fn verdict(seen: &Seen) -> StepVerdict {
    // Loss known to be on the path counts, whatever the receiver drops besides; delays say nothing of the path where
    // the receiver is behind.
    if seen.loss_ratio > LOSS_THRESHOLD {
        StepVerdict::Lost
    } else if seen.dropped_here_ratio > LOSS_THRESHOLD {
        StepVerdict::ReceiverTooSlow
    } else if slowed_ratio(seen) > LOSS_THRESHOLD {
        StepVerdict::Lost
    } else if seen.sent_bps < seen.asked_bps * SENDER_KEEPS_UP {
        StepVerdict::SenderTooSlow
    } else {
        StepVerdict::Passed
    }
}

#[cfg(test)]
mod tests;
