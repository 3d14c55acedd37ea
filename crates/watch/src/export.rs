//! The history as CSV (RFC 4180). Times are of UTC (RFC 3339), names of columns have their unit but for values, which are in the
//! unit of their target, and what is not known is empty.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

use jiff::Timestamp;

use crate::distribution::Distribution;
use crate::flows::dimension::Dimension;
use crate::flows::table::Top;
use crate::outage::Outage;
use crate::store::{KEPT_S, Store, StoreError, Width};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Samples,
    Windows(Width),
    Outages,
    Alarms,
    Months,
    /// The largest flows of windows; of places rather than targets.
    Flows(Width),
}

/// From which time until before which other one, s since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub from_s: i64,
    pub to_s: i64,
}

/// Why an export ended.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Store(#[from] StoreError),
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

impl What {
    /// The finest series of which all since then is kept: samples, or the distributions of the shortest windows.
    pub fn finest(from_s: i64, now_s: i64) -> Self {
        let kept = |kept_s: i64| from_s >= now_s - kept_s;
        if kept(KEPT_S) {
            return Self::Samples;
        }
        let widths = [Width::Minute, Width::QuarterHour];
        let width = widths.into_iter().find(|w| w.kept_s().is_none_or(kept));
        Self::Windows(width.unwrap_or(Width::Day))
    }

    /// The finest windows of flows of which all since then is kept.
    pub fn finest_flows(from_s: i64, now_s: i64) -> Self {
        let widths = [Width::Minute, Width::QuarterHour];
        let kept = |width: &Width| {
            width
                .flows_kept_s()
                .is_none_or(|kept_s| from_s >= now_s - kept_s)
        };
        Self::Flows(widths.into_iter().find(kept).unwrap_or(Width::Day))
    }

    /// The names of the columns.
    fn columns(self) -> &'static str {
        match self {
            Self::Samples => "target,sent,value",
            Self::Windows(_) => "target,from,window_s,sent,lost,min,p5,p25,p50,p75,p95,max",
            Self::Outages => "target,begin,end,lasted_s",
            Self::Alarms => "target,alarm,since,raised,cleared,words,behind",
            Self::Months => {
                "target,month,available_ratio,outages,mtbf_s,mttr_s,down_s,watched_s,unknown_s"
            }
            Self::Flows(_) => {
                "name,from,window_s,by,key,bytes,bytes_low,bytes_high,packets,packets_low,packets_high,flows,missed_bytes"
            }
        }
    }
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Samples => "samples",
            Self::Windows(Width::Minute) => "minutes",
            Self::Windows(Width::QuarterHour) => "quarter-hours",
            Self::Windows(Width::Day) => "days",
            Self::Outages => "outages",
            Self::Alarms => "alarms",
            Self::Months => "months",
            Self::Flows(Width::Minute) => "flows of minutes",
            Self::Flows(Width::QuarterHour) => "flows of quarter-hours",
            Self::Flows(Width::Day) => "flows of days",
        })
    }
}

/// Writes a row for each of what is asked for of these targets, one target after the other, and returns how many there were. All
/// of it is of one time, `now_s`, whatever is written into the history meanwhile.
///
/// # Errors
/// When the history cannot be read, or the rows cannot be written.
pub fn write(
    store: &Store,
    targets: &[String],
    what: What,
    period: Period,
    now_s: i64,
    out: &mut dyn Write,
) -> Result<u64, ExportError> {
    store.hold()?;
    let mut rows = Rows {
        out,
        line: String::new(),
        count: 0,
    };
    rows.line.push_str(what.columns());
    rows.end()?;
    let Period { from_s, to_s } = period;
    for name in targets {
        match what {
            What::Samples => {
                let to_us = to_s.saturating_mul(1_000_000);
                for sample in store.samples(name, from_s)? {
                    if sample.sent_us < to_us {
                        rows.text(name);
                        rows.put(moment(sample.sent_us));
                        rows.maybe(sample.value);
                        rows.next()?;
                    }
                }
            }
            What::Windows(width) => {
                for (at_s, seen) in store.summed(name, width, (from_s, to_s))? {
                    rows.window(name, at_s, width, &seen)?;
                }
            }
            What::Outages => {
                let found = store.outages(name, from_s)?.outages;
                let to_us = to_s.saturating_mul(1_000_000);
                for outage in found.iter().filter(|outage| outage.begin_us < to_us) {
                    rows.outage(name, outage)?;
                }
            }
            What::Alarms => {
                for alarm in store.alarms_within(name, (from_s, to_s))? {
                    rows.text(name);
                    rows.text(&alarm.rule);
                    rows.put(second(alarm.since_s));
                    rows.put(second(alarm.raised_s));
                    rows.maybe(alarm.cleared_s.map(second));
                    rows.text(&alarm.words);
                    rows.text(&alarm.behind.join("; "));
                    rows.next()?;
                }
            }
            What::Flows(width) => {
                for dimension in Dimension::ALL {
                    let windows = store.flows(name, dimension, width, (from_s, to_s))?;
                    for (at_s, top) in &windows {
                        rows.flows(name, *at_s, width, dimension, top)?;
                    }
                }
            }
            What::Months => {
                let months = store.months(name, None, now_s)?;
                let within = months
                    .iter()
                    .filter(|month| month.month.to_s() > from_s && month.month.from_s() < to_s);
                for month in within {
                    rows.text(name);
                    rows.put(month.month);
                    rows.maybe(month.ratio());
                    rows.put(month.outages);
                    rows.maybe(month.mtbf().map(|time| time.as_secs_f64()));
                    rows.maybe(month.mttr().map(|time| time.as_secs_f64()));
                    for time in [month.down, month.watched, month.unknown()] {
                        rows.put(time.as_secs_f64());
                    }
                    rows.next()?;
                }
            }
        }
    }
    rows.out.flush()?;
    Ok(rows.count)
}

/// A time, to the microsecond.
fn moment(us: i64) -> String {
    let time = Timestamp::from_microsecond(us);
    time.map_or_else(|_| String::new(), |time| format!("{time:.6}"))
}

fn second(at_s: i64) -> String {
    let time = Timestamp::from_second(at_s);
    time.map_or_else(|_| String::new(), |time| time.to_string())
}

/// Rows that are being written.
struct Rows<'a> {
    out: &'a mut dyn Write,
    /// The row so far, with a comma after each value.
    line: String,
    count: u64,
}

impl Rows<'_> {
    fn put(&mut self, value: impl fmt::Display) {
        // Writing to text does not fail.
        let _ = write!(self.line, "{value},");
    }

    fn maybe(&mut self, value: Option<impl fmt::Display>) {
        match value {
            Some(value) => self.put(value),
            None => self.line.push(','),
        }
    }

    /// Text within quotation marks where it needs them. Characters that command a terminal become blanks.
    fn text(&mut self, text: &str) {
        let text = text.replace(char::is_control, " ");
        match text.contains([',', '"']) {
            true => self.put(format_args!("\"{}\"", text.replace('"', "\"\""))),
            false => self.put(text),
        }
    }

    fn window(
        &mut self,
        name: &str,
        at_s: i64,
        width: Width,
        seen: &Distribution,
    ) -> io::Result<()> {
        self.text(name);
        self.put(second(at_s));
        self.put(width.seconds());
        self.put(seen.count);
        self.put(seen.lost);
        match seen.times {
            Some(t) => {
                for time in [t.min_s, t.p5_s, t.p25_s, t.p50_s, t.p75_s, t.p95_s, t.max_s] {
                    self.put(time);
                }
            }
            None => self.line.push_str(",,,,,,,"),
        }
        self.next()
    }

    /// The sums of a window. In the row of others `missed_bytes` is the most that one of them has.
    fn flows(
        &mut self,
        name: &str,
        at_s: i64,
        width: Width,
        dimension: Dimension,
        top: &Top,
    ) -> io::Result<()> {
        let rows = top.rows.iter();
        let rows = rows.map(|row| (row.key.as_str(), &row.sums, row.missed_bytes));
        let others = Some(("others", &top.others, top.most_of_other));
        for (key, sums, missed_bytes) in rows.chain(others.filter(|(_, sums, _)| sums.flows > 0)) {
            self.text(name);
            self.put(second(at_s));
            self.put(width.seconds());
            self.put(dimension.word());
            self.text(key);
            let (bytes, packets) = (sums.bytes_interval(), sums.packets_interval());
            for value in [sums.bytes, bytes.low, bytes.high] {
                self.put(format_args!("{value:.0}"));
            }
            for value in [sums.packets, packets.low, packets.high] {
                self.put(format_args!("{value:.0}"));
            }
            self.put(sums.flows);
            self.put(format_args!("{missed_bytes:.0}"));
            self.next()?;
        }
        Ok(())
    }

    fn outage(&mut self, name: &str, outage: &Outage) -> io::Result<()> {
        self.text(name);
        self.put(moment(outage.begin_us));
        self.maybe((!outage.lasts).then(|| moment(outage.end_us)));
        self.put(outage.lasted().as_secs_f64());
        self.next()
    }

    fn next(&mut self) -> io::Result<()> {
        self.line.pop();
        self.count += 1;
        self.end()
    }

    fn end(&mut self) -> io::Result<()> {
        self.line.push_str("\r\n");
        self.out.write_all(self.line.as_bytes())?;
        self.line.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::alarm::record::Alarm;
    use crate::sample::Sample;

    const EVER: Period = Period {
        from_s: 0,
        to_s: i64::MAX,
    };
    const NAME: &str = "a, \"b\"";

    /// A target of an awkward name, probed for two minutes, four seconds of which without an answer; and an alarm.
    fn store(folder: &tempfile::TempDir) -> Store {
        let mut store = Store::open(&folder.path().join("w.db")).unwrap();
        let every = Duration::from_secs(1);
        store.note_intervals([(NAME, every)].into_iter()).unwrap();
        let samples: Vec<_> = (0..120)
            .map(|at| {
                let answered = (!(70..74).contains(&at)).then_some(Duration::from_micros(1500));
                let sample = Sample::timed((60_000 + at) * 1_000_000 + 5, answered);
                (NAME.to_owned(), sample)
            })
            .collect();
        store.append(&samples).unwrap();
        let alarm = Alarm {
            rule: "loss".to_owned(),
            target: NAME.to_owned(),
            since_s: 60_070,
            raised_s: 60_120,
            cleared_s: None,
            words: "loss of 6.7 %".to_owned(),
            behind: vec!["c".to_owned(), "d".to_owned()],
        };
        store
            .write_alarms(&[alarm], ("", 0), std::iter::empty())
            .unwrap();
        store.sum_up(60_130).unwrap();
        store
    }

    fn exported(store: &Store, what: What, period: Period) -> Vec<String> {
        let mut out = Vec::new();
        let count = write(store, &[NAME.to_owned()], what, period, 60_130, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.ends_with("\r\n"), "{text}");
        let lines: Vec<_> = text.split_terminator("\r\n").map(str::to_owned).collect();
        assert_eq!(lines.len() as u64, count + 1);
        lines
    }

    #[test]
    fn rows_are_what_the_history_has() {
        let folder = tempfile::tempdir().unwrap();
        drop(store(&folder));
        let lines = |what, period| {
            let store = Store::open_to_read(&folder.path().join("w.db")).unwrap();
            exported(&store, what, period)
        };
        let samples = lines(What::Samples, EVER);
        assert_eq!(samples.len(), 121);
        assert_eq!(samples[0], "target,sent,value");
        assert_eq!(
            samples[1],
            "\"a, \"\"b\"\"\",1970-01-01T16:40:00.000005Z,0.0015"
        );
        assert_eq!(samples[71], "\"a, \"\"b\"\"\",1970-01-01T16:41:10.000005Z,");
        let within = Period {
            from_s: 60_010,
            to_s: 60_020,
        };
        assert_eq!(lines(What::Samples, within).len(), 11);
        let minutes = lines(What::Windows(Width::Minute), EVER);
        assert_eq!(minutes.len(), 3);
        assert_eq!(
            minutes[2],
            "\"a, \"\"b\"\"\",1970-01-01T16:41:00Z,60,60,4,0.0015,0.0015,0.0015,0.0015,0.0015,0.0015,0.0015"
        );
        assert_eq!(
            lines(What::Outages, EVER)[1],
            "\"a, \"\"b\"\"\",1970-01-01T16:41:10.000005Z,1970-01-01T16:41:14.000005Z,4"
        );
        assert_eq!(
            lines(What::Alarms, EVER)[1],
            "\"a, \"\"b\"\"\",loss,1970-01-01T16:41:10Z,1970-01-01T16:42:00Z,,loss of 6.7 %,c; d"
        );
        let later = Period {
            from_s: 60_200,
            to_s: 60_300,
        };
        assert_eq!(lines(What::Alarms, later).len(), 2);
        assert_eq!(lines(What::Outages, later).len(), 1);
        let months = lines(What::Months, EVER);
        assert_eq!(months.len(), 2);
        assert!(
            months[1].starts_with("\"a, \"\"b\"\"\",1970-01,0.96638"),
            "{months:?}"
        );
        assert!(months[1].ends_with(",1,115,4,4,119,60011"), "{months:?}");
    }

    #[test]
    fn the_finest_that_is_kept_is_chosen() {
        const HOUR_S: i64 = 3600;
        for (hours, finest) in [
            (1, "samples"),
            (25, "samples"),
            (26, "minutes"),
            (720, "minutes"),
            (721, "quarter-hours"),
            (366 * 24 + 1, "days"),
        ] {
            let found = What::finest(-hours * HOUR_S, 0);
            assert_eq!(found.to_string(), finest, "{hours}");
        }
    }

    proptest! {
        /// However a name is written, it is one value of one row.
        #[test]
        fn any_text_is_one_value(text in "\\PC{0,20}|[,\"\r\n\u{1b}a]{0,9}") {
            let mut out = Vec::new();
            let mut rows = Rows { out: &mut out, line: String::new(), count: 0 };
            rows.text(&text);
            rows.put(1);
            rows.next().unwrap();
            let line = String::from_utf8(out).unwrap();
            let mut quoted = false;
            let commas = line.chars().filter(|c| {
                quoted ^= *c == '"';
                *c == ',' && !quoted
            });
            prop_assert_eq!(commas.count(), 1);
            prop_assert_eq!(line.matches(['\r', '\n', '\u{1b}']).count(), 2);
        }
    }
}
