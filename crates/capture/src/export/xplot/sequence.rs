//! The graph of sequence numbers over time: segments as arrows, what repeats red with an R, the line of
//! acknowledgements green, the window's edge yellow, SACK blocks purple.

use super::pen::{Time, colour, line, mark, words};
use crate::followed::Followed;
use crate::packet::flags;
use crate::tcp::Class;

/// Duplicate acknowledgements that tcptrace marks: as many as call for a fast retransmission (RFC 5681, section 3.2).
const THREE: u32 = 3;

/// A line that continues at each acknowledgement.
#[derive(Debug, Default)]
struct Stairs(Option<(Time, u32)>);

impl Stairs {
    /// Continues to a value; `same` is the mark where it did not change.
    fn go(&mut self, text: &mut String, paint: &str, (at, value): (Time, u32), same: &str) {
        if let Some((before, last)) = self.0 {
            colour(text, paint);
            line(text, (before, last), (at, last));
            match last == value {
                true => mark(text, same, at, value),
                false => line(text, (at, last), (at, value)),
            }
        }
        self.0 = Some((at, value));
    }
}

/// The lines of the answers.
#[derive(Debug, Default)]
pub(super) struct Answers {
    acked: Stairs,
    allowed: Stairs,
    duplicates: u32,
}

/// Draws a segment as an arrow.
pub(super) fn sent(text: &mut String, followed: &Followed<'_>) {
    let (segment, at) = (followed.segment, Time(followed.unix_ns));
    let start = followed.sequence();
    let end = start.wrapping_add(segment.length());
    let classes = followed.classes;
    if segment.has(flags::SYN) {
        colour(text, "orange");
        mark(text, "diamond", at, start);
        words(text, at, end, "SYN");
        mark(text, "uarrow", at, end);
        line(text, (at, start), (at, end));
        return;
    }
    let late = classes.has(Class::OutOfOrder);
    if segment.payload_bytes > 0 && (classes.repeats() || late) {
        colour(text, "red");
        words(text, at, end, if late { "O" } else { "R" });
    } else {
        let ends = segment.has(flags::FIN);
        colour(text, if ends { "orange" } else { "white" });
    }
    mark(text, "darrow", at, start);
    let pushed = segment.has(flags::PSH) && segment.payload_bytes > 0;
    match (segment.has(flags::FIN), pushed) {
        (true, _) => mark(text, "box", at, end),
        (false, true) => mark(text, "diamond", at, end),
        (false, false) => mark(text, "uarrow", at, end),
    }
    if start != end {
        line(text, (at, start), (at, end));
    }
    if segment.has(flags::FIN) {
        words(text, at, end, "FIN");
    }
    if segment.has(flags::RST) {
        words(text, at, end, "RST");
    }
}

impl Answers {
    /// Draws what a segment of the other side acknowledges.
    pub(super) fn draw(&mut self, text: &mut String, followed: &Followed<'_>) {
        let (segment, at) = (followed.segment, Time(followed.unix_ns));
        if !segment.has(flags::ACK) || segment.has(flags::RST) {
            return;
        }
        let ack = followed.of_other(segment.ack);
        if segment.window == 0 {
            colour(text, "magenta");
            words(text, at, ack, "Z");
        }
        let repeats = followed.classes.has(Class::DuplicateAck);
        self.duplicates = if repeats { self.duplicates + 1 } else { 0 };
        self.acked.go(text, "green", (at, ack), "dtick");
        if self.duplicates == THREE {
            words(text, at, ack, "3");
        }
        if let Some(window) = followed.view.window_bytes {
            self.allowed
                .go(text, "yellow", (at, ack.wrapping_add(window)), "utick");
        }
        for (start, end) in segment.options.sack() {
            let (start, end) = (followed.of_other(start), followed.of_other(end));
            colour(text, "purple");
            line(text, (at, start), (at, end));
            mark(text, "htick", at, start);
            mark(text, "htick", at, end);
            words(text, at, end, "S");
        }
    }
}
