//! Which hop to probe with which size, how often, and when it is enough. Time comes from the network,
//! which is a trait, so all of this runs in virtual time.
//!
//! 1. Small probes find who answers on the way, and large ones how much of them is quoted: above that
//!    size answers are all alike.
//! 2. A few probes to the furthest hop tell how long a full packet takes over all lines, so that probes
//!    follow each other slowly enough not to wait for each other; later each hop has a time of its own.
//! 3. Probes of several sizes go to all hops in random order. What changes on the path meanwhile
//!    meets all sizes and hops alike.
//! 4. Now and then the lines are worked out. Hops at both ends of a line that is known well enough are
//!    not probed any more, and it ends when that is all of them, or time or bytes are spent.
//!
//! A hop that leaves probes unanswered is probed more seldom: routers limit how many they answer.

use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use plumb_model::distribution::Distribution;
use plumb_model::results::capacity::CapacityEnd;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::fit::{Fit, OfSize, fit};
use super::lines::{LineFigures, lines};
use crate::path::rounds::{LOOK_NS, Rounds};
use crate::path::{Answer, AnswerKind, Answered, HopNetwork, Probe, ProbeId};

/// IP and ICMP headers of an error, and what a router quotes at most beside them: 576 bytes in all with
/// IPv4 (RFC 1812, section 4.3.2.3), 1280 with IPv6 (RFC 4443, section 2.4).
const fn error_headers_bytes(v4: bool) -> u16 {
    if v4 { 28 } else { 48 }
}
const fn most_quoted_bytes(v4: bool) -> u16 {
    if v4 { 576 - 28 } else { 1280 - 48 }
}

/// The smallest probe, whole IP packet: what bears plumb's mark, and a little more.
pub const fn smallest_bytes(v4: bool) -> u16 {
    if v4 { 64 } else { 84 }
}

/// Sizes in which answers must be alike for their slope to be of the way there, bytes.
const LEAST_RANGE_BYTES: u16 = 100;

/// How often each size comes in a cycle. The ends of the range tell the slope, the sizes between
/// whether it is a straight line; the smallest size, whose answer is small too, tells the way back.
const AT_ENDS: usize = 5;
const BETWEEN: u16 = 2;
const AT_SMALLEST: usize = 2;

/// Cycles after which the lines are worked out for the first time, so that no chance ends it.
const LEAST_CYCLES: u64 = 6;

/// Probes from one working out of the lines to the next: so many, and this share of all until then, for it
/// takes the longer the more there are.
const LOOK_EVERY: u64 = 100;
const LOOK_SHARE: u64 = 10;

/// Probes that tell how long a full packet takes, of each of two sizes.
const WARM_UP: u32 = 3;

/// Times that a probe is sent before it counts as lost, while it is found out who answers.
const TRIES: u32 = 3;

/// How much longer than a full packet takes over the lines to a hop it is to the next probe over them; and
/// by which share of it times vary.
const BESIDE: f64 = 1.2;
const JITTER: f64 = 0.3;

/// Answers that take longer than four of the longest round trips, and this, are not waited for.
const PATIENCE_NS: u64 = 300_000_000;

/// A hop that leaves this many of its last eight probes unanswered is probed more seldom, at least
/// every so often.
const MISSED: u32 = 2;
const SELDOM_FIRST_NS: u64 = 20_000_000;
const SELDOM_MOST_NS: u64 = 1_500_000_000;

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
    next_ns: u64,
    /// The least round trips of the smallest and of the largest packet.
    least_ns: (Option<u64>, Option<u64>),
    active: bool,
}

/// Whether the far end answers such probes.
///
/// # Errors
/// Those of our own machine; `Interrupted` when `stop` is set.
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
        .any(|answer| answer.is_arrival(target)))
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
    let started_ns = network.now_ns();
    let mut survey = Survey {
        plan,
        stop,
        hops: Vec::new(),
        reached: false,
        sent: 0,
        sent_bytes: 0,
        longest_rtt_ns: 0,
        takes_ns: 0,
        random: Pcg64Mcg::seed_from_u64(plan.seed),
        waiting: BTreeMap::new(),
        end_ns: started_ns.saturating_add(nanoseconds(plan.time)),
    };
    let ended = match survey.run(network, show) {
        Err(error) if error.kind() == io::ErrorKind::Interrupted => CapacityEnd::Stopped,
        ended => ended?,
    };
    survey.work_out();
    Ok(HopsFound {
        reached: survey.reached,
        ended,
        sent: survey.sent,
        sent_bytes: survey.sent_bytes,
        hops: survey.hops.into_iter().map(|hop| hop.found).collect(),
    })
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

struct Survey<'a> {
    plan: &'a HopsPlan,
    stop: &'a AtomicBool,
    hops: Vec<Hop>,
    reached: bool,
    sent: u64,
    sent_bytes: u64,
    longest_rtt_ns: u64,
    /// What a full packet takes over all lines, beyond a small one.
    takes_ns: u64,
    random: Pcg64Mcg,
    /// Probes out: the place of the hop, and when they were sent.
    waiting: BTreeMap<ProbeId, (usize, u64)>,
    end_ns: u64,
}

impl Survey<'_> {
    /// All of it; `Interrupted` when it is stopped before samples are taken.
    fn run(
        &mut self,
        network: &mut impl HopNetwork,
        show: &mut dyn FnMut(usize, usize),
    ) -> io::Result<CapacityEnd> {
        self.trace(network)?;
        self.sizes(network)?;
        self.warm_up(network)?;
        self.sample(network, show)
    }

    fn v4(&self) -> bool {
        self.plan.target.is_ipv4()
    }

    fn probe(&self, ttl: u8, size_bytes: u16) -> Probe {
        Probe {
            size_bytes,
            dont_fragment: true,
            ..Probe::to(ttl)
        }
    }

    /// Finds who answers small probes.
    fn trace(&mut self, network: &mut impl HopNetwork) -> io::Result<()> {
        let target = self.plan.target;
        let arrived = |answer: &Answer| answer.is_arrival(target);
        let small = smallest_bytes(self.v4());
        let probes: Vec<Probe> = (1..=self.plan.max_hops)
            .map(|ttl| self.probe(ttl, small))
            .collect();
        let answers = self.ask(network, &probes, |index, answers| {
            !answers.iter().take(index).flatten().any(arrived)
        })?;
        let first_arrival = answers
            .iter()
            .position(|answer| answer.as_ref().is_some_and(arrived));
        let last = answers.iter().rposition(Option::is_some);
        self.reached = first_arrival.is_some();
        let count = first_arrival.or(last).map_or(0, |at| at + 1);
        self.hops = (1..)
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
    fn sizes(&mut self, network: &mut impl HopNetwork) -> io::Result<()> {
        let small = smallest_bytes(self.v4());
        let mut size = self.plan.largest_bytes.max(small);
        // Each round is of a smaller size: as told by a router, or the next below that is common.
        const COMMON: [u16; 6] = [1492, 1400, 1280, 1000, 576, 256];
        for _ in 0..COMMON.len() {
            let open: Vec<usize> = self
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
                .filter_map(|at| Some(self.probe(self.hops.get(*at)?.found.ttl, size)))
                .collect();
            let answers = self.ask(network, &probes, |_, _| true)?;
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
        let (v4, small) = (self.v4(), smallest_bytes(self.v4()));
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
        if let Some(hop) = self.hops.get_mut(at) {
            hop.found.largest_bytes = Some(size);
            hop.found.answer_bytes = Some(answer_bytes);
            hop.cycle = cycle;
            hop.active = true;
        }
    }

    /// Finds how long a full packet takes over all lines, one at a time.
    fn warm_up(&mut self, network: &mut impl HopNetwork) -> io::Result<()> {
        let Some((ttl, size)) = self
            .hops
            .iter()
            .rev()
            .find_map(|hop| Some((hop.found.ttl, hop.found.largest_bytes?)))
        else {
            return Ok(());
        };
        let mut least = [u64::MAX; 2];
        for _ in 0..WARM_UP {
            for (least, size) in least.iter_mut().zip([size, smallest_bytes(self.v4())]) {
                let probe = self.probe(ttl, size);
                let Ok(id) = network.send(&probe) else {
                    continue;
                };
                self.sent += 1;
                self.sent_bytes += u64::from(size);
                let until_ns = network
                    .now_ns()
                    .saturating_add(nanoseconds(self.plan.timeout));
                while network.now_ns() < until_ns {
                    if self.stop.load(Ordering::Relaxed) {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    let look_ns = network.now_ns().saturating_add(LOOK_NS);
                    let Some(answered) = network.receive(until_ns.min(look_ns))? else {
                        continue;
                    };
                    if answered.id == id {
                        let rtt_ns = nanoseconds(answered.rtt);
                        *least = rtt_ns.min(*least);
                        self.longest_rtt_ns = self.longest_rtt_ns.max(rtt_ns);
                        break;
                    }
                }
            }
        }
        let [large, small] = least;
        if large < u64::MAX && small < u64::MAX {
            self.takes_ns = large.saturating_sub(small);
        }
        Ok(())
    }

    /// Probes until it is enough.
    fn sample(
        &mut self,
        network: &mut impl HopNetwork,
        show: &mut dyn FnMut(usize, usize),
    ) -> io::Result<CapacityEnd> {
        let mut turn = 0;
        let mut due_ns = network.now_ns();
        let mut looked_at = self.sent;
        let ended = loop {
            let now_ns = network.now_ns();
            if self.stop.load(Ordering::Relaxed) {
                break CapacityEnd::Stopped;
            }
            if now_ns >= self.end_ns {
                break CapacityEnd::Time;
            }
            if self
                .sent_bytes
                .saturating_add(self.plan.largest_bytes.into())
                > self.plan.bytes
            {
                break CapacityEnd::Bytes;
            }
            if self.sent >= looked_at + LOOK_EVERY.max(looked_at / LOOK_SHARE)
                || self.hops.iter().all(|hop| !hop.active)
            {
                looked_at = self.sent;
                let (known, of) = self.look();
                show(known, of);
                if known == of {
                    break CapacityEnd::Sure;
                }
            }
            if now_ns >= due_ns {
                self.send_next(network, &mut turn, now_ns)?;
                // Never in step with what else goes on, nor with when answers come: whoever has just
                // been awake for one packet is quicker with the next, so that a fixed distance would
                // favour packets of one size. From half to one and a half of it.
                let share = self.random.random_range(0.5..1.5);
                let gap_ns = nanoseconds(self.plan.interval) as f64 * share;
                due_ns = due_ns.saturating_add(gap_ns as u64).max(now_ns);
            }
            let look_ns = now_ns.saturating_add(LOOK_NS);
            let until_ns = due_ns.min(self.end_ns).min(look_ns);
            if let Some(answered) = network.receive(until_ns)? {
                self.take(&answered);
            }
            self.expire(network.now_ns());
        };
        let until_ns = network.now_ns().saturating_add(self.patience_ns());
        while !self.waiting.is_empty() && network.now_ns() < until_ns {
            if let Some(answered) = network.receive(until_ns)? {
                self.take(&answered);
            }
        }
        Ok(ended)
    }

    /// Sends the next probe to the next hop that is due, if one is.
    fn send_next(
        &mut self,
        network: &mut impl HopNetwork,
        turn: &mut usize,
        now_ns: u64,
    ) -> io::Result<()> {
        let count = self.hops.len();
        let due = (0..count).map(|n| (*turn + n) % count).find(|at| {
            self.hops
                .get(*at)
                .is_some_and(|hop| hop.active && hop.next_ns <= now_ns)
        });
        let Some(at) = due else {
            return Ok(());
        };
        *turn = at + 1;
        let random = &mut self.random;
        let Some(hop) = self.hops.get_mut(at) else {
            return Ok(());
        };
        if hop.left.is_empty() {
            hop.left = hop.cycle.clone();
            hop.left.shuffle(random);
        }
        let Some(size) = hop.left.pop() else {
            return Ok(());
        };
        let ttl = hop.found.ttl;
        hop.next_ns = hop.next_ns.max(now_ns.saturating_add(hop.interval_ns));
        self.keep_clear(at, now_ns);
        match network.send(&self.probe(ttl, size)) {
            Ok(id) => {
                self.sent += 1;
                self.sent_bytes += u64::from(size);
                self.waiting.insert(id, (at, now_ns));
                if let Some(hop) = self.hops.get_mut(at) {
                    hop.found.sent += 1;
                }
                Ok(())
            }
            Err(error) if crate::path::rounds::is_loss(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// After a probe to a hop, the lines that the next probe to any hop shares with it must be free: all
    /// up to the nearer of the two.
    fn keep_clear(&mut self, at: usize, now_ns: u64) {
        let far_ns = self.takes_ns;
        let takes = |hop: &Hop| hop.takes_ns().unwrap_or(far_ns) as f64 * BESIDE;
        let takes_here = self.hops.get(at).map_or(0.0, takes);
        for (other, hop) in self.hops.iter_mut().enumerate() {
            let shared = if other < at { takes(hop) } else { takes_here };
            let varied = shared * (1.0 + JITTER * self.random.random::<f64>());
            hop.next_ns = hop.next_ns.max(now_ns.saturating_add(varied as u64));
        }
    }

    fn take(&mut self, answered: &Answered) {
        let Some((at, _)) = self.waiting.remove(&answered.id) else {
            return;
        };
        self.longest_rtt_ns = self.longest_rtt_ns.max(nanoseconds(answered.rtt));
        let v4 = self.v4();
        let Some(hop) = self.hops.get_mut(at) else {
            return;
        };
        hop.outcome(true);
        if Some(answered.answer.from) != hop.found.address || answered.answer.mtu_bytes().is_some()
        {
            hop.found.others += 1;
            return;
        }
        hop.found.received += 1;
        let size = answered.probe.size_bytes;
        let back = answer_bytes(&answered.answer, size, v4);
        let samples = hop.samples.entry((size, back)).or_default();
        samples.push(answered.rtt.as_secs_f64());
        let rtt_ns = nanoseconds(answered.rtt);
        if Some(size) == hop.found.largest_bytes {
            hop.least_ns.1 = Some(hop.least_ns.1.map_or(rtt_ns, |least| least.min(rtt_ns)));
        } else if Some(&size) == hop.cycle.iter().min() {
            hop.least_ns.0 = Some(hop.least_ns.0.map_or(rtt_ns, |least| least.min(rtt_ns)));
        }
    }

    /// Probes that were not answered will not be.
    fn expire(&mut self, now_ns: u64) {
        let patience_ns = self.patience_ns();
        while let Some((id, (at, sent_ns))) = self.waiting.first_key_value().map(|(k, v)| (*k, *v))
            && now_ns.saturating_sub(sent_ns) > patience_ns
        {
            self.waiting.remove(&id);
            if let Some(hop) = self.hops.get_mut(at) {
                hop.outcome(false);
            }
        }
    }

    fn patience_ns(&self) -> u64 {
        self.longest_rtt_ns.saturating_mul(4).max(PATIENCE_NS)
    }

    /// Works the lines out, and probes only what more could be known of; how many are known of how
    /// many.
    fn look(&mut self) -> (usize, usize) {
        self.work_out();
        let mut wanted = vec![false; self.hops.len() + 1];
        let (mut known, mut of) = (0, 0);
        for (index, hop) in self.hops.iter().enumerate() {
            if hop.cycle.is_empty() {
                continue;
            }
            of += 1;
            let early = hop.found.received < LEAST_CYCLES * hop.cycle.len() as u64;
            if !early && !hop.found.line.open {
                known += 1;
                continue;
            }
            let ends = [Some(index + 1), hop.found.line.nearer];
            for end in ends.into_iter().flatten() {
                if let Some(wanted) = wanted.get_mut(end) {
                    *wanted = true;
                }
            }
        }
        for (hop, wanted) in self.hops.iter_mut().zip(wanted.into_iter().skip(1)) {
            hop.active = wanted && !hop.cycle.is_empty();
        }
        (known, of)
    }

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

    fn ask(
        &mut self,
        network: &mut impl HopNetwork,
        probes: &[Probe],
        wanted: impl Fn(usize, &[Option<Answer>]) -> bool,
    ) -> io::Result<Vec<Option<Answer>>> {
        let mut rounds = Rounds::new(network, TRIES, self.plan.timeout, self.stop);
        let answers = rounds.ask(probes, wanted);
        self.sent += rounds.sent;
        let size = probes.first().map_or(0, |probe| probe.size_bytes);
        self.sent_bytes += rounds.sent * u64::from(size);
        answers
    }
}

impl Hop {
    /// What a full packet takes to here, and its answer back, beyond a small one; ns.
    fn takes_ns(&self) -> Option<u64> {
        let (small, large) = self.least_ns;
        Some(large?.saturating_sub(small?))
    }

    /// A probe was answered, or will not be.
    fn outcome(&mut self, answered: bool) {
        self.history = self.history << 1 | u8::from(answered);
        let missed = self.history.count_zeros();
        if missed >= MISSED && !answered {
            self.found.limited = true;
            self.interval_ns = (self.interval_ns / 10 * 13).clamp(SELDOM_FIRST_NS, SELDOM_MOST_NS);
        } else if missed == 0 {
            self.interval_ns = self.interval_ns / 100 * 97;
        }
    }
}

/// The whole packet that came back for a probe of that size, in bytes. Without raw sockets it is what a
/// router may quote at most, which most do.
fn answer_bytes(answer: &Answer, size: u16, v4: bool) -> u16 {
    if answer.kind == AnswerKind::EchoReply {
        return size;
    }
    let quoted = match answer.quote.len() {
        0 => size.min(most_quoted_bytes(v4)),
        quoted => u16::try_from(quoted).unwrap_or(u16::MAX),
    };
    quoted.saturating_add(error_headers_bytes(v4))
}
