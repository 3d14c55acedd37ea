//! What the lines of a path could carry if nobody else used them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::protocol::Protocol;

/// Rate, latency and queueing of each line of a path, and what trains of packets say of its narrowest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityResult {
    /// Address probed.
    pub address: String,
    /// What the probes of hops were made of; absent where hops were not looked at.
    pub protocol: Option<Protocol>,
    /// Every hop with the line before it; the last is the far end where it answered.
    pub hops: Vec<CapacityHop>,
    /// Whether the far end answered the probes of hops.
    pub reached: bool,
    /// The hop behind the slowest line whose rate is measured.
    pub narrowest_ttl: Option<u8>,
    /// Trains of packets sent as fast as this host can; absent where none came through.
    pub train: Option<TrainResult>,
    /// The round trip to the far end without queueing, of packets without size.
    pub rtt_s: Option<f64>,
    /// What the path holds: the slowest measured rate times that round trip.
    pub pipe_bytes: Option<f64>,
    /// Why probing of hops ended.
    pub ended: CapacityEnd,
    /// Packets sent in all.
    pub sent: u64,
    /// Bytes of IP packets sent in all.
    pub sent_bytes: u64,
}

/// Why probing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapacityEnd {
    /// Of every line it is known as well as it can be.
    Sure,
    /// Its time was up.
    Time,
    /// Its bytes were sent.
    Bytes,
    /// The user stopped it.
    Stopped,
    /// Hops were not looked at.
    NotBegun,
}

/// A hop, and the line before it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityHop {
    /// Number of the hop; 1 is the first router.
    pub ttl: u8,
    /// Who answered; absent where nobody did.
    pub address: Option<String>,
    /// Probes sent.
    pub sent: u64,
    /// Probes answered.
    pub received: u64,
    /// The largest probe, whole IP packet.
    pub largest_bytes: Option<u32>,
    /// What came back for it, whole IP packet; absent where this host cannot see it.
    pub answer_bytes: Option<u32>,
    /// How many lines the figures are of: more than one where hops between did not answer, so that they
    /// cannot be told apart; none where there are no figures.
    pub lines: u8,
    /// What the line carries towards the hop.
    pub rate: RateEstimate,
    /// What it carries back; absent where sizes of answers do not tell.
    pub back_rate: Option<RateEstimate>,
    /// Round trip over the line without queueing, of packets without size: propagation both ways and
    /// what the router takes to answer more than the one before it. Absent with too few answers.
    pub latency_s: Option<f64>,
    /// What that may be off by, either way: 3.5 standard errors.
    pub latency_error_s: Option<f64>,
    /// Round trips to the hop above the least of their size: waiting in queues of all lines up to here,
    /// both ways, and in the router.
    pub queueing_s: Option<Distribution>,
    /// Mean waiting at this hop beyond that of the one before it; never negative.
    pub line_queueing_s: Option<f64>,
    /// What all of this rests on: round trips by size.
    pub sizes: Vec<CapacitySize>,
}

/// Round trips of probes of one size to one hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacitySize {
    /// Whole IP packet sent.
    pub size_bytes: u32,
    /// Whole IP packet that came back, as far as it is seen.
    pub answer_bytes: u32,
    /// The round trips.
    pub rtt_s: Distribution,
}

/// A rate and how well it is known. Bits of IP packets a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateEstimate {
    /// How well.
    pub status: RateStatus,
    /// The rate; only where it is measured, to within 10 %.
    pub bps: Option<f64>,
    /// It is at least this, as far as can be seen.
    pub at_least_bps: Option<f64>,
    /// It is at most this, as far as can be seen.
    pub at_most_bps: Option<f64>,
    /// Why it is not known better, or what to bear in mind.
    pub doubts: Vec<Doubt>,
}

/// How well a rate is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateStatus {
    /// To within 10 %.
    Measured,
    /// Bounds only.
    Bounded,
    /// Nothing can be said.
    #[default]
    Unknown,
}

/// Why a rate is not known better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The line takes less time than can be told apart: faster than the timing supports, or too much
    /// noise.
    Timing,
    /// Too few answers came, or only of few sizes.
    FewAnswers,
    /// The figure is of several lines one after the other.
    SeveralLines,
    /// The answers are as large as the probes: both ways are in the figure.
    BothWays,
    /// Large packets seem to get further faster: routers answer them in different ways.
    Contradiction,
    /// Packets left this host no faster.
    Sender,
    /// The stamps of many packets came at once: interrupts or frames gather them.
    Bunched,
    /// Rates of trains and of neighbouring packets differ: other traffic is on the line, or the line is
    /// shared.
    CrossTraffic,
    /// It began faster: a token bucket was spent first.
    TokenBucket,
    /// Packets of the trains were lost.
    Lost,
}

/// What trains of packets, sent as fast as this host can, say of the narrowest place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrainResult {
    /// Who stamped the arrivals.
    pub method: TrainMethod,
    /// The rate of the narrowest place of what `method` covers, by whole IP packets of that size.
    pub rate: RateEstimate,
    /// Whole IP packet, bytes.
    pub packet_bytes: u32,
    /// Packets of the longest train.
    pub longest_packets: u32,
    /// Trains sent. Those count that have the length which trains had grown to in the end, and of which
    /// enough came through for a rate.
    pub trains: u32,
    /// Packets of all trains that this host sent; one that its own queue refused is none.
    pub sent: u64,
    /// Those of them that came through while their train was waited for, each once.
    pub received: u64,
    /// How fast this host sent, the median of the trains that count.
    pub sent_bps: Option<f64>,
    /// Rates at which the trains that count arrived; behind a token bucket's burst, where there was one.
    pub train_bps: Option<Distribution>,
    /// The commonest rate at which two packets that were sent next to each other arrived next to each
    /// other, in the trains that count: the median of those in the densest range of ±10 %.
    pub pair_bps: Option<f64>,
    /// The share of such pairs, of those that did not arrive at one instant, that lies in that range.
    pub pair_ratio: Option<f64>,
    /// The trains arrived faster at first: a token bucket.
    pub burst: Option<TrainBurst>,
}

/// A token bucket as trains saw it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrainBurst {
    /// The rate at first.
    pub first_bps: f64,
    /// The rate afterwards.
    pub later_bps: f64,
    /// What passed at the first rate beyond what came in meanwhile: the bucket holds at least this.
    pub bucket_bytes: f64,
}

/// Who stamped the arrivals of trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrainMethod {
    /// A plumb responder: of the way there.
    Native,
    /// This host, by the far end's echo replies: of the narrowest of both ways.
    Echo,
}
