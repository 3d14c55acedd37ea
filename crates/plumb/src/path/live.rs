//! The path on the terminal while it is traced: a line a hop, each with its time line, which can be
//! moved back in time.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _, stdout};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumb_net::terminal::{Keys, columns};
use plumb_probe::path::names::Names;
use plumb_probe::path::trace::TraceLog;

/// How often it is drawn anew.
const EVERY: Duration = Duration::from_millis(250);
/// Width of the column of names.
const NAME_COLUMNS: usize = 28;
/// Width of everything before the time line.
const FIXED_COLUMNS: usize = NAME_COLUMNS + 38;
/// Width where the terminal does not tell.
const USUAL_COLUMNS: usize = 100;
/// Levels of a time line, from the best round trip shown to the worst.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The view. The screen is as it was before when it is dropped.
pub(crate) struct View {
    keys: Option<Keys>,
    stop: Arc<AtomicBool>,
    /// Cycles that the right end of the time lines lies back.
    back: usize,
    drawn: Option<Instant>,
}

impl View {
    /// A view on the terminal; `None` where standard output is none. `q` sets `stop`.
    pub(crate) fn open(stop: &Arc<AtomicBool>) -> Option<Self> {
        if !stdout().is_terminal() {
            return None;
        }
        // The other screen (xterm's 1049), without the cursor.
        let _ = write!(stdout(), "\x1b[?1049h\x1b[?25l");
        Some(Self {
            keys: Keys::listen().ok(),
            stop: Arc::clone(stop),
            back: 0,
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
        let width = columns().unwrap_or(USUAL_COLUMNS);
        let name = |address| names.get(address);
        let text = frame(log, &name, self.back, width).replace('\n', "\x1b[K\r\n");
        let mut out = stdout().lock();
        // A terminal that is gone ends the program by a signal.
        let _ = write!(out, "\x1b[H{text}\x1b[J").and_then(|()| out.flush());
    }

    /// Whether there was a key.
    fn take_keys(&mut self, cycles: usize) -> bool {
        const PAGE: usize = 20;
        let pressed = self.keys.as_ref().map_or_else(Vec::new, Keys::read);
        let mut rest = pressed.as_slice();
        while let Some((first, after)) = rest.split_first() {
            let (back, used) = match rest {
                [0x1b, b'[', b'D', ..] => (self.back + 1, 3),
                [0x1b, b'[', b'C', ..] => (self.back.saturating_sub(1), 3),
                [0x1b, b'[', b'5', b'~', ..] => (self.back + PAGE, 4),
                [0x1b, b'[', b'6', b'~', ..] => (self.back.saturating_sub(PAGE), 4),
                _ => match first {
                    b'h' => (self.back + 1, 1),
                    b'l' => (self.back.saturating_sub(1), 1),
                    b'0' => (0, 1),
                    b'q' => {
                        self.stop.store(true, Ordering::Relaxed);
                        (self.back, 1)
                    }
                    _ => (self.back, 1),
                },
            };
            self.back = back.min(cycles.saturating_sub(1));
            rest = rest.get(used..).unwrap_or(after);
        }
        !pressed.is_empty()
    }
}

impl Drop for View {
    fn drop(&mut self) {
        let mut out = stdout().lock();
        let _ = write!(out, "\x1b[?25h\x1b[?1049l").and_then(|()| out.flush());
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

/// The picture, each line ended. `back` is how many cycles the right end of the time lines lies back.
fn frame(
    log: &TraceLog,
    name: &dyn Fn(IpAddr) -> Option<String>,
    back: usize,
    width: usize,
) -> String {
    let shown = width.saturating_sub(FIXED_COLUMNS + 1).max(10);
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
    let mut text = format!(
        "plumb path to {}   cycle {end} ({when})   ← → or PgUp PgDn: time, 0: now, q: end\n\n",
        log.plan.target
    );
    let _ = writeln!(
        text,
        "{:>3} {:<NAME_COLUMNS$} {:>5} {:>5} {:>7} {:>7} {:>6}",
        "hop", "", "sent", "miss", "last ms", "mean ms", "worst"
    );
    for (hop, row) in &rows {
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
        let _ = writeln!(
            text,
            "{hop:>3} {called:<NAME_COLUMNS$} {:>5} {:>4.0}% {:>7} {:>7} {:>6} {line}",
            row.sent,
            missing * 100.0,
            ms(row.rtts.last().copied()),
            ms(mean),
            ms(worst),
        );
    }
    let _ = writeln!(
        text,
        "\n    ▁ {:.1} ms … █ {:.1} ms, · unanswered",
        low.min(high) * 1e3,
        high * 1e3
    );
    text
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

    fn log(cycles: u32) -> TraceLog {
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
            for hops in 1..=3u8 {
                let seen = Seen {
                    from: if hops == 2 {
                        target
                    } else {
                        [10, 0, 0, hops].into()
                    },
                    rtt: Duration::from_millis(u64::from(hops) * 10),
                    timestamps: TimestampSource::Kernel,
                    arrival: hops >= 2,
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
        let now = frame(&log(8), &none, 0, 100);
        let lines: Vec<&str> = now.lines().collect();
        assert!(lines.first().unwrap().contains("cycle 8 (now)"));
        assert!(
            lines.get(3).unwrap().contains("10.0.0.1")
                && lines.get(3).unwrap().ends_with("▁▁▁▁▁▁▁▁")
        );
        assert!(
            lines.get(4).unwrap().contains("  25%") && lines.get(4).unwrap().ends_with("███·███·")
        );
        assert_eq!(
            lines.get(5).unwrap().trim(),
            "",
            "nothing behind the target"
        );
        let before = frame(&log(8), &none, 5, 100);
        assert!(before.lines().nth(4).unwrap().ends_with(" ███"), "{before}");
        let _ = frame(&log(0), &none, 3, 0);
    }
}
