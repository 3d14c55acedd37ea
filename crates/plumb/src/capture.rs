//! `plumb capture`: what captured packets show.

mod beside;
mod export;
mod keep;
mod live;
mod live_view;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context as _;
use clap::Args;
use plumb_capture::{Filter, Named, Reader, Source, Viewer, Watch};
use plumb_measure::capture::{CaptureBothSides, CapturePackets};
use plumb_measure::conductor::Conductor;
use plumb_measure::progress::Nobody;
use plumb_measure::record::Judgement;
use plumb_model::run::Run;

pub(crate) use self::beside::Beside;
use self::export::Export;
use self::keep::Keep;
use self::live_view::LiveView;
use crate::exit::stop_flag;
use crate::output::{Output, say};
use crate::target::command_line;
use crate::usage::wrong;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb capture trace.pcap            what limited each TCP connection
  plumb capture --details trace.pcap  with hosts, classes, DNS, ICMP
  plumb capture --filter 'tcp port 443' trace.pcap
  plumb capture --both here.pcap there.pcap
                                      what the path between lost and delayed
  plumb capture -i eth0 --filter 'host 192.0.2.7' -w trace.pcapng
                                      what passes an interface, until Ctrl-C
  plumb capture --follow trace.pcap   what another program captures meanwhile
  plumb capture --anonymise trace.pcap -w public.pcapng
                                      other addresses, and headers alone
  plumb capture -o run.json trace.pcap && plumb report run.json -o page.html
                                      a page with graphs
  plumb capture --export rows.csv trace.pcap
                                      a row for each segment

Limits: what limited a connection is judged from the place of the capture; a full send buffer looks like the application or the path, and without \
the handshake a full window does too. Payload is not read but for DNS and handshakes of TLS. Encrypted frames of 802.11 are counted alone. See `plumb explain capture`.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Captures (pcap, pcapng, also packed by gzip, zstd or lz4); - is standard input
    #[arg(required_unless_present = "interface", value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Read the captures that follow, which needs no option here: hands know it from tcpdump(8) and tshark(1)
    #[arg(short = 'r', hide = true)]
    _read: bool,
    #[command(flatten)]
    live: live::Options,
    #[command(flatten)]
    keep: Keep,
    /// Read only packets that this accepts, in tcpdump's language
    #[arg(long, value_name = "FILTER", value_parser = Filter::parse)]
    filter: Option<Filter>,
    /// Compare two captures of the same traffic, the client's side first
    #[arg(long, conflicts_with_all = ["filter", "export"])]
    both: bool,
    /// Save every TCP segment: rows in a .csv or .jsonl, or graphs of xplot in a new directory
    #[arg(long, value_name = "PATH")]
    export: Option<PathBuf>,
    #[command(flatten)]
    output: Output,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let output = arguments.output.begin()?;
    let stop = stop_flag(arguments.live.ends())?;
    let filter = arguments.filter.clone();
    output.emit(match arguments {
        Arguments { both: true, .. } => both(arguments, &stop)?,
        Arguments { live, .. } if live.is_asked_for() => {
            let source = live.begin(filter, arguments.keep.live(), &stop)?;
            shown(arguments, source, None, &stop)?
        }
        Arguments { live, files, .. } if live.follows() => {
            shown(arguments, live.follow(files, &stop)?, filter, &stop)?
        }
        Arguments { files, .. } => {
            let files = files.iter().map(|file| open(file));
            let files = files.collect::<anyhow::Result<Vec<Named>>>()?;
            watched(arguments, files, (filter, None), &stop)?
        }
    })?;
    Ok(ExitCode::SUCCESS)
}

/// What packets show that pass now, with a view of them on the terminal.
fn shown<S: Source>(
    arguments: &Arguments,
    source: Named<S>,
    filter: Option<Filter>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Run> {
    let shows = arguments.output.is_text() && !arguments.output.quiet();
    let view = shows.then(|| LiveView::open(&source.name, stop));
    let mut view = view.flatten();
    let viewer = view.as_mut().map(|view| view as &mut dyn Viewer);
    watched(arguments, vec![source], (filter, viewer), stop)
}

/// What packets show, judged, and saved as it was followed where that was asked for.
fn watched<S: Source>(
    arguments: &Arguments,
    sources: Vec<Named<S>>,
    (filter, viewer): (Option<Filter>, Option<&mut dyn Viewer>),
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Run> {
    let mut export = arguments.export.as_deref().map(Export::begin).transpose()?;
    let mut watch = Watch::nobody();
    if arguments.output.keeps_run() {
        watch = watch.with_graphs();
    }
    if let Some(export) = &mut export {
        watch = watch.with_observer(export.observer());
    }
    if let Some(viewer) = viewer {
        watch = watch.with_viewer(viewer);
    }
    if let Some(anonymiser) = arguments.keep.anonymiser()? {
        watch = watch.anonymised(anonymiser);
    }
    let is_live = arguments.live.is_asked_for();
    let mut copy = arguments.keep.copy(&arguments.files, is_live)?;
    if let Some(copy) = &mut copy {
        watch = watch.with_keeper(copy);
    }
    let run = read(
        CapturePackets {
            sources,
            filter,
            watch,
        },
        stop,
    )?;
    if let Some(copy) = copy {
        copy.finish()?;
    }
    if let Some(remark) = export.map(Export::finish).transpose()?.flatten() {
        say(&remark);
    }
    Ok(run)
}

fn read<S: Source>(
    mut packets: CapturePackets<'_, S>,
    stop: &Arc<AtomicBool>,
) -> anyhow::Result<Run> {
    let conductor = Conductor::here(command_line(), &Nobody, stop);
    Ok(conductor.only(&mut packets, Judgement::Part)?.run)
}

/// What two captures of the same traffic show of the path between them.
fn both(arguments: &Arguments, stop: &Arc<AtomicBool>) -> anyhow::Result<Run> {
    let [client, server] = arguments.files.as_slice() else {
        return Err(wrong(
            "--both takes two files: the capture at the client's side, and the one at the server's",
        ));
    };
    let mut step = CaptureBothSides {
        files: Some([open(client)?, open(server)?]),
    };
    let conductor = Conductor::here(command_line(), &Nobody, stop);
    Ok(conductor.only(&mut step, Judgement::Part)?.run)
}

/// What a file shows where it is a capture, as `plumb diagnose` takes it. A pipe is none: what is read of it to see is gone.
pub(crate) fn run_of(path: &Path) -> Option<anyhow::Result<Run>> {
    let file = File::open(path).ok()?;
    if !file.metadata().is_ok_and(|data| data.is_file()) {
        return None;
    }
    let reader = Reader::new(file).ok()?;
    let name = path.display().to_string();
    let files = CapturePackets {
        sources: vec![Named { name, reader }],
        filter: None,
        watch: Watch::nobody(),
    };
    Some(read(files, &Arc::default()))
}

fn open(file: &Path) -> anyhow::Result<Named> {
    let name = file.display().to_string();
    let reader = match file == Path::new("-") {
        true => Reader::new(std::io::stdin()),
        false => Reader::new(File::open(file).with_context(|| format!("cannot read {name}"))?),
    };
    let reader = reader.with_context(|| format!("cannot read {name}"))?;
    Ok(Named { name, reader })
}
