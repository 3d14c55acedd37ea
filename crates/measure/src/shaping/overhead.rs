//! What a line adds to each packet, from floods of packets of several sizes and what arrived of them. Pure.
//!
//! A line that is full sends so many bits a second, whatever the packets: the smaller they are, the larger is the share
//! of overhead. With the rate, the framing and, where a box on the way looks at each packet, how many of them pass a
//! second, all that arrived follows. Framings are tried one by one; next come the sizes for which the best two framings
//! predict the most different numbers of packets, which finds the steps of ATM's cells by itself.
//!
//! That VDSL2 sends 65 bytes for 64 is a part of 1.6 % of everything, as a lower rate would be: PTM is known by its overhead.

use plumb_model::framing::{Cells, Framing};

/// The sizes that come first, in bytes of the IP packet: few large ones, for the rate, and small ones.
const FIRST_BYTES: [u32; 8] = [1400, 64, 400, 100, 200, 76, 800, 140];

/// The largest size that may follow; the smallest is the sender's.
const LARGEST_BYTES: u32 = 320;

/// Most floods, and fewest for an answer.
const MOST_FLOODS: usize = 24;
const FEWEST_FLOODS: usize = 6;

/// A flood of which more than this part arrived has not filled the line.
const FILLED_RATIO: f64 = 0.97;

/// One of which less than this part of what was asked left, left the line empty now and then: a busy sender would look like a limit
/// on packets.
const KEPT_RATIO: f64 = 0.97;

/// How far a rate that is counted over a second or two is off by chance, as a part of it; better than this is not believed.
const NOISE_RATIO: f64 = 0.004;

/// What one flood may say against a framing at most, in squares of the noise: another's traffic spoils some.
const MOST_DOUBT: f64 = 9.0;

/// How much more a framing without a keyword, and a limit on packets, have to explain, in the same measure (twice the
/// logarithm of how much rarer they are).
const RARE: f64 = 12.0;
const LIMIT_RARE: f64 = 8.0;

/// Of how much better than all others the best is, so that it is sure (odds of 20 to 1).
const SURE: f64 = 6.0;

/// Overheads of framings without a keyword.
const OVERHEADS: std::ops::RangeInclusive<i16> = 0..=64;

/// A limit on packets shows where at least so many sizes had the same number of them.
const FEWEST_LIMITED: usize = 3;

/// A flood of packets of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flood {
    /// Size of the IP packet.
    pub ip_bytes: u32,
    /// Packets a second that were to leave, that left, and that arrived.
    pub asked_pps: f64,
    pub sent_pps: f64,
    pub arrived_pps: f64,
}

/// What the floods show.
#[derive(Debug, Clone, PartialEq)]
pub struct Overhead {
    /// Write its keyword as shown: a keyword of tc-cake(8) where there is one.
    pub framing: Framing,
    /// What the line sends, counting framing.
    pub rate_bps: f64,
    /// Packets that pass a second, whatever their size; none where no limit shows.
    pub packets_per_s: Option<f64>,
    /// The next best, where it explains nearly as much.
    pub or: Option<Framing>,
    /// How far the floods are from what it predicts, in the middle.
    pub error_ratio: f64,
}

/// Nothing can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoOverhead {
    /// The sender is slower than the line.
    #[error(
        "{0} of the floods filled the line, and {FEWEST_FLOODS} are needed: the sender or a shaper before it is slower than the \
         line; switch the shaper off, or measure from a faster machine"
    )]
    NotFilled(usize),
    /// None of the framings explains what arrived.
    #[error(
        "no framing explains what arrived: other traffic, or a line whose rate varies; try again when it is idle"
    )]
    NothingFits,
}

/// An experiment that is going on.
#[derive(Debug)]
pub struct Experiment {
    smallest_bytes: u32,
    floods: Vec<Flood>,
}

/// A framing and how it explains the floods.
#[derive(Debug, Clone, Copy)]
struct Fit {
    framing: Framing,
    rate_bps: f64,
    packets_per_s: Option<f64>,
    /// How badly it explains them.
    doubt: f64,
    error_ratio: f64,
}

impl Fit {
    fn pps(&self, ip_bytes: u32) -> f64 {
        let of_line = self.rate_bps / bits(&self.framing, ip_bytes);
        self.packets_per_s.map_or(of_line, |most| most.min(of_line))
    }
}

impl Experiment {
    /// With IP packets of so many bytes at the least.
    pub fn new(smallest_bytes: u32) -> Self {
        Self {
            smallest_bytes,
            floods: Vec::new(),
        }
    }

    /// The floods taken in so far.
    pub fn floods(&self) -> &[Flood] {
        &self.floods
    }

    /// The size of the next flood; none when it is over.
    pub fn next_bytes(&self) -> Option<u32> {
        if let Some(first) = FIRST_BYTES.get(self.floods.len()) {
            return Some(self.smallest_bytes.max(*first));
        }
        if self.floods.len() >= MOST_FLOODS {
            return None;
        }
        if self.filled().count() < FEWEST_FLOODS {
            // The machine was busy with something else, for a while perhaps.
            return self
                .floods
                .get(self.floods.len() % FIRST_BYTES.len())
                .map(|flood| flood.ip_bytes);
        }
        let fits = self.fits();
        let best = fits.first()?;
        let rival = rival(&fits).filter(|rival| rival.doubt - best.doubt < SURE * 2.0)?;
        let tried = |bytes: &u32| self.floods.iter().any(|flood| flood.ip_bytes == *bytes);
        let differ = |bytes: &u32| (best.pps(*bytes) / rival.pps(*bytes)).ln().abs();
        (self.smallest_bytes..=LARGEST_BYTES)
            .filter(|bytes| !tried(bytes))
            .max_by(|a, b| differ(a).total_cmp(&differ(b)))
    }

    /// Takes note of a flood.
    pub fn record(&mut self, flood: Flood) {
        self.floods.push(flood);
    }

    /// What came of it.
    ///
    /// # Errors
    /// When too few floods filled the line, or none of the framings explains them.
    pub fn finish(&self) -> Result<Overhead, NoOverhead> {
        let filled = self.filled().count();
        if filled < FEWEST_FLOODS {
            return Err(NoOverhead::NotFilled(filled));
        }
        let fits = self.fits();
        let best = fits.first().ok_or(NoOverhead::NothingFits)?;
        if best.error_ratio > 5.0 * NOISE_RATIO {
            return Err(NoOverhead::NothingFits);
        }
        let or = rival(&fits).filter(|rival| rival.doubt - best.doubt < SURE);
        Ok(Overhead {
            framing: best.framing,
            rate_bps: best.rate_bps,
            packets_per_s: best.packets_per_s,
            or: or.map(|rival| rival.framing),
            error_ratio: best.error_ratio,
        })
    }

    fn filled(&self) -> impl Iterator<Item = &Flood> {
        self.floods.iter().filter(|flood| has_filled(flood))
    }

    /// Every framing with how it explains the floods, the best first.
    fn fits(&self) -> Vec<Fit> {
        let mut floods: Vec<&Flood> = self.filled().collect();
        floods.sort_by_key(|flood| flood.ip_bytes);
        let mut fits: Vec<Fit> = candidates()
            .filter_map(|(framing, rare)| {
                let limited = (FEWEST_LIMITED..floods.len().saturating_sub(1)).chain([0]);
                let fits = limited.filter_map(|limited| fit(&floods, framing, limited));
                let best = fits.min_by(|a, b| a.doubt.total_cmp(&b.doubt))?;
                Some(Fit {
                    doubt: best.doubt + rare,
                    ..best
                })
            })
            .collect();
        fits.sort_by(|a, b| a.doubt.total_cmp(&b.doubt));
        fits
    }
}

fn has_filled(flood: &Flood) -> bool {
    flood.arrived_pps > 0.0
        && flood.arrived_pps < flood.sent_pps * FILLED_RATIO
        && flood.sent_pps > flood.asked_pps * KEPT_RATIO
}

/// The best of the framings that are not practically the same as the first: of those with a keyword, where it has one.
fn rival(fits: &[Fit]) -> Option<&Fit> {
    let best = fits.first()?;
    let other = |fit: &&Fit| {
        let near = (fit.framing.overhead_bytes - best.framing.overhead_bytes).abs() <= 1;
        fit.framing != best.framing && !(near && cells(fit) == cells(best))
    };
    fits.iter().find(other)
}

/// Whether a line cuts packets into cells that show: PTM's do not.
fn cells(fit: &Fit) -> bool {
    fit.framing.cells == Cells::Atm
}

/// The framings, and how much more they have to explain.
fn candidates() -> impl Iterator<Item = (Framing, f64)> {
    let named = Framing::keywords().map(|(_, framing)| (framing, 0.0));
    let tagged = Framing::keywords().map(|(_, framing)| {
        // A line with tags of IEEE 802.1Q: the keyword ether-vlan behind another.
        let overhead_bytes = framing.overhead_bytes.saturating_add(4);
        let tagged = Framing {
            overhead_bytes,
            ..framing
        };
        (tagged, RARE / 2.0)
    });
    let others = OVERHEADS.flat_map(|overhead_bytes| {
        [Cells::None, Cells::Atm].map(|cells| {
            let framing = Framing {
                overhead_bytes,
                mpu_bytes: 0,
                cells,
            };
            (framing, RARE)
        })
    });
    named.chain(tagged).chain(others)
}

fn bits(framing: &Framing, ip_bytes: u32) -> f64 {
    f64::from(framing.wire_bytes(ip_bytes).max(1)) * 8.0
}

/// How a framing explains floods in the order of their size, of which the smallest were held up by a limit on packets.
fn fit(floods: &[&Flood], framing: Framing, limited: usize) -> Option<Fit> {
    let (small, large) = floods.split_at_checked(limited)?;
    let rates = large
        .iter()
        .map(|f| f.arrived_pps * bits(&framing, f.ip_bytes));
    let rate_bps = median(rates)?;
    let packets_per_s = median(small.iter().map(|flood| flood.arrived_pps));
    let fit = Fit {
        framing,
        rate_bps,
        packets_per_s,
        doubt: 0.0,
        error_ratio: 0.0,
    };
    let errors = || {
        let error = |flood: &&&Flood| (flood.arrived_pps / fit.pps(flood.ip_bytes)).ln().abs();
        floods.iter().map(move |flood| error(&flood))
    };
    let doubts = errors().map(|error| (error / NOISE_RATIO).powi(2).min(MOST_DOUBT));
    let rare = if limited > 0 { LIMIT_RARE } else { 0.0 };
    Some(Fit {
        doubt: doubts.sum::<f64>() + rare,
        error_ratio: median(errors())?,
        ..fit
    })
}

fn median(values: impl Iterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get(values.len().saturating_sub(1) / 2)?;
    Some((lower + upper) / 2.0)
}

#[cfg(test)]
mod tests;
