//! A line at the bottom of the terminal that is drawn again and again in its place, on standard error; where that is
//! no terminal, or one that cannot move its cursor, nothing is. Whatever else is printed meanwhile stands above it.

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

/// The same where the locale has ASCII alone; as many, so that both turn alike.
const TURNING_ASCII: [char; 10] = ['|', '/', '-', '\\', '|', '/', '-', '\\', '|', '/'];

/// What turns while nothing else moves: dots of a Braille cell.
const TURNING: [char; 10] = ['⠋', '⠙', '⠹', '⠸', '⠼', '⠴', '⠦', '⠧', '⠇', '⠏'];

/// Back to the first column, and erase to the right (ECMA-48, CR and EL).
const ERASE: &str = "\r\x1b[K";

/// The line that is drawn at the moment.
static DRAWN: Mutex<Option<Arc<Shared>>> = Mutex::new(None);

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
                step: String::new(),
                text: String::new(),
            }),
            over: Condvar::new(),
        });
        let drawn = Arc::clone(&shared);
        let draw = move || drawn.draw_until_over();
        let wanted = io::stderr().is_terminal() && can_move() && !is_quiet();
        // Without a thread to draw it there is no line, which nothing else depends on.
        let spawn = || {
            thread::Builder::new()
                .name("status".to_owned())
                .spawn(draw)
                .ok()
        };
        let thread = wanted.then(spawn).flatten();
        if thread.is_some() {
            *lock(&DRAWN) = Some(Arc::clone(&shared));
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
}

/// Does what writes to the terminal itself while the line is away, if one is drawn.
pub(crate) fn aside<T>(write: impl FnOnce() -> T) -> T {
    let Some(shared) = lock(&DRAWN).clone() else {
        return write();
    };
    let content = shared.lock();
    draw(ERASE);
    let written = write();
    if !content.over {
        draw(&content.line(width()));
    }
    written
}

/// Whether the terminal says that it can do more than print (terminfo's `dumb` cannot).
fn can_move() -> bool {
    !matches!(std::env::var("TERM").as_deref(), Ok("dumb") | Err(_))
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Status {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.over.notify_all();
        if let Some(thread) = self.thread.take() {
            *lock(&DRAWN) = None;
            // It ends at once: it waits for nothing else, and panics nowhere.
            let _ = thread.join();
            draw(ERASE);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Content> {
        lock(&self.content)
    }

    fn draw_until_over(&self) {
        let mut content = self.lock();
        while !content.over {
            draw(&content.line(width()));
            content.turn = content.turn.wrapping_add(1);
            let waited = self.over.wait_timeout(content, TICK);
            content = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Content {
    /// As much of it as a terminal of that width shows in one row; a character is a column.
    fn line(&self, columns: usize) -> String {
        if self.step.is_empty() {
            return String::from(ERASE);
        }
        let dots = match charset::is_ascii() {
            true => TURNING_ASCII,
            false => TURNING,
        };
        let turning = dots.into_iter().cycle().nth(self.turn % TURNING.len());
        let seconds = self.since.elapsed().as_secs();
        let told = format!(" {}  {}  {seconds}s", self.step, self.text);
        let told = printable::line(&told);
        let line: String = turning
            .into_iter()
            .chain(charset::shown(&told).chars())
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
            step: "upload (15 s)".to_owned(),
            text: "19.0 Mbit/s".to_owned(),
        };
        assert_eq!(
            content.line(80),
            format!("{ERASE}⠙ upload (15 s)  19.0 Mbit/s  0s")
        );
        // What a far end said commands nothing.
        content.text = "a\u{1b}[2J\u{202e}b".to_owned();
        assert!(content.line(80).ends_with("a\u{fffd}[2J\u{fffd}b  0s"));
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
