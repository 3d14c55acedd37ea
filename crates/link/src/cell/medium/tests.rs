//! A segment to try, with both its ends in one hand.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::spec::AnyCell;
use std::collections::BTreeMap;

use super::Medium;
use crate::packet::tests::udp;
use crate::random::Random;
use crate::spec::CellSpec;
use crate::time::Time;

pub(super) struct Segment {
    spec: CellSpec,
    seed: u64,
    ends: [Box<dyn AnyCell>; 2],
}

fn ns(ns: u64) -> Time {
    Time::from_nanos(ns)
}

impl Segment {
    pub(super) fn new(kind: &str, pairs: &[(&str, &str)], seed: u64) -> Self {
        let spec = CellSpec::from_pairs(kind, pairs).unwrap();
        let ends = spec.build(seed, Time::ZERO).ends();
        Self { spec, seed, ends }
    }

    pub(super) fn send(&mut self, side: usize, at: u64, size: usize) {
        self.ends[side].enqueue(ns(at), udp(size, 1, 0));
    }

    /// Sends until this many packets are inside.
    pub(super) fn fill(&mut self, side: usize, at: u64, size: usize, packets: u64) {
        while self.ends[side].backlog().packets < packets {
            self.send(side, at, size);
        }
    }

    /// Takes out what has left by then; returns its bytes.
    pub(super) fn collect(&mut self, side: usize, at: u64) -> u64 {
        let out = std::iter::from_fn(|| self.ends[side].dequeue(ns(at)));
        out.map(|(_, packet)| packet.data.len() as u64).sum()
    }

    pub(super) fn departures(&mut self, side: usize) -> Vec<u64> {
        std::iter::from_fn(|| self.ends[side].dequeue(ns(1 << 50)))
            .map(|(at, _)| at.as_nanos())
            .collect()
    }

    pub(super) fn set(&mut self, side: usize, at: u64, pairs: &[(&str, &str)]) {
        let spec = self.spec.with(pairs).unwrap();
        self.ends[side].set(ns(at), &spec);
    }

    pub(super) fn drops(&mut self) -> [BTreeMap<String, u64>; 2] {
        [0, 1].map(|side| self.ends[side].stats(ns(1 << 50), "x").dropped)
    }

    /// The cause of each side's only drop.
    pub(super) fn dropped(&mut self) -> [Option<&'static str>; 2] {
        self.drops().map(|causes| {
            let known = ["excessive_collisions", "late_collision", "fcs_error"];
            assert!(causes.values().sum::<u64>() <= 1, "{causes:?}");
            known.into_iter().find(|cause| causes.contains_key(*cause))
        })
    }

    /// The slots that the stations draw after their first collision.
    pub(super) fn first_backoffs(&self) -> [u64; 2] {
        [0, 1].map(|side| Random::new(Medium::seed_of(self.seed, side)).below_power_of_two(1))
    }
}

/// The stations' own numbers are not each other's.
#[test]
fn stations_draw_for_themselves() {
    let draws = |side| {
        let mut random = Random::new(Medium::seed_of(7, side));
        (0..10)
            .map(|_| random.below_power_of_two(10))
            .collect::<Vec<_>>()
    };
    assert_ne!(draws(0), draws(1));
    assert!(draws(0).iter().all(|slots| *slots < 1024));
}
