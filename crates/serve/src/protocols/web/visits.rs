//! Visits of browsers to the page: what is seen of each, until it is judged.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_load::web::visited::{Seen, Visited};
use plumb_wire::share::Share;
use plumb_wire::web::visit::VisitId;

/// Visits that are remembered at once: several times what are tested at once.
const MOST: usize = 256;

/// The same of one client. It is as often that a client is judged in [`REMEMBERED`]: a test takes 36 s and more.
const MOST_OF_ONE: usize = 4;

/// How long one is: three times what the page takes.
const REMEMBERED: Duration = Duration::from_secs(120);

/// What pages say of visits, that is read at once: 8 MB. One comes in a second, and each client has one at a time.
const MOST_READ: usize = 16;

/// The visits that are remembered.
#[derive(Debug, Default)]
pub(super) struct Visits {
    remembered: Mutex<HashMap<(Share, VisitId), Remembered>>,
    /// Clients of which is read what the page says.
    read: Arc<Mutex<HashSet<Share>>>,
}

/// The right to have read what a page says, until it is dropped.
#[derive(Debug)]
pub(super) struct Reading {
    share: Share,
    read: Arc<Mutex<HashSet<Share>>>,
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.remove(&self.share);
    }
}

/// Why nothing is read of a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotRead {
    /// No visit of that address has carried anything.
    Unknown,
    /// Another one is being read.
    NotNow,
}

#[derive(Debug)]
struct Remembered {
    since: Instant,
    /// Absent once it was judged.
    visited: Option<Arc<Visited>>,
}

impl Remembered {
    /// Whether it holds nothing but echoes, which need no turn.
    fn is_idle(&self) -> bool {
        self.visited
            .as_ref()
            .is_some_and(|visited| !visited.has_load())
    }
}

impl Visits {
    fn lock(&self) -> MutexGuard<'_, HashMap<(Share, VisitId), Remembered>> {
        let mut visits = self
            .remembered
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        visits.retain(|_, visit| visit.since.elapsed() < REMEMBERED);
        visits
    }

    /// The visit of that name from that address, which may be new; nothing where it was judged, or too many are remembered.
    /// One that has carried nothing makes room.
    pub(super) fn of(&self, peer: IpAddr, id: VisitId) -> Option<Arc<Visited>> {
        let mut visits = self.lock();
        let key = (Share::of(peer), id);
        if !visits.contains_key(&key) {
            let of_one = visits.keys().filter(|(share, _)| *share == key.0).count();
            let is_of_one = of_one >= MOST_OF_ONE;
            if is_of_one || visits.len() >= MOST {
                let idle = visits.iter().filter(|((share, _), visit)| {
                    visit.is_idle() && (!is_of_one || *share == key.0)
                });
                let oldest = idle.min_by_key(|(_, visit)| visit.since)?.0.clone();
                visits.remove(&oldest);
            }
        }
        let visit = visits.entry(key).or_insert_with(|| Remembered {
            since: Instant::now(),
            visited: Some(Arc::default()),
        });
        visit.visited.clone()
    }

    /// The right to have read what the page of an address says of a visit that has carried something.
    pub(super) fn read(&self, peer: IpAddr) -> Result<Reading, NotRead> {
        let share = Share::of(peer);
        let has_load = |visit: &Remembered| visit.visited.is_some() && !visit.is_idle();
        let is_known = self
            .lock()
            .iter()
            .any(|((of, _), visit)| *of == share && has_load(visit));
        if !is_known {
            return Err(NotRead::Unknown);
        }
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if read.len() >= MOST_READ || !read.insert(share) {
            return Err(NotRead::NotNow);
        }
        Ok(Reading {
            share,
            read: Arc::clone(&self.read),
        })
    }

    /// Takes what was seen of a visit that is over and has carried something, and for how long it has been known: once.
    pub(super) fn take(&self, peer: IpAddr, id: &VisitId) -> Option<(Seen, Duration)> {
        let mut visits = self.lock();
        let visit = visits.get_mut(&(Share::of(peer), id.clone()))?;
        let visited = visit.visited.take_if(|visited| visited.has_load())?;
        Some((visited.take(), visit.since.elapsed()))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::direction::OneDirection;
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    fn id(number: usize) -> VisitId {
        format!("{number:016}").try_into().unwrap()
    }

    fn client(number: usize) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + number as u32).into()
    }

    /// A body of that visit.
    fn load(visits: &Visits, peer: IpAddr, id: VisitId) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let visited = visits.of(peer, id).unwrap();
        visited.begin(OneDirection::Down, 0, 1, &socket).unwrap();
    }

    #[test]
    fn only_what_was_carried_is_judged_and_once() {
        let visits = Visits::default();
        assert!(visits.of(client(1), id(1)).is_some());
        assert!(visits.take(client(1), &id(1)).is_none(), "echoes alone");
        load(&visits, client(1), id(1));
        assert!(visits.take(client(2), &id(1)).is_none());
        assert!(visits.take(client(1), &id(1)).is_some());
        assert!(visits.take(client(1), &id(1)).is_none());
        assert!(visits.of(client(1), id(1)).is_none(), "it is over");
    }

    #[test]
    fn one_at_a_time_is_read_of_those_that_carried_something() {
        let visits = Visits::default();
        assert_eq!(visits.read(client(1)).unwrap_err(), NotRead::Unknown);
        let _ = visits.of(client(1), id(1));
        assert_eq!(visits.read(client(1)).unwrap_err(), NotRead::Unknown);
        for number in 0..=MOST_READ {
            load(&visits, client(number), id(number));
        }
        let read = visits.read(client(1)).unwrap();
        assert_eq!(visits.read(client(1)).unwrap_err(), NotRead::NotNow);
        drop(read);
        let all: Vec<_> = (0..=MOST_READ).map(|n| visits.read(client(n))).collect();
        assert_eq!(all.iter().filter(|read| read.is_ok()).count(), MOST_READ);
    }

    #[test]
    fn echoes_keep_no_loads_out_and_a_client_is_judged_a_few_times() {
        let visits = Visits::default();
        for number in 0..2 * MOST {
            assert!(visits.of(client(number), id(number)).is_some());
        }
        assert!(visits.lock().len() <= MOST);
        let judged = (0..2 * MOST_OF_ONE).filter(|number| {
            let id = id(10_000 + number);
            visits.of(client(9999), id.clone()).is_some() && {
                load(&visits, client(9999), id.clone());
                visits.take(client(9999), &id).is_some()
            }
        });
        assert_eq!(judged.count(), MOST_OF_ONE);
    }
}
