//! The path on the terminal while it is traced: a line a hop, with mtr's columns and keys, and its time line, which can be
//! moved back in time. No line is longer than the terminal is wide, and there are no more than it has.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_probe::path::names::Names;
use plumb_probe::path::trace::TraceLog;

use crate::screen::{Screen, fitted};

/// How often it is drawn anew.
const EVERY: Duration = Duration::from_millis(250);
/// Width of the column of names.
const NAME_COLUMNS: usize = 28;
/// Width of all columns of mtr, with the space before them.
const STATISTICS_COLUMNS: usize = 46;
/// Width of the columns beside time lines, with the space before them: loss and the latest round trip.
const BESIDE_COLUMNS: usize = 14;
/// The shortest time line.
const LEAST_SHOWN: usize = 10;
/// Lines besides the lines of hops: two above their head, the head, and two below them.
const OTHER_LINES: usize = 5;
/// Levels of a time line, from the best round trip shown to the worst.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The view. The screen is as it was before when it is dropped.
pub(crate) struct View {
    screen: Screen,
    stop: Arc<AtomicBool>,
    place: Place,
    drawn: Option<Instant>,
    /// Whether the trace was ended to begin one with the other kind of probes.
    switches: bool,
}

/// What part of all that is known is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    /// Cycles that the right end of the time lines lies back.
    back: usize,
    /// Hops above the first that is shown, where not all fit.
    above: usize,
    /// Cycles before this one count no more.
    since: usize,
    /// The cycles there were when the view was paused.
    paused: Option<usize>,
    /// Whether time lines have the room of the statistics.
    lines: bool,
}

impl View {
    /// A view on the terminal; `None` where standard output is none. `q` sets `stop`.
    pub(crate) fn open(stop: &Arc<AtomicBool>) -> Option<Self> {
        Some(Self {
            screen: Screen::open()?,
            stop: Arc::clone(stop),
            place: Place::default(),
            drawn: None,
            switches: false,
        })
    }

    /// Whether the other kind of probes was asked for since the last time; a trace begins with nothing to show.
    pub(crate) fn switches(&mut self) -> bool {
        self.place = Place {
            lines: self.place.lines,
            ..Place::default()
        };
        std::mem::take(&mut self.switches)
    }

    /// Draws what is known, when it is time or a key was pressed.
    pub(crate) fn show(&mut self, log: &TraceLog, names: &Names) {
        let pressed = self.take_keys(log.cycles as usize);
        if !pressed && self.drawn.is_some_and(|drawn| drawn.elapsed() < EVERY) {
            return;
        }
        self.drawn = Some(Instant::now());
        let name = |address| names.get(address);
        let size = self.screen.size();
        self.screen.draw(&frame(log, &name, &mut self.place, size));
    }

    /// Whether there was a key.
    fn take_keys(&mut self, cycles: usize) -> bool {
        const PAGE: usize = 20;
        let pressed = self.screen.pressed();
        let mut rest = pressed.as_slice();
        while let Some((_, after)) = rest.split_first() {
            let Place { back, above, .. } = self.place;
            let mut place = self.place;
            let used = match rest {
                [0x1b, b'[', b'5', b'~', ..] | [0x1b, b'[', b'6', b'~', ..] => 4,
                [0x1b, b'[', b'A'..=b'D', ..] => 3,
                _ => 1,
            };
            match rest.get(..used).unwrap_or_default() {
                [.., b'[', b'D'] | b"h" => place.back = back + 1,
                [.., b'[', b'C'] | b"l" => place.back = back.saturating_sub(1),
                [.., b'[', b'B'] | b"j" => place.above = above + 1,
                [.., b'[', b'A'] | b"k" => place.above = above.saturating_sub(1),
                [.., b'5', b'~'] => place.back = back + PAGE,
                [.., b'6', b'~'] => place.back = back.saturating_sub(PAGE),
                b"0" => place.back = 0,
                b"d" => place.lines = !place.lines,
                b"p" | b" " => {
                    place.paused = match place.paused {
                        None => Some(cycles),
                        Some(_) => None,
                    }
                }
                b"r" => (place.since, place.back) = (cycles, 0),
                b"u" => {
                    self.switches = true;
                    self.stop.store(true, Ordering::Relaxed);
                }
                b"q" => self.stop.store(true, Ordering::Relaxed),
                _ => {}
            }
            let most = cycles.saturating_sub(place.since + 1);
            self.place = Place {
                back: place.back.min(most),
                ..place
            };
            rest = rest.get(used..).unwrap_or(after);
        }
        !pressed.is_empty()
    }
}

/// What is known of a hop up to some cycle.
#[derive(Default)]
struct Row {
    address: Option<IpAddr>,
    sent: u64,
    rtts: Vec<f64>,
    /// The round trip of each cycle shown; `None` where it was not answered.
    line: BTreeMap<usize, Option<f64>>,
    arrived: bool,
}

impl Row {
    /// Its numbers: loss and the latest round trip beside a time line, else all columns of mtr.
    fn columns(&self, lines: bool) -> String {
        let unanswered = self.sent.saturating_sub(self.rtts.len() as u64) as f64;
        let loss = format!("{:>5.1}%", unanswered / self.sent.max(1) as f64 * 100.0);
        let shown = |value: Option<f64>| value.map_or_else(String::new, ms);
        let last = shown(self.rtts.last().copied());
        if lines {
            return format!("{loss} {last:>6}");
        }
        let of = |pick: fn(f64, f64) -> f64| shown(self.rtts.iter().copied().reduce(pick));
        format!(
            "{loss} {:>4} {last:>6} {:>6} {:>6} {:>6} {:>6}",
            self.sent,
            shown(self.mean()),
            of(f64::min),
            of(f64::max),
            shown(self.deviation()),
        )
    }

    fn mean(&self) -> Option<f64> {
        let count = self.rtts.len() as f64;
        (count > 0.0).then(|| self.rtts.iter().sum::<f64>() / count)
    }

    /// The standard deviation of a sample, as mtr has it.
    fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        let squares: f64 = self.rtts.iter().map(|rtt| (rtt - mean).powi(2)).sum();
        let free = self.rtts.len().saturating_sub(1).max(1) as f64;
        Some((squares / free).sqrt())
    }
}

/// Milliseconds with as many digits as a column of six shows.
fn ms(seconds: f64) -> String {
    let ms = seconds * 1e3;
    match ms {
        small if small < 10.0 => format!("{ms:.2}"),
        usual if usual < 1000.0 => format!("{ms:.1}"),
        _ => format!("{ms:.0}"),
    }
}

/// The picture, line by line. `place` is held to what there is.
fn frame(
    log: &TraceLog,
    name: &dyn Fn(IpAddr) -> Option<String>,
    place: &mut Place,
    (width, height): (usize, usize),
) -> Vec<String> {
    // The last column stays empty.
    let room = width.saturating_sub(NAME_COLUMNS + 5);
    let beside = match place.lines {
        true => BESIDE_COLUMNS,
        false => STATISTICS_COLUMNS,
    };
    // Where the statistics leave no room for a time line there is none.
    let shown = match room.saturating_sub(beside + 1) {
        short if short < LEAST_SHOWN && !place.lines => 0,
        columns => columns.max(LEAST_SHOWN),
    };
    let back = place.back;
    let cycles = place.paused.unwrap_or(log.cycles as usize);
    let end = cycles.saturating_sub(back);
    let begin = end.saturating_sub(shown).max(place.since);
    let mut rows: BTreeMap<u8, Row> = BTreeMap::new();
    for shot in &log.shots {
        let Some(cycle) = shot
            .cycle
            .map(|cycle| cycle as usize)
            .filter(|c| (place.since..end).contains(c))
        else {
            continue;
        };
        let row = rows.entry(shot.hops).or_default();
        row.sent += 1;
        let rtt = shot.seen.as_ref().map(|seen| seen.rtt.as_secs_f64());
        row.rtts.extend(rtt);
        if cycle >= begin {
            row.line.insert(cycle, rtt);
        }
        if let Some(seen) = &shot.seen {
            row.address = Some(seen.from);
            row.arrived |= seen.arrival;
        }
    }
    let last = rows
        .iter()
        .find(|(_, row)| row.arrived)
        .map(|(hop, _)| *hop);
    let furthest = rows
        .iter()
        .rev()
        .find(|(_, row)| row.address.is_some())
        .map(|(hop, _)| *hop);
    rows.retain(|hop, _| Some(*hop) <= last.or(furthest.map(|hop| hop.saturating_add(1))));
    let values = || {
        rows.values()
            .flat_map(|row| row.line.values().flatten().copied())
    };
    let (low, high) = (
        values().fold(f64::MAX, f64::min),
        values().fold(0.0, f64::max),
    );
    let when = match (back, place.paused) {
        (_, Some(_)) => "paused".to_owned(),
        (0, None) => "now".to_owned(),
        (back, None) => format!("{:.0} s ago", back as f64 * log.plan.interval.as_secs_f64()),
    };
    let room = height.saturating_sub(OTHER_LINES).max(1);
    place.above = place.above.min(rows.len().saturating_sub(room));
    let mut lines = vec![
        format!("plumb path to {}   cycle {end} ({when})", log.plan.target),
        "d: display  p: pause  r: reset  u: UDP/ICMP  q: end  ← → 0: time  ↑ ↓: hops".to_owned(),
        match place.lines {
            true => format!(
                "{:>3} {:<NAME_COLUMNS$} {:>6} {:>6}",
                "", "", "Loss%", "Last"
            ),
            false => format!(
                "{:>3} {:<NAME_COLUMNS$} {:>6} {:>4} {:>6} {:>6} {:>6} {:>6} {:>6}",
                "", "", "Loss%", "Snt", "Last", "Avg", "Best", "Wrst", "StDev"
            ),
        },
    ];
    for (hop, row) in rows.iter().skip(place.above).take(room) {
        let called = row.address.map_or_else(
            || "*".to_owned(),
            |address| name(address).unwrap_or_else(|| address.to_string()),
        );
        let called: String = called.chars().take(NAME_COLUMNS).collect();
        let line: String = (begin..end)
            .map(|cycle| match row.line.get(&cycle) {
                Some(Some(rtt)) => level(*rtt, low, high),
                Some(None) => '·',
                None => ' ',
            })
            .collect();
        let columns = row.columns(place.lines);
        lines.push(format!("{hop:>3} {called:<NAME_COLUMNS$} {columns} {line}"));
    }
    let hidden = match rows.len() {
        all if all > room => format!(
            "   hops {} to {} of {all}",
            place.above + 1,
            place.above + room
        ),
        _ => String::new(),
    };
    lines.push(String::new());
    let scale = format!("   ▁ {} … █ {}, · unanswered", ms(low.min(high)), ms(high));
    let scale = if shown > 0 { scale.as_str() } else { "" };
    lines.push(format!("    Times in ms.{scale}{hidden}"));
    fitted(lines, width)
}

fn level(rtt: f64, low: f64, high: f64) -> char {
    let steps = (LEVELS.len() - 1) as f64;
    let place = if high > low {
        (rtt - low) / (high - low) * steps
    } else {
        0.0
    };
    LEVELS.get(place.round() as usize).copied().unwrap_or('█')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::results::TimestampSource;
    use plumb_probe::path::trace::{Seen, Shot, TracePlan};

    /// A trace to a target that is so far, and from its second hop on answers three cycles of four.
    fn log(cycles: u32, last: u8) -> TraceLog {
        let target = IpAddr::from([192, 0, 2, 1]);
        let mut log = TraceLog {
            plan: TracePlan::new(target),
            started_ns: 0,
            ended_ns: 0,
            shots: Vec::new(),
            cycles,
            refused: 0,
            latest: None,
            notes: Vec::new(),
        };
        for cycle in 0..cycles {
            for hops in 1..=last + 1 {
                let seen = Seen {
                    from: if hops == last {
                        target
                    } else {
                        [10, 0, 0, hops].into()
                    },
                    rtt: Duration::from_millis(u64::from(hops) * 10),
                    timestamps: TimestampSource::Kernel,
                    arrival: hops >= last,
                    annotation: None,
                    hop_limit: None,
                    labels: Vec::new(),
                    quoted: false,
                    differences: Vec::new(),
                    syn_ack: None,
                };
                log.shots.push(Shot {
                    cycle: Some(cycle),
                    hops,
                    sent_ns: 0,
                    seen: (cycle % 4 != 3 || hops == 1).then_some(seen),
                    cut_off: false,
                });
            }
        }
        log
    }

    #[test]
    fn the_time_line_moves_back() {
        let none = |_| None;
        let at = |back| Place {
            back,
            ..Place::default()
        };
        let now = frame(&log(8, 2), &none, &mut at(0), (140, 24));
        let line = |number: usize| now.get(number).unwrap().as_str();
        assert!(line(0).contains("cycle 8 (now)"));
        assert!(line(3).contains("10.0.0.1") && line(3).ends_with("▁▁▁▁▁▁▁▁"));
        assert!(line(4).contains(" 25.0%") && line(4).ends_with("███·███·"));
        assert_eq!(line(5).trim(), "", "nothing behind the target");
        let before = frame(&log(8, 2), &none, &mut at(5), (140, 24));
        assert!(before.get(4).unwrap().ends_with(" ███"), "{before:?}");
        let _ = frame(&log(0, 2), &none, &mut at(3), (0, 0));
    }

    #[test]
    fn the_columns_are_those_of_mtr() {
        let none = |_| None;
        let mut place = Place::default();
        let now = frame(&log(8, 2), &none, &mut place, (80, 24));
        let head: Vec<&str> = now.get(2).unwrap().split_whitespace().collect();
        assert_eq!(
            head,
            ["Loss%", "Snt", "Last", "Avg", "Best", "Wrst", "StDev"]
        );
        let row: Vec<&str> = now.get(4).unwrap().split_whitespace().collect();
        let wanted = ["25.0%", "8", "20.0", "20.0", "20.0", "20.0", "0.00"];
        assert_eq!(row.get(2..), Some(&wanted[..]), "{now:?}");
        // Reset: what was before does not count. Paused: what comes does not.
        place.since = 4;
        let reset = frame(&log(8, 2), &none, &mut place, (80, 24));
        assert!(reset.get(4).unwrap().contains("25.0%    4 "), "{reset:?}");
        (place.since, place.paused) = (0, Some(3));
        let paused = frame(&log(8, 2), &none, &mut place, (80, 24));
        assert!(paused.first().unwrap().contains("cycle 3 (paused)"));
        assert!(paused.get(4).unwrap().contains(" 0.0%    3 "), "{paused:?}");
        let row = Row {
            sent: 2,
            rtts: vec![0.000_1, 0.000_3],
            ..Row::default()
        };
        let columns = row.columns(false);
        let columns: Vec<&str> = columns.split_whitespace().collect();
        assert_eq!(
            columns,
            ["0.0%", "2", "0.30", "0.20", "0.10", "0.30", "0.14"]
        );
    }

    #[test]
    fn full_time_lines_and_many_hops_stay_within_the_terminal() {
        let none = |_| None;
        for (width, height) in [(80, 24), (110, 40)] {
            let mut place = Place {
                lines: true,
                ..Place::default()
            };
            let lines = frame(&log(200, 30), &none, &mut place, (width, height));
            let longest = lines.iter().map(|line| line.chars().count()).max();
            assert_eq!(longest, Some(width - 1), "a full line: {lines:?}");
            assert!(lines.len() <= height, "{lines:?}");
            assert!(lines.get(3).unwrap().ends_with("▁▁▁▁"));
        }
        let mut place = Place {
            above: 99,
            ..Place::default()
        };
        let lines = frame(&log(200, 30), &none, &mut place, (80, 24));
        assert_eq!(place.above, 30 - 19);
        let last = lines.iter().rfind(|line| line.starts_with(" 30")).unwrap();
        assert!(last.contains("192.0.2.1"), "{last}");
        assert!(
            lines.last().unwrap().contains("hops 12 to 30 of 30"),
            "{lines:?}"
        );
    }
}
