//! The shortest of what was seen lately. Pure.

use std::collections::VecDeque;

/// Of the last minute, so that it follows a route that becomes longer, and clocks that drift apart.
const SPANS: usize = 6;
const SPAN_S: f64 = 10.0;

/// The shortest delay of each span, with when it began; the latest is last.
#[derive(Debug, Default)]
pub(super) struct Baseline(VecDeque<(f64, f64)>);

impl Baseline {
    /// Takes note of a delay that was seen at a time.
    pub(super) fn see(&mut self, at_s: f64, delay_s: f64) {
        match self.0.back_mut() {
            Some((began_s, shortest_s)) if at_s < *began_s + SPAN_S => {
                *shortest_s = shortest_s.min(delay_s);
            }
            _ => self.0.push_back((at_s, delay_s)),
        }
        while self.0.len() > SPANS {
            self.0.pop_front();
        }
    }

    /// The shortest of all; none where nothing was seen.
    pub(super) fn shortest_s(&self) -> Option<f64> {
        self.0.iter().map(|(_, delay_s)| *delay_s).reduce(f64::min)
    }

    /// Begins anew with that.
    pub(super) fn begin(&mut self, at_s: f64, delay_s: f64) {
        self.0 = VecDeque::from([(at_s, delay_s)]);
    }
}
