//! How much of a finding the path to a host has, against one that has it: counts by their likelihood, times and sizes by
//! their ratio.

use plumb_model::context::Experiment;
use plumb_model::finding::{Finding, Place};
use plumb_model::results::Direction;
use plumb_model::run::Run;

use crate::entry::Amount;
use crate::places::{Host, SAME_RATE_RATIO, direction};
use crate::{Case, causes};

/// How much a rule's word weighs that has no amount: more than enough, and less than [`MOST`], because a fault near the threshold
/// is found in one check and missed in the next.
pub(super) const RULE: f64 = 4.0;

/// How much one host's measurements weigh at most: two sure ones outweigh it.
const MOST: f64 = 6.0;

/// Packets of another host that has a part of it, lost or otherwise hit, are a fifth as many: the likelihoods of that and of as
/// many cross at half of it, so that the segment with most of it is named.
const PART_RATIO: f64 = 0.2;

/// Of a time, half of it is the limit between most and less; 0.15 from there it is sure (20 · 0.15 is the logarithm of 20). Tails of
/// round trips beside a load differ by a tenth between checks of one path.
const STEEP: f64 = 20.0;
const HALF: f64 = 0.5;

/// Fewer probes of a place beside a load know no tail.
const ENOUGH: u64 = 20;

/// Packets counted, and how many of them were hit.
type Counted = (u64, u64);

/// The shortest round trip of the idle path, in seconds.
pub(super) fn least_rtt_s(host: &Host<'_>) -> Option<f64> {
    let all = host.runs.iter();
    let all = all.filter_map(|run| Some(Case::of(run).idle()?.result.rtt_s?.min));
    all.min_by(f64::total_cmp)
}

/// The largest packet that the path carries, in bytes.
pub(super) fn packet_bytes(host: &Host<'_>) -> Option<u32> {
    let mut all = host.runs.iter().flat_map(|run| Case::of(run).sizes());
    all.find_map(|sizes| {
        sizes
            .result
            .path_mtu_bytes
            .filter(|_| !sizes.result.partial)
    })
}

/// How much speaks for a host's having as much of a finding as another has (the logarithm of how many times as likely that is);
/// `None` where no amount of it is known of both.
pub(super) fn weight(host: &Host<'_>, with: &Host<'_>, finding: &Finding) -> Option<f64> {
    let amount = causes::entry(finding.cause).amount;
    let sum = match amount {
        Amount::Losses | Amount::Duplicates | Amount::Reordered => {
            counted(host, with, amount, finding.place)
        }
        Amount::Queue(_) => queue(host, with, finding),
        Amount::Spread => Some(of_times(spread_s(host)?, spread_s(with)?)),
        Amount::PacketSize if is_by_size(finding) => {
            match (packet_bytes(host)?, packet_bytes(with)?) {
                (here, there) if here > there => Some(-RULE),
                (here, there) if here == there => Some(RULE),
                // It has a narrower one of its own.
                _ => Some(0.0),
            }
        }
        Amount::PacketSize | Amount::Unknown => None,
    };
    sum.map(|weight| weight.clamp(-MOST, MOST))
}

/// Whether a finding rests on the largest packet that probes found: a black hole in one direction may let them pass.
fn is_by_size(finding: &Finding) -> bool {
    let mut evidence = finding.evidence.iter();
    evidence.any(|evidence| evidence.field.ends_with("path_mtu_bytes"))
}

fn of_times(here: f64, there: f64) -> f64 {
    STEEP * (here / there.max(f64::MIN_POSITIVE) - HALF)
}

/// The 95th percentile of the idle round trips above the fastest, in seconds.
fn spread_s(host: &Host<'_>) -> Option<f64> {
    let mut all = host.runs.iter();
    all.find_map(|run| {
        let rtt = Case::of(run).idle()?.result.rtt_s?;
        Some(rtt.p95 - rtt.min)
    })
}

/// By every kind of count that is known of both.
fn counted(host: &Host<'_>, with: &Host<'_>, amount: Amount, place: Place) -> Option<f64> {
    let kinds: &[Count] = match (amount, place) {
        (Amount::Duplicates, _) => &[Count::Duplicates],
        (Amount::Reordered, Place::Uplink) => &[Count::Reordered(Direction::Up)],
        (Amount::Reordered, _) => &[Count::Reordered(Direction::Down)],
        (_, Place::Uplink) => &[Count::Paced(Direction::Up), Count::Idle],
        (_, Place::Downlink) => &[Count::Paced(Direction::Down), Count::Idle],
        _ => &[
            Count::Idle,
            Count::Paced(Direction::Up),
            Count::Paced(Direction::Down),
        ],
    };
    let pairs = kinds.iter().map(|kind| (kind.of(host), kind.of(with)));
    let known = pairs.filter(|((here, _), (there, hit))| *here > 0 && *there > 0 && *hit > 0);
    known
        .map(|(here, there)| likelihood(here, there))
        .reduce(|a, b| a + b)
}

#[derive(Clone, Copy)]
enum Count {
    /// Probes of the idle path that were lost.
    Idle,
    /// Datagrams below the line's rate that were lost.
    Paced(Direction),
    /// Answers that came again.
    Duplicates,
    /// Datagrams that came after later ones.
    Reordered(Direction),
}

impl Count {
    fn of(self, host: &Host<'_>) -> Counted {
        let all = host.runs.iter().map(|run| self.of_run(run));
        all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    fn of_run(self, run: &Run) -> Counted {
        let case = Case::of(run);
        match self {
            Self::Paced(direction) => case.counted_with_room(direction),
            Self::Idle => case
                .idle()
                .map_or((0, 0), |idle| match idle.result.received {
                    // A filter is no loss.
                    0 => (0, 0),
                    _ => (idle.sent(), idle.lost()),
                }),
            Self::Duplicates => case.idle().map_or((0, 0), |idle| {
                (idle.result.received, idle.result.duplicates)
            }),
            Self::Reordered(direction) => {
                let stream = case.streamed(Experiment::Paced, direction).next();
                stream.map_or((0, 0), |stream| {
                    let of = stream.sent().saturating_sub(stream.lost());
                    (of, (stream.reordered_ratio() * of as f64).round() as u64)
                })
            }
        }
    }
}

/// The logarithm of how much likelier one share of both is than that the first has [`PART_RATIO`] of the other's, each with the share
/// that fits best: counts of independent events (Poisson).
fn likelihood(here: Counted, there: Counted) -> f64 {
    let (n_here, n_there) = (here.0 as f64, there.0 as f64);
    let hits = (here.1 + there.1) as f64;
    let exposed = (n_there + PART_RATIO * n_here) / (n_there + n_here);
    hits * exposed.ln() - here.1 as f64 * PART_RATIO.ln()
}

/// By the queue beside a load: of the host's own load where it was as fast, or of the other's load that passed the host.
fn queue(host: &Host<'_>, with: &Host<'_>, finding: &Finding) -> Option<f64> {
    let direction = direction(finding)?;
    let there = increase_s(with, direction)?;
    if let Some(beside) = beside_s(host, with, direction) {
        return Some(of_times(beside, there));
    }
    let weight = of_times(increase_s(host, direction)?, there);
    let (here_bps, there_bps) = (host.bps(direction)?, with.bps(direction)?);
    let reached = here_bps >= SAME_RATE_RATIO * there_bps;
    (reached || weight > 0.0).then_some(weight)
}

/// The 95th percentile of how much longer round trips took beside a load, in seconds.
fn increase_s(host: &Host<'_>, direction: Direction) -> Option<f64> {
    let mut all = host.runs.iter();
    all.find_map(|run| {
        let loaded = Case::of(run).loaded(direction)?;
        loaded.shows_queue().then_some(loaded.result.increase_s.p95)
    })
}

/// The same to a host that was probed while another was loaded.
fn beside_s(host: &Host<'_>, loaded: &Host<'_>, direction: Direction) -> Option<f64> {
    let address = host.address?.to_string();
    let mut all = loaded.runs.iter();
    all.find_map(|run| {
        let path = Case::of(run).loaded(direction)?.result.path.as_ref()?;
        let mut places = path.places.iter();
        let place = places.find(|place| place.address == address)?;
        (place.increase_s.count >= ENOUGH).then_some(place.increase_s.p95)
    })
}
