//! How long the parts of a plan last, by how thorough a check is to be.

use std::time::Duration;

use plumb_model::goal::Effort;
use plumb_model::results::Direction;

use crate::idle::{AFTER, IDLE};

/// What is kept at the end of a check whose time is limited: a far end that falls silent in the last phase is noticed
/// after 5 s (`SILENCE_TIMEOUT`), and the Run is judged. What the last phase takes [around it](AROUND) is within that.
pub(crate) const CLOSING: Duration = Duration::from_millis(5500);

/// What a phase takes beyond its length: it begins and is reported (a few round trips), and its queue empties, of which
/// 700 ms are long.
const AROUND: Duration = Duration::from_millis(1200);

/// Both directions at once after each alone: 24 round trips of 250 ms, which an all-clear needs (`verdict::requirements`), and
/// 8 s less than a direction alone, so that experiments have time for what shows only then.
const BOTH: Duration = Duration::from_secs(6);

/// A phase shorter than this shows no steady rate on any path (`lengths::steady_s`).
const LEAST: Duration = Duration::from_secs(4);

/// How long the parts of a plan last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// The idle path, before any load.
    pub idle: Duration,
    /// Each phase with one direction loaded.
    pub phase: Duration,
    /// The phase with both.
    pub both: Duration,
    /// The path after the load.
    pub after: Duration,
    /// All experiments together, however many there are.
    pub experiments: Duration,
    /// Everything together, from when the verb began; `None` where there is no limit.
    pub total: Option<Duration>,
}

impl Times {
    /// Phases of equal length, and no limit on the whole.
    pub const fn of_phases(phase: Duration) -> Self {
        Self {
            idle: IDLE,
            phase,
            both: phase,
            after: AFTER,
            experiments: Duration::from_secs(20),
            total: None,
        }
    }

    /// The times of a check. A queue of 700 ms takes CUBIC ten seconds to fill, and an all-clear needs phases of 14 s
    /// (`lengths::QUEUE_S`). Where experiments are needed there is no all-clear, and both at once have what is left.
    pub const fn of(effort: Effort) -> Self {
        match effort {
            Effort::Quick => Self {
                idle: Duration::from_millis(1500),
                phase: LEAST,
                both: Duration::ZERO,
                after: Duration::ZERO,
                experiments: Duration::from_secs(6),
                total: Some(Duration::from_secs(20)),
            },
            Effort::Usual => Self {
                // 210 probes, of which an all-clear needs 188.
                idle: Duration::from_millis(4200),
                phase: Duration::from_millis(14_200),
                both: BOTH,
                after: AFTER,
                experiments: Duration::from_secs(14),
                total: Some(Duration::from_secs(60)),
            },
            Effort::Thorough => Self {
                idle: Duration::from_secs(10),
                phase: Duration::from_secs(40),
                both: Duration::from_secs(30),
                after: Duration::from_secs(5),
                experiments: Duration::from_secs(50),
                total: Some(Duration::from_secs(300)),
            },
        }
    }

    /// How long the phase of a direction is to be; without a direction, the phase of applications alone.
    pub fn of_phase(&self, direction: Option<Direction>) -> Duration {
        match direction {
            Some(Direction::Both) => self.both,
            _ => self.phase,
        }
    }

    /// What a phase weighs for the budget: milliseconds of one direction, of which both at once have two.
    pub(crate) fn weight(&self, direction: Direction) -> u64 {
        let directions = match direction {
            Direction::Both => 2,
            Direction::Up | Direction::Down => 1,
        };
        let ms = self.of_phase(Some(direction)).as_millis();
        u64::try_from(ms).unwrap_or(u64::MAX / 8) * directions
    }

    /// What is kept for both directions at once, so that an all-clear is possible: all that they need where either alone left
    /// nothing open, and nothing where there will be none.
    pub(crate) fn room_for_both(&self, settled: bool) -> Duration {
        match settled {
            true => self.both + AROUND,
            false => Duration::ZERO,
        }
    }

    /// How long the first of some phases may be, when so much time is left for all of them; `None` where it would be too
    /// short to show anything. Phases with one direction have what there is in equal parts, before that with both.
    pub(crate) fn room(
        &self,
        phases: &[Option<Direction>],
        left: Option<Duration>,
    ) -> Option<Duration> {
        let first = *phases.first()?;
        let planned = self.of_phase(first);
        let Some(left) = left else {
            return Some(planned);
        };
        let sharing = match first {
            Some(Direction::Both) => 1,
            _ => {
                let alone = phases.iter().filter(|d| **d != Some(Direction::Both));
                u32::try_from(alone.count()).unwrap_or(u32::MAX)
            }
        };
        let left = (left + AROUND).saturating_sub(CLOSING) / sharing.max(1);
        let room = planned.min(left.saturating_sub(AROUND));
        (room >= LEAST.min(planned)).then_some(room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHECK: [Option<Direction>; 3] = [
        Some(Direction::Up),
        Some(Direction::Down),
        Some(Direction::Both),
    ];

    fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn phases_are_whole_where_there_is_time_and_equal_where_there_is_less() {
        let times = Times::of(Effort::Usual);
        assert_eq!(times.room(&CHECK, Some(s(50))), Some(times.phase));
        assert_eq!(times.room(&CHECK, None), Some(times.phase));
        let Some(short) = times.room(&CHECK, Some(s(30))) else {
            panic!("too short");
        };
        assert_eq!(short, (s(30) + AROUND - CLOSING) / 2 - AROUND);
        assert_eq!(times.room(&CHECK[2..], Some(s(30))), Some(times.both));
        assert_eq!(times.room(&CHECK[2..], Some(s(9))), None);
        assert_eq!(times.room(&CHECK, Some(s(10))), None);
        // What comes before the loads of a quick check may take two seconds longer than on most machines.
        let quick = Times::of(Effort::Quick);
        let left = Duration::from_millis(14_900);
        assert_eq!(quick.room(&CHECK[..2], Some(left)), Some(quick.phase));
    }

    /// Phases are whole where what comes before them takes no longer than on most paths.
    #[test]
    fn everything_together_keeps_to_its_time() {
        for (effort, before) in [
            (Effort::Quick, s(2)),
            (Effort::Usual, s(3)),
            (Effort::Thorough, s(30)),
        ] {
            let times = Times::of(effort);
            let alone = times.phase * 2 + AROUND * 2;
            let both = match times.both.is_zero() {
                true => Duration::ZERO,
                false => times.both + AROUND,
            };
            let all = before + times.idle + alone + both + CLOSING;
            assert!(Some(all) <= times.total, "{effort:?}: {all:?}");
        }
    }
}
