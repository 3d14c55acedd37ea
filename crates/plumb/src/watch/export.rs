//! `plumb watch export`: the history as CSV or Parquet.

use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use plumb_watch::export::{ExportError, Format, Period, What, write};
use plumb_watch::store::Width;

use super::history::{Source, now_s};
use super::when::When;
use crate::output::say;
use crate::save::growing::Growing;
use crate::usage::wrong;

/// Standard output, as a file (proc(5)).
const STDOUT: &str = "/dev/stdout";

/// Room for rows before they are written, in bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// A series goes back so far where nothing is said.
const SERIES: When = When::Ago(Duration::from_secs(86_400));

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Which part of the history
    #[arg(long, value_enum, default_value = "series")]
    what: Asked,
    /// From this time on: a date, a time of RFC 3339, or so long ago [default: 24h for series and flows, else all]
    #[arg(long, value_name = "TIME")]
    from: Option<When>,
    /// Until before this time [default: now]
    #[arg(long, value_name = "TIME")]
    until: Option<When>,
    /// The form of the table
    #[arg(long, value_enum, default_value = "csv")]
    format: Form,
    /// Write it into this file [default: print it]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Asked {
    /// The finest of the next four that is kept of all the time
    Series,
    /// Each probe by itself; kept for 25 hours
    Samples,
    /// Distributions by minute; kept for 30 days
    Minutes,
    /// Distributions by quarter-hour; kept for a year
    QuarterHours,
    /// Distributions by day; never removed
    Days,
    /// When each outage began and ended
    Outages,
    /// Alarms, with what was seen
    Alarms,
    /// Availability of each month, as of plumb watch report
    Months,
    /// The largest flows that routers exported, with intervals of 95 %
    Flows,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Text, for spreadsheets and scripts
    Csv,
    /// Apache Parquet with Snappy, for pandas, DuckDB and the like
    Parquet,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let now_s = now_s();
    let period = arguments.period(now_s)?;
    let what = arguments.what(period, now_s);
    let format = match arguments.format {
        Form::Csv => Format::Csv,
        Form::Parquet if arguments.output.is_none() => {
            return Err(wrong("Parquet is no text: name a file with -o"));
        }
        Form::Parquet => Format::Parquet,
    };
    let (store, names) = match arguments.what {
        Asked::Flows => arguments.source.open_flows()?,
        _ => arguments.source.open()?,
    };
    let path = arguments.output.as_deref().unwrap_or(Path::new(STDOUT));
    let growing = Growing::begin(path)?;
    let cannot = || format!("cannot write {}", path.display());
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, growing.file().with_context(cannot)?);
    let done = write(&store, &names, what, period, now_s, format, &mut out);
    drop(out);
    match done {
        Ok(rows) => {
            growing.keep().with_context(cannot)?;
            let file = match &arguments.output {
                Some(file) => format!("{}: ", file.display()),
                None => String::new(),
            };
            say(format_args!("{file}{what}, {rows} rows"));
        }
        // A reader that stops, as `head` does, is not an error.
        Err(ExportError::Write(why)) if why.kind() == io::ErrorKind::BrokenPipe => {}
        Err(ExportError::Write(why)) => return Err(why).with_context(cannot),
        Err(error @ ExportError::Store(_)) => return Err(error.into()),
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn period(&self, now_s: i64) -> anyhow::Result<Period> {
        let usual = matches!(self.what, Asked::Series | Asked::Flows).then_some(SERIES);
        let from = self.from.or(usual);
        let period = Period {
            // Nothing was watched before 1970.
            from_s: from.map_or(0, |from| from.at_s(now_s)),
            // What this very second has is part of it.
            to_s: self
                .until
                .map_or(now_s.saturating_add(1), |until| until.at_s(now_s)),
        };
        match period.from_s < period.to_s {
            true => Ok(period),
            false => Err(wrong(
                "the time ends before it begins: see --from and --until",
            )),
        }
    }

    fn what(&self, period: Period, now_s: i64) -> What {
        match self.what {
            Asked::Series => What::finest(period.from_s, now_s),
            Asked::Samples => What::Samples,
            Asked::Minutes => What::Windows(Width::Minute),
            Asked::QuarterHours => What::Windows(Width::QuarterHour),
            Asked::Days => What::Windows(Width::Day),
            Asked::Outages => What::Outages,
            Asked::Alarms => What::Alarms,
            Asked::Months => What::Months,
            Asked::Flows => What::finest_flows(period.from_s, now_s),
        }
    }
}
