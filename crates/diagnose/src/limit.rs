//! What ended the rate of one load, as the records of its ends have it.

use plumb_model::context::Load;
use plumb_model::run::Measurement;

/// Of one core, from here on the processor is what a stream waits for.
const BUSY_RATIO: f64 = 0.9;

/// As many cores as streams can keep busy at an end whose one thread sends and one receives.
const MOST_CORES: f64 = 2.0;

/// How many times the fastest round trip the slowest is where the load fills a queue.
const QUEUED: f64 = 1.5;

/// What a load waited for most of the time; shares are of the time, or of one core.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// The rate of each stream that was asked for, in bit/s.
    Pacing(f64),
    Disk,
    ProcessorHere(f64),
    ProcessorThere(f64),
    Path {
        ratio: f64,
        /// The fastest and the slowest round trip, in seconds, where its queue grew.
        queue_s: Option<(f64, f64)>,
    },
    ReceiveBuffer(f64),
    SendBuffer(f64),
    /// The sending program had nothing to send.
    Program(f64),
}

/// The limit of a load; `None` of other measurements, and where the sender's record is missing.
pub fn limit(measurement: &Measurement) -> Option<Limit> {
    let result = measurement.outcome.throughput()?;
    // It goes missing with a far end that goes away.
    if result.cc.is_empty() {
        return None;
    }
    let load = measurement.context.load.as_ref();
    if let Some(bps) = load.and_then(Load::pacing_bps) {
        return Some(Limit::Pacing(bps));
    }
    if result.files.is_some_and(|files| files.limits()) {
        return Some(Limit::Disk);
    }
    let cores = (result.streams.len().max(1) as f64).min(MOST_CORES);
    let is_busy = |ratio: &f64| *ratio >= BUSY_RATIO * cores;
    if let Some(ratio) = result.cpu.local_ratio.filter(is_busy) {
        return Some(Limit::ProcessorHere(ratio));
    }
    if let Some(ratio) = result.cpu.remote_ratio.filter(is_busy) {
        return Some(Limit::ProcessorThere(ratio));
    }
    let tcp = &result.tcp;
    let grown = tcp.min_rtt_s.zip(tcp.max_srtt_s);
    let of_time = &tcp.limited;
    let limits = [
        Limit::Path {
            ratio: of_time.network_ratio,
            queue_s: grown.filter(|(least, most)| *most > QUEUED * least),
        },
        Limit::ReceiveBuffer(of_time.rwnd_ratio),
        Limit::SendBuffer(of_time.sndbuf_ratio),
        Limit::Program(of_time.app_ratio),
    ];
    // All are zero where the sending end reported nothing.
    limits
        .into_iter()
        .filter(|limit| limit.ratio() > 0.0)
        .max_by(|a, b| a.ratio().total_cmp(&b.ratio()))
}

impl Limit {
    /// Share of the time, or of one core; 1 where it is neither.
    pub fn ratio(self) -> f64 {
        match self {
            Self::Pacing(_) | Self::Disk => 1.0,
            Self::ProcessorHere(ratio)
            | Self::ProcessorThere(ratio)
            | Self::Path { ratio, .. }
            | Self::ReceiveBuffer(ratio)
            | Self::SendBuffer(ratio)
            | Self::Program(ratio) => ratio,
        }
    }
}
