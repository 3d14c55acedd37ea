//! The names of addresses, looked up while a trace runs and never waited for by it.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plumb_net::names::name_of;

/// Threads that look up at most: a resolver that does not answer holds each for its time limit.
const MAX_THREADS: usize = 8;
/// Addresses that are looked up at most, so that a path of many flows asks no resolver thousands
/// of questions.
const MAX_ADDRESSES: usize = 512;

#[derive(Debug, Default)]
struct State {
    /// Asked for; the name once it is known that there is one or none.
    known: BTreeMap<IpAddr, Option<Option<String>>>,
    queue: VecDeque<IpAddr>,
    threads: usize,
}

#[derive(Debug)]
pub struct Names {
    shared: Option<Arc<(Mutex<State>, Condvar)>>,
}

impl Names {
    /// One that looks up, or one that knows none.
    pub fn new(wanted: bool) -> Self {
        Self {
            shared: wanted.then(Arc::default),
        }
    }

    /// Asks for a name, once, without waiting. A thread that looks up ends when there is nothing left to ask, and when
    /// the resolver has given up; it does not keep the process from ending.
    pub fn ask(&self, address: IpAddr) {
        let Some(shared) = &self.shared else { return };
        let mut state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.known.contains_key(&address) || state.known.len() >= MAX_ADDRESSES {
            return;
        }
        state.known.insert(address, None);
        state.queue.push_back(address);
        if state.threads < MAX_THREADS {
            let (in_thread, builder) = (Arc::clone(shared), thread::Builder::new());
            let started = builder
                .name("names".into())
                .spawn(move || look_up(&in_thread));
            // Without threads there are no names.
            state.threads += usize::from(started.is_ok());
        }
    }

    /// Waits until all that was asked is answered, at most for so long.
    pub fn wait(&self, at_most: Duration) {
        let Some(shared) = &self.shared else { return };
        let until = Instant::now() + at_most;
        let mut state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        while state.known.values().any(Option::is_none) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            let (next, _) = shared
                .1
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
            state = next;
        }
    }

    /// The name of an address, as far as known by now.
    pub fn get(&self, address: IpAddr) -> Option<String> {
        let state = self.shared.as_ref()?.0.lock();
        let state = state.unwrap_or_else(PoisonError::into_inner);
        state.known.get(&address).cloned().flatten().flatten()
    }
}

fn look_up(shared: &(Mutex<State>, Condvar)) {
    loop {
        let next = {
            let mut state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            match state.queue.pop_front() {
                Some(next) => next,
                None => {
                    state.threads -= 1;
                    return;
                }
            }
        };
        let name = name_of(next);
        let mut state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.known.insert(next, Some(name));
        shared.1.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_asked_is_answered_and_nothing_else() {
        let names = Names::new(true);
        let addresses: Vec<IpAddr> = (1..20).map(|i| [127, 0, 0, i].into()).collect();
        addresses.iter().for_each(|address| names.ask(*address));
        names.wait(Duration::from_secs(30));
        let shared = names.shared.as_ref().map(|shared| {
            let state = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            (state.known.len(), state.known.values().all(Option::is_some))
        });
        assert_eq!(shared, Some((19, true)));
        let none = Names::new(false);
        none.ask([127, 0, 0, 1].into());
        none.wait(Duration::from_secs(30));
        assert_eq!(none.get([127, 0, 0, 1].into()), None);
    }
}
