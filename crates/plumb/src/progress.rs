//! Progress: a line on the terminal for people, which goes to standard error, and only to a terminal; and
//! lines of JSON for programs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use plumb_load::Progress;
use plumb_measure::progress::Watcher;
use plumb_model::units::{human_seconds, si};
use serde_json::{Value, json};

use crate::sparkline::Sparkline;
use crate::status::Status;

/// How often a value is added to the small lines.
const EVERY: Duration = Duration::from_secs(1);

/// Values in each of them: with a rate, a latency and the time that is left they fit a terminal of 80 columns.
const VALUES: usize = 8;

/// A progress line; it disappears when dropped.
pub(crate) struct Line {
    status: Status,
    seen: Mutex<Seen>,
}

/// What the line is made of.
struct Seen {
    /// Which part of the plan is under way, of how many.
    part: Option<(usize, usize)>,
    /// When a value was added last.
    added: Option<Instant>,
    rates: Sparkline,
    round_trips: Sparkline,
    carried: Option<Progress>,
    round_trip: Option<Duration>,
}

impl Line {
    /// A line that shows nothing before the first step.
    pub(crate) fn new() -> Self {
        Self {
            status: Status::new(),
            seen: Mutex::new(Seen::new()),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    fn new() -> Self {
        Self {
            part: None,
            added: None,
            rates: Sparkline::new(VALUES),
            round_trips: Sparkline::new(VALUES),
            carried: None,
            round_trip: None,
        }
    }

    /// Adds the values of now to the small lines, when it is time.
    fn add(&mut self) {
        if self.added.is_some_and(|added| added.elapsed() < EVERY) {
            return;
        }
        self.added = Some(Instant::now());
        if let Some(carried) = &self.carried {
            self.rates.push(Some(carried.down_bps + carried.up_bps));
        }
        self.round_trips
            .push(self.round_trip.map(|rtt| rtt.as_secs_f64()));
    }

    /// The rate, and the round trip beside it, each with what it was in the last seconds.
    fn text(&self) -> String {
        let asks = self.carried.filter(|now| now.transactions_tps > 0.0);
        if let Some(asks) = asks {
            return format!("{:.0} transactions/s", asks.transactions_tps);
        }
        let rate = self
            .carried
            .as_ref()
            .map(|now| match (now.down_bps, now.up_bps) {
                (down, up) if down > 0.0 && up > 0.0 => both(down, up),
                (down, up) => format!("{} {}", si(down + up, "bit/s"), self.rates.above_zero()),
            });
        let round_trip = self.round_trip.map(|rtt| {
            format!(
                "latency {} {}",
                human_seconds(rtt.as_secs_f64()),
                self.round_trips.line()
            )
        });
        let known: Vec<String> = rate.into_iter().chain(round_trip).collect();
        known.join("  ")
    }
}

/// Both rates; the unit once where they have the same.
fn both(down_bps: f64, up_bps: f64) -> String {
    let [down, up] = [down_bps, up_bps].map(|bps| si(bps, "bit/s"));
    let down = match (down.split_once(' '), up.split_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => number.to_owned(),
        _ => down,
    };
    format!("↓ {down} ↑ {up}")
}

impl Watcher for Line {
    fn part(&self, number: usize, of: usize, left: Duration) {
        self.seen().part = Some((number, of));
        self.status.ends_in(left);
    }

    fn step(&self, name: &str, takes: Duration) {
        let mut seen = self.seen();
        let part = seen.part;
        *seen = Seen {
            part,
            ..Seen::new()
        };
        self.status.step(match (part, takes.as_secs()) {
            (Some((number, of)), _) => format!("{number}/{of} {name}"),
            (None, 0) => name.to_owned(),
            (None, seconds) => format!("{name} ({seconds} s)"),
        });
    }

    fn update(&self, text: &str) {
        self.status.update(text.to_owned());
    }

    fn round_trip(&self, rtt: Duration) {
        let mut seen = self.seen();
        seen.round_trip = Some(rtt);
        if seen.carried.is_none() {
            seen.add();
            self.status.update(seen.text());
        }
    }

    fn carried(&self, now: &Progress) {
        let mut seen = self.seen();
        // The small lines begin together.
        if seen.carried.replace(*now).is_none() {
            seen.added = None;
        }
        seen.add();
        self.status.update(seen.text());
    }
}

/// Progress as lines of JSON on standard output.
struct Events;

impl Events {
    fn say(mut event: Value) {
        let now = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
        if let Some(fields) = event.as_object_mut() {
            fields.insert("unix_s".to_owned(), now.as_secs_f64().into());
        }
        // A reader that stops still gets what is measured, in the file that was asked for.
        let _ = crate::stdout::print_json(&event);
    }
}

impl Watcher for Events {
    fn step(&self, name: &str, takes: Duration) {
        Self::say(json!({"event": "step", "name": name, "takes_s": takes.as_secs_f64()}));
    }

    fn update(&self, _text: &str) {}

    fn carried(&self, now: &Progress) {
        Self::say(json!({
            "event": "carried", "at_s": now.elapsed.as_secs_f64(), "down_bps": now.down_bps,
            "up_bps": now.up_bps, "transactions_tps": now.transactions_tps,
        }));
    }
}

/// Lines of JSON where they are asked for, and else the line for people.
pub(crate) fn watcher(json_lines: bool) -> Box<dyn Watcher> {
    match json_lines {
        true => Box::new(Events),
        false => Box::new(Line::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_and_latency_of_a_phase_fit_a_terminal_of_80_columns() {
        let mut seen = Seen::new();
        for second in 0..20 {
            seen.carried = Some(Progress {
                elapsed: Duration::from_secs(second),
                down_bps: 0.0,
                up_bps: 19.0e6 + second as f64,
                transactions_tps: 0.0,
            });
            seen.round_trip = Some(Duration::from_millis(698 + second));
            seen.added = None;
            seen.add();
        }
        let text = seen.text();
        assert!(text.starts_with("19.0 Mbit/s "), "{text}");
        assert!(text.contains("latency 717 ms ▁▂▃▄▅▆▇█"), "{text}");
        let line = format!("⠋ 3/6 downloading  {text}  240 s left");
        assert!(line.chars().count() < 80, "{line}");
        seen.carried = seen.carried.map(|now| Progress {
            down_bps: 94.13e6,
            ..now
        });
        let line = format!("⠋ 5/6 both at once  {}  124 s left", seen.text());
        assert!(line.contains("↓ 94.1 ↑ 19.0 Mbit/s"), "{line}");
        assert!(line.chars().count() < 80, "{line}");
    }
}
