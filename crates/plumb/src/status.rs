//! A line at the bottom of the terminal that is drawn again and again in its place, on standard error; where that is
//! no terminal, or one that cannot move its cursor, nothing is.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plumb_model::printable;
use plumb_net::terminal;

use crate::charset;
use crate::quiet::is_quiet;

/// How often the line is drawn.
const TICK: Duration = Duration::from_millis(100);

/// What turns while nothing else moves: dots of a Braille cell.
const TURNING: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// The same where the locale has ASCII alone; as many, so that both turn alike.
const TURNING_ASCII: [char; 10] = ['|', '/', '-', '\\', '|', '/', '-', '\\', '|', '/'];

/// Back to the first column, and erase to the right (ECMA-48, CR and EL).
const ERASE: &str = "\r\x1b[K";

/// The line that is on the terminal now, if any.
static SHOWN: Mutex<Option<Arc<Shared>>> = Mutex::new(None);

/// Writes to the terminal while the line is away, so that nothing of it is left among what is written. It is not to be
/// nested.
pub(crate) fn aside<T>(write: impl FnOnce() -> T) -> T {
    let shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let Some(shown) = shown else {
        return write();
    };
    let content = shown.lock();
    if content.is_drawn() {
        draw(ERASE);
    }
    let written = write();
    if content.is_drawn() {
        draw(&content.line(width()));
    }
    written
}

/// The line. It is erased when dropped, which also ends its thread.
pub(crate) struct Status {
    shared: Arc<Shared>,
    /// None where there is no terminal to draw on.
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    content: Mutex<Content>,
    over: Condvar,
}

struct Content {
    over: bool,
    turn: usize,
    since: Instant,
    /// When all is over, about; where it is known, what is left of it is shown in place of the time of the step.
    ends: Option<Instant>,
    step: String,
    text: String,
}

impl Status {
    pub(crate) fn new() -> Self {
        let shared = Arc::new(Shared {
            content: Mutex::new(Content {
                over: false,
                turn: 0,
                since: Instant::now(),
                ends: None,
                step: String::new(),
                text: String::new(),
            }),
            over: Condvar::new(),
        });
        let drawn = Arc::clone(&shared);
        let draw = move || drawn.draw_until_over();
        // Without a thread to draw it there is no line, which nothing else depends on.
        let spawn = || {
            thread::Builder::new()
                .name("status".to_owned())
                .spawn(draw)
                .ok()
        };
        let wanted = is_shown();
        let thread = wanted.then(spawn).flatten();
        if thread.is_some() {
            *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::clone(&shared));
        }
        Self { shared, thread }
    }

    /// Begins a step: its text is empty, and its time begins.
    pub(crate) fn step(&self, name: String) {
        let mut content = self.shared.lock();
        content.since = Instant::now();
        content.step = name;
        content.text.clear();
    }

    pub(crate) fn update(&self, text: String) {
        self.shared.lock().text = text;
    }

    /// All is over in about so long.
    pub(crate) fn ends_in(&self, left: Duration) {
        self.shared.lock().ends = Instant::now().checked_add(left);
    }
}

/// Whether there is a terminal for the line, and it is wanted.
pub(crate) fn is_shown() -> bool {
    io::stderr().is_terminal() && can_move() && !is_quiet()
}

/// Whether the terminal says that it can do more than print (terminfo's `dumb` cannot).
fn can_move() -> bool {
    !matches!(std::env::var("TERM").as_deref(), Ok("dumb") | Err(_))
}

impl Drop for Status {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.over.notify_all();
        if let Some(thread) = self.thread.take() {
            // It ends at once: it waits for nothing else, and panics nowhere.
            let _ = thread.join();
            let mut shown = SHOWN.lock().unwrap_or_else(PoisonError::into_inner);
            if shown
                .as_ref()
                .is_some_and(|shown| Arc::ptr_eq(shown, &self.shared))
            {
                *shown = None;
            }
            draw(ERASE);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw_until_over(&self) {
        let mut content = self.lock();
        while !content.over {
            if content.is_drawn() {
                draw(&content.line(width()));
            }
            content.turn = content.turn.wrapping_add(1);
            let waited = self.over.wait_timeout(content, TICK);
            content = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Content {
    /// Whether there is anything to show: before the first step there is not.
    fn is_drawn(&self) -> bool {
        !self.step.is_empty()
    }

    /// As much of it as a terminal of that width shows in one row; a character is a column.
    fn line(&self, columns: usize) -> String {
        let dots = match charset::is_ascii() {
            true => TURNING_ASCII,
            false => TURNING,
        };
        let turning = dots.into_iter().cycle().nth(self.turn % TURNING.len());
        let left = self
            .ends
            .map(|ends| ends.saturating_duration_since(Instant::now()));
        let time = match left {
            Some(left) => format!("{} s left", left.as_secs()),
            None => format!("{} s", self.since.elapsed().as_secs()),
        };
        let parts = [self.step.as_str(), &self.text, &time];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let text = printable::line(&format!(" {}", parts.join("  "))).into_owned();
        let line: String = turning
            .into_iter()
            .chain(charset::shown(&text).chars())
            // The last column stays free: some terminals go on to the next row once it is written.
            .take(columns.saturating_sub(1))
            .collect();
        format!("{ERASE}{line}")
    }
}

fn width() -> usize {
    /// Of a terminal that does not report it.
    const USUAL_COLUMNS: usize = 80;
    terminal::error_columns().unwrap_or(USUAL_COLUMNS)
}

/// Where standard error is closed, no line is wanted.
fn draw(text: &str) {
    let mut stderr = io::stderr().lock();
    let _ = stderr
        .write_all(text.as_bytes())
        .and_then(|()| stderr.flush());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_stays_in_its_row() {
        let mut content = Content {
            over: false,
            turn: 11,
            since: Instant::now(),
            ends: None,
            step: "upload (15 s)".to_owned(),
            text: "19.0 Mbit/s".to_owned(),
        };
        assert_eq!(
            content.line(80),
            format!("{ERASE}⠙ upload (15 s)  19.0 Mbit/s  0 s")
        );
        // What a far end said commands nothing.
        content.text = "a\u{1b}[2J\u{202e}b".to_owned();
        assert!(content.line(80).ends_with("a\u{fffd}[2J\u{fffd}b  0 s"));
        content.ends = Instant::now().checked_add(Duration::from_millis(24_500));
        assert!(content.line(80).ends_with("  24 s left"));
        content.text = "▁".repeat(200);
        let line = content.line(40);
        let shown = line.strip_prefix(ERASE).map(|line| line.chars().count());
        assert_eq!(shown, Some(39));
        assert_eq!(content.line(0), ERASE);
    }

    #[test]
    fn it_ends_when_it_is_dropped_and_keeps_what_is_printed() {
        let status = Status::new();
        status.step("idle".to_owned());
        status.update("20 ms".to_owned());
        assert_eq!(aside(|| 7), 7);
        drop(status);
    }
}
