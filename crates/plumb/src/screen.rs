//! The whole terminal, for what is drawn anew again and again. Nothing is longer than the terminal is wide.

use std::io::{IsTerminal as _, Write as _, stdout};

use plumb_model::printable;
use plumb_net::terminal::{self, Keys};

use crate::charset;

/// Columns and lines where the terminal does not report them.
const USUAL_SIZE: (usize, usize) = (100, 24);

/// The terminal, which is as it was before when this is dropped.
pub(crate) struct Screen {
    keys: Option<Keys>,
}

impl Screen {
    /// The terminal on standard output; `None` where that is none.
    pub(crate) fn open() -> Option<Self> {
        if !stdout().is_terminal() {
            return None;
        }
        // The other screen (xterm's 1049), without the cursor.
        let _ = write!(stdout(), "\x1b[?1049h\x1b[?25l");
        Some(Self {
            keys: Keys::listen().ok(),
        })
    }

    /// What was pressed since the last time, as the terminal sends it.
    pub(crate) fn pressed(&self) -> Vec<u8> {
        self.keys.as_ref().map_or_else(Vec::new, Keys::read)
    }

    /// Width and height in characters.
    pub(crate) fn size(&self) -> (usize, usize) {
        terminal::size().unwrap_or(USUAL_SIZE)
    }

    /// Draws lines that fit.
    pub(crate) fn draw(&self, lines: &[String]) {
        // No new line behind the last one, which would move all up.
        let text = lines.join("\x1b[K\r\n");
        let mut out = stdout().lock();
        // A terminal that is gone ends the program by a signal.
        let _ = write!(out, "\x1b[H{text}\x1b[K\x1b[J").and_then(|()| out.flush());
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let mut out = stdout().lock();
        let _ = write!(out, "\x1b[?25h\x1b[?1049l").and_then(|()| out.flush());
    }
}

/// Lines for a terminal that is so wide, without characters that it would not show unchanged.
pub(crate) fn fitted(lines: Vec<String>, width: usize) -> Vec<String> {
    // What stands in the last column, a terminal may wipe out with the rest of the line.
    let width = width.saturating_sub(1);
    let fit = |line: String| {
        let line: String = printable::line(&line).chars().take(width).collect();
        charset::shown(&line).into_owned()
    };
    lines.into_iter().map(fit).collect()
}
