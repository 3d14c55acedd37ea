//! One end of a link sends whenever it likes, and the other takes that for a collision.
//!
//! After a failed negotiation one end runs half and the other full duplex. Packets that go one after the other pass;
//! segments and acknowledgements meet, and each meeting loses both (Shalunov and Carlson, Detecting Duplex Mismatch
//! on Ethernet, 2005). So TCP collapses where datagrams in the same direction arrive whole.

use plumb_model::context::Experiment;
use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::loss::{at_least_ratio, at_most_ratio};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, si};

use crate::Case;
use crate::entry::{Entry, Family, Harm, Often};
use crate::evidence::{Carried, STANDS_S, Streamed, fact};
use crate::facts::{self, ratio};
use crate::signs::{COSTLY_RATIO, Kind, Sign, doing, percent, queue_stands};
use crate::weighing::prediction::{Observable, Prediction, strength};

/// Segments retransmitted, as a share: a link that loses both of what meets loses many.
const AGAIN_RATIO: f64 = 0.05;

/// Probes lost beside the load of the direction that loses fewer, as a share: which end of the link is half duplex decides.
const LESS_RATIO: f64 = COSTLY_RATIO;

/// Datagrams by themselves carry so many times what TCP does.
const TIMES: f64 = 3.0;

/// Those above the line's rate are cut to it where no queue holds them, and still carry so many times what TCP does: a policer
/// and a short queue leave TCP more than half.
const CUT_TIMES: f64 = 2.0;

/// And lose less than this share of what TCP loses.
const LOST_RATIO: f64 = 0.25;

/// Order that is lost makes TCP send again as well, and no datagram is lost: above this share it may be that.
const REORDERED_RATIO: f64 = 0.01;

/// Whatever treats TCP otherwise than UDP would look the same.
const CONFIDENCE: f64 = 0.85;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Damage,
    harms: Harm::Delivery,
    often: Often {
        home: -3.0,
        campus: -1.0,
        cloud: -3.0,
        mobile: -3.0,
    },
    vanishes: "both ends of the link negotiate, or are set to the same duplex",
    needs: &[Need::Idle, Need::Upload, Need::Download],
    resembles: &[
        (
            Cause::PathLoss,
            "loss at random takes datagrams of one direction as well",
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
    ..Entry::PLAIN
};

fn examine(case: &Case<'_>) -> Vec<Finding> {
    // The link is one, so that one finding is enough: the finding of the direction that suffers more.
    let found = [Direction::Up, Direction::Down].into_iter();
    let found = found.filter_map(|direction| collapsed(case, direction));
    let worst = found.max_by(|a, b| a.0.total_cmp(&b.0));
    let worst = worst.map(|(_, finding)| finding);
    let met = || {
        let mut beside = [Direction::Up, Direction::Down].into_iter();
        meeting(case)
            .or_else(|| meeting_under_load(case))
            .or_else(|| beside.find_map(|direction| meeting_beside(case, direction)))
    };
    worst.or_else(met).into_iter().collect()
}

/// It loses packets in both directions whatever is sent.
fn explains(_: &Finding, sign: &Sign) -> bool {
    sign.kind != Kind::Window
}

/// Probes of the idle path meet the answers to those before; datagrams in one direction meet hardly anything.
fn meeting(case: &Case<'_>) -> Option<Finding> {
    let facts = case.facts(None).by("idle");
    let idle = facts.known("probes of the idle path", case.idle())?;
    let least = idle.loss_at_least();
    let alone = |direction| {
        let paced = case.streamed(Experiment::Paced, direction).next();
        facts.known("datagrams at 80 % of TCP's rate", paced)
    };
    let (up, down) = (alone(Direction::Up)?, alone(Direction::Down)?);
    let alone_ratio = up.lost_ratio().max(down.lost_ratio());
    let alone = "loss of datagrams in one direction alone";
    let meets = facts.at_least("least share of probes lost", ratio(least), AGAIN_RATIO)
        && facts.at_most(alone, ratio(alone_ratio), LOST_RATIO * least);
    meets.then(|| {
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
                "share of idle probes lost at least, against four times the share of datagrams in one direction",
                alone_ratio / LOST_RATIO,
            )],
        )
    })
}

/// Where TCP carries enough not to collapse, probes still meet its segments or their acknowledgements, whichever direction is
/// loaded; datagrams in one direction meet nothing. Above TCP's rate they are not cut to it, as by a policer or a short queue.
fn meeting_under_load(case: &Case<'_>) -> Option<Finding> {
    let directions = [Direction::Up, Direction::Down];
    let (mut least, mut most_at_least) = (f64::INFINITY, 0.0f64);
    let mut least_seen = None;
    for direction in directions {
        let loaded = case
            .loaded(direction)
            .filter(|loaded| loaded.shows_queue())?;
        let (sent, lost) = loaded.probes();
        let at_least = at_least_ratio(sent, lost);
        if at_least < LESS_RATIO || queue_stands(case.full_load(direction)?) {
            return None;
        }
        most_at_least = most_at_least.max(at_least);
        let ratio = lost as f64 / sent.max(1) as f64;
        if ratio < least {
            (least, least_seen) = (ratio, Some(loaded));
        }
    }
    let loaded = least_seen.filter(|_| most_at_least >= AGAIN_RATIO)?;
    let streams = |kind| {
        directions
            .into_iter()
            .flat_map(move |d| case.streamed(kind, d))
    };
    let carried = streams(Experiment::Overload).filter(|stream| stream.is_carried());
    let alone = streams(Experiment::Paced).chain(carried);
    let alone_ratio = alone.map(Streamed::lost_ratio).reduce(f64::max)?;
    let passes = |direction: Direction| {
        let tcp_bps = case
            .full_load(direction)
            .map_or(f64::INFINITY, Carried::bps);
        let mut above = case.streamed(Experiment::Overload, direction);
        above.all(|stream| {
            let delivered_bps = stream.delivered_bps().unwrap_or(0.0);
            let exceeds = delivered_bps >= CUT_TIMES * tcp_bps;
            stream.is_carried() || stream.is_queued() || exceeds
        })
    };
    let any_above = streams(Experiment::Overload).next().is_some();
    let passes = any_above && directions.into_iter().all(passes);
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
                "share of probes lost beside the load of the direction that loses fewer, against four times the share of datagrams in one direction, and 1 %",
                (alone_ratio / LOST_RATIO).max(LESS_RATIO),
            )],
        )
    })
}

/// Beside one load, probes are lost several times as often as its segments, though each direction by itself loses neither full nor
/// small packets: the end that takes a meeting for a collision drops what it sends, which may be acknowledgements alone, and TCP
/// hardly notices.
fn meeting_beside(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let loaded = case.loaded(direction).filter(|l| l.shows_queue())?;
    let (sent, lost) = loaded.probes();
    let least = at_least_ratio(sent, lost);
    let carried = case.full_load(direction)?;
    let segments = carried.segments()?;
    let little = |ratio: f64| ratio <= LOST_RATIO * least;
    let back = match direction {
        Direction::Up => Direction::Down,
        _ => Direction::Up,
    };
    // As many as the acknowledgements of every second segment, or more: a box that takes no more packets would lose them too.
    let acknowledgements_pps = 0.5 / carried.packet_s();
    let mut small = case.streamed(Experiment::SmallPackets, back);
    let small = small.find(|small| small.packets_per_s().0 >= acknowledgements_pps)?;
    let mut own = case.streamed(Experiment::Overload, direction);
    let own_passes = own.any(|own| little(own.lost_ratio()) || own.is_queued());
    let idle_passes = case.idle().is_some_and(|idle| little(idle.loss_at_least()));
    let waited = loaded.waited_s(back);
    let is_met = least >= AGAIN_RATIO
        && little(segments.ratio())
        && little(small.lost_ratio())
        && own_passes
        && idle_passes
        && waited.is_none_or(|waited| waited.p95 < STANDS_S);
    is_met.then(|| {
        finding(
            format!(
                "Packets are lost where they meet: beside {} {} of the probes get no answer, and {} of TCP's segments are retransmitted; small packets that go the other direction alone lose {}. {PROBABLY}",
                doing(direction),
                percent(lost as f64 / sent.max(1) as f64),
                percent(segments.ratio()),
                percent(small.lost_ratio()),
            ),
            vec![fact(
                loaded.measurement,
                "loss_ratio",
                least,
                "share of probes lost beside the load, against four times what TCP and datagrams of each direction alone lose, and 5 %",
                (segments.ratio().max(small.lost_ratio()) / LOST_RATIO).max(AGAIN_RATIO),
            )],
        )
    })
}

/// How many times what TCP carries datagrams do, and the finding.
fn collapsed(case: &Case<'_>, direction: Direction) -> Option<(f64, Finding)> {
    let facts = case.facts(direction).by("TCP collapses");
    let carried = facts.known(
        "a load as long as a rate takes to become steady",
        case.full_load(direction),
    )?;
    let below = case.streamed(Experiment::Paced, direction).next();
    let below = facts.known("datagrams at 80 % of TCP's rate", below)?;
    let again = facts
        .known("segments retransmitted", carried.segments())?
        .ratio();
    // Above the line's rate its full queue loses datagrams.
    let passes =
        |stream: &Streamed<'_>| stream.lost_ratio() <= LOST_RATIO * again || stream.is_queued();
    // The fastest of those that pass: one that is far above the line's rate loses by that alone.
    let alone = case.streamed(Experiment::Overload, direction);
    let alone = facts.known(
        "datagrams above TCP's rate that pass",
        alone.filter(passes).last(),
    )?;
    let delivered_bps = alone.delivered_bps()?;
    let times = delivered_bps / carried.bps();
    // Probes go both ways, and meet what TCP sends.
    let probes = case.loaded(direction).map(|loaded| loaded.probes());
    let meet = probes.is_none_or(|(sent, lost)| at_most_ratio(sent, lost) >= LESS_RATIO);
    // A queue of a few packets lets datagrams pass up to the line's rate, and cuts what is above.
    let most = LOST_RATIO * again;
    let collapsed = facts.is("probes beside the load are lost", meet)
        && facts.is(
            "it is known how fast datagrams pass",
            case.overload_is_settled(direction),
        )
        && facts.at_least("segments that TCP retransmitted", ratio(again), AGAIN_RATIO)
        && facts.at_least("datagrams carry", facts::times(times), TIMES)
        && facts.at_most(
            "loss of datagrams below the rate",
            ratio(below.lost_ratio()),
            most,
        )
        && facts.below(
            "datagrams reordered",
            ratio(alone.reordered_ratio()),
            REORDERED_RATIO,
        );
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
