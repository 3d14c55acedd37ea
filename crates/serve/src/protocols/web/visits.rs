//! Visits of browsers to the page: what is seen of each, until it is judged.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_load::web::visited::Visited;
use plumb_wire::share::Share;
use plumb_wire::web::visit::VisitId;

/// Visits that are remembered at once, and of one client: several times what are tested at once. Only those that have had a
/// turn hold more than a name.
const MOST: usize = 256;
const MOST_OF_ONE: usize = 8;

/// How long one is: four times what the page takes.
const REMEMBERED: Duration = Duration::from_secs(120);

/// The visits that are remembered.
#[derive(Debug, Default)]
pub(super) struct Visits(Mutex<HashMap<(Share, VisitId), Remembered>>);

#[derive(Debug)]
struct Remembered {
    since: Instant,
    visited: Arc<Visited>,
}

impl Visits {
    fn lock(&self) -> MutexGuard<'_, HashMap<(Share, VisitId), Remembered>> {
        let mut visits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        visits.retain(|_, visit| visit.since.elapsed() < REMEMBERED);
        visits
    }

    /// The visit of that name from that address, which may be new; nothing where too many are remembered.
    pub(super) fn of(&self, peer: IpAddr, id: VisitId) -> Option<Arc<Visited>> {
        let mut visits = self.lock();
        let key = (Share::of(peer), id);
        let of_one = visits.keys().filter(|(share, _)| *share == key.0).count();
        let is_full = visits.len() >= MOST || of_one >= MOST_OF_ONE;
        if is_full && !visits.contains_key(&key) {
            return None;
        }
        let visit = visits.entry(key).or_insert_with(|| Remembered {
            since: Instant::now(),
            visited: Arc::default(),
        });
        Some(Arc::clone(&visit.visited))
    }

    /// Takes a visit that is over.
    pub(super) fn take(&self, peer: IpAddr, id: &VisitId) -> Option<Arc<Visited>> {
        let visit = self.lock().remove(&(Share::of(peer), id.clone()))?;
        Some(visit.visited)
    }
}
