//! What every cell of a chain does.

use crate::packet::Packet;
use crate::stats::CellStats;
use crate::time::Time;

/// A stage that packets pass: a pure state machine.
///
/// Times given to the methods never go back. A departure carries its exact time, so the result
/// does not depend on how often or how late the cell is asked.
pub trait Cell: Send {
    /// What kind of cell this is, as scenarios write it.
    fn kind(&self) -> &'static str;

    /// Takes a packet that comes in at `now`.
    fn enqueue(&mut self, now: Time, packet: Packet);

    /// The next departure at or before `now`, with the time when it happened.
    fn dequeue(&mut self, now: Time) -> Option<(Time, Packet)>;

    /// When there will be something to dequeue; `None` while nothing is under way.
    fn next_event(&self) -> Option<Time>;

    /// What the cell did up to `now`; what was not dequeued yet counts as inside.
    fn stats(&mut self, now: Time) -> CellStats;

    /// Changes a setting at `now`.
    ///
    /// # Errors
    /// When the key or value is not possible; nothing has changed then.
    fn set(&mut self, now: Time, key: &str, value: &str) -> Result<(), SetError>;

    /// Gives up what is inside at `now`, in the order in which it would have left: departures
    /// before `now` first, with their times, then the rest at `now`.
    fn drain(&mut self, now: Time) -> Vec<(Time, Packet)>;

    /// How large segments pass.
    fn crossing(&self) -> Crossing;
}

/// How a large TCP segment passes: when it is split anyway, the devices need not build it.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Crossing {
    /// In pieces of several segments, or whole.
    Whole,
    /// As single packets.
    Split,
}

/// A setting that could not be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// There is no such setting.
    #[error("{what} has no setting '{key}': set one of {allowed}")]
    Key {
        /// The kind of cell or queue.
        what: &'static str,
        /// What was written.
        key: String,
        /// What could be set.
        allowed: String,
    },
    /// The value is not possible.
    #[error("cannot set {key}={value}: {reason}")]
    Value {
        /// The setting.
        key: String,
        /// What was written.
        value: String,
        /// Why not, and what would be possible.
        reason: String,
    },
    /// A setting without which there can be no cell.
    #[error("a {what} needs '{key}': add {example}")]
    Missing {
        /// The kind of cell.
        what: &'static str,
        /// The setting.
        key: &'static str,
        /// How to write it.
        example: &'static str,
    },
}

impl SetError {
    pub(crate) fn key(what: &'static str, key: &str, allowed: &[&str]) -> Self {
        Self::Key {
            what,
            key: key.to_owned(),
            allowed: allowed.join(", "),
        }
    }

    pub(crate) fn value(key: &str, value: &str, reason: impl ToString) -> Self {
        Self::Value {
            key: key.to_owned(),
            value: value.to_owned(),
            reason: reason.to_string(),
        }
    }
}
