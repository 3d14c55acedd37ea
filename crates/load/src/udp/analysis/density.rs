//! Reorder density (RFC 5236, section 4): how many places late or early packets come.
//!
//! Arrivals are numbered, and the numbers of lost packets skipped; a packet's displacement is
//! the number of its arrival less its own. Whether a packet is lost is known [`THRESHOLD`]
//! arrivals later, so each arrival waits for so many others.

use std::collections::VecDeque;

use plumb_model::results::udp::Displacement;

use super::window::Window;

/// Displacement from which on a packet counts as lost: several times what a TCP takes for
/// reordering, and little enough to wait for.
pub(super) const THRESHOLD: usize = 64;

/// The displacements so far.
#[derive(Debug)]
pub(super) struct Density {
    waiting: VecDeque<u64>,
    /// Number of the next arrival (RFC 5236, "receive index").
    receive_index: u64,
    /// From −[`THRESHOLD`] to [`THRESHOLD`].
    counts: Vec<u64>,
}

impl Default for Density {
    fn default() -> Self {
        Self {
            waiting: VecDeque::with_capacity(THRESHOLD + 1),
            receive_index: 0,
            counts: vec![0; 2 * THRESHOLD + 1],
        }
    }
}

impl Density {
    /// A packet came that is no duplicate; `window` knows of it.
    pub(super) fn arrive(&mut self, sequence: u64, window: &Window) {
        self.waiting.push_back(sequence);
        if self.waiting.len() > THRESHOLD
            && let Some(first) = self.waiting.pop_front()
        {
            self.place(first, window);
        }
    }

    pub(super) fn finish(&mut self, window: &Window) {
        while let Some(first) = self.waiting.pop_front() {
            self.place(first, window);
        }
    }

    fn place(&mut self, sequence: u64, window: &Window) {
        // What has not come by now is lost, and its number skipped. Below the window it is not
        // known, and not looked for: a jump can be longer than any loop should be.
        if self.receive_index != sequence {
            self.skip_lost(window);
        }
        let threshold = THRESHOLD as i128;
        let displacement = i128::from(self.receive_index) - i128::from(sequence);
        if displacement > threshold {
            // It was taken for lost, and its number skipped before.
            return;
        }
        let index = usize::try_from(displacement + threshold).unwrap_or(usize::MAX);
        if let Some(count) = self.counts.get_mut(index) {
            *count += 1;
        }
        self.receive_index += 1;
    }

    fn skip_lost(&mut self, window: &Window) {
        self.receive_index = self.receive_index.max(window.base());
        while self.receive_index < window.next() && !window.came(self.receive_index) {
            self.receive_index += 1;
        }
    }

    /// The shares above zero.
    pub(super) fn shares(&self) -> Vec<Displacement> {
        let all: u64 = self.counts.iter().sum();
        self.counts
            .iter()
            .zip(-(THRESHOLD as i32)..)
            .filter(|(count, _)| **count > 0)
            .map(|(count, places)| Displacement {
                places,
                packets_ratio: *count as f64 / all as f64,
            })
            .collect()
    }
}
