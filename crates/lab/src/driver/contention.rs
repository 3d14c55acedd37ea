//! How many threads of the laboratory are at work, against how many processors there are.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How much of the machine the threads at work would take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// At most half of the processors: the ends have the others.
    Wide,
    /// At most all of them.
    Narrow,
    /// More than there are.
    Crowded,
}

/// What the threads of one laboratory share.
#[derive(Debug, Clone)]
pub(crate) struct Contention {
    at_work: Arc<AtomicUsize>,
    processors: usize,
}

/// One thread of it.
pub(super) struct Member {
    contention: Contention,
    at_work: bool,
}

impl Contention {
    /// No thread is at work yet.
    pub(crate) fn new() -> Self {
        Self {
            at_work: Arc::default(),
            processors: thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Takes in a thread.
    pub(super) fn join(&self) -> Member {
        Member {
            contention: self.clone(),
            at_work: false,
        }
    }
}

impl Member {
    /// Sets whether this thread has much to do from now on, and returns how much room the threads with much to do leave
    /// it.
    pub(super) fn room(&mut self, at_work: bool) -> Room {
        let all = &self.contention.at_work;
        match (self.at_work, at_work) {
            (false, true) => all.fetch_add(1, Ordering::Relaxed),
            (true, false) => all.fetch_sub(1, Ordering::Relaxed),
            _ => 0,
        };
        self.at_work = at_work;
        match all.load(Ordering::Relaxed) {
            few if !at_work || few <= self.contention.processors / 2 => Room::Wide,
            all if all <= self.contention.processors => Room::Narrow,
            _ => Room::Crowded,
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.room(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_those_at_work_leave() {
        use Room::{Crowded, Narrow, Wide};
        let contention = Contention {
            processors: 2,
            ..Contention::new()
        };
        let mut members: Vec<Member> = (0..3).map(|_| contention.join()).collect();
        let rooms: Vec<Room> = members.iter_mut().map(|m| m.room(true)).collect();
        assert_eq!(rooms, [Wide, Narrow, Crowded]);
        assert_eq!(members[0].room(true), Crowded, "asked again");
        assert_eq!(members[1].room(false), Wide, "who has little to do");
        assert_eq!(members[0].room(true), Narrow);
        assert_eq!(members[1].room(true), Crowded);
        members.pop();
        assert_eq!(members[0].room(true), Narrow, "one has left");
    }
}
