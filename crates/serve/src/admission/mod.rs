//! Who gets a place, and when. All of it is pure: the time is an argument, since any fixed origin.
//!
//! A client is counted by [`Share`](plumb_wire::share::Share), and what one may have never
//! keeps the others out: connections that say nothing make room for new ones, idle sessions for the
//! sessions of others, and loads take turns.

pub(crate) mod answers;
pub(crate) mod day;
pub(crate) mod greetings;
pub(crate) mod loads;
pub(crate) mod sessions;
pub(crate) mod traces;
pub(crate) mod visits;

use std::time::Duration;

/// The answer to a client that asks for a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The place is theirs.
    Now,
    /// To be asked again.
    Wait(Queued),
    /// There will be none within the time that they wait.
    Never(Queued),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Queued {
    /// How many are served before.
    pub(crate) ahead: usize,
    /// In how much time it is their turn, by what is known of those before; unknown where that is
    /// nothing.
    pub(crate) after: Option<Duration>,
}

impl Queued {
    /// When to try again, for people.
    pub(crate) fn when(&self) -> String {
        match self.after {
            // Rounded up: who comes too early waits once more.
            Some(after) => format!("try again in {} s", after.as_secs() + 1),
            None => "try again when one of them has ended".to_owned(),
        }
    }
}
