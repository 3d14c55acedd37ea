//! A direction of a link as the kernel's own queueing disciplines: what `tc` (iproute2) is to be
//! told. Pure: it renders, and whoever calls runs it.
//!
//! The tree at a device, from the outside: netem(8) for delay and loss, inside it tbf(8) for the
//! rate, inside that the queue; or tc-cake(8), which is both. The kernel knows no other order: only
//! netem hands packets on to another discipline when it is done with them (`netem_dequeue`,
//! `net/sched/sch_netem.c`), the rest decide when a packet *leaves* the tree. A constant delay before
//! a rate is the same as one behind it; where the order shows, the rendering says so.
//!
//! What differs from plumb's own links: a packet that meets a free line leaves at once and not
//! after its own time on the line, and after an idle time the line may run ahead by
//! `BURST_TIME`.

pub(crate) mod links;

use std::time::Duration;

use plumb_link::cell::corrupt::CorruptSpec;
use plumb_link::cell::delay::DelaySpec;
use plumb_link::cell::delay::distribution::Distribution;
use plumb_link::cell::duplicate::DuplicateSpec;
use plumb_link::cell::loss::bernoulli::BernoulliSpec;
use plumb_link::cell::loss::gilbert_elliott::GilbertElliottSpec;
use plumb_link::cell::loss::markov4::Markov4Spec;
use plumb_link::cell::shaper::ShaperSpec;
use plumb_link::limit::Limit;
use plumb_link::queue::QueueSpec;
use plumb_link::queue::cake::{AckFilter, CakeSpec, Isolation, Tins};
use plumb_link::queue::codel::CodelSpec;
use plumb_link::queue::fifo::{DropAt, FifoSpec};
use plumb_link::queue::fq_codel::FqCodelSpec;
use plumb_link::queue::pie::PieSpec;
use plumb_link::queue::red::RedSpec;
use plumb_link::spec::{CellSpec, ChainSpec, NamedCell};
use plumb_model::framing::{Cells, Framing};
use plumb_model::units::BitRate;

/// The Ethernet header, which the kernel counts as part of every packet and a [`Framing`] does
/// not.
const ETHERNET_HEADER_BYTES: i64 = 14;

/// How late the kernel's timer may be without the line losing rate: what tbf may send ahead.
/// hrtimers are late by tens of microseconds, more on a busy machine.
const BURST_TIME: Duration = Duration::from_micros(250);

/// The fastest that a device hands packets to netem: about what one processor sends through a
/// veth pair packet by packet.
const MOST_PACKETS_PER_S: f64 = 1e6;

/// Packets that netem may hold beyond what it must: netem's own default for all of them.
const HEADROOM_PACKETS: f64 = 1000.0;

/// The smallest frame of an Ethernet on the line, with preamble and gap, in bits.
const SMALLEST_FRAME_BITS: f64 = 84.0 * 8.0;

/// The smallest IP packet that fills a queue in numbers, in bytes: an acknowledgement with
/// timestamps.
const SMALL_PACKET_BYTES: u64 = 52;

/// What the kernel cannot do of a chain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the kernel cannot be the cell '{cell}': {reason}; use --backend emulated (the default)")]
pub struct KernelError {
    /// The cell's name.
    pub cell: String,
    /// Why not.
    pub reason: String,
}

/// What netem is to do. All zero: nothing, and then it is left out, because a netem that was told
/// nothing still queues.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Netem {
    /// Delay of every packet.
    pub delay: Duration,
    /// Its variation: uniform in delay ± jitter unless a distribution is named.
    pub jitter: Duration,
    /// How `jitter` is distributed; uniformly when empty.
    pub distribution: &'static str,
    /// Which packets are lost.
    pub loss: Loss,
    /// Share of packets sent twice, 0…1.
    pub duplicate_ratio: f64,
    /// Share of packets in which one bit is turned, 0…1.
    pub corrupt_ratio: f64,
    /// Share of packets sent at once, without the delay, 0…1.
    pub reorder_ratio: f64,
}

/// netem's models of loss; all numbers are probabilities, 0…1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Loss {
    /// Every packet with the same one.
    Random(f64),
    /// Gilbert and Elliott's: p, r, 1−h, 1−k.
    Gemodel([f64; 4]),
    /// Four states: p13, p31, p32, p23, p14.
    State([f64; 5]),
}

impl Default for Loss {
    fn default() -> Self {
        Self::Random(0.0)
    }
}

/// A rate with its queue, as tbf.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The rate.
    pub rate: BitRate,
    /// What the line adds to each packet.
    pub framing: Framing,
    /// Bytes that can be saved up while the line is free.
    pub burst_bytes: u64,
    /// The rate at which they leave; at once when absent.
    pub peak_rate: Option<BitRate>,
    /// The queue in bytes, which tbf has built in.
    pub limit_bytes: Option<u64>,
    /// Whether the queue counts framing as well, as a queue in time does.
    pub limit_counts_framing: bool,
    /// The queue that takes the place of tbf's own: kind and options.
    pub leaf: Option<Vec<String>>,
    /// Most packets that may wait.
    pub queue_packets: u64,
    /// CAKE in the place of tbf and its queue: its options beside rate and framing.
    pub cake: Option<Vec<String>>,
}

/// What a device is given.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tree {
    /// Delay and loss.
    pub netem: Netem,
    /// Rate and queue, behind them.
    pub line: Option<Line>,
    /// In what the kernel deviates from the chain.
    pub notes: Vec<String>,
}

impl Tree {
    /// The tree that does what a chain does.
    ///
    /// # Errors
    /// When the kernel cannot; the error names the cell.
    pub fn render(chain: &ChainSpec) -> Result<Self, KernelError> {
        let mut tree = Self::default();
        for NamedCell { name, cell } in &chain.0 {
            let refuse = |reason: String| KernelError {
                cell: name.clone(),
                reason,
            };
            if let CellSpec::Shaper(spec) = cell {
                if tree.line.is_some() {
                    let reason = "a device of the kernel has one rate, and this is the second";
                    return Err(refuse(reason.to_owned()));
                }
                tree.line = Some(line(spec).map_err(refuse)?);
            } else if let CellSpec::Delay(spec) = cell {
                tree.netem.add_delay(spec).map_err(refuse)?;
                if tree.line.is_some() && !tree.netem.jitter.is_zero() {
                    tree.notes.push(format!(
                        "the kernel varies the delay ('{name}') before the rate and not behind it"
                    ));
                }
            } else if let Some(loss) = loss_of(cell) {
                if tree.line.is_some() {
                    tree.notes.push(format!(
                        "the kernel loses packets ('{name}') before the rate and not behind it, so that lost packets take none of it"
                    ));
                }
                tree.netem.loss = match (tree.netem.loss, loss) {
                    (Loss::Random(0.0), loss) => loss,
                    // What one lets pass, the next may lose.
                    (Loss::Random(one), Loss::Random(next)) => {
                        Loss::Random(1.0 - (1.0 - one) * (1.0 - next))
                    }
                    _ => {
                        let reason = "netem has one model of loss, and this is the second";
                        return Err(refuse(reason.to_owned()));
                    }
                };
            } else if let CellSpec::Duplicate(DuplicateSpec { ratio }) = cell {
                if tree.netem.duplicate_ratio > 0.0 {
                    return Err(refuse("netem duplicates once".to_owned()));
                }
                tree.netem.duplicate_ratio = ratio.value();
            } else if let CellSpec::Corrupt(CorruptSpec { ratio }) = cell {
                if tree.netem.corrupt_ratio > 0.0 {
                    return Err(refuse("netem corrupts once".to_owned()));
                }
                tree.netem.corrupt_ratio = ratio.value();
                tree.notes.push(format!(
                    "the kernel turns bits ('{name}') in headers too, of Ethernet and IP"
                ));
            } else {
                return Err(refuse("it has nothing of the kind".to_owned()));
            }
        }
        Ok(tree)
    }

    /// Whether there is nothing to install.
    pub fn is_empty(&self) -> bool {
        self.netem.is_nothing() && self.line.is_none()
    }

    /// The commands that install it on `device`, whose largest packet has `mtu_bytes`. Handles
    /// are numbered from `handle`, the root's.
    pub fn commands(&self, device: &str, mtu_bytes: u32, handle: u16) -> Vec<Vec<String>> {
        let mut commands: Vec<Vec<String>> = Vec::new();
        let mut handle = handle;
        let mut add = |stab: Option<i64>, what: Vec<String>| {
            let at = if commands.is_empty() {
                words("root")
            } else {
                words(&format!("parent {:x}:1", handle - 1))
            };
            let mut command = words(&format!("qdisc add dev {device}"));
            command.extend(at);
            command.extend(words(&format!("handle {handle:x}:")));
            if let Some(overhead) = stab.filter(|overhead| commands.is_empty() && *overhead != 0) {
                command.extend(words(&format!("stab overhead {overhead}")));
            }
            command.extend(what);
            commands.push(command);
            handle = handle.wrapping_add(1);
        };
        // A size table at the root holds for all inside (`qdisc_calculate_pkt_len`): with it the
        // tree counts IP bytes, as plumb's own queues do.
        let stab = self.line.as_ref().map(Line::stab_overhead);
        if !self.netem.is_nothing() {
            add(
                stab,
                self.netem.arguments(self.netem.limit(self.line.as_ref())),
            );
        }
        if let Some(line) = &self.line {
            add(stab, line.arguments(mtu_bytes));
            if let Some(leaf) = &line.leaf {
                add(None, leaf.clone());
            }
        }
        commands
    }
}

impl Netem {
    /// Whether it does nothing to any packet.
    pub fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// Another delay behind those that it has.
    fn add_delay(&mut self, spec: &DelaySpec) -> Result<(), String> {
        let DelaySpec {
            delay,
            jitter,
            distribution,
            reordering,
        } = spec;
        self.delay += *delay;
        if jitter.is_zero()
            && !matches!(
                distribution,
                Distribution::File(_) | Distribution::Samples(_)
            )
        {
            return Ok(());
        }
        if !self.jitter.is_zero() {
            return Err("netem varies one delay, and this is the second".to_owned());
        }
        if !reordering {
            return Err(
                "netem lets packets overtake each other when their delay varies, and this cell does not (reordering = true would)".to_owned(),
            );
        }
        self.jitter = *jitter;
        self.distribution = match distribution {
            Distribution::Uniform => "",
            Distribution::Normal => "normal",
            Distribution::Pareto => "pareto",
            Distribution::File(_) | Distribution::Samples(_) => {
                return Err("netem's delays come from its own tables, not from samples".to_owned());
            }
        };
        Ok(())
    }

    /// How many packets it must be able to hold. netem drops what is beyond without a word, and
    /// its default is 1000 packets, 60 ms at 200 Mbit/s.
    ///
    /// Before a line it is enough to take in twice the line's rate in the smallest frames: what
    /// comes faster for longer than the delay would fill the line's queue anyway. Kernels before
    /// 6.13 count what waits in the queue inside as well.
    pub fn limit(&self, line: Option<&Line>) -> u64 {
        let arrivals = line.map_or(MOST_PACKETS_PER_S, |line| {
            (2.0 * line.rate.bps() as f64 / SMALLEST_FRAME_BITS).min(MOST_PACKETS_PER_S)
        });
        let held = arrivals * (self.delay + self.jitter).as_secs_f64();
        let inside = line.map_or(0, |line| line.queue_packets);
        // The kernel's limit is 32 bits wide.
        ((held + HEADROOM_PACKETS) as u64)
            .saturating_add(inside)
            .min(u64::from(u32::MAX))
    }

    fn arguments(&self, limit: u64) -> Vec<String> {
        let mut arguments = words(&format!("netem limit {limit}"));
        if !self.delay.is_zero() || !self.jitter.is_zero() {
            arguments.extend(words(&format!("delay {}", micros(self.delay))));
            if !self.jitter.is_zero() {
                arguments.push(micros(self.jitter));
                if !self.distribution.is_empty() {
                    arguments.extend(words(&format!("distribution {}", self.distribution)));
                }
            }
        }
        let (model, shares) = match &self.loss {
            Loss::Random(share) => ("random", std::slice::from_ref(share)),
            Loss::Gemodel(shares) => ("gemodel", &shares[..]),
            Loss::State(shares) => ("state", &shares[..]),
        };
        for (what, shares) in [
            (format!("loss {model}"), shares),
            ("duplicate".to_owned(), &[self.duplicate_ratio][..]),
            ("corrupt".to_owned(), &[self.corrupt_ratio][..]),
            ("reorder".to_owned(), &[self.reorder_ratio][..]),
        ] {
            if shares.iter().any(|share| *share > 0.0) {
                arguments.extend(words(&what));
                // The kernel keeps 32 bits of it; nine digits are as many.
                arguments.extend(shares.iter().map(|share| format!("{:.9}%", share * 100.0)));
            }
        }
        arguments
    }
}

impl Line {
    /// Bytes of framing that the size table at the root adds to each packet as the kernel counts
    /// it; the rest is added by tbf. The table cannot know minimum sizes and cells, tbf cannot
    /// subtract, and the queue counts what the table made of the packet.
    ///
    /// CAKE counts from the IP header by itself, and needs no table.
    fn stab_overhead(&self) -> i64 {
        if self.cake.is_some() {
            return 0;
        }
        let overhead = i64::from(self.framing.overhead_bytes);
        let counted = if self.limit_counts_framing {
            overhead
        } else {
            overhead.min(0)
        };
        counted - ETHERNET_HEADER_BYTES
    }

    /// Bytes that tbf may send ahead: two full frames, or one would be lost with every late
    /// timer, and what the line sends in [`BURST_TIME`].
    fn burst_bytes(&self, mtu_bytes: u32) -> u64 {
        let ahead = BURST_TIME.as_secs_f64() * self.rate.bps() as f64 / 8.0;
        let least = 2 * u64::from(self.framing.wire_bytes(mtu_bytes)) + ahead as u64;
        self.burst_bytes.max(least)
    }

    fn arguments(&self, mtu_bytes: u32) -> Vec<String> {
        if let Some(cake) = &self.cake {
            let cells = match self.framing.cells {
                Cells::None => "noatm",
                Cells::Atm => "atm",
                Cells::Ptm => "ptm",
            };
            let mut arguments = words(&format!(
                "cake bandwidth {}bit overhead {} mpu {} {cells}",
                self.rate.bps(),
                self.framing.overhead_bytes,
                self.framing.mpu_bytes
            ));
            arguments.extend(cake.iter().cloned());
            return arguments;
        }
        let burst = self.burst_bytes(mtu_bytes);
        let overhead =
            i64::from(self.framing.overhead_bytes) - self.stab_overhead() - ETHERNET_HEADER_BYTES;
        let mut arguments = words(&format!("tbf rate {}bit burst {burst}", self.rate.bps()));
        // tbf insists on a limit; where another queue takes the place of its own it means nothing.
        let limit = self.limit_bytes.unwrap_or(burst).min(u64::from(u32::MAX));
        arguments.extend(words(&format!("limit {limit}")));
        if let Some(peak) = self.peak_rate {
            let mtu = 2 * self.framing.wire_bytes(mtu_bytes);
            arguments.extend(words(&format!("peakrate {}bit mtu {mtu}", peak.bps())));
        }
        if overhead > 0 {
            arguments.extend(words(&format!("overhead {overhead}")));
        }
        if self.framing.mpu_bytes > 0 {
            arguments.extend(words(&format!("mpu {}", self.framing.mpu_bytes)));
        }
        if self.framing.cells == Cells::Atm {
            arguments.extend(words("linklayer atm"));
        }
        arguments
    }
}

/// The loss that a cell is, if netem has it.
fn loss_of(cell: &CellSpec) -> Option<Loss> {
    let loss = if let CellSpec::Bernoulli(BernoulliSpec { ratio }) = cell {
        Loss::Random(ratio.value())
    } else if let CellSpec::GilbertElliott(GilbertElliottSpec {
        p,
        r,
        loss_good,
        loss_bad,
    }) = cell
    {
        Loss::Gemodel([p, r, loss_bad, loss_good].map(|ratio| ratio.value()))
    } else if let CellSpec::Markov4(Markov4Spec {
        p13,
        p31,
        p32,
        p23,
        p14,
    }) = cell
    {
        Loss::State([p13, p31, p32, p23, p14].map(|ratio| ratio.value()))
    } else {
        return None;
    };
    Some(loss)
}

fn line(spec: &ShaperSpec) -> Result<Line, String> {
    // Taken apart whole, here and below, so that no setting is passed over.
    let ShaperSpec {
        rate,
        schedule,
        period: _,
        burst,
        peak_rate,
        framing,
        queue,
    } = spec;
    let rate = match rate {
        Some(rate) if schedule.is_empty() => rate,
        _ => return Err("tbf has one rate and no schedule".to_owned()),
    };
    if burst.is_some() && matches!(queue, QueueSpec::Cake(_)) {
        return Err("CAKE saves up no bursts".to_owned());
    }
    if framing.cells == Cells::Ptm && !matches!(queue, QueueSpec::Cake(_)) {
        return Err("tbf counts no PTM blocks; only a cake queue does".to_owned());
    }
    let mut line = Line {
        rate: *rate,
        framing: *framing,
        burst_bytes: burst.map_or(0, |burst| burst.bytes()),
        peak_rate: *peak_rate,
        limit_bytes: None,
        limit_counts_framing: false,
        leaf: None,
        queue_packets: 0,
        cake: None,
    };
    if let QueueSpec::Fifo(FifoSpec { limit, drop }) = queue {
        let at_head = *drop == DropAt::Head;
        match *limit {
            Limit::Packets(packets) => {
                let kind = if at_head { "pfifo_head_drop" } else { "pfifo" };
                line.queue_packets = packets;
                line.leaf = Some(words(&format!("{kind} limit {packets}")));
            }
            limit if at_head => {
                return Err(format!(
                    "its queue of {limit} drops at the head, and the kernel's counts packets then"
                ));
            }
            Limit::Bytes(bytes) => line.limit_bytes = Some(bytes),
            Limit::Time(time) => {
                let bytes = time.as_secs_f64() * rate.bps() as f64 / 8.0;
                line.limit_bytes = Some(bytes as u64);
                line.limit_counts_framing = true;
            }
        }
    } else if let QueueSpec::Codel(CodelSpec {
        limit,
        target,
        interval,
        ecn,
    }) = queue
    {
        line.queue_packets = packets(*limit)?;
        line.leaf = Some(words(&format!(
            "codel limit {} target {} interval {} {}",
            line.queue_packets,
            micros(*target),
            micros(*interval),
            switch("ecn", *ecn)
        )));
    } else if let QueueSpec::FqCodel(FqCodelSpec {
        limit,
        memory_limit,
        flows,
        quantum,
        target,
        interval,
        ecn,
    }) = queue
    {
        line.queue_packets = packets(*limit)?;
        line.leaf = Some(words(&format!(
            "fq_codel limit {} flows {flows} quantum {quantum} target {} interval {} memory_limit {} {}",
            line.queue_packets,
            micros(*target),
            micros(*interval),
            memory_limit.bytes(),
            switch("ecn", *ecn)
        )));
    } else if let QueueSpec::Red(RedSpec {
        limit,
        min,
        max,
        probability,
        avpkt,
        burst,
        ecn,
        harddrop,
    }) = queue
    {
        line.queue_packets = limit.bytes() / SMALL_PACKET_BYTES;
        line.leaf = Some(words(&format!(
            "red limit {} min {} max {} avpkt {} burst {burst} probability {} bandwidth {}bit {} {}",
            limit.bytes(),
            min.bytes(),
            max.bytes(),
            avpkt.bytes(),
            probability.value(),
            rate.bps(),
            if *ecn { "ecn" } else { "" },
            if *harddrop { "harddrop" } else { "" },
        )));
    } else if let QueueSpec::Pie(PieSpec {
        limit,
        target,
        tupdate,
        alpha,
        beta,
        ecn,
        bytemode,
    }) = queue
    {
        line.queue_packets = packets(*limit)?;
        line.leaf = Some(words(&format!(
            "pie limit {} target {} tupdate {} alpha {} beta {} {} {}",
            line.queue_packets,
            micros(*target),
            micros(*tupdate),
            sixteenths("alpha", *alpha)?,
            sixteenths("beta", *beta)?,
            switch("ecn", *ecn),
            switch("bytemode", *bytemode),
        )));
    } else if let QueueSpec::Cake(spec) = queue {
        line.queue_packets = cake_packets(spec, *rate);
        line.cake = Some(cake(spec));
    } else {
        return Err("it has no such queue".to_owned());
    }
    if let Some(bytes) = line.limit_bytes {
        line.queue_packets = bytes / SMALL_PACKET_BYTES;
    }
    Ok(line)
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

/// CAKE's own options. Packets come one by one, so that there is nothing to split.
fn cake(spec: &CakeSpec) -> Vec<String> {
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
    options.push(switch("wash", *wash));
    options.extend(words(&format!("rtt {}", micros(*rtt))));
    if let Some(limit) = memory_limit {
        options.extend(words(&format!("memlimit {}", limit.bytes())));
    }
    options
}

/// Most packets that CAKE holds.
fn cake_packets(spec: &CakeSpec, rate: BitRate) -> u64 {
    // Its own choice is four times what the line sends in a round trip, at least 4 MiB
    // (cake_reconfigure() in sch_cake.c).
    let own = || ((rate.bps() as f64 / 2.0 * spec.rtt.as_secs_f64()) as u64).max(4 << 20);
    let bytes = spec.memory_limit.map_or_else(own, |limit| limit.bytes());
    bytes / SMALL_PACKET_BYTES
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

/// A time for tc, whose shortest unit is the microsecond, with a fraction where there is one.
fn micros(time: Duration) -> String {
    format!("{}us", time.as_nanos() as f64 / 1e3)
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::tc::spell;

    fn chain(text: &str) -> ChainSpec {
        #[derive(serde::Deserialize)]
        struct File {
            cells: ChainSpec,
        }
        toml::from_str::<File>(&format!("cells = [{text}]"))
            .unwrap()
            .cells
    }

    fn rendered(text: &str) -> Vec<String> {
        let tree = Tree::render(&chain(text)).unwrap();
        tree.commands("line", 1500, 1)
            .iter()
            .map(|c| spell(c))
            .collect()
    }

    #[test]
    fn the_cable_line() {
        // 2 frames of 1518 and 250 µs at 20 Mbit/s (625 B); 700 ms are 1,750,000 B; netem holds
        // 9 ms of 2 x 20e6 / 672 packets/s (535), 1000 more and the queue of 52-byte packets.
        assert_eq!(
            rendered(
                r#"{ type = "shaper", rate = "20mbit", framing = "docsis", queue = { type = "fifo", limit = "700ms" } },
                   { type = "delay", delay = "9ms" }"#
            ),
            [
                "tc qdisc add dev line root handle 1: stab overhead 4 netem limit 35188 delay 9000us",
                "tc qdisc add dev line parent 1:1 handle 2: tbf rate 20000000bit burst 3661 limit 1750000 mpu 64",
            ]
        );
    }

    #[test]
    fn a_managed_line_without_delay() {
        assert_eq!(
            rendered(
                r#"{ type = "shaper", rate = "19mbit", framing = "pppoe-llcsnap", queue = { type = "fq_codel" } }"#
            ),
            [
                "tc qdisc add dev line root handle 1: stab overhead -14 tbf rate 19000000bit burst 4091 limit 4091 overhead 40 linklayer atm",
                "tc qdisc add dev line parent 1:1 handle 2: fq_codel limit 10240 flows 1024 quantum 1514 target 5000us interval 100000us memory_limit 33554432 ecn",
            ]
        );
    }

    #[test]
    fn each_queue_as_tc_writes_it() {
        for (queue, wanted) in [
            (
                r#"{ type = "fifo", limit = "9p", drop = "head" }"#,
                "pfifo_head_drop limit 9",
            ),
            (
                r#"{ type = "codel", ecn = true }"#,
                "codel limit 1000 target 5000us interval 100000us ecn",
            ),
            (
                r#"{ type = "red", ecn = true }"#,
                "red limit 400000 min 30000 max 90000 avpkt 1000 burst 55 probability 0.02 bandwidth 10000000bit ecn",
            ),
            (
                r#"{ type = "pie" }"#,
                "pie limit 1000 target 15000us tupdate 15000us alpha 2 beta 20 noecn nobytemode",
            ),
        ] {
            let commands = rendered(&format!(
                r#"{{ type = "shaper", rate = "10mbit", queue = {queue} }}"#
            ));
            let leaf = format!("tc qdisc add dev line parent 1:1 handle 2: {wanted}");
            assert_eq!(commands.last(), Some(&leaf));
        }
    }

    #[test]
    fn what_netem_does_to_packets() {
        for (cells, wanted) in [
            (
                r#"{ type = "delay", delay = "20ms", jitter = "5ms", reordering = true, distribution = "normal" }, { type = "delay", delay = "1ms" }"#,
                "netem limit 27000 delay 21000us 5000us distribution normal",
            ),
            (
                r#"{ type = "loss", ratio = "50%" }, { type = "loss", ratio = "50%" }"#,
                "netem limit 1000 loss random 75.000000000%",
            ),
            (
                r#"{ type = "gilbert_elliott", p = "1%", r = "25%", loss_good = "0.1%" }"#,
                "netem limit 1000 loss gemodel 1.000000000% 25.000000000% 100.000000000% 0.100000000%",
            ),
            (
                r#"{ type = "markov4", p13 = "1%", p31 = "30%", p14 = "2%" }"#,
                "netem limit 1000 loss state 1.000000000% 30.000000000% 0.000000000% 100.000000000% 2.000000000%",
            ),
            (
                r#"{ type = "duplicate", ratio = "1%" }, { type = "corrupt", ratio = "2%" }"#,
                "netem limit 1000 duplicate 1.000000000% corrupt 2.000000000%",
            ),
        ] {
            let command = format!("tc qdisc add dev line root handle 1: {wanted}");
            assert_eq!(rendered(cells), [command], "{cells}");
        }
        let behind =
            chain(r#"{ type = "shaper", rate = "1mbit" }, { type = "loss", ratio = "1%" }"#);
        assert!(Tree::render(&behind).unwrap().notes[0].contains("before the rate"));
    }

    #[test]
    fn a_burst_at_its_own_rate() {
        assert_eq!(
            rendered(
                r#"{ type = "shaper", rate = "20mbit", burst = "100kB", peak_rate = "50mbit", queue = { type = "fifo", limit = "50kB" } }"#
            ),
            [
                "tc qdisc add dev line root handle 1: stab overhead -14 tbf rate 20000000bit burst 100000 limit 50000 peakrate 50000000bit mtu 3000"
            ]
        );
    }

    #[test]
    fn cake_is_shaper_and_queue() {
        assert_eq!(
            rendered(
                r#"{ type = "shaper", rate = "10mbit", framing = "pppoe-ptm", queue = { type = "cake", isolation = "dual-srchost", memory_limit = "1MB" } }, { type = "delay", delay = "1ms" }"#
            ),
            [
                "tc qdisc add dev line root handle 1: netem limit 20259 delay 1000us",
                "tc qdisc add dev line parent 1:1 handle 2: cake bandwidth 10000000bit overhead 30 mpu 0 ptm diffserv3 dual-srchost no-ack-filter nowash rtt 100000us memlimit 1000000",
            ]
        );
    }

    #[test]
    fn the_framing_is_counted_once() {
        for (framing, queue) in [
            ("docsis", "700ms"),
            ("docsis", "500kB"),
            ("overhead -5", "9p"),
            ("raw", "1ms"),
        ] {
            let tree = Tree::render(&chain(&format!(
                r#"{{ type = "shaper", rate = "1mbit", framing = "{framing}", queue = {{ type = "fifo", limit = "{queue}" }} }}"#
            )))
            .unwrap();
            let line = tree.line.unwrap();
            let arguments = line.arguments(1500);
            let at_tbf = arguments
                .iter()
                .position(|word| word == "overhead")
                .map_or(0, |at| arguments[at + 1].parse::<i64>().unwrap());
            assert_eq!(
                ETHERNET_HEADER_BYTES + line.stab_overhead() + at_tbf,
                i64::from(line.framing.overhead_bytes),
                "{framing} {queue}"
            );
        }
    }

    #[test]
    fn what_the_kernel_cannot_do_is_named() {
        for (cells, says) in [
            (
                r#"{ type = "shaper", name = "dsl", rate = "1mbit", framing = "pppoe-ptm" }"#,
                "'dsl'",
            ),
            (
                r#"{ type = "shaper", rate = "1mbit", queue = { type = "codel", limit = "5ms" } }"#,
                "counts packets",
            ),
            (
                r#"{ type = "shaper", rate = "1mbit" }, { type = "shaper", name = "second", rate = "1mbit" }"#,
                "'second'",
            ),
            (
                r#"{ type = "shaper", rate = "1mbit", queue = { type = "fifo", limit = "5ms", drop = "head" } }"#,
                "drops at the head",
            ),
            (
                r#"{ type = "shaper", rate = "1mbit", queue = { type = "pie", alpha = 0.2 } }"#,
                "sixteenths",
            ),
            (
                r#"{ type = "delay", delay = "9ms", jitter = "2ms" }"#,
                "overtake",
            ),
            (
                r#"{ type = "loss", ratio = "1%" }, { type = "gilbert_elliott", p = "1%", r = "9%" }"#,
                "'gilbert_elliott'",
            ),
            (
                r#"{ type = "shaper", schedule = [{ at = "0s", rate = "1mbit" }] }"#,
                "no schedule",
            ),
            (
                r#"{ type = "outage", at = "1s", lasts = "1s" }"#,
                "nothing of the kind",
            ),
            (
                r#"{ type = "shaper", rate = "1mbit", queue = { type = "docsis_pie" } }"#,
                "no such queue",
            ),
        ] {
            let error = Tree::render(&chain(cells)).unwrap_err().to_string();
            assert!(
                error.contains(says) && error.contains("--backend emulated"),
                "{error}"
            );
        }
    }

    #[test]
    fn no_cells_no_commands() {
        let tree = Tree::render(&chain(r#"{ type = "delay", delay = "0ms" }"#)).unwrap();
        assert!(tree.is_empty() && tree.commands("x", 1500, 1).is_empty());
    }

    #[test]
    fn netem_never_drops_what_the_line_could_send() {
        // A delay alone: a second of the fastest arrivals.
        let netem = Netem {
            delay: Duration::from_secs(1),
            ..Default::default()
        };
        assert_eq!(netem.limit(None), 1_001_000);
        assert_eq!(
            spell(&netem.arguments(7)),
            "tc netem limit 7 delay 1000000us"
        );
        let lossy = Netem {
            jitter: Duration::from_millis(2),
            loss: Loss::Random(0.01),
            reorder_ratio: 0.25,
            ..netem
        };
        assert_eq!(
            spell(&lossy.arguments(7)),
            "tc netem limit 7 delay 1000000us 2000us loss random 1.000000000% reorder 25.000000000%"
        );
    }
}
