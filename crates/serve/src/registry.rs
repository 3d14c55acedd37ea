//! Who is here, and who may do what: connections that have not said what they are, sessions by their
//! tokens, and the loads that run. What is decided is in [`crate::admission`]; every place is given
//! back on drop.

use std::collections::HashMap;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use plumb_load::phase_state::Stage;
use plumb_load::streams::DataConnection;
use plumb_load::transactions::answer::{Admitted as AdmittedTransaction, Answerer};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::control::session::Admitted;
use plumb_wire::native::control::silence::Silence;
use plumb_wire::native::control::{Refusal, Token};
use plumb_wire::native::spec::MAX_GREETING_PER_ADDRESS;
use plumb_wire::share::Share;

use crate::admission::Turn;
use crate::admission::answers::Answers;
use crate::admission::day::Day;
use crate::admission::greetings::Greetings;
use crate::admission::loads::{Loads, Wanted};
use crate::admission::sessions::Sessions;
use crate::admission::traces::Traces;
use crate::admission::visits::{MAX_WEB, MAX_WEB_PER_ADDRESS, Visits};
use crate::echo::Asked;
use crate::events::{Event, Hushed};
use crate::policy::StrangersLimits;
use crate::silent_places::SilentPlaces;

/// Connections of single transactions that are answered at once: [`FEW_ANSWERED`] of each of 32 addresses, and
/// as many more of those that have these.
pub(crate) const MAX_ANSWERED_IN_ALL: usize = 2 * ANSWERED_OF_A_KIND;
const ANSWERED_OF_A_KIND: usize = 32 * FEW_ANSWERED;

/// Connections of an address that wait for no others: as many as `plumb rpm` has.
const FEW_ANSWERED: usize = 16;

/// Visitors are counted from here on, sessions from 0.
const FIRST_VISITOR: u64 = 1 << 63;

/// A client of a protocol without sessions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Visitor {
    number: u64,
    share: Share,
}

/// Who is here, and what runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    pub(crate) sessions: u64,
    pub(crate) visits: u64,
    /// Loads, of all protocols.
    pub(crate) loads: u64,
}

/// The registry of one responder.
#[derive(Debug)]
pub(crate) struct Registry {
    max_clients: usize,
    begun: Instant,
    silent: Arc<SilentPlaces>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    greetings: Greetings<Arc<TcpStream>>,
    /// Connections of single transactions that are being answered.
    answered: HashMap<Share, usize>,
    sessions: Sessions,
    here: HashMap<Token, Here>,
    loads: Loads,
    answerers: HashMap<Token, (Share, Arc<Answerer>)>,
    /// The longest answer over UDP that a running phase of an address declared.
    declared: HashMap<Share, u32>,
    traces: Traces,
    visits: Visits,
    web: Greetings<Arc<TcpStream>>,
    next_visitor: u64,
    day: Day,
    answers: Answers,
}

#[derive(Debug)]
struct Here {
    number: u64,
    share: Share,
    socket: Arc<TcpStream>,
    events: SyncSender<Event>,
    stage: Weak<Stage>,
    /// Data connections that it was handed for the load that runs, or is about to.
    handed: u32,
}

impl Here {
    /// Its place is another's. One that has no room for the message does not read what it is sent: its
    /// connection ends at once.
    fn displace(&self) {
        if self.events.try_send(Event::Displaced).is_err() {
            let _ = self.socket.shutdown(Shutdown::Both);
        }
    }
}

impl Registry {
    /// For so many sessions, loads at once and silent connections.
    pub(crate) fn new(max_clients: usize, max_loads: u32, silent: usize) -> Self {
        Self {
            max_clients,
            begun: Instant::now(),
            silent: SilentPlaces::new(silent),
            inner: Mutex::new(Inner {
                greetings: Greetings::default(),
                answered: HashMap::new(),
                sessions: Sessions::new(max_clients),
                here: HashMap::new(),
                loads: Loads::new(max_loads),
                answerers: HashMap::new(),
                declared: HashMap::new(),
                traces: Traces::default(),
                visits: Visits::default(),
                web: Greetings::new(MAX_WEB, MAX_WEB_PER_ADDRESS),
                next_visitor: FIRST_VISITOR,
                day: Day::default(),
                answers: Answers::default(),
            }),
        }
    }

    fn now(&self) -> Duration {
        self.begun.elapsed()
    }

    /// A place for a connection that has just come; another one may have to end for it.
    pub(crate) fn greet(&self, peer: IpAddr, socket: &Arc<TcpStream>) -> GreetingPlace<'_> {
        let share = Share::of(peer);
        let (number, ended) = self.lock().greetings.come(share, Arc::clone(socket));
        if let Some(ended) = ended {
            // Its thread sees that, ends, and resets it.
            let _ = ended.shutdown(Shutdown::Both);
        }
        GreetingPlace {
            registry: self,
            number,
            share,
        }
    }

    /// A place for a connection of the web; another one may have to end for it.
    pub(crate) fn web(self: &Arc<Self>, peer: IpAddr, socket: &Arc<TcpStream>) -> WebPlace {
        let share = Share::of(peer);
        let (number, ended) = self.lock().web.come(share, Arc::clone(socket));
        if let Some(ended) = ended {
            // Its thread sees that, and ends.
            let _ = ended.shutdown(Shutdown::Both);
        }
        WebPlace {
            registry: Arc::clone(self),
            number,
        }
    }

    /// A place for a session, for a client that waits so long; to be asked for its turn.
    pub(crate) fn enter(&self, peer: IpAddr, token: Token, waits: Duration) -> SessionPlace<'_> {
        let share = Share::of(peer);
        let number = self.lock().sessions.come(self.now(), share, waits);
        SessionPlace {
            registry: self,
            number,
            token,
            peer,
            waits,
        }
    }

    /// Hands a connection that is to be silent to its session; closes it when there is none, or no place.
    pub(crate) fn hush(&self, silence: Silence, socket: TcpStream, peer: IpAddr) {
        let Silence { token, time } = silence;
        if self.knows(peer, token)
            && let Some(place) = self.silent.take(peer)
        {
            let hushed = Hushed {
                socket,
                peer,
                time,
                place,
            };
            self.hand(token, Event::Hushed(hushed));
        }
    }

    /// Hands a data connection to its session; closes it when there is none, when it comes from another
    /// address, or when the session has as many as its load has streams.
    pub(crate) fn attach(&self, peer: IpAddr, connection: DataConnection) {
        let token = connection.preamble.token;
        let inner = &mut *self.lock();
        let Some(here) = inner.here.get_mut(&token) else {
            return;
        };
        let expected = inner.loads.streams_of(here.number);
        if here.share == Share::of(peer) && here.handed < expected {
            let attached = Event::Attached(Box::new(connection));
            here.handed += u32::from(here.events.try_send(attached).is_ok());
        }
    }

    /// A place for a client of a protocol without sessions; nothing where there are too many.
    pub(crate) fn visit(&self, peer: IpAddr) -> Option<Visitor> {
        let share = Share::of(peer);
        let inner = &mut *self.lock();
        inner.visits.come(share).then(|| {
            let number = inner.next_visitor;
            inner.next_visitor += 1;
            Visitor { number, share }
        })
    }

    /// Who is here, and what runs.
    pub(crate) fn standing(&self) -> Standing {
        let inner = self.lock();
        Standing {
            sessions: inner.here.len() as u64,
            visits: (inner.visits.count() + inner.web.count()) as u64,
            loads: inner.loads.count() as u64,
        }
    }

    /// The client has gone.
    pub(crate) fn leave(&self, visitor: Visitor) {
        let inner = &mut *self.lock();
        inner.visits.leave(visitor.share);
        inner.loads.leave(visitor.number);
    }

    /// Whether a visitor's test may run now.
    pub(crate) fn visitors_turn(
        &self,
        visitor: Visitor,
        streams: u32,
        lasts: Duration,
        waits: Duration,
    ) -> Turn {
        let wanted = Wanted {
            session: visitor.number,
            share: visitor.share,
            yields: false,
            streams,
            lasts,
        };
        let now = self.now();
        self.lock().loads.ask(now, wanted, waits)
    }

    /// A visitor's test is over.
    pub(crate) fn visitors_test_ends(&self, visitor: Visitor) {
        let now = self.now();
        self.lock().loads.end(now, visitor.number, false);
    }

    /// Sets bytes of the strangers' day aside for a load that lasts so long.
    ///
    /// # Errors
    /// Where there are too few left: when there are enough.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        limits: StrangersLimits,
        lasts: Duration,
    ) -> Result<Reserved, Duration> {
        let wanted = limits.rate_bps as f64 / 8.0 * lasts.as_secs_f64();
        let now = self.now();
        let day = &mut self.lock().day;
        let bytes = day.reserve(now, wanted as u64, limits.bytes_a_day)?;
        Ok(Reserved {
            registry: Arc::clone(self),
            bytes,
            carried: 0,
        })
    }

    /// Draws a small answer of so many bytes.
    ///
    /// # Errors
    /// Where it is too much now: in how much time it is not.
    pub(crate) fn small_answer(
        &self,
        peer: IpAddr,
        is_stranger: bool,
        bytes: u64,
    ) -> Result<(), Duration> {
        let (now, share) = (self.now(), Share::of(peer));
        self.lock().answers.draw(now, share, is_stranger, bytes)
    }

    /// Passes a request for a UDP stream to its session.
    pub(crate) fn ask(&self, asked: Asked) {
        self.hand(asked.stream.token, Event::Asked(asked));
    }

    fn hand(&self, token: Token, event: Event) {
        let inner = self.lock();
        if let Some(here) = inner.here.get(&token) {
            let _ = here.events.try_send(event);
        }
    }

    /// From now on the connections of single transactions of that session are answered.
    pub(crate) fn answer(
        &self,
        peer: IpAddr,
        token: Token,
        answerer: Answerer,
    ) -> AnsweringPlace<'_> {
        let answerer = Arc::new(answerer);
        let its = (Share::of(peer), Arc::clone(&answerer));
        self.lock().answerers.insert(token, its);
        AnsweringPlace {
            registry: self,
            token,
            answerer,
        }
    }

    /// What a connection that began so is to be answered, if it is for a single transaction of its own
    /// address.
    pub(crate) fn admit(&self, peer: IpAddr, preamble: &Preamble) -> Option<AdmittedTransaction> {
        let (share, answerer) = self.lock().answerers.get(&preamble.token).cloned()?;
        (share == Share::of(peer)).then(|| answerer.admit(preamble))?
    }

    /// Until it is dropped, the echo answers that address with as much as its phase declared.
    pub(crate) fn declare(&self, peer: IpAddr, bytes: u32) -> Declared<'_> {
        let share = Share::of(peer);
        self.lock().declared.insert(share, bytes);
        Declared {
            registry: self,
            share,
        }
    }

    /// The longest answer that a running phase of that address declared.
    pub(crate) fn declared(&self, peer: IpAddr) -> Option<u32> {
        self.lock().declared.get(&Share::of(peer)).copied()
    }

    /// Whether a session of that token is here, whose client that address is.
    pub(crate) fn knows(&self, peer: IpAddr, token: Token) -> bool {
        let inner = self.lock();
        let here = inner.here.get(&token);
        here.is_some_and(|here| here.share == Share::of(peer))
    }

    /// Whether a session of that address is here.
    pub(crate) fn is_here(&self, peer: IpAddr) -> bool {
        let share = Share::of(peer);
        self.lock().here.values().any(|here| here.share == share)
    }

    /// Whether there is no session and no half-open connection.
    pub(crate) fn is_empty(&self) -> bool {
        let inner = self.lock();
        inner.here.is_empty() && inner.greetings.handles().next().is_none()
    }

    /// Ends what still runs: no thread waits for a socket or for a far end any more.
    pub(crate) fn end_all(&self) {
        let inner = self.lock();
        for stage in inner.here.values().filter_map(|here| here.stage.upgrade()) {
            stage.abandon();
        }
        inner
            .answerers
            .values()
            .for_each(|(_, answerer)| answerer.stop());
        let sessions = inner.here.values().map(|here| &here.socket);
        for socket in inner.greetings.handles().chain(sessions) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is complete before anything that could panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that a load of a stranger may carry. What it did not is given back on drop.
#[derive(Debug)]
pub(crate) struct Reserved {
    registry: Arc<Registry>,
    pub(crate) bytes: u64,
    carried: u64,
}

impl Reserved {
    /// So much was carried in all.
    pub(crate) fn carried(&mut self, bytes: u64) {
        self.carried = bytes;
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let rest = self.bytes.saturating_sub(self.carried);
        self.registry.lock().day.give_back(rest);
    }
}

/// The place of a connection of the web.
#[derive(Debug)]
pub(crate) struct WebPlace {
    registry: Arc<Registry>,
    number: u64,
}

impl Drop for WebPlace {
    fn drop(&mut self) {
        self.registry.lock().web.leave(self.number);
    }
}

/// The place of a connection that has not said what it is.
#[derive(Debug)]
pub(crate) struct GreetingPlace<'a> {
    registry: &'a Registry,
    number: u64,
    share: Share,
}

impl<'a> GreetingPlace<'a> {
    /// It belongs to a transaction of a session, and nothing comes in its place any more; nothing where
    /// its address has as many as it may.
    pub(crate) fn of_a_transaction(self) -> Option<TransactionPlace<'a>> {
        let (registry, share) = (self.registry, self.share);
        drop(self);
        let mut inner = registry.lock();
        let its = inner.answered.get(&share).copied().unwrap_or(0);
        let above = |its: &usize| its.saturating_sub(FEW_ANSWERED);
        let of_its_kind: usize = match its < FEW_ANSWERED {
            true => inner.answered.values().map(|its| its - above(its)).sum(),
            false => inner.answered.values().map(above).sum(),
        };
        if its >= MAX_GREETING_PER_ADDRESS || of_its_kind >= ANSWERED_OF_A_KIND {
            return None;
        }
        inner.answered.insert(share, its + 1);
        drop(inner);
        Some(TransactionPlace { registry, share })
    }
}

impl Drop for GreetingPlace<'_> {
    fn drop(&mut self) {
        self.registry.lock().greetings.leave(self.number);
    }
}

/// The place of a connection of a single transaction.
#[derive(Debug)]
pub(crate) struct TransactionPlace<'a> {
    registry: &'a Registry,
    share: Share,
}

impl Drop for TransactionPlace<'_> {
    fn drop(&mut self) {
        let mut inner = self.registry.lock();
        if let Some(its) = inner.answered.get_mut(&self.share) {
            *its = its.saturating_sub(1);
            if *its == 0 {
                inner.answered.remove(&self.share);
            }
        }
    }
}

/// The place of a session, or of a client that waits for one.
#[derive(Debug)]
pub(crate) struct SessionPlace<'a> {
    registry: &'a Registry,
    number: u64,
    token: Token,
    peer: IpAddr,
    waits: Duration,
}

impl<'a> SessionPlace<'a> {
    /// Whether it is the client's turn. The session then gets its connections through `events`.
    pub(crate) fn turn(&self, socket: &Arc<TcpStream>, events: &SyncSender<Event>) -> Turn {
        let mut inner = self.registry.lock();
        let (turn, ended) = inner.sessions.turn(self.registry.now(), self.number);
        let its = ended.and_then(|ended| inner.here.values().find(|here| here.number == ended));
        if let Some(its) = its {
            its.displace();
        }
        if turn == Turn::Now {
            let here = Here {
                number: self.number,
                share: Share::of(self.peer),
                socket: Arc::clone(socket),
                events: events.clone(),
                stage: Weak::new(),
                handed: 0,
            };
            inner.here.insert(self.token, here);
        }
        turn
    }

    /// Why there is none, for people.
    pub(crate) fn none(&self, queued: &crate::admission::Queued) -> String {
        let most = self.registry.max_clients;
        format!(
            "the responder has {most} clients, as many as it may: {}",
            queued.when()
        )
    }

    /// Something begins in the session.
    pub(crate) fn begins(&self) {
        let now = self.registry.now();
        self.registry.lock().sessions.begins(now, self.number);
    }

    /// It is over; a load ran for so long meanwhile.
    pub(crate) fn ends(&self, ran: Duration) {
        let now = self.registry.now();
        self.registry.lock().sessions.ends(now, self.number, ran);
    }

    /// It did not ask for a data connection that it was handed.
    pub(crate) fn returns(&self) {
        if let Some(here) = self.registry.lock().here.get_mut(&self.token) {
            here.handed = here.handed.saturating_sub(1);
        }
    }

    /// What the session carries from now on.
    pub(crate) fn carries(&self, stage: &Arc<Stage>) {
        if let Some(here) = self.registry.lock().here.get_mut(&self.token) {
            here.stage = Arc::downgrade(stage);
        }
    }

    /// The right to have the path towards the client traced, which it may have to wait for.
    pub(crate) fn trace(&self) -> TraceClaim<'a> {
        TraceClaim {
            registry: self.registry,
            session: self.number,
            peer: self.peer,
            waits: self.waits,
        }
    }

    /// The right to run a load, which it may have to wait for: to be asked for its turn.
    pub(crate) fn load(&self, yields: bool) -> LoadClaim<'a> {
        LoadClaim {
            registry: self.registry,
            session: self.number,
            peer: self.peer,
            waits: self.waits,
            yields,
        }
    }
}

impl Drop for SessionPlace<'_> {
    fn drop(&mut self) {
        let mut inner = self.registry.lock();
        inner.sessions.leave(self.number);
        inner.loads.leave(self.number);
        inner.here.remove(&self.token);
    }
}

/// While it lives, the connections of single transactions of a session are answered.
#[derive(Debug)]
pub(crate) struct AnsweringPlace<'a> {
    registry: &'a Registry,
    token: Token,
    answerer: Arc<Answerer>,
}

impl Drop for AnsweringPlace<'_> {
    fn drop(&mut self) {
        self.registry.lock().answerers.remove(&self.token);
        self.answerer.stop();
    }
}

/// While it lives, the echo's answers to an address may be longer than its probes.
#[derive(Debug)]
pub(crate) struct Declared<'a> {
    registry: &'a Registry,
    share: Share,
}

impl Drop for Declared<'_> {
    fn drop(&mut self) {
        self.registry.lock().declared.remove(&self.share);
    }
}

/// The right to have a path traced, or to wait for it.
#[derive(Debug)]
pub(crate) struct TraceClaim<'a> {
    registry: &'a Registry,
    session: u64,
    peer: IpAddr,
    waits: Duration,
}

impl TraceClaim<'_> {
    /// Whether the trace may begin now.
    pub(crate) fn turn(&self) -> Turn {
        let (now, share) = (self.registry.now(), Share::of(self.peer));
        let traces = &mut self.registry.lock().traces;
        traces.ask(now, self.session, share, self.waits)
    }
}

impl Drop for TraceClaim<'_> {
    fn drop(&mut self) {
        self.registry.lock().traces.end(self.session);
    }
}

/// The right to run a load, or to wait for it.
#[derive(Debug)]
pub(crate) struct LoadClaim<'a> {
    registry: &'a Registry,
    session: u64,
    peer: IpAddr,
    waits: Duration,
    yields: bool,
}

impl LoadClaim<'_> {
    /// Whether a load of so many streams may run now.
    ///
    /// # Errors
    /// When it will not be its turn within the time that the client waits.
    pub(crate) fn turn(
        &self,
        streams: u32,
        lasts: Duration,
    ) -> Result<Admitted, (Refusal, String)> {
        let wanted = Wanted {
            session: self.session,
            share: Share::of(self.peer),
            yields: self.yields,
            streams,
            lasts,
        };
        let now = self.registry.now();
        let mut inner = self.registry.lock();
        match inner.loads.ask(now, wanted, self.waits) {
            Turn::Now => {
                let mut here = inner.here.values_mut();
                if let Some(here) = here.find(|here| here.number == self.session) {
                    here.handed = 0;
                }
                Ok(Admitted::Now)
            }
            Turn::Wait(queued) => Ok(Admitted::Later {
                ahead: u32::try_from(queued.ahead).unwrap_or(u32::MAX),
                after_s: queued.after.map(|after| after.as_secs_f64()),
            }),
            Turn::Never(queued) => Err((
                Refusal::Busy,
                format!(
                    "loads with {}, or with other clients behind that address, or as many streams as it may carry, are running: {}",
                    self.peer,
                    queued.when()
                ),
            )),
        }
    }
}

impl Drop for LoadClaim<'_> {
    fn drop(&mut self) {
        let now = self.registry.now();
        self.registry
            .lock()
            .loads
            .end(now, self.session, self.yields);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Read;
    use std::net::TcpListener;
    use std::sync::mpsc;

    #[test]
    fn a_session_that_hears_nothing_ends_for_another_all_the_same() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(5)))
            .unwrap();
        let (events, incoming) = mpsc::sync_channel(1);
        let here = Here {
            number: 1,
            share: Share::of([127, 0, 0, 1].into()),
            socket: Arc::new(listener.accept().unwrap().0),
            events,
            stage: Weak::new(),
            handed: 0,
        };
        here.displace();
        assert!(matches!(incoming.try_recv(), Ok(Event::Displaced)));
        here.events.try_send(Event::Gone).unwrap();
        here.displace();
        assert_eq!(client.read(&mut [0]).unwrap(), 0, "its connection is over");
    }
}
