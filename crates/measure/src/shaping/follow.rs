//! The rate of a shaper that follows a line whose rate varies, from what passes anyway and from light probes. Pure.
//!
//! What is known about cake-autorate, which does the same as a shell script, is its published behaviour: fixed factors for the
//! steps up and down, a return to a base rate while idle, and a baseline for each reflector. Here it differs in three points:
//!
//! - A queue that was found is emptied, and what the line carried meanwhile is its rate: the queue was empty before and is
//!   empty after, so that what was sent between has passed. Steps down need no factor that suits every line.
//! - An idle line does nothing. Nothing is learnt of its rate while it is not used, and what was known is the best
//!   guess.
//! - A delay that does not shrink when the shaper is almost shut is not of this line's queue, and becomes the baseline.
//!
//! Which direction is late is known from a reflector that reports its own times (`follow/directions.rs`). Without one,
//! and with both directions loaded, the direction that carries less of its rate is shut first: there the line is
//! narrower than the shaper. Where that is in vain the other one is shut, and then both: what passes then says little
//! of either.

mod baseline;
mod course;
mod directions;
mod reflectors;
mod side;

use plumb_model::direction::OneDirection;

use directions::Directions;
use reflectors::{Delay, Reflectors};
pub use side::Limits;
use side::{Alone, CLEAR_S, PROBE_LOADED_S, Side, Tick};

/// A direction that carries less than this part of what the other one carries of its rate is the late one: bursts make less
/// of a difference.
const LESS_RATIO: f64 = 0.97;

/// From probe to probe of one reflector, in seconds, while no direction is loaded.
const PROBE_IDLE_S: f64 = 1.0;

/// Both directions of a line and the reflectors behind it.
#[derive(Debug)]
pub struct Follow {
    sides: [Side; 2],
    reflectors: Reflectors,
    directions: Directions,
    /// Whether one direction was shut in vain before the other, since the queue was last empty.
    tried: bool,
}

impl Follow {
    /// Begins at the base rates, with so many reflectors.
    pub fn new(up: Limits, down: Limits, reflectors: usize) -> Self {
        Self {
            sides: [Side::new(up), Side::new(down)],
            reflectors: Reflectors::new(reflectors),
            directions: Directions::default(),
            tried: false,
        }
    }

    /// Takes note of an answer of a reflector to a probe that was sent at `sent_s`.
    pub fn answered(&mut self, reflector: usize, sent_s: f64, rtt_s: f64) {
        self.reflectors.answered(reflector, sent_s, rtt_s);
    }

    /// Takes an answer of a reflector that reports its own times: how long the probe and its answer took by two clocks
    /// that need not agree.
    pub fn answered_by_direction(&mut self, sent_s: f64, rtt_s: f64, up_s: f64, down_s: f64) {
        self.directions.answered(sent_s, rtt_s, [up_s, down_s]);
    }

    /// Looks at what has passed each direction's device since the beginning; to be called some twenty times a second.
    pub fn tick(&mut self, now_s: f64, up_bits: f64, down_bits: f64) {
        let delay = self.reflectors.delay(now_s);
        let own = delay.and_then(|delay| self.directions.delays(now_s, delay));
        let delays = match (delay, own) {
            // One reflector alone may have trouble of its own: a queue of this line is one that most of them see.
            (Some(delay), Some(own)) => own.map(|own| Some(own.shorter(delay))),
            _ => [delay; 2],
        };
        let rtt_s = self.reflectors.rtt_s(now_s);
        let sides = self.sides.iter_mut().zip([up_bits, down_bits]);
        for ((side, bits), delay) in sides.zip(delays) {
            side.count(now_s, bits, delay, own.is_some(), rtt_s);
        }
        self.doubt(now_s, own.is_some());
        let waits = match (delay, own) {
            (Some(delay), None) => self.which_waits(now_s, delay),
            _ => [false; 2],
        };
        let mut stays = false;
        for ((side, delay), waits) in self.sides.iter_mut().zip(delays).zip(waits) {
            stays |= side.tick(now_s, delay, waits) == Tick::NotOfThisQueue;
        }
        if stays {
            self.reflectors.forget(now_s);
            self.directions.forget(now_s);
        }
    }

    /// Marks what is not known of directions that are shut, where nothing says which of them is late.
    fn doubt(&mut self, now_s: f64, is_told: bool) {
        let both_loaded = self.sides.iter().all(Side::is_loaded);
        match self.sides.each_mut().map(|side| side.draining.as_mut()) {
            [Some(up), Some(down)] if !is_told => {
                up.doubt(now_s);
                down.doubt(now_s);
            }
            draining => {
                for one in draining.into_iter().flatten() {
                    one.is_alone = both_loaded && !is_told;
                }
            }
        }
    }

    /// Which direction is not shut yet, where a queue that is seen may be of both.
    fn which_waits(&mut self, now_s: f64, delay: Delay) -> [bool; 2] {
        let [up, down] = &mut self.sides;
        if delay.added_s <= CLEAR_S {
            self.tried = false;
        }
        if !(up.is_loaded() && down.is_loaded()) {
            return [false; 2];
        }
        let (is_up, draining) = match (up.draining, down.draining) {
            (None, None) => {
                let down_first = down.carried_ratio < up.carried_ratio * LESS_RATIO;
                return [down_first, !down_first];
            }
            (Some(draining), None) => (true, draining),
            (None, Some(draining)) => (false, draining),
            (Some(_), Some(_)) => return [false; 2],
        };
        let waits = match draining.alone(now_s, delay) {
            Alone::Goes => !is_up,
            Alone::InVain if !self.tried => {
                self.tried = true;
                let side = if is_up { up } else { down };
                side.give_back();
                is_up
            }
            Alone::InVain | Alone::NotEnough => return [false; 2],
        };
        [waits, !waits]
    }

    /// The rate that a direction's shaper is to have.
    pub fn rate_bps(&self, direction: OneDirection) -> f64 {
        match (direction, &self.sides) {
            (OneDirection::Up, [side, _]) | (OneDirection::Down, [_, side]) => side.rate_bps,
        }
    }

    /// What most reflectors see beyond what they have without a queue, and how many answer.
    pub fn seen(&self, now_s: f64) -> (Option<f64>, usize) {
        let delay = self.reflectors.delay(now_s);
        (
            delay.map(|delay| delay.added_s),
            self.reflectors.live(now_s),
        )
    }

    /// How long after a probe the same reflector gets the next one.
    pub fn probe_every_s(&self) -> f64 {
        match self.sides.iter().any(Side::is_loaded) {
            true => PROBE_LOADED_S,
            false => PROBE_IDLE_S,
        }
    }
}

#[cfg(test)]
mod tests;
