//! One session: the control connection of a client and the phases of load that it asks for.
//! What is allowed when is decided by [`ServerSession`]; this is its shell.

use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::{Builder, scope};
use std::time::{Duration, Instant};

use plumb_host::facts::facts;
use plumb_load::QuicSide;
use plumb_load::frames::{LinkError, read_frame_until, write_all_by, write_frame};
use plumb_load::life::Life;
use plumb_load::streams::{Carrier, Stream, prepare};
use plumb_load::traffic::{Traffic, TrafficPlan};
use plumb_load::transactions::answer::Answerer;
use plumb_model::direction::OneDirection;
use plumb_model::protocol::{Protocol, Transport};
use plumb_model::units::si;
use plumb_net::bulk::BulkSocket;
use plumb_net::tcp;
use plumb_wire::native::control::flow::Flow;
use plumb_wire::native::control::frame::encode_packed_frame;
use plumb_wire::native::control::session::{Admitted, ServerSession, Step};
use plumb_wire::native::control::trace::TraceRequest;
use plumb_wire::native::control::{
    ClientMessage, ErrorCode, Refusal, ServerMessage, Start, Token, Welcome,
};
use plumb_wire::native::spec::{
    MAX_CLIENT_FRAME_BYTES, MAX_SERVER_FRAME_BYTES, MAX_WAIT, MOST_STREAMS, QUEUED_INTERVAL,
    QUEUED_LOOK, SILENCE_TIMEOUT, STOP_GRACE, TOKEN_BYTES,
};

use crate::admission::{Queued, Turn};
use crate::disk::{self, Files};
use crate::echo::Asked;
use crate::events::{Event, Hushed};
use crate::registry::{AnsweringPlace, Declared, LoadClaim, Reserved, SessionPlace, TraceClaim};
use crate::shared::{STOP_INTERVAL, Shared};
use crate::speaks_first::Silences;
use crate::tracing;

/// Events that wait for a session: all streams of the largest phase that may be configured,
/// and what comes beside them. Of messages there is one.
const WAITING_EVENTS: usize = 256;
const _: () = assert!(WAITING_EVENTS > MOST_STREAMS as usize);

/// Runs the session whose first message is `first`, until the client leaves, breaks the
/// protocol or is silent for [`SILENCE_TIMEOUT`], or the responder stops: at most that time
/// after it, when the client takes no data, or a second when a path is traced. Where all places are
/// taken it waits for one first, for as long as the client does.
pub(crate) fn run<'a>(
    shared: &'a Shared,
    socket: &Arc<TcpStream>,
    peer: IpAddr,
    first: ClientMessage,
) {
    let mut token = Token([0; TOKEN_BYTES]);
    if getrandom::fill(&mut token.0).is_err() {
        return;
    }
    let (events, incoming) = mpsc::sync_channel(WAITING_EVENTS);
    let (waits, packs) = match &first {
        ClientMessage::Hello {
            waits_s, unpacks, ..
        } => (waits_s.unwrap_or(0), *unpacks),
        _ => (0, false),
    };
    let waits = Duration::from_secs(waits.into()).min(MAX_WAIT);
    let place = shared.registry.enter(peer, token, waits);
    if wait_for_turn(shared, socket, &place, &events).is_break() {
        return;
    }
    let socket: &TcpStream = socket;
    // A kernel without it doubles its timeouts, as for any connection.
    let _ = tcp::retry_evenly(socket);
    let (over, life) = (AtomicBool::new(false), Life::begin());
    let telling = events.clone();
    let (telling, over, life) = (&telling, &over, &life);
    scope(|scope| {
        // Ends within a second of the session: `over` stops the trace, and sending fails once nothing receives.
        let start_trace = |request: TraceRequest, claim: TraceClaim<'a>| {
            let towards = tracing::towards(socket)?;
            let thread = Builder::new().name("plumb-trace".to_owned());
            thread.spawn_scoped(scope, move || {
                let told = tracing::trace(towards, &request, over);
                drop(claim);
                let _ = telling.send(Event::Traced(told));
            })?;
            Ok(())
        };
        let mut session = Session {
            shared,
            socket,
            life,
            peer,
            token,
            place: &place,
            packs,
            busy: false,
            ran: Duration::ZERO,
            started: Instant::now(),
            state: ServerSession::new(shared.limits),
            claim: None,
            reserved: None,
            attached: Vec::new(),
            traffic: None,
            answering: None,
            declared: None,
            silences: Silences::default(),
            asked_trace: None,
            start_trace: &start_trace,
        };
        let reader = Builder::new().name("plumb-control".to_owned());
        if reader
            .spawn_scoped(scope, move || read_messages(socket, life, &events))
            .is_ok()
        {
            // An error means that the client is gone: nothing is left to report it to.
            let _ = session.serve(first, &incoming);
        }
        over.store(true, Ordering::Relaxed);
        // Ends the reader: it waits for the socket or for room among the events.
        drop(incoming);
        let _ = socket.shutdown(Shutdown::Both);
    });
}

/// Waits until it is the client's turn. Breaks where the turn does not come: the client was sent a refusal or
/// is gone, or the responder stops. Ends within [`QUEUED_LOOK`] of each.
fn wait_for_turn(
    shared: &Shared,
    socket: &Arc<TcpStream>,
    place: &SessionPlace<'_>,
    events: &SyncSender<Event>,
) -> Goes {
    let mut tell = Instant::now();
    loop {
        let answer = match place.turn(socket, events) {
            Turn::Now => return Goes::Continue(()),
            Turn::Wait(queued) => queued_message(&queued),
            Turn::Never(queued) => ServerMessage::Error {
                code: ErrorCode::Full,
                message: place.none(&queued),
            },
        };
        let is_over = matches!(answer, ServerMessage::Error { .. });
        if is_over || Instant::now() >= tell {
            tell = Instant::now() + QUEUED_INTERVAL;
            if send(socket, &answer).is_err() {
                return Goes::Break(());
            }
        }
        if is_over || shared.stop.load(Ordering::Relaxed) {
            return Goes::Break(());
        }
        // It has nothing to say until it is welcomed; what comes is its end.
        if tcp::wait_readable(socket, QUEUED_LOOK).unwrap_or(true) {
            if !matches!(socket.peek(&mut [0]), Ok(1..)) {
                return Goes::Break(());
            }
            std::thread::sleep(QUEUED_LOOK);
        }
    }
}

/// Reads messages until the connection ends or no complete one comes for [`SILENCE_TIMEOUT`] while no payload moves either,
/// each when the session has taken the one before. It closes the connection then, so that a session that waits to write to it ends too.
fn read_messages(socket: &TcpStream, life: &Life, events: &SyncSender<Event>) {
    loop {
        let heard = Instant::now();
        let deadline = || life.silent_at(heard, SILENCE_TIMEOUT);
        match read_frame_until(socket, MAX_CLIENT_FRAME_BYTES, &deadline) {
            Ok(message) => {
                let (taken, waits) = mpsc::sync_channel(0);
                if events.send(Event::Message(message, taken)).is_err() {
                    return;
                }
                // Nothing comes: it ends with the other end.
                let _ = waits.recv();
            }
            Err(_) => {
                let _ = socket.shutdown(Shutdown::Both);
                let _ = events.send(Event::Gone);
                return;
            }
        }
    }
}

fn queued_message(queued: &Queued) -> ServerMessage {
    ServerMessage::Queued {
        ahead: u32::try_from(queued.ahead).unwrap_or(u32::MAX),
        after_s: queued.after.map(|after| after.as_secs_f64()),
    }
}

pub(crate) fn send(socket: &TcpStream, message: &ServerMessage) -> Result<(), LinkError> {
    write_frame(
        socket,
        message,
        MAX_SERVER_FRAME_BYTES,
        Instant::now() + SILENCE_TIMEOUT,
    )
}

struct Session<'a, 's> {
    shared: &'a Shared,
    socket: &'s TcpStream,
    life: &'s Life,
    peer: IpAddr,
    token: Token,
    place: &'s SessionPlace<'a>,
    /// Whether its client unpacks messages.
    packs: bool,
    /// Whether its place has it as busy.
    busy: bool,
    /// For how long loads have run since it was idle.
    ran: Duration,
    started: Instant,
    state: ServerSession,
    claim: Option<LoadClaim<'a>>,
    /// What the load may carry, where the client is a stranger.
    reserved: Option<Reserved>,
    attached: Vec<Carrier>,
    traffic: Option<Traffic>,
    answering: Option<AnsweringPlace<'a>>,
    declared: Option<Declared<'a>>,
    silences: Silences,
    /// A trace that was asked for and has not begun, and when to send the client its place in the queue again.
    asked_trace: Option<(TraceRequest, TraceClaim<'a>, Duration)>,
    start_trace: &'s dyn Fn(TraceRequest, TraceClaim<'a>) -> std::io::Result<()>,
}

/// Whether the session continues.
type Goes = std::ops::ControlFlow<()>;

impl Session<'_, '_> {
    fn serve(&mut self, first: ClientMessage, incoming: &Receiver<Event>) -> Result<(), LinkError> {
        let mut goes = self.on_message(first)?;
        while goes.is_continue() {
            goes = match incoming.recv_timeout(self.wait()) {
                Ok(Event::Message(message, taken)) => {
                    drop(taken);
                    self.on_message(message)?
                }
                Ok(Event::Attached(connection)) => self.attach(Carrier::Tcp(*connection))?,
                Ok(Event::Asked(asked)) => self.on_asked(&asked)?,
                Ok(Event::Hushed(hushed)) => self.on_hushed(hushed),
                Ok(Event::Traced(told)) => {
                    let steps = self.state.on_traced(told);
                    self.carry_out(steps)?
                }
                Ok(Event::Displaced) => {
                    let message =
                        "others want its place, in which nothing went on: connect again".to_owned();
                    return self.send(&ServerMessage::Error {
                        code: ErrorCode::Full,
                        message,
                    });
                }
                Ok(Event::Gone) | Err(RecvTimeoutError::Disconnected) => Goes::Break(()),
                Err(RecvTimeoutError::Timeout) => Goes::Continue(()),
            };
            if self.shared.stop.load(Ordering::Relaxed) {
                let message = "the responder shuts down".to_owned();
                return self.send(&ServerMessage::Error {
                    code: ErrorCode::ShuttingDown,
                    message,
                });
            }
            self.silences.speak();
            if let Some(traffic) = &self.traffic {
                let looked = traffic.looked();
                let moved = looked.acked_bytes.saturating_add(traffic.received_bytes());
                self.life.carried(moved);
                if let Some(reserved) = &mut self.reserved {
                    reserved.carried(traffic.carried_bytes());
                }
            }
            if goes.is_continue() {
                goes = self.on_time()?;
            }
            if goes.is_continue() {
                goes = self.trace()?;
            }
            if self.busy != self.state.is_busy() {
                self.busy = self.state.is_busy();
                if self.busy {
                    self.place.begins();
                } else {
                    self.place.ends(std::mem::take(&mut self.ran));
                }
            }
        }
        Ok(())
    }

    fn now(&self) -> Duration {
        self.started.elapsed()
    }

    fn wait(&self) -> Duration {
        let until_deadline = self
            .state
            .deadline()
            .map(|deadline| deadline.saturating_sub(self.now()));
        let until_spoken = self.silences.wait();
        let waits = until_deadline.into_iter().chain(until_spoken);
        waits.fold(STOP_INTERVAL, Duration::min)
    }

    /// Keeps a silent connection of the client itself: this end speaks to no host that did not ask.
    fn on_hushed(&mut self, hushed: Hushed) -> Goes {
        if hushed.peer == self.peer {
            self.silences.take(hushed);
        }
        Goes::Continue(())
    }

    /// Begins a trace that was asked for, if there is one and it is its turn.
    fn trace(&mut self) -> Result<Goes, LinkError> {
        let Some((request, claim, tell)) = self.asked_trace.take() else {
            return Ok(Goes::Continue(()));
        };
        let turn = self.shared.traces.then(|| claim.turn());
        let (reason, message) = match turn {
            None => {
                let message = "it was started with --no-trace".to_owned();
                (Refusal::NotPermitted, message)
            }
            Some(Turn::Now) => match (self.start_trace)(request, claim) {
                Ok(()) => return Ok(Goes::Continue(())),
                Err(error) => {
                    let message = format!("its machine could not start it ({error})");
                    (Refusal::Failed, message)
                }
            },
            Some(Turn::Wait(queued)) => {
                let now = self.now();
                let is_told = now >= tell;
                let tell = if is_told { now + QUEUED_INTERVAL } else { tell };
                self.asked_trace = Some((request, claim, tell));
                if is_told {
                    self.send(&queued_message(&queued))?;
                }
                return Ok(Goes::Continue(()));
            }
            Some(Turn::Never(queued)) => {
                let message = format!(
                    "it traces as many paths as it may at once, or as often as it may towards this address: {}",
                    queued.when()
                );
                (Refusal::Busy, message)
            }
        };
        let steps = self.state.on_traced(ServerMessage::TraceRefused {
            id: request.id,
            reason,
            message,
        });
        self.carry_out(steps)
    }

    fn on_message(&mut self, message: ClientMessage) -> Result<Goes, LinkError> {
        let (now, shared, place) = (self.now(), self.shared, self.place);
        let (claim, reserved, peer) = (&mut self.claim, &mut self.reserved, self.peer);
        let mut admit = |start: &Start| admit(shared, place, peer, claim, reserved, start);
        let steps = self.state.on_message(now, message, &mut admit);
        self.carry_out(steps)
    }

    fn on_time(&mut self) -> Result<Goes, LinkError> {
        let (now, shared, place) = (self.now(), self.shared, self.place);
        let (claim, reserved, peer) = (&mut self.claim, &mut self.reserved, self.peer);
        let mut admit = |start: &Start| admit(shared, place, peer, claim, reserved, start);
        let steps = self.state.on_time(now, &mut admit);
        self.carry_out(steps)
    }

    fn attach(&mut self, carrier: Carrier) -> Result<Goes, LinkError> {
        let transport = match carrier {
            Carrier::Tcp(_) => Transport::Tcp,
            Carrier::Udp(..) => Transport::Udp,
        };
        let preamble = carrier.preamble();
        match self.state.on_attached(self.now(), &preamble, transport) {
            Ok(steps) => {
                self.attached.push(carrier);
                self.carry_out(steps)
            }
            Err(_) => {
                if matches!(carrier, Carrier::Tcp(_)) {
                    self.place.returns();
                }
                Ok(Goes::Continue(()))
            }
        }
    }

    /// Nothing is ever sent over UDP to an address that did not speak TCP with us: what a datagram
    /// says of where it comes from, anybody can write.
    fn on_asked(&mut self, asked: &Asked) -> Result<Goes, LinkError> {
        let Asked { stream, here, from } = *asked;
        let Some(flow) = self.state.expects(&stream, Transport::Udp) else {
            return Ok(Goes::Continue(()));
        };
        if from.ip().to_canonical() != self.peer {
            return Ok(Goes::Continue(()));
        }
        let open = || {
            let socket = BulkSocket::beside(here, from)?;
            prepare(flow, stream.role == OneDirection::Up, &socket)?;
            Ok::<_, std::io::Error>(socket)
        };
        match open() {
            Ok(socket) => self.attach(Carrier::Udp(stream, socket)),
            Err(error) => {
                let steps = self.state.on_failed(format!(
                    "its machine could not open a UDP socket ({error}): ask for fewer streams"
                ));
                self.carry_out(steps)
            }
        }
    }

    fn carry_out(&mut self, steps: Vec<Step>) -> Result<Goes, LinkError> {
        for step in steps {
            match step {
                Step::Welcome => self.send(&self.welcome())?,
                Step::Send(message) => self.send(&message)?,
                Step::Abandon => self.abandon(),
                Step::Run(start) => {
                    // They take a moment, in which nothing is to run.
                    let Shared { disk, stop, .. } = self.shared;
                    let files = match Files::make(disk.as_deref(), &start, stop) {
                        Ok(files) => files,
                        Err(error) => {
                            let message = format!("it could not make a file on its disk ({error})");
                            let steps = self.state.on_failed(message);
                            return self.carry_out(steps);
                        }
                    };
                    // Before the client may open the first one.
                    let registry = &self.shared.registry;
                    self.answering =
                        Answerer::of(&start).map(|its| registry.answer(self.peer, self.token, its));
                    self.declared =
                        longest_answer(&start).map(|bytes| registry.declare(self.peer, bytes));
                    self.send(&ServerMessage::Started { phase: start.phase })?;
                    if let Err(error) = self.start_load(&start, files) {
                        let message = format!(
                            "its machine could not start the load ({error}): ask for fewer streams"
                        );
                        let steps = self.state.on_failed(message);
                        return self.carry_out(steps);
                    }
                }
                Step::Finish { phase } => self.finish(phase)?,
                Step::Trace(request) => {
                    self.asked_trace = Some((request, self.place.trace(), self.now()));
                }
                Step::Close => return Ok(Goes::Break(())),
            }
        }
        Ok(Goes::Continue(()))
    }

    fn send(&self, message: &ServerMessage) -> Result<(), LinkError> {
        if !self.packs {
            return send(self.socket, message);
        }
        let frame = encode_packed_frame(message, MAX_SERVER_FRAME_BYTES)?;
        write_all_by(self.socket, &frame, Instant::now() + SILENCE_TIMEOUT)?;
        Ok(())
    }

    fn welcome(&self) -> ServerMessage {
        ServerMessage::Welcome(Box::new(Welcome {
            token: self.token,
            limits: self.shared.limits,
            host: facts(),
            // The echo has the number of the port that this connection came to.
            udp_port: self.socket.local_addr().ok().map(|address| address.port()),
            certificate: self.shared.identity.fingerprint(),
        }))
    }

    fn abandon(&mut self) {
        self.attached.clear();
        (self.answering, self.declared) = (None, None);
        self.traffic = None;
        self.reserved = None;
        self.claim = None;
    }

    fn start_load(&mut self, start: &Start, mut files: Files) -> std::io::Result<()> {
        let (mut outgoing, mut incoming) = (Vec::new(), Vec::new());
        for carrier in self.attached.drain(..) {
            let role = carrier.preamble().role;
            let Some(mut stream) = Stream::of(&start.flows, carrier) else {
                continue;
            };
            stream.set_file(files.take(role, &stream));
            match role {
                OneDirection::Down => outgoing.push(stream),
                OneDirection::Up => incoming.push(stream),
            }
        }
        let traffic = Traffic::start(TrafficPlan {
            outgoing,
            incoming,
            far: None,
            quic: Some(QuicSide::Server(self.shared.identity.clone())),
            byte_limit: start.byte_limit,
            duration: Duration::from_secs_f64(start.duration_s),
            // The client ends the phase; this is for one that does not.
            longest: Duration::from_secs_f64(start.duration_s) + STOP_GRACE,
        })?;
        self.place.carries(traffic.stage());
        self.traffic = Some(traffic);
        Ok(())
    }

    /// The data connections are aborted and the next load may run before the report is sent. With
    /// UDP it takes up to [`LINGER`] to hear how the streams ended.
    ///
    /// [`LINGER`]: plumb_wire::native::spec::LINGER
    fn finish(&mut self, phase: u32) -> Result<(), LinkError> {
        (self.answering, self.declared) = (None, None);
        let Some(traffic) = self.traffic.take() else {
            return Ok(());
        };
        self.ran += traffic.elapsed();
        let carried = traffic.carried_bytes();
        let done = traffic.finish();
        if let Some(mut reserved) = self.reserved.take() {
            reserved.carried(carried);
        }
        self.claim = None;
        done.report
            .into_messages(phase)
            .try_for_each(|message| self.send(&message))
    }
}

/// Whether a phase may take place, or has to wait for its turn.
fn admit<'a>(
    shared: &'a Shared,
    place: &SessionPlace<'a>,
    peer: IpAddr,
    claim: &mut Option<LoadClaim<'a>>,
    reserved: &mut Option<Reserved>,
    start: &Start,
) -> Result<Admitted, (Refusal, String)> {
    disk::admit(shared.disk.as_ref(), start)?;
    let streams = u32::try_from(start.streams()).unwrap_or(u32::MAX);
    let lasts = Duration::from_secs_f64(start.duration_s);
    let turn = claim
        .get_or_insert_with(|| place.load(start.yields()))
        .turn(streams, lasts);
    if turn.is_err() {
        *claim = None;
    }
    let limits = shared.policy.get().limits(peer);
    let (Ok(Admitted::Now), Some(limits)) = (&turn, limits) else {
        return turn;
    };
    match shared.registry.reserve(limits, lasts) {
        Ok(grant) => {
            let bytes = grant.bytes;
            *reserved = Some(grant);
            Ok(Admitted::Within(bytes))
        }
        Err(after) => {
            *claim = None;
            let day = si(limits.bytes_a_day as f64, "B");
            let queued = Queued {
                ahead: 0,
                after: Some(after),
            };
            let message = format!(
                "clients on the Internet have transferred the {day} that they may in a day: {}",
                queued.when()
            );
            Err((Refusal::Busy, message))
        }
    }
}

/// The longest answer over UDP of a phase's transactions, where it has any.
fn longest_answer(start: &Start) -> Option<u32> {
    let answers = start.flows.iter().filter_map(|flows| match &flows.flow {
        Flow::Transactions(flow) if flow.transport == Protocol::Udp => Some(flow.response_bytes),
        _ => None,
    });
    answers.max()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn messages_do_not_pile_up() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = listener.accept().unwrap().0;
        let deadline = Instant::now() + SILENCE_TIMEOUT;
        for id in 0..3 {
            let ping = ClientMessage::Ping { id };
            write_frame(&client, &ping, MAX_CLIENT_FRAME_BYTES, deadline).unwrap();
        }
        drop(client);
        let (events, incoming) = mpsc::sync_channel(WAITING_EVENTS);
        let life = Life::begin();
        scope(|scope| {
            scope.spawn(|| read_messages(&socket, &life, &events));
            for expected in 0..3 {
                let next = incoming.recv_timeout(SILENCE_TIMEOUT);
                let Ok(Event::Message(ClientMessage::Ping { id }, taken)) = next else {
                    panic!("{next:?}")
                };
                assert_eq!(id, expected);
                let next = incoming.recv_timeout(STOP_INTERVAL);
                assert!(next.is_err(), "{next:?} came before {id} was taken");
                drop(taken);
            }
            let gone = incoming.recv_timeout(SILENCE_TIMEOUT);
            assert!(matches!(gone, Ok(Event::Gone)), "{gone:?}");
        });
    }
}
