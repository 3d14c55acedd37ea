//! The first look at a path.
//!
//! 1. Small probes find who answers on the way, and large ones how much of them is quoted: above that
//!    size answers are all alike.
//! 2. A few probes to the furthest hop show how long a full packet takes over all lines, so that probes follow each
//!    other slowly enough not to wait for each other; later each hop has a time of its own.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::known::{Hop, HopFound, HopsPlan, Known, nanoseconds, probe};
use crate::path::retransmit::{LOOK_NS, Rounds};
use crate::path::{Answer, AnswerKind, HopNetwork, Probe};

/// IP and ICMP headers of an error, and what a router quotes at most beside them: 576 bytes in all with
/// IPv4 (RFC 1812, section 4.3.2.3), 1280 with IPv6 (RFC 4443, section 2.4).
const fn error_headers_bytes(v4: bool) -> u16 {
    if v4 { 28 } else { 48 }
}
const fn most_quoted_bytes(v4: bool) -> u16 {
    if v4 { 576 - 28 } else { 1280 - 48 }
}

/// The smallest probe, whole IP packet: what bears plumb's mark, and a little more.
const fn smallest_bytes(v4: bool) -> u16 {
    if v4 { 64 } else { 84 }
}

/// Sizes in which answers must be alike for their slope to be of the forward path, bytes.
const LEAST_RANGE_BYTES: u16 = 100;

/// How often each size comes in a cycle. The ends of the range determine the slope, the sizes between show whether it
/// is a straight line; the smallest size, whose answer is small too, shows the reverse path.
const AT_ENDS: usize = 5;
const BETWEEN: u16 = 2;
const AT_SMALLEST: usize = 2;

/// Probes that measure how long a full packet takes, of each of two sizes.
const WARM_UP: u32 = 3;

/// Times that a probe is sent before it counts as lost, while it is found out who answers.
const TRIES: u32 = 3;

/// Whether the far end answers such probes, or a router reports that it cannot be reached.
///
/// # Errors
/// Errors of the local kernel; `Interrupted` when `stop` is set.
pub fn answers(
    network: &mut impl HopNetwork,
    target: IpAddr,
    timeout: Duration,
    stop: &AtomicBool,
) -> io::Result<bool> {
    /// As most hosts send.
    const FAR_HOPS: u8 = 64;
    let small = Probe {
        size_bytes: smallest_bytes(target.is_ipv4()),
        ..Probe::to(FAR_HOPS)
    };
    let answers = Rounds::new(network, TRIES, timeout, stop).ask(&[small], |_, _| true)?;
    Ok(answers
        .iter()
        .flatten()
        .any(|answer| answer.is_arrival(target) || answer.nowhere(target).is_some()))
}

/// Finds out who answers, up to what size, and how long a full packet takes.
///
/// # Errors
/// Errors of the local kernel; `Interrupted` when it is stopped.
pub(super) fn first_look(
    network: &mut impl HopNetwork,
    plan: &HopsPlan,
    stop: &AtomicBool,
    known: &mut Known,
) -> io::Result<()> {
    let mut look = FirstLook {
        network,
        plan,
        stop,
        known,
    };
    look.trace()?;
    look.sizes()?;
    look.warm_up()
}

struct FirstLook<'a, N> {
    network: &'a mut N,
    plan: &'a HopsPlan,
    stop: &'a AtomicBool,
    known: &'a mut Known,
}

impl<N: HopNetwork> FirstLook<'_, N> {
    /// Finds who answers small probes.
    fn trace(&mut self) -> io::Result<()> {
        let target = self.plan.target;
        let arrived = |answer: &Answer| answer.is_arrival(target);
        let small = smallest_bytes(self.plan.target.is_ipv4());
        let probes: Vec<Probe> = (1..=self.plan.max_hops)
            .map(|ttl| probe(ttl, small))
            .collect();
        let answers = self.ask(&probes, |index, answers| {
            !answers.iter().take(index).flatten().any(arrived)
        })?;
        let first_arrival = answers
            .iter()
            .position(|answer| answer.as_ref().is_some_and(arrived));
        let last = answers.iter().rposition(Option::is_some);
        self.known.reached = first_arrival.is_some();
        if first_arrival.is_none() {
            let mut answers = answers.iter().flatten();
            self.known.nowhere = answers.find_map(|answer| answer.nowhere(target));
            if self.known.nowhere.is_some() {
                return Ok(());
            }
        }
        let count = first_arrival.or(last).map_or(0, |at| at + 1);
        self.known.hops = (1..)
            .zip(answers.into_iter().take(count))
            .map(|(ttl, answer)| Hop {
                found: HopFound {
                    ttl,
                    address: answer.map(|answer| answer.from),
                    ..HopFound::default()
                },
                history: u8::MAX,
                ..Hop::default()
            })
            .collect();
        Ok(())
    }

    /// Finds the largest probe that each hop answers, and how large answers are.
    fn sizes(&mut self) -> io::Result<()> {
        let small = smallest_bytes(self.plan.target.is_ipv4());
        let mut size = self.plan.largest_bytes.max(small);
        // Each round is of a smaller size: the one that a router reported, or the next smaller common one.
        const COMMON: [u16; 6] = [1492, 1400, 1280, 1000, 576, 256];
        for _ in 0..COMMON.len() {
            let open: Vec<usize> = self
                .known
                .hops
                .iter()
                .enumerate()
                .filter(|(_, hop)| hop.found.address.is_some() && hop.cycle.is_empty())
                .map(|(at, _)| at)
                .collect();
            if open.is_empty() || size <= small {
                break;
            }
            let probes: Vec<Probe> = open
                .iter()
                .filter_map(|at| Some(probe(self.known.hops.get(*at)?.found.ttl, size)))
                .collect();
            let answers = self.ask(&probes, |_, _| true)?;
            let mut told = None;
            for (at, answer) in open.into_iter().zip(answers) {
                let Some(answer) = answer else { continue };
                if let Some(mtu) = answer.mtu_bytes() {
                    told = told.max(u16::try_from(mtu).ok());
                    continue;
                }
                self.plan_sizes(at, size, &answer);
            }
            let next = COMMON.into_iter().find(|common| *common < size);
            let told = told.filter(|told| (small..size).contains(told));
            size = told.or(next).unwrap_or(small);
        }
        Ok(())
    }

    /// Plans the sizes for a hop that gave this answer to a probe of that size.
    fn plan_sizes(&mut self, at: usize, size: u16, answer: &Answer) {
        let v4 = self.plan.target.is_ipv4();
        let small = smallest_bytes(v4);
        let answer_bytes = answer_bytes(answer, size, v4);
        // A larger probe gets no larger answer, as far as this hop quotes.
        let quoted = answer_bytes.saturating_sub(error_headers_bytes(v4));
        let alike = answer.kind != AnswerKind::EchoReply
            && quoted.saturating_add(LEAST_RANGE_BYTES) <= size;
        let from = if alike { quoted.max(small) } else { small };
        let room = u32::from(size.saturating_sub(from));
        let mut cycle = vec![from; AT_ENDS];
        cycle.extend(
            (1..=BETWEEN).map(|n| from + (room * u32::from(n) / u32::from(BETWEEN + 1)) as u16),
        );
        cycle.extend([size; AT_ENDS]);
        if from > small {
            cycle.extend([small; AT_SMALLEST]);
        }
        if let Some(hop) = self.known.hops.get_mut(at) {
            hop.found.largest_bytes = Some(size);
            hop.found.answer_bytes = Some(answer_bytes);
            hop.cycle = cycle;
            hop.active = true;
        }
    }

    /// Finds how long a full packet takes over all lines, one at a time.
    fn warm_up(&mut self) -> io::Result<()> {
        let furthest = self.known.hops.iter().rev();
        let mut furthest =
            furthest.filter_map(|hop| Some((hop.found.ttl, hop.found.largest_bytes?)));
        let Some((ttl, size)) = furthest.next() else {
            return Ok(());
        };
        let small = smallest_bytes(self.plan.target.is_ipv4());
        let mut least = [u64::MAX; 2];
        for _ in 0..WARM_UP {
            for (least, size) in least.iter_mut().zip([size, small]) {
                if let Some(rtt_ns) = self.round_trip_ns(ttl, size)? {
                    *least = rtt_ns.min(*least);
                }
            }
        }
        let [large, small] = least;
        if large < u64::MAX && small < u64::MAX {
            self.known.takes_ns = large.saturating_sub(small);
        }
        Ok(())
    }

    /// How long one probe takes there and back; `None` where it is not answered.
    fn round_trip_ns(&mut self, ttl: u8, size: u16) -> io::Result<Option<u64>> {
        let Ok(id) = self.network.send(&probe(ttl, size)) else {
            return Ok(None);
        };
        self.known.count(1, size);
        let begun_ns = self.network.now_ns();
        let until_ns = begun_ns.saturating_add(nanoseconds(self.plan.timeout));
        while self.network.now_ns() < until_ns {
            if self.stop.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let look_ns = self.network.now_ns().saturating_add(LOOK_NS);
            let answered = self.network.receive(until_ns.min(look_ns))?;
            if let Some(answered) = answered.filter(|answered| answered.id == id) {
                let rtt_ns = nanoseconds(answered.rtt);
                self.known.longest_rtt_ns = self.known.longest_rtt_ns.max(rtt_ns);
                return Ok(Some(rtt_ns));
            }
        }
        Ok(None)
    }

    /// Asks all at once, with probes of one size.
    fn ask(
        &mut self,
        probes: &[Probe],
        wanted: impl Fn(usize, &[Option<Answer>]) -> bool,
    ) -> io::Result<Vec<Option<Answer>>> {
        let mut rounds = Rounds::new(self.network, TRIES, self.plan.timeout, self.stop);
        let answers = rounds.ask(probes, wanted);
        let size = probes.first().map_or(0, |probe| probe.size_bytes);
        self.known.count(rounds.sent, size);
        answers
    }
}

/// The whole packet that came back for a probe of that size, in bytes. Without raw sockets it is what a
/// router may quote at most, which most do.
pub(super) fn answer_bytes(answer: &Answer, size: u16, v4: bool) -> u16 {
    if answer.kind == AnswerKind::EchoReply {
        return size;
    }
    let quoted = match answer.quote.len() {
        0 => size.min(most_quoted_bytes(v4)),
        quoted => u16::try_from(quoted).unwrap_or(u16::MAX),
    };
    quoted.saturating_add(error_headers_bytes(v4))
}
