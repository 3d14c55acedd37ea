//! What became of the datagrams of an experiment.

use plumb_model::context::Experiment;
use plumb_model::distribution::Distribution;
use plumb_model::loss::{at_least_ratio, at_most_ratio};
use plumb_model::results::udp::{EcnCounts, UdpReceiver, UdpResult};
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::Measurement;

use super::Carried;
use super::LEAST_TIMES;
use crate::loss::LOSS_WARNING;
use crate::{Case, reading};

/// Fewer packets than this say nothing of a share.
const ENOUGH_PACKETS: u64 = 50;

/// A loss of more than this, as a share, or a queue of this many packets, is the line's limit: of 1.4 times its rate it
/// loses 29 %.
const LIMIT_LOSS_RATIO: f64 = 0.2;
const LIMIT_QUEUE_PACKETS: f64 = 10.0;

/// A tenth of what was offered is more than lines lose that are not full.
pub(crate) const CUT_RATIO: f64 = 0.1;

/// What is offered below this share of what a line was seen to carry leaves it room.
const ROOM_RATIO: f64 = 0.8;

/// A quarter of the packets wait less than this share of what nearly all wait at most. A FIFO that is full holds them up alike,
/// but for one packet: it must hold several for that.
const SPREAD_RATIO: f64 = 0.85;
const SPREAD_PACKETS: f64 = 7.0;

/// An end that uses so much of one processor may be what loses packets: a thread sends or receives each stream.
const BUSY_RATIO: f64 = 0.8;

/// Datagrams of one flow that carry less than this share of what TCP's streams carried together are held to something else
/// than the line's rate, of which TCP leaves a tenth to its headers and reserve.
const APART_RATIO: f64 = 0.75;

/// Several flows that are offered twice what one of them reached carry so many times as much at least, where each has a
/// limit of its own: a common one leaves them what one had.
pub(crate) const FLOWS_TIMES: f64 = 1.5;

/// So often the rate is raised: to 90 times what TCP carried, and to 700 times where TCP lost much; a line with more than that is
/// another one than TCP saw.
pub(crate) const RAISES: usize = 4;

/// Share of its packets that a sender may leave out: a rate that follows from the others is as much too low at the most.
const GAPS_RATIO: f64 = 0.05;

/// Datagrams at equal intervals, as many as were to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Streamed<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a UdpResult,
    receiver: &'a UdpReceiver,
    /// How much later than the fastest packet they came; what probes beside them waited, where its receiver does not say.
    waits_s: Option<Distribution>,
    sent: u64,
}

impl Streamed<'_> {
    pub(crate) fn sent(self) -> u64 {
        self.sent
    }

    /// Datagrams that came with a wrong checksum, and count as lost.
    pub(crate) fn corrupted(self) -> u64 {
        self.receiver.corrupted
    }

    /// With which ECN field they arrived.
    pub(crate) fn ecn(self) -> EcnCounts {
        self.receiver.ecn
    }

    /// Datagrams that the path lost.
    pub(crate) fn lost(self) -> u64 {
        self.receiver
            .lost_on_path
            .unwrap_or(self.receiver.lost)
            .min(self.sent)
    }

    /// Share of the packets that the path lost.
    pub(crate) fn lost_ratio(self) -> f64 {
        self.lost() as f64 / self.sent as f64
    }

    /// The least and the most of all packets that it may lose, with 97.5 % each.
    pub(crate) fn loss_bounds(self) -> (f64, f64) {
        let (sent, lost) = (self.sent, self.lost());
        (at_least_ratio(sent, lost), at_most_ratio(sent, lost))
    }

    /// Whether it loses more often than another one, beyond chance: how often is what a radio and a bad line keep, whatever
    /// the rate, and not a queue that the faster of the two fills.
    fn loses_more_often_than(self, other: Self) -> bool {
        let [(times, sent), (others_times, others_sent)] = [self, other].map(|stream| {
            let pattern = &stream.receiver.losses;
            let times = match pattern.periods {
                // Only how many is known.
                0 => stream.lost(),
                periods => periods.min(stream.lost()),
            };
            (times, stream.sent)
        });
        at_least_ratio(sent, times) > at_most_ratio(others_sent, others_times)
    }

    /// Packets lost one after the other, in the mean.
    pub(crate) fn burst_packets(self) -> Option<f64> {
        Some(self.receiver.losses.period_length?.mean)
    }

    /// What was offered, in bit/s of payload: a busy host leaves out some of what it was to send.
    pub(crate) fn offered_bps(self) -> f64 {
        let bits = self.sent as f64 * f64::from(self.result.payload_bytes) * 8.0;
        bits / self.measurement.duration_s.max(f64::MIN_POSITIVE)
    }

    /// Whether the sender left out so many packets that the line was not full all the time, and carries more than what arrived.
    pub(crate) fn has_gaps(self) -> bool {
        let missed = self
            .result
            .sender
            .as_ref()
            .map_or(0, |sender| sender.missed);
        missed as f64 > GAPS_RATIO * self.sent as f64
    }

    /// What arrived, in bit/s of payload.
    pub(crate) fn delivered_bps(self) -> Option<f64> {
        self.result.bps
    }

    /// Whether it is known how late packets came, by the receiver or by probes beside them.
    pub(crate) fn has_delays(self) -> bool {
        self.waits_s.is_some()
    }

    /// Whether the receiver says so: an iperf3 server does not. A queue for each flow keeps probes apart from the packets.
    pub(crate) fn has_own_delays(self) -> bool {
        self.receiver.pdv_s.is_some()
    }

    /// How much later than the fastest packet nearly all came, in seconds; of probes the middle one, for some are late on the idle
    /// path as well.
    pub(crate) fn queue_s(self) -> f64 {
        let has_own = self.has_own_delays();
        self.waits_s.map_or(0.0, |waits| match has_own {
            true => waits.p95,
            false => waits.p50,
        })
    }

    /// Where that wait is in its result.
    pub(crate) fn queue_field(self) -> &'static str {
        match self.has_own_delays() {
            true => "receiver.pdv_s.p95",
            false => "probe_wait_s.p50",
        }
    }

    /// Where the wait of the middle packet is in its result.
    pub(crate) fn wait_field(self) -> &'static str {
        match self.has_own_delays() {
            true => "receiver.pdv_s.p50",
            false => "probe_wait_s.p50",
        }
    }

    /// How much later than the fastest packet the middle one came, in seconds: what a full queue makes most packets
    /// wait, whatever holds up a few at this host.
    pub(crate) fn wait_s(self) -> f64 {
        self.waits_s.map_or(0.0, |pdv| pdv.p50)
    }

    /// How much later than the fastest packet a quarter came at most, in seconds.
    pub(crate) fn least_wait_s(self) -> f64 {
        self.waits_s.map_or(0.0, |pdv| pdv.p25)
    }

    /// How much later than the fastest packet the latest one came, in seconds.
    pub(crate) fn longest_wait_s(self) -> f64 {
        self.waits_s.map_or(0.0, |pdv| pdv.max)
    }

    /// Whether the queue of a line that was given far too much held packets up for longer and shorter times, as one that is
    /// managed does: in a full FIFO nearly all wait for as long as the last.
    pub(crate) fn is_managed(self) -> bool {
        let Some((pdv, packet_s)) = self.waits_s.zip(self.packet_s()) else {
            return false;
        };
        self.lost_ratio() >= LIMIT_LOSS_RATIO
            && pdv.p95 >= SPREAD_PACKETS * packet_s
            && pdv.p75 < SPREAD_RATIO * pdv.p95
    }

    /// How much longer the fastest packet took than the fastest probe of the direction, in seconds; `None` where the clocks
    /// could not be compared.
    pub(crate) fn standing_s(self) -> Option<f64> {
        self.result.standing_s
    }

    /// By how much the later half of the packets varies, in seconds: below a line's rate it is what both hosts do to
    /// them.
    pub(crate) fn noise_s(self) -> f64 {
        self.queue_s() - self.wait_s()
    }

    /// How long one packet takes at the rate that arrives, in seconds.
    pub(crate) fn packet_s(self) -> Option<f64> {
        let bps = self.delivered_bps().filter(|bps| *bps > 0.0)?;
        Some(f64::from(self.result.payload_bytes) * 8.0 / bps)
    }

    /// Datagrams offered and delivered in a second; the second is unknown where the rate is.
    pub(crate) fn packets_per_s(self) -> (f64, Option<f64>) {
        let offered = self.sent as f64 / self.measurement.duration_s.max(f64::MIN_POSITIVE);
        (offered, self.packet_s().map(|packet_s| 1.0 / packet_s))
    }

    /// UDP payload of each datagram, in bytes.
    pub(crate) fn payload_bytes(self) -> u32 {
        self.result.payload_bytes
    }

    /// The longest time in which one datagram after the other was lost, in seconds.
    pub(crate) fn longest_loss_s(self) -> f64 {
        let longest = self
            .receiver
            .losses
            .period_length
            .map_or(0.0, |run| run.max);
        longest / self.packets_per_s().0.max(f64::MIN_POSITIVE)
    }

    /// Whether an end had no processor left for more, so that what is lost may be lost there.
    pub(crate) fn is_busy(self) -> bool {
        let cpu = &self.result.cpu;
        [cpu.local_ratio, cpu.remote_ratio]
            .into_iter()
            .flatten()
            .any(|ratio| ratio >= BUSY_RATIO)
    }

    /// Share of packets that others overtook.
    pub(crate) fn reordered_ratio(self) -> f64 {
        self.receiver.reordering.reordered_ratio
    }

    /// Whether most packets waited in a long queue: the line carries less than was offered, and its queue loses them.
    pub(crate) fn is_queued(self) -> bool {
        let packets = self.packet_s().map(|packet_s| self.wait_s() / packet_s);
        packets.is_some_and(|packets| packets > LIMIT_QUEUE_PACKETS)
    }

    /// Whether less arrived than was offered, because the line's rate was lower.
    pub(crate) fn is_cut(self) -> bool {
        self.lost_ratio() >= CUT_RATIO
    }

    /// Whether it was, and no packet waited: what is above a rate is dropped at once.
    pub(crate) fn is_cut_at_once(self) -> bool {
        self.is_cut() && self.has_own_delays() && !self.is_queued()
    }

    /// Whether it all arrived and no queue grew, so that the line had room for it.
    fn is_whole(self) -> bool {
        self.is_carried() && self.lost_ratio() < LOSS_WARNING
    }

    /// Whether the line carries as much, but for what it loses at any rate.
    pub(crate) fn is_carried(self) -> bool {
        let queue_packets = self.packet_s().map(|packet_s| self.queue_s() / packet_s);
        self.lost_ratio() <= LIMIT_LOSS_RATIO
            && queue_packets.is_some_and(|packets| packets <= LIMIT_QUEUE_PACKETS)
    }
}

/// What one flow carried, and several together, in bit/s of payload.
#[derive(Clone, Copy)]
pub(crate) struct FlowLimit<'a> {
    pub(crate) one: Streamed<'a>,
    pub(crate) one_bps: f64,
    /// The first of the several.
    pub(crate) several: &'a Measurement,
    pub(crate) several_bps: f64,
}

/// Which experiment with datagrams it was, and in which direction.
pub(crate) fn streamed(measurement: &Measurement) -> Option<(Experiment, Direction)> {
    match &measurement.outcome {
        Outcome::Udp(result) => Some((reading::experiment(measurement)?, result.direction)),
        _ => None,
    }
}

impl<'a> Case<'a> {
    /// What a direction's line carries, in bit/s of payload, where datagrams above its rate showed it: the most that any of
    /// them carried, because a short queue loses more of bursts than of what hardly exceeds the rate.
    pub(crate) fn line_bps(&self, direction: Direction) -> Option<f64> {
        let streams = || self.streamed(Experiment::Overload, direction);
        let last = streams().last()?;
        // What a busy host left out is no more than TCP carried: it says nothing of what is above.
        let is_above = last.offered_bps() > self.full_load(direction).map_or(0.0, Carried::bps);
        let of_flow = self.cut_flow(direction).is_some() || self.flow_limit(direction).is_some();
        let is_line = is_above && !last.is_carried() && !of_flow;
        let most_bps = streams()
            .filter_map(Streamed::delivered_bps)
            .reduce(f64::max);
        most_bps.filter(|_| is_line)
    }

    /// The rates of two streams of datagrams that no line of one rate carries: one that was cut short, and the most that another
    /// carried whole, in bit/s of payload.
    pub(crate) fn contradicting_streams(&self, direction: Direction) -> Option<(f64, f64)> {
        let streams = || {
            let kinds = [Experiment::Paced, Experiment::Overload].into_iter();
            kinds.flat_map(|kind| self.streamed(kind, direction))
        };
        let cut = streams().filter(|stream| stream.is_cut() && !stream.is_busy());
        let low_bps = cut.filter_map(Streamed::delivered_bps).reduce(f64::min)?;
        let whole = streams().filter(|stream| stream.is_whole());
        let high_bps = whole.filter_map(Streamed::delivered_bps).reduce(f64::max)?;
        (high_bps >= LEAST_TIMES * low_bps).then_some((low_bps, high_bps))
    }

    /// Datagrams that were cut to far less than TCP's streams carried together, which is no limit of the line, and what
    /// they carried, in bit/s of payload.
    pub(crate) fn cut_flow(&self, direction: Direction) -> Option<(Streamed<'a>, f64)> {
        let carried_bps = self.full_load(direction)?.bps();
        let above = self.streamed(Experiment::Overload, direction).last();
        let below = || self.streamed(Experiment::Paced, direction).next();
        let cut = above.or_else(below).filter(|cut| !cut.is_carried())?;
        let bps = cut.delivered_bps()?;
        (bps <= APART_RATIO * carried_bps).then_some((cut, bps))
    }

    /// Datagrams of one flow that were cut short where several flows carried so much more that each has a limit of its own, and
    /// the line showed no other rate to one flow.
    pub(crate) fn flow_limit(&self, direction: Direction) -> Option<FlowLimit<'a>> {
        let one = self.streamed(Experiment::Overload, direction).last()?;
        let one_bps = one
            .delivered_bps()
            .filter(|_| one.is_cut() && !one.is_busy())?;
        let streams = || self.streamed(Experiment::ManyFlows, direction);
        let several_bps = streams().filter_map(Streamed::delivered_bps).sum();
        let varies = self.contradicting_streams(direction).is_some();
        // A limit takes nothing of what is well below it; a short queue takes the more, the faster packets follow each other.
        let creeps = self.loses_below(direction, one_bps);
        (several_bps >= FLOWS_TIMES * one_bps && !varies && !creeps).then_some(FlowLimit {
            one,
            one_bps,
            several: streams().next()?.measurement,
            several_bps,
        })
    }

    /// Whether datagrams well below a rate were lost, and more often than slower ones.
    pub(crate) fn loses_below(&self, direction: Direction, bps: f64) -> bool {
        let kinds = [Experiment::Paced, Experiment::Overload].into_iter();
        let streams = kinds.flat_map(|kind| self.streamed(kind, direction));
        let below: Vec<Streamed<'_>> = streams
            .filter(|stream| stream.offered_bps() <= ROOM_RATIO * bps)
            .collect();
        let mut faster = below.iter().skip(1);
        below.first().is_some_and(|first| {
            faster.any(|faster| faster.loss_bounds().0 > first.loss_bounds().1)
        })
    }

    /// Streams in a direction while the line had room: that at 80 % of what TCP carried first, and those that a faster one
    /// showed to be below the line's rate and that lose no more often. A line whose rate varies had room only for what is below the
    /// lowest that it was seen to carry.
    pub(crate) fn with_room(&self, direction: Direction) -> Vec<Streamed<'a>> {
        let above = || self.streamed(Experiment::Overload, direction);
        let line_bps = above().filter_map(Streamed::delivered_bps);
        let line_bps = line_bps.fold(0.0, f64::max);
        // What is lost by chance is the same share of each.
        let lowest_bps = |of: &Streamed<'_>| {
            let most = of.loss_bounds().1;
            let cut = above().filter(|above| above.is_cut() && !above.is_busy());
            let cut = cut.filter(|above| above.loss_bounds().0 > most);
            cut.filter_map(Streamed::delivered_bps).reduce(f64::min)
        };
        let was_below = |stream: &Streamed<'_>| {
            let passed = stream.loss_bounds().0 < LOSS_WARNING;
            passed || lowest_bps(stream).is_none_or(|lowest| stream.offered_bps() <= lowest)
        };
        let paced = self.streamed(Experiment::Paced, direction).next();
        let paced = paced.filter(was_below).filter(|paced| {
            // A queue that faster ones left loses packets too, and delays would show it.
            let is_first = above().all(|above| above.measurement.at_s > paced.measurement.at_s);
            is_first || paced.has_own_delays()
        });
        let has_room = |stream: &Streamed<'_>| stream.offered_bps() <= ROOM_RATIO * line_bps;
        let faster = || above().filter(has_room).filter(was_below);
        let Some(first) = paced.or_else(|| faster().next()) else {
            return Vec::new();
        };
        let faster = faster().filter(|stream| !stream.loses_more_often_than(first));
        paced.into_iter().chain(faster).collect()
    }

    /// Datagrams above the line's rate: of several those that were cut without a queue, for faster ones may fill the queue of another
    /// line besides, and else the fastest.
    pub(crate) fn above_rate(&self, direction: Direction) -> Option<Streamed<'a>> {
        let mut streams = self.streamed(Experiment::Overload, direction);
        let at_once = streams.find(|stream| stream.is_cut_at_once());
        at_once.or_else(|| self.streamed(Experiment::Overload, direction).last())
    }

    /// How many datagrams were sent while the line had room, and how many of them the path lost.
    pub(crate) fn counted_with_room(&self, direction: Direction) -> (u64, u64) {
        let streams = self.with_room(direction).into_iter();
        streams.fold((0, 0), |(sent, lost), stream| {
            (sent + stream.sent(), lost + stream.lost())
        })
    }

    /// Whether datagrams were made as fast as they are to become: the line did not carry the last of them, or they were raised
    /// as often as is worth it.
    pub(crate) fn overload_is_settled(&self, direction: Direction) -> bool {
        let last = self.streamed(Experiment::Overload, direction).last();
        last.is_some_and(|last| !last.is_carried())
            || self.attempts(Experiment::Overload, direction) >= RAISES
    }

    /// How often an experiment was made in a direction, whatever came of it.
    pub(crate) fn attempts(&self, experiment: Experiment, direction: Direction) -> usize {
        let all = self.measurements.iter();
        all.filter(|measurement| {
            let of = match &measurement.outcome {
                Outcome::Udp(result) => Some(result.direction),
                other => other.throughput().map(|carried| carried.direction),
            };
            of == Some(direction) && reading::experiment(measurement) == Some(experiment)
        })
        .count()
    }

    /// The streams of an experiment in a direction, in order, without streams of too few packets.
    pub(crate) fn streamed(
        &self,
        experiment: Experiment,
        direction: Direction,
    ) -> impl Iterator<Item = Streamed<'a>> + use<'a> {
        self.measurements.iter().filter_map(move |measurement| {
            let Outcome::Udp(result) = &measurement.outcome else {
                return None;
            };
            let is_it = streamed(measurement) == Some((experiment, direction));
            let receiver = result.receiver.as_ref()?;
            // Of a server of others it is known which numbers came.
            let known = receiver.received.saturating_add(receiver.lost);
            let sent = result.sender.as_ref().map_or(known, |sender| sender.sent);
            (is_it && sent > ENOUGH_PACKETS).then_some(Streamed {
                measurement,
                result,
                receiver,
                waits_s: receiver.pdv_s.or(result.probe_wait_s),
                sent,
            })
        })
    }
}
