//! What to measure next, where signs are left that no finding accounts for: experiments whose outcome tells the causes
//! apart that could bring them about. Cheap ones first; nothing where nothing is left to find out.

use plumb_model::context::Experiment;
use plumb_model::finding::{Cause, Finding, Place, Severity};
use plumb_model::results::Direction;

use crate::Case;
use crate::evidence::{Carried, RAISES, Streamed};
use crate::signs::{Kind, Sign, queue_stands};
use crate::{causes, weighing};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted {
    /// How large packets may be: small ones pass, and nothing that fills a packet arrives.
    PacketSizes,
    /// Datagrams at a rate of their own.
    Stream(Stream),
}

/// Datagrams at equal intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Which experiment it is.
    pub experiment: Experiment,
    pub direction: Direction,
    pub pps: f64,
    /// UDP payload of each, in bytes.
    pub payload_bytes: u16,
}

impl Wanted {
    /// What it is to find out, in a few words.
    pub fn why(&self) -> &'static str {
        match self {
            Self::PacketSizes => "whether large packets vanish",
            Self::Stream(stream) => match stream.experiment {
                Experiment::Paced => "whether packets are lost below the line's rate",
                Experiment::Overload => "what the line does above that rate",
            },
        }
    }
}

/// Below what TCP carried: its own variation of a tenth or two stays below the line's rate.
const PACED_RATIO: f64 = 0.8;

/// Where TCP carried nothing that is known, in bit/s: less than any line that is worth a check.
const UNKNOWN_BPS: f64 = 100e3;

/// Above what the line carries by its headers and TCP's reserve, so that a queue of 600 ms fills in 1.5 s.
const OVERLOAD_RATIO: f64 = 1.4;

/// Where that neither lost nor queued anything, the line carries more.
const NEXT_RATIO: f64 = 4.0;

/// UDP payload that fits the tunnels of the Internet (1400 bytes), and the least that is worth a packet.
const PAYLOAD_BYTES: (u64, u64) = (64, 1400);

/// IP and UDP headers are 28 bytes, those of TCP with timestamps 52: a datagram of a segment's payload and that much
/// more is as long.
const HEADERS_LESS_BYTES: u64 = 12;

/// Share of segments sent again in vain from which on it is asked why: what a rare delay longer than a timeout repeats is less.
const IN_VAIN_RATIO: f64 = 0.005;

/// The most that is sent: what one thread sends packet by packet with time to spare, in packets a second.
const MOST_PPS: f64 = 100_000.0;

/// Where full packets would be fewer, smaller ones go: 200 in 2 s show a loss of 2 %. Below the other, the least
/// packets are too few.
const ENOUGH_PPS: f64 = 100.0;
const LEAST_PPS: f64 = 30.0;

pub fn wanted(case: &Case<'_>) -> Option<Wanted> {
    let findings = weighing::found(case);
    let carries_nothing = |finding: &&Finding| finding.cause == Cause::NothingCarried;
    if let Some(nothing) = findings.iter().find(carries_nothing) {
        // Where small packets do not pass either, no size does.
        let small_pass = nothing.place != Place::Path;
        // A search that was stopped has not shown it.
        let searched = case.sizes().any(|sizes| !sizes.result.partial);
        let asks = small_pass && !searched;
        return asks.then_some(Wanted::PacketSizes);
    }
    let directions = [Direction::Up, Direction::Down].into_iter();
    let is_in_doubt = |d: &Direction| is_in_doubt(&findings, *d) || repeats_in_vain(case, *d);
    let doubted: Vec<Direction> = directions.filter(is_in_doubt).collect();
    // A share of lost packets says little of why they are: it is asked for all the same.
    let known = findings
        .into_iter()
        .filter(|finding| finding.cause != Cause::PathLoss);
    let left = causes::left(case, &known.collect::<Vec<_>>());
    let mut directions = [Direction::Up, Direction::Down].into_iter();
    directions.find_map(|direction| {
        let unexplained = left.iter().any(|sign| asks(sign, direction));
        let asking = unexplained || doubted.contains(&direction);
        let line = asking.then(|| Line::of(case, direction))?;
        let below = || line.paced(case);
        let above = || line.overload(case).filter(|_| unexplained);
        // Where TCP's packets wait, what it loses may be what a full line takes, and that it is full shows above its rate.
        let waits = case.full_load(direction).is_some_and(queue_stands);
        let stream = match waits && unexplained {
            true => above().or_else(below),
            false => below().or_else(above),
        };
        stream.map(Wanted::Stream)
    })
}

/// Whether so many segments are sent again that had arrived that packets may overtake each other.
fn repeats_in_vain(case: &Case<'_>, direction: Direction) -> bool {
    let carried = case.full_load(direction);
    let spurious = carried.and_then(Carried::spurious_ratio);
    spurious.is_some_and(|spurious| spurious >= IN_VAIN_RATIO)
}

/// Whether what was found in a direction may be of our own load or of others': below its rate it shows whose queue it is.
fn is_in_doubt(findings: &[Finding], direction: Direction) -> bool {
    let line = match direction {
        Direction::Up => Place::Uplink,
        _ => Place::Downlink,
    };
    findings.iter().any(|finding| {
        let of_queue = matches!(
            finding.cause,
            Cause::BufferbloatUp
                | Cause::BufferbloatDown
                | Cause::CrossTraffic
                | Cause::RateVaries
                | Cause::TokenBucket
        );
        of_queue && finding.place == line
    })
}

/// Whether a sign is one that datagrams say more of. One of the idle path may come of either direction.
pub(crate) fn asks(sign: &Sign, direction: Direction) -> bool {
    let here = [None, Some(direction), Some(Direction::Both)].contains(&sign.direction);
    here && match sign.kind {
        Kind::Retransmissions | Kind::Stall | Kind::Unsteady | Kind::Collapse => true,
        // One probe may be lost by chance.
        Kind::ProbesLost => sign.severity > Severity::Info,
        // Whether the line has room for what a larger window would let through.
        Kind::Window => true,
    }
}

/// What is known of a direction before its experiments.
struct Line {
    direction: Direction,
    /// What TCP carried, in bit/s of payload; nothing where it did not come about.
    carried_bps: Option<f64>,
    /// Payload of its segments, in bytes.
    segment_bytes: u64,
}

impl Line {
    fn of(case: &Case<'_>, direction: Direction) -> Self {
        let carried = case.carried_alone(direction);
        Self {
            direction,
            carried_bps: carried.map(Carried::bps).filter(|bps| *bps > 0.0),
            segment_bytes: carried.map_or(0, |carried| carried.result.tcp.mss_bytes),
        }
    }

    fn paced(&self, case: &Case<'_>) -> Option<Stream> {
        let bps = self
            .carried_bps
            .map_or(UNKNOWN_BPS, |bps| PACED_RATIO * bps);
        match case.attempts(Experiment::Paced, self.direction) {
            0 => self.stream(Experiment::Paced, bps),
            _ => None,
        }
    }

    fn overload(&self, case: &Case<'_>) -> Option<Stream> {
        let attempts = case.attempts(Experiment::Overload, self.direction);
        let tried: Vec<Streamed<'_>> = case
            .streamed(Experiment::Overload, self.direction)
            .collect();
        let bps = match tried.last() {
            None if attempts == 0 => OVERLOAD_RATIO * self.carried_bps?,
            Some(last) if (tried.len()..RAISES).contains(&attempts) && last.is_carried() => {
                NEXT_RATIO * last.offered_bps()
            }
            _ => return None,
        };
        self.stream(Experiment::Overload, bps)
    }

    /// So many datagrams as carry that, where a host can send them and they are enough to count.
    fn stream(&self, experiment: Experiment, bps: f64) -> Option<Stream> {
        let (least, most) = PAYLOAD_BYTES;
        let segment = (self.segment_bytes + HEADERS_LESS_BYTES).clamp(least, most);
        let payload = ((bps / 8.0 / ENOUGH_PPS) as u64).clamp(least, segment);
        let pps = bps / (payload as f64 * 8.0);
        (LEAST_PPS..=MOST_PPS).contains(&pps).then_some(Stream {
            experiment,
            direction: self.direction,
            pps,
            payload_bytes: payload as u16,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
