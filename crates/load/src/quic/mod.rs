//! QUIC connections of one end of a phase: a thread each, which drives a state machine (quinn-proto:
//! no sockets, no clock, no runtime of its own) over a UDP socket of ours.
//!
//! Each carries one stream of payload, opened by whichever end sends. Certificates are the same as for the TLS streams
//! ([`crate::tls`]).

mod connection;
mod stream;
pub(crate) mod summary;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use plumb_net::bulk::BulkSocket;
use plumb_wire::native::control::flow::quic::QuicFlow;
use plumb_wire::native::control::report::quic::{QuicReceiverLog, QuicReport, QuicSenderLog};

use crate::phase_state::Stage;
use connection::{Driver, Seen};
pub use stream::{QuicSide, QuicStream};

/// Receive buffer to ask for, in bytes before the kernel doubles them: several windows' worth of a
/// connection, so that a thread that is kept from its processor for milliseconds loses nothing.
const RECEIVE_BUFFER_BYTES: u32 = 8 * 1024 * 1024;

/// Stack of a connection's thread: a handshake computes deep in the libraries.
const STACK_BYTES: usize = 1024 * 1024;

/// Prepares the socket of a QUIC stream, at either end: both receive.
///
/// # Errors
/// Errors of the kernel.
pub(crate) fn prepare_quic(socket: &BulkSocket) -> io::Result<()> {
    socket.set_receive_buffer(RECEIVE_BUFFER_BYTES)?;
    // Path MTU discovery must see what is too large (RFC 8899).
    socket.set_dont_fragment()?;
    socket.prepare_to_receive(true)
}

#[derive(Debug, Default)]
pub(crate) struct QuicStreams {
    senders: Vec<Running>,
    receivers: Vec<Running>,
}

#[derive(Debug)]
struct Running {
    number: u32,
    flow: QuicFlow,
    bytes: Arc<AtomicU64>,
    thread: JoinHandle<Seen>,
}

impl QuicStreams {
    pub(crate) fn start(
        stage: &Arc<Stage>,
        side: Option<&QuicSide>,
        outgoing: Vec<QuicStream>,
        incoming: Vec<QuicStream>,
    ) -> io::Result<Self> {
        let mut this = Self::default();
        let Some(side) = side else { return Ok(this) };
        for (sends, streams) in [(true, outgoing), (false, incoming)] {
            for stream in streams {
                let (number, flow) = (stream.name.stream, stream.flow.clone());
                let bytes = Arc::new(AtomicU64::new(0));
                let driver = Driver::new(stream, side, sends)?;
                let counter = Arc::clone(&bytes);
                let run = move |stage: &Stage| driver.run(&counter, stage);
                let thread = stage.spawn_with(STACK_BYTES, "plumb-quic", run)?;
                let running = Running {
                    number,
                    flow,
                    bytes,
                    thread,
                };
                match sends {
                    true => this.senders.push(running),
                    false => this.receivers.push(running),
                }
            }
        }
        Ok(this)
    }

    /// Payload received so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        total(&self.receivers)
    }

    /// UDP payload sent so far: how much of it was payload of streams is known only at the far end.
    pub(crate) fn sent_bytes(&self) -> u64 {
        total(&self.senders)
    }

    /// Waits for the threads, which have been asked to stop, and returns what they saw.
    pub(crate) fn finish(self, elapsed_s: f64) -> QuicReport {
        let join = |thread: JoinHandle<Seen>| {
            thread
                .join()
                .unwrap_or_else(|_| Seen::failed(elapsed_s, "the stream's thread failed"))
        };
        let senders = self.senders.into_iter().map(|running| {
            let seen = join(running.thread);
            QuicSenderLog {
                stream: running.number,
                cc: running.flow.congestion_control().to_owned(),
                sender: seen.sender,
                handshake_s: seen.handshake_s,
                ended: seen.ended,
                samples: seen.samples,
            }
        });
        let senders = senders.collect();
        let receivers = self.receivers.into_iter().map(|running| {
            let seen = join(running.thread);
            QuicReceiverLog {
                stream: running.number,
                dropped_here: seen.drops.map(|drops| drops.full),
                corrupted: seen.drops.map(|drops| drops.corrupted),
                handshake_s: seen.handshake_s,
                ended: seen.ended,
                counts: seen.counts,
            }
        });
        QuicReport {
            senders,
            receivers: receivers.collect(),
        }
    }
}

fn total(streams: &[Running]) -> u64 {
    let bytes = |stream: &Running| stream.bytes.load(Ordering::Relaxed);
    streams.iter().map(bytes).sum()
}
