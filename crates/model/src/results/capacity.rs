//! What the lines of a path could carry without other traffic.

use crate::vocabulary;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;
use crate::protocol::Protocol;

/// Rate, latency and queueing of each line of a path, and what trains of packets say of its narrowest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityResult {
    /// IP address that was probed.
    pub address: String,
    /// What the probes of hops were made of. Null where hops were not probed.
    pub protocol: Option<Protocol>,
    /// Every hop with the line before it; the last is the far end where it answered.
    pub hops: Vec<CapacityHop>,
    /// Whether the far end answered the probes of hops.
    pub reached: bool,
    /// The hop behind the slowest line whose rate is measured. Null where no rate is.
    pub narrowest_ttl: Option<u8>,
    /// Trains of packets sent as fast as this host can. Null where none came through.
    pub train: Option<TrainResult>,
    /// Round-trip time to the far end without queueing, of packets without size, in seconds. Null where it is unknown.
    pub rtt_s: Option<f64>,
    /// Bytes that fill the path: the slowest measured rate times that round-trip time. Null where either is unknown.
    pub pipe_bytes: Option<f64>,
    /// Why probing of hops ended.
    pub ended: CapacityEnd,
    /// Packets that were sent in all.
    pub sent: u64,
    /// Bytes of IP packets sent in all.
    pub sent_bytes: u64,
}

/// Why the probing of hops ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CapacityEnd {
    /// Of every line it is known as well as it can be.
    Sure,
    /// The time for probing was over.
    Time,
    /// The bytes for probing were sent.
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
    /// Address that answered. Null without an answer.
    pub address: Option<String>,
    /// Probes that were sent to the hop.
    pub sent: u64,
    /// Probes among them that were answered.
    pub received: u64,
    /// Answers that came from other routers than at first, and were left out. 0 in Runs of versions that did not report
    /// it.
    #[serde(default)]
    pub other_routers: u64,
    /// Size of the largest probe in bytes, the whole IP packet. Null where none was sent.
    pub largest_bytes: Option<u32>,
    /// Size of its answer in bytes, the whole IP packet. Null where this host cannot see it.
    pub answer_bytes: Option<u32>,
    /// Number of lines that the figures are of: more than one where hops between did not answer, so that they cannot be
    /// separated; 0 where there are no figures.
    pub lines: u8,
    /// Rate of the line towards the hop.
    pub rate: RateEstimate,
    /// Rate of the line from the hop. Null where the sizes of answers do not show it.
    pub back_rate: Option<RateEstimate>,
    /// Round-trip time in seconds over the line without queueing, of packets without size: propagation in both
    /// directions, and the time that the router takes to answer beyond the time of the router before it. Null with too
    /// few answers.
    pub latency_s: Option<f64>,
    /// Error that the latency may have in either direction, in seconds: 3.5 standard errors. Null where there is no
    /// latency.
    pub latency_error_s: Option<f64>,
    /// Round-trip times to the hop above the least of their size, in seconds: the queues of all lines up to here, in
    /// both directions, and the router. Null with too few answers.
    pub queueing_s: Option<Distribution>,
    /// Mean queueing delay at this hop beyond the delay at the hop before it, in seconds; never negative. Null with too
    /// few answers.
    pub line_queueing_s: Option<f64>,
    /// Round trips by size, which all of this rests on.
    pub sizes: Vec<CapacitySize>,
}

/// Round trips of probes of one size to one hop.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacitySize {
    /// Size of the probes in bytes, the whole IP packet.
    pub size_bytes: u32,
    /// Size of the answers in bytes, the whole IP packet, as far as seen.
    pub answer_bytes: u32,
    /// Round-trip times of probes of this size, in seconds.
    pub rtt_s: Distribution,
}

/// A rate and how well it is known. Bits of IP packets a second.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RateEstimate {
    /// How well the rate is known.
    pub status: RateStatus,
    /// The rate in bit/s. Null unless it is measured, to within 10 %.
    pub bps: Option<f64>,
    /// Lower bound of the rate in bit/s. Null where there is none.
    pub at_least_bps: Option<f64>,
    /// Upper bound of the rate in bit/s. Null where there is none.
    pub at_most_bps: Option<f64>,
    /// Why it is not known better, or what to bear in mind.
    pub doubts: Vec<Doubt>,
}

/// How well a rate is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateStatus {
    /// Known to within 10 %.
    Measured,
    /// Only bounds are known.
    Bounded,
    /// Nothing is known of it.
    #[default]
    Unknown,
}

vocabulary! {
    /// Why a rate is not known better.
    pub enum Doubt {
        /// The line takes too little time to measure: it is faster than the timing supports, or there is too much
        /// noise.
        Timing = "timing" as "too fast to be timed",
        /// Too few answers came, or only of few sizes.
        FewAnswers = "few_answers" as "too few answers",
        /// The figure is of several lines one after the other.
        SeveralLines = "several_lines" as "several lines in one",
        /// The answers are as large as the probes: both directions are in the figure.
        BothWays = "both_ways" as "both directions in one",
        /// Large packets seem to get further faster: routers answer them in different ways.
        Contradiction = "contradiction" as "cannot tell",
        /// Packets left this host no faster.
        Sender = "sender" as "this host sends no faster",
        /// The stamps of many packets came at once: interrupts or frames gather them.
        Bunched = "bunched" as "stamps in bunches",
        /// Rates of trains and of neighbouring packets differ: other traffic is on the line, or the line is
        /// shared.
        CrossTraffic = "cross_traffic" as "other traffic",
        /// It began faster: a token bucket was spent first.
        TokenBucket = "token_bucket" as "token bucket",
        /// Packets of the trains were lost.
        Lost = "lost" as "packets lost",
    }
}

/// What trains of packets, sent as fast as this host can, say of the narrowest place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrainResult {
    /// The end that stamped the arrivals.
    pub method: TrainMethod,
    /// The rate of the narrowest place of what `method` covers, by whole IP packets of that size.
    pub rate: RateEstimate,
    /// Size of each packet in bytes, the whole IP packet.
    pub packet_bytes: u32,
    /// Packets of the longest train.
    pub longest_packets: u32,
    /// Trains sent. Those count that have the length which trains had grown to in the end, and of which
    /// enough came through for a rate.
    pub trains: u32,
    /// Packets of all trains that this host sent; one that its own queue refused is none.
    pub sent: u64,
    /// Packets among them that came through while their train was waited for, each once.
    pub received: u64,
    /// Rate in bit/s at which this host sent, the median of the trains that count. Null where none counts.
    pub sent_bps: Option<f64>,
    /// Rates in bit/s at which the trains that count arrived, behind a token bucket's burst, where there was one. Null
    /// where none counts.
    pub train_bps: Option<Distribution>,
    /// The commonest rate in bit/s at which two packets that were sent next to each other arrived next to each other,
    /// in the trains that count: the median of those in the densest range of ±10 %. Null where no pair counts.
    pub pair_bps: Option<f64>,
    /// Share of such pairs, 0 to 1, of those that did not arrive at one instant, that are in that range. Null where no
    /// pair counts.
    pub pair_ratio: Option<f64>,
    /// The token bucket that let trains arrive faster at first. Null where none was seen.
    pub burst: Option<TrainBurst>,
}

/// A token bucket as trains saw it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TrainBurst {
    /// Rate in bit/s at first.
    pub first_bps: f64,
    /// Rate in bit/s afterwards.
    pub later_bps: f64,
    /// Bytes that passed at the first rate beyond what came in meanwhile: the bucket has room for at least this.
    pub bucket_bytes: f64,
}

/// Who stamped the arrivals of trains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrainMethod {
    /// A plumb responder: of the forward path.
    Native,
    /// This host, by the far end's echo replies: of the narrowest line of both directions.
    Echo,
}
