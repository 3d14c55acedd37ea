//! What several reflectors see of one line. Pure.
//!
//! Each has a baseline of its own, and the line's delay is what more than half of them have beyond theirs: of two, the
//! lower. One that is late, that answers by another route or that is gone changes nothing as long as others answer.

use std::collections::VecDeque;

use super::baseline::Baseline;

/// A reflector whose last answer is older than this does not count, in seconds.
pub(super) const FRESH_S: f64 = 2.0;

/// With fewer than this no majority contradicts a reflector, and two of its answers in a row have to agree.
const FEW: usize = 3;

/// What most reflectors saw of a line, or one of a direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Delay {
    /// Above what they have without a queue.
    pub(super) added_s: f64,
    /// When the probe was sent that saw it.
    pub(super) sent_s: f64,
}

impl Delay {
    /// The shorter of two.
    pub(super) fn shorter(self, other: Self) -> Self {
        match self.added_s <= other.added_s {
            true => self,
            false => other,
        }
    }
}

#[derive(Debug)]
pub(super) struct Reflectors(Vec<Reflector>);

#[derive(Debug, Default)]
struct Reflector {
    baseline: Baseline,
    /// When the last two answered probes were sent, and their round trips; the latest is last.
    last: VecDeque<(f64, f64)>,
}

impl Reflectors {
    pub(super) fn new(count: usize) -> Self {
        Self((0..count).map(|_| Reflector::default()).collect())
    }

    pub(super) fn answered(&mut self, number: usize, sent_s: f64, rtt_s: f64) {
        let valid = rtt_s.is_finite() && rtt_s >= 0.0;
        if let Some(reflector) = self.0.get_mut(number).filter(|_| valid) {
            reflector.answered(sent_s, rtt_s);
        }
    }

    /// How many of them answer now.
    pub(super) fn live(&self, now_s: f64) -> usize {
        let fresh = |reflector: &&Reflector| reflector.is_fresh(now_s);
        self.0.iter().filter(fresh).count()
    }

    /// What most of them saw last; none while none answers.
    pub(super) fn delay(&self, now_s: f64) -> Option<Delay> {
        let fresh = |reflector: &&Reflector| reflector.is_fresh(now_s);
        let live = || self.0.iter().filter(fresh);
        let agree = live().count() < FEW;
        let mut delays: Vec<Delay> = live().filter_map(|one| one.delay(agree)).collect();
        delays.sort_by(|a, b| a.added_s.total_cmp(&b.added_s));
        delays.get(delays.len().saturating_sub(1) / 2).copied()
    }

    /// The round trip without a queue to the one in the middle of those that answer; zero while none does.
    pub(super) fn rtt_s(&self, now_s: f64) -> f64 {
        let fresh = |reflector: &&Reflector| reflector.is_fresh(now_s);
        let live = self.0.iter().filter(fresh);
        let mut rtts: Vec<f64> = live.filter_map(|one| one.baseline.shortest_s()).collect();
        rtts.sort_by(f64::total_cmp);
        let middle = rtts.get(rtts.len().saturating_sub(1) / 2);
        middle.copied().unwrap_or(0.0)
    }

    /// What they saw last becomes what they have without a queue.
    pub(super) fn forget(&mut self, now_s: f64) {
        for reflector in &mut self.0 {
            if let Some(rtt_s) = reflector
                .last
                .iter()
                .map(|(_, rtt_s)| *rtt_s)
                .reduce(f64::min)
            {
                reflector.baseline.begin(now_s, rtt_s);
            }
        }
    }
}

impl Reflector {
    fn answered(&mut self, sent_s: f64, rtt_s: f64) {
        self.baseline.see(sent_s, rtt_s);
        // An answer that was overtaken is older news.
        if self.last.back().is_none_or(|(last_s, _)| *last_s < sent_s) {
            self.last.push_back((sent_s, rtt_s));
        }
        while self.last.len() > 2 {
            self.last.pop_front();
        }
    }

    fn is_fresh(&self, now_s: f64) -> bool {
        let last = self.last.back();
        last.is_some_and(|(sent_s, rtt_s)| now_s - (sent_s + rtt_s) < FRESH_S)
    }

    fn delay(&self, agree: bool) -> Option<Delay> {
        let baseline_s = self.baseline.shortest_s()?;
        let (sent_s, last_s) = *self.last.back()?;
        let rtt_s = match agree {
            true => self
                .last
                .iter()
                .map(|(_, rtt_s)| *rtt_s)
                .fold(last_s, f64::min),
            false => last_s,
        };
        Some(Delay {
            added_s: rtt_s - baseline_s,
            sent_s,
        })
    }
}
