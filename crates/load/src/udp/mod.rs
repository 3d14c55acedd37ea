//! UDP streams of one end of a phase: a thread each.
//!
//! A sender keeps to its schedule and ends by saying how many packets there were; a receiver
//! stays until it has heard that, so that what is still on the way is not taken for lost.

pub mod analysis;
mod clock;
pub(crate) mod flood;
mod marks;
mod receiver;
pub mod schedule;
mod sender;
pub(crate) mod summary;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use plumb_net::bulk::BulkSocket;
use plumb_wire::native::control::flow::udp::UdpFlow;
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::control::report::udp::{UdpReceiverLog, UdpReport, UdpSenderLog};
use plumb_wire::native::datagram;

use crate::phase_state::Stage;
pub use marks::Marks;
use receiver::{RECEIVE_BUFFER_BYTES, Receiving};
use sender::Sending;

/// A UDP stream and its socket, connected to the far end.
#[derive(Debug)]
pub struct UdpStream {
    pub name: Preamble,
    pub flow: UdpFlow,
    pub socket: BulkSocket,
    pub marks: Marks,
}

impl UdpStream {
    /// Asks the far end for it once more.
    pub(crate) fn attach(&self) -> io::Result<()> {
        self.socket.send(&datagram::attach(&self.name)).map(|_| ())
    }

    fn prepare_to_send(&self, notes: &mut Vec<String>) -> io::Result<()> {
        let Self { flow, socket, .. } = self;
        socket.report_errors()?;
        let ecn = flow.ecn.map_or(0, |ecn| ecn.bits());
        socket.set_traffic_class(flow.dscp.unwrap_or(0), ecn)?;
        if flow.dont_fragment {
            socket.set_dont_fragment()?;
        }
        if flow.gso.is_some() {
            socket.set_segment_bytes(flow.payload_bytes)?;
        }
        let size = u32::from(flow.largest_bytes()) + socket.header_bytes();
        if let Ok(mtu) = socket.mtu_bytes()
            && size > mtu
            && !flow.dont_fragment
            && flow.gso.is_none()
        {
            notes.push(format!(
                "packets of {size} bytes with their headers are above the MTU of {mtu} bytes and leave as fragments: one lost fragment loses a packet (--dont-fragment refuses them)"
            ));
        }
        Ok(())
    }
}

/// Opens what a UDP stream is received with, before its far end knows of it: from the first packet
/// on there is room, and a stamp.
///
/// # Errors
/// Errors of the kernel.
pub(crate) fn prepare_to_receive(flow: &UdpFlow, socket: &BulkSocket) -> io::Result<()> {
    let wanted = flow.receive_buffer_bytes;
    socket.set_receive_buffer(wanted.unwrap_or(RECEIVE_BUFFER_BYTES))?;
    socket.prepare_to_receive(flow.gro)
}

#[derive(Debug, Default)]
pub(crate) struct UdpStreams {
    senders: Vec<Running<UdpSenderLog>>,
    receivers: Vec<Running<UdpReceiverLog>>,
    notes: Vec<String>,
}

#[derive(Debug)]
struct Running<Log> {
    number: u32,
    bytes: Arc<AtomicU64>,
    thread: JoinHandle<Log>,
}

impl UdpStreams {
    /// Starts them; what is sent continues for `duration`. What is received has been prepared for
    /// ([`prepare_to_receive`]).
    pub(crate) fn start(
        stage: &Arc<Stage>,
        outgoing: Vec<UdpStream>,
        incoming: Vec<UdpStream>,
        duration: Duration,
    ) -> io::Result<Self> {
        let mut this = Self::default();
        for stream in &outgoing {
            stream.prepare_to_send(&mut this.notes)?;
        }
        this.notes.dedup();
        for stream in incoming {
            let (number, bytes) = (stream.name.stream, Arc::new(AtomicU64::new(0)));
            let counter = Arc::clone(&bytes);
            let receiving = Receiving {
                number,
                marks: stream.marks,
                flow: stream.flow,
            };
            let thread = stage.spawn("plumb-receive", move |stage| {
                receiving.run(&stream.socket, &counter, stage)
            })?;
            this.receivers.push(Running {
                number,
                bytes,
                thread,
            });
        }
        for stream in outgoing {
            let (number, bytes) = (stream.name.stream, Arc::new(AtomicU64::new(0)));
            let counter = Arc::clone(&bytes);
            let sending = Sending {
                number,
                marks: stream.marks,
                flow: stream.flow,
                duration,
            };
            let thread = stage.spawn("plumb-send", move |stage| {
                sending.run(&stream.socket, &counter, stage)
            })?;
            this.senders.push(Running {
                number,
                bytes,
                thread,
            });
        }
        Ok(this)
    }

    /// Payload received so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        total(&self.receivers)
    }

    /// Payload sent so far.
    pub(crate) fn sent_bytes(&self) -> u64 {
        total(&self.senders)
    }

    /// Waits until the streams, which have been asked to stop, have said and heard their ends.
    pub(crate) fn finish(self, elapsed_s: f64) -> (UdpReport, Vec<String>) {
        let mut notes = self.notes;
        let mut failed = |number: u32| {
            notes.push(format!(
                "the thread of the UDP stream {number} failed after at most {elapsed_s:.1} s"
            ));
        };
        let senders = self.senders.into_iter().filter_map(|running| {
            let log = running.thread.join();
            log.map_err(|_| failed(running.number)).ok()
        });
        let senders = senders.collect();
        let receivers = self.receivers.into_iter().filter_map(|running| {
            let log = running.thread.join();
            log.map_err(|_| failed(running.number)).ok()
        });
        let receivers = receivers.collect();
        (UdpReport { senders, receivers }, notes)
    }
}

fn total<Log>(streams: &[Running<Log>]) -> u64 {
    streams
        .iter()
        .map(|stream| stream.bytes.load(Ordering::Relaxed))
        .sum()
}
