//! TCP streams of one end of a phase: a thread each, and one that samples them all.

pub(crate) mod options;
mod receiver;
mod sampler;
mod sender;

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};

use plumb_net::tcp;
use plumb_wire::native::control::flow::TcpFlow;
use plumb_wire::native::control::report::{
    ReceiverLog, ReceiverTail, SenderLog, SenderTail, StreamEnd,
};

use crate::stage::Stage;
use crate::tls::TlsSession;
use sampler::Record;

pub(crate) use sender::payload;

/// A TCP stream and its connection.
#[derive(Debug)]
pub struct TcpLoad {
    /// Its number among those of its direction.
    pub number: u32,
    /// What it is.
    pub flow: TcpFlow,
    /// Its data connection.
    pub socket: TcpStream,
    /// Set when that is encrypted.
    pub tls: Option<TlsSession>,
}

/// Running TCP streams.
#[derive(Debug, Default)]
pub(crate) struct TcpStreams {
    acked: Arc<AtomicU64>,
    senders: Vec<(SenderTail, Running)>,
    receivers: Vec<(u32, Running, Arc<AtomicU64>)>,
    sampler: Option<(Sender<()>, JoinHandle<Record>)>,
    notes: Vec<String>,
}

/// What they did.
#[derive(Debug, Default)]
pub(crate) struct TcpLogs {
    /// Streams sent.
    pub(crate) senders: Vec<SenderLog>,
    /// Streams received.
    pub(crate) receivers: Vec<ReceiverLog>,
    /// What must be known to read them.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug)]
struct Running {
    socket: Arc<TcpStream>,
    thread: JoinHandle<Option<StreamEnd>>,
}

/// A stream that is about to run, with the counter that its thread and the sampler share: what
/// the sender waited for its buffer in microseconds, or what the receiver counted in bytes.
struct Prepared {
    number: u32,
    flow: TcpFlow,
    socket: Arc<TcpStream>,
    counter: Arc<AtomicU64>,
    tls: Option<TlsSession>,
}

impl From<TcpLoad> for Prepared {
    fn from(stream: TcpLoad) -> Self {
        Self {
            number: stream.number,
            flow: stream.flow,
            socket: Arc::new(stream.socket),
            counter: Arc::default(),
            tls: stream.tls,
        }
    }
}

impl TcpStreams {
    /// Starts them and the sampler.
    pub(crate) fn start(
        stage: &Arc<Stage>,
        outgoing: Vec<TcpLoad>,
        incoming: Vec<TcpLoad>,
    ) -> io::Result<Self> {
        let mut this = Self::default();
        let outgoing: Vec<_> = outgoing.into_iter().map(Prepared::from).collect();
        let incoming: Vec<_> = incoming.into_iter().map(Prepared::from).collect();
        let tails = this.prepare(&outgoing, &incoming)?;
        // The sampler first, so that its first sample comes before the first byte.
        this.start_sampler(stage, &outgoing, &incoming)?;

        let write_bytes = |flow: &TcpFlow| {
            flow.write_bytes
                .map_or(sender::WRITE_BYTES, |bytes| bytes as usize)
        };
        let largest = outgoing
            .iter()
            .map(|stream| write_bytes(&stream.flow))
            .max();
        let payload = sender::payload(largest.unwrap_or(0));
        for (tail, stream) in tails.into_iter().zip(outgoing) {
            let (socket, waited) = (Arc::clone(&stream.socket), stream.counter);
            let (payload, mut tls) = (Arc::clone(&payload), stream.tls);
            let write_bytes = write_bytes(&stream.flow);
            let thread = stage.spawn("plumb-send", move |stage| {
                let payload = payload.get(..write_bytes).unwrap_or(&payload);
                sender::run(&socket, tls.as_mut(), payload, &waited, stage)
            })?;
            let socket = stream.socket;
            this.senders.push((tail, Running { socket, thread }));
        }
        for stream in incoming {
            let (socket, counter) = (Arc::clone(&stream.socket), Arc::clone(&stream.counter));
            let mut tls = stream.tls;
            let thread = stage.spawn("plumb-receive", move |stage| {
                receiver::run(&socket, tls.as_mut(), &counter, stage)
            })?;
            let socket = stream.socket;
            this.receivers
                .push((stream.number, Running { socket, thread }, stream.counter));
        }
        Ok(this)
    }

    /// Payload received so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.receivers
            .iter()
            .map(|(_, _, counter)| counter.load(Ordering::Relaxed))
            .sum()
    }

    /// Payload sent and acknowledged so far, as of the last sample.
    pub(crate) fn acked_bytes(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    /// Takes one sample at the end of the phase; another comes when everything has stopped.
    pub(crate) fn last_sample(&self) {
        if let Some((sample, _)) = &self.sampler {
            let _ = sample.send(());
        }
    }

    /// Waits for the threads, which have been told to stop, and aborts the connections.
    pub(crate) fn finish(self, elapsed_s: f64) -> TcpLogs {
        // The sockets live until the last sample is taken.
        let mut sockets = Vec::new();
        let mut join = |stream: Running| {
            sockets.push(stream.socket);
            stream.thread.join().unwrap_or_else(|_| {
                Some(StreamEnd {
                    t_s: elapsed_s,
                    error: "the stream's thread failed".to_owned(),
                })
            })
        };
        let senders: Vec<_> = self
            .senders
            .into_iter()
            .map(|(tail, stream)| SenderTail {
                ended: join(stream),
                ..tail
            })
            .collect();
        let receivers: Vec<_> = self
            .receivers
            .into_iter()
            .map(|(number, stream, _)| (number, join(stream)))
            .collect();
        let record = self.sampler.and_then(|(sample, thread)| {
            drop(sample);
            thread.join().ok()
        });
        drop(sockets);

        let record = record.unwrap_or_default();
        TcpLogs {
            senders: senders
                .into_iter()
                .zip(record.senders)
                .map(|(tail, samples)| SenderLog { tail, samples })
                .collect(),
            receivers: receivers
                .into_iter()
                .zip(record.receivers)
                .map(|((stream, ended), seen)| ReceiverLog {
                    tail: ReceiverTail {
                        stream,
                        receive_buffer_bytes: seen.receive_buffer_bytes,
                        ended,
                    },
                    counts: seen.counts,
                })
                .collect(),
            notes: self.notes,
        }
    }

    /// Sets what the sockets need, and tells what the senders got.
    fn prepare(
        &mut self,
        outgoing: &[Prepared],
        incoming: &[Prepared],
    ) -> io::Result<Vec<SenderTail>> {
        let mut notes = Vec::new();
        for stream in outgoing.iter().chain(incoming) {
            tcp::abort_on_close(&stream.socket)?;
            notes.extend(options::apply(&stream.socket, &stream.flow));
        }
        let mut tails = Vec::new();
        for stream in outgoing {
            let socket = &stream.socket;
            let negotiated = tcp::negotiated(socket).unwrap_or_default();
            notes.extend(options::congestion_control(socket, &stream.flow));
            notes.extend(options::not_agreed(&stream.flow, &negotiated));
            tails.push(SenderTail {
                stream: stream.number,
                cc: tcp::congestion_control(socket).unwrap_or_default(),
                mss_bytes: tcp::tcp_info(socket).map_or(0, |info| u64::from(info.snd_mss_bytes)),
                ecn: negotiated.ecn,
                fast_open: negotiated.fast_open,
                mptcp: negotiated.mptcp,
                ended: None,
            });
        }
        for note in notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        Ok(tails)
    }

    fn start_sampler(
        &mut self,
        stage: &Stage,
        outgoing: &[Prepared],
        incoming: &[Prepared],
    ) -> io::Result<()> {
        let of = |streams: &[Prepared]| -> Vec<_> {
            streams
                .iter()
                .map(|stream| (Arc::clone(&stream.socket), Arc::clone(&stream.counter)))
                .collect()
        };
        let (senders, receivers) = (of(outgoing), of(incoming));
        let (sample, now) = mpsc::channel();
        let (started, acked) = (stage.started, Arc::clone(&self.acked));
        let thread = Builder::new()
            .name("plumb-sample".to_owned())
            .spawn(move || sampler::run(&senders, &receivers, started, &acked, &now))?;
        self.sampler = Some((sample, thread));
        Ok(())
    }
}
