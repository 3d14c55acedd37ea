//! What comes to one place for a while, for people and programs.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::dimension::Dimension;
use super::estimate::{Interval, Sums};
use super::listening::Listener;
use super::minute::Tops;
use super::state::State;
use crate::columns::table;
use crate::page::words::percent;
use crate::unit::Unit;

/// The version of the document.
const SCHEMA: &str = "plumb.flows/1";

/// What came in a stretch of time.
#[derive(Debug, Clone, Serialize)]
pub struct Look {
    schema: &'static str,
    listen: SocketAddr,
    seconds: f64,
    #[serde(flatten)]
    state: State,
    /// By dimension, the largest first.
    tops: Vec<LookedTop>,
}

/// The largest sums of one dimension.
#[derive(Debug, Clone, Serialize)]
pub struct LookedTop {
    by: Dimension,
    rows: Vec<LookedSums>,
    others: LookedSums,
}

/// Sums with their intervals of 95 %.
#[derive(Debug, Clone, Serialize)]
pub struct LookedSums {
    key: String,
    bytes: f64,
    bytes_low: f64,
    bytes_high: f64,
    packets: f64,
    packets_low: f64,
    packets_high: f64,
    flows: u64,
    /// What may be of it among the others, in bytes at most.
    missed_bytes: f64,
}

impl LookedSums {
    fn of(key: &str, sums: &Sums, missed_bytes: f64) -> Self {
        let (bytes, packets) = (sums.bytes_interval(), sums.packets_interval());
        Self {
            key: key.to_owned(),
            bytes: sums.bytes,
            bytes_low: bytes.low,
            bytes_high: bytes.high,
            packets: sums.packets,
            packets_low: packets.low,
            packets_high: packets.high,
            flows: sums.flows,
            missed_bytes,
        }
    }
}

/// The tops of all dimensions as documents have them.
pub fn looked(tops: &Tops) -> Vec<LookedTop> {
    let each = tops.iter().map(|(by, top)| {
        let rows = top.rows.iter();
        let rows = rows.map(|row| LookedSums::of(&row.key, &row.sums, row.missed_bytes));
        LookedTop {
            by: *by,
            rows: rows.collect(),
            others: LookedSums::of("others", &top.others, 0.0),
        }
    });
    each.collect()
}

/// Listens for so long, or until it is to stop, and shows now and then what came so far.
///
/// # Errors
/// Errors of the socket.
pub fn look(
    mut listener: Listener,
    within: Option<Duration>,
    stop: &AtomicBool,
    show: &mut dyn FnMut(&State, Duration),
) -> io::Result<Look> {
    let begun = Instant::now();
    let mut shown = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) && within.is_none_or(|within| begun.elapsed() < within) {
        listener.listen()?;
        if begun.elapsed().saturating_sub(shown) >= SHOW_EVERY {
            shown = begun.elapsed();
            show(&listener.collector().state(), shown);
        }
    }
    let collector = listener.collector();
    Ok(Look {
        schema: SCHEMA,
        listen: collector.source().listen,
        seconds: begun.elapsed().as_secs_f64(),
        state: collector.state(),
        tops: looked(&collector.tops()),
    })
}

/// How often it is shown what came so far.
const SHOW_EVERY: Duration = Duration::from_secs(1);

/// Half the width of an interval beside what is estimated, in words; nothing where every packet is counted.
pub(crate) fn margin(estimate: f64, interval: Interval) -> String {
    let half = (interval.high - interval.low) / 2.0;
    match half > 0.0 && estimate > 0.0 {
        true => format!("± {}", percent(half / estimate)),
        false => String::new(),
    }
}

impl Look {
    /// A few screens for people.
    pub fn text(&self) -> String {
        let mut out = format!("Flows at {} for {:.0} s\n\n", self.listen, self.seconds);
        if self.state.exporters.is_empty() {
            out += "  No exporter sent anything that could be read.\n";
        } else {
            out += &self.exporters();
        }
        if self.state.refused > 0 {
            let from = self.state.refused_from.iter().map(ToString::to_string);
            let from = from.collect::<Vec<_>>().join(", ");
            out += &format!(
                "\nNote: {} datagrams of others were refused, such as {from}.\n",
                self.state.refused
            );
        }
        if self.state.dropped > 0 {
            out += &format!(
                "\nNote: this host dropped {} datagrams, which were not read in time.\n",
                self.state.dropped
            );
        }
        for top in &self.tops {
            let is_known = top.rows.iter().any(|row| row.key != "unknown");
            if is_known && top.by != Dimension::Total {
                out += &format!("\n{}", self.top(top));
            }
        }
        out
    }

    fn exporters(&self) -> String {
        let head = [
            "exporter", "protocol", "flows", "counted", "clock", "faults",
        ];
        let mut rows = vec![head.map(str::to_owned)];
        for exporter in &self.state.exporters {
            let clock = exporter.clock_behind_ms.map_or_else(
                || "-".to_owned(),
                |[last_ms, ..]| format!("{:+.1} s", -(last_ms as f64) / 1000.0),
            );
            rows.push([
                exporter.address.to_string(),
                exporter.protocols.join(", "),
                exporter.flows.to_string(),
                exporter.sampling(),
                clock,
                match exporter.faults() {
                    none if none.is_empty() => "none".to_owned(),
                    faults => faults,
                },
            ]);
        }
        table(&rows)
    }

    fn top(&self, top: &LookedTop) -> String {
        let all = self.tops.iter().find(|top| top.by == Dimension::Total);
        let all_bytes = all
            .and_then(|all| all.rows.first())
            .map_or(0.0, |all| all.bytes);
        let head = [top.by.words(), "rate", "", "share", "packets", "flows"];
        let mut rows = vec![head.map(str::to_owned)];
        let others = Some(&top.others).filter(|others| others.flows > 0);
        for row in top.rows.iter().chain(others) {
            let interval = Interval {
                low: row.bytes_low,
                high: row.bytes_high,
            };
            rows.push([
                row.key.clone(),
                Unit::BitsPerSecond.words(row.bytes * 8.0 / self.seconds.max(1.0)),
                margin(row.bytes, interval),
                percent(if all_bytes > 0.0 {
                    row.bytes / all_bytes
                } else {
                    0.0
                }),
                format!("{:.0}", row.packets),
                row.flows.to_string(),
            ]);
        }
        table(&rows)
    }
}
