//! Outages of a target: when each began and ended, to the sample, and what they add up to. Pure.

use std::time::Duration;

use crate::sample::Sample;

/// So many probes in a row without an answer are an outage; fewer are loss.
pub const LEAST_LOST: usize = 3;

/// Between samples that lie further apart than so many intervals, the target was not watched.
const GAP_INTERVALS: u32 = 3;

/// The same in time: what a restart of the program takes, or of the machine.
const LEAST_GAP: Duration = Duration::from_secs(60);

/// A time in which nothing was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// When the first probe without an answer was sent, µs since 1970.
    pub begin_us: i64,
    /// When the first probe that was answered again was sent; the last probe while it lasts, or where watching ended
    /// before it did.
    pub end_us: i64,
    /// Whether the last sample belongs to it.
    pub lasts: bool,
}

impl Outage {
    /// How long it was.
    pub fn lasted(&self) -> Duration {
        between(self.begin_us, self.end_us)
    }
}

/// The longest distance of two samples between which the target counts as watched.
pub fn longest_gap(every: Duration) -> Duration {
    every.saturating_mul(GAP_INTERVALS).max(LEAST_GAP)
}

/// A silence that is or may become an outage.
#[derive(Debug, Clone, Copy)]
struct Silence {
    begin_us: i64,
    lost: usize,
}

/// Finds outages in samples that come in the order in which they were sent.
#[derive(Debug)]
pub struct Walk {
    gap: Duration,
    /// The time up to a sample before this is not counted as watched.
    counted_from_us: i64,
    last_us: Option<i64>,
    silence: Option<Silence>,
    watched: Duration,
    found: Vec<Outage>,
}

impl Walk {
    /// Of a target that is probed so often. The time between two samples counts as watched where the later one is of then
    /// or later; outages are found before it too.
    pub fn new(every: Duration, counted_from_us: i64) -> Self {
        Self {
            gap: longest_gap(every),
            counted_from_us,
            last_us: None,
            silence: None,
            watched: Duration::ZERO,
            found: Vec::new(),
        }
    }

    /// Continues within an outage that was known before.
    pub fn within(mut self, known: Outage) -> Self {
        self.last_us = Some(known.end_us);
        self.silence = Some(Silence {
            begin_us: known.begin_us,
            lost: LEAST_LOST,
        });
        self
    }

    pub fn step(&mut self, sample: &Sample) {
        if let Some(last_us) = self.last_us {
            if between(last_us, sample.sent_us) > self.gap {
                self.close(last_us, false);
            } else if sample.sent_us >= self.counted_from_us {
                self.watched += between(last_us, sample.sent_us);
            }
        }
        self.last_us = Some(sample.sent_us);
        match (sample.value, &mut self.silence) {
            (Some(_), _) => self.close(sample.sent_us, false),
            (None, Some(silence)) => silence.lost += 1,
            (None, None) => {
                self.silence = Some(Silence {
                    begin_us: sample.sent_us,
                    lost: 1,
                });
            }
        }
    }

    fn close(&mut self, end_us: i64, lasts: bool) {
        if let Some(silence) = self.silence.take()
            && silence.lost >= LEAST_LOST
        {
            self.found.push(Outage {
                begin_us: silence.begin_us,
                end_us,
                lasts,
            });
        }
    }

    /// The outages, and how long was watched.
    pub fn end(mut self) -> (Vec<Outage>, Duration) {
        if let Some(last_us) = self.last_us {
            self.close(last_us, true);
        }
        (self.found, self.watched)
    }
}

/// The outages of a time, and how long of it was watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outages {
    /// Those that ended in it or last, in the order of time.
    pub outages: Vec<Outage>,
    pub watched: Duration,
    /// When the time begins, µs since 1970.
    pub from_us: i64,
}

impl Outages {
    fn down(&self) -> Duration {
        self.outages
            .iter()
            .map(|outage| between(outage.begin_us.max(self.from_us), outage.end_us))
            .sum()
    }

    /// The share of the watched time without outages; `None` where nothing was watched.
    pub fn availability(&self) -> Option<f64> {
        (!self.watched.is_zero()).then(|| {
            let down = self.down().min(self.watched);
            1.0 - down.as_secs_f64() / self.watched.as_secs_f64()
        })
    }

    /// Mean time to repair: how long an outage lasts; `None` without one.
    pub fn mttr(&self) -> Option<Duration> {
        self.down().checked_div(self.number()?)
    }

    /// Mean time between failures: watched time without outages for each of them; `None` without one.
    pub fn mtbf(&self) -> Option<Duration> {
        self.watched
            .saturating_sub(self.down())
            .checked_div(self.number()?)
    }

    fn number(&self) -> Option<u32> {
        u32::try_from(self.outages.len()).ok().filter(|n| *n > 0)
    }
}

/// From one time to a later one.
fn between(from_us: i64, to_us: i64) -> Duration {
    Duration::from_micros(u64::try_from(to_us.saturating_sub(from_us)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Samples a second apart: `#` was answered, `.` was not, and nothing was sent at a blank.
    fn samples(drawn: &str) -> Vec<Sample> {
        let sample = |(second, mark): (i64, char)| Sample {
            sent_us: second * 1_000_000,
            value: (mark == '#').then_some(0.02),
        };
        let drawn = (0..).zip(drawn.chars()).filter(|(_, mark)| *mark != ' ');
        drawn.map(sample).collect()
    }

    fn among(samples: &[Sample]) -> Outages {
        let mut walk = Walk::new(SECOND, i64::MIN);
        samples.iter().for_each(|sample| walk.step(sample));
        let (outages, watched) = walk.end();
        Outages {
            outages,
            watched,
            from_us: i64::MIN,
        }
    }

    fn outage(begin_s: i64, end_s: i64, lasts: bool) -> Outage {
        Outage {
            begin_us: begin_s * 1_000_000,
            end_us: end_s * 1_000_000,
            lasts,
        }
    }

    #[test]
    fn begins_and_ends_to_the_sample() {
        let found = among(&samples("###....###.#..##...##"));
        assert_eq!(found.outages, [outage(3, 7, false), outage(16, 19, false)]);
        assert_eq!(found.mttr(), Some(Duration::from_millis(3500)));
        assert_eq!(found.mtbf(), Some(Duration::from_millis(6500)));
        assert_eq!(found.availability(), Some(0.65));
    }

    #[test]
    fn one_may_last_still_and_none_has_no_means() {
        assert_eq!(among(&samples("##...")).outages, [outage(2, 4, true)]);
        let found = among(&samples("#..#"));
        assert_eq!(
            (found.outages.len(), found.mttr(), found.mtbf()),
            (0, None, None)
        );
        assert_eq!(found.availability(), Some(1.0));
        assert_eq!(among(&[]).availability(), None);
    }

    #[test]
    fn what_nobody_watched_is_neither_up_nor_down() {
        let gap = " ".repeat(100);
        let found = among(&samples(&format!("##...{gap}...##")));
        assert_eq!(
            found.outages,
            [outage(2, 4, false), outage(105, 108, false)]
        );
        assert_eq!(found.watched, Duration::from_secs(4 + 4));
        // A short gap is a restart: the outage continues.
        let gap = " ".repeat(30);
        let found = among(&samples(&format!("##...{gap}...##")));
        assert_eq!(found.outages, [outage(2, 38, false)]);
        assert_eq!(found.watched, Duration::from_secs(39));
    }

    #[test]
    fn a_month_is_counted_as_it_was_made() {
        // 30 days, a probe in 10 s, an outage of 5 minutes each day at noon.
        let samples: Vec<Sample> = (0..30 * 8640)
            .map(|at| Sample {
                sent_us: at * 10_000_000,
                value: (!(4320..4350).contains(&(at % 8640))).then_some(0.009),
            })
            .collect();
        let found = among(&samples);
        assert_eq!(found.outages.len(), 30);
        assert_eq!(found.mttr(), Some(Duration::from_secs(300)));
        assert_eq!(
            found.mtbf(),
            Some((Duration::from_secs(30 * 86_400 - 10) - Duration::from_secs(30 * 300)) / 30)
        );
    }

    proptest! {
        /// A walk that is cut anywhere, and continued within what it knew, finds the same.
        #[test]
        fn a_walk_that_goes_on_finds_the_same(drawn in "[#.]{1,80}", cut in 0usize..80) {
            let samples = samples(&drawn);
            let whole = among(&samples);
            let (before, after) = samples.split_at(cut.min(samples.len()));
            let mut known = among(before).outages;
            let open = known.pop_if(|outage| outage.lasts);
            let mut walk = Walk::new(SECOND, i64::MIN);
            if let Some(open) = open {
                walk = walk.within(open);
            } else {
                // A silence too short to be known is walked again.
                let begun = before.iter().rev().take_while(|sample| sample.value.is_none());
                before.iter().skip(before.len() - begun.count()).for_each(|sample| walk.step(sample));
            }
            after.iter().for_each(|sample| walk.step(sample));
            known.extend(walk.end().0);
            prop_assert_eq!(known, whole.outages);
        }
    }
}
