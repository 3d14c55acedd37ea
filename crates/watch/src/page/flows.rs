//! `/flows/NAME`: the largest flows that were sent to a place, over time; and the same as JSON at `/json/flows/NAME`.

use serde::Serialize;

use super::flow_chart::stacked;
use super::range::Range;
use super::words::{escaped, in_path, moment, page as whole, percent};
use crate::flows::dimension::Dimension;
use crate::flows::look::{LookedTop, looked, margin};
use crate::flows::state::State;
use crate::flows::table::Top;
use crate::flows::windows::merged;
use crate::store::{Store, StoreError, Width};
use crate::unit::Unit;

/// The version of the document.
const SCHEMA: &str = "plumb.flows/1";

/// How many of a dimension are listed.
const LISTED: usize = 25;

/// What is asked for: how far back, and by what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Asked {
    range: Range,
    by: Dimension,
}

impl Asked {
    /// As a query asks for it: `range=24h&by=source-as`; an hour by source where nothing is asked. `None` for anything else.
    pub(super) fn of(query: Option<&str>) -> Option<Self> {
        let mut asked = Self {
            range: Range::Hour,
            by: Dimension::Source,
        };
        let query = query.unwrap_or_default();
        for setting in query.split('&').filter(|setting| !setting.is_empty()) {
            match setting.split_once('=')? {
                ("range", word) => asked.range = Range::of_word(word)?,
                ("by", word) => {
                    asked.by = Dimension::ALL.into_iter().find(|by| by.word() == word)?;
                }
                _ => return None,
            }
        }
        Some(asked)
    }
}

/// Windows of the width that a range shows.
fn windows(
    store: &Store,
    name: &str,
    by: Dimension,
    range: Range,
    now_s: i64,
) -> Result<Vec<(i64, Top)>, StoreError> {
    let within = (now_s - range.seconds(), now_s);
    let width = match range {
        Range::Hour | Range::Day => Width::Minute,
        Range::Month => Width::QuarterHour,
        Range::Year => Width::Day,
    };
    let found = store.flows(name, by, width, within)?;
    if width.seconds() == range.window_s() {
        return Ok(found);
    }
    let start = |at_s: i64| at_s.div_euclid(range.window_s()) * range.window_s();
    let chunks = found.chunk_by(|(a, _), (b, _)| start(*a) == start(*b));
    let one = |chunk: &[(i64, Top)]| {
        let most = chunk.iter().map(|(_, top)| top.rows.len()).max();
        let at_s = chunk.first().map_or(0, |(at_s, _)| start(*at_s));
        (
            at_s,
            merged(chunk.iter().map(|(_, top)| top), most.unwrap_or(0)),
        )
    };
    Ok(chunks.map(one).collect())
}

/// The page of a place; `None` where none has that name.
pub(super) fn page(
    store: &Store,
    name: &str,
    asked: Asked,
    now_s: i64,
) -> Result<Option<String>, StoreError> {
    let Some((at_s, state)) = source(store, name)? else {
        return Ok(None);
    };
    let Asked { range, by } = asked;
    let windows = windows(store, name, by, range, now_s)?;
    let title = escaped(name);
    let mut body = format!("<p><a href=\"/\">all targets</a></p>\n<h1>Flows: {title}</h1>\n<p>");
    for other in Range::ALL {
        body += &link(
            asked,
            Asked {
                range: other,
                ..asked
            },
            other.word(),
        );
    }
    body += "</p>\n<p>by ";
    for other in Dimension::ALL {
        body += &link(asked, Asked { by: other, ..asked }, other.words());
    }
    body += &format!(
        "<a href=\"/json/flows/{}?range={}\">JSON</a></p>\n",
        in_path(name),
        range.word()
    );
    if windows.is_empty() {
        body += "<p>No flows were exported in this time, or no window of it is over yet.</p>\n";
    } else {
        let all = merged(windows.iter().map(|(_, top)| top), LISTED);
        body += &stacked(
            &windows,
            &all,
            range.window_s(),
            (now_s - range.seconds(), now_s),
        );
        let watched_s = windows.len() as f64 * range.window_s() as f64;
        body += &listed(&all, by, watched_s);
    }
    body += &exporters(&state, at_s);
    Ok(Some(whole(name, None, &body)))
}

/// The same of all dimensions, for programs.
#[derive(Serialize)]
struct Document {
    schema: &'static str,
    name: String,
    from_s: i64,
    to_s: i64,
    /// How much of that time has windows, in seconds.
    watched_s: i64,
    #[serde(flatten)]
    state: State,
    tops: Vec<LookedTop>,
}

pub(super) fn json(
    store: &Store,
    name: &str,
    asked: Asked,
    now_s: i64,
) -> Result<Option<String>, StoreError> {
    let Some((_, state)) = source(store, name)? else {
        return Ok(None);
    };
    let mut tops = Vec::new();
    let mut watched_s = 0;
    for by in Dimension::ALL {
        let windows = windows(store, name, by, asked.range, now_s)?;
        let count = i64::try_from(windows.len()).unwrap_or(i64::MAX);
        watched_s = watched_s.max(count.saturating_mul(asked.range.window_s()));
        let parts = windows.iter().map(|(_, top)| top);
        let most = parts.clone().map(|top| top.rows.len()).max().unwrap_or(0);
        tops.push((by, merged(parts, most)));
    }
    let document = Document {
        schema: SCHEMA,
        name: name.to_owned(),
        from_s: now_s - asked.range.seconds(),
        to_s: now_s,
        watched_s,
        state,
        tops: looked(&tops),
    };
    // Of numbers and text alone, it can be written.
    Ok(serde_json::to_string(&document).ok())
}

/// When something was written of a place last, and what is known of its exporters.
fn source(store: &Store, name: &str) -> Result<Option<(i64, State)>, StoreError> {
    let mut sources = store.flow_sources()?.into_iter();
    let found = sources.find(|(other, ..)| other == name);
    Ok(found.map(|(_, at_s, state)| (at_s, state)))
}

fn link(now: Asked, other: Asked, words: &str) -> String {
    match now == other {
        true => format!("<strong>{words}</strong> "),
        false => format!(
            "<a href=\"?range={}&amp;by={}\">{words}</a> ",
            other.range.word(),
            other.by.word()
        ),
    }
}

/// A table of the largest.
fn listed(all: &Top, by: Dimension, watched_s: f64) -> String {
    let rows = all.rows.iter();
    let rows = rows.map(|row| (row.key.as_str(), &row.sums, row.missed_bytes));
    let others = Some(("others", &all.others, 0.0)).filter(|(_, sums, _)| sums.flows > 0);
    let rows: Vec<_> = rows.chain(others).collect();
    let total: f64 = rows.iter().map(|(_, sums, _)| sums.bytes).sum();
    let share = |bytes: f64| percent(if total > 0.0 { bytes / total } else { 0.0 });
    let mut out = format!(
        "<div class=\"scroll\"><table><tr><th>{}</th><th>mean rate</th><th>95 %</th><th>share</th><th>packets</th>\
         <th>flows</th><th>perhaps more</th></tr>\n",
        by.words()
    );
    for (key, sums, missed_bytes) in rows {
        let more = match missed_bytes > 0.0 {
            true => share(missed_bytes),
            false => String::new(),
        };
        out += &format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.0}</td><td>{}</td><td>{more}</td></tr>\n",
            escaped(key),
            Unit::BitsPerSecond.words(sums.bytes * 8.0 / watched_s),
            margin(sums.bytes, sums.bytes_interval()),
            share(sums.bytes),
            sums.packets,
            sums.flows,
        );
    }
    out + "</table></div>\n"
}

/// Who exports, and what is wrong with it.
fn exporters(state: &State, at_s: i64) -> String {
    let mut out = format!(
        "<h2>Exporters</h2>\n<p>Since {}, as of {}.</p>\n<div class=\"scroll\"><table><tr><th>exporter</th><th>protocol</th>\
         <th>flows</th><th>counted</th><th>last message (UTC)</th><th>faults</th></tr>\n",
        moment(state.since_s.saturating_mul(1_000_000)),
        moment(at_s.saturating_mul(1_000_000)),
    );
    for exporter in &state.exporters {
        let protocols = exporter.protocols.join(", ");
        out += &format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            exporter.address,
            escaped(&protocols),
            exporter.flows,
            exporter.sampling(),
            moment(exporter.last_s.saturating_mul(1_000_000)),
            escaped(&exporter.faults()),
        );
    }
    out += "</table></div>\n";
    if state.refused > 0 {
        out += &format!(
            "<p>{} datagrams of others were refused.</p>\n",
            state.refused
        );
    }
    if state.dropped > 0 {
        out += &format!("<p>This host dropped {} datagrams.</p>\n", state.dropped);
    }
    out
}
