//! What can be seen of a path that speaks for some causes and against others.

use plumb_model::context::Experiment;
use plumb_model::loss::at_most_ratio;
use plumb_model::results::Direction;

use crate::Case;
use crate::evidence::{Carried, OTHERS_RATIO};
use crate::loss::{LOSS_WARNING, shows_loss};
use crate::signs::{WINDOW_RATIO, queue_stands};

/// Loss while idle is absent below this share: 188 answered probes bound it, and more of it would cost TCP on any path.
const IDLE_LOSS_BOUND_RATIO: f64 = 0.025;

/// Idle round trips are spread where their 95th percentile exceeds the median by this share of it, and by this many
/// seconds, which the scheduling of two hosts stays below.
const SPREAD_RATIO: f64 = 0.5;
const SPREAD_S: f64 = 0.005;

/// Something that can be seen of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Observable {
    /// Probes are lost while nothing of ours loads the path.
    IdleLoss,
    /// Idle round trips vary by themselves.
    IdleSpread,
    /// The load's own packets wait all the time.
    StandingQueue,
    /// Datagrams below the line's rate are lost.
    LossBelowRate,
    /// Datagrams above the line's rate wait in a queue.
    QueueAboveRate,
    /// Senders wait for the receiver's window.
    ReceiverWindow,
    /// Senders wait for their own buffer.
    SendBuffer,
    /// The path carries nothing for a time.
    Outage,
    /// The gateway counts more than this host carries.
    OthersOnLine,
}

/// What a case shows of an observable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    Present,
    Absent,
    /// It was not measured, or not well enough to exclude it.
    Unknown,
}

impl Seen {
    fn of(known: Option<bool>) -> Self {
        match known {
            Some(true) => Self::Present,
            Some(false) => Self::Absent,
            None => Self::Unknown,
        }
    }
}

impl Observable {
    /// What is seen, as a clause.
    pub fn words(self, present: bool) -> &'static str {
        match (self, present) {
            (Self::IdleLoss, true) => "probes are lost while idle",
            (Self::IdleLoss, false) => "no loss while idle",
            (Self::IdleSpread, true) => "idle round trips vary by themselves",
            (Self::IdleSpread, false) => "idle round trips are steady",
            (Self::StandingQueue, true) => "the load's own packets wait in a queue all the time",
            (Self::StandingQueue, false) => "no queue of the load's own stands",
            (Self::LossBelowRate, true) => "datagrams below the line's rate are lost too",
            (Self::LossBelowRate, false) => "datagrams below the line's rate arrive whole",
            (Self::QueueAboveRate, true) => "datagrams above the line's rate wait in a long queue",
            (Self::QueueAboveRate, false) => "datagrams above the line's rate wait in no queue",
            (Self::ReceiverWindow, true) => "senders wait for the receiver's window",
            (Self::ReceiverWindow, false) => "senders do not wait for the receiver's window",
            (Self::SendBuffer, true) => "senders wait for their own buffer",
            (Self::SendBuffer, false) => "senders do not wait for their own buffer",
            (Self::Outage, true) => "the path carried nothing for a time",
            (Self::Outage, false) => "the path never stopped carrying packets",
            (Self::OthersOnLine, true) => "the gateway counted more than this host carried",
            (Self::OthersOnLine, false) => "the gateway counted no more than this host carried",
        }
    }

    /// What the case shows of it in one direction; in any, where the direction is not known.
    pub(crate) fn seen(self, case: &Case<'_>, direction: Option<Direction>) -> Seen {
        let directions = match direction {
            Some(Direction::Up) => vec![Direction::Up],
            Some(Direction::Down) => vec![Direction::Down],
            Some(Direction::Both) | None => vec![Direction::Up, Direction::Down],
        };
        let each: Vec<Option<bool>> = directions
            .into_iter()
            .map(|direction| self.known(case, direction))
            .collect();
        let any = |known: Option<bool>| each.contains(&known);
        Seen::of(match (any(Some(true)), any(None)) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        })
    }

    fn known(self, case: &Case<'_>, direction: Direction) -> Option<bool> {
        let carried = || case.full_load(direction);
        match self {
            Self::IdleLoss => idle_loss(case),
            Self::IdleSpread => {
                let rtt = case.idle()?.result.rtt_s?;
                Some(rtt.p95 - rtt.p50 > SPREAD_S.max(SPREAD_RATIO * rtt.p50))
            }
            Self::StandingQueue => carried().map(queue_stands),
            Self::LossBelowRate => {
                let stream = case.streamed(Experiment::Paced, direction).next()?;
                match stream.loss_bounds() {
                    (least, _) if least >= LOSS_WARNING => Some(true),
                    (_, most) if most < IDLE_LOSS_BOUND_RATIO => Some(false),
                    _ => None,
                }
            }
            Self::QueueAboveRate => {
                let stream = case.above_rate(direction)?;
                let queued = stream.is_queued();
                (stream.has_own_delays() || queued).then_some(queued)
            }
            Self::ReceiverWindow => Some(limited(carried()?).0 >= WINDOW_RATIO),
            Self::SendBuffer => Some(limited(carried()?).1 >= WINDOW_RATIO),
            Self::Outage => {
                let watched = case.watched_s() > 0.0;
                watched.then(|| case.outages().next().is_some())
            }
            Self::OthersOnLine => {
                let (_, shared) = case.shared(direction)?;
                match shared {
                    some if some.others_at_least() >= OTHERS_RATIO => Some(true),
                    none if none.others_at_most() < OTHERS_RATIO => Some(false),
                    _ => None,
                }
            }
        }
    }
}

/// Absent only where so many probes were answered that more loss than the bound is unlikely.
fn idle_loss(case: &Case<'_>) -> Option<bool> {
    let idle = case.idle().filter(|idle| idle.result.received > 0)?;
    match idle.lost() {
        lost if shows_loss(idle.sent(), lost) => Some(true),
        lost if at_most_ratio(idle.sent(), lost) <= IDLE_LOSS_BOUND_RATIO => Some(false),
        _ => None,
    }
}

/// Shares of the time that senders waited for the receiver's window and for their own buffer.
fn limited(carried: Carried<'_>) -> (f64, f64) {
    let limited = &carried.result.tcp.limited;
    (limited.rwnd_ratio, limited.sndbuf_ratio)
}
