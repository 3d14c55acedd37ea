//! The latest round trips as one line of characters.

use std::collections::VecDeque;
use std::time::Duration;

use plumb_model::units::human_seconds;

/// A round trip is one of these, from the shortest shown to the longest.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
const LOST: char = '×';

/// The latest round trips, a character each.
#[derive(Debug)]
pub(crate) struct Chart {
    width: usize,
    latest: VecDeque<Option<Duration>>,
}

impl Chart {
    /// A chart of at most so many round trips.
    pub(crate) fn new(width: usize) -> Self {
        Self {
            width: width.max(1),
            latest: VecDeque::new(),
        }
    }

    /// Adds a round trip, or a loss.
    pub(crate) fn push(&mut self, rtt: Option<Duration>) {
        if self.latest.len() >= self.width {
            self.latest.pop_front();
        }
        self.latest.push_back(rtt);
    }

    /// The line, with what its lowest and highest characters stand for.
    pub(crate) fn line(&self) -> String {
        let shortest = self.latest.iter().flatten().min().copied();
        let longest = self.latest.iter().flatten().max().copied();
        let (Some(shortest), Some(longest)) = (shortest, longest) else {
            return self.latest.iter().map(|_| LOST).collect();
        };
        let range = (longest - shortest).as_secs_f64();
        let level = |rtt: &Duration| {
            let above = (*rtt - shortest).as_secs_f64();
            let share = if range > 0.0 { above / range } else { 0.0 };
            let index = (share * (LEVELS.len() - 1) as f64).round() as usize;
            LEVELS.get(index).copied().unwrap_or(LOST)
        };
        let line: String = self
            .latest
            .iter()
            .map(|rtt| rtt.as_ref().map_or(LOST, level))
            .collect();
        let human = |time: Duration| human_seconds(time.as_secs_f64());
        format!("{line}  {}–{}", human(shortest), human(longest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_are_drawn_between_their_own_bounds() {
        let mut chart = Chart::new(4);
        assert_eq!(chart.line(), "");
        chart.push(None);
        assert_eq!(chart.line(), "×");
        for ms in [10, 20, 80, 45] {
            chart.push(Some(Duration::from_millis(ms)));
        }
        let line = chart.line();
        assert!(
            line.starts_with("▁▂█▅") || line.starts_with("▁▂█▄"),
            "{line}"
        );
        chart.push(None);
        assert!(chart.line().contains('×') && chart.line().starts_with('▁'));
        let mut flat = Chart::new(2);
        flat.push(Some(Duration::from_millis(1)));
        assert!(flat.line().starts_with('▁'));
    }
}
