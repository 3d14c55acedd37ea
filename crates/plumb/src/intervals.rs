//! What a load carries, a line for each interval while it runs, as iperf3 prints it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plumb_load::Progress;
use plumb_measure::progress::Watcher;
use plumb_model::units::{ByteCount, si};
use plumb_probe::Seen;

use crate::output::print;
use crate::progress::Line;
use crate::quantity::time_from;

/// Loads are looked at every 100 ms (`plumb_load::Progress`).
const LEAST: Duration = Duration::from_millis(100);

/// What is left of a phase behind its last whole interval is worth a line from this share of one.
const LEAST_REST: f64 = 0.1;

pub(crate) fn interval(text: &str) -> Result<Duration, String> {
    time_from(
        LEAST,
        "loads are looked at every 100 ms: an interval of 100ms or more is needed",
    )(text)
}

/// Prints lines on standard output, beside the progress line.
pub(crate) struct Intervals {
    line: Line,
    counted: Mutex<Counted>,
}

impl Intervals {
    pub(crate) fn new(every: Duration) -> Self {
        Self {
            line: Line::new(),
            counted: Mutex::new(Counted::new(every)),
        }
    }

    fn say(text: Option<String>) {
        // A reader that stops gets the result by the file that was asked for, or not at all.
        let _ = text.map(|text| print(&text));
    }
}

impl Watcher for Intervals {
    fn step(&self, name: &str, takes: Duration) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        Self::say(counted.begin(name));
        self.line.step(name, takes);
    }

    fn update(&self, text: &str) {
        self.line.update(text);
    }

    fn part(&self, number: usize, of: usize, left: Duration) {
        self.line.part(number, of, left);
    }

    fn round_trip(&self, rtt: Duration) {
        self.line.round_trip(rtt);
    }

    fn carried(&self, now: &Progress) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        Self::say(counted.add(now));
        self.line.carried(now);
    }

    fn probe(&self, seen: &Seen) {
        self.line.probe(seen);
    }
}

impl Drop for Intervals {
    fn drop(&mut self) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        Self::say(counted.rest());
    }
}

/// What was carried since the last line.
struct Counted {
    every: Duration,
    /// What is measured at the moment.
    step: String,
    /// Where in the phase the last line ended, and the latest look.
    printed: Duration,
    looked: Duration,
    down_bytes: f64,
    up_bytes: f64,
}

impl Counted {
    fn new(every: Duration) -> Self {
        Self {
            every,
            step: String::new(),
            printed: Duration::ZERO,
            looked: Duration::ZERO,
            down_bytes: 0.0,
            up_bytes: 0.0,
        }
    }

    /// Begins a step; what is left of the one before.
    fn begin(&mut self, name: &str) -> Option<String> {
        let rest = self.rest();
        *self = Self {
            step: name.to_owned(),
            ..Self::new(self.every)
        };
        rest
    }

    /// Counts what was carried since the last look; a line where that ends an interval.
    fn add(&mut self, now: &Progress) -> Option<String> {
        // A new phase of the same step begins from nothing.
        let rest = (now.elapsed < self.looked).then(|| self.begin(&self.step.clone()));
        let passed_s = now.elapsed.saturating_sub(self.looked).as_secs_f64();
        self.looked = now.elapsed;
        self.down_bytes += now.down_bps * passed_s / 8.0;
        self.up_bytes += now.up_bps * passed_s / 8.0;
        let over = self.looked.saturating_sub(self.printed) >= self.every;
        let line = over.then(|| self.line());
        let lines: String = rest.flatten().into_iter().chain(line).collect();
        (!lines.is_empty()).then_some(lines)
    }

    /// The line of what is left behind the last whole interval.
    fn rest(&mut self) -> Option<String> {
        let passed = self.looked.saturating_sub(self.printed);
        let shows = passed.as_secs_f64() >= LEAST_REST * self.every.as_secs_f64();
        shows.then(|| self.line())
    }

    /// The line, after which the next interval begins.
    fn line(&mut self) -> String {
        let (from, to) = (self.printed.as_secs_f64(), self.looked.as_secs_f64());
        let amount = |name: &str, bytes: f64| match bytes > 0.0 {
            true => format!(
                "  {name}{:>8}  {:>11}",
                ByteCount::from_bytes(bytes as u64).to_string(),
                si(bytes * 8.0 / (to - from).max(f64::EPSILON), "bit/s")
            ),
            false => String::new(),
        };
        let both = self.down_bytes > 0.0 && self.up_bytes > 0.0;
        let names = if both { ["↓ ", "↑ "] } else { ["", ""] };
        let [down, up] = names;
        let text = match self.down_bytes + self.up_bytes > 0.0 {
            true => amount(down, self.down_bytes) + &amount(up, self.up_bytes),
            false => "  nothing".to_owned(),
        };
        let line = format!("{from:>5.1} to {to:>5.1} s  {:<12}{text}\n", self.step);
        self.printed = self.looked;
        self.down_bytes = 0.0;
        self.up_bytes = 0.0;
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(tenths: u64, down_bps: f64, up_bps: f64) -> Progress {
        Progress {
            elapsed: Duration::from_millis(tenths * 100),
            down_bps,
            up_bps,
            transactions_tps: 0.0,
        }
    }

    #[test]
    fn each_interval_has_a_line_of_what_it_carried() {
        let mut counted = Counted::new(Duration::from_secs(1));
        assert_eq!(counted.begin("uploading"), None);
        let lines: Vec<String> = (1..=20)
            .filter_map(|n| counted.add(&look(n, 0.0, if n <= 10 { 8.0e6 } else { 16.0e6 })))
            .collect();
        assert_eq!(
            lines,
            [
                "  0.0 to   1.0 s  uploading      1.00 MB  8.00 Mbit/s\n",
                "  1.0 to   2.0 s  uploading      2.00 MB  16.0 Mbit/s\n",
            ]
        );
        // What is left of the phase is a line, and the next phase begins from nothing.
        assert_eq!(counted.add(&look(25, 0.0, 8.0e6)), None);
        let rest = counted.begin("downloading").unwrap_or_default();
        assert!(rest.contains("2.0 to   2.5 s  uploading"), "{rest}");
        assert_eq!(counted.rest(), None);
    }

    #[test]
    fn both_directions_stand_beside_each_other_in_80_columns() {
        let mut counted = Counted::new(Duration::from_millis(100));
        counted.begin("both at once");
        let line = counted.add(&look(1, 94.1e6, 18.9e6)).unwrap_or_default();
        assert!(line.contains("↓ ") && line.contains("↑ "), "{line}");
        assert!(line.trim_end().chars().count() <= 80, "{line}");
        let silent = counted.add(&look(2, 0.0, 0.0)).unwrap_or_default();
        assert!(silent.ends_with("nothing\n"), "{silent}");
    }
}
