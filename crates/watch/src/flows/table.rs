//! Sums by a key, of which there may be more than memory has room for.

use std::collections::HashMap;

use super::dimension::Key;
use super::estimate::Sums;
use super::keyed::Keyed;

/// When a table has so many keys, all but the largest half are summed up as others: 1 MB for each table.
const MOST_KEYS: usize = 8192;

/// Sums by key. What there was no room for is in `others`, so that all sums are exact together; the sum of one
/// key lacks at most `missed` of what it has when it came, which is what was moved to others of any one key before.
#[derive(Debug, Default)]
pub(crate) struct Table {
    kept: HashMap<Key, (Sums, f64), Keyed>,
    others: Sums,
    missed: f64,
}

/// What is left of a table.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Top {
    /// The largest by bytes, the largest first.
    pub rows: Vec<Row>,
    /// All keys that are not listed.
    pub others: Sums,
    /// What one of them has at most, in bytes.
    pub most_of_other: f64,
}

/// The sums of one key.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub key: String,
    pub sums: Sums,
    /// What may be of it among the others, in bytes at most.
    pub missed_bytes: f64,
}

impl Table {
    pub(super) fn add(&mut self, key: Key, sums: &Sums) {
        self.kept
            .entry(key)
            .or_insert((Sums::default(), self.missed))
            .0
            .add(sums);
        if self.kept.len() >= MOST_KEYS {
            self.shrink();
        }
    }

    /// Moves the smaller half to the others.
    fn shrink(&mut self) {
        let mut all: Vec<_> = self.kept.drain().collect();
        all.select_nth_unstable_by(MOST_KEYS / 2, |(a, x), (b, y)| {
            by_size((*a, x.0.bytes), (*b, y.0.bytes))
        });
        let gone = all.split_off(MOST_KEYS / 2);
        for (_, (sums, missed)) in gone {
            self.others.add(&sums);
            self.missed = self.missed.max(missed + sums.bytes);
        }
        self.kept.extend(all);
    }

    /// The largest, and all others in one sum.
    pub(super) fn top(&self, most: usize) -> Top {
        let mut all: Vec<_> = self.kept.iter().collect();
        all.sort_unstable_by(|(a, x), (b, y)| by_size((**a, x.0.bytes), (**b, y.0.bytes)));
        let mut others = self.others;
        let mut most_of_other = self.missed;
        for (_, (sums, missed)) in all.iter().skip(most) {
            others.add(sums);
            most_of_other = most_of_other.max(missed + sums.bytes);
        }
        let rows = all.into_iter().take(most);
        let rows = rows.map(|(key, (sums, missed))| Row {
            key: key.to_string(),
            sums: *sums,
            missed_bytes: *missed,
        });
        Top {
            rows: rows.collect(),
            others,
            most_of_other,
        }
    }
}

/// The larger one first, and of equal ones by key.
fn by_size(a: (Key, f64), b: (Key, f64)) -> std::cmp::Ordering {
    b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(bytes: f64) -> Sums {
        Sums {
            bytes,
            flows: 1,
            ..Sums::default()
        }
    }

    #[test]
    fn endless_keys_leave_exact_totals_and_bounds_of_the_largest() {
        let mut table = Table::default();
        // A large one that comes by pieces, among a million small ones.
        for number in 0..1_000_000u32 {
            table.add(Key::As(number + 10), &sums(1.0));
            if number % 1000 == 0 {
                table.add(Key::As(1), &sums(100.0));
            }
            assert!(table.kept.len() < MOST_KEYS);
        }
        let top = table.top(3);
        assert_eq!(top.rows[0].key, "AS1");
        let Row {
            sums: large,
            missed_bytes,
            ..
        } = &top.rows[0];
        assert!(large.bytes <= 100_000.0 && large.bytes + missed_bytes >= 100_000.0);
        let all: f64 = top.rows.iter().map(|row| row.sums.bytes).sum();
        assert_eq!(all + top.others.bytes, 1_100_000.0);
        let flows: u64 = top.rows.iter().map(|row| row.sums.flows).sum();
        assert_eq!(flows + top.others.flows, 1_001_000);
    }

    #[test]
    fn a_key_that_was_moved_lacks_no_more_than_is_said() {
        let mut table = Table::default();
        table.add(Key::As(1), &sums(1.0));
        for number in 0..20_000u32 {
            table.add(Key::As(number + 10), &sums(2.0));
        }
        table.add(Key::As(1), &sums(50.0));
        let top = table.top(1);
        let row = &top.rows[0];
        assert_eq!((row.key.as_str(), row.sums.bytes), ("AS1", 50.0));
        assert!(row.missed_bytes >= 1.0);
        assert!(top.most_of_other >= 2.0);
    }
}
