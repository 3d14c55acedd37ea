//! The search: from the largest size down to what gets to the far end, and how far each size gets.
//!
//! 1. Small probes find who answers on the way.
//! 2. Probes of one size go to every hop and to the far end at once. The furthest hop that answers shows how far that
//!    size gets.
//! 3. Where they end, a router may have reported a smaller size, which is tried next. Where it reported none, or is not
//!    listened to, sizes between are tried on the hop behind.
//!
//! It ends with a size that gets to the far end. A reported size is tried with one byte more, so that a forged report
//! cannot make the path seem narrower than it is (RFC 8899, section 4.6.1).

use std::io;
use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::path::retransmit::Rounds;
use crate::path::{Answer, AnswerKind, HopNetwork, Nowhere, Probe};
use plumb_wire::icmp_report::Report;

/// Hop limit of probes to the far end: as most hosts send.
const FAR_HOPS: u8 = 64;

/// Sizes tried at once: four rounds of them find a size between 68 and 1500 bytes to the byte.
const SIZES_AT_ONCE: u16 = 8;

/// No router may take less (RFC 791, section 3.1), so that a smaller reported size is a forgery, or the message is
/// older than RFC 1191.
const LEAST_TOLD_BYTES: u32 = 68;

/// The smallest size that is reported of a path: below it probes have no room for their mark.
const fn least_bytes(v4: bool) -> u16 {
    if v4 { 68 } else { 84 }
}

/// Times that the size which passes is probed again once a larger size is lost, to see that it is
/// the size which decides. Of probes that are lost by chance with any probability, three tries
/// each, at most one search in ninety then still takes chance for a size.
const CONTROLS: u32 = 6;

/// Different sizes along one path that are followed; each is smaller than the one before.
const MAX_LEVELS: usize = 16;

/// What to look for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MtuPlan {
    /// Address of the far end.
    pub target: IpAddr,
    /// The largest IP packet to try, in bytes.
    pub largest_bytes: u16,
    /// Whether to follow the sizes that routers report.
    pub listen: bool,
    /// How many hops to look at.
    pub max_hops: u8,
    /// Times that a probe is sent before it counts as lost.
    pub tries: u32,
    /// Longest wait for an answer.
    pub timeout: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The largest packet that gets to the far end, in bytes; `None` where it did not answer.
    pub path_mtu_bytes: Option<u16>,
    /// The hops, from the first.
    pub hops: Vec<FoundHop>,
    /// Sizes that routers reported and that were followed.
    pub told: u32,
    /// Drops that were found by silence.
    pub silent: u32,
    /// The last hop seen to be reached before the first drop that no router reported.
    pub black_hole_after: Option<u8>,
    pub sent: u64,
    /// Whether it was stopped before it had ended: what is here was known by then.
    pub stopped: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundHop {
    pub ttl: u8,
    pub address: Option<IpAddr>,
    /// The largest packet that is known to get there, in bytes.
    pub mtu_bytes: Option<u16>,
    /// The MTU that it reported of the line behind it, in bytes.
    pub told_mtu_bytes: Option<u32>,
}

/// Why nothing was found.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// It was stopped before anybody had answered.
    #[error("it was stopped before it was known which routers are on the path")]
    Stopped,
    #[error("nothing answered, neither the far end nor a router on the path")]
    Silence,
    #[error("{0}")]
    Nowhere(#[from] Nowhere),
    /// The far end answered, and then it did not any more.
    #[error("the path broke while it was measured: small packets were not answered any more")]
    Broken,
    /// Sending or receiving failed.
    #[error("{0}")]
    Local(#[from] io::Error),
}

/// How far probes of one size got.
#[derive(Debug, Default)]
struct Reach {
    /// The furthest hop that answered, if any beyond what was known.
    furthest: u8,
    /// Whether the far end did.
    arrived: bool,
    /// A router reported that they are too big: its address, and the size that it takes.
    told: Option<(IpAddr, u32)>,
}

/// Finds how large packets may be.
///
/// It ends within about `tries` times `timeout` for each of at most 7 rounds a drop in size, and a
/// tenth of a second after `stop` is set.
///
/// # Errors
/// When no hop answers, the path breaks meanwhile, a local system call fails, or it is stopped before the hops of the
/// path are known.
pub fn search(
    network: &mut impl HopNetwork,
    plan: &MtuPlan,
    stop: &AtomicBool,
) -> Result<Found, SearchError> {
    let mut search = Search {
        rounds: Rounds::new(network, plan.tries.max(1), plan.timeout, stop),
        plan,
        hops: Vec::new(),
        far_answers: false,
    };
    search.trace().map_err(|error| match is_stop(&error) {
        true => SearchError::Stopped,
        false => error,
    })?;
    let mut found = Found {
        path_mtu_bytes: None,
        hops: Vec::new(),
        told: 0,
        silent: 0,
        black_hole_after: None,
        sent: 0,
        stopped: false,
    };
    match search.descend(&mut found) {
        Err(error) if is_stop(&error) => found.stopped = true,
        Err(error) => return Err(error),
        Ok(()) => {}
    }
    found.hops = search.hops;
    found.sent = search.rounds.sent;
    Ok(found)
}

fn is_stop(error: &SearchError) -> bool {
    matches!(error, SearchError::Local(why) if why.kind() == io::ErrorKind::Interrupted)
}

/// Whether packets of a size get to the far end.
///
/// # Errors
/// Errors of the local kernel; `Interrupted` when it was stopped.
pub fn arrives(
    network: &mut impl HopNetwork,
    plan: &MtuPlan,
    size: u16,
    stop: &AtomicBool,
) -> io::Result<bool> {
    let mut rounds = Rounds::new(network, plan.tries.max(1), plan.timeout, stop);
    let answers = rounds.ask(&[probe(FAR_HOPS, size)], |_, _| true)?;
    let arrived = |answer: &Answer| answer.is_arrival(plan.target);
    Ok(answers.iter().flatten().any(arrived))
}

struct Search<'a, N> {
    rounds: Rounds<'a, N>,
    plan: &'a MtuPlan,
    /// Hops before the far end that answered or may have, from the first.
    hops: Vec<FoundHop>,
    far_answers: bool,
}

impl<N: HopNetwork> Search<'_, N> {
    /// Finds who answers small probes.
    fn trace(&mut self) -> Result<(), SearchError> {
        let target = self.plan.target;
        let arrived = |answer: &Answer| answer.is_arrival(target);
        let far = self.ask(&[probe(FAR_HOPS, 0)])?;
        self.far_answers = far.iter().flatten().any(arrived);
        let probes: Vec<Probe> = (1..=self.plan.max_hops)
            .map(|hops| probe(hops, 0))
            .collect();
        // A hop is of no interest behind one at which probes arrive.
        let answers = self.rounds.ask(&probes, |index, answers| {
            !answers.iter().take(index).flatten().any(arrived)
        })?;
        let first_arrival = answers
            .iter()
            .position(|answer| answer.as_ref().is_some_and(arrived));
        let last_answer = answers.iter().rposition(Option::is_some).map(|at| at + 1);
        self.far_answers |= first_arrival.is_some();
        if !self.far_answers {
            let mut all = answers.iter().chain(&far).flatten();
            if let Some(nowhere) = all.find_map(|answer| answer.nowhere(target)) {
                return Err(nowhere.into());
            }
        }
        // A hop that refuses to forward answers for all hops behind it.
        let refuses = |answer: &Answer| !arrived(answer) && answer.annotation().is_some();
        let refused = answers
            .iter()
            .position(|answer| answer.as_ref().is_some_and(refuses));
        let refused = refused.map(|at| at + 1);
        let routers = first_arrival.or(refused).or(last_answer).unwrap_or(0);
        self.hops = (1..)
            .zip(answers.iter().take(routers))
            .map(|(ttl, answer)| FoundHop {
                ttl,
                address: answer.as_ref().map(|answer| answer.from),
                mtu_bytes: None,
                told_mtu_bytes: None,
            })
            .collect();
        if !self.far_answers && self.hops.is_empty() {
            return Err(SearchError::Silence);
        }
        Ok(())
    }

    /// Goes from the largest size to one that gets to the end.
    fn descend(&mut self, found: &mut Found) -> Result<(), SearchError> {
        let (mut size, mut known_to) = (self.plan.largest_bytes, 0);
        for _ in 0..MAX_LEVELS {
            let reach = self.reach(size, known_to)?;
            let furthest = if reach.arrived {
                u8::MAX
            } else {
                reach.furthest.max(known_to)
            };
            self.takes(known_to, furthest, size);
            if reach.arrived || self.beyond(furthest).is_empty() {
                found.path_mtu_bytes = reach.arrived.then_some(size);
                break;
            }
            known_to = furthest;
            let teller = reach.told.and_then(|(from, bytes)| {
                self.remember(from, bytes);
                u16::try_from(bytes)
                    .ok()
                    .filter(|_| (LEAST_TOLD_BYTES..u32::from(size)).contains(&bytes))
            });
            let next = match teller {
                Some(next) if self.plan.listen => {
                    if self.passes(next.saturating_add(1), known_to, size)? {
                        // The reported size is less than the path takes.
                        let next = self.largest(next.saturating_add(1), size, known_to)?;
                        found.silent += u32::from(next < size);
                        next
                    } else {
                        found.told += 1;
                        next
                    }
                }
                _ => {
                    let next = self.largest(0, size, known_to)?;
                    found.silent += u32::from(next < size);
                    if next < size && reach.told.is_none() {
                        found.black_hole_after.get_or_insert(known_to);
                    }
                    next
                }
            };
            size = next;
        }
        Ok(())
    }

    /// How far probes of a size get, of which it is known that they get to hop `known_to`.
    fn reach(&mut self, size: u16, known_to: u8) -> io::Result<Reach> {
        let target = self.plan.target;
        let beyond = self.beyond(known_to);
        let probes: Vec<Probe> = beyond.iter().map(|hops| probe(*hops, size)).collect();
        let told = |answer: &Answer| answer.mtu_bytes().map(|bytes| (answer.from, bytes));
        let answers = self.rounds.ask(&probes, |index, answers| {
            // What is nearer than an answer is of no interest: it was passed.
            !answers.iter().skip(index).flatten().any(passed)
        })?;
        let furthest = beyond
            .iter()
            .zip(&answers)
            .filter(|(hops, answer)| **hops != FAR_HOPS && answer.as_ref().is_some_and(passed))
            .map(|(hops, _)| *hops)
            .max();
        Ok(Reach {
            furthest: furthest.unwrap_or(known_to),
            arrived: answers
                .iter()
                .flatten()
                .any(|answer| answer.is_arrival(target)),
            told: answers.iter().flatten().find_map(told),
        })
    }

    /// The largest size from `passes` to `limit` that gets behind hop `known_to`, where probes of
    /// `limit` bytes were not seen to: `limit` itself where they were only lost.
    fn largest(&mut self, passes: u16, limit: u16, known_to: u8) -> Result<u16, SearchError> {
        let (mut passes, mut fails) = (passes, limit);
        if passes == 0 {
            // If even the smallest does not pass any more, nothing can be said.
            passes = least_bytes(self.plan.target.is_ipv4()).min(limit.saturating_sub(1));
            if !self.passes(passes, known_to, limit)? {
                return Err(SearchError::Broken);
            }
        }
        while passes < limit {
            while fails.saturating_sub(passes) > 1 {
                let sizes = between(passes, fails);
                let through = self.pass(&sizes, known_to)?;
                let best = sizes.iter().zip(&through).rposition(|(_, passed)| *passed);
                let above = best.map_or(0, |at| at + 1);
                fails = sizes.get(above).copied().unwrap_or(fails);
                passes = best.and_then(|at| sizes.get(at).copied()).unwrap_or(passes);
            }
            // All tries of a size may be lost by chance. The one that decides is asked again.
            if !self.pass(&[fails], known_to)?.contains(&true) {
                // Where the size that passes is lost as well, something else than size decides: a
                // limit on answers, say.
                for _ in 0..CONTROLS {
                    if !self.pass(&[passes], known_to)?.contains(&true) {
                        return Err(SearchError::Broken);
                    }
                }
                break;
            }
            (passes, fails) = (fails, limit);
        }
        Ok(passes)
    }

    /// Whether packets of a size below `limit` get behind a hop.
    fn passes(&mut self, size: u16, known_to: u8, limit: u16) -> io::Result<bool> {
        Ok(size < limit && self.pass(&[size], known_to)?.contains(&true))
    }

    /// Which sizes, in ascending order, get behind a hop: to the next one that answers, or to the
    /// far end.
    fn pass(&mut self, sizes: &[u16], known_to: u8) -> io::Result<Vec<bool>> {
        let beyond = self.beyond(known_to);
        let mut aims: Vec<u8> = beyond.first().copied().into_iter().collect();
        aims.extend(beyond.last().filter(|last| aims.first() != Some(last)));
        let probes: Vec<Probe> = sizes
            .iter()
            .flat_map(|size| aims.iter().map(move |hops| probe(*hops, *size)))
            .collect();
        let aims = aims.len().max(1);
        let answers = self.rounds.ask(&probes, |index, answers| {
            // Smaller sizes than one that passed are of no interest, nor is the same again.
            let first_of_size = index / aims * aims;
            !answers.iter().skip(first_of_size).flatten().any(passed)
        })?;
        Ok(answers
            .chunks(aims)
            .map(|of_size| of_size.iter().flatten().any(passed))
            .collect())
    }

    /// Hop limits that lead to a hop that answers behind this one; the far end's is the last.
    fn beyond(&self, hop: u8) -> Vec<u8> {
        let far = self.far_answers.then_some(FAR_HOPS);
        let routers = self
            .hops
            .iter()
            .filter(|h| h.address.is_some())
            .map(|h| h.ttl);
        routers.filter(|ttl| *ttl > hop).chain(far).collect()
    }

    /// Hops behind `from` up to `to` take packets of that size.
    fn takes(&mut self, from: u8, to: u8, size: u16) {
        let hops = self.hops.iter_mut();
        for hop in hops.filter(|hop| hop.ttl > from && hop.ttl <= to) {
            hop.mtu_bytes = Some(size);
        }
    }

    /// A router reported the size that the line behind it takes.
    fn remember(&mut self, from: IpAddr, bytes: u32) {
        let mut hops = self.hops.iter_mut();
        if let Some(hop) = hops.find(|hop| hop.address == Some(from)) {
            hop.told_mtu_bytes.get_or_insert(bytes);
        }
    }

    fn ask(&mut self, probes: &[Probe]) -> io::Result<Vec<Option<Answer>>> {
        self.rounds.ask(probes, |_, _| true)
    }
}

fn probe(hops: u8, size: u16) -> Probe {
    Probe {
        size_bytes: size,
        dont_fragment: true,
        ..Probe::to(hops)
    }
}

/// Whether a probe got to where its hop limit or its way ended.
fn passed(answer: &Answer) -> bool {
    !matches!(
        answer.kind,
        AnswerKind::Icmp(Report::TooBig { .. } | Report::ParameterProblem(_))
    )
}

/// Sizes that cut the range between one that passes and one that does not into equal parts.
fn between(passes: u16, fails: u16) -> Vec<u16> {
    let room = fails - passes - 1;
    let count = room.min(SIZES_AT_ONCE);
    let span = u32::from(fails - passes);
    (1..=u32::from(count))
        .map(|n| passes + (n * span / (u32::from(count) + 1)) as u16)
        .collect()
}
