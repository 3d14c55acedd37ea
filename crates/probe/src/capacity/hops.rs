//! Which hop to probe with which size, how often, and when it is enough. Time comes from the network,
//! which is a trait, so all of this runs in virtual time.
//!
//! `first_look` finds out who answers on the way, up to what size, and how long a full packet takes;
//! `sampling` probes until the lines are known.

mod first_look;
mod sampling;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use plumb_model::distribution::Distribution;
use plumb_model::results::capacity::CapacityEnd;

use super::fit::{Fit, OfSize, fit};
use super::lines::{LineFigures, lines};
use crate::path::{HopNetwork, Nowhere, Probe};
pub use first_look::answers;

/// What to probe and how.
#[derive(Debug, Clone, PartialEq)]
pub struct HopsPlan {
    /// The far end.
    pub target: IpAddr,
    /// How many hops to look at.
    pub max_hops: u8,
    /// The largest probe, whole IP packet.
    pub largest_bytes: u16,
    /// From one probe to the next on average; half of it at least.
    pub interval: Duration,
    /// How long to probe at most.
    pub time: Duration,
    /// Bytes of IP packets to send at most.
    pub bytes: u64,
    /// Longest wait for an answer while it is found out who answers.
    pub timeout: Duration,
    /// What random numbers follow from.
    pub seed: u64,
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct HopsFound {
    /// Every hop, from the first.
    pub hops: Vec<HopFound>,
    /// Whether the last is the far end.
    pub reached: bool,
    /// That nobody is there, where somebody says so; then hops are empty.
    pub nowhere: Option<Nowhere>,
    /// Why it ended.
    pub ended: CapacityEnd,
    /// Packets sent.
    pub sent: u64,
    /// Bytes of IP packets sent.
    pub sent_bytes: u64,
}

/// One hop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HopFound {
    /// Its number.
    pub ttl: u8,
    /// Who answered.
    pub address: Option<IpAddr>,
    /// Probes sent to it.
    pub sent: u64,
    /// Probes that it answered.
    pub received: u64,
    /// Answers that came from somebody else, and were left out.
    pub others: u64,
    /// Its probes were made more seldom, for it left many unanswered.
    pub limited: bool,
    /// The largest probe, whole IP packet, that it answers; `None` where it answers small ones only.
    pub largest_bytes: Option<u16>,
    /// What comes back for that, whole IP packet, bytes.
    pub answer_bytes: Option<u16>,
    /// Round trips by size.
    pub sizes: Vec<OfSize>,
    /// How they grow.
    pub fit: Option<Fit>,
    /// The line before it.
    pub line: LineFigures,
}

impl HopFound {
    /// Round trips above the least of their size: waiting on all the way and back.
    pub fn queueing(&self) -> Option<Distribution> {
        Distribution::of(self.sizes.iter().flat_map(|of_size| {
            let least = of_size.rtt_s.iter().copied().fold(f64::INFINITY, f64::min);
            of_size.rtt_s.iter().map(move |rtt| rtt - least)
        }))
    }
}

/// A hop while it is probed.
#[derive(Debug, Default)]
struct Hop {
    found: HopFound,
    /// Sizes of a cycle, and those still to be sent in this one.
    cycle: Vec<u16>,
    left: Vec<u16>,
    /// Round trips by sizes sent and received.
    samples: BTreeMap<(u16, u16), Vec<f64>>,
    /// The last eight outcomes, a one for an answer.
    history: u8,
    interval_ns: u64,
    /// When the interval was last made longer, and answers to what was sent since.
    changed_ns: u64,
    answered: u64,
    /// The least time an answer that it kept up for several of them, once its first burst was over.
    keeps_up_ns: Option<u64>,
    next_ns: u64,
    /// The least round trips of the smallest and of the largest packet.
    least_ns: (Option<u64>, Option<u64>),
    active: bool,
}

/// What is known by now, and what was sent for it.
#[derive(Debug, Default)]
struct Known {
    hops: Vec<Hop>,
    reached: bool,
    nowhere: Option<Nowhere>,
    sent: u64,
    sent_bytes: u64,
    longest_rtt_ns: u64,
    /// What a full packet takes over all lines, beyond a small one.
    takes_ns: u64,
}

/// Probes hops until their lines are known, `stop` is set, or time or bytes are spent; `show` is told
/// how many lines are known of how many. When it is stopped, what was learnt by then is told.
///
/// # Errors
/// Those of our own machine. Where nobody answers, hops are empty.
pub fn hops(
    network: &mut impl HopNetwork,
    plan: &HopsPlan,
    stop: &AtomicBool,
    show: &mut dyn FnMut(usize, usize),
) -> io::Result<HopsFound> {
    let end_ns = network.now_ns().saturating_add(nanoseconds(plan.time));
    let mut known = Known::default();
    let looked = first_look::first_look(network, plan, stop, &mut known);
    let ended = match looked {
        Ok(()) if known.nowhere.is_some() => CapacityEnd::NotBegun,
        Ok(()) => sampling::sample(network, plan, end_ns, stop, &mut known, show)?,
        Err(error) if error.kind() == io::ErrorKind::Interrupted => CapacityEnd::Stopped,
        Err(error) => return Err(error),
    };
    known.work_out();
    Ok(HopsFound {
        reached: known.reached,
        nowhere: known.nowhere,
        ended,
        sent: known.sent,
        sent_bytes: known.sent_bytes,
        hops: known.hops.into_iter().map(|hop| hop.found).collect(),
    })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn probe(ttl: u8, size_bytes: u16) -> Probe {
    Probe {
        size_bytes,
        dont_fragment: true,
        ..Probe::to(ttl)
    }
}

impl Known {
    /// Probes of that size, whole IP packet, were sent.
    fn count(&mut self, sent: u64, size_bytes: u16) {
        self.sent += sent;
        self.sent_bytes += sent * u64::from(size_bytes);
    }

    /// Works the lines out of the samples.
    fn work_out(&mut self) {
        for hop in &mut self.hops {
            hop.found.sizes = hop
                .samples
                .iter()
                .map(|((size_bytes, answer_bytes), rtt_s)| OfSize {
                    size_bytes: *size_bytes,
                    answer_bytes: *answer_bytes,
                    rtt_s: rtt_s.clone(),
                })
                .collect();
            hop.found.fit = fit(&hop.found.sizes);
        }
        let fits: Vec<_> = self.hops.iter().map(|hop| hop.found.fit).collect();
        for (hop, line) in self.hops.iter_mut().zip(lines(&fits)) {
            hop.found.line = line;
        }
    }
}
