//! What goes on, while it does: a line on the terminal for people, which goes to standard error, and
//! only to a terminal; and lines of JSON for programs.

use std::time::{Duration, SystemTime};

use plumb_load::Progress;
use plumb_measure::progress::Watcher;
use serde_json::{Value, json};

use crate::status::Status;

/// A progress line; it disappears when dropped.
pub(crate) struct Line(Status);

impl Line {
    /// A line that says nothing yet.
    pub(crate) fn new() -> Self {
        Self(Status::new())
    }
}

impl Watcher for Line {
    fn step(&self, name: &str, takes: Duration) {
        self.0.step(match takes.as_secs() {
            0 => name.to_owned(),
            seconds => format!("{name} ({seconds} s)"),
        });
    }

    fn update(&self, text: &str) {
        self.0.update(text.to_owned());
    }
}

/// What goes on as lines of JSON on standard output.
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
