//! A line on the terminal that says what goes on. It goes to standard error, and only to a
//! terminal.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use plumb_check::watcher::Watcher;

/// How often the line moves although nothing is said.
const TICK: Duration = Duration::from_millis(100);

/// A progress line; it disappears when dropped.
pub(crate) struct Line(ProgressBar);

impl Line {
    /// A line that says nothing yet.
    pub(crate) fn new() -> Self {
        // indicatif draws nothing when standard error is no terminal.
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}  {msg}  {elapsed}") {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Self(bar)
    }
}

impl Line {
    /// Prints to standard output without the line being in the way.
    pub(crate) fn print(&self, text: &str) -> anyhow::Result<()> {
        self.0.suspend(|| crate::output::print(text))
    }
}

impl Watcher for Line {
    fn step(&self, name: &str, takes: Duration) {
        self.0.reset_elapsed();
        self.0.set_message("");
        self.0.set_prefix(match takes.as_secs() {
            0 => name.to_owned(),
            seconds => format!("{name} ({seconds} s)"),
        });
    }

    fn update(&self, text: &str) {
        self.0.set_message(text.to_owned());
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
