//! What became of every packet, for a log.

use plumb_wire::ip::FlowKey;

use crate::stats::{Count, DropCause};
use crate::time::Time;

/// Most outcomes kept until [`Outcomes::take`]; later ones are only counted.
const MOST_OUTCOMES: usize = 100_000;

/// What became of a packet, or of a part of a large segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The packet's number among those that came to the chain, from 0; copies, and parts of a
    /// large segment, share it.
    pub number: u64,
    /// When it came to the head of the chain.
    pub arrived: Time,
    /// Its flow; `None` for packets that are no IP, or of flows that are not counted separately.
    pub flow: Option<FlowKey>,
    /// How much it is.
    pub what: Count,
    /// What became of it.
    pub end: End,
}

/// What becomes of packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End {
    /// It left the chain.
    Left {
        at: Time,
        /// Whether a cell put the mark of congestion on it.
        marked: bool,
    },
    /// A cell dropped it.
    Dropped { cell: String, cause: DropCause },
}

/// The outcomes that were not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    wanted: bool,
    kept: Vec<Outcome>,
    missed: u64,
}

impl Outcomes {
    /// Begins or ends keeping them.
    pub(crate) fn want(&mut self, wanted: bool) {
        self.wanted = wanted;
        if !wanted {
            *self = Self::default();
        }
    }

    /// Keeps what `outcome` makes, if outcomes are wanted.
    pub(crate) fn keep(&mut self, outcome: impl FnOnce() -> Outcome) {
        if !self.wanted {
            return;
        }
        if self.kept.len() < MOST_OUTCOMES {
            self.kept.push(outcome());
        } else {
            self.missed += 1;
        }
    }

    /// Takes what was kept, and how many more there were.
    pub(crate) fn take(&mut self) -> (Vec<Outcome>, u64) {
        let missed = std::mem::take(&mut self.missed);
        (std::mem::take(&mut self.kept), missed)
    }
}
