//! One of several parallel paths loses packets, and only some connections take it.
//!
//! Routers and bonded links choose a path for each connection by its addresses and ports. Where one of them is bad, some
//! connections of the same transfer crawl while the others are fast.

use plumb_model::finding::{Actor, Cause, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::units::{capital, si};

use crate::Case;
use crate::entry::{Entry, Family, Harm};
use crate::evidence::fact;
use crate::facts::count;
use crate::signs::{COSTLY_RATIO, Kind, percent};

/// Streams on a bad path lose so many times the share that the others lose: those that share one queue lose within a few
/// times of each other, however they share its rate.
const TIMES: f64 = 10.0;

/// And carry no more than this share of what the others do in the mean.
const SLOWER_RATIO: f64 = 1.0 / 3.0;

/// So many segments retransmitted at the least on each bad stream, so that the share is known to within a half.
const ENOUGH: u64 = 16;

/// Streams that show a difference between some and others.
const LEAST_STREAMS: usize = 3;

/// Nothing but the ports distinguishes the streams; chance may be unkind to one.
const CONFIDENCE: f64 = 0.8;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Damage,
    harms: Harm::Delivery,
    vanishes: "with the bad path out of use, or from other ports, every connection is as fast as the others",
    needs: &[Need::Upload, Need::Download],
    resembles: &[(
        Cause::PathLoss,
        "loss on a path that all take is alike for all connections",
    )],
    // Streams whose packets come late at random fare unlike each other on one path too.
    yields_to: &[Cause::DelayVaries],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        directions.filter_map(|d| examine(case, d)).collect()
    },
    // Probes take one of the paths as well.
    explains: |_, sign| !matches!(sign.kind, Kind::Window | Kind::Stall | Kind::Collapse),
    ..Entry::PLAIN
};

/// A stream's share of segments retransmitted, how many, and its rate.
struct Stream {
    again_ratio: f64,
    again: u64,
    bps: f64,
}

fn examine(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let facts = case.facts(direction);
    let carried = facts.known(
        "a load as long as a rate takes to become steady",
        case.full_load(direction),
    )?;
    let segment_bytes = carried.result.tcp.mss_bytes.max(1);
    let mut streams: Vec<Stream> = carried
        .result
        .streams
        .iter()
        .map(|stream| Stream {
            again_ratio: stream.retransmits as f64
                / (stream.bytes / segment_bytes + stream.retransmits).max(1) as f64,
            again: stream.retransmits,
            bps: stream.bps,
        })
        .collect();
    let recorded = !carried.result.cc.is_empty();
    facts.known(
        "the sender's record of each connection",
        recorded.then_some(()),
    )?;
    if !facts.at_least(
        "connections",
        count(streams.len() as u64),
        LEAST_STREAMS as f64,
    ) {
        return None;
    }
    streams.sort_by(|a, b| a.again_ratio.total_cmp(&b.again_ratio));
    let at = (1..streams.len()).find(|at| is_split(&streams, *at));
    facts.is(
        "some connections lose far more than the others, and are far slower",
        at.is_some(),
    );
    let at = at?;
    let (good, bad) = streams.split_at(at);
    let mean = |streams: &[Stream]| {
        let all: f64 = streams.iter().map(|stream| stream.bps).sum();
        all / streams.len().max(1) as f64
    };
    let least = bad.first()?.again_ratio;
    let most = good.last()?.again_ratio;
    Some(Finding {
        cause: Cause::UnequalPaths,
        place: Place::Path,
        severity: Severity::Warning,
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "{} of {} {}loads are bad and the others good: they send {} and more again and carry {} each, the others at most {} and {}. Probably one of several parallel paths loses packets.",
            capital(&bad.len().to_string()),
            streams.len(),
            direction.name(),
            percent(least),
            si(mean(bad), "bit/s"),
            percent(most),
            si(mean(good), "bit/s"),
        ),
        evidence: vec![fact(
            carried.measurement,
            "streams",
            least,
            "least share of segments retransmitted of the bad streams, against ten times the largest share of the others and 1 %",
            (TIMES * most).max(COSTLY_RATIO),
        )],
        fixes: vec![Fix::advice(
            Actor::Provider,
            "Find the parallel paths (`plumb path HOST --all-paths`) and the one on which probes are lost; have its operator take that member of the bundle or that route out of use. Until then connections from other ports may take a good one.",
            "All connections of a transfer carry about the same.",
        )],
        kb: "path".to_owned(),
    })
}

/// Whether those from `at` on are bad, and those before it good.
fn is_split(streams: &[Stream], at: usize) -> bool {
    let (good, bad) = streams.split_at(at);
    let good_bps = good.iter().map(|s| s.bps).sum::<f64>() / good.len().max(1) as f64;
    let most = good.last().map_or(0.0, |stream| stream.again_ratio);
    bad.iter().all(|stream| {
        stream.again_ratio >= COSTLY_RATIO
            && stream.again_ratio >= TIMES * most
            && stream.again >= ENOUGH
            && stream.bps <= SLOWER_RATIO * good_bps
    })
}
