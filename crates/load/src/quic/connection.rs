//! One QUIC connection: what the state machine wants sent goes to the socket in trains, what comes
//! goes to it, and payload is written or read as fast as it takes it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use plumb_model::results::quic::QuicSender;
use plumb_net::bulk::{Batch, BulkSocket};
use plumb_net::udp_counters::{Drops, SocketDrops};
use plumb_wire::native::control::flow::quic::QuicFlow;
use plumb_wire::native::control::report::quic::QuicSample;
use plumb_wire::native::control::report::{Count, StreamEnd};
use plumb_wire::native::datagram;
use plumb_wire::native::spec::{SAMPLE_INTERVAL, SILENCE_TIMEOUT};
use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, EcnCodepoint,
    Endpoint, EndpointConfig, Event, IdleTimeout, ServerConfig, StreamId, Transmit,
    TransportConfig, VarInt, WriteError,
};

use super::stream::{QuicSide, QuicStream};
use crate::phase_state::{POLL_INTERVAL, Stage};
use crate::tcp::payload;

/// Windows of a connection and its stream: at 100 ms they hold 670 Mbit/s, and what a far end can
/// make this one hold of what it cannot use.
const WINDOW_BYTES: u32 = 8 * 1024 * 1024;

/// Datagrams of one train, as many as quinn sends: more would be a burst on a slow line.
const TRAIN_DATAGRAMS: usize = 10;

/// Trains before what has come is looked at.
const TRAINS: usize = 16;

/// Payload that one write offers.
const WRITE_BYTES: usize = 64 * 1024;

/// Writes before what has come is looked at.
const WRITES: usize = 32;

/// Messages of one system call, and the longest: a train of datagrams (UDP_GRO).
const MESSAGES: usize = 8;
const MESSAGE_BYTES: usize = 65_536;

/// The server name of the client; it is not checked, since the fingerprint alone decides.
const NAME: &str = "plumb";

/// What was seen of a connection.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) sender: QuicSender,
    pub(super) handshake_s: Option<f64>,
    /// What its socket dropped; nothing where the kernel does not report it.
    pub(super) drops: Option<Drops>,
    pub(super) ended: Option<StreamEnd>,
    pub(super) samples: Vec<QuicSample>,
    pub(super) counts: Vec<Count>,
}

impl Seen {
    /// The record of a connection that failed, with nothing but the reason.
    pub(super) fn failed(t_s: f64, why: &str) -> Self {
        Self {
            ended: Some(StreamEnd {
                t_s,
                error: why.to_owned(),
            }),
            ..Self::default()
        }
    }
}

/// A connection and its socket.
#[derive(Debug)]
pub(super) struct Driver {
    socket: BulkSocket,
    drops: SocketDrops,
    far: SocketAddr,
    dscp: u8,
    endpoint: Endpoint,
    /// The client's, until it connects.
    connect_with: Option<ClientConfig>,
    connection: Option<(ConnectionHandle, Connection)>,
    sends: bool,
    stream: Option<StreamId>,
    payload: Bytes,
    out: Out,
    seen: Seen,
}

/// What is on its way to the socket.
#[derive(Debug, Default)]
struct Out {
    buffer: Vec<u8>,
    /// A train that the kernel did not take yet.
    waiting: Option<Transmit>,
    /// What the socket is set to.
    ecn: u8,
    segment_bytes: u16,
}

impl Driver {
    /// For a stream that this end sends, or receives.
    pub(super) fn new(stream: QuicStream, side: &QuicSide, sends: bool) -> io::Result<Self> {
        let QuicStream { flow, socket, .. } = stream;
        let transport = Arc::new(transport(&flow));
        let (client, server) = match side {
            QuicSide::Client(trust) => {
                let crypto =
                    QuicClientConfig::try_from(trust.for_quic()).map_err(io::Error::other)?;
                let mut client = ClientConfig::new(Arc::new(crypto));
                client.transport_config(transport);
                (Some(client), None)
            }
            QuicSide::Server(identity) => {
                let crypto =
                    QuicServerConfig::try_from(identity.for_quic()).map_err(io::Error::other)?;
                let mut server = ServerConfig::with_crypto(Arc::new(crypto));
                server.transport_config(transport).migration(false);
                (None, Some(Arc::new(server)))
            }
        };
        let dscp = flow.dscp.unwrap_or(0);
        socket.set_traffic_class(dscp, 0)?;
        Ok(Self {
            far: socket.peer_addr()?,
            drops: SocketDrops::begin(),
            socket,
            dscp,
            endpoint: Endpoint::new(Arc::new(EndpointConfig::default()), server, true, None),
            connect_with: client,
            connection: None,
            sends,
            stream: None,
            payload: Bytes::copy_from_slice(&payload(WRITE_BYTES)),
            out: Out::default(),
            seen: Seen::default(),
        })
    }

    /// Carries payload until the stage is over or the connection is, and returns within
    /// [`POLL_INTERVAL`] of that. `bytes` counts payload received, or UDP payload sent.
    pub(super) fn run(mut self, bytes: &AtomicU64, stage: &Stage) -> Seen {
        if let Err(error) = self.carry(bytes, stage) {
            self.seen.ended = stage.ended(error);
        }
        self.sample(bytes, stage);
        if let Some((_, connection)) = &mut self.connection {
            let now = Instant::now();
            connection.close(now, VarInt::from_u32(0), Bytes::from_static(b"over"));
            // The far end hears of it on the control connection too.
            let _ = self.transmit(now);
        }
        self.seen.drops = self.socket.drops().map(|all| self.drops.of(all));
        self.seen
    }

    fn carry(&mut self, bytes: &AtomicU64, stage: &Stage) -> io::Result<()> {
        let mut batch = Batch::new(MESSAGES, MESSAGE_BYTES);
        let began = Instant::now();
        if let Some(client) = self.connect_with.take() {
            let connected = self.endpoint.connect(began, client, self.far, NAME);
            self.connection = Some(connected.map_err(io::Error::other)?);
        }
        let mut next_sample = stage.started;
        while !stage.is_over() {
            let now = Instant::now();
            if now >= next_sample {
                self.sample(bytes, stage);
                while next_sample <= now {
                    next_sample += SAMPLE_INTERVAL;
                }
            }
            if self.is_over(now, began)? {
                return Ok(());
            }
            self.move_payload(bytes, stage)?;
            let more = self.transmit(now)?;
            if self.out.waiting.is_some() {
                self.socket.wait_writable(POLL_INTERVAL)?;
            } else if !more {
                let rest = self.rest(now, next_sample);
                self.socket.wait_readable(rest)?;
            }
            self.receive(&mut batch)?;
        }
        Ok(())
    }

    /// How long nothing happens unless something comes.
    fn rest(&mut self, now: Instant, next_sample: Instant) -> Duration {
        let timeout = self.connection.as_mut().and_then(|(_, c)| c.poll_timeout());
        let until = timeout.map_or(next_sample, |timeout| timeout.min(next_sample));
        until.saturating_duration_since(now).min(POLL_INTERVAL)
    }

    /// Lets time pass and takes note of what happened; whether the far end has said that it is over.
    fn is_over(&mut self, now: Instant, began: Instant) -> io::Result<bool> {
        let Some((handle, connection)) = &mut self.connection else {
            return Ok(false);
        };
        if connection.poll_timeout().is_some_and(|at| at <= now) {
            connection.handle_timeout(now);
        }
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            match event {
                Event::Connected => {
                    if connection.side().is_client() {
                        self.seen.handshake_s = Some((now - began).as_secs_f64());
                    }
                    if self.sends {
                        self.stream = connection.streams().open(Dir::Uni);
                    }
                }
                Event::ConnectionLost {
                    reason: ConnectionError::ApplicationClosed(_),
                } => return Ok(true),
                Event::ConnectionLost { reason } => return Err(io::Error::other(reason)),
                Event::HandshakeDataReady
                | Event::Stream(_)
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => (),
            }
        }
        Ok(false)
    }

    /// Writes as much as the connection takes, or reads what it has.
    fn move_payload(&mut self, bytes: &AtomicU64, stage: &Stage) -> io::Result<()> {
        let Some((_, connection)) = &mut self.connection else {
            return Ok(());
        };
        if !self.sends {
            if self.stream.is_none() {
                self.stream = connection.streams().accept(Dir::Uni);
            }
            let Some(id) = self.stream else { return Ok(()) };
            let mut came = 0;
            let mut stream = connection.recv_stream(id);
            // Out of order: what has arrived has arrived.
            if let Ok(mut chunks) = stream.read(false) {
                while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
                    came += chunk.bytes.len() as u64;
                }
                // What that makes to be sent is asked for in any case.
                let _ = chunks.finalize();
            }
            bytes.fetch_add(came, Ordering::Relaxed);
            stage.budget.take_in(came);
            return Ok(());
        }
        let Some(id) = self.stream else { return Ok(()) };
        for _ in 0..WRITES {
            let granted = stage.budget.reserve(WRITE_BYTES as u64);
            if granted == 0 {
                break;
            }
            let chunk = self.payload.slice(..granted as usize);
            let written = match connection.send_stream(id).write_chunks(&mut [chunk]) {
                Ok(written) => written.bytes as u64,
                Err(WriteError::Blocked) => 0,
                Err(error) => return Err(io::Error::other(error)),
            };
            stage.budget.give_back(granted - written);
            if written < granted {
                break;
            }
        }
        bytes.store(connection.stats().udp_tx.bytes, Ordering::Relaxed);
        Ok(())
    }

    /// Sends what is to be sent; whether there may be more.
    fn transmit(&mut self, now: Instant) -> io::Result<bool> {
        let Some((_, connection)) = &mut self.connection else {
            return Ok(false);
        };
        for _ in 0..TRAINS {
            let train = match self.out.waiting.take() {
                Some(train) => train,
                None => {
                    self.out.buffer.clear();
                    let buffer = &mut self.out.buffer;
                    match connection.poll_transmit(now, TRAIN_DATAGRAMS, buffer) {
                        Some(train) => train,
                        None => return Ok(false),
                    }
                }
            };
            if !self.out.send(&self.socket, self.dscp, &train)? {
                self.out.waiting = Some(train);
                return Ok(true);
            }
        }
        Ok(true)
    }

    /// Takes what has come.
    fn receive(&mut self, batch: &mut Batch) -> io::Result<()> {
        match self.socket.receive(batch) {
            Ok(_) => (),
            // Nothing came, or word of a datagram that did not arrive: QUIC finds out by itself.
            Err(_) => return Ok(()),
        }
        let now = Instant::now();
        for message in batch.messages() {
            let size = message.segment_bytes.unwrap_or(message.payload.len());
            let ecn = message.traffic_class.and_then(EcnCodepoint::from_bits_of);
            for bytes in message.payload.chunks(size.max(1)) {
                // The client asks for its stream until it has heard that the phase runs.
                if datagram::parse_attach(bytes).is_none() {
                    self.take(now, ecn, bytes)?;
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, now: Instant, ecn: Option<EcnCodepoint>, bytes: &[u8]) -> io::Result<()> {
        let mut answer = Vec::new();
        let data = BytesMut::from(bytes);
        let event = self
            .endpoint
            .handle(now, self.far, None, ecn, data, &mut answer);
        let reply = match event {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
                None
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                match self.endpoint.accept(incoming, now, &mut answer, None) {
                    Ok(accepted) => {
                        self.connection = Some(accepted);
                        None
                    }
                    Err(error) => error.response,
                }
            }
            // One stream, one connection.
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.endpoint.ignore(incoming);
                None
            }
            Some(DatagramEvent::Response(reply)) => Some(reply),
            None => None,
        };
        if let Some(reply) = reply {
            let size = answer.get(..reply.size).unwrap_or(&answer);
            let _ = self.socket.send(size);
        }
        Ok(())
    }

    fn sample(&mut self, bytes: &AtomicU64, stage: &Stage) {
        // Whole microseconds keep the numbers short on the wire.
        let t_s = stage.started.elapsed().as_micros() as f64 / 1e6;
        if !self.sends {
            self.seen.counts.push(Count {
                t_s,
                bytes: bytes.load(Ordering::Relaxed),
                ..Count::default()
            });
            return;
        }
        let Some((_, connection)) = &self.connection else {
            return;
        };
        let stats = connection.stats();
        let (path, before) = (stats.path, &self.seen.sender);
        let rtt_s = path.rtt.as_secs_f64();
        self.seen.sender = QuicSender {
            sent_packets: path.sent_packets,
            lost_packets: path.lost_packets,
            lost_bytes: path.lost_bytes,
            congestion_events: path.congestion_events,
            // Before the first round trip it is a guess of the library's.
            min_rtt_s: self
                .stream
                .map(|_| path.min_rtt.as_secs_f64())
                .filter(|rtt| *rtt < SILENCE_TIMEOUT.as_secs_f64()),
            max_rtt_s: self
                .stream
                .map(|_| before.max_rtt_s.map_or(rtt_s, |most| most.max(rtt_s))),
            max_cwnd_bytes: before.max_cwnd_bytes.max(path.cwnd),
            window_bytes: Some(u64::from(WINDOW_BYTES)),
            datagram_bytes: u64::from(path.current_mtu),
            sent_bytes: stats.udp_tx.bytes,
        };
        self.seen.samples.push(QuicSample {
            t_s,
            cwnd_bytes: path.cwnd,
            rtt_us: u64::try_from(path.rtt.as_micros()).unwrap_or(u64::MAX),
            sent_packets: path.sent_packets,
            lost_packets: path.lost_packets,
        });
    }
}

impl Out {
    /// Hands a train to the kernel; false when it does not take it now. One that it refuses is lost,
    /// as one that the path loses: QUIC finds out.
    fn send(&mut self, socket: &BulkSocket, dscp: u8, train: &Transmit) -> io::Result<bool> {
        let ecn = train.ecn.map_or(0, |ecn| ecn as u8);
        if ecn != self.ecn {
            socket.set_traffic_class(dscp, ecn)?;
            self.ecn = ecn;
        }
        let segment = match train.segment_size {
            Some(bytes) => u16::try_from(bytes).unwrap_or(u16::MAX),
            // Alone, and no longer than what would be cut.
            None if train.size <= usize::from(self.segment_bytes) => self.segment_bytes,
            None => 0,
        };
        if segment != self.segment_bytes {
            socket.set_segment_bytes(segment)?;
            self.segment_bytes = segment;
        }
        let bytes = self.buffer.get(..train.size).unwrap_or(&self.buffer);
        match socket.send(bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            _ => Ok(true),
        }
    }
}

/// The two bits of ECN in a traffic class.
trait OfTrafficClass: Sized {
    fn from_bits_of(traffic_class: u8) -> Option<Self>;
}

impl OfTrafficClass for EcnCodepoint {
    fn from_bits_of(traffic_class: u8) -> Option<Self> {
        Self::from_bits(traffic_class & 0b11)
    }
}

/// How a connection behaves.
fn transport(flow: &QuicFlow) -> TransportConfig {
    let mut config = TransportConfig::default();
    let window = VarInt::from_u32(WINDOW_BYTES);
    config
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(1))
        .stream_receive_window(window)
        .receive_window(window)
        .send_window(u64::from(WINDOW_BYTES))
        .datagram_receive_buffer_size(None)
        .max_idle_timeout(IdleTimeout::try_from(SILENCE_TIMEOUT).ok());
    match flow.congestion_control() {
        "reno" => config.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        "bbr" => config.congestion_controller_factory(Arc::new(BbrConfig::default())),
        _ => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
    };
    config
}

#[cfg(test)]
mod tests;
