//! What is shown while one target is probed: a line for each answer on standard output, and on a
//! terminal a chart of the latest round trips below them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use plumb_measure::progress::Watcher;
use plumb_probe::{Said, Seen};
use serde_json::json;

use super::chart::Chart;
use crate::progress::Line;

/// Round trips in the chart: it fits a terminal of 80 characters beside the counts.
const CHART_WIDTH: usize = 30;

/// What each answer is printed as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lines {
    None,
    /// As ping does; with the time of day where asked for.
    Text {
        /// Whether each line begins with the time, in seconds since 1970.
        stamped: bool,
    },
    /// An object in JSON.
    Json,
}

/// What an answer was: what it said, where the protocol has several, else its size.
pub(super) fn answered(said: Option<Said>, size_bytes: usize) -> String {
    said.map_or_else(|| format!("{size_bytes} bytes"), |said| said.to_string())
}

/// Shows what is seen.
pub(crate) struct Live {
    line: Line,
    lines: Lines,
    /// Whether there is a line for a probe that is not answered when the next one leaves.
    outstanding: bool,
    /// The far end, as each line names it.
    far_end: String,
    chart: Mutex<Chart>,
}

impl Live {
    /// Names the far end by name and address, or by its address alone.
    pub(crate) fn new(
        (lines, outstanding): (Lines, bool),
        name: &str,
        address: &str,
        numeric: bool,
    ) -> Self {
        let far_end = match numeric || name == address {
            true => address.to_owned(),
            false => format!("{name} ({address})"),
        };
        Self {
            line: Line::new(),
            lines,
            outstanding,
            far_end,
            chart: Mutex::new(Chart::new(CHART_WIDTH)),
        }
    }

    fn text(&self, seen: &Seen, stamped: bool) -> String {
        let far_end = &self.far_end;
        let text = match seen {
            Seen::Answered {
                sequence,
                size_bytes,
                rtt,
                hop_limit,
                said,
                ..
            } => {
                let what = answered(*said, *size_bytes);
                let ttl = hop_limit.map_or_else(String::new, |hops| format!(" ttl={hops}"));
                let ms = rtt.as_secs_f64() * 1e3;
                format!("{what} from {far_end}: seq={sequence}{ttl} time={ms:.3} ms")
            }
            Seen::Again { sequence } => format!("{far_end}: seq={sequence} answered again (DUP!)"),
            Seen::Outstanding { sequence } => {
                format!("no answer yet from {far_end}: seq={sequence}")
            }
            Seen::Lost { sequence } => format!("no answer from {far_end}: seq={sequence}"),
            Seen::Told(what) => what.clone(),
        };
        let stamp = match (stamped, seen) {
            (true, Seen::Answered { at_ns, .. }) => {
                format!(
                    "[{}.{:06}] ",
                    at_ns / 1_000_000_000,
                    at_ns / 1_000 % 1_000_000
                )
            }
            _ => String::new(),
        };
        format!("{stamp}{text}\n")
    }

    fn json(&self, seen: &Seen) -> String {
        let target = &self.far_end;
        let event = match seen {
            Seen::Answered {
                sequence,
                size_bytes,
                rtt,
                hop_limit,
                said,
                at_ns,
            } => json!({
                "event": "answer", "target": target, "sequence": sequence, "size_bytes": size_bytes,
                "rtt_s": rtt.as_secs_f64(), "hop_limit": hop_limit,
                "answer": said.map(|said| said.to_string()), "unix_s": *at_ns as f64 / 1e9,
            }),
            Seen::Again { sequence } => {
                json!({"event": "duplicate", "target": target, "sequence": sequence})
            }
            Seen::Outstanding { sequence } => {
                json!({"event": "outstanding", "target": target, "sequence": sequence})
            }
            Seen::Lost { sequence } => {
                json!({"event": "lost", "target": target, "sequence": sequence})
            }
            Seen::Told(what) => json!({"event": "told", "target": target, "what": what}),
        };
        // A value always has a form in JSON.
        crate::stdout::json(&event).unwrap_or_default()
    }
}

impl Watcher for Live {
    fn step(&self, name: &str, takes: Duration) {
        self.line.step(name, takes);
    }

    fn update(&self, text: &str) {
        let chart = self.chart.lock().unwrap_or_else(PoisonError::into_inner);
        self.line.update(&format!("{text}  {}", chart.line()));
    }

    fn probe(&self, seen: &Seen) {
        let mut chart = self.chart.lock().unwrap_or_else(PoisonError::into_inner);
        match seen {
            Seen::Answered { rtt, .. } => chart.push(Some(*rtt)),
            Seen::Lost { .. } => chart.push(None),
            Seen::Outstanding { .. } if !self.outstanding => return,
            Seen::Again { .. } | Seen::Outstanding { .. } | Seen::Told(_) => {}
        }
        let text = match self.lines {
            Lines::None => return,
            Lines::Text { stamped } => self.text(seen, stamped),
            Lines::Json => self.json(seen),
        };
        // Where standard output fails, the Run that is printed at the end says so.
        let _ = crate::stdout::print(&text);
    }
}
