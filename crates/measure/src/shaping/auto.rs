//! A search for the rate of a shaper beside one load that lasts for all of it: when a block begins and ends, and when
//! what an earlier one left in the line's queue has gone. Pure: it looks, and says what the shaper is to be set to.
//!
//! The load does not pause between blocks. A line that lets bursts pass saves up while it is free, and would carry more in
//! each block than it does in the long run.

use plumb_host::facts::Ticks;

use super::search::{Block, MOST_ADDED_S, Outcome, Search, Try};

/// How long a block lasts, in seconds, without the shaper and with it: 5 % too much adds 125 ms to a queue in 2.5 s, and TCP
/// takes longer to fill a queue that nothing limits (500 ms of it after 8 s).
const OFF_S: f64 = 4.0;
const ON_S: f64 = 2.5;

/// What passes before a block counts: TCP adapts to a rate within a few round trips, and starts within some more.
const FIRST_SETTLE_S: f64 = 3.0;
const SETTLE_S: f64 = 0.7;

/// While a queue drains the load gets this part of the lowest rate that matters, so that 700 ms of queue take one second.
const DRAIN_RATIO: f64 = 0.3;

/// It has drained when so many probes in a row were below this part of the limit, or after so many seconds.
const DRAINED_PROBES: usize = 3;
const DRAINED_RATIO: f64 = 0.5;
const MOST_DRAIN_S: f64 = 4.0;

/// A direction is not searched for longer, in seconds.
pub const MOST_S: f64 = 58.0;

/// What is seen of the load, every 50 ms or so.
#[derive(Debug, Clone, Copy)]
pub struct Look<'a> {
    /// Since the load began.
    pub elapsed_s: f64,
    /// Bits that arrived since then, with framing as the shaper counts it.
    pub carried_bits: f64,
    /// What probes since the last look waited more than on the idle path; none where one was lost.
    pub added_s: &'a [Option<f64>],
    /// Time of each processor of the machine that shapes; none where that is not known.
    pub processors: &'a [Ticks],
}

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    Keep,
    /// The shaper is switched off.
    Off,
    /// The shaper gets this rate.
    Rate(f64),
    /// The search is over, and the load with it.
    End,
}

/// A search that is going on.
#[derive(Debug)]
pub struct Auto {
    search: Search,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Before the first look.
    New,
    Draining {
        until_s: f64,
        low_probes: usize,
    },
    Settling {
        until_s: f64,
        rate_bps: Option<f64>,
    },
    Measuring(Measuring),
    Over,
}

#[derive(Debug)]
struct Measuring {
    rate_bps: Option<f64>,
    since_s: f64,
    bits_before: f64,
    processors_before: Vec<Ticks>,
    added_s: Vec<Option<f64>>,
}

/// The share of its time that the busiest processor worked between two readings; none where there were none.
fn busiest_ratio(before: &[Ticks], after: &[Ticks]) -> Option<f64> {
    let each = before.iter().zip(after).filter_map(|(before, after)| {
        let all = after.all.checked_sub(before.all).filter(|all| *all > 0)?;
        let idle = after.idle.saturating_sub(before.idle);
        Some(1.0 - idle as f64 / all as f64)
    });
    each.reduce(f64::max)
}

impl Measuring {
    fn duration_s(&self) -> f64 {
        if self.rate_bps.is_some() { ON_S } else { OFF_S }
    }

    fn block(&mut self, look: &Look<'_>) -> Block {
        // What overflows a queue has waited as long as the longest of the others, or would have.
        let longest_s = self
            .added_s
            .iter()
            .flatten()
            .copied()
            .fold(f64::NAN, f64::max);
        let added = self
            .added_s
            .iter()
            .map(|added_s| added_s.unwrap_or(longest_s));
        let mut added: Vec<f64> = added.filter(|added_s| added_s.is_finite()).collect();
        added.sort_by(f64::total_cmp);
        let rank = (added.len() as f64 * 0.95).ceil() as usize;
        let p95 = added.get(rank.saturating_sub(1));
        let duration_s = (look.elapsed_s - self.since_s).max(f64::MIN_POSITIVE);
        Block {
            rate_bps: self.rate_bps,
            carried_bps: (look.carried_bits - self.bits_before) / duration_s,
            // No probe came back at all.
            added_p95_s: p95.copied().unwrap_or(f64::INFINITY),
            busiest_ratio: busiest_ratio(&self.processors_before, look.processors),
        }
    }
}

impl Default for Auto {
    fn default() -> Self {
        Self {
            search: Search::default(),
            state: State::New,
        }
    }
}

impl Auto {
    /// What to do now.
    pub fn look(&mut self, look: &Look<'_>) -> Order {
        if look.elapsed_s >= MOST_S {
            self.search.stop();
            self.state = State::Over;
        }
        let now_s = look.elapsed_s;
        match &mut self.state {
            State::New => {
                self.state = State::Settling {
                    until_s: now_s + FIRST_SETTLE_S,
                    rate_bps: None,
                };
                Order::Off
            }
            State::Draining {
                until_s,
                low_probes,
            } => {
                for added_s in look.added_s {
                    let low = added_s.is_some_and(|s| s <= MOST_ADDED_S * DRAINED_RATIO);
                    *low_probes = if low { *low_probes + 1 } else { 0 };
                }
                match *low_probes >= DRAINED_PROBES || now_s >= *until_s {
                    true => self.begin(now_s),
                    false => Order::Keep,
                }
            }
            State::Settling { until_s, rate_bps } => {
                if now_s >= *until_s {
                    self.state = State::Measuring(Measuring {
                        rate_bps: *rate_bps,
                        since_s: now_s,
                        bits_before: look.carried_bits,
                        processors_before: look.processors.to_vec(),
                        added_s: Vec::new(),
                    });
                }
                Order::Keep
            }
            State::Measuring(measuring) => {
                measuring.added_s.extend(look.added_s);
                if now_s - measuring.since_s < measuring.duration_s() {
                    return Order::Keep;
                }
                let block = measuring.block(look);
                self.search.record(block);
                match self.search.next() {
                    Some(Try::Rate(rate_bps)) if block.added_p95_s > MOST_ADDED_S => {
                        self.state = State::Draining {
                            until_s: now_s + MOST_DRAIN_S,
                            low_probes: 0,
                        };
                        Order::Rate(rate_bps.min(block.carried_bps) * DRAIN_RATIO)
                    }
                    _ => self.begin(now_s),
                }
            }
            State::Over => Order::End,
        }
    }

    /// Begins the next block.
    fn begin(&mut self, now_s: f64) -> Order {
        let (rate_bps, order) = match self.search.next() {
            None => {
                self.state = State::Over;
                return Order::End;
            }
            Some(Try::Off) => (None, Order::Off),
            Some(Try::Rate(rate_bps)) => (Some(rate_bps), Order::Rate(rate_bps)),
        };
        self.state = State::Settling {
            until_s: now_s + SETTLE_S,
            rate_bps,
        };
        order
    }

    /// What came of it.
    pub fn finish(self) -> Outcome {
        self.search.finish()
    }
}

#[cfg(test)]
mod tests;
