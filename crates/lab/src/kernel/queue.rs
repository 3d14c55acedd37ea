//! Where packets wait for the rate: the queue that tbf(8) has built in, another discipline in its
//! place, or tc-cake(8).

use plumb_link::limit::Limit;
use plumb_link::queue::QueueSpec;
use plumb_link::queue::cake::{AckFilter, CakeSpec, Isolation, Tins};
use plumb_link::queue::codel::CodelSpec;
use plumb_link::queue::fifo::{DropAt, FifoSpec};
use plumb_link::queue::fq_codel::FqCodelSpec;
use plumb_link::queue::pie::PieSpec;
use plumb_link::queue::red::RedSpec;
use plumb_model::units::BitRate;

use super::words::{micros, words};

/// The smallest IP packet that fills a queue in numbers, in bytes: an acknowledgement with
/// timestamps.
const SMALL_PACKET_BYTES: u64 = 52;

#[derive(Debug, Clone, PartialEq)]
pub enum Queue {
    /// In tbf's own queue.
    Own {
        /// The most that may wait.
        limit_bytes: u64,
        /// Whether that counts framing as well, as a queue in time does.
        counts_framing: bool,
    },
    /// In a discipline that takes the place of tbf's own queue.
    Leaf {
        /// Its kind and options.
        options: Vec<String>,
        /// Most packets that may wait.
        limit_packets: u64,
    },
    /// In CAKE, which takes the place of tbf too.
    Cake {
        /// Its options beside rate and framing.
        options: Vec<String>,
        /// Most packets that may wait.
        limit_packets: u64,
    },
}

impl Queue {
    /// The kernel's queue that does what `spec` does at this rate.
    pub(super) fn of(spec: &QueueSpec, rate: BitRate) -> Result<Self, String> {
        match spec {
            QueueSpec::Fifo(spec) => fifo(*spec, rate),
            QueueSpec::Codel(spec) => codel(*spec),
            QueueSpec::FqCodel(spec) => fq_codel(*spec),
            QueueSpec::Red(spec) => Ok(red(*spec, rate)),
            QueueSpec::Pie(spec) => pie(*spec),
            QueueSpec::Cake(spec) => Ok(cake(*spec, rate)),
            QueueSpec::DocsisPie(_)
            | QueueSpec::DualPi2(_)
            | QueueSpec::Priority(_)
            | QueueSpec::HostFair(_) => Err("it has no such queue".to_owned()),
        }
    }

    /// Most packets that may wait in it.
    pub(super) fn limit_packets(&self) -> u64 {
        match self {
            Self::Own { limit_bytes, .. } => limit_bytes / SMALL_PACKET_BYTES,
            Self::Leaf { limit_packets, .. } | Self::Cake { limit_packets, .. } => *limit_packets,
        }
    }

    fn leaf(limit_packets: u64, options: &str) -> Self {
        Self::Leaf {
            options: words(options),
            limit_packets,
        }
    }
}

// Each specification is taken apart whole, so that no setting is passed over.

fn fifo(spec: FifoSpec, rate: BitRate) -> Result<Queue, String> {
    let FifoSpec { limit, drop } = spec;
    match (limit, drop) {
        (Limit::Packets(packets), DropAt::Tail) => {
            Ok(Queue::leaf(packets, &format!("pfifo limit {packets}")))
        }
        (Limit::Packets(packets), DropAt::Head) => Ok(Queue::leaf(
            packets,
            &format!("pfifo_head_drop limit {packets}"),
        )),
        (limit, DropAt::Head) => Err(format!(
            "its queue of {limit} drops at the head, and the kernel's counts packets then"
        )),
        (Limit::Bytes(limit_bytes), DropAt::Tail) => Ok(Queue::Own {
            limit_bytes,
            counts_framing: false,
        }),
        (Limit::Time(time), DropAt::Tail) => Ok(Queue::Own {
            limit_bytes: (time.as_secs_f64() * rate.bps() as f64 / 8.0) as u64,
            counts_framing: true,
        }),
    }
}

fn codel(spec: CodelSpec) -> Result<Queue, String> {
    let CodelSpec {
        limit,
        target,
        interval,
        ecn,
    } = spec;
    let packets = packets(limit)?;
    let options = format!(
        "codel limit {packets} target {} interval {} {}",
        micros(target),
        micros(interval),
        switch("ecn", ecn)
    );
    Ok(Queue::leaf(packets, &options))
}

fn fq_codel(spec: FqCodelSpec) -> Result<Queue, String> {
    let FqCodelSpec {
        limit,
        memory_limit,
        flows,
        quantum,
        target,
        interval,
        ecn,
    } = spec;
    let packets = packets(limit)?;
    let options = format!(
        "fq_codel limit {packets} flows {flows} quantum {quantum} target {} interval {} memory_limit {} {}",
        micros(target),
        micros(interval),
        memory_limit.bytes(),
        switch("ecn", ecn)
    );
    Ok(Queue::leaf(packets, &options))
}

fn red(spec: RedSpec, rate: BitRate) -> Queue {
    let RedSpec {
        limit,
        min,
        max,
        probability,
        avpkt,
        burst,
        ecn,
        harddrop,
    } = spec;
    let options = format!(
        "red limit {} min {} max {} avpkt {} burst {burst} probability {} bandwidth {}bit {} {}",
        limit.bytes(),
        min.bytes(),
        max.bytes(),
        avpkt.bytes(),
        probability.value(),
        rate.bps(),
        if ecn { "ecn" } else { "" },
        if harddrop { "harddrop" } else { "" },
    );
    Queue::leaf(limit.bytes() / SMALL_PACKET_BYTES, &options)
}

fn pie(spec: PieSpec) -> Result<Queue, String> {
    let PieSpec {
        limit,
        target,
        tupdate,
        alpha,
        beta,
        ecn,
        bytemode,
    } = spec;
    let packets = packets(limit)?;
    let options = format!(
        "pie limit {packets} target {} tupdate {} alpha {} beta {} {} {}",
        micros(target),
        micros(tupdate),
        sixteenths("alpha", alpha)?,
        sixteenths("beta", beta)?,
        switch("ecn", ecn),
        switch("bytemode", bytemode),
    );
    Ok(Queue::leaf(packets, &options))
}

/// Packets come one by one, so that there is nothing to split.
fn cake(spec: CakeSpec, rate: BitRate) -> Queue {
    let CakeSpec {
        tins,
        isolation,
        rtt,
        memory_limit,
        ack_filter,
        wash,
    } = spec;
    let keywords = [
        match tins {
            Tins::Besteffort => "besteffort",
            Tins::Precedence => "precedence",
            Tins::Diffserv3 => "diffserv3",
            Tins::Diffserv4 => "diffserv4",
            Tins::Diffserv8 => "diffserv8",
        },
        match isolation {
            Isolation::Flowblind => "flowblind",
            Isolation::Srchost => "srchost",
            Isolation::Dsthost => "dsthost",
            Isolation::Hosts => "hosts",
            Isolation::Flows => "flows",
            Isolation::DualSrchost => "dual-srchost",
            Isolation::DualDsthost => "dual-dsthost",
            Isolation::TripleIsolate => "triple-isolate",
        },
        match ack_filter {
            AckFilter::NoAckFilter => "no-ack-filter",
            AckFilter::AckFilter => "ack-filter",
            AckFilter::AckFilterAggressive => "ack-filter-aggressive",
        },
    ];
    let mut options = words(&keywords.join(" "));
    options.push(switch("wash", wash));
    options.extend(words(&format!("rtt {}", micros(rtt))));
    if let Some(limit) = memory_limit {
        options.extend(words(&format!("memlimit {}", limit.bytes())));
    }
    // Its own choice is four times what the line sends in a round trip, at least 4 MiB
    // (cake_reconfigure() in sch_cake.c).
    let own = || ((rate.bps() as f64 / 2.0 * rtt.as_secs_f64()) as u64).max(4 << 20);
    let bytes = memory_limit.map_or_else(own, |limit| limit.bytes());
    Queue::Cake {
        options,
        limit_packets: bytes / SMALL_PACKET_BYTES,
    }
}

/// The limit of a discipline that counts packets only.
fn packets(limit: Limit) -> Result<u64, String> {
    match limit {
        Limit::Packets(packets) => Ok(packets),
        Limit::Bytes(_) | Limit::Time(_) => Err(format!(
            "its queue has a limit of {limit}, and the kernel's counts packets"
        )),
    }
}

/// A gain of PIE as tc takes it.
fn sixteenths(name: &str, gain: f64) -> Result<u32, String> {
    let sixteenths = gain * 16.0;
    if (0.0..=32.0).contains(&sixteenths) && sixteenths.fract() == 0.0 {
        return Ok(sixteenths as u32);
    }
    Err(format!(
        "the kernel's {name} is a whole number of sixteenths up to 2, and not {gain}"
    ))
}

/// How tc writes what is on or off.
fn switch(name: &str, on: bool) -> String {
    if on {
        name.to_owned()
    } else {
        format!("no{name}")
    }
}
