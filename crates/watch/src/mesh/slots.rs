//! When paths of a mesh are loaded: a slot for each ordered pair of members, so that no two loads of the mesh run together. Pure;
//! all members compute the same table from the same file, and times are of the time of day (UTC), which they have to agree on
//! to [`Table::tolerance`].

use std::time::Duration;

/// A load begins so long after its slot does at most: the schedule is looked at five times a second.
pub(crate) const LATEST: Duration = Duration::from_secs(2);

/// Two members' clocks may differ by this at least. Without NTP a clock drifts by a second a day, and with it by less than 0.1 s.
const LEAST_TOLERANCE: Duration = Duration::from_secs(2);

/// Frames repeat in it, so that a slot is the same time each day.
const DAY: Duration = Duration::from_secs(86_400);

/// A time within each frame; frames follow each other without a gap from 1970 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// After the beginning of a frame, µs.
    pub offset_us: i64,
    /// The length of a frame, µs.
    pub frame_us: i64,
}

/// The slots of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Table {
    members: usize,
    /// Probes that load the path.
    heavy: usize,
    frame: Duration,
    /// How long one load takes at most, from the beginning of its slot.
    longest: Duration,
}

impl Table {
    /// A table of so many members that load each path by so many probes in each frame.
    ///
    /// # Errors
    /// When a frame has no room for that: why, in words.
    pub fn new(
        members: usize,
        heavy: usize,
        frame: Duration,
        longest: Duration,
    ) -> Result<Self, String> {
        let table = Self {
            members,
            heavy,
            frame,
            longest: longest + LATEST,
        };
        if table.count() == 0 {
            return Ok(table);
        }
        if frame.is_zero() || !DAY.as_nanos().is_multiple_of(frame.as_nanos()) {
            return Err("what loads paths is measured every 24h, or a whole part of it such as 12h, so that its time is the same each day".to_owned());
        }
        let (slot, least) = (table.slot_length(), table.longest + LEAST_TOLERANCE);
        if slot < least {
            let needed = least.saturating_mul(table.count());
            return Err(format!(
                "{} loads one after the other, each of {:.0} s at most, take {:.1} h, and are to be done every {:.1} h: measure \
                 more seldom, for shorter (lasts), or by fewer probes",
                table.count(),
                least.as_secs_f64(),
                needed.as_secs_f64() / 3600.0,
                frame.as_secs_f64() / 3600.0
            ));
        }
        Ok(table)
    }

    /// How many slots a frame has: one for each ordered pair and probe.
    fn count(&self) -> u32 {
        let pairs = self.members.saturating_mul(self.members.saturating_sub(1));
        u32::try_from(pairs.saturating_mul(self.heavy)).unwrap_or(u32::MAX)
    }

    /// How long a slot is, to the whole millisecond, so that all members compute the same.
    pub fn slot_length(&self) -> Duration {
        let count = u128::from(self.count().max(1));
        Duration::from_millis(u64::try_from(self.frame.as_millis() / count).unwrap_or(u64::MAX))
    }

    /// By how much the clocks of two members may differ before loads overlap.
    pub fn tolerance(&self) -> Duration {
        self.slot_length().saturating_sub(self.longest)
    }

    /// Whether any path is loaded.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The slot in which member `from` loads the path to member `to` by that probe; `None` where there is no such.
    ///
    /// Neighbours in time have different sources, so that a host rests between its loads.
    pub fn slot(&self, from: usize, to: usize, heavy: usize) -> Option<Slot> {
        let known = from < self.members && to < self.members && heavy < self.heavy;
        if !known || from == to {
            return None;
        }
        // A round has each member once as the source, and the distance to its destination is the round's.
        let distance = (to + self.members - from) % self.members;
        let round = heavy * (self.members - 1) + (distance - 1);
        let index = u64::try_from(round * self.members + from).ok()?;
        let offset_ms = u128::from(index) * self.slot_length().as_millis();
        Some(Slot {
            offset_us: i64::try_from(offset_ms * 1000).ok()?,
            frame_us: i64::try_from(self.frame.as_micros()).ok()?,
        })
    }
}

/// What is due in its slot, by the time of day. A slot that was missed, because the machine slept or its clock was set, is left
/// out until the next frame.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    /// Places of targets with their slots.
    slots: Vec<(usize, Slot)>,
    /// Until when slots were taken, µs since 1970.
    seen_us: i64,
}

impl Slots {
    pub(crate) fn new(slots: Vec<(usize, Slot)>, now_us: i64) -> Self {
        Self {
            slots,
            seen_us: now_us,
        }
    }

    /// The places whose slots began since they were taken last, and no longer than [`LATEST`] ago.
    pub(crate) fn take(&mut self, now_us: i64) -> Vec<usize> {
        let latest_us = i64::try_from(LATEST.as_micros()).unwrap_or(i64::MAX);
        // A clock that was set back begins anew: slots are of the time of day.
        let seen_us = self.seen_us.min(now_us).max(now_us - latest_us);
        self.seen_us = now_us;
        let began = |slot: &Slot| {
            let in_frame = (now_us - slot.offset_us).rem_euclid(slot.frame_us.max(1));
            now_us - in_frame
        };
        let due = self.slots.iter().filter(|(_, slot)| {
            let began_us = began(slot);
            seen_us < began_us && began_us <= now_us
        });
        due.map(|(place, _)| *place).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    /// Begin and end of all loads of a frame, sorted, where members' clocks are off by what `off_us` says.
    fn loads(table: &Table, off_us: impl Fn(usize) -> i64) -> Vec<(i64, i64)> {
        let longest_us = i64::try_from(table.longest.as_micros()).unwrap();
        let mut all = Vec::new();
        for from in 0..table.members {
            for to in 0..table.members {
                for heavy in 0..table.heavy {
                    let slot = table.slot(from, to, heavy);
                    assert_eq!(slot.is_none(), from == to);
                    let begin = slot.map(|slot| slot.offset_us + off_us(from));
                    all.extend(begin.map(|begin| (begin, begin + longest_us)));
                }
            }
        }
        all.sort_unstable();
        all
    }

    fn never_overlap(all: &[(i64, i64)], frame_us: i64) -> bool {
        let wraps = match (all.first(), all.last()) {
            (Some((begin, _)), Some((_, end))) => *end <= begin + frame_us,
            _ => true,
        };
        wraps && all.windows(2).all(|pair| pair[0].1 <= pair[1].0)
    }

    const FRAME_US: i64 = 86_400_000_000;

    #[test]
    fn fifty_members_load_2450_paths_a_day_and_never_two_at_once() {
        let table = Table::new(50, 1, DAY, Duration::from_secs(20)).unwrap();
        let all = loads(&table, |_| 0);
        assert_eq!(all.len(), 2450);
        assert!(never_overlap(&all, FRAME_US));
        assert_eq!(table.slot_length(), Duration::from_millis(35_265));
        assert_eq!(table.tolerance(), Duration::from_millis(13_265));
        // They are spread over the day: an hour has its share.
        let hours: Vec<usize> = (0..24)
            .map(|hour| {
                all.iter()
                    .filter(|(at, _)| at / 3_600_000_000 == hour)
                    .count()
            })
            .collect();
        assert!(
            hours.iter().all(|count| (102..=103).contains(count)),
            "{hours:?}"
        );
    }

    proptest! {
        #[test]
        fn loads_never_overlap_while_clocks_agree_to_the_tolerance(
            members in 2usize..=50,
            heavy in 1usize..3,
            longest_s in 5u64..60,
            seed in any::<u64>(),
        ) {
            let Ok(table) = Table::new(members, heavy, DAY, Duration::from_secs(longest_s)) else {
                return Ok(());
            };
            let tolerance_us = i64::try_from(table.tolerance().as_micros()).unwrap();
            // Each clock is off by no more than half, so that two differ by no more than the whole.
            let off_us = |member: usize| {
                let mixed = seed.wrapping_mul(2 * member as u64 + 1).rotate_left(17);
                i64::try_from(mixed % (tolerance_us as u64 / 2 + 1)).unwrap() * if mixed & 1 == 0 { 1 } else { -1 }
            };
            let all = loads(&table, off_us);
            prop_assert_eq!(all.len(), members * (members - 1) * heavy);
            prop_assert!(never_overlap(&all, FRAME_US));
            let begins: BTreeSet<i64> = loads(&table, |_| 0).iter().map(|load| load.0).collect();
            prop_assert_eq!(begins.len(), all.len());
        }

        #[test]
        fn a_slot_is_taken_once_a_frame(offset_ms in 0i64..60_000, step_ms in 1i64..1500) {
            let slot = Slot { offset_us: offset_ms * 1000, frame_us: 60_000_000 };
            let mut slots = Slots::new(vec![(7, slot)], -1);
            let mut taken = Vec::new();
            for at_ms in (0..600_000).step_by(step_ms as usize) {
                taken.extend(slots.take(at_ms * 1000).iter().map(|_| at_ms));
            }
            let expected = (0..10).filter(|frame| {
                let begin_ms = frame * 60_000 + offset_ms;
                begin_ms <= (600_000 - 1) / step_ms * step_ms
            }).count();
            prop_assert_eq!(taken.len(), expected);
            prop_assert!(taken.iter().all(|at| (at - offset_ms).rem_euclid(60_000) < step_ms));
        }
    }

    #[test]
    fn clocks_that_differ_by_more_than_the_tolerance_are_seen_to_overlap() {
        let table = Table::new(3, 1, DAY, Duration::from_secs(20)).unwrap();
        let over_us = i64::try_from(table.tolerance().as_micros()).unwrap() + 1;
        let off = |member: usize| if member == 0 { over_us } else { 0 };
        assert!(!never_overlap(&loads(&table, off), FRAME_US));
    }

    #[test]
    fn a_frame_that_is_too_short_is_refused_in_words() {
        let second = Duration::from_secs(1);
        let why = Table::new(50, 2, DAY, 20 * second).unwrap_err();
        assert!(
            why.contains("4900 loads") && why.contains("32.7 h"),
            "{why}"
        );
        let why = Table::new(3, 1, 7000 * second, 20 * second).unwrap_err();
        assert!(why.contains("12h"), "{why}");
        assert!(Table::new(50, 0, second, second).unwrap().is_empty());
    }

    #[test]
    fn slots_that_were_missed_are_left_out() {
        let slot = |offset_s: i64| Slot {
            offset_us: offset_s * 1_000_000,
            frame_us: 86_400_000_000,
        };
        let mut slots = Slots::new(vec![(1, slot(10)), (2, slot(20))], 0);
        // The machine slept from 5 s to 21 s: the second one is late, but no more than may be.
        assert!(slots.take(5_000_000).is_empty());
        assert_eq!(slots.take(21_000_000), [2]);
        // The clock was set back: the slots come by their time of day.
        assert!(slots.take(9_000_000).is_empty());
        assert_eq!(slots.take(10_000_000), [1]);
        assert!(slots.take(10_100_000).is_empty());
    }
}
