//! `plumb rate`: throughput.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_model::results::Direction;
use plumb_model::units::ByteCount;
use plumb_wire::native::control::flow::TcpFlow;

use crate::load_options::{Defaults, LoadArguments};

/// What may be transferred unless said otherwise: ten seconds each way at 8 Gbit/s.
const BUDGET: ByteCount = ByteCount::from_bytes(20_000_000_000);

/// How long each direction is measured unless said otherwise: slow start is over on any path.
const DURATION: Duration = Duration::from_secs(10);

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: one TCP connection may be held back by a buffer or a processor; the shares of time say by
which. Both ends' processor use counts plumb's own process only.";

/// What the verb takes.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArguments,
    /// Encrypt the streams (TLS 1.3): what is counted is payload, and the cipher's cost shows as
    /// processor use; the programs encrypt themselves, not their kernels (no kTLS)
    #[arg(long)]
    tls: bool,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let tls = arguments.tls;
    arguments.load.run(Defaults {
        directions: vec![Direction::Down, Direction::Up],
        budget: BUDGET,
        duration: DURATION,
        streams: 1,
        tcp: TcpFlow {
            tls,
            ..TcpFlow::default()
        },
        latency: false,
        judge: false,
    })
}
