//! TCP streams of one end of a phase: a thread each, and one that samples them all.

mod background;
mod ledbat;
pub(crate) mod options;
pub(crate) mod probed;
mod receiver;
pub(crate) mod sampler;
mod sender;
pub(crate) mod unsent;
mod wakes;
mod zero_copy;

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use plumb_net::tcp::{self, Negotiated};
use plumb_wire::native::control::flow::TcpFlow;
use plumb_wire::native::control::report::{
    ReceiverLog, ReceiverTail, SenderLog, SenderTail, StreamEnd,
};

use crate::file::{Sink, Source, StreamFile};
use crate::framing::Framing;
use crate::loaded::Loaded;
use crate::phase_state::Stage;
use crate::tls::{Pipe, TlsSession};
use background::Background;
use probed::{Connection, Load};
use receiver::Destination;
use sampler::{Looked, Record, Sampler};
use sender::Origin;
use zero_copy::{InPlace, Refused, copied_for_device};

pub use sender::payload;

/// What is said once of a stream that this end sends on a connection.
pub(crate) fn tail(stream: u32, socket: &TcpStream, negotiated: &Negotiated) -> SenderTail {
    SenderTail {
        stream,
        cc: tcp::congestion_control(socket).unwrap_or_default(),
        mss_bytes: tcp::tcp_info(socket).map_or(0, |info| u64::from(info.snd_mss_bytes)),
        ecn: negotiated.ecn,
        fast_open: negotiated.fast_open,
        mptcp: negotiated.mptcp,
        window_scaling: Some(negotiated.window_scaling),
        sack: Some(negotiated.sack),
        timestamps: Some(negotiated.timestamps),
        ..SenderTail::default()
    }
}

/// A TCP stream and its connection.
#[derive(Debug)]
pub struct TcpLoad {
    /// Its number among the streams of its direction.
    pub number: u32,
    pub flow: TcpFlow,
    pub socket: TcpStream,
    /// Set when that is encrypted.
    pub tls: Option<TlsSession>,
    /// What has the connection, and frames payload on it, where a protocol of others does.
    pub framing: Option<Box<dyn Framing>>,
    /// The file that its payload comes from or goes to, if any.
    pub file: Option<StreamFile>,
}

#[derive(Debug, Default)]
pub(crate) struct TcpStreams {
    looked: Arc<Mutex<Looked>>,
    senders: Vec<(SenderTail, Running)>,
    receivers: Vec<(ReceiverTail, Running, Arc<AtomicU64>)>,
    probed: Vec<Arc<dyn Loaded>>,
    sampler: Option<(Sender<()>, JoinHandle<Record>)>,
    notes: Vec<String>,
}

#[derive(Debug, Default)]
pub(crate) struct TcpLogs {
    pub(crate) senders: Vec<SenderLog>,
    pub(crate) receivers: Vec<ReceiverLog>,
    /// What must be known to read them.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug)]
struct Running {
    socket: Arc<TcpStream>,
    /// Time waited for the stream's file, where it has one.
    file_wait_us: Option<Arc<AtomicU64>>,
    /// Whether it copied although it was not to.
    refused: Arc<Refused>,
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
    framing: Option<Box<dyn Framing>>,
    file: Option<(StreamFile, Arc<AtomicU64>)>,
    refused: Arc<Refused>,
}

impl Prepared {
    /// Most bytes handed to the kernel at once.
    fn write_bytes(&self) -> usize {
        self.flow
            .write_bytes
            .map_or(sender::WRITE_BYTES, |bytes| bytes as usize)
    }

    /// What payload goes through on its way to the socket.
    fn layers(&mut self) -> Layers {
        Layers {
            tls: self.tls.take(),
            framing: self.framing.take(),
        }
    }

    fn running(self, thread: JoinHandle<Option<StreamEnd>>) -> Running {
        Running {
            socket: self.socket,
            file_wait_us: self.file.map(|(_, wait_us)| wait_us),
            refused: self.refused,
            thread,
        }
    }
}

/// What payload goes through on its way to the socket.
struct Layers {
    tls: Option<TlsSession>,
    framing: Option<Box<dyn Framing>>,
}

impl Layers {
    fn pipe<'a>(&'a mut self, socket: &'a TcpStream) -> Pipe<'a> {
        match &mut self.framing {
            Some(framing) => Pipe::Framed(framing.as_mut()),
            None => Pipe::new(socket, self.tls.as_mut()),
        }
    }
}

impl From<TcpLoad> for Prepared {
    fn from(stream: TcpLoad) -> Self {
        Self {
            number: stream.number,
            flow: stream.flow,
            socket: Arc::new(stream.socket),
            counter: Arc::default(),
            tls: stream.tls,
            framing: stream.framing,
            file: stream.file.map(|file| (file, Arc::default())),
            refused: Arc::default(),
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
        this.start_sampler(stage, &outgoing, &incoming)?;

        let payload = Payload::of(&outgoing);
        for (tail, mut stream) in tails.into_iter().zip(outgoing) {
            if let Some(thread) = this.start_probed(stage, &mut stream, Load::Sent)? {
                this.senders.push((tail, stream.running(thread)));
                continue;
            }
            let (socket, waited) = (Arc::clone(&stream.socket), Arc::clone(&stream.counter));
            let origin = payload.origin(&stream)?;
            let mut layers = stream.layers();
            let background = Background::of(&stream.flow);
            let whole = stream.flow.write_bytes.is_some();
            let thread = stage.spawn("plumb-send", move |stage| {
                sender::run(
                    &socket,
                    layers.pipe(&socket),
                    origin,
                    background,
                    whole,
                    &waited,
                    stage,
                )
            })?;
            this.senders.push((tail, stream.running(thread)));
        }
        let alone = incoming.len() == 1;
        for mut stream in incoming {
            let (socket, counter) = (Arc::clone(&stream.socket), Arc::clone(&stream.counter));
            let tail = ReceiverTail {
                stream: stream.number,
                discard: stream.flow.discard,
                ..ReceiverTail::default()
            };
            if let Some(thread) = this.start_probed(stage, &mut stream, Load::Received)? {
                this.receivers.push((tail, stream.running(thread), counter));
                continue;
            }
            let (destination, mut layers) = (destination(&stream, alone), stream.layers());
            let thread = stage.spawn("plumb-receive", {
                let counter = Arc::clone(&counter);
                move |stage| {
                    let pipe = layers.pipe(&socket);
                    receiver::run(&socket, pipe, destination, alone, &counter, stage)
                }
            })?;
            this.receivers.push((tail, stream.running(thread), counter));
        }
        Ok(this)
    }

    /// Starts a stream that is to be probed; nothing for any other.
    fn start_probed(
        &mut self,
        stage: &Arc<Stage>,
        stream: &mut Prepared,
        load: Load,
    ) -> io::Result<Option<JoinHandle<Option<StreamEnd>>>> {
        if let Some(framing) = &stream.framing {
            self.probed.extend(framing.asks());
            return Ok(None);
        }
        let Some(probed) = &stream.flow.probed else {
            return Ok(None);
        };
        let (socket, counter) = (Arc::clone(&stream.socket), Arc::clone(&stream.counter));
        let connection = Arc::new(Connection::new(socket, stream.tls.take(), load, probed));
        let asks: Arc<dyn Loaded> = Arc::clone(&connection) as _;
        self.probed.push(asks);
        stage
            .spawn("plumb-probed", move |stage| connection.run(&counter, stage))
            .map(Some)
    }

    /// The connections that are to be probed, in their order.
    pub(crate) fn probed(&self) -> &[Arc<dyn Loaded>] {
        &self.probed
    }

    /// Payload received so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.receivers
            .iter()
            .map(|(_, _, counter)| counter.load(Ordering::Relaxed))
            .sum()
    }

    /// What they had carried at the latest sample.
    pub(crate) fn looked(&self) -> Looked {
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes one sample at the end of the phase; another comes when everything has stopped.
    pub(crate) fn last_sample(&self) {
        if let Some((sample, _)) = &self.sampler {
            let _ = sample.send(());
        }
    }

    /// Waits for the threads, which have been asked to stop, and aborts the connections.
    pub(crate) fn finish(mut self, elapsed_s: f64) -> TcpLogs {
        self.probed.clear();
        // The sockets live until the last sample is taken.
        let mut sockets = Vec::new();
        let mut join = |stream: Running| {
            sockets.push(stream.socket);
            let ended = stream.thread.join().unwrap_or_else(|_| {
                Some(StreamEnd {
                    t_s: elapsed_s,
                    error: "the stream's thread failed".to_owned(),
                })
            });
            let file_wait_us = stream.file_wait_us.map(|us| us.load(Ordering::Relaxed));
            (ended, file_wait_us)
        };
        let mut copied = false;
        let senders: Vec<_> = self
            .senders
            .into_iter()
            .map(|(tail, stream)| {
                let refused = Arc::clone(&stream.refused);
                let (ended, file_wait_us) = join(stream);
                copied |= refused.is_set();
                SenderTail {
                    ended,
                    file_wait_us,
                    zero_copy: tail.zero_copy && !refused.is_set(),
                    ..tail
                }
            })
            .collect();
        let receivers: Vec<_> = self
            .receivers
            .into_iter()
            .map(|(tail, stream, _)| {
                let (ended, file_wait_us) = join(stream);
                ReceiverTail {
                    ended,
                    file_wait_us,
                    ..tail
                }
            })
            .collect();
        let record = self.sampler.and_then(|(sample, thread)| {
            drop(sample);
            thread.join().ok()
        });
        drop(sockets);

        let record = record.unwrap_or_default();
        if copied {
            self.notes.push(zero_copy::REFUSED.to_owned());
        }
        TcpLogs {
            senders: senders
                .into_iter()
                .zip(record.senders)
                .map(|(tail, samples)| SenderLog { tail, samples })
                .collect(),
            receivers: receivers
                .into_iter()
                .zip(record.receivers)
                .map(|(tail, seen)| ReceiverLog {
                    tail: ReceiverTail {
                        receive_buffer_bytes: seen.receive_buffer_bytes,
                        ..tail
                    },
                    counts: seen.counts,
                })
                .collect(),
            notes: self.notes,
        }
    }

    /// Sets what the sockets need, and returns what the senders got.
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
            let in_place = stream.flow.zero_copy && stream.file.is_none();
            if in_place {
                notes.extend(copied_for_device(socket));
            }
            let negotiated = tcp::negotiated(socket).unwrap_or_default();
            notes.extend(options::congestion_control(socket, &stream.flow));
            notes.extend(options::not_agreed(&stream.flow, &negotiated));
            let tail = tail(stream.number, socket, &negotiated);
            tails.push(SenderTail {
                cc: background::name(&stream.flow, tail.cc),
                zero_copy: in_place,
                ..tail
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
        let looked = Arc::clone(&self.looked);
        let sampler = Sampler::begin(senders, receivers, stage.started, looked);
        let thread = Builder::new()
            .name("plumb-sample".to_owned())
            .spawn(move || sampler.run(&now))?;
        self.sampler = Some((sample, thread));
        Ok(())
    }
}

/// What streams without a file send: the same bytes again and again, in one place for all.
struct Payload(Arc<[u8]>);

impl Payload {
    fn of(streams: &[Prepared]) -> Self {
        let largest = streams.iter().map(Prepared::write_bytes).max();
        Self(sender::payload(largest.unwrap_or(0)))
    }

    fn origin(&self, stream: &Prepared) -> io::Result<Origin> {
        let length = stream.write_bytes();
        if let Some((file, wait_us)) = &stream.file {
            let source = Source::new(file.clone(), Arc::clone(wait_us));
            return Ok(Origin::File(source, length));
        }
        if stream.flow.zero_copy {
            let payload = self.0.get(..length).unwrap_or(&self.0);
            let in_place = InPlace::new(payload, Arc::clone(&stream.refused))?;
            return Ok(Origin::InPlace(in_place, Arc::clone(&self.0)));
        }
        Ok(Origin::Memory(Arc::clone(&self.0), length))
    }
}

fn destination(stream: &Prepared, alone: bool) -> Destination {
    match &stream.file {
        Some((file, wait_us)) => Destination::file(Sink::new(file.clone(), Arc::clone(wait_us))),
        None if stream.flow.discard => Destination::Nowhere,
        None => Destination::memory(alone),
    }
}
