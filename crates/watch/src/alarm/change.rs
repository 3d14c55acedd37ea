//! A change point: the last minutes are slower than the same hour of other days. Robust, since the days before may hold
//! incidents too: of the days the median, and of their differences from it the median (MAD).

use serde::Deserialize;

use super::rule::{MOST_BACK_S, Quantity, Rule, Shown, Verdict, seconds};
use crate::distribution::Distribution;
use crate::page::words::ms;
use crate::unit::Unit;

/// Days that it looks back unless the file says otherwise: each day of the week twice.
const DAYS: i64 = 14;

/// The fewest days that have to be known unless the file says otherwise.
const LEAST_DAYS: usize = 5;

/// By so many standard deviations the median has to be away. Windows of one month and 20 targets are some 10^5: by a normal
/// distribution 5 of them in 10^7 are that far away, and round trips have longer tails.
const DEVIATIONS: f64 = 6.0;

/// The standard deviation of a normal distribution, by its MAD (Rousseeuw and Croux 1993).
const DEVIATION_OF_MAD: f64 = 1.4826;

/// A change below this share is not worth an alarm, however steady the line is.
const LEAST_RATIO: f64 = 0.25;

/// The same of the 95th percentile: half an hour in which others use the line makes it half as large again, and twice as large is jitter.
const LEAST_RATIO_P95: f64 = 1.0;

/// The same in seconds: routers at hand answer in less than a millisecond, more or less.
const LEAST_S: f64 = 0.003;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    quantity: Option<String>,
    over: Option<String>,
    days: Option<i64>,
    least_days: Option<usize>,
}

#[derive(Debug)]
struct Change {
    quantity: Quantity,
    over_s: i64,
    days: i64,
    least_days: usize,
}

pub(super) fn read(settings: toml::Table) -> Result<Box<dyn Rule>, String> {
    let settings: Settings = settings.try_into().map_err(|e| e.message().to_owned())?;
    let quantity = Quantity::read(settings.quantity.as_deref().unwrap_or("median"))?;
    if matches!(quantity, Quantity::Loss | Quantity::Value) {
        return Err(
            "a change is of the median or of p95; for loss and values there are thresholds"
                .to_owned(),
        );
    }
    let days = settings.days.unwrap_or(DAYS);
    let least_days = settings.least_days.unwrap_or(LEAST_DAYS);
    if !(3..=60).contains(&days) {
        return Err("days is a number from 3 to 60".to_owned());
    }
    if least_days < 3 || i64::try_from(least_days).is_ok_and(|least| least > days) {
        return Err("least_days is a number from 3 to days".to_owned());
    }
    Ok(Box::new(Change {
        quantity,
        over_s: seconds(
            "over",
            settings.over.as_deref().unwrap_or("30m"),
            (300, MOST_BACK_S),
        )?,
        days,
        least_days,
    }))
}

/// The middle one; of an even number the upper one of both.
fn median(values: &mut [f64]) -> Option<f64> {
    let middle = values.len() / 2;
    if values.is_empty() {
        return None;
    }
    let (_, found, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    Some(*found)
}

impl Change {
    /// What is usual at this hour, and above what it is no more, in seconds; `None` while too few days are known.
    fn usual(&self, now_s: i64, same_hour: &[(i64, Distribution)]) -> Option<(f64, f64)> {
        let day_of = |at_s: i64| (now_s - at_s + 43_200).div_euclid(86_400);
        let mut quarters = Vec::with_capacity(same_hour.len());
        let mut of_days = Vec::new();
        for day in same_hour.chunk_by(|(a, _), (b, _)| day_of(*a) == day_of(*b)) {
            let inside = day
                .first()
                .is_some_and(|(at_s, _)| (1..=self.days).contains(&day_of(*at_s)));
            let values = day
                .iter()
                .filter_map(|(_, seen)| self.quantity.of_times(&seen.times?));
            let mut values: Vec<f64> = values.collect();
            if let Some(of_day) = median(&mut values).filter(|_| inside) {
                of_days.push(of_day);
                quarters.extend(values);
            }
        }
        if of_days.len() < self.least_days {
            return None;
        }
        let centre = median(&mut of_days)?;
        let spread = |values: &[f64]| {
            let mut away: Vec<f64> = values.iter().map(|v| (v - centre).abs()).collect();
            median(&mut away)
        };
        let spread = spread(&quarters)?.max(spread(&of_days)?) * DEVIATION_OF_MAD;
        let least_ratio = match self.quantity {
            Quantity::P95 => LEAST_RATIO_P95,
            Quantity::Median | Quantity::Loss | Quantity::Value => LEAST_RATIO,
        };
        let away = (DEVIATIONS * spread).max(least_ratio * centre).max(LEAST_S);
        Some((centre, centre + away))
    }
}

impl Rule for Change {
    fn back_s(&self) -> i64 {
        self.over_s
    }

    fn days(&self) -> i64 {
        self.days
    }

    fn is_of(&self, unit: Unit) -> bool {
        self.quantity.is_of(unit)
    }

    fn judge(&self, shown: &Shown) -> Verdict {
        let Some((usual, limit)) = self.usual(shown.now_s, shown.same_hour) else {
            return Verdict::Unknown;
        };
        let samples = shown.last(self.over_s).unwrap_or_default();
        match self.quantity.of(samples) {
            None => Verdict::Unknown,
            Some(now) if now > limit => Verdict::Seen {
                words: format!(
                    "{} of {}, usually {} at this hour",
                    self.quantity.words(),
                    ms(now),
                    ms(usual)
                ),
                since_s: None,
            },
            Some(_) => Verdict::Quiet,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sample::Sample;

    const NOW_S: i64 = 1_000 * 86_400 + 43_200;

    fn verdict(days: i64, usual_ms: impl Fn(i64) -> u64, now_ms: u64) -> Verdict {
        let samples_of = |from_s: i64, to_s: i64, ms: u64| -> Vec<Sample> {
            let sample = |at_s: i64| Sample {
                sent_us: at_s * 1_000_000,
                value: Some(ms as f64 / 1e3),
            };
            (from_s..to_s).step_by(10).map(sample).collect()
        };
        let mut same_hour = Vec::new();
        for day in (1..=days).rev() {
            for quarter in -2..2 {
                let at_s = NOW_S - day * 86_400 + quarter * 900;
                let samples = samples_of(at_s, at_s + 900, usual_ms(day));
                same_hour.push((at_s, Distribution::of(&samples)));
            }
        }
        let samples = samples_of(NOW_S - 1800, NOW_S, now_ms);
        let rule = read(toml::Table::new()).unwrap();
        rule.judge(&Shown {
            now_s: NOW_S,
            every: Duration::from_secs(10),
            unit: Unit::Seconds,
            samples: &samples,
            same_hour: &same_hour,
        })
    }

    #[test]
    fn nothing_is_said_while_few_days_are_known() {
        assert_eq!(verdict(4, |_| 20, 900), Verdict::Unknown);
        assert!(matches!(verdict(5, |_| 20, 900), Verdict::Seen { .. }));
    }

    #[test]
    fn a_change_is_more_than_the_days_differ() {
        assert_eq!(verdict(14, |_| 20, 25), Verdict::Quiet);
        let Verdict::Seen { words, .. } = verdict(14, |_| 20, 26) else {
            panic!("quiet");
        };
        assert_eq!(words, "median of 26.0 ms, usually 20.0 ms at this hour");
        // Days that differ by 4 ms have a MAD of 4 ms.
        let differing = |day: i64| [16, 20, 24][(day % 3).unsigned_abs() as usize];
        assert_eq!(verdict(14, differing, 50), Verdict::Quiet);
        assert!(matches!(verdict(14, differing, 60), Verdict::Seen { .. }));
    }

    #[test]
    fn incidents_of_earlier_days_hide_nothing() {
        let with_incidents = |day: i64| if day % 3 == 0 { 500 } else { 20 };
        assert!(matches!(
            verdict(14, with_incidents, 40),
            Verdict::Seen { .. }
        ));
    }
}
