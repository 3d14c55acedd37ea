//! What is to be known of hops, and what is known of them by now.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use plumb_model::distribution::Distribution;

use crate::capacity::fit::{Fit, OfSize, fit};
use crate::capacity::lines::{LineFigures, lines};
use crate::path::{Nowhere, Probe};

/// What to probe and how.
#[derive(Debug, Clone, PartialEq)]
pub struct HopsPlan {
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

#[derive(Debug, Clone, PartialEq, Default)]
pub struct HopFound {
    pub ttl: u8,
    pub address: Option<IpAddr>,
    /// Probes sent to it.
    pub sent: u64,
    /// Probes that it answered.
    pub received: u64,
    /// Answers that came from another address, and were left out.
    pub others: u64,
    /// Its probes were made more seldom, for it left many unanswered.
    pub limited: bool,
    /// The largest probe, whole IP packet, that it answers; `None` where it answers small ones only.
    pub largest_bytes: Option<u16>,
    /// What comes back for that, whole IP packet, bytes.
    pub answer_bytes: Option<u16>,
    /// Round trips by size.
    pub sizes: Vec<OfSize>,
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
pub(super) struct Hop {
    pub(super) found: HopFound,
    /// Sizes of a cycle, and those still to be sent in this one.
    pub(super) cycle: Vec<u16>,
    pub(super) left: Vec<u16>,
    /// Round trips by sizes sent and received.
    pub(super) samples: BTreeMap<(u16, u16), Vec<f64>>,
    /// The last eight outcomes, a one for an answer.
    pub(super) history: u8,
    pub(super) interval_ns: u64,
    /// When the interval was last made longer, and answers to what was sent since.
    pub(super) changed_ns: u64,
    pub(super) answered: u64,
    /// The least time an answer that it kept up for several of them, once its first burst was over.
    pub(super) keeps_up_ns: Option<u64>,
    pub(super) next_ns: u64,
    /// The least round trips of the smallest and of the largest packet.
    pub(super) least_ns: (Option<u64>, Option<u64>),
    pub(super) active: bool,
}

/// What is known by now, and what was sent for it.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) hops: Vec<Hop>,
    pub(super) reached: bool,
    pub(super) nowhere: Option<Nowhere>,
    pub(super) sent: u64,
    pub(super) sent_bytes: u64,
    pub(super) longest_rtt_ns: u64,
    /// What a full packet takes over all lines, beyond a small one.
    pub(super) takes_ns: u64,
}

pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

pub(super) fn probe(ttl: u8, size_bytes: u16) -> Probe {
    Probe {
        size_bytes,
        dont_fragment: true,
        ..Probe::to(ttl)
    }
}

impl Known {
    /// Probes of that size, whole IP packet, were sent.
    pub(super) fn count(&mut self, sent: u64, size_bytes: u16) {
        self.sent += sent;
        self.sent_bytes += sent * u64::from(size_bytes);
    }

    /// Works the lines out of the samples.
    pub(super) fn work_out(&mut self) {
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
