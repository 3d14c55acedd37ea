//! What all pages are made of: text that is escaped, times and shares as people read them.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;

use crate::outage::Outage;

/// Text as HTML shows it, within quotes as well.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Text as a segment of a path has it (RFC 3986, unreserved characters alone).
pub(super) fn in_path(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte))
            }
            // Writing to text does not fail.
            byte => drop(write!(out, "%{byte:02X}")),
        }
    }
    out
}

/// A round trip in ms, to three digits where it is short.
pub(crate) fn ms(seconds: f64) -> String {
    match seconds * 1e3 {
        ms if ms < 1.0 => format!("{ms:.3} ms"),
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms => format!("{ms:.1} ms"),
    }
}

/// A share in percent: what is not zero does not read as zero.
pub(crate) fn percent(ratio: f64) -> String {
    match ratio * 100.0 {
        percent if percent > 0.0 && percent < 0.1 => "below 0.1 %".to_owned(),
        percent => format!("{percent:.1} %"),
    }
}

/// A time of day in UTC, to the tenth of a second (RFC 3339).
pub(crate) fn moment(us: i64) -> String {
    match Timestamp::from_microsecond(us) {
        Ok(time) => format!("{time:.1}"),
        Err(_) => "at an unknown time".to_owned(),
    }
}

/// A time for people who read at `now_s`: of the same day the time alone, else the date too. UTC.
pub(crate) fn clock(at_s: i64, now_s: i64) -> String {
    let form = match at_s.div_euclid(86_400) == now_s.div_euclid(86_400) {
        true => "%H:%M",
        false => "%Y-%m-%d %H:%M",
    };
    match Timestamp::from_second(at_s) {
        Ok(time) => time.strftime(form).to_string(),
        Err(_) => "an unknown time".to_owned(),
    }
}

/// The share of the watched time without outages: three digits more than percent, and none that rounds an outage away. Of a
/// time that is too short for a share, how long it was.
pub(crate) fn available(ratio: Option<f64>, watched: Duration) -> String {
    match ratio.map(|ratio| ratio * 100.0) {
        None => "not watched".to_owned(),
        Some(_) if watched < LEAST_WATCHED => format!("only {} watched", time(watched)),
        Some(percent) if percent < 100.0 => format!("{:.3} %", percent.min(99.999)),
        Some(_) => "100 %".to_owned(),
    }
}

/// A share of less time than this says nothing: an outage of a minute is more than one part in a hundred of it.
const LEAST_WATCHED: Duration = Duration::from_secs(3600);

/// A length of time, in its two largest units.
pub(crate) fn time(time: Duration) -> String {
    let (whole_s, tenths) = (time.as_secs(), time.subsec_millis() / 100);
    let (days, hours) = (whole_s / 86_400, whole_s / 3600 % 24);
    let (minutes, seconds) = (whole_s / 60 % 60, whole_s % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}.{tenths} s"),
        (0, 0, _) => format!("{minutes} min {seconds} s"),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

/// How long an outage was, or is so far.
pub(super) fn lasted(outage: &Outage) -> String {
    match outage.lasts {
        true => format!("{} so far", time(outage.lasted())),
        false => time(outage.lasted()),
    }
}

/// The whole of a page: no script, no other file. It is loaded again after so many seconds.
pub(super) fn page(title: &str, again_s: Option<u32>, body: &str) -> String {
    let title = escaped(title);
    let again = again_s.map_or_else(String::new, |again_s| {
        format!("<meta http-equiv=\"refresh\" content=\"{again_s}\">")
    });
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">{again}\
         <title>{title}</title><style>{STYLE}</style></head>\n<body><main>\n{body}</main></body></html>\n"
    )
}

/// Colours are of Okabe and Ito's palette, which the colour-blind distinguish.
const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1a1a1a;--ground:#fff;--line:#0072b2;--soft:#56b4e9;--loss:#d55e00;--part:#cc79a7;--rule:#ccc}\
@media(prefers-color-scheme:dark){:root{--ink:#e8e8e8;--ground:#141414;--line:#56b4e9;--soft:#3a7ca5;--loss:#e69f00;--part:#cc79a7;--rule:#444}}\
body{font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--ground);margin:0}\
main{max-width:60rem;margin:auto;padding:1rem}a{color:var(--line)}svg{width:100%;height:auto}\
.scroll{overflow-x:auto;margin-bottom:1rem}table{border-collapse:collapse}th,td{white-space:nowrap}\
td,th{padding:.25rem .75rem .25rem 0;text-align:left;border-bottom:1px solid var(--rule);font-variant-numeric:tabular-nums}\
.bad,td.bad a{color:var(--loss);font-weight:600}.part,.part a{color:var(--part)}.fine,.fine a{color:var(--line)}text{fill:var(--ink);font-size:12px}";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_passes_unescaped() {
        assert_eq!(
            escaped("<a b='c'>\"&"),
            "&lt;a b=&#39;c&#39;&gt;&quot;&amp;"
        );
        assert_eq!(in_path("a b/ü<"), "a%20b%2F%C3%BC%3C");
    }

    #[test]
    fn little_is_not_nothing() {
        assert_eq!(
            [percent(0.0), percent(0.0004), percent(0.25)],
            ["0.0 %", "below 0.1 %", "25.0 %"]
        );
        assert_eq!(moment(1_500_000), "1970-01-01T00:00:01.5Z");
        let day = Duration::from_secs(86_400);
        assert_eq!(available(Some(0.999_999_9), day), "99.999 %");
        assert_eq!(available(Some(1.0), day), "100 %");
        let short = Duration::from_secs(5);
        assert_eq!(available(Some(0.0), short), "only 5.0 s watched");
        assert_eq!(available(None, Duration::ZERO), "not watched");
        let times = [0.25, 65.0, 3700.0, 200_000.0].map(|s| time(Duration::from_secs_f64(s)));
        assert_eq!(times, ["0.2 s", "1 min 5 s", "1 h 1 min", "2 d 7 h"]);
    }
}
