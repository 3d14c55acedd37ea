//! Which direction is late, by a reflector that reports its own times. Its clock and this one need not agree: what
//! counts is how much longer a direction takes than at best. Pure.

use super::baseline::Baseline;
use super::reflectors::{Delay, FRESH_S};

/// So much later than the others, in seconds, is trouble of its own: twice what is a queue, because one answer alone may be late by
/// chance.
const OF_ITS_OWN_S: f64 = 0.030;

/// Others that are no later than this see no queue.
const NO_QUEUE_S: f64 = 0.008;

/// Both directions to one reflector.
#[derive(Debug, Default)]
pub(super) struct Directions {
    up: OneWay,
    down: OneWay,
    /// Whether it was late while the others saw no queue, and is since.
    is_doubted: bool,
}

#[derive(Debug, Default)]
struct OneWay {
    baseline: Baseline,
    last: Option<Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    sent_s: f64,
    rtt_s: f64,
    delay_s: f64,
}

impl Directions {
    /// Takes note of a probe: how long each direction took by two clocks, up and down.
    pub(super) fn answered(&mut self, sent_s: f64, rtt_s: f64, delays_s: [f64; 2]) {
        let valid = rtt_s.is_finite() && rtt_s >= 0.0 && delays_s.iter().all(|s| s.is_finite());
        let overtaken =
            |direction: &OneWay| direction.last.is_some_and(|last| last.sent_s >= sent_s);
        let directions = [&mut self.up, &mut self.down];
        if !valid || directions.iter().any(|direction| overtaken(direction)) {
            return;
        }
        for (direction, delay_s) in directions.into_iter().zip(delays_s) {
            direction.baseline.see(sent_s, delay_s);
            direction.last = Some(Seen {
                sent_s,
                rtt_s,
                delay_s,
            });
        }
    }

    /// What each direction was late by when it was last seen, up and down; none while the reflector does not answer, or has trouble
    /// that the others do not see.
    pub(super) fn delays(&mut self, now_s: f64, others: Delay) -> Option<[Delay; 2]> {
        let directions = [self.up.delay(now_s)?, self.down.delay(now_s)?];
        let added_s: f64 = directions.iter().map(|direction| direction.added_s).sum();
        if added_s <= OF_ITS_OWN_S {
            self.is_doubted = false;
        } else if others.added_s <= NO_QUEUE_S {
            self.is_doubted = true;
        }
        (!self.is_doubted).then_some(directions)
    }

    /// What they were last becomes what they are without a queue.
    pub(super) fn forget(&mut self, now_s: f64) {
        for direction in [&mut self.up, &mut self.down] {
            if let Some(last) = direction.last {
                direction.baseline.begin(now_s, last.delay_s);
            }
        }
    }
}

impl OneWay {
    fn delay(&self, now_s: f64) -> Option<Delay> {
        let last = self.last?;
        let fresh = now_s - (last.sent_s + last.rtt_s) < FRESH_S;
        let added_s = last.delay_s - self.baseline.shortest_s()?;
        fresh.then_some(Delay {
            added_s,
            sent_s: last.sent_s,
        })
    }
}
