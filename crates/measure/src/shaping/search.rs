//! Which rates are tried to find the highest at which latency under load stays low. Pure.
//!
//! It takes what each short block of load showed, and keeps how probable each rate is to be the highest that passes
//! (Horstein 1963; Waeber, Frazier and Henderson 2013: probabilistic bisection). A block proves little by itself:
//! another's traffic lets one fail that would pass, and a line whose rate varies lets one pass that would fail a second
//! later. The rates that it asks for go back and forth around the answer, so that what changes meanwhile changes both
//! sides.

/// What the 95th percentile of added latency may be, in seconds: two CoDel targets of 5 ms each way, the packets being served,
/// and the other side (RFC 8289; the same as what a managed queue leaves in `diagnose`).
pub const MOST_ADDED_S: f64 = 0.030;

/// The rates that are looked at, as parts of what the line carried without a shaper: from a line that begins with a burst of
/// several times its rate, to one that TCP had not filled yet.
const LOWEST_RATIO: f64 = 0.15;
const HIGHEST_RATIO: f64 = 1.5;

/// From one of them to the next.
const STEP_RATIO: f64 = 1.01;

/// Where the answer is sought first: a little below what the line carried.
const LIKELY_RATIO: std::ops::RangeInclusive<f64> = 0.8..=1.02;
const LIKELY_WEIGHT: f64 = 4.0;

/// Share of the blocks that pass well below the limit, and well above it.
const PASSES_BELOW: f64 = 0.94;
const PASSES_ABOVE: f64 = 0.04;

/// Where the rate varies, a block passes this often just above the limit, and less often by a factor of e for each further
/// part of the rate.
const PASSES_JUST_ABOVE: f64 = 0.40;
const JUST_ABOVE_RATIO: f64 = 0.08;

/// How sharp the limit is, as a part of the rate: less in excess fills a queue too slowly to show within a block.
const SHARPNESS_RATIO: f64 = 0.012;

/// When the rates between the 10th and the 90th percentile are no further apart than this, a candidate is confirmed.
const NARROW_RATIO: f64 = 1.08;

/// The candidate is this quantile: a rate that is a little too low costs little, one that is too high costs the latency.
const CANDIDATE_QUANTILE: f64 = 0.25;

/// Blocks of one rate are of rates within this part of each other.
const SAME_RATIO: f64 = 0.02;

/// A load that carries less of the rate than this has not filled it.
const FILLS_RATIO: f64 = 0.9;

/// A shaper above what passed without one, of which less passes than this part, holds nothing up: the line does, and TCP takes
/// longer than a block to fill its queue.
const SHAPED_RATIO: f64 = 0.985;

/// A processor is full that was idle for less than the rest of this, and holds a shaper up that carries less than this part of
/// its rate, and of what passed without it: what TCP leaves of a rate behind CoDel is more.
const FULL_RATIO: f64 = 0.97;
const HELD_RATIO: f64 = 0.95;

/// Blocks with the candidate that pass before it is the answer.
const CONFIRMATIONS: usize = 2;

/// Blocks without a shaper: before all others, and between the confirmations.
const OFF_BLOCKS: usize = 2;

/// Most blocks: twenty halve the range far below its step.
const MOST_BLOCKS: usize = 20;

/// A short block of load, and what it showed. Rates count framing as the shaper does.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Block {
    /// Rate of the shaper; none where it was off.
    pub rate_bps: Option<f64>,
    pub carried_bps: f64,
    /// 95th percentile of the latency above the idle path's.
    pub added_p95_s: f64,
    /// Share of its time that the busiest processor of this machine worked; none where that is not known.
    pub busiest_ratio: Option<f64>,
}

impl Block {
    fn passes(&self) -> bool {
        self.added_p95_s <= MOST_ADDED_S
    }

    /// Whether this machine's processor held the shaper up: it was full, and less passed than the shaper allows and than did
    /// without it. The queue is then before the processor, and no shaper manages it.
    fn is_held(&self, off_bps: f64) -> bool {
        let is_less = |bps: f64| self.carried_bps < bps * HELD_RATIO;
        let is_full = self.busiest_ratio.is_some_and(|ratio| ratio >= FULL_RATIO);
        is_full && is_less(off_bps) && self.rate_bps.is_some_and(is_less)
    }
}

/// Why a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The rate passed again and again.
    Found,
    /// Without a shaper the latency stays low too: none is needed.
    NotNeeded,
    /// Even far below the line's rate latency is high: the queue is not before this line.
    LateAtAnyRate,
    /// Even far below the line's rate this machine's processor cannot carry the shaper.
    ProcessorFull,
    /// The time was over; the rate is the best guess.
    OutOfTime,
}

/// What a search came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub end: End,
    /// The rate of the shaper; none where none is needed or helps.
    pub rate_bps: Option<f64>,
    /// What is given up and won by it; none where it was not measured both ways.
    pub trade: Option<Trade>,
    /// The most that a full processor carried with the shaper, where it held up higher rates; none where none was full.
    pub processor_bps: Option<f64>,
    pub blocks: Vec<Block>,
}

/// What a shaper costs and brings, on blocks that took turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trade {
    /// Carried without the shaper and with it.
    pub off_bps: f64,
    pub on_bps: f64,
    /// 95th percentile of added latency without the shaper and with it.
    pub off_added_s: f64,
    pub on_added_s: f64,
}

/// A search that is going on.
#[derive(Debug, Default)]
pub struct Search {
    /// Logarithm of each rate's probability, up to a constant; empty before the first block.
    weights: Vec<f64>,
    /// The lowest rate of them.
    lowest_bps: f64,
    blocks: Vec<Block>,
    confirming: Option<Confirming>,
    ended: Option<End>,
}

/// A candidate that passes so far.
#[derive(Debug, Clone, Copy)]
struct Confirming {
    rate_bps: f64,
    passed: usize,
}

/// What is tried next.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Try {
    /// A block without the shaper.
    Off,
    /// A block at this rate.
    Rate(f64),
}

impl Search {
    /// What is to be tried next; none when the search is over.
    pub fn next(&self) -> Option<Try> {
        if self.ended.is_some() {
            return None;
        }
        let off = self.off_blocks().count();
        Some(match self.confirming {
            _ if self.weights.is_empty() => Try::Off,
            Some(confirming) if confirming.passed > 0 && off < OFF_BLOCKS => Try::Off,
            Some(confirming) => Try::Rate(confirming.rate_bps),
            None => Try::Rate(self.quantile(0.5)),
        })
    }

    /// Takes note of a block, and decides how to go on.
    pub fn record(&mut self, block: Block) {
        self.blocks.push(block);
        match block.rate_bps {
            None => self.record_off(block),
            Some(rate_bps) => self.record_on(rate_bps, block),
        }
        if self.blocks.len() >= MOST_BLOCKS {
            self.stop();
        }
    }

    fn record_off(&mut self, block: Block) {
        let all_pass = self.off_blocks().all(Block::passes);
        if all_pass && self.off_blocks().count() >= OFF_BLOCKS {
            self.ended = Some(End::NotNeeded);
        } else if !all_pass && self.weights.is_empty() && block.carried_bps > 0.0 {
            self.lowest_bps = block.carried_bps * LOWEST_RATIO;
            let count = (HIGHEST_RATIO / LOWEST_RATIO).ln() / STEP_RATIO.ln();
            let weight = |step: usize| {
                let ratio = LOWEST_RATIO * STEP_RATIO.powi(i32::try_from(step).unwrap_or(0));
                match LIKELY_RATIO.contains(&ratio) {
                    true => LIKELY_WEIGHT.ln(),
                    false => 0.0,
                }
            };
            self.weights = (0..=count as usize).map(weight).collect();
        }
    }

    fn record_on(&mut self, rate_bps: f64, block: Block) {
        // A load that did not fill the rate has tried what it carried.
        let is_shaped = !self.is_held(&block) && !self.is_above_the_line(rate_bps, &block);
        let passes = block.passes() && is_shaped;
        let tried_bps = match block.carried_bps < rate_bps * FILLS_RATIO && passes {
            true => block.carried_bps,
            false => rate_bps,
        };
        let lowest_bps = self.lowest_bps;
        for (step, weight) in self.weights.iter_mut().enumerate() {
            let pass = pass_probability(tried_bps, rate_at(lowest_bps, step));
            *weight += match passes {
                true => pass.ln(),
                false => (1.0 - pass).ln(),
            };
        }
        let same = |confirming: &Confirming| {
            (confirming.rate_bps / rate_bps - 1.0).abs() < SAME_RATIO && passes
        };
        self.confirming = match self.confirming.filter(same) {
            Some(Confirming { rate_bps, passed }) => Some(Confirming {
                rate_bps,
                passed: passed + 1,
            }),
            None => self.candidate(),
        };
        let confirmed = |confirming: Confirming| confirming.passed >= CONFIRMATIONS;
        if self.confirming.is_some_and(confirmed) {
            self.ended = Some(End::Found);
        } else if self.quantile(0.9) <= rate_at(lowest_bps, 1) * STEP_RATIO {
            self.ended = Some(match self.is_held(&block) {
                true => End::ProcessorFull,
                false => End::LateAtAnyRate,
            });
        }
    }

    fn is_above_the_line(&self, rate_bps: f64, block: &Block) -> bool {
        let is_above = self.off_bps().is_some_and(|off_bps| rate_bps > off_bps);
        is_above && block.carried_bps < rate_bps * SHAPED_RATIO
    }

    fn is_held(&self, block: &Block) -> bool {
        let off_bps = self.off_bps();
        off_bps.is_some_and(|off_bps| block.is_held(off_bps))
    }

    /// What was carried without a shaper.
    fn off_bps(&self) -> Option<f64> {
        mean(self.off_blocks().map(|block| block.carried_bps))
    }

    /// The rate to confirm, when it is known closely.
    fn candidate(&self) -> Option<Confirming> {
        let narrow = self.quantile(0.9) <= self.quantile(0.1) * NARROW_RATIO;
        narrow.then(|| Confirming {
            rate_bps: self.quantile(CANDIDATE_QUANTILE),
            passed: 0,
        })
    }

    /// Ends it here, unless it has ended.
    pub fn stop(&mut self) {
        self.ended.get_or_insert(End::OutOfTime);
    }

    /// What came of it.
    pub fn finish(mut self) -> Outcome {
        self.stop();
        let end = self.ended.unwrap_or(End::OutOfTime);
        let rate_bps = match (end, self.confirming) {
            (End::NotNeeded | End::LateAtAnyRate | End::ProcessorFull, _) => None,
            _ if self.weights.is_empty() => None,
            (_, Some(confirming)) => Some(confirming.rate_bps),
            (_, None) => Some(self.quantile(CANDIDATE_QUANTILE)),
        };
        let trade = rate_bps.and_then(|rate_bps| {
            let on = |block: &&Block| {
                let of = block.rate_bps.unwrap_or(0.0);
                (of / rate_bps - 1.0).abs() < SAME_RATIO
            };
            let on = || self.blocks.iter().filter(on);
            Some(Trade {
                off_bps: self.off_bps()?,
                on_bps: mean(on().map(|block| block.carried_bps))?,
                off_added_s: mean(self.off_blocks().map(|block| block.added_p95_s))?,
                on_added_s: mean(on().map(|block| block.added_p95_s))?,
            })
        });
        let held = self.blocks.iter().filter(|block| self.is_held(block));
        let processor_bps = held.map(|block| block.carried_bps).reduce(f64::max);
        // What holds packets up has to be the shaper.
        let rate_bps = rate_bps.map(|bps| bps.min(processor_bps.unwrap_or(bps)));
        Outcome {
            end,
            rate_bps,
            trade,
            processor_bps,
            blocks: self.blocks,
        }
    }

    fn off_blocks(&self) -> impl Iterator<Item = &Block> {
        let off = |block: &&Block| block.rate_bps.is_none();
        self.blocks.iter().filter(off)
    }

    /// The rate below which so much of the probability lies; zero before the first block.
    fn quantile(&self, part: f64) -> f64 {
        let most = self.weights.iter().copied().fold(f64::MIN, f64::max);
        let shares = self.weights.iter().map(|weight| (weight - most).exp());
        let total: f64 = shares.clone().sum();
        let mut below = 0.0;
        let mut steps = shares.enumerate();
        let at = steps.find(|(_, share)| {
            below += share;
            below >= part * total
        });
        at.map_or(0.0, |(step, _)| rate_at(self.lowest_bps, step))
    }
}

fn rate_at(lowest_bps: f64, step: usize) -> f64 {
    lowest_bps * STEP_RATIO.powi(i32::try_from(step).unwrap_or(i32::MAX))
}

/// How probable a block at a rate passes where that limit is the highest rate that does.
fn pass_probability(rate_bps: f64, limit_bps: f64) -> f64 {
    let excess = rate_bps / limit_bps - 1.0;
    let above = PASSES_ABOVE + PASSES_JUST_ABOVE * (-excess.max(0.0) / JUST_ABOVE_RATIO).exp();
    let below = 1.0 / (1.0 + (excess / SHARPNESS_RATIO - 1.0).exp());
    above + (PASSES_BELOW - above) * below
}

/// None where there are none, or no probe came back in one of them.
fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    (count > 0.0 && sum.is_finite()).then(|| sum / count)
}

#[cfg(test)]
mod tests;
