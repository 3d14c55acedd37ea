//! The seam between whom to probe when, and what carries the probes: a trait, so that the schedule is tested in
//! virtual time.

use std::io;
use std::net::IpAddr;

use plumb_net::datagram::Failure;

use crate::ping::sample::{Answer, Moment};

/// An event that the network reported.
#[derive(Debug, Clone)]
pub enum ManyEvent {
    /// A probe entered the packet scheduler.
    Departed {
        number: u64,
        /// When, ns of CLOCK_REALTIME.
        ns: u64,
    },
    /// An answer came in.
    Answered {
        /// Which probe it answers.
        number: Lower,
        from: IpAddr,
        /// Its payload, in bytes.
        size_bytes: usize,
        /// What is known of it.
        answer: Answer,
    },
    /// An ICMP error came back.
    Failed {
        /// Where the probe was sent to.
        to: IpAddr,
        /// Which probe it quotes.
        number: Lower,
        /// What the error says, and who.
        failure: Failure,
    },
    /// A probe came to nothing, for a reason in words.
    Told { number: u64, why: String },
}

/// The lower bits of a probe's number, as far as a packet bears them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lower {
    value: u32,
    bits: u32,
}

impl Lower {
    /// The lowest 16 bits.
    pub fn of_16(value: u16) -> Self {
        let (value, bits) = (value.into(), 16);
        Self { value, bits }
    }

    /// The lowest 32 bits.
    pub fn of_32(value: u32) -> Self {
        Self { value, bits: 32 }
    }

    pub fn value(self) -> u32 {
        self.value
    }

    /// Whether they are the lowest bits of a number.
    pub fn is_of(self, number: u64) -> bool {
        number & ((1 << self.bits) - 1) == u64::from(self.value)
    }

    /// The numbers below `next` that have these bits, the latest first.
    pub(super) fn below(self, next: u64) -> impl Iterator<Item = u64> {
        let step = 1u64 << self.bits;
        let ago = next.wrapping_sub(1).wrapping_sub(self.value.into()) % step;
        let latest = next.checked_sub(1).and_then(|last| last.checked_sub(ago));
        std::iter::successors(latest, move |number| number.checked_sub(step))
    }
}

/// What came of handing probes to the kernel.
#[derive(Debug)]
pub struct Sending {
    /// How many it took, from the first on.
    pub sent: usize,
    pub before: Moment,
    pub after: Moment,
    /// Where it took none: why not the first.
    pub error: Option<io::Error>,
}

/// What carries probes and knows the time.
pub trait ManyNetwork {
    fn now(&mut self) -> Moment {
        Moment::now()
    }

    /// Whether departures are stamped.
    fn stamps_departures(&self) -> bool;

    /// Sends probes of these numbers to these targets, in order, as many as it can at once.
    fn send(&mut self, probes: &[(u64, u32)]) -> Sending;

    /// Adds what is there, as much as it takes at once.
    ///
    /// # Errors
    /// Errors of the kernel.
    fn receive(&mut self, events: &mut Vec<ManyEvent>) -> io::Result<()>;

    /// Waits until there may be an event, or CLOCK_MONOTONIC reaches `until_ns`.
    ///
    /// # Errors
    /// Errors of the kernel.
    fn wait(&mut self, until_ns: u64) -> io::Result<()>;
}
