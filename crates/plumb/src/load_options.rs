//! The options of every verb that loads the path.

use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_measure::announcement;
use plumb_measure::available;
use plumb_measure::conductor::Conducted;
use plumb_measure::phase::Group;
use plumb_measure::profiles::catalogue::{Profile, find};
use plumb_measure::progress::Watcher;
use plumb_measure::times::Times;
use plumb_measure::traffic_classes::Shape;
use plumb_measure::with_far_end::{self, Besides, Plan};
use plumb_model::results::Direction;
use plumb_model::units::{ByteCount, ParseUnitError};
use plumb_report::export;
use plumb_wire::native::control::flow::quic::QuicFlow;
use plumb_wire::native::control::flow::{Flow, TcpFlow};
use plumb_wire::native::spec::MOST_STREAMS;
use plumb_wire::native::spec::PATIENCE;

use crate::capture;
use crate::direction::Directions;
use crate::exit::{Ends, stop_flag};
use crate::far_end::{self, Protocol, Sought};
use crate::files::OpenFiles;
use crate::intervals::{Intervals, interval};
use crate::mix::Mix;
use crate::output::{Begun, LiveOutput, print_json, say};
use crate::quantity::time_above_zero;
use crate::target::{ResponderOptions, Target, command_line};
use crate::trust::TrustOptions;
use crate::usage::wrong;

/// How to load the path; what is not given is the verb's own.
#[derive(Args)]
pub(crate) struct LoadOptions {
    #[command(flatten)]
    pub(crate) responder: ResponderOptions,
    /// The most that may be transferred; phases get shorter to keep to it
    #[arg(long, value_name = "SIZE", value_parser = enough_budget)]
    budget: Option<ByteCount>,
    /// How long each phase of load lasts
    #[arg(short = 't', long, alias = "time", value_name = "TIME", value_parser = time_above_zero)]
    duration: Option<Duration>,
    /// Streams of load in each direction
    #[arg(short = 'P', long, alias = "parallel", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_STREAMS)))]
    streams: Option<u32>,
    /// Keep what passes between here and the far end, and ICMP, in this file for plumb capture
    #[arg(long, value_name = "FILE")]
    capture: Option<PathBuf>,
    /// Congestion control of the load at both ends [default: cubic]
    #[arg(short = 'C', long, alias = "congestion", value_name = "NAME")]
    cc: Option<String>,
}

/// What a verb does by default.
pub(crate) struct Defaults {
    pub(crate) directions: Vec<Direction>,
    pub(crate) budget: ByteCount,
    /// Payload of each phase; the budget's share when absent.
    pub(crate) bytes: Option<ByteCount>,
    pub(crate) times: Times,
    pub(crate) until_steady: bool,
    pub(crate) streams: u32,
    pub(crate) flow: Flow,
    pub(crate) shape: Shape,
    pub(crate) files: OpenFiles,
    pub(crate) applications: Vec<&'static Profile>,
    pub(crate) latency: bool,
    pub(crate) judge: bool,
    /// Whether the result is printed as iperf3 prints it.
    pub(crate) as_iperf3: bool,
}

/// The arguments of a verb that loads the path and shows what came of it.
#[derive(Args)]
pub(crate) struct LoadArguments {
    /// Name or address of the far end, where plumb serve runs
    host: String,
    #[command(flatten)]
    directions: Directions,
    #[command(flatten)]
    load: LoadOptions,
    /// An application's traffic, alone and then beside the load
    ///
    /// voice, call-200k, keystrokes, game, video-call or dash; may be repeated.
    #[arg(long, value_name = "PROFILE", value_parser = find)]
    with: Vec<&'static Profile>,
    /// Print what was carried in each interval, while it runs
    #[arg(short, long, value_name = "TIME", value_parser = interval, conflicts_with_all = ["json", "json_lines"])]
    interval: Option<Duration>,
    #[command(flatten)]
    output: LiveOutput,
}

impl LoadArguments {
    /// Whether both directions at once are asked for.
    pub(crate) fn loads_both_at_once(&self) -> bool {
        self.directions.or(&[]).contains(&Direction::Both)
    }

    /// Measures in the directions asked for, or else in the verb's own, by a protocol, or by what the far end speaks, and
    /// shows the Run.
    pub(crate) fn run(
        &self,
        protocol: Option<Protocol>,
        trust: &TrustOptions,
        mut defaults: Defaults,
        mix: &Mix,
    ) -> anyhow::Result<ExitCode> {
        let groups = self.load.groups(&defaults, mix)?;
        let of_url =
            far_end::authority(&self.host).filter(|_| protocol.is_some_and(Protocol::takes_urls));
        let target = Target::resolve(of_url.as_deref().unwrap_or(&self.host))?;
        let output = self.output.begin()?;
        // Before the client's threads start, so that none of them is hit.
        let cancel = stop_flag(Ends::ByItself)?;
        let sought = Sought {
            host: &self.host,
            target: &target,
            responder: &self.load.responder,
            trust,
            patience: PATIENCE,
        };
        let far = far_end::find(sought, protocol)?;
        let carries = far.carries();
        defaults
            .directions
            .retain(|direction| carries.has(*direction));
        defaults.directions = self.directions.or(&defaults.directions);
        defaults.applications.extend(&self.with);
        let watcher = self.watcher();
        let as_iperf3 = defaults.as_iperf3;
        let plan = self.load.plan(&target, defaults, groups);
        let link_bps = announcement::link_bps(target.address.ip());
        say(plan.announcement(link_bps));
        if far.responder().is_none() {
            refuse_beside(&plan)?;
        }
        let capture = self.load.capture(far.address().ip())?;
        let measured = with_far_end::run(far, &plan, Besides::default(), &*watcher, &cancel);
        drop(watcher);
        let captured = capture.map(capture::Beside::finish);
        let mut conducted = measured.context("cannot measure")?;
        conducted.run.notes.extend(captured);
        if as_iperf3 {
            print_json(&export::iperf3::export(&conducted.run, None)?)?;
            output.save(conducted.run)?;
            return conducted
                .shortfall
                .map_or(Ok(ExitCode::SUCCESS), |why| Err(why.into()));
        }
        show(output, conducted)
    }

    /// Whom to show how it goes.
    fn watcher(&self) -> Box<dyn Watcher> {
        match self.interval {
            Some(every) => Box::new(Intervals::new(every)),
            None => self.output.watcher(),
        }
    }

    /// Searches the highest UDP rate at which no more than 1 % is lost, and shows the Run.
    pub(crate) fn search(
        &self,
        each_way: Vec<Direction>,
        tcp: TcpFlow,
        application_bps: Option<f64>,
        budget: ByteCount,
    ) -> anyhow::Result<ExitCode> {
        let target = Target::resolve(&self.host)?;
        let output = self.output.begin()?;
        let cancel = stop_flag(Ends::ByItself)?;
        let client = target.connect(&self.load.responder)?;
        let plan = available::Plan {
            name: target.name.clone(),
            command: command_line(),
            directions: self.directions.or(&each_way),
            tcp: TcpFlow {
                cc: self.load.cc.clone(),
                ..tcp
            },
            application_bps,
            budget: self.load.budget.unwrap_or(budget),
        };
        say(plan.announcement());
        let watcher = self.watcher();
        let capture = self.load.capture(target.address.ip())?;
        let measured = available::run(client, &plan, &*watcher, &cancel);
        drop(watcher);
        let captured = capture.map(capture::Beside::finish);
        let mut conducted = measured.context("cannot measure")?;
        conducted.run.notes.extend(captured);
        show(output, conducted)
    }
}

impl LoadOptions {
    /// The streams of the load in each direction: known before anybody is asked for them.
    pub(crate) fn groups(&self, defaults: &Defaults, mix: &Mix) -> anyhow::Result<Vec<Group>> {
        let flow = match (defaults.flow.clone(), self.cc.clone()) {
            (Flow::Tcp(tcp), cc) => Flow::Tcp(TcpFlow { cc, ..tcp }),
            (Flow::Quic(quic), cc) => Flow::Quic(QuicFlow { cc, ..quic }),
            (Flow::Udp(_) | Flow::Transactions(_), Some(_)) => {
                return Err(wrong("--cc is of TCP: leave it out with --udp"));
            }
            (flow, None) => flow,
        };
        let streams = self.streams.unwrap_or(defaults.streams);
        mix.groups(streams, &flow).map_err(wrong)
    }

    /// Whether what passes is to be kept.
    pub(crate) fn captures(&self) -> bool {
        self.capture.is_some()
    }

    /// Without a far end there is nothing to capture.
    pub(crate) fn refuse_capture(&self) -> anyhow::Result<()> {
        match self.capture {
            None => Ok(()),
            Some(_) => Err(wrong(
                "--capture keeps what passes between here and a far end: name one, or leave it out",
            )),
        }
    }

    /// Begins to capture what is exchanged with a far end, where that was asked for.
    pub(crate) fn capture(&self, far_end: IpAddr) -> anyhow::Result<Option<capture::Beside>> {
        let path = self.capture.as_deref();
        path.map(|path| capture::Beside::begin(path, far_end))
            .transpose()
    }

    /// How long each phase is to last, where that was given.
    pub(crate) fn duration(&self) -> Option<Duration> {
        self.duration
    }

    /// The most payload that may be transferred.
    pub(crate) fn budget(&self, usual: ByteCount) -> ByteCount {
        self.budget.unwrap_or(usual)
    }

    /// What is measured, and how far it goes.
    pub(crate) fn plan(&self, target: &Target, defaults: Defaults, groups: Vec<Group>) -> Plan {
        Plan {
            name: target.name.clone(),
            command: command_line(),
            // What is asked for has no other limit.
            times: self.duration.map_or(defaults.times, Times::of_phases),
            until: None,
            asked: None,
            until_steady: defaults.until_steady,
            from: defaults.files.from,
            to: defaults.files.to,
            bytes: defaults.bytes,
            groups,
            applications: defaults.applications,
            shape: defaults.shape,
            budget: match defaults.bytes {
                // What is asked for is allowed.
                Some(bytes) => {
                    let phases = defaults.directions.len() as u64;
                    ByteCount::from_bytes(bytes.bytes().saturating_mul(phases))
                }
                None => self.budget(defaults.budget),
            },
            directions: defaults.directions,
            latency: defaults.latency,
            judge: defaults.judge,
        }
    }
}

/// What a server of others does not measure.
fn refuse_beside(plan: &Plan) -> anyhow::Result<()> {
    match plan.applications.is_empty() {
        true => Ok(()),
        false => Err(wrong(
            "applications need 'plumb serve' at the far end: leave --profile and --with out",
        )),
    }
}

/// Shows what was measured; an error where it is not all that was asked for.
fn show(output: Begun<'_>, conducted: Conducted) -> anyhow::Result<ExitCode> {
    output.emit(conducted.run)?;
    conducted
        .shortfall
        .map_or(Ok(ExitCode::SUCCESS), |why| Err(why.into()))
}

/// The least that a load phase of a few round trips takes.
const LEAST_BUDGET: ByteCount = ByteCount::from_bytes(1_000_000);

pub(crate) fn enough_budget(text: &str) -> Result<ByteCount, String> {
    match text.parse() {
        Ok(budget) if budget < LEAST_BUDGET => Err(format!(
            "nothing can be measured with less than {LEAST_BUDGET}"
        )),
        other => other.map_err(|e: ParseUnitError| e.to_string()),
    }
}
