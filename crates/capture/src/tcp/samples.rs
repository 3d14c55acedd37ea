//! Times in bounded memory: the figures of all, and a thinned series for percentiles.

use plumb_model::distribution::Distribution;

/// Samples kept; when there are as many, every second one goes, and of the later ones only every second is taken.
const MOST: usize = 256;
const NS_PER_S: f64 = 1e9;

/// Samples of a time in nanoseconds. The first takes no memory of its own: most connections of a busy server have one.
#[derive(Debug, Clone, Default)]
pub(crate) enum Samples {
    #[default]
    None,
    One(u64),
    Several(Box<Figures>),
}

/// Figures of several samples.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    kept: Vec<u32>,
    count: u64,
    /// One in so many is kept: two to this power.
    stride: u8,
    min: u64,
    max: u64,
    sum: f64,
    squares: f64,
}

/// Resolution of those kept, so that 32 bits reach 266 s; longer ones are cut to that.
const NS_PER_UNIT: u64 = 62;

impl Samples {
    #[inline]
    pub(crate) fn add(&mut self, ns: u64) {
        match self {
            Self::None => *self = Self::One(ns),
            Self::One(first) => {
                let mut figures = Box::<Figures>::default();
                figures.add(*first);
                figures.add(ns);
                *self = Self::Several(figures);
            }
            Self::Several(figures) => figures.add(ns),
        }
    }

    /// Percentiles are of those kept, which are evenly spread; all else is of all.
    pub(crate) fn distribution(&self) -> Option<Distribution> {
        match self {
            Self::None => None,
            Self::One(ns) => Distribution::of([*ns as f64 / NS_PER_S]),
            Self::Several(figures) => figures.distribution(),
        }
    }
}

impl Figures {
    #[inline]
    fn add(&mut self, ns: u64) {
        if self.count == 0 {
            self.min = ns;
        }
        self.min = self.min.min(ns);
        self.max = self.max.max(ns);
        let s = ns as f64 / NS_PER_S;
        self.sum += s;
        self.squares += s * s;
        if self.count & ((1 << self.stride) - 1) == 0 {
            if self.kept.len() >= MOST {
                let mut index = 0;
                self.kept.retain(|_| {
                    index += 1;
                    index % 2 == 1
                });
                self.stride += 1;
            }
            if self.count & ((1 << self.stride) - 1) == 0 {
                self.kept
                    .push(u32::try_from(ns / NS_PER_UNIT).unwrap_or(u32::MAX));
            }
        }
        self.count += 1;
    }

    fn distribution(&self) -> Option<Distribution> {
        let kept = self
            .kept
            .iter()
            .map(|units| f64::from(*units) * NS_PER_UNIT as f64 / NS_PER_S);
        let kept = Distribution::of(kept)?;
        let (min, max) = (self.min as f64 / NS_PER_S, self.max as f64 / NS_PER_S);
        let within = |value: f64| value.clamp(min, max);
        let count = self.count as f64;
        let mean = self.sum / count;
        Some(Distribution {
            count: self.count,
            min,
            p5: within(kept.p5),
            p25: within(kept.p25),
            p50: within(kept.p50),
            mean,
            p75: within(kept.p75),
            p95: within(kept.p95),
            p99: within(kept.p99),
            max,
            stddev: (self.squares / count - mean * mean).max(0.0).sqrt(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn many_samples_are_summed_up_in_little_memory() {
        let mut samples = Samples::default();
        assert!(samples.distribution().is_none());
        for i in 0..100_000_u64 {
            samples.add((i % 1000 + 1) * 1_000_000);
        }
        let Samples::Several(figures) = &samples else {
            panic!("{samples:?}");
        };
        assert!(figures.kept.len() <= MOST);
        let d = samples.distribution().unwrap();
        assert_eq!((d.count, d.min, d.max), (100_000, 0.001, 1.0));
        assert!((d.mean - 0.5005).abs() < 1e-6, "{d:?}");
        assert!(
            (d.p50 - 0.5).abs() < 0.05 && (d.p95 - 0.95).abs() < 0.05,
            "{d:?}"
        );
    }

    #[test]
    fn few_are_exact() {
        let mut samples = Samples::default();
        for ms in [3, 1, 2] {
            samples.add(ms * 1_000_000);
        }
        let d = samples.distribution().unwrap();
        assert!((d.p50 - 0.002).abs() < 1e-7, "{d:?}");
        assert!((d.stddev - 0.000_816).abs() < 1e-6, "{d:?}");
    }
}
