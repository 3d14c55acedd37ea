//! `plumb load`: latency before, during and after load.

use std::process::ExitCode;

use plumb_check::{budget, with_responder};
use plumb_wire::native::control::flow::{Flow, TcpFlow};

use crate::load_options::{Defaults, LoadArguments};

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: as for check. Round trips a minute (RPM) are not measured yet.";

/// What the verb takes.
pub(crate) type Arguments = LoadArguments;

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.run(Defaults {
        directions: with_responder::CHECK_DIRECTIONS.to_vec(),
        budget: budget::DEFAULT,
        duration: with_responder::PHASE,
        streams: with_responder::STREAMS,
        flow: Flow::Tcp(TcpFlow::default()),
        latency: true,
        judge: false,
    })
}
