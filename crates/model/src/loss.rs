//! How many packets are lost at least, and how losses follow each other: loss distance and loss
//! period (RFC 3357).

use crate::results::udp::LossPattern;
use crate::summary::Summary;

/// The 97.5th percentile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The least ratio under which so many losses are not unlikelier than 2.5 % (Wilson's interval with the
/// correction for continuity: Newcombe, Statistics in Medicine 17, 1998, method 4).
pub fn at_least_ratio(sent: u64, lost: u64) -> f64 {
    if sent == 0 || lost == 0 {
        return 0.0;
    }
    let (n, k) = (sent as f64, lost as f64);
    let p = k / n;
    let root = (Z * Z - 2.0 - 1.0 / n + 4.0 * p * (n - k + 1.0)).max(0.0);
    ((2.0 * k + Z * Z - 1.0 - Z * root.sqrt()) / (2.0 * (n + Z * Z))).max(0.0)
}

/// The largest ratio under which so few losses are not unlikelier than 2.5 %: the other end of that
/// interval. 1 where nothing was sent.
pub fn at_most_ratio(sent: u64, lost: u64) -> f64 {
    if lost >= sent {
        return 1.0;
    }
    let (n, k) = (sent as f64, lost as f64);
    let p = k / n;
    let root = (Z * Z + 2.0 - 1.0 / n + 4.0 * p * (n - k - 1.0)).max(0.0);
    ((2.0 * k + Z * Z + 1.0 + Z * root.sqrt()) / (2.0 * (n + Z * Z))).min(1.0)
}

/// The losses so far, in order of their numbers.
#[derive(Debug, Default)]
pub struct Losses {
    lost: u64,
    periods: u64,
    /// The last number lost.
    last: Option<u64>,
    /// Length of the loss period that it ended.
    length: u64,
    lengths: Summary,
    distances: Summary,
}

impl Losses {
    /// So many packets from that number on are lost; it is above all before.
    pub fn lose(&mut self, first: u64, count: u64) {
        if count == 0 {
            return;
        }
        if let Some(last) = self.last {
            self.distances.record(first - last, 1);
        }
        self.distances.record(1, count - 1);
        if self.last.is_some_and(|last| first == last + 1) {
            self.length += count;
        } else {
            self.end_period();
            self.length = count;
            self.periods += 1;
        }
        self.lost += count;
        self.last = Some(first + (count - 1));
    }

    fn end_period(&mut self) {
        if self.length > 0 {
            self.lengths.record(self.length, 1);
        }
    }

    /// Number of packets lost so far.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// The whole of it.
    pub fn pattern(mut self) -> LossPattern {
        self.end_period();
        LossPattern {
            periods: self.periods,
            period_length: self.lengths.plain_distribution(),
            distance: self.distances.plain_distribution(),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn few_probes_bound_a_ratio_loosely() {
        // Newcombe's own example, 81 of 263, and what one probe in three says.
        assert!((at_least_ratio(263, 81) - 0.2535).abs() < 1e-4);
        assert!((0.01..0.03).contains(&at_least_ratio(3, 1)));
        assert!((0.10..0.16).contains(&at_least_ratio(150, 30)));
        assert_eq!(at_least_ratio(3, 0), 0.0);
        // The same example from above, and what no loss in 250 and in none at all leaves open.
        assert!((at_most_ratio(263, 81) - 0.3682).abs() < 1e-4);
        assert!((0.015..0.02).contains(&at_most_ratio(250, 0)));
        assert_eq!((at_most_ratio(0, 0), at_most_ratio(1, 1)), (1.0, 1.0));
    }

    /// The example of RFC 3357, section 5: packets 1, 2, 3, 5, 7, 8, 9 arrive of 1 to 10, or
    /// like it; here 4, 6 and 10 are lost, then 11.
    #[test]
    fn distances_and_periods() {
        let mut losses = Losses::default();
        for number in [4, 6, 10, 11] {
            losses.lose(number, 1);
        }
        losses.lose(20, 5);
        assert_eq!(losses.lost(), 9);
        let pattern = losses.pattern();
        let (length, distance) = (pattern.period_length.unwrap(), pattern.distance.unwrap());
        assert_eq!(pattern.periods, 4);
        assert_eq!((length.min, length.max, length.mean), (1.0, 5.0, 2.25));
        // 2, 4, 1, 9, and four of 1.
        assert_eq!((distance.count, distance.mean), (8, 20.0 / 8.0));
        assert_eq!((distance.min, distance.max), (1.0, 9.0));
        assert_eq!(Losses::default().pattern(), LossPattern::default());
    }
}
