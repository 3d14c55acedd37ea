//! The truth about probes: when each came into the chain and when it left.

use std::collections::VecDeque;

use plumb_wire::probe_key::ProbeKey;
use serde::{Deserialize, Serialize};

use crate::time::Time;

/// Probes remembered at most (4.8 MB); the oldest is forgotten first.
const MOST_RECORDS: usize = 100_000;

/// A probe's passage through a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ProbeRecord {
    /// Identity of the probe packet.
    pub key: ProbeKey,
    /// When it came to the head of the chain, in nanoseconds of the laboratory's clock.
    #[serde(rename = "entered_ns")]
    pub entered: Time,
    /// When it left the end of the chain, as its driver noted it, in nanoseconds of the laboratory's clock. Null while
    /// it is inside, and when it was dropped.
    #[serde(rename = "left_ns")]
    pub left: Option<Time>,
}

/// The passages of the latest probes, in the order in which they came.
#[derive(Debug, Default)]
pub struct Recorder {
    records: VecDeque<ProbeRecord>,
    forgotten: u64,
}

impl Recorder {
    /// The passages that are remembered.
    pub fn records(&self) -> impl Iterator<Item = &ProbeRecord> {
        self.records.iter()
    }

    /// How many older ones are not.
    pub fn forgotten(&self) -> u64 {
        self.forgotten
    }

    /// Notes a probe that comes in; the number is for [`Self::leave`].
    pub(crate) fn enter(&mut self, key: ProbeKey, now: Time) -> u64 {
        if self.records.len() >= MOST_RECORDS {
            self.records.pop_front();
            self.forgotten += 1;
        }
        self.records.push_back(ProbeRecord {
            key,
            entered: now,
            left: None,
        });
        self.forgotten + self.records.len() as u64 - 1
    }

    pub(crate) fn leave(&mut self, number: u64, now: Time) {
        let index = number
            .checked_sub(self.forgotten)
            .and_then(|i| usize::try_from(i).ok());
        if let Some(record) = index.and_then(|i| self.records.get_mut(i)) {
            record.left = Some(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut recorder = Recorder::default();
        let count = MOST_RECORDS as u64 + 10;
        let numbers: Vec<u64> = (0..count)
            .map(|i| {
                recorder.enter(
                    ProbeKey::Udp {
                        session: 1,
                        seq: i as u32,
                    },
                    Time::from_nanos(i),
                )
            })
            .collect();
        for number in numbers {
            recorder.leave(number, Time::from_nanos(number + 5));
        }
        assert_eq!(
            (recorder.records().count(), recorder.forgotten()),
            (MOST_RECORDS, 10)
        );
        assert!(
            recorder
                .records()
                .all(|r| r.left == Some(Time::from_nanos(r.entered.as_nanos() + 5)))
        );
    }
}
