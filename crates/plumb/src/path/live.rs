//! The path on the terminal while it is traced: a line a hop, each with its time line, which can be
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
/// Width of everything before the time line, its space included.
const FIXED_COLUMNS: usize = NAME_COLUMNS + 40;
/// The shortest time line.
const LEAST_SHOWN: usize = 10;
/// Lines besides those of the hops: two above their head, the head, and two below them.
const OTHER_LINES: usize = 5;
/// Levels of a time line, from the best round trip shown to the worst.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The view. The screen is as it was before when it is dropped.
pub(crate) struct View {
    screen: Screen,
    stop: Arc<AtomicBool>,
    place: Place,
    drawn: Option<Instant>,
}

/// What part of all that is known is looked at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Place {
    /// Cycles that the right end of the time lines lies back.
    back: usize,
    /// Hops above the first that is shown, where not all fit.
    above: usize,
}

impl View {
    /// A view on the terminal; `None` where standard output is none. `q` sets `stop`.
    pub(crate) fn open(stop: &Arc<AtomicBool>) -> Option<Self> {
        Some(Self {
            screen: Screen::open()?,
            stop: Arc::clone(stop),
            place: Place::default(),
            drawn: None,
        })
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
        while let Some((first, after)) = rest.split_first() {
            let Place { back, above } = self.place;
            let (back, above, used) = match rest {
                [0x1b, b'[', b'D', ..] => (back + 1, above, 3),
                [0x1b, b'[', b'C', ..] => (back.saturating_sub(1), above, 3),
                [0x1b, b'[', b'B', ..] => (back, above + 1, 3),
                [0x1b, b'[', b'A', ..] => (back, above.saturating_sub(1), 3),
                [0x1b, b'[', b'5', b'~', ..] => (back + PAGE, above, 4),
                [0x1b, b'[', b'6', b'~', ..] => (back.saturating_sub(PAGE), above, 4),
                _ => match first {
                    b'h' => (back + 1, above, 1),
                    b'l' => (back.saturating_sub(1), above, 1),
                    b'j' => (back, above + 1, 1),
                    b'k' => (back, above.saturating_sub(1), 1),
                    b'0' => (0, above, 1),
                    b'q' => {
                        self.stop.store(true, Ordering::Relaxed);
                        (back, above, 1)
                    }
                    _ => (back, above, 1),
                },
            };
            self.place = Place {
                back: back.min(cycles.saturating_sub(1)),
                above,
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

/// The picture, line by line. `place` is held to what there is.
fn frame(
    log: &TraceLog,
    name: &dyn Fn(IpAddr) -> Option<String>,
    place: &mut Place,
    (width, height): (usize, usize),
) -> Vec<String> {
    // The last column stays empty.
    let shown = width.saturating_sub(FIXED_COLUMNS + 1).max(LEAST_SHOWN);
    let back = place.back;
    let end = (log.cycles as usize).saturating_sub(back);
    let begin = end.saturating_sub(shown);
    let mut rows: BTreeMap<u8, Row> = BTreeMap::new();
    for shot in &log.shots {
        let Some(cycle) = shot.cycle.map(|cycle| cycle as usize).filter(|c| *c < end) else {
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
    let when = match back {
        0 => "now".to_owned(),
        back => format!("{:.0} s ago", back as f64 * log.plan.interval.as_secs_f64()),
    };
    let room = height.saturating_sub(OTHER_LINES).max(1);
    place.above = place.above.min(rows.len().saturating_sub(room));
    let mut lines = vec![
        format!("plumb path to {}   cycle {end} ({when})", log.plan.target),
        "← → PgUp PgDn: time   0: now   ↑ ↓: hops   q: end".to_owned(),
        format!(
            "{:>3} {:<NAME_COLUMNS$} {:>5} {:>5} {:>7} {:>7} {:>6}",
            "hop", "", "sent", "miss", "last ms", "mean ms", "worst"
        ),
    ];
    for (hop, row) in rows.iter().skip(place.above).take(room) {
        let called = row.address.map_or_else(
            || "*".to_owned(),
            |address| name(address).unwrap_or_else(|| address.to_string()),
        );
        let called: String = called.chars().take(NAME_COLUMNS).collect();
        let missing = (row.sent - row.rtts.len() as u64) as f64 / row.sent as f64;
        let ms = |value: Option<f64>| value.map_or_else(String::new, |s| format!("{:.1}", s * 1e3));
        let mean =
            (!row.rtts.is_empty()).then(|| row.rtts.iter().sum::<f64>() / row.rtts.len() as f64);
        let worst = row.rtts.iter().copied().reduce(f64::max);
        let line: String = (begin..end)
            .map(|cycle| match row.line.get(&cycle) {
                Some(Some(rtt)) => level(*rtt, low, high),
                Some(None) => '·',
                None => ' ',
            })
            .collect();
        lines.push(format!(
            "{hop:>3} {called:<NAME_COLUMNS$} {:>5} {:>4.0}% {:>7} {:>7} {:>6} {line}",
            row.sent,
            missing * 100.0,
            ms(row.rtts.last().copied()),
            ms(mean),
            ms(worst),
        ));
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
    lines.push(format!(
        "    ▁ {:.1} ms … █ {:.1} ms, · unanswered{hidden}",
        low.min(high) * 1e3,
        high * 1e3
    ));
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
        let at = |back| Place { back, above: 0 };
        let now = frame(&log(8, 2), &none, &mut at(0), (100, 24));
        let line = |number: usize| now.get(number).unwrap().as_str();
        assert!(line(0).contains("cycle 8 (now)"));
        assert!(line(3).contains("10.0.0.1") && line(3).ends_with("▁▁▁▁▁▁▁▁"));
        assert!(line(4).contains("  25%") && line(4).ends_with("███·███·"));
        assert_eq!(line(5).trim(), "", "nothing behind the target");
        let before = frame(&log(8, 2), &none, &mut at(5), (100, 24));
        assert!(before.get(4).unwrap().ends_with(" ███"), "{before:?}");
        let _ = frame(&log(0, 2), &none, &mut at(3), (0, 0));
    }

    #[test]
    fn full_time_lines_and_many_hops_stay_within_the_terminal() {
        let none = |_| None;
        for (width, height) in [(80, 24), (110, 40)] {
            let mut place = Place::default();
            let lines = frame(&log(200, 30), &none, &mut place, (width, height));
            let longest = lines.iter().map(|line| line.chars().count()).max();
            assert_eq!(longest, Some(width - 1), "a full line: {lines:?}");
            assert!(lines.len() <= height, "{lines:?}");
            assert!(lines.get(3).unwrap().ends_with("▁▁▁▁"));
        }
        let mut place = Place { back: 0, above: 99 };
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
