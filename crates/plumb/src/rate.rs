//! `plumb rate`: throughput.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use plumb_check::shape::Shape;
use plumb_model::results::Direction;
use plumb_model::units::ByteCount;

use crate::load_options::{Defaults, LoadArguments};
use crate::tcp_options::TcpOptions;
use crate::udp_options::UdpOptions;

/// What may be transferred unless said otherwise: ten seconds each way at 8 Gbit/s.
const BUDGET: ByteCount = ByteCount::from_bytes(20_000_000_000);

/// How long each direction is measured unless said otherwise: slow start is over on any path.
const DURATION: Duration = Duration::from_secs(10);

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: one TCP connection may be held back by a buffer or a processor; the shares of time say by
which. Both ends' processor use counts plumb's own process only. UDP leaves on time as far as the
machine wakes up on time: the kernel does not pace it, and each stream that sends takes up to a whole
processor for that; slots missed are told, never caught up. One-way delay is known to within half of
the smallest round trip. `plumb explain udp` says what the numbers mean.";

/// What the verb takes.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    load: LoadArguments,
    #[command(flatten)]
    tcp: TcpOptions,
    #[command(flatten)]
    udp: UdpOptions,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.load.run(Defaults {
        directions: vec![Direction::Down, Direction::Up],
        budget: BUDGET,
        duration: DURATION,
        streams: 1,
        flow: arguments.udp.flow(arguments.tcp.flow())?,
        shape: Shape::BestEffort,
        latency: false,
        judge: false,
    })
}
