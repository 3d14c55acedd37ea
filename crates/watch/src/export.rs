//! The history as a table, in CSV or Parquet. Times are of UTC, names of columns have their unit but for values, which are in the
//! unit of their target, and what is not known is empty.

mod columnar;
mod csv;
mod sheet;

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use columnar::Columnar;
use csv::Csv;
use sheet::Type::{Count, Number, Text, Time};
use sheet::{Cell, Column, Sheet};

use crate::availability::Availability;
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

/// What the table is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text with commas (RFC 4180).
    Csv,
    /// Apache Parquet, which is no text.
    Parquet,
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

    fn columns(self) -> &'static [Column] {
        match self {
            Self::Samples => &[("target", Text), ("sent", Time), ("value", Number)],
            Self::Windows(_) => &[
                ("target", Text),
                ("from", Time),
                ("window_s", Count),
                ("sent", Count),
                ("lost", Count),
                ("min", Number),
                ("p5", Number),
                ("p25", Number),
                ("p50", Number),
                ("p75", Number),
                ("p95", Number),
                ("max", Number),
            ],
            Self::Outages => &[
                ("target", Text),
                ("begin", Time),
                ("end", Time),
                ("lasted_s", Number),
            ],
            Self::Alarms => &[
                ("target", Text),
                ("alarm", Text),
                ("since", Time),
                ("raised", Time),
                ("cleared", Time),
                ("words", Text),
                ("behind", Text),
            ],
            Self::Months => &[
                ("target", Text),
                ("month", Text),
                ("available_ratio", Number),
                ("outages", Count),
                ("mtbf_s", Number),
                ("mttr_s", Number),
                ("down_s", Number),
                ("watched_s", Number),
                ("unknown_s", Number),
            ],
            Self::Flows(_) => &[
                ("name", Text),
                ("from", Time),
                ("window_s", Count),
                ("by", Text),
                ("key", Text),
                ("bytes", Number),
                ("bytes_low", Number),
                ("bytes_high", Number),
                ("packets", Number),
                ("packets_low", Number),
                ("packets_high", Number),
                ("flows", Count),
                ("missed_bytes", Number),
            ],
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
pub fn write<W: Write + Send>(
    store: &Store,
    targets: &[String],
    what: What,
    period: Period,
    now_s: i64,
    format: Format,
    out: W,
) -> Result<u64, ExportError> {
    store.hold()?;
    let columns = what.columns();
    let sheet: Box<dyn Sheet + '_> = match format {
        Format::Csv => Box::new(Csv::begin(out, columns)?),
        Format::Parquet => Box::new(Columnar::begin(out, columns)?),
    };
    let mut rows = Rows { sheet, count: 0 };
    for name in targets {
        rows.of_target(store, name, what, period, now_s)?;
    }
    rows.sheet.end()?;
    Ok(rows.count)
}

/// Rows that are being written.
struct Rows<'a> {
    sheet: Box<dyn Sheet + 'a>,
    count: u64,
}

impl Rows<'_> {
    fn of_target(
        &mut self,
        store: &Store,
        name: &str,
        what: What,
        Period { from_s, to_s }: Period,
        now_s: i64,
    ) -> Result<(), ExportError> {
        let to_us = to_s.saturating_mul(1_000_000);
        match what {
            What::Samples => {
                for sample in store.samples(name, from_s)? {
                    if sample.sent_us < to_us {
                        let value = Cell::number(sample.value);
                        self.row(&[Cell::Text(name), Cell::Moment(sample.sent_us), value])?;
                    }
                }
            }
            What::Windows(width) => {
                for (at_s, seen) in store.summed(name, width, (from_s, to_s))? {
                    self.window(name, at_s, width, &seen)?;
                }
            }
            What::Outages => {
                let found = store.outages(name, from_s)?.outages;
                for outage in found.iter().filter(|outage| outage.begin_us < to_us) {
                    self.outage(name, outage)?;
                }
            }
            What::Alarms => {
                for alarm in store.alarms_within(name, (from_s, to_s))? {
                    self.row(&[
                        Cell::Text(name),
                        Cell::Text(&alarm.rule),
                        Cell::Second(alarm.since_s),
                        Cell::Second(alarm.raised_s),
                        alarm.cleared_s.map_or(Cell::Nothing, Cell::Second),
                        Cell::Text(&alarm.words),
                        Cell::Text(&alarm.behind.join("; ")),
                    ])?;
                }
            }
            What::Flows(width) => {
                for dimension in Dimension::ALL {
                    let windows = store.flows(name, dimension, width, (from_s, to_s))?;
                    for (at_s, top) in &windows {
                        self.flows(name, *at_s, width, dimension, top)?;
                    }
                }
            }
            What::Months => {
                let months = store.months(name, None, now_s)?;
                let within = months
                    .iter()
                    .filter(|month| month.month.to_s() > from_s && month.month.from_s() < to_s);
                for month in within {
                    self.month(name, month)?;
                }
            }
        }
        Ok(())
    }

    fn row(&mut self, cells: &[Cell<'_>]) -> io::Result<()> {
        for cell in cells {
            self.sheet.cell(*cell);
        }
        self.count += 1;
        self.sheet.next()
    }

    fn window(
        &mut self,
        name: &str,
        at_s: i64,
        width: Width,
        seen: &Distribution,
    ) -> io::Result<()> {
        let times = match seen.times {
            Some(t) => [t.min_s, t.p5_s, t.p25_s, t.p50_s, t.p75_s, t.p95_s, t.max_s].map(Some),
            None => [None; 7],
        };
        let head = [
            Cell::Text(name),
            Cell::Second(at_s),
            Cell::Count(width.seconds().unsigned_abs()),
            Cell::Count(seen.count),
            Cell::Count(seen.lost),
        ];
        self.row(&[head.as_slice(), &times.map(Cell::number)].concat())
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
            let (bytes, packets) = (sums.bytes_interval(), sums.packets_interval());
            self.row(&[
                Cell::Text(name),
                Cell::Second(at_s),
                Cell::Count(width.seconds().unsigned_abs()),
                Cell::Text(dimension.word()),
                Cell::Text(key),
                Cell::Whole(sums.bytes),
                Cell::Whole(bytes.low),
                Cell::Whole(bytes.high),
                Cell::Whole(sums.packets),
                Cell::Whole(packets.low),
                Cell::Whole(packets.high),
                Cell::Count(sums.flows),
                Cell::Whole(missed_bytes),
            ])?;
        }
        Ok(())
    }

    fn outage(&mut self, name: &str, outage: &Outage) -> io::Result<()> {
        self.row(&[
            Cell::Text(name),
            Cell::Moment(outage.begin_us),
            match outage.lasts {
                true => Cell::Nothing,
                false => Cell::Moment(outage.end_us),
            },
            Cell::Number(outage.lasted().as_secs_f64()),
        ])
    }

    fn month(&mut self, name: &str, month: &Availability) -> io::Result<()> {
        let seconds = |time: Option<Duration>| Cell::number(time.map(|time| time.as_secs_f64()));
        self.row(&[
            Cell::Text(name),
            Cell::Text(&month.month.to_string()),
            Cell::number(month.ratio()),
            Cell::Count(month.outages.into()),
            seconds(month.mtbf()),
            seconds(month.mttr()),
            seconds(Some(month.down)),
            seconds(Some(month.watched)),
            seconds(Some(month.unknown())),
        ])
    }
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

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
        let count = write(
            store,
            &[NAME.to_owned()],
            what,
            period,
            60_130,
            Format::Csv,
            &mut out,
        )
        .unwrap();
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

    /// The rows of a Parquet file, each value as text; null where there is none.
    fn columnar(store: &Store, what: What) -> Vec<Vec<(String, Field)>> {
        let mut out = Vec::new();
        let names = [NAME.to_owned()];
        write(store, &names, what, EVER, 60_130, Format::Parquet, &mut out).unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
        let rows = reader.get_row_iter(None).unwrap();
        rows.map(|row| row.unwrap().into_columns()).collect()
    }

    #[test]
    fn a_parquet_file_has_the_same_with_types() {
        let folder = tempfile::tempdir().unwrap();
        drop(store(&folder));
        let of = |what| {
            let store = Store::open_to_read(&folder.path().join("w.db")).unwrap();
            let csv = exported(&store, what, EVER);
            drop(store);
            let store = Store::open_to_read(&folder.path().join("w.db")).unwrap();
            let rows = columnar(&store, what);
            assert_eq!(rows.len() + 1, csv.len(), "{what}");
            for row in &rows {
                let names: Vec<_> = row.iter().map(|(name, _)| name.as_str()).collect();
                assert_eq!(names.join(","), csv[0]);
            }
            rows
        };
        let samples = of(What::Samples);
        let values = |row: usize| samples[row].iter().map(|(_, field)| field.clone());
        let sent_us = 60_000_000_005;
        let first: Vec<Field> = values(0).collect();
        assert_eq!(
            first,
            [
                Field::Str(NAME.to_owned()),
                Field::TimestampMicros(sent_us),
                Field::Double(0.0015)
            ]
        );
        assert_eq!(values(70).last(), Some(Field::Null));
        let minutes = of(What::Windows(Width::Minute));
        let last: Vec<Field> = minutes[1].iter().map(|(_, field)| field.clone()).collect();
        assert_eq!(last[1], Field::TimestampMicros(60_060_000_000));
        assert_eq!(last[2..5], [60, 60, 4].map(Field::Long));
        let alarm = &of(What::Alarms)[0];
        assert_eq!(
            (&alarm[4].1, &alarm[6].1),
            (&Field::Null, &Field::Str("c; d".into()))
        );
        for what in [What::Outages, What::Months, What::Flows(Width::Day)] {
            of(what);
        }
    }

    #[test]
    fn groups_of_rows_follow_each_other() {
        let (many, columns) = (300_000, [("a", Text), ("b", Count), ("c", Number)]);
        let mut out = Vec::new();
        let mut sheet = Columnar::begin(&mut out, &columns).unwrap();
        for row in 0..many {
            sheet.cell(Cell::Text("x"));
            sheet.cell(Cell::Count(row));
            sheet.cell(Cell::number((row % 2 == 0).then_some(0.5)));
            sheet.next().unwrap();
        }
        Box::new(sheet).end().unwrap();
        let reader = SerializedFileReader::new(bytes::Bytes::from(out)).unwrap();
        assert_eq!(reader.num_row_groups(), 3);
        let rows = reader.get_row_iter(None).unwrap();
        let counts = rows.map(|row| match row.unwrap().into_columns()[1].1 {
            Field::Long(count) => count,
            ref other => panic!("{other}"),
        });
        assert!(counts.eq(0..300_000));
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
}
