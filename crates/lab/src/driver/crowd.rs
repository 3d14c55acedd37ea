//! Whether more threads of the laboratory are at work than there are processors.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// What the threads of one laboratory share.
#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    at_work: Arc<AtomicUsize>,
    processors: usize,
}

/// One thread of it.
pub(super) struct Member {
    crowd: Crowd,
    at_work: bool,
}

impl Crowd {
    /// Nobody is at work yet.
    pub(crate) fn new() -> Self {
        Self {
            at_work: Arc::default(),
            processors: thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Takes in a thread.
    pub(super) fn join(&self) -> Member {
        Member {
            crowd: self.clone(),
            at_work: false,
        }
    }
}

impl Member {
    /// Tells whether this thread has much to do from now on, and is told whether too many have.
    pub(super) fn is_crowded(&mut self, at_work: bool) -> bool {
        let all = &self.crowd.at_work;
        match (self.at_work, at_work) {
            (false, true) => all.fetch_add(1, Ordering::Relaxed),
            (true, false) => all.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
        self.at_work = at_work;
        at_work && all.load(Ordering::Relaxed) > self.crowd.processors
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.is_crowded(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_crowded_where_more_are_at_work_than_processors() {
        let crowd = Crowd {
            processors: 2,
            ..Crowd::new()
        };
        let mut members: Vec<Member> = (0..3).map(|_| crowd.join()).collect();
        let crowded: Vec<bool> = members.iter_mut().map(|m| m.is_crowded(true)).collect();
        assert_eq!(crowded, [false, false, true]);
        assert!(members[0].is_crowded(true), "asked again");
        assert!(!members[1].is_crowded(false), "who has little to do is not");
        assert!(!members[0].is_crowded(true));
        assert!(members[1].is_crowded(true));
        members.pop();
        assert!(!members[0].is_crowded(true), "one has left");
    }
}
