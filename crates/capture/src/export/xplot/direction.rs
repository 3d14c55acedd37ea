//! The four graphs of a direction of a connection.

use super::pen::{self, Time, colour, line, mark};
use super::sequence::{self, Answers};
use super::sheets::{Folder, Place, Sheets};
use crate::followed::Followed;

const NS_PER_S: f64 = 1e9;
const NS_PER_MS: f64 = 1e6;
/// Segments with payload that the throughput is a mean of, as tcptrace has it.
const MEAN_OF: u32 = 10;

/// A direction and what its lines go on from.
pub(super) struct Direction {
    sequence: Place,
    throughput: Place,
    round_trips: Place,
    on_their_way: Place,
    answers: Answers,
    rates: Rates,
    round_trip: Option<(Time, f64)>,
    in_flight: Option<(Time, u32)>,
    window: Option<u32>,
    allowed: Option<(Time, u32)>,
}

/// Where payload of the throughput is counted from.
#[derive(Debug, Default)]
struct Rates {
    first_ns: Option<u64>,
    bytes: u64,
    last_ns: u64,
    /// Time, payload and segments since the latest mean.
    mean_ns: u64,
    mean_bytes: u64,
    segments: u32,
    mean: Option<(Time, u64)>,
    whole: Option<(Time, u64)>,
}

impl Direction {
    pub(super) fn new<F: Folder>(sheets: &mut Sheets<F>, name: &str, title: &str) -> Self {
        let mut begin = |kind: &str, what: &str, axis: &str| {
            let head = pen::head(&format!("{title} ({what})"), axis);
            sheets.begin(format!("{name}_{kind}.xpl"), head)
        };
        Self {
            sequence: begin("tsg", "time sequence graph", "sequence number"),
            throughput: begin("tput", "throughput", "thruput (bytes/sec)"),
            round_trips: begin("rtt", "rtt samples", "rtt (ms)"),
            on_their_way: begin("owin", "outstanding data", "Outstanding Data (bytes)"),
            answers: Answers::default(),
            rates: Rates::default(),
            round_trip: None,
            in_flight: None,
            window: None,
            allowed: None,
        }
    }

    /// Draws a segment of this direction.
    pub(super) fn sent<F: Folder>(&mut self, sheets: &mut Sheets<F>, followed: &Followed<'_>) {
        sheets.draw(self.sequence, |text| sequence::sent(text, followed));
        if followed.segment.payload_bytes > 0 {
            sheets.draw(self.throughput, |text| self.rates.draw(text, followed));
        }
        if followed.segment.length() > 0 {
            let [own, _] = followed.view.in_flight_bytes;
            self.outstanding(sheets, followed, own);
        }
    }

    /// Draws what a segment of the other side says of this direction.
    pub(super) fn answered<F: Folder>(&mut self, sheets: &mut Sheets<F>, followed: &Followed<'_>) {
        sheets.draw(self.sequence, |text| self.answers.draw(text, followed));
        self.window = followed.view.window_bytes.or(self.window);
        if let Some(ns) = followed.rtt_ns {
            let point = (Time(followed.unix_ns), ns as f64 / NS_PER_MS);
            let before = self.round_trip.replace(point);
            sheets.draw(self.round_trips, |text| go(text, "red", before, point));
        }
        let [_, left] = followed.view.in_flight_bytes;
        if self.in_flight.is_some_and(|(_, before)| before != left) {
            self.outstanding(sheets, followed, left);
        }
    }

    fn outstanding<F: Folder>(
        &mut self,
        sheets: &mut Sheets<F>,
        followed: &Followed<'_>,
        bytes: u32,
    ) {
        let at = Time(followed.unix_ns);
        let before = self.in_flight.replace((at, bytes));
        let allowed = self.window.map(|window| (at, window));
        let last = std::mem::replace(&mut self.allowed, allowed);
        sheets.draw(self.on_their_way, |text| {
            go(text, "red", before, (at, bytes));
            if let Some(allowed) = allowed {
                go(text, "yellow", last, allowed);
            }
        });
    }
}

/// A dot, and the line to it.
fn go<V: std::fmt::Display>(
    text: &mut String,
    paint: &str,
    before: Option<(Time, V)>,
    (at, value): (Time, V),
) {
    colour(text, paint);
    mark(text, "dot", at, &value);
    if let Some(before) = before {
        line(text, (at, value), before);
    }
}

impl Rates {
    /// Draws the rate since the segment before (yellow), of the last ten (red), and of all (blue), in bytes a second.
    fn draw(&mut self, text: &mut String, followed: &Followed<'_>) {
        let (now, bytes) = (followed.unix_ns, u64::from(followed.segment.payload_bytes));
        let Some(first_ns) = self.first_ns else {
            self.first_ns = Some(now);
            (self.last_ns, self.mean_ns) = (now, now);
            return;
        };
        let at = Time(now);
        if let Some(rate) = rate(bytes, self.last_ns, now) {
            colour(text, "yellow");
            mark(text, "dot", at, rate);
        }
        self.last_ns = now;
        self.bytes += bytes;
        self.mean_bytes += bytes;
        self.segments += 1;
        if self.segments < MEAN_OF {
            return;
        }
        if let Some(rate) = rate(self.mean_bytes, self.mean_ns, now) {
            go(text, "red", self.mean.replace((at, rate)), (at, rate));
        }
        if let Some(rate) = rate(self.bytes, first_ns, now) {
            go(text, "blue", self.whole.replace((at, rate)), (at, rate));
        }
        (self.mean_ns, self.mean_bytes, self.segments) = (now, 0, 0);
    }
}

/// Bytes a second; none where no time passed.
fn rate(bytes: u64, from_ns: u64, to_ns: u64) -> Option<u64> {
    let ns = to_ns.checked_sub(from_ns).filter(|ns| *ns > 0)?;
    Some((bytes as f64 * NS_PER_S / ns as f64) as u64)
}
