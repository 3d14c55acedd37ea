//! Probing until the lines are known.
//!
//! 1. Probes of several sizes go to all hops in random order. What changes on the path meanwhile
//!    meets all sizes and hops alike.
//! 2. Now and then the lines are worked out. Hops at both ends of a line that is known well enough are
//!    not probed any more, and it ends when that is all of them, or time or bytes are spent.
//!
//! A hop that leaves probes unanswered is probed more seldom: routers limit how many they answer. One that
//! keeps answering at some pace, though not all, does not limit to less than that: packets are lost.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use plumb_model::results::capacity::CapacityEnd;
use rand::seq::SliceRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use rand_pcg::Pcg64Mcg;

use super::first_look::answer_bytes;
use super::known::{Hop, HopsPlan, Known, nanoseconds, probe};
use crate::path::retransmit::{LOOK_NS, is_loss};
use crate::path::{Answered, HopNetwork, ProbeId};

/// Cycles after which the lines are worked out for the first time, so that no chance ends it.
const LEAST_CYCLES: u64 = 6;

/// Probes from one working out of the lines to the next: so many, and this share of all until then, for it
/// takes the longer the more there are.
const LOOK_EVERY: u64 = 100;
const LOOK_SHARE: u64 = 10;

/// How much longer than a full packet takes over the lines to a hop it is to the next probe over them; and
/// by which share of it times vary.
const BESIDE: f64 = 1.2;
const JITTER: f64 = 0.3;

/// Answers that take longer than four of the longest round trips, and this, are not waited for.
const PATIENCE_NS: u64 = 300_000_000;

/// A hop that leaves this many of its last eight probes unanswered is probed as seldom as it answered, and
/// more seldom than before by this factor at least.
const MISSED: u32 = 2;
const SLOWER: f64 = 1.3;
/// The shortest and the longest time between the probes of such a hop, ns.
const SELDOM_FIRST_NS: u64 = 20_000_000;
const SELDOM_MOST_NS: u64 = 1_500_000_000;
/// So many answers from one slowing down to the next show a pace that is kept up. If all that the hop did were to
/// limit its answers, it would answer every probe that comes more seldom by this factor; where it does not,
/// slower is no better, and it is probed twice as fast as it answers.
const STEADY: u64 = 4;
const UNLIMITED: f64 = 1.25;

/// Probes until the lines are known, `stop` is set, it is `end_ns`, or the bytes of the plan are spent.
///
/// # Errors
/// Errors of the local kernel.
pub(super) fn sample(
    network: &mut impl HopNetwork,
    plan: &HopsPlan,
    end_ns: u64,
    stop: &AtomicBool,
    known: &mut Known,
    show: &mut dyn FnMut(usize, usize),
) -> io::Result<CapacityEnd> {
    let begun_ns = network.now_ns();
    for hop in &mut known.hops {
        hop.changed_ns = begun_ns;
    }
    let mut sampling = Sampling {
        network,
        plan,
        end_ns,
        stop,
        known,
        turn: 0,
        random: Pcg64Mcg::seed_from_u64(plan.seed),
        waiting: BTreeMap::new(),
    };
    let ended = sampling.run(show)?;
    sampling.drain()?;
    Ok(ended)
}

struct Sampling<'a, N> {
    network: &'a mut N,
    plan: &'a HopsPlan,
    end_ns: u64,
    stop: &'a AtomicBool,
    known: &'a mut Known,
    /// The place of the hop that is looked at first for the next probe.
    turn: usize,
    random: Pcg64Mcg,
    /// Probes out: the place of the hop, and when they were sent.
    waiting: BTreeMap<ProbeId, (usize, u64)>,
}

impl<N: HopNetwork> Sampling<'_, N> {
    /// Probes until it is enough.
    fn run(&mut self, show: &mut dyn FnMut(usize, usize)) -> io::Result<CapacityEnd> {
        let mut due_ns = self.network.now_ns();
        let mut looked_at = self.known.sent;
        loop {
            let now_ns = self.network.now_ns();
            if self.stop.load(Ordering::Relaxed) {
                return Ok(CapacityEnd::Stopped);
            }
            if now_ns >= self.end_ns {
                return Ok(CapacityEnd::Time);
            }
            if self
                .known
                .sent_bytes
                .saturating_add(self.plan.largest_bytes.into())
                > self.plan.bytes
            {
                return Ok(CapacityEnd::Bytes);
            }
            if self.known.sent >= looked_at + LOOK_EVERY.max(looked_at / LOOK_SHARE)
                || self.known.hops.iter().all(|hop| !hop.active)
            {
                looked_at = self.known.sent;
                let (known, of) = self.look();
                show(known, of);
                if known == of {
                    return Ok(CapacityEnd::Sure);
                }
            }
            if now_ns >= due_ns {
                self.send_next(now_ns)?;
                // Never in step with other periodic work, nor with the arrival of answers: a host that has just been
                // awake for one packet is quicker with the next, so that a fixed distance would favour packets of one
                // size. From half to one and a half of the distance.
                let share = self.random.random_range(0.5..1.5);
                let gap_ns = nanoseconds(self.plan.interval) as f64 * share;
                due_ns = due_ns.saturating_add(gap_ns as u64).max(now_ns);
            }
            let look_ns = now_ns.saturating_add(LOOK_NS);
            let until_ns = due_ns.min(self.end_ns).min(look_ns);
            if let Some(answered) = self.network.receive(until_ns)? {
                self.take(&answered);
            }
            let now_ns = self.network.now_ns();
            self.expire(now_ns);
        }
    }

    /// Takes the answers to what was sent last.
    fn drain(&mut self) -> io::Result<()> {
        let until_ns = self.network.now_ns().saturating_add(self.patience_ns());
        while !self.waiting.is_empty() && self.network.now_ns() < until_ns {
            if let Some(answered) = self.network.receive(until_ns)? {
                self.take(&answered);
            }
        }
        Ok(())
    }

    /// Sends the next probe to the next hop that is due, if one is.
    fn send_next(&mut self, now_ns: u64) -> io::Result<()> {
        let count = self.known.hops.len();
        let due = (0..count).map(|n| (self.turn + n) % count).find(|at| {
            self.known
                .hops
                .get(*at)
                .is_some_and(|hop| hop.active && hop.next_ns <= now_ns)
        });
        let Some(at) = due else {
            return Ok(());
        };
        self.turn = at + 1;
        let Some(hop) = self.known.hops.get_mut(at) else {
            return Ok(());
        };
        if hop.left.is_empty() {
            hop.left = hop.cycle.clone();
            hop.left.shuffle(&mut self.random);
        }
        let Some(size) = hop.left.pop() else {
            return Ok(());
        };
        let ttl = hop.found.ttl;
        hop.next_ns = hop.next_ns.max(now_ns.saturating_add(hop.interval_ns));
        self.keep_clear(at, now_ns);
        match self.network.send(&probe(ttl, size)) {
            Ok(id) => {
                self.known.count(1, size);
                self.waiting.insert(id, (at, now_ns));
                if let Some(hop) = self.known.hops.get_mut(at) {
                    hop.found.sent += 1;
                }
                Ok(())
            }
            Err(error) if is_loss(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// After a probe to a hop, the lines that the next probe to any hop shares with it must be free: all
    /// up to the nearer of the two.
    fn keep_clear(&mut self, at: usize, now_ns: u64) {
        let far_ns = self.known.takes_ns;
        let takes = |hop: &Hop| hop.takes_ns().unwrap_or(far_ns) as f64 * BESIDE;
        let takes_here = self.known.hops.get(at).map_or(0.0, takes);
        for (other, hop) in self.known.hops.iter_mut().enumerate() {
            let shared = if other < at { takes(hop) } else { takes_here };
            let varied = shared * (1.0 + JITTER * self.random.random::<f64>());
            hop.next_ns = hop.next_ns.max(now_ns.saturating_add(varied as u64));
        }
    }

    fn take(&mut self, answered: &Answered) {
        let Some((at, sent_ns)) = self.waiting.remove(&answered.id) else {
            return;
        };
        let now_ns = self.network.now_ns();
        self.known.longest_rtt_ns = self.known.longest_rtt_ns.max(nanoseconds(answered.rtt));
        let v4 = self.plan.target.is_ipv4();
        let Some(hop) = self.known.hops.get_mut(at) else {
            return;
        };
        hop.outcome(true, sent_ns, now_ns);
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
            if let Some(hop) = self.known.hops.get_mut(at) {
                hop.outcome(false, sent_ns, now_ns);
            }
        }
    }

    fn patience_ns(&self) -> u64 {
        self.known.longest_rtt_ns.saturating_mul(4).max(PATIENCE_NS)
    }

    /// Works the lines out, and probes only what more could be known of; how many are known of how
    /// many.
    fn look(&mut self) -> (usize, usize) {
        self.known.work_out();
        let mut wanted = vec![false; self.known.hops.len() + 1];
        let (mut known, mut of) = (0, 0);
        for (index, hop) in self.known.hops.iter().enumerate() {
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
        for (hop, wanted) in self.known.hops.iter_mut().zip(wanted.into_iter().skip(1)) {
            hop.active = wanted && !hop.cycle.is_empty();
        }
        (known, of)
    }
}

impl Hop {
    /// What a full packet takes to here, and its answer back, beyond a small one; ns.
    fn takes_ns(&self) -> Option<u64> {
        let (small, large) = self.least_ns;
        Some(large?.saturating_sub(small?))
    }

    /// A probe was answered, or will not be.
    fn outcome(&mut self, answered: bool, sent_ns: u64, now_ns: u64) {
        // Misses come to light late: probes sent before the last change are counted already.
        if sent_ns < self.changed_ns {
            return;
        }
        self.history = self.history << 1 | u8::from(answered);
        self.answered += u64::from(answered);
        let missed = self.history.count_zeros();
        if missed >= MISSED && !answered {
            let apart_ns = now_ns.saturating_sub(self.changed_ns) / self.answered.max(1);
            // Before it was first slowed down it may have spent what it saves up for bursts.
            if self.found.limited && self.answered >= STEADY {
                let least_ns = self.keeps_up_ns.unwrap_or(u64::MAX);
                self.keeps_up_ns = Some(apart_ns.min(least_ns));
            }
            self.found.limited = true;
            let interval_ns = self.interval_ns as f64;
            let loses = |pace_ns: &u64| interval_ns > UNLIMITED * *pace_ns as f64;
            self.interval_ns = match self.keeps_up_ns.filter(loses) {
                Some(pace_ns) => pace_ns / 2,
                None => ((interval_ns * SLOWER) as u64).max(apart_ns),
            }
            .clamp(SELDOM_FIRST_NS, SELDOM_MOST_NS);
            (self.history, self.answered, self.changed_ns) = (u8::MAX, 0, now_ns);
        } else if missed == 0 {
            self.interval_ns = self.interval_ns / 100 * 97;
        }
    }
}
