//! Windows of several minutes, from the largest sums of each.

use std::collections::BTreeMap;

use super::estimate::Sums;
use super::table::{Row, Top};

/// The largest of a window that is made of these. What a key has where it is not among the largest is with the others; how much
/// that may be is part of its row.
pub fn merged<'a>(parts: impl IntoIterator<Item = &'a Top> + Clone, most: usize) -> Top {
    let all_others: f64 = parts
        .clone()
        .into_iter()
        .map(|part| part.most_of_other)
        .sum();
    let mut others = Sums::default();
    // Sums, what they may lack, and what others had at most in the parts that list the key.
    let mut keys: BTreeMap<&str, (Sums, f64, f64)> = BTreeMap::new();
    for part in parts {
        others.add(&part.others);
        for row in &part.rows {
            let (sums, missed, listed) = keys.entry(&row.key).or_default();
            sums.add(&row.sums);
            *missed += row.missed_bytes;
            *listed += part.most_of_other;
        }
    }
    let rows = keys.into_iter().map(|(key, (sums, missed, listed))| Row {
        key: key.to_owned(),
        sums,
        missed_bytes: missed + (all_others - listed).max(0.0),
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by(|a, b| {
        let by_size = b.sums.bytes.total_cmp(&a.sums.bytes);
        by_size.then_with(|| a.key.cmp(&b.key))
    });
    let gone = rows.split_off(most.min(rows.len()));
    let mut most_of_other = all_others;
    for row in &gone {
        others.add(&row.sums);
        most_of_other = most_of_other.max(row.sums.bytes + row.missed_bytes);
    }
    Top {
        rows,
        others,
        most_of_other,
    }
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

    fn top(rows: &[(&str, f64)], others: f64, most_of_other: f64) -> Top {
        let rows = rows.iter().map(|(key, bytes)| Row {
            key: (*key).to_owned(),
            sums: sums(*bytes),
            missed_bytes: 0.0,
        });
        Top {
            rows: rows.collect(),
            others: sums(others),
            most_of_other,
        }
    }

    #[test]
    fn windows_keep_totals_and_say_what_a_row_may_lack() {
        let first = top(&[("a", 10.0), ("b", 5.0)], 7.0, 4.0);
        let second = top(&[("a", 20.0), ("c", 6.0)], 1.0, 1.0);
        let both = merged([&first, &second], 2);
        let rows: Vec<_> = both
            .rows
            .iter()
            .map(|row| (row.key.as_str(), row.sums.bytes, row.missed_bytes))
            .collect();
        // c may have been among the others of the first.
        assert_eq!(rows, [("a", 30.0, 0.0), ("c", 6.0, 4.0)]);
        assert_eq!(both.others.bytes, 13.0);
        assert_eq!(both.others.flows, 3);
        // b, and what it may have of the second.
        assert_eq!(both.most_of_other, 6.0);
        assert_eq!(merged([], 5).rows, []);
    }
}
