//! `plumb load`: latency before, during and after load.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use plumb_measure::times::Times;
use plumb_measure::traffic_classes::Shape;
use plumb_measure::{budget, responsiveness, with_far_end};
use plumb_model::results::Direction;
use plumb_model::units;
use plumb_wire::native::control::flow::{Flow, TcpFlow};

use crate::far_end::Protocol;
use crate::files::OpenFiles;
use crate::load_options::{Defaults, LoadArguments};
use crate::mix::Mix;
use crate::quantity::time_from;
use crate::trust::TrustOptions;
use crate::usage::wrong;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Shapes: phases loads up, down and both at once, in turn, with best effort, as check does. rrul is the test of that name: \
both directions at once for 60 s, one flow in each of the classes BK (CS1), BE, CS5 and EF, with round trips in each; \
rrul-be is the same in best effort alone. torrent sets one flow of best effort against six of background. --down, --up and \
--both choose the directions of any of them, --streams the number of flows in each, which the classes share.

Limits: as for check. A network may rewrite or ignore a DSCP: the result shows classes that are treated alike. A router on \
the path answers probes when it has time: its round trips may be longer than those through it. A phase may last as long as \
the responder allows (10 minutes, unless it was started with another --max-duration). --rpm is \
draft-ietf-ippm-responsiveness with servers of the web (--protocol nq or http, over HTTP/2 and TLS). With a responder it has \
plumb's own records over TLS in the place of HTTP/2: compare those numbers with others' with care. See `plumb explain responsiveness`.";

/// How long the RRUL tests last by default, as flent has it.
const RRUL_DURATION: Duration = Duration::from_secs(60);

/// The shortest interval of --rpm: ten samples of 100 ms.
const LEAST_INTERVAL: Duration = Duration::from_secs(1);

/// What the verb takes.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArguments,
    /// Pattern of the load
    #[arg(long, value_enum, default_value_t = Pattern::Phases, conflicts_with_all = ["flows", "background"])]
    shape: Pattern,
    /// Round trips a minute (RPM), down and then up
    ///
    /// Connections are added until goodput, and then responsiveness, is stable.
    #[arg(long, conflicts_with_all = ["flows", "background", "shape"])]
    rpm: bool,
    /// With --rpm, the interval of the draft [default: 1s]
    ///
    /// Between two looks, and between two new connections: 1s as the draft had it until version 08, 5s as version 09 has it.
    #[arg(long, value_name = "TIME", value_parser = time_from(LEAST_INTERVAL, "samples come every 100 ms: an interval of 1s or more is needed"), requires = "rpm", conflicts_with_all = ["flows", "background", "shape"])]
    rpm_interval: Option<Duration>,
    /// What the far end speaks [default: native, else what is found there]
    #[arg(long, value_name = "PROTOCOL")]
    protocol: Option<Protocol>,
    #[command(flatten)]
    trust: TrustOptions,
    #[command(flatten)]
    mix: Mix,
}

/// The shapes of load that have a name.
#[derive(Clone, Copy, ValueEnum)]
enum Pattern {
    /// Best effort up, down, and both at once
    Phases,
    /// Both directions at once in four classes of traffic
    Rrul,
    /// Both directions at once in best effort
    RrulBe,
    /// Both directions at once, one flow of best effort against background
    Torrent,
}

impl Pattern {
    fn shape(self) -> Shape {
        match self {
            Self::Phases | Self::RrulBe => Shape::BestEffort,
            Self::Rrul => Shape::Rrul,
            Self::Torrent => Shape::Torrent,
        }
    }

    fn directions(self) -> Vec<Direction> {
        match self {
            Self::Phases => with_far_end::CHECK_DIRECTIONS.to_vec(),
            Self::Rrul | Self::RrulBe | Self::Torrent => vec![Direction::Both],
        }
    }

    fn duration(self) -> Duration {
        match self {
            Self::Phases => with_far_end::PHASE,
            Self::Rrul | Self::RrulBe | Self::Torrent => RRUL_DURATION,
        }
    }
}

/// What it does where these are not given.
pub(crate) fn defaults() -> Vec<(&'static str, String)> {
    vec![
        (
            "duration",
            format!(
                "{}, {} with --shape rrul, rrul-be and torrent; {} intervals at most with --rpm",
                units::duration(with_far_end::PHASE),
                units::duration(RRUL_DURATION),
                responsiveness::MOST_INTERVALS
            ),
        ),
        (
            "streams",
            format!("{}; 16 at most with --rpm", Shape::BestEffort.streams()),
        ),
        ("budget", budget::DEFAULT.to_string()),
    ]
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let interval = arguments.rpm_interval.unwrap_or(responsiveness::INTERVAL);
    let (shape, directions, duration) = match arguments.rpm {
        true => (
            Shape::Responsiveness { interval },
            vec![Direction::Down, Direction::Up],
            interval * responsiveness::MOST_INTERVALS,
        ),
        false => (
            arguments.shape.shape(),
            arguments.shape.directions(),
            arguments.shape.duration(),
        ),
    };
    if arguments.rpm && arguments.load.loads_both_at_once() {
        return Err(wrong(
            "round trips a minute are measured in one direction at a time: leave --both out, or ask for --down or --up",
        ));
    }
    let defaults = Defaults {
        directions,
        budget: budget::DEFAULT,
        times: Times::of_phases(duration),
        streams: shape.streams(),
        flow: Flow::Tcp(TcpFlow::default()),
        shape,
        files: OpenFiles::default(),
        bytes: None,
        until_steady: false,
        applications: Vec::new(),
        latency: true,
        judge: false,
        as_iperf3: false,
    };
    let Arguments {
        load,
        protocol,
        trust,
        mix,
        ..
    } = arguments;
    load.run(*protocol, trust, defaults, mix)
}
