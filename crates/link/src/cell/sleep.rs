//! A radio that sleeps when nothing has passed for a while: what comes next waits until it is awake, and what follows
//! does not (DRX and the state RRC_IDLE of 3GPP TS 36.331, power saving of IEEE 802.11).

use std::time::Duration;

use plumb_model::units::duration_text;
use serde::{Deserialize, Serialize};

use crate::cell::timed::Timing;
use crate::packet::Packet;
use crate::segment::Crossing;
use crate::settings::Settings;
use crate::stats::DropCause;
use crate::time::Time;

/// `{ type = "sleep", after = "10s", wakes = "300ms" }`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SleepSpec {
    /// How long nothing passes before it sleeps.
    #[serde(with = "duration_text")]
    pub after: Duration,
    /// How long it takes to wake up.
    #[serde(with = "duration_text")]
    pub wakes: Duration,
}

impl Settings for SleepSpec {
    fn check(&self) -> Result<(), String> {
        if self.after.is_zero() {
            return Err("a radio that never stays awake passes nothing: give after".into());
        }
        Ok(())
    }
}

/// The radio of one direction. It sleeps at first.
pub(crate) struct Sleep {
    spec: SleepSpec,
    /// When it is, or was, awake.
    awake: Time,
    /// When it sleeps unless something comes.
    sleeps: Time,
}

impl Sleep {
    pub(crate) fn new(spec: SleepSpec) -> Self {
        Self {
            spec,
            awake: Time::ZERO,
            sleeps: Time::ZERO,
        }
    }
}

impl Timing for Sleep {
    type Spec = SleepSpec;

    fn departure(&mut self, now: Time, _: &Packet) -> Result<Time, DropCause> {
        if now >= self.sleeps {
            self.awake = now + self.spec.wakes;
        }
        let leaves = now.max(self.awake);
        self.sleeps = leaves + self.spec.after;
        Ok(leaves)
    }

    fn may_overtake(&self) -> bool {
        false
    }

    fn crossing(&self) -> Crossing {
        Crossing::Whole
    }

    fn reconfigure(&mut self, _: Time, spec: SleepSpec) {
        self.spec = spec;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::packet::tests::udp;
    use crate::spec::CellSpec;

    #[test]
    fn only_what_comes_first_after_a_silence_waits() {
        let pairs = [("after", "2s"), ("wakes", "300ms")];
        let spec = CellSpec::from_pairs("sleep", &pairs).unwrap();
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut cell = spec.build(1, Time::ZERO).own();
        let mut waits = |at: u64| {
            cell.enqueue(ms(at), udp(100, 1, 0));
            let (leaves, _) = cell.dequeue(Time::MAX).unwrap();
            leaves.as_nanos() / 1_000_000 - at
        };
        // Asleep at first; what comes while it wakes up leaves together with the first; awake for 2 s from there on.
        let times = [100, 250, 400, 2399, 4398, 6398, 6698, 9000];
        assert_eq!(times.map(&mut waits), [300, 150, 0, 0, 0, 300, 0, 300]);
        assert!(spec.with(&[("after", "0s")]).is_err());
    }
}
