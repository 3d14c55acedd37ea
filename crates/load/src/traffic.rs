//! The running streams of one end of a phase. It is the same at both ends: a client sends its
//! uploads and receives its downloads, a server the other way round.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use plumb_net::clock::process_cpu_time;
use plumb_wire::native::control::report::Report;

use crate::stage::Stage;
use crate::streams::Stream;
use crate::tcp::TcpStreams;

/// What one end of a phase carries.
#[derive(Debug)]
pub struct TrafficPlan {
    /// Streams to send on.
    pub outgoing: Vec<Stream>,
    /// Streams to receive from.
    pub incoming: Vec<Stream>,
    /// Payload that may be carried, both directions together.
    pub byte_limit: Option<u64>,
    /// Everything ends after so long, told to or not.
    pub longest: Duration,
}

/// Running streams. Dropping it stops them within 100 ms and aborts their connections.
#[derive(Debug)]
pub struct Traffic {
    stage: Arc<Stage>,
    cpu_at_start: Duration,
    tcp: TcpStreams,
}

impl Traffic {
    /// Starts all streams.
    ///
    /// # Errors
    /// When the machine gives no more threads; what had started is stopped.
    pub fn start(plan: TrafficPlan) -> io::Result<Self> {
        let stage = Stage::begin(plan.longest, plan.byte_limit);
        let cpu_at_start = process_cpu_time();
        let tcp = TcpStreams::start(&stage, plan.outgoing, plan.incoming)
            .inspect_err(|_| stage.stop())?;
        Ok(Self {
            stage,
            cpu_at_start,
            tcp,
        })
    }

    /// How long it has run.
    pub fn elapsed(&self) -> Duration {
        self.stage.started.elapsed()
    }

    /// Payload received so far.
    pub fn received_bytes(&self) -> u64 {
        self.tcp.received_bytes()
    }

    /// Payload sent and acknowledged so far, as of the last sample.
    pub fn acked_bytes(&self) -> u64 {
        self.tcp.acked_bytes()
    }

    /// Whether all streams have ended by themselves; the counters read afterwards are final.
    pub fn has_ended(&self) -> bool {
        self.stage.has_ended()
    }

    /// Stops all streams, which takes up to 50 ms, aborts their connections and tells what they
    /// did.
    pub fn finish(mut self) -> Report {
        let elapsed_s = self.elapsed().as_secs_f64();
        self.tcp.last_sample();
        self.stage.stop();
        let tcp = std::mem::take(&mut self.tcp).finish(elapsed_s);
        Report {
            senders: tcp.senders,
            receivers: tcp.receivers,
            elapsed_s,
            cpu_s: process_cpu_time()
                .saturating_sub(self.cpu_at_start)
                .as_secs_f64(),
            notes: tcp.notes,
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stage.stop();
    }
}
