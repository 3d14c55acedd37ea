//! `plumb host`: this machine, read and judged; its counters as rates; its disks and ciphers.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use plumb_host::disk::Plan;
use plumb_host::knobs::Catalogue;
use plumb_measure::conductor::Conductor;
use plumb_measure::host::speed::{CipherSpeed, DiskSpeed};
use plumb_measure::host::{HostAudit, live};
use plumb_measure::progress::Nobody;
use plumb_measure::record::Judgement;
use plumb_model::units::{BitRate, ByteCount};
use plumb_report::text::{self, HostSection};

use crate::exit::{Ends, stop_flag};
use crate::output::{Output, print_page, style};
use crate::progress::Line;
use crate::quantity::{rate_above_zero, time_above_zero, time_from};
use crate::target::command_line;
use crate::words;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb host                          what is fine, what is not, and for whom
  plumb host --facts                  all that was read, judged or not
  plumb host --facts interfaces       one part: driver, link, offloads, rings
  plumb host --live 500ms             counters as rates, until Ctrl-C
  plumb host disk /srv --rate 10gbit  can files there feed 10 Gbit/s?
  plumb host cipher --rate 10gbit     can one core encrypt as much?
  plumb host --json | jq '.measurements[0].result.interfaces[0].rings'

Limits: counters are since the machine or the interface began, and do not show when; drivers report what they like. Without \
root, sockets of other users have no owner, and optical modules cannot be read. Inside a lab the interfaces, counters and \
settings of TCP are the node's, the rest is the machine's. See `plumb explain host`.";

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Arguments {
    /// Show how fast counters grow, until Ctrl-C [default: 1s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, default_missing_value = "1s", value_parser = time_from(SHORTEST, "counters are read every 100 ms at most"))]
    live: Option<Duration>,
    /// With --live: how many intervals
    #[arg(short, long, value_name = "N", requires = "live", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Show the facts instead of the audit: all, or one part
    #[arg(long, value_name = "PART", num_args = 0..=1, value_parser = words::any::<HostSection>(), conflicts_with_all = ["live", "json"])]
    facts: Option<Option<HostSection>>,
    #[command(flatten)]
    output: Output,
    #[command(subcommand)]
    speed: Option<Speed>,
}

#[derive(Subcommand)]
enum Speed {
    /// How fast files can feed a transfer and take one: read and write, mmap, sendfile, small files
    Disk {
        /// Folder to measure in; it is left as it was
        #[arg(default_value = ".")]
        folder: PathBuf,
        /// Size of the large file; at most half of what is free is used
        #[arg(long, value_name = "SIZE", default_value = "256MB")]
        size: ByteCount,
        /// How many small files, of 16 KiB each
        #[arg(long, value_name = "N", default_value_t = 200)]
        files: u64,
        /// Longest time of each of the nine passes
        #[arg(long, value_name = "TIME", default_value = "3s", value_parser = time_above_zero)]
        within: Duration,
        /// The rate that a transfer is to have: what is slower is named
        #[arg(long, value_name = "RATE", value_parser = rate_above_zero)]
        rate: Option<BitRate>,
        #[command(flatten)]
        output: Output,
    },
    /// How fast one core encrypts: TLS, and what ssh offers
    Cipher {
        /// The rate that a transfer is to have: what is slower is named
        #[arg(long, value_name = "RATE", value_parser = rate_above_zero)]
        rate: Option<BitRate>,
        #[command(flatten)]
        output: Output,
    },
}

/// Size of a small file: most of a source tree or a mailbox is smaller.
const SMALL_FILE_BYTES: u64 = 16 << 10;

/// Shorter than this, reading the counters is a good part of the interval.
const SHORTEST: Duration = Duration::from_millis(100);

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match (&arguments.speed, arguments.live) {
        (
            Some(Speed::Disk {
                folder,
                size,
                files,
                within,
                rate,
                output,
            }),
            _,
        ) => {
            let output = output.begin()?;
            let stop = stop_flag(Ends::ByItself)?;
            let plan = Plan {
                folder: folder.clone(),
                file_bytes: size.bytes(),
                small_files: *files,
                small_file_bytes: SMALL_FILE_BYTES,
                pass_within: *within,
                rate_bps: rate.map(|rate| rate.bps() as f64),
            };
            let line = Line::new();
            let conductor = Conductor::here(command_line(), &line, &stop);
            let measured = conductor.only(&mut DiskSpeed { plan: &plan }, Judgement::AsAudited);
            drop(line);
            output.emit(measured.context("cannot measure")?.run)?;
        }
        (Some(Speed::Cipher { rate, output }), _) => {
            let output = output.begin()?;
            let stop = stop_flag(Ends::ByItself)?;
            let line = Line::new();
            let rate_bps = rate.map(|rate| rate.bps() as f64);
            let conductor = Conductor::here(command_line(), &line, &stop);
            let measured = conductor.only(&mut CipherSpeed { rate_bps }, Judgement::AsAudited)?;
            drop(line);
            output.emit(measured.run)?;
        }
        (None, Some(every)) => watch(arguments, every)?,
        (None, None) => {
            let output = arguments.output.begin()?;
            let stop = stop_flag(Ends::ByItself)?;
            let catalogue = &Catalogue::built_in()?;
            let conductor = Conductor::here(command_line(), &Nobody, &stop);
            let run = conductor
                .only(&mut HostAudit { catalogue }, Judgement::AsAudited)?
                .run;
            match arguments.facts {
                Some(part) => output.emit_as(run, |run, style| {
                    text::render_host_sections(run, part, style)
                })?,
                None => output.emit(run)?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows each interval as it ends, and the Run when all have.
fn watch(arguments: &Arguments, every: Duration) -> anyhow::Result<()> {
    let output = arguments.output.begin()?;
    let stop = stop_flag(Ends::by_signal_if(arguments.count.is_none()))?;
    let mut shown = Ok(());
    let mut tell = |interval: &plumb_host::rates::Interval| {
        if arguments.output.is_text() && shown.is_ok() {
            shown = print_page(&text::render_rates(
                interval.at_s,
                &interval.per_s,
                &style(),
            ));
        }
    };
    let measured = live::run(
        command_line(),
        every,
        arguments.count,
        &mut tell,
        &Nobody,
        &stop,
    )?;
    shown?;
    output.emit(measured.run)
}
