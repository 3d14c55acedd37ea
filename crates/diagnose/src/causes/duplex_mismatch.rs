//! One end of a link sends whenever it likes, and the other takes that for a collision.
//!
//! After a failed negotiation one end runs half and the other full duplex. Packets that go one after the other pass;
//! segments and acknowledgements meet, and each meeting loses both (Shalunov and Carlson, Detecting Duplex Mismatch
//! on Ethernet, 2005). So TCP collapses where datagrams in the same direction arrive whole.

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::loss::at_least_ratio;
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, si};

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Streamed, fact};
use crate::signs::{Kind, Sign, percent, queue_stands};
use crate::weighing::prediction::{Observable, Prediction, strength};

/// Segments retransmitted, as a share: a link that loses both of what meets loses many.
const AGAIN_RATIO: f64 = 0.05;

/// Datagrams by themselves carry so many times what TCP does.
const TIMES: f64 = 3.0;

/// And lose less than this share of what TCP loses.
const LOST_RATIO: f64 = 0.25;

/// Order that is lost makes TCP send again as well, and no datagram is lost: above this share it may be that.
const REORDERED_RATIO: f64 = 0.01;

/// Whatever treats TCP otherwise than UDP would look the same.
const CONFIDENCE: f64 = 0.85;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Damage,
    vanishes: "both ends of the link negotiate, or are set to the same duplex",
    needs: &[Need::Idle, Need::Upload, Need::Download],
    resembles: &[
        (
            Cause::PathLoss,
            "loss at random takes datagrams that go one way as well",
        ),
        (
            Cause::LinkDuplexHalf,
            "where both ends run half duplex they wait for each other, and little is lost",
        ),
    ],
    predicts: &[Prediction::unlikely(
        Observable::StandingQueue,
        strength::MODERATE,
    )],
    // While nothing at all passes, probes are lost whatever they meet.
    yields_to: &[Cause::Outage],
    examine,
    explains,
};

fn examine(case: &Case<'_>) -> Vec<Finding> {
    // The link is one, so that one finding is enough: that of the direction which suffers more.
    let found = [Direction::Up, Direction::Down].into_iter();
    let found = found.filter_map(|direction| collapsed(case, direction));
    let worst = found.max_by(|a, b| a.0.total_cmp(&b.0));
    let worst = worst.map(|(_, finding)| finding);
    let met = || meeting(case).or_else(|| meeting_under_load(case));
    worst.or_else(met).into_iter().collect()
}

/// It loses packets in both directions whatever is sent.
fn explains(_: &Finding, sign: &Sign) -> bool {
    sign.kind != Kind::Window
}

/// Probes of the idle path meet the answers to those before; datagrams in one direction meet hardly anything.
fn meeting(case: &Case<'_>) -> Option<Finding> {
    let idle = case.idle()?;
    let least = idle.loss_at_least();
    let alone = |direction| case.streamed(Experiment::Paced, direction).next();
    let (up, down) = (alone(Direction::Up)?, alone(Direction::Down)?);
    let alone_ratio = up.lost_ratio().max(down.lost_ratio());
    (least >= AGAIN_RATIO && alone_ratio <= LOST_RATIO * least).then(|| {
        finding(
            format!(
                "Packets are lost where they meet: {} of idle probes get no answer, and of datagrams that go in one direction alone {} are lost. {PROBABLY}",
                percent(idle.lost() as f64 / idle.sent() as f64),
                percent(alone_ratio),
            ),
            vec![fact(
                idle.measurement,
                "loss_ratio",
                least,
                "share of idle probes lost at least, against four times that of datagrams in one direction",
                alone_ratio / LOST_RATIO,
            )],
        )
    })
}

/// Where TCP carries enough not to collapse, probes still meet its segments or their acknowledgements, whichever direction is
/// loaded; datagrams in one direction meet nothing. Above the rate they are not cut short, as by a policer or a short queue.
fn meeting_under_load(case: &Case<'_>) -> Option<Finding> {
    let directions = [Direction::Up, Direction::Down];
    let mut least = f64::INFINITY;
    let mut least_seen = None;
    for direction in directions {
        let loaded = case
            .loaded(direction)
            .filter(|loaded| loaded.shows_queue())?;
        let (sent, lost) = loaded.probes();
        if at_least_ratio(sent, lost) < AGAIN_RATIO || queue_stands(case.full_load(direction)?) {
            return None;
        }
        let ratio = lost as f64 / sent.max(1) as f64;
        if ratio < least {
            (least, least_seen) = (ratio, Some(loaded));
        }
    }
    let loaded = least_seen?;
    let streams = |kind| {
        directions
            .into_iter()
            .flat_map(move |d| case.streamed(kind, d))
    };
    let paced = streams(Experiment::Paced).map(Streamed::lost_ratio);
    let alone_ratio = paced.reduce(f64::max)?;
    let mut above = streams(Experiment::Overload);
    let any_above = streams(Experiment::Overload).next().is_some();
    let passes = any_above && above.all(|stream| stream.is_carried() || stream.is_queued());
    (passes && alone_ratio <= LOST_RATIO * least).then(|| {
        finding(
            format!(
                "Packets are lost where they meet: {} of the probes beside TCP in either direction get no answer, and of datagrams that go in one direction alone {} are lost. {PROBABLY}",
                percent(least),
                percent(alone_ratio),
            ),
            vec![fact(
                loaded.measurement,
                "loss_ratio",
                least,
                "share of probes lost beside a load of either direction, against four times that of datagrams in one direction, and 5 %",
                (alone_ratio / LOST_RATIO).max(AGAIN_RATIO),
            )],
        )
    })
}

/// How many times what TCP carries datagrams do, and the finding.
fn collapsed(case: &Case<'_>, direction: Direction) -> Option<(f64, Finding)> {
    let carried = case.full_load(direction)?;
    let below = case.streamed(Experiment::Paced, direction).next()?;
    let again = carried.segments()?.ratio();
    // Above the line's rate its full queue loses datagrams.
    let passes =
        |stream: &Streamed<'_>| stream.lost_ratio() <= LOST_RATIO * again || stream.is_queued();
    // The fastest of those that pass: one that is far above the line's rate loses by that alone.
    let alone = case.streamed(Experiment::Overload, direction);
    let alone = alone.filter(passes).last()?;
    let delivered_bps = alone.delivered_bps()?;
    let times = delivered_bps / carried.bps();
    // A queue of a few packets lets datagrams pass up to the line's rate, and cuts what is above.
    let collapsed = case.overload_is_settled(direction)
        && again >= AGAIN_RATIO
        && times >= TIMES
        && below.lost_ratio() <= LOST_RATIO * again
        && alone.reordered_ratio() < REORDERED_RATIO;
    collapsed.then(|| {
        let summary = format!(
            "{}loads collapse where packets meet: TCP, whose acknowledgements come back meanwhile, carries {} and sends {} again; datagrams alone carry {}. {PROBABLY}",
            capital(direction.name()),
            si(carried.bps(), "bit/s"),
            percent(again),
            si(delivered_bps, "bit/s")
        );
        let evidence = vec![
            fact(
                alone.measurement,
                "bps",
                delivered_bps,
                "payload of datagrams that went in this direction alone, against three times what TCP carried",
                TIMES * carried.bps(),
            ),
            fact(
                carried.measurement,
                "tcp.retransmits",
                again,
                "share of the segments that TCP retransmitted, against four times what datagrams at 80 % of its rate lose, and 5 %",
                (below.lost_ratio() / LOST_RATIO).max(AGAIN_RATIO),
            ),
        ];
        (times, finding(summary, evidence))
    })
}

const PROBABLY: &str = "Probably the two ends of a link disagree about duplex.";

fn finding(summary: String, evidence: Vec<Evidence>) -> Finding {
    Finding {
        cause: Cause::DuplexMismatch,
        place: Place::Path,
        severity: Severity::Critical,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary,
        evidence,
        fixes: vec![Fix::advice(
            Actor::ThisHost,
            "Look for late collisions on one end of each Ethernet link and for FCS errors on the other (`plumb host`, `ethtool -S`, the switch's port), and set both ends to negotiate.",
            "TCP carries what datagrams do, and both directions at once as well.",
        )],
        kb: "loss".to_owned(),
    }
}
