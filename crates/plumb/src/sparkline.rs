//! The latest values of something as a line of characters, one for each.

use std::collections::VecDeque;

/// A value is one of these, from the least shown to the greatest.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const MISSING: char = '×';

/// The latest values; `None` where one is missing.
#[derive(Debug, Clone)]
pub(crate) struct Sparkline {
    width: usize,
    latest: VecDeque<Option<f64>>,
}

impl Sparkline {
    /// Of at most so many values.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width: width.max(1),
            latest: VecDeque::new(),
        }
    }

    pub(crate) fn push(&mut self, value: Option<f64>) {
        if self.latest.len() >= self.width {
            self.latest.pop_front();
        }
        self.latest.push_back(value);
    }

    /// The least and the greatest.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let values = || self.latest.iter().flatten().copied();
        Some((values().reduce(f64::min)?, values().reduce(f64::max)?))
    }

    /// The line, from the least of its values to the greatest.
    pub(crate) fn line(&self) -> String {
        let (low, high) = self.range().unwrap_or_default();
        self.between(low, high)
    }

    /// The line, from zero to the greatest of its values.
    pub(crate) fn above_zero(&self) -> String {
        self.between(0.0, self.range().map_or(0.0, |(_, high)| high))
    }

    fn between(&self, low: f64, high: f64) -> String {
        let level = |value: f64| {
            let share = if high > low {
                (value - low) / (high - low)
            } else {
                0.0
            };
            let index = (share * (LEVELS.len() - 1) as f64).round() as usize;
            LEVELS.get(index).copied().unwrap_or(MISSING)
        };
        let each = self.latest.iter();
        each.map(|value| value.map_or(MISSING, level)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_drawn_between_their_own_bounds() {
        let mut line = Sparkline::new(4);
        assert_eq!(line.line(), "");
        line.push(None);
        assert_eq!(line.line(), "×");
        for value in [10.0, 20.0, 80.0, 45.0] {
            line.push(Some(value));
        }
        assert!(
            ["▁▂█▅", "▁▂█▄"].contains(&line.line().as_str()),
            "{}",
            line.line()
        );
        assert_eq!(line.above_zero(), "▂▃█▅");
        line.push(None);
        assert!(line.line().ends_with('×') && line.line().starts_with('▁'));
        let mut flat = Sparkline::new(2);
        flat.push(Some(1.0));
        assert_eq!(flat.line(), "▁");
    }
}
