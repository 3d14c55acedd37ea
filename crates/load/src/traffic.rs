//! The running streams of one end of a phase. It is the same at both ends: a client sends its
//! uploads and receives its downloads, a server the other way round.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use plumb_net::clock::process_cpu_time;
use plumb_wire::native::control::flow::transactions::TransactionFlow;
use plumb_wire::native::control::report::Report;

use crate::phase_state::Stage;
use crate::quic::{QuicSide, QuicStream, QuicStreams};
use crate::responsiveness_probes::{Foreign, Prober, Probes, ToResponder};
use crate::streams::{FarEnd, Stream};
pub use crate::tcp::sampler::Looked;
use crate::tcp::{TcpLoad, TcpStreams};
use crate::transactions::log::TransactionLog;
use crate::transactions::{TransactionStream, TransactionStreams};
use crate::udp::{UdpStream, UdpStreams};

/// What one end of a phase carries.
#[derive(Debug)]
pub struct TrafficPlan {
    /// Streams to send on.
    pub outgoing: Vec<Stream>,
    /// Streams to receive from.
    pub incoming: Vec<Stream>,
    /// Whom to open further connections to: the client's business.
    pub far: Option<FarEnd>,
    /// Which end of QUIC connections this is; needed only where there are some.
    pub quic: Option<QuicSide>,
    /// Payload that may be carried, both directions together.
    pub byte_limit: Option<u64>,
    /// How long streams that follow a schedule send.
    pub duration: Duration,
    /// Everything ends after so long, with or without a request to end.
    pub longest: Duration,
}

/// Running streams. Dropping it stops them within 100 ms, for a far end that is gone, and aborts
/// their connections.
#[derive(Debug)]
pub struct Traffic {
    stage: Arc<Stage>,
    cpu_at_start: Duration,
    tcp: TcpStreams,
    udp: UdpStreams,
    quic: QuicStreams,
    transactions: TransactionStreams,
    prober: Option<Prober>,
}

/// What the streams of one end did.
#[derive(Debug)]
pub struct Done {
    /// What the client receives, or has for itself.
    pub report: Report,
    /// Transactions that this end asked for, by kind.
    pub transactions: Vec<(TransactionFlow, TransactionLog)>,
}

impl Traffic {
    /// Starts all streams.
    ///
    /// # Errors
    /// When the machine gives no more threads; what had started is stopped.
    pub fn start(plan: TrafficPlan) -> io::Result<Self> {
        Self::start_with(plan, None)
    }

    /// The same with `foreign`, which makes connections for single requests where the far end of the plan does not.
    pub(crate) fn start_with(
        plan: TrafficPlan,
        foreign: Option<Arc<dyn Foreign>>,
    ) -> io::Result<Self> {
        let stage = Stage::begin(plan.longest, plan.byte_limit);
        let cpu_at_start = process_cpu_time();
        let mut outgoing = Sorted::from(plan.outgoing);
        let on_demand = outgoing.on_demand();
        let incoming = Sorted::from(plan.incoming);
        let udp = UdpStreams::start(&stage, outgoing.udp, incoming.udp, plan.duration)
            .inspect_err(|_| stage.abandon())?;
        let side = plan.quic.as_ref();
        let quic = QuicStreams::start(&stage, side, outgoing.quic, incoming.quic)
            .inspect_err(|_| stage.abandon())?;
        let tcp = TcpStreams::start(&stage, outgoing.tcp, incoming.tcp)
            .inspect_err(|_| stage.abandon())?;
        let asks = plan.far.is_some() || foreign.is_some();
        let foreign = match (on_demand, plan.far.clone()) {
            (Some(stream), Some(far)) => {
                let foreign: Arc<dyn Foreign> = Arc::new(ToResponder { stream, far });
                Some(foreign)
            }
            _ => foreign,
        };
        let is_probed = asks && !tcp.probed().is_empty();
        let prober = is_probed.then(|| Prober::start(&stage, tcp.probed().to_vec(), foreign));
        let prober = prober.transpose().inspect_err(|_| stage.abandon())?;
        let transactions = TransactionStreams::start(
            &stage,
            outgoing.transactions,
            plan.far.as_ref(),
            incoming.transactions,
        )
        .inspect_err(|_| stage.abandon())?;
        Ok(Self {
            stage,
            cpu_at_start,
            tcp,
            udp,
            quic,
            transactions,
            prober,
        })
    }

    /// From now on so many requests go out each second on connections of their own, and as many on
    /// loaded ones, where the phase has such.
    pub fn probe(&self, pairs_per_s: f64) {
        if let Some(prober) = &self.prober {
            prober.probe(pairs_per_s);
        }
    }

    /// What came of the requests since the last time.
    pub fn take_probes(&self) -> Probes {
        self.prober.as_ref().map(Prober::take).unwrap_or_default()
    }

    /// By which another thread may end it.
    pub fn stage(&self) -> &Arc<Stage> {
        &self.stage
    }

    /// How long it has run.
    pub fn elapsed(&self) -> Duration {
        self.stage.started.elapsed()
    }

    /// Payload received so far.
    pub fn received_bytes(&self) -> u64 {
        self.tcp.received_bytes() + self.udp.received_bytes() + self.quic.received_bytes()
    }

    /// What had been carried at the latest sample: of TCP what had been received or acknowledged
    /// then, of UDP and QUIC what has been received or sent by now.
    pub fn looked(&self) -> Looked {
        let tcp = self.tcp.looked();
        Looked {
            acked_bytes: tcp.acked_bytes + self.udp.sent_bytes() + self.quic.sent_bytes(),
            received_bytes: tcp.received_bytes
                + self.udp.received_bytes()
                + self.quic.received_bytes(),
            ..tcp
        }
    }

    /// Transactions completed so far.
    pub fn transactions(&self) -> u64 {
        self.transactions.completed()
    }

    /// Payload of both directions that this end has handed to its kernel or received.
    pub fn carried_bytes(&self) -> u64 {
        self.stage.budget.used()
    }

    /// Whether all that may be carried has been.
    pub fn budget_is_spent(&self) -> bool {
        self.stage.budget.is_spent()
    }

    /// Whether all streams have ended by themselves; the counters read afterwards are final.
    pub fn has_ended(&self) -> bool {
        self.stage.has_ended()
    }

    /// The far end is not there any more: nothing is waited for.
    pub fn abandon(&self) {
        self.stage.abandon();
    }

    /// Whether a stream ended because the file that it sent did; all of it has arrived.
    pub fn has_source_ended(&self) -> bool {
        self.stage.has_source_ended()
    }

    /// Stops all streams, which takes up to 50 ms, with UDP up to [`LINGER`], aborts their connections and returns what
    /// they did.
    ///
    /// [`LINGER`]: plumb_wire::native::spec::LINGER
    pub fn finish(mut self) -> Done {
        let elapsed_s = self.elapsed().as_secs_f64();
        self.tcp.last_sample();
        self.stage.stop();
        // It asks on the connections whose ends are waited for next.
        self.prober = None;
        let tcp = std::mem::take(&mut self.tcp).finish(elapsed_s);
        let (udp, mut notes) = std::mem::take(&mut self.udp).finish(elapsed_s);
        notes.extend(tcp.notes);
        let quic = std::mem::take(&mut self.quic).finish(elapsed_s);
        let transactions = std::mem::take(&mut self.transactions).finish();
        let report = Report {
            senders: tcp.senders,
            receivers: tcp.receivers,
            elapsed_s,
            cpu_s: process_cpu_time()
                .saturating_sub(self.cpu_at_start)
                .as_secs_f64(),
            notes,
            udp,
            quic,
        };
        Done {
            report,
            transactions,
        }
    }
}

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stage.abandon();
    }
}

/// Streams by what carries them.
#[derive(Debug, Default)]
struct Sorted {
    tcp: Vec<TcpLoad>,
    udp: Vec<UdpStream>,
    quic: Vec<QuicStream>,
    transactions: Vec<TransactionStream>,
}

impl Sorted {
    /// Takes out the stream whose transactions something else in the phase asks for.
    fn on_demand(&mut self) -> Option<TransactionStream> {
        let place = self.transactions.iter().position(|s| s.flow.on_demand)?;
        Some(self.transactions.remove(place))
    }
}

impl From<Vec<Stream>> for Sorted {
    fn from(streams: Vec<Stream>) -> Self {
        let mut this = Self::default();
        for stream in streams {
            match stream {
                Stream::Tcp(stream) => this.tcp.push(stream),
                Stream::Udp(stream) => this.udp.push(stream),
                Stream::Quic(stream) => this.quic.push(stream),
                Stream::Transactions(stream) => this.transactions.push(stream),
            }
        }
        this
    }
}
