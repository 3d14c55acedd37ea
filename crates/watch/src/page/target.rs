//! `/target/NAME`: the smoke graph of a target, its outages, and its numbers.

use super::graph::smoke;
use super::range::Range;
use super::words::{
    available, clock, escaped, in_path, lasted, moment, page as whole, percent, time,
};
use crate::config::{Config, Target};
use crate::report::{HEADS, UNKNOWN, cells};
use crate::store::{Store, StoreError};

/// How many outages are listed, the latest first.
const MOST_OUTAGES: usize = 100;

/// How many changes are listed, the latest first.
const MOST_CHANGES: usize = 100;

/// Series are listed that have a value of the last hour, in seconds: a port that is gone has none.
const SERIES_S: i64 = 3600;

/// How many alarms are listed, the latest first.
const MOST_ALARMS: usize = 50;

pub(super) fn page(
    config: &Config,
    target: &Target,
    store: &Store,
    range: Range,
    now_s: i64,
) -> Result<String, StoreError> {
    let windows = range.windows(store, &target.name, now_s)?;
    let name = escaped(&target.name);
    let to = match target.host.as_str() {
        "" => String::new(),
        host => format!(" to {}", escaped(host)),
    };
    let unit = target.kind.unit();
    let mut body = format!(
        "<p><a href=\"/\">all targets</a></p>\n<h1>{name}</h1>\n<p>{}{}, every {} s</p>\n<p>",
        target.probe,
        to,
        target.every.as_secs_f64()
    );
    for other in Range::ALL {
        let word = other.word();
        body += &match other == range {
            true => format!("<strong>{word}</strong> "),
            false => format!("<a href=\"?range={word}\">{word}</a> "),
        };
    }
    body += "</p>\n";
    if windows.is_empty() {
        body += "<p>Nothing was measured in this time, or no window of it is over yet.</p>\n";
    }
    body += &smoke(
        &windows,
        range.window_s(),
        (now_s - range.seconds(), now_s),
        unit,
    );
    body += &series(config, target, store, now_s)?;
    body += &changes(target, store)?;
    body += &outages(target, store, now_s)?;
    body += &months(target, store, now_s)?;
    body += &alarms(target, store, now_s)?;
    body += "<details><summary>Numbers</summary>\n<div class=\"scroll\"><table><tr><th>from (UTC)</th><th>sent</th>\
             <th>lost</th><th>min</th><th>5 %</th><th>25 %</th><th>median</th><th>75 %</th><th>95 %</th><th>max</th></tr>\n";
    for (at_s, seen) in windows.iter().rev() {
        let times = match seen.times {
            None => vec!["-".to_owned(); 7],
            Some(t) => [t.min_s, t.p5_s, t.p25_s, t.p50_s, t.p75_s, t.p95_s, t.max_s]
                .map(|value| unit.words(value))
                .to_vec(),
        };
        let at = moment(at_s.saturating_mul(1_000_000));
        let lost = seen.loss_ratio().map_or_else(String::new, percent);
        let times = times.join("</td><td>");
        body += &format!(
            "<tr><td>{at}</td><td>{}</td><td>{lost}</td><td>{times}</td></tr>\n",
            seen.count
        );
    }
    body += "</table></div></details>\n";
    Ok(whole(&target.name, None, &body))
}

/// The series of a target, with the latest value of each; nothing where it has none.
fn series(
    config: &Config,
    target: &Target,
    store: &Store,
    now_s: i64,
) -> Result<String, StoreError> {
    let begin = format!("{} ", target.name);
    let mut rows = String::new();
    for name in store.targets()? {
        let series = name.strip_prefix(&begin).and_then(|_| config.series(&name));
        let Some(series) = series.filter(|series| series.behind.as_ref() == Some(&target.name))
        else {
            continue;
        };
        let samples = store.samples(&name, now_s - SERIES_S)?;
        let Some((last, value)) = samples.last().and_then(|last| Some((last, last.value?))) else {
            continue;
        };
        let own = escaped(name.strip_prefix(&begin).unwrap_or(&name));
        let (link, at) = (in_path(&name), clock(last.sent_us / 1_000_000, now_s));
        let mut words = series.kind.unit().words(value);
        if let Some(state) = store.state(&name)? {
            words = escaped(&state);
        }
        rows += &format!(
            "<tr><td><a href=\"/target/{link}\">{own}</a></td><td>{words}</td><td>{at}</td></tr>\n"
        );
    }
    Ok(match rows.is_empty() {
        true => rows,
        false => format!(
            "<h2>Series</h2>\n<div class=\"scroll\"><table><tr><th>series</th><th>latest</th><th>at (UTC)</th></tr>\n{rows}\
             </table></div>\n"
        ),
    })
}

/// What was seen of a target and changed, such as its route; nothing where nothing is kept of it.
fn changes(target: &Target, store: &Store) -> Result<String, StoreError> {
    let found = store.states(&target.name, MOST_CHANGES)?;
    if found.is_empty() {
        return Ok(String::new());
    }
    let mut out = format!(
        "<h2>Changes</h2>\n<div class=\"scroll\"><table><tr><th>since (UTC)</th><th>{}</th></tr>\n",
        escaped(target.kind.state())
    );
    for (at_us, words) in found {
        let (at, words) = (moment(at_us), escaped(&words));
        out += &format!("<tr><td>{at}</td><td>{words}</td></tr>\n");
    }
    Ok(out + "</table></div>\n")
}

/// The latest alarms; nothing where there never was one.
fn alarms(target: &Target, store: &Store, now_s: i64) -> Result<String, StoreError> {
    let found = store.alarms(&target.name, MOST_ALARMS)?;
    if found.is_empty() {
        return Ok(String::new());
    }
    let mut out = "<h2>Alarms</h2>\n<ul>\n".to_owned();
    for alarm in found {
        let (class, until) = match alarm.cleared_s {
            None => (" class=\"bad\"", String::new()),
            Some(cleared_s) => ("", format!(", over at {}", clock(cleared_s, now_s))),
        };
        out += &format!(
            "<li{class}>{} since {}{until} (alarm {})</li>\n",
            escaped(&alarm.in_words()),
            clock(alarm.since_s, now_s),
            escaped(&alarm.rule)
        );
    }
    Ok(out + "</ul>\n")
}

/// Availability by month, the latest first.
fn months(target: &Target, store: &Store, now_s: i64) -> Result<String, StoreError> {
    let months = store.months(&target.name, None, now_s)?;
    if months.is_empty() {
        return Ok(String::new());
    }
    let mut out =
        "<h2>Months</h2>\n<div class=\"scroll\"><table><tr><th>month (UTC)</th>".to_owned();
    for head in HEADS {
        out += &format!("<th>{head}</th>");
    }
    out += "</tr>\n";
    for month in months.iter().rev() {
        let cells = cells(month).join("</td><td>");
        out += &format!("<tr><td>{}</td><td>{cells}</td></tr>\n", month.month);
    }
    out += &format!("</table></div>\n<p>{UNKNOWN}</p>\n");
    Ok(out)
}

/// Availability over a day, a month and a year, and the latest outages.
fn outages(target: &Target, store: &Store, now_s: i64) -> Result<String, StoreError> {
    let mut out = "<h2>Outages</h2>\n<div class=\"scroll\"><table><tr><th>the last</th><th>available</th><th>outages</th>\
                   <th>mean time between failures</th><th>mean time to repair</th><th>watched</th></tr>\n"
        .to_owned();
    let mut list = Vec::new();
    for range in [Range::Day, Range::Month, Range::Year] {
        let found = store.outages(&target.name, now_s - range.seconds())?;
        let mean = |mean: Option<std::time::Duration>| mean.map_or_else(|| "-".to_owned(), time);
        out += &format!(
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            range.word(),
            available(found.availability(), found.watched),
            found.outages.len(),
            mean(found.mtbf()),
            mean(found.mttr()),
            time(found.watched)
        );
        list = found.outages;
    }
    out += "</table></div>\n";
    if list.is_empty() {
        return Ok(out + "<p>None is known.</p>\n");
    }
    out += "<div class=\"scroll\"><table><tr><th>begin (UTC)</th><th>end (UTC)</th><th>lasted</th></tr>\n";
    for outage in list.iter().rev().take(MOST_OUTAGES) {
        let end = match outage.lasts {
            true => "-".to_owned(),
            false => moment(outage.end_us),
        };
        out += &format!(
            "<tr><td>{}</td><td>{end}</td><td>{}</td></tr>\n",
            moment(outage.begin_us),
            lasted(outage)
        );
    }
    out += "</table></div>\n";
    if list.len() > MOST_OUTAGES {
        out += &format!("<p>The latest {MOST_OUTAGES} of {}.</p>\n", list.len());
    }
    Ok(out)
}
