//! What a file in `causes/` says of its cause.

use plumb_model::finding::{Cause, Finding, Place};
use plumb_model::need::Need;
use plumb_model::results::{Direction, Outcome};

use crate::Case;
use crate::host::{Facts, Judged, Stage, Subject};
use crate::signs::{Kind, Sign};
use crate::weighing::prediction::Prediction;

/// A rule: what of a cause is found in a case.
pub(crate) type Rule = fn(&Case<'_>) -> Vec<Finding>;

/// What a rule says of a machine: of each subject that it has whether that is fine.
pub(crate) type AuditRule = fn(&Facts<'_>) -> Vec<Judged>;

/// The same of a stage of transfers; `None` where the outcome is of another kind.
pub(crate) type StageRule = fn(&Facts<'_>, &Outcome) -> Option<Stage>;

/// What is known of a cause.
pub struct Entry {
    pub family: Family,
    pub harms: Harm,
    pub often: Often,
    pub(crate) rank: Rank,
    /// What makes it vanish, and so would prove it: a clause.
    pub vanishes: &'static str,
    /// What must have been measured before it can be called absent: all of it.
    pub needs: &'static [Need],
    /// Causes that look like it, and what distinguishes them.
    pub resembles: &'static [(Cause, &'static str)],
    /// What it brings about or excludes beside what its own rule looks at.
    pub predicts: &'static [Prediction],
    /// Causes that account for it: where one of them is found in the same place, or either of them somewhere on the
    /// path, it is no finding of its own.
    pub yields_to: &'static [Cause],
    /// What shows how much of it a part of a path has.
    pub(crate) amount: Amount,
    /// How far the far end is differs without a fault.
    pub(crate) is_of_distance: bool,
    /// Whether the queue may be our own load's or others': datagrams below the rate show which.
    pub(crate) asks_below_rate: bool,
    /// Whether nothing else can be measured of its direction than which packets pass.
    pub(crate) asks_packet_sizes: bool,
    /// Finds it in what was measured of a path.
    pub(crate) examine: Rule,
    /// Finds it in what was read of a machine.
    pub(crate) audits: &'static [(Subject, AuditRule)],
    /// Finds it in how fast files and ciphers are, against the rate that is wanted.
    pub(crate) stage: StageRule,
    /// Whether a finding of it accounts for a sign.
    pub(crate) explains: fn(&Finding, &Sign) -> bool,
}

impl Entry {
    /// One that resembles nothing, predicts nothing, yields to nothing and accounts for no sign: a file says what differs.
    pub(crate) const PLAIN: Self = Self {
        family: Family::Path,
        harms: Harm::Rate,
        often: Often::REFERENCE,
        rank: Rank::Usual,
        vanishes: "",
        needs: &[],
        resembles: &[],
        predicts: &[],
        yields_to: &[],
        amount: Amount::Unknown,
        is_of_distance: false,
        asks_below_rate: false,
        asks_packet_sizes: false,
        examine: |_| Vec::new(),
        audits: &[],
        stage: |_, _| None,
        explains: no_sign,
    };
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Packets wait, or are dropped to limit a rate.
    Queues,
    /// Packets are lost, damaged, doubled or put out of order.
    Damage,
    /// Where packets go, how large they may be, and what is changed in them.
    Path,
    /// A machine at an end, and its link.
    Ends,
    /// What no other describes.
    Other,
}

impl Family {
    pub fn title(self) -> &'static str {
        match self {
            Self::Queues => "Queues and rates",
            Self::Damage => "Loss and damage",
            Self::Path => "The path",
            Self::Ends => "The machines at its ends",
            Self::Other => "Other",
        }
    }
}

/// What a cause takes from a path first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Harm {
    /// Packets come late, or each with another delay.
    Delay,
    /// Packets do not come at all.
    Delivery,
    /// Few packets come in a time.
    Rate,
}

/// What shows how much of a cause a part of a path has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Amount {
    Unknown,
    /// Packets lost: that is all that the cause says, and something else is the reason.
    Losses,
    Duplicates,
    Reordered,
    /// How long packets wait in the queue that a load in this direction fills.
    Queue(Direction),
    /// How far idle round trips are spread.
    Spread,
    /// The largest packet, where the finding rests on it.
    PacketSize,
}

impl Amount {
    /// Whether it is counted packet by packet, so that a small share shows too.
    pub(crate) fn is_counted(self) -> bool {
        matches!(self, Self::Losses | Self::Duplicates | Self::Reordered)
    }
}

/// By how many bits a cause is more (or less) frequent than the reference, before anything is measured
/// (`weighing/prior.rs`): of these paths, in powers of two.
#[derive(Debug, Clone, Copy)]
pub struct Often {
    pub home: f64,
    pub campus: f64,
    pub cloud: f64,
    pub mobile: f64,
}

impl Often {
    const REFERENCE: Self = Self {
        home: 0.0,
        campus: 0.0,
        cloud: 0.0,
        mobile: 0.0,
    };
}

/// Where a finding stands among those that are as bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rank {
    /// Nothing that is done about others helps while it is there.
    First,
    Usual,
    /// What explains it comes before it.
    Last,
}

/// Whether a sign is of a load that a finding is about: of its direction, or of both; of any where the finding has none.
pub(crate) fn is_about(finding: &Finding, sign: &Sign) -> bool {
    let of = |direction| [Some(direction), Some(Direction::Both)].contains(&sign.direction);
    match finding.place {
        Place::Uplink => of(Direction::Up),
        Place::Downlink => of(Direction::Down),
        _ => true,
    }
}

/// For causes that account for no sign of a load.
fn no_sign(_: &Finding, _: &Sign) -> bool {
    false
}

/// For causes by which this machine or its link loses packets at any load.
pub(crate) fn of_lost_frames(_: &Finding, sign: &Sign) -> bool {
    !matches!(sign.kind, Kind::Window)
}

/// For causes that keep anything from arriving.
pub(crate) fn every_sign(_: &Finding, _: &Sign) -> bool {
    true
}
