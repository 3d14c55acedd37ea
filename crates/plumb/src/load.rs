//! `plumb load`: latency before, during and after load.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};
use plumb_check::shape::Shape;
use plumb_check::{budget, with_responder};
use plumb_model::results::Direction;
use plumb_wire::native::control::flow::{Flow, TcpFlow};

use crate::files::OpenFiles;
use crate::load_options::{Defaults, LoadArguments};

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Shapes: phases loads upwards, downwards and both ways in turn with best effort, as check does. rrul is
the test of that name: both ways at once for 60 s, one flow each way in each of the classes BK (CS1),
BE, CS5 and EF, with round trips in each; rrul-be the same in best effort alone. torrent sets one flow
of best effort against six of background. --down, --up and --both choose the ways of any of them,
--streams the number of flows each way, which the classes share.

Limits: as for check. A network may rewrite or ignore a DSCP: classes that fare alike say so. A router
on the way answers probes when it has time: its round trips may be longer than those through it.
A phase may last as long as the responder allows (10 minutes, unless it was started with another
--max-duration). Round trips a minute (RPM) are not measured yet.";

/// How long the RRUL tests last unless told otherwise, as flent has it.
const RRUL_DURATION: Duration = Duration::from_secs(60);

/// What the verb takes.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArguments,
    /// What flows, and when
    #[arg(long, value_enum, default_value_t = Pattern::Phases, conflicts_with_all = ["flows", "background"])]
    shape: Pattern,
}

/// The shapes of load that have a name.
#[derive(Clone, Copy, ValueEnum)]
enum Pattern {
    /// Best effort up, down, and both at once
    Phases,
    /// Both ways at once in four classes of traffic
    Rrul,
    /// Both ways at once in best effort
    RrulBe,
    /// Both ways at once, one flow of best effort against background
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
            Self::Phases => with_responder::CHECK_DIRECTIONS.to_vec(),
            Self::Rrul | Self::RrulBe | Self::Torrent => vec![Direction::Both],
        }
    }

    fn duration(self) -> Duration {
        match self {
            Self::Phases => with_responder::PHASE,
            Self::Rrul | Self::RrulBe | Self::Torrent => RRUL_DURATION,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let shape = arguments.shape.shape();
    arguments.load.run(Defaults {
        directions: arguments.shape.directions(),
        budget: budget::DEFAULT,
        duration: arguments.shape.duration(),
        streams: shape.streams(),
        flow: Flow::Tcp(TcpFlow::default()),
        shape,
        files: OpenFiles::default(),
        bytes: None,
        until_steady: false,
        applications: Vec::new(),
        latency: true,
        judge: false,
    })
}
