//! How a delay varies: the distributions of tc-netem(8), and samples of one's own.

use std::time::Duration;

use plumb_model::units::{duration_text, parse_duration};
use serde::{Deserialize, Serialize};

use crate::random::Random;

/// Samples taken at most: six times as many as a table of netem's has entries.
const MOST_SAMPLES: usize = 100_000;

/// What is drawn for each packet.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Evenly from −jitter to +jitter.
    #[default]
    Uniform,
    /// Normal; the jitter is the standard deviation.
    Normal,
    /// A long tail of shape 3, by the formula of iproute2's netem/pareto.c: at least −⅔ jitter,
    /// half below −0.32 jitter, at most 4 jitter, which 1.1 % reach; the standard deviation is
    /// 0.82 jitter.
    Pareto,
    /// One of the samples in this file, each as likely: a line each, such as `12.5ms`; `#`
    /// begins a comment.
    File(String),
    /// One of these samples, each as likely.
    Samples(Vec<Sample>),
}

/// A delay that was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Sample(#[serde(with = "duration_text")] Duration);

impl Distribution {
    pub(crate) fn is_uniform(&self) -> bool {
        *self == Self::Uniform
    }

    /// Whether it knows no jitter.
    pub(crate) fn is_of_samples(&self) -> bool {
        matches!(self, Self::File(_) | Self::Samples(_))
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Self::Samples(samples) if samples.is_empty() => {
                Err("there are no samples to draw from: give at least one".into())
            }
            Self::Samples(samples) if samples.len() > MOST_SAMPLES => Err(format!(
                "{} samples are too many: at most {MOST_SAMPLES} are possible",
                samples.len()
            )),
            _ => Ok(()),
        }
    }

    /// Takes the samples that the text of its file has.
    pub(crate) fn take_samples(&mut self, text: &str) -> Result<(), String> {
        let mut samples = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let written = line.split('#').next().unwrap_or_default().trim();
            if !written.is_empty() {
                let sample = parse_duration(written)
                    .map_err(|error| format!("line {}: {error}", index + 1))?;
                samples.push(Sample(sample));
            }
        }
        let taken = Self::Samples(samples);
        taken.check()?;
        *self = taken;
        Ok(())
    }

    /// What is added to the delay, in nanoseconds.
    pub(crate) fn draw(&self, jitter_ns: f64, random: &mut Random) -> f64 {
        match self {
            Self::Uniform => jitter_ns * (2.0 * random.uniform() - 1.0),
            Self::Normal => jitter_ns * random.normal(),
            Self::Pareto => jitter_ns * pareto(1.0 - random.uniform()),
            Self::Samples(samples) => {
                let sample = samples.get(random.below(samples.len()));
                sample.map_or(0.0, |sample| sample.0.as_nanos() as f64)
            }
            // No chain is built with a file that was not read.
            Self::File(_) => 0.0,
        }
    }
}

/// The quantile function: `rest` is the probability of more.
fn pareto(rest: f64) -> f64 {
    /// The largest entry of a table of 16 bits, whose unit is NETEM_DIST_SCALE.
    const MOST: f64 = 32767.0 / 8192.0;
    ((rest.powf(-1.0 / 3.0) - 1.5) * 4.0 / 3.0).min(MOST)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Of 100,000 draws the share at or below each value must be what the distribution says.
    /// The deviation of a count is √(n q (1−q)); the bound is five of them (confidence
    /// 1 − 6·10⁻⁷ each).
    #[test]
    fn the_quantiles_hold() {
        use Distribution::{Normal, Pareto, Uniform};
        const COUNT: usize = 100_000;
        for (distribution, quantiles) in [
            (
                Uniform,
                vec![(-1.0, 0.0), (-0.5, 0.25), (0.8, 0.9), (1.0, 1.0)],
            ),
            // The standard normal distribution at −2, −1, 0 and 1.5.
            (
                Normal,
                vec![(-2.0, 0.02275), (-1.0, 0.15866), (0.0, 0.5), (1.5, 0.93319)],
            ),
            // (u^(−1/3) − 1.5) 4/3 at u = 1, 0.9, 0.5, 0.1, and the share that is cut.
            (
                Pareto,
                vec![
                    (-0.66667, 0.0),
                    (-0.61901, 0.1),
                    (-0.32011, 0.5),
                    (0.87258, 0.9),
                    (3.999, 1.0 - 0.010_98),
                    (4.0, 1.0),
                ],
            ),
        ] {
            let mut random = Random::new(5);
            let draws: Vec<f64> = (0..COUNT)
                .map(|_| distribution.draw(1000.0, &mut random))
                .collect();
            for (value, share) in quantiles {
                let below = draws.iter().filter(|x| **x <= value * 1000.0).count() as f64;
                let n = COUNT as f64;
                let bound = 5.0 * (n * share * (1.0 - share)).sqrt();
                assert!(
                    (below - n * share).abs() <= bound,
                    "{distribution:?} {value}: {below}"
                );
            }
        }
    }

    #[test]
    fn a_file_has_a_sample_a_line() {
        let mut read = Distribution::File("lte.txt".into());
        read.take_samples("# one way\n12.5ms\n\n 300us # fast\r\n1s")
            .unwrap();
        let samples = [12_500, 300, 1_000_000].map(|us| Sample(Duration::from_micros(us)));
        assert_eq!(read, Distribution::Samples(samples.to_vec()));
        let mut file = Distribution::File("lte.txt".into());
        let error = file.take_samples("1ms\n2").unwrap_err();
        assert!(error.contains("line 2") && error.contains("'2'"), "{error}");
        assert!(
            file.take_samples("# nothing")
                .unwrap_err()
                .contains("no samples")
        );
        assert!(file.take_samples(&"1ms\n".repeat(100_001)).is_err());
        assert_eq!(file, Distribution::File("lte.txt".into()));
    }

    proptest::proptest! {
        #[test]
        fn no_file_panics(text in "[0-9a-z.# \n]{0,60}") {
            let _ = Distribution::File(String::new()).take_samples(&text);
        }
    }
}
