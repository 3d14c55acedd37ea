//! Who is here, and who may do what: places for connections that have not said what they are,
//! sessions by their tokens, and the loads that run. Every place is given back on drop.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use plumb_load::streams::DataConnection;
use plumb_load::transactions::answer::{Admitted, Answerer};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::control::{Refusal, Token};
use plumb_wire::native::spec::{MAX_GREETING, MAX_GREETING_PER_ADDRESS, MAX_STREAMS};

use crate::echo::Asked;
use crate::session::{Event, Hushed};
use crate::tracing::Budget;

/// Most streams of all phases together: threads and sockets for four of the largest.
const MAX_STREAMS_IN_ALL: u32 = 4 * MAX_STREAMS;

/// The registry of one responder.
#[derive(Debug)]
pub(crate) struct Registry {
    max_clients: usize,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    greeting: HashMap<IpAddr, usize>,
    sessions: HashMap<Token, SyncSender<Event>>,
    /// The streams of each, by the client's address and whether it yields to all others.
    loads: HashMap<(IpAddr, bool), u32>,
    answerers: HashMap<Token, Arc<Answerer>>,
    traces: Budget,
}

impl Registry {
    /// An empty one.
    pub(crate) fn new(max_clients: usize) -> Self {
        Self {
            max_clients,
            inner: Mutex::default(),
        }
    }

    /// A place for a connection that has just come; `None` when there are too many.
    pub(crate) fn greet(&self, peer: IpAddr) -> Option<GreetingPlace<'_>> {
        let mut inner = self.lock();
        let all = inner.greeting.values().sum::<usize>();
        let its = inner.greeting.get(&peer).copied().unwrap_or(0);
        if all >= MAX_GREETING || its >= MAX_GREETING_PER_ADDRESS {
            return None;
        }
        inner.greeting.insert(peer, its + 1);
        Some(GreetingPlace {
            registry: self,
            peer,
        })
    }

    /// A place for a session; `None` when there are too many.
    pub(crate) fn enter(
        &self,
        token: Token,
        events: SyncSender<Event>,
    ) -> Option<SessionPlace<'_>> {
        let mut inner = self.lock();
        if inner.sessions.len() >= self.max_clients {
            return None;
        }
        inner.sessions.insert(token, events);
        Some(SessionPlace {
            registry: self,
            token,
        })
    }

    /// The right to run a load with the client at `peer`: one at a time for each address, since
    /// two would measure each other; and beside it one that yields to all others.
    pub(crate) fn claim(
        &self,
        peer: IpAddr,
        streams: u32,
        yields: bool,
    ) -> Result<LoadClaim<'_>, (Refusal, String)> {
        let mut inner = self.lock();
        if inner.loads.contains_key(&(peer, yields)) {
            return Err((
                Refusal::Busy,
                format!(
                    "a load with {peer}, or with another client behind that address, is under way: wait until it ends"
                ),
            ));
        }
        if inner.loads.values().sum::<u32>().saturating_add(streams) > MAX_STREAMS_IN_ALL {
            return Err((
                Refusal::Busy,
                "it carries as many streams as it may: try again in a minute".to_owned(),
            ));
        }
        inner.loads.insert((peer, yields), streams);
        Ok(LoadClaim {
            registry: self,
            peer,
            yields,
        })
    }

    /// The right to trace the path towards `peer`.
    pub(crate) fn trace(&self, peer: IpAddr) -> Result<TracePlace<'_>, (Refusal, String)> {
        self.lock().traces.begin(peer, Instant::now())?;
        Ok(TracePlace {
            registry: self,
            peer,
        })
    }

    /// Hands a connection that is to be silent to its session, as [`Registry::attach`] does.
    pub(crate) fn hush(&self, token: Token, connection: Hushed) {
        let session = self.lock().sessions.get(&token).cloned();
        if let Some(session) = session {
            let _ = session.try_send(Event::Hushed(connection));
        }
    }

    /// Hands a data connection to its session; closes it when there is none, or when the
    /// session has more waiting than it could have asked for.
    pub(crate) fn attach(&self, connection: DataConnection) {
        let token = connection.preamble.token;
        let session = self.lock().sessions.get(&token).cloned();
        if let Some(session) = session {
            let _ = session.try_send(Event::Attached(Box::new(connection)));
        }
    }

    /// Tells a session that a UDP stream is asked for.
    pub(crate) fn ask(&self, asked: Asked) {
        let session = self.lock().sessions.get(&asked.stream.token).cloned();
        if let Some(session) = session {
            let _ = session.try_send(Event::Asked(asked));
        }
    }

    /// From now on the connections of single transactions of that session are answered.
    pub(crate) fn answer(&self, token: Token, answerer: Answerer) -> AnsweringPlace<'_> {
        let answerer = Arc::new(answerer);
        self.lock().answerers.insert(token, Arc::clone(&answerer));
        AnsweringPlace {
            registry: self,
            token,
            answerer,
        }
    }

    /// What a connection that began so is to be answered, if it is for a single transaction.
    pub(crate) fn admit(&self, preamble: &Preamble) -> Option<Admitted> {
        let answerer = self.lock().answerers.get(&preamble.token).cloned()?;
        answerer.admit(preamble)
    }

    /// Whether a session of that token is here.
    pub(crate) fn knows(&self, token: Token) -> bool {
        self.lock().sessions.contains_key(&token)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Every change is complete before anything that could panic.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a connection that has not said what it is.
#[derive(Debug)]
pub(crate) struct GreetingPlace<'a> {
    registry: &'a Registry,
    peer: IpAddr,
}

impl Drop for GreetingPlace<'_> {
    fn drop(&mut self) {
        let mut inner = self.registry.lock();
        if let Some(its) = inner.greeting.get_mut(&self.peer) {
            *its = its.saturating_sub(1);
            if *its == 0 {
                inner.greeting.remove(&self.peer);
            }
        }
    }
}

/// The place of a session.
#[derive(Debug)]
pub(crate) struct SessionPlace<'a> {
    registry: &'a Registry,
    token: Token,
}

impl Drop for SessionPlace<'_> {
    fn drop(&mut self) {
        self.registry.lock().sessions.remove(&self.token);
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

/// The right to trace a path.
#[derive(Debug)]
pub(crate) struct TracePlace<'a> {
    registry: &'a Registry,
    peer: IpAddr,
}

impl Drop for TracePlace<'_> {
    fn drop(&mut self) {
        self.registry.lock().traces.end(self.peer);
    }
}

/// The right to run a load.
#[derive(Debug)]
pub(crate) struct LoadClaim<'a> {
    registry: &'a Registry,
    peer: IpAddr,
    yields: bool,
}

impl Drop for LoadClaim<'_> {
    fn drop(&mut self) {
        self.registry.lock().loads.remove(&(self.peer, self.yields));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn one_address_cannot_take_all_places() {
        let registry = Registry::new(1);
        let mut places: Vec<_> = std::iter::from_fn(|| registry.greet(address(1)))
            .take(MAX_GREETING)
            .collect();
        assert_eq!(places.len(), MAX_GREETING_PER_ADDRESS);
        let others: Vec<_> = std::iter::from_fn(|| registry.greet(address(2)))
            .take(MAX_GREETING)
            .collect();
        assert_eq!(others.len(), MAX_GREETING - MAX_GREETING_PER_ADDRESS);
        places.pop();
        assert!(registry.greet(address(3)).is_some());
        drop((places, others));
        assert!(registry.lock().greeting.is_empty());
    }

    #[test]
    fn an_address_that_is_refused_leaves_nothing() {
        let registry = Registry::new(1);
        let places: Vec<_> = (1..=2)
            .flat_map(|last| std::iter::repeat_with(move || address(last)).take(MAX_GREETING / 2))
            .map(|peer| registry.greet(peer).unwrap())
            .collect();
        assert!((3..=200).all(|last| registry.greet(address(last)).is_none()));
        assert_eq!(registry.lock().greeting.len(), 2);
        drop(places);
        assert!(registry.lock().greeting.is_empty());
    }

    #[test]
    fn one_load_an_address_and_so_many_streams_in_all() {
        let registry = Registry::new(1);
        let claim = |last, streams| registry.claim(address(last), streams, false);
        let first = claim(1, MAX_STREAMS_IN_ALL - 1).unwrap();
        assert_eq!(claim(1, 1).unwrap_err().0, Refusal::Busy);
        assert_eq!(claim(2, 2).unwrap_err().0, Refusal::Busy);
        let _second = claim(2, 1).unwrap();
        drop(first);
        assert!(claim(1, 1).is_ok());
    }

    #[test]
    fn a_load_that_yields_runs_beside_another() {
        let registry = Registry::new(1);
        let claim = |yields| registry.claim(address(1), 1, yields);
        let background = claim(true).unwrap();
        assert_eq!(claim(true).unwrap_err().0, Refusal::Busy);
        let load = claim(false).unwrap();
        drop(background);
        assert_eq!(claim(false).unwrap_err().0, Refusal::Busy);
        drop(load);
        assert!(registry.lock().loads.is_empty());
    }

    #[test]
    fn so_many_clients() {
        let registry = Registry::new(1);
        let (events, _kept) = std::sync::mpsc::sync_channel(1);
        let first = registry.enter(Token([1; 16]), events.clone()).unwrap();
        assert!(registry.enter(Token([2; 16]), events.clone()).is_none());
        drop(first);
        assert!(registry.enter(Token([2; 16]), events).is_some());
    }
}
