//! What to measure next, where signs are left that no finding accounts for: experiments whose outcome distinguishes the
//! causes that could bring them about. Cheap ones first; nothing where nothing is left to find out.

use plumb_model::context::Experiment;
use plumb_model::finding::{Finding, Place, Severity};
use plumb_model::goal::Effort;
use plumb_model::loss::at_least_ratio;
use plumb_model::results::Direction;

use crate::entry::Amount;
use crate::evidence::{Carried, RAISES, Streamed, USUAL_SEGMENT_BYTES};
use crate::signs::{
    Kind, Sign, WINDOW_RATIO, full_port_bps, is_held_by_losses, queue_stands, shortfall,
};
use crate::{Case, causes, lengths, weighing};

#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wanted {
    /// How large packets may be: small ones pass, and nothing that fills a packet arrives.
    PacketSizes,
    /// Datagrams at a rate of their own.
    Stream(Stream),
    /// One TCP connection alone, as the load's are, for so many seconds.
    SingleStream(Direction, f64),
    /// One TCP connection whose packets are well below what every path carries.
    SmallSegments(Direction),
}

/// Datagrams at equal intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// Which experiment it is.
    pub experiment: Experiment,
    pub direction: Direction,
    /// How many there are beside each other, each at the rate `pps`.
    pub flows: u32,
    pub pps: f64,
    /// UDP payload of each, in bytes.
    pub payload_bytes: u16,
}

impl Wanted {
    /// What it is to find out, in a few words.
    pub fn why(&self) -> &'static str {
        match self {
            Self::PacketSizes | Self::SmallSegments(_) => LARGE_VANISH,
            Self::Stream(stream) => match stream.experiment {
                Experiment::Paced => "whether packets are lost below the line's rate",
                Experiment::Overload => "what the line does above that rate",
                Experiment::SmallPackets => "whether packets are limited, or bits",
                Experiment::ManyFlows => "whether each flow has a limit of its own",
                Experiment::SingleStream => "what one connection carries",
                Experiment::SmallSegments => LARGE_VANISH,
            },
            Self::SingleStream(..) => "what one connection carries",
        }
    }
}

const LARGE_VANISH: &str = "whether large packets vanish";

/// Below what TCP carried: its own variation of a tenth or two stays below the line's rate.
const PACED_RATIO: f64 = 0.8;

/// Where TCP carried nothing that is known, in bit/s: less than any line that is worth a check.
const UNKNOWN_BPS: f64 = 100e3;

/// How long the queue takes to empty that an experiment filled, in seconds: what is sent into it next would wait there.
pub fn left_in_queue_s(case: &Case<'_>, made: &Wanted) -> f64 {
    match made {
        Wanted::Stream(stream) if stream.experiment == Experiment::Overload => {
            let last = case.streamed(stream.experiment, stream.direction).last();
            last.map_or(0.0, |last| match last.has_own_delays() {
                true => last.longest_wait_s(),
                // What did not arrive may wait yet.
                false => last.lost() as f64 * last.packet_s().unwrap_or(0.0),
            })
        }
        _ => 0.0,
    }
}

/// Where one of four times TCP's rate waited in a queue that TCP does not fill, and was cut as well, a line with a queue is in front of
/// what cuts: so much above what arrived, the line may carry it, and more is lost than of what counts as carried (a fifth).
const JUST_ABOVE_RATIO: f64 = 1.3;

/// Above what the line carries by its headers and TCP's reserve, so that a queue of 600 ms fills in 1.5 s.
const OVERLOAD_RATIO: f64 = 1.4;

/// Where that neither lost nor queued anything, the line carries more.
const NEXT_RATIO: f64 = 4.0;

/// The same where TCP sent so much again, as a share, that its windows fell to twelve segments (√(1.5 / 1 %)).
const FAR_RATIO: f64 = 8.0;
const MUCH_RATIO: f64 = 0.01;

/// Where TCP's packets wait less, in seconds, no managed queue holds them: CoDel leaves 5 ms, and PIE 15 ms.
const HARDLY_S: f64 = 0.002;

/// UDP payload that fits the tunnels of the Internet (1400 bytes), and the least that is worth a packet.
const PAYLOAD_BYTES: (u64, u64) = (64, 1400);

/// IP and UDP headers are 28 bytes, IP and TCP headers with timestamps 52: a datagram of a segment's payload and that
/// much more is as long.
const HEADERS_LESS_BYTES: u64 = 12;

/// Share of segments retransmitted in vain from which on it is asked why: what a rare delay longer than a timeout repeats is less.
const IN_VAIN_RATIO: f64 = 0.005;

/// So many times the packets a second that TCP carried: a box that takes no more of them loses half, which no chance does.
const SMALL_TIMES: f64 = 2.0;

/// Several flows are offered so many times together what one of them reached; each for itself stays at half of that.
const FLOWS_TIMES: f64 = 2.0;
const FLOWS: u32 = 4;

/// UDP payload of small packets, in bytes: what a call's packets have, about.
const SMALL_BYTES: u16 = 64;

/// Headers of IPv6 and UDP, in bytes.
const UDP_HEADERS_BYTES: u64 = 48;

/// Small packets have at most this share of the bits that TCP carried: they fit a line of bits many times.
const SMALL_BITS_RATIO: f64 = 0.25;

/// Shares of what each direction carries alone, of both at once: two less what acknowledgements take, which is a tenth on a line
/// that is ten times as fast in one direction as in the other, and less on others; TCP's own variation takes as much.
const TOGETHER_RATIO: f64 = 1.7;

/// A full queue makes TCP retransmit by its drops, and the smaller the windows, the more (Mathis et al., 1997). From this share on
/// they may hide what the path loses: half of the 1 % that a call may lose (outcomes.rs).
const HIDES_RATIO: f64 = 0.005;

/// One connection that carries less than this share of what several do is worth asking why.
const SINGLE_RATIO: f64 = 0.6;

/// Seconds that a single stream lasts beyond what its rate needs to show: connections begin within them.
const SINGLE_BEYOND_S: f64 = 0.2;

/// A loss of datagrams below TCP's rate from this share on is a limit rather than chance: TCP would hardly carry anything
/// with it (Mathis et al., 1997).
const CUT_RATIO: f64 = 0.1;

/// And TCP sends at most this share of that again.
const TCP_RATIO: f64 = 0.25;

/// The most that is sent: what one thread sends packet by packet with time to spare, in packets a second.
const MOST_PPS: f64 = 100_000.0;

/// Where full packets would be fewer, smaller ones go: 200 in 2 s show a loss of 2 %. Below the other, the least
/// packets are too few.
const ENOUGH_PPS: f64 = 100.0;
const LEAST_PPS: f64 = 30.0;

/// What to measure next with a far end that takes datagrams, or takes none.
pub fn wanted(case: &Case<'_>, datagrams: bool) -> Option<Wanted> {
    let line_of = |direction| Line::of(case, direction, datagrams);
    let findings = weighing::found(case);
    let carries_nothing = |finding: &&Finding| causes::entry(finding.cause).asks_packet_sizes;
    if let Some(nothing) = findings.iter().find(carries_nothing) {
        // Where small packets do not pass either, no size does.
        let small_pass = nothing.place != Place::Path;
        // A search that was stopped has not shown it.
        let searched = case.sizes().any(|sizes| !sizes.result.partial);
        if small_pass && !searched {
            return Some(Wanted::PacketSizes);
        }
        // The search may have seen one direction, and the load shows both.
        let direction = match nothing.place {
            Place::Uplink => Direction::Up,
            Place::Downlink => Direction::Down,
            _ => return None,
        };
        let first = case.attempts(Experiment::SmallSegments, direction) == 0;
        return first.then_some(Wanted::SmallSegments(direction));
    }
    let directions = [Direction::Up, Direction::Down].into_iter();
    let is_in_doubt = |d: &Direction| is_in_doubt(&findings, *d) || repeats_in_vain(case, *d);
    let doubted: Vec<Direction> = directions.filter(is_in_doubt).collect();
    let left = left(case, findings);
    let thorough = case.asked.map(|asked| asked.effort) == Some(Effort::Thorough);
    let unexplained = |direction| left.iter().any(|sign| asks(sign, direction));
    // What is unexplained comes first, and what lost more, for time may be short. On a long path few losses hold TCP back, and its
    // rate goes up and down with them.
    let mut ordered = [Direction::Up, Direction::Down];
    let again = |direction| sent_again(case, direction).unwrap_or(0.0);
    ordered.sort_by(|a, b| again(*b).total_cmp(&again(*a)));
    let is_unsteady = |sign: &Sign, d| sign.kind == Kind::Unsteady && sign.direction == Some(d);
    let held = |d| {
        let unsteady = left.iter().any(|sign| is_unsteady(sign, d));
        unsteady && case.full_load(d).is_some_and(is_held_by_losses)
    };
    ordered.sort_by_key(|direction| (!unexplained(*direction), !held(*direction)));
    let directions = || ordered.into_iter();
    let streams = |direction: Direction| {
        let unexplained = unexplained(direction);
        let line = line_of(direction);
        let is_cut = line.is_cut(case);
        let open = shows_no_limit(case, direction);
        let hidden = hides_loss(case, direction).is_some();
        let doubted = doubted.contains(&direction);
        if !(unexplained || thorough || is_cut || open || hidden || doubted) {
            return None;
        }
        let below = || line.paced(case).filter(|_| unexplained || hidden || !open);
        let above = || {
            line.overload(case)
                .filter(|_| unexplained || is_cut || open)
        };
        // Where TCP's packets wait, what it loses may be what a full line takes, and that it is full shows above its rate. Where
        // they do not wait at all, what is above its rate may pass, and shows the same as what is below it.
        let carried = case.full_load(direction);
        // How full a queue they leave is unknown where the far end does not report delays.
        let fills = carried.is_some_and(queue_stands) && unexplained && case.far.is_some();
        let above_first = fills || waits_little(carried);
        let stream = match above_first {
            true => above().or_else(below),
            false => below().or_else(above),
        };
        stream.map(Wanted::Stream)
    };
    // What limits packets or flows shows beside what datagrams of full size did.
    let of_flows = |direction: Direction, all: bool| {
        let line = line_of(direction);
        let many = || line.many(case).map(Wanted::Stream);
        line.single(case, all).or_else(many)
    };
    let further = |direction: Direction| {
        let small = || line_of(direction).small(case, thorough);
        of_flows(direction, thorough).or_else(|| small().map(Wanted::Stream))
    };
    // Apparent cuts are tested first, for time may be short. Where datagrams of one flow had far less than several
    // connections, a single connection distinguishes a limit of flows from a limit of datagrams.
    let is_apart = |direction: Direction| case.cut_flow(direction).is_some();
    let mut cut = directions().filter(|d| line_of(*d).is_cut(case) || is_apart(*d));
    let cut = cut.find_map(|direction| {
        let single = line_of(direction).single(case, false);
        let single = single.filter(|_| is_apart(direction));
        single
            .or_else(|| streams(direction))
            .or_else(|| further(direction))
    });
    let acknowledgements = || {
        let mut lost = directions().filter(|direction| takes_acknowledgements(&left, *direction));
        lost.find_map(|direction| line_of(direction).small(case, true))
    };
    // A limit of UDP, or of each flow, leaves TCP no sign.
    let first = || {
        let mut lines = directions().map(line_of);
        let stream = lines.find_map(|line| line.first(case));
        stream.filter(|_| !hurries(case)).map(Wanted::Stream)
    };
    let in_question = || directions().filter(|direction| unexplained(*direction));
    let datagrams_of = |direction| {
        let below = case.attempts(Experiment::Paced, direction);
        below > 0 && case.attempts(Experiment::Overload, direction) > 0
    };
    // They are asked for where they can be compared with datagrams of full size, and else when those had their turn. A box that
    // acknowledgements fill is filled by segments as well.
    let loses_beside = |direction| {
        let loaded = case.loaded(direction);
        loaded.is_some_and(|loaded| loaded.probes().1 > 0) || meets(case, direction)
    };
    let comparable = acknowledgements()
        .filter(|small| datagrams_of(small.direction) && loses_beside(small.direction));
    cut.or_else(|| comparable.map(Wanted::Stream))
        .or_else(|| in_question().find_map(|d| streams(d).or_else(|| of_flows(d, false))))
        .or_else(|| acknowledgements().map(Wanted::Stream))
        .or_else(|| in_question().find_map(further))
        .or_else(|| directions().find_map(streams))
        .or_else(first)
        .or_else(|| directions().find_map(further))
}

/// The signs that no finding accounts for. A share of lost packets says little of why they are: it is asked for all the same.
fn left(case: &Case<'_>, findings: Vec<Finding>) -> Vec<Sign> {
    let known = findings
        .into_iter()
        .filter(|finding| causes::entry(finding.cause).amount != Amount::Losses);
    causes::left(case, &known.collect::<Vec<_>>())
}

/// Whether no sign is left that experiments are asked for because of, what ended each direction's load is known as far as
/// datagrams can show it, and no flow of them was given less than several connections.
pub fn is_settled(case: &Case<'_>, datagrams: bool) -> bool {
    let left = left(case, weighing::found(case));
    let asks_above =
        |d| shows_no_limit(case, d) && Line::of(case, d, datagrams).overload(case).is_some();
    let asks_single = |d| Line::of(case, d, datagrams).single(case, false).is_some();
    let asks_below =
        |d| hides_loss(case, d).is_some() && Line::of(case, d, datagrams).paced(case).is_some();
    let asks_more = |d| asks_above(d) || asks_below(d) || asks_single(d);
    let mut directions = [Direction::Up, Direction::Down].into_iter();
    directions.all(|d| !left.iter().any(|sign| asks(sign, d)) && !asks_more(d))
}

/// Whether both directions at once say as much as an experiment: small packets where nothing was cut without waiting in a queue, and
/// no probe was lost beside a load.
pub fn may_wait(case: &Case<'_>, wanted: &Wanted) -> bool {
    let is_small =
        matches!(wanted, Wanted::Stream(stream) if stream.experiment == Experiment::SmallPackets);
    let left = left(case, weighing::found(case));
    let directions = [Direction::Up, Direction::Down];
    let asks = |direction: &Direction| {
        let mut above = case.streamed(Experiment::Overload, *direction);
        above.any(|above| above.is_cut() && !above.is_queued())
            || Line::of(case, *direction, true).is_cut(case)
            || takes_acknowledgements(&left, *direction)
    };
    is_small && !directions.iter().any(asks)
}

/// Whether both directions at once carried clearly less than each alone: their acknowledgements are a few percent of what a line
/// carries, and may be half of the packets that a box does.
fn carries_less_together(case: &Case<'_>) -> bool {
    let share = |direction: Direction| {
        let alone = case.full_load(direction)?.bps();
        let mut together = case.carried(Direction::Both);
        let carried = together.find(|carried| carried.result.direction == direction)?;
        Some(carried.bps() / alone)
    };
    let shares = share(Direction::Up).zip(share(Direction::Down));
    shares.is_some_and(|(up, down)| up + down < TOGETHER_RATIO)
}

/// Share of the segments of a load that TCP retransmitted.
fn sent_again(case: &Case<'_>, direction: Direction) -> Option<f64> {
    Some(case.full_load(direction)?.segments()?.ratio())
}

/// Whether nothing is known to have ended a direction's load: it neither filled a queue nor a port of a common speed, no end held
/// it back, and datagrams did not show what the line carries, which may be more.
pub(crate) fn shows_no_limit(case: &Case<'_>, direction: Direction) -> bool {
    case.full_load(direction).is_some_and(|carried| {
        let limited = &carried.result.tcp.limited;
        let by_ends = limited.rwnd_ratio + limited.sndbuf_ratio + limited.app_ratio;
        !queue_stands(carried)
            && by_ends < WINDOW_RATIO
            && case.line_bps(direction).is_none()
            && full_port_bps(carried).is_none()
    })
}

/// Whether there is no time for what may be left out.
fn hurries(case: &Case<'_>) -> bool {
    let effort = case.asked.map(|asked| asked.effort);
    matches!(effort, None | Some(Effort::Quick))
}

/// Share of segments that TCP retransmitted where no slower datagrams were counted, so that the number lost on the path
/// is unknown; `None` where it is too small to hide anything, and in a hurry, which clears nothing.
pub(crate) fn hides_loss(case: &Case<'_>, direction: Direction) -> Option<f64> {
    let (counted, _) = case.counted_with_room(direction);
    let again = sent_again(case, direction).filter(|again| *again >= HIDES_RATIO);
    again.filter(|_| counted == 0 && !hurries(case))
}

/// Whether hardly any packet of a load waited: not even a managed queue held them.
fn waits_little(carried: Option<Carried<'_>>) -> bool {
    let waits = carried.and_then(Carried::queue_s);
    waits.is_some_and(|waits| waits.p50 < HARDLY_S)
}

/// Whether probes are lost beside a load whose acknowledgements go in this direction: small packets, and many a second.
fn takes_acknowledgements(left: &[Sign], direction: Direction) -> bool {
    let load = match direction {
        Direction::Up => Direction::Down,
        _ => Direction::Up,
    };
    let is_it = |sign: &Sign| {
        sign.kind == Kind::ProbesLost
            && sign.severity > Severity::Info
            && sign.direction == Some(load)
    };
    left.iter().any(is_it)
}

/// Whether probes are lost several times as often as the segments of the load beside them, whose acknowledgements go in this
/// direction: small packets may be lost where they meet large ones.
fn meets(case: &Case<'_>, direction: Direction) -> bool {
    let load = match direction {
        Direction::Up => Direction::Down,
        _ => Direction::Up,
    };
    let probes = case.loaded(load).map(|loaded| loaded.probes());
    let least = probes.map_or(0.0, |(sent, lost)| at_least_ratio(sent, lost));
    sent_again(case, load).is_some_and(|again| again <= TCP_RATIO * least)
}

/// Whether so many segments are retransmitted that had arrived that packets may overtake each other.
fn repeats_in_vain(case: &Case<'_>, direction: Direction) -> bool {
    let carried = case.full_load(direction);
    let spurious = carried.and_then(Carried::spurious_ratio);
    spurious.is_some_and(|spurious| spurious >= IN_VAIN_RATIO)
}

/// Whether what was found in a direction may be of our own load or of others': below its rate it shows whose queue it is.
fn is_in_doubt(findings: &[Finding], direction: Direction) -> bool {
    let line = Place::line(direction);
    findings
        .iter()
        .any(|finding| causes::entry(finding.cause).asks_below_rate && finding.place == line)
}

/// Whether a sign is one that datagrams say more of. One of the idle path may come of either direction.
pub(crate) fn asks(sign: &Sign, direction: Direction) -> bool {
    let here = [None, Some(direction), Some(Direction::Both)].contains(&sign.direction);
    here && match sign.kind {
        Kind::Retransmissions | Kind::Stall | Kind::Unsteady | Kind::Collapse | Kind::Shortfall => {
            true
        }
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
    /// Whether datagrams can be sent and counted.
    datagrams: bool,
}

impl Line {
    fn of(case: &Case<'_>, direction: Direction, datagrams: bool) -> Self {
        let carried = case.carried_alone(direction);
        Self {
            direction,
            datagrams,
            carried_bps: carried.map(Carried::bps).filter(|bps| *bps > 0.0),
            segment_bytes: carried
                .map(|carried| carried.result.tcp.mss_bytes)
                .filter(|bytes| *bytes > 0)
                .unwrap_or(USUAL_SEGMENT_BYTES),
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

    /// One below TCP's rate, where no datagrams were sent yet.
    fn first(&self, case: &Case<'_>) -> Option<Stream> {
        let overloads = case.attempts(Experiment::Overload, self.direction);
        self.paced(case)
            .filter(|_| overloads == 0 && self.carried_bps.is_some())
    }

    fn overload(&self, case: &Case<'_>) -> Option<Stream> {
        let attempts = case.attempts(Experiment::Overload, self.direction);
        let tried: Vec<Streamed<'_>> = case
            .streamed(Experiment::Overload, self.direction)
            .collect();
        // TCP that loses so much, or whose packets do not wait, may carry a small part of the line.
        let loses = sent_again(case, self.direction).is_some_and(|again| again >= MUCH_RATIO);
        let waits_little = waits_little(case.full_load(self.direction));
        let exceeds_two = |last: &&Streamed<'_>| {
            waits_little && last.is_cut() && last.is_queued() && attempts < RAISES
        };
        if let Some(last) = tried.last().filter(exceeds_two)
            && let bps = JUST_ABOVE_RATIO * last.delivered_bps()?
            && OVERLOAD_RATIO * bps <= last.offered_bps()
        {
            return self.stream(Experiment::Overload, bps);
        }
        let (below_bps, times) = match tried.last() {
            None if attempts == 0 => {
                let times = match waits_little {
                    true => NEXT_RATIO,
                    false => OVERLOAD_RATIO,
                };
                (self.carried_bps?, times)
            }
            // One that left packets out may have exceeded the line at moments only.
            Some(last)
                if (tried.len()..RAISES).contains(&attempts)
                    && (last.is_carried() || last.has_gaps() && !last.is_cut()) =>
            {
                let times = match loses || waits_little {
                    true => FAR_RATIO,
                    false => NEXT_RATIO,
                };
                (last.offered_bps(), times)
            }
            _ => return None,
        };
        let bps = (times * below_bps).min(self.most_bps());
        // The most that can be sent is no raise where TCP or datagrams carried about as much.
        let raised = bps >= OVERLOAD_RATIO * below_bps;
        self.stream(Experiment::Overload, bps).filter(|_| raised)
    }

    /// Whether something was seen that limits datagrams, flows or packets to less than TCP's streams carried together, and that
    /// datagrams above their rate would confirm.
    fn is_cut(&self, case: &Case<'_>) -> bool {
        let below = case.streamed(Experiment::Paced, self.direction).next();
        let small = case
            .streamed(Experiment::SmallPackets, self.direction)
            .next();
        let segments = case.full_load(self.direction).and_then(Carried::segments);
        let again = segments.map_or(0.0, |segments| segments.ratio());
        let least = |stream: Streamed<'_>| stream.loss_bounds().0;
        // What is lost at random TCP sends again as well.
        let is_limit = |least: f64| least >= CUT_RATIO && again <= TCP_RATIO * least;
        let lost = below.is_some_and(|below| is_limit(least(below)))
            || small.is_some_and(|small| least(small) >= CUT_RATIO);
        let single = case.single_stream(self.direction);
        let slow = single
            .zip(self.carried_bps)
            .is_some_and(|(single, bps)| single.bps() < SINGLE_RATIO * bps);
        slow || lost
    }

    /// Several flows, where one was cut to a rate and no queue filled: that may be the rate of each, unless small packets showed
    /// a limit of packets.
    fn many(&self, case: &Case<'_>) -> Option<Stream> {
        let last = case.streamed(Experiment::Overload, self.direction).last()?;
        let mut small = case.streamed(Experiment::SmallPackets, self.direction);
        let of_packets = small.any(Streamed::is_cut);
        let is_unqueued = last.has_own_delays() && !last.is_queued();
        let asks = last.is_cut() && is_unqueued && !last.is_busy() && !of_packets;
        let first = case.attempts(Experiment::ManyFlows, self.direction) == 0;
        let bps = last.delivered_bps().filter(|_| asks && first)?;
        let one = self.stream(Experiment::ManyFlows, FLOWS_TIMES * bps / f64::from(FLOWS))?;
        Some(Stream {
            flows: FLOWS,
            ..one
        })
    }

    /// Whether a connection alone is given as much as several, where datagrams of one flow were not, or TCP lost much and fell far
    /// short of them, or all is asked.
    fn single(&self, case: &Case<'_>, all: bool) -> Option<Wanted> {
        let together = case.full_load(self.direction)?;
        let loses = sent_again(case, self.direction).is_some_and(|again| again >= MUCH_RATIO);
        let short = loses && shortfall(case, self.direction, together).is_some();
        let asks = all || short || case.cut_flow(self.direction).is_some();
        let first = case.attempts(Experiment::SingleStream, self.direction) == 0;
        let seconds = lengths::steady_s(together.result.tcp.min_rtt_s.unwrap_or(0.0));
        (asks && first && together.streams() > 1.0).then_some(Wanted::SingleStream(
            self.direction,
            seconds + SINGLE_BEYOND_S,
        ))
    }

    /// Small packets, where datagrams of full size showed a limit that may be one of packets, or all is asked.
    fn small(&self, case: &Case<'_>, all: bool) -> Option<Stream> {
        let asks = all || case.line_bps(self.direction).is_some() || carries_less_together(case);
        let first = case.attempts(Experiment::SmallPackets, self.direction) == 0;
        let asks = asks && self.datagrams;
        let bps = self.carried_bps.filter(|_| asks && first)?;
        let full = (self.segment_bytes + HEADERS_LESS_BYTES + UDP_HEADERS_BYTES) as f64;
        let small = (u64::from(SMALL_BYTES) + UDP_HEADERS_BYTES) as f64;
        let pps = SMALL_TIMES * bps / (self.segment_bytes.max(1) as f64 * 8.0);
        let few_bits = SMALL_TIMES * small <= SMALL_BITS_RATIO * full;
        (few_bits && (LEAST_PPS..=MOST_PPS).contains(&pps)).then_some(Stream {
            experiment: Experiment::SmallPackets,
            direction: self.direction,
            flows: 1,
            pps,
            payload_bytes: SMALL_BYTES,
        })
    }

    /// The most that a host is asked to send, in bit/s.
    fn most_bps(&self) -> f64 {
        // Rounding would make it a packet more.
        0.999 * MOST_PPS * self.full_bytes() as f64 * 8.0
    }

    /// UDP payload of a datagram as long as TCP's segments, as far as tunnels take it.
    fn full_bytes(&self) -> u64 {
        let (least, most) = PAYLOAD_BYTES;
        (self.segment_bytes + HEADERS_LESS_BYTES).clamp(least, most)
    }

    /// So many datagrams as carry that, where a host can send them and they are enough to count.
    fn stream(&self, experiment: Experiment, bps: f64) -> Option<Stream> {
        let (least, _) = PAYLOAD_BYTES;
        let payload = ((bps / 8.0 / ENOUGH_PPS) as u64).clamp(least, self.full_bytes());
        let pps = bps / (payload as f64 * 8.0);
        let can = self.datagrams && (LEAST_PPS..=MOST_PPS).contains(&pps);
        can.then_some(Stream {
            experiment,
            direction: self.direction,
            flows: 1,
            pps,
            payload_bytes: payload as u16,
        })
    }
}

#[cfg(test)]
pub(crate) mod tests;
