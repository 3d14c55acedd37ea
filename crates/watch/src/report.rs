//! Availability by month, as text.

use std::time::Duration;

use crate::availability::Availability;
use crate::page::words::{available, time};

/// What each of [`cells`] is.
pub(crate) const HEADS: [&str; 6] = ["available", "outages", "MTBF", "MTTR", "watched", "unknown"];

/// What the numbers mean.
pub const UNKNOWN: &str = "In the unknown time plumb watch did not run: the target was neither up nor down, and the \
                                  share of the time in which it was available is of the watched time alone.";

/// A month in words.
pub(crate) fn cells(month: &Availability) -> [String; 6] {
    let mean = |mean: Option<Duration>| mean.map_or_else(|| "-".to_owned(), time);
    let unknown = match month.unknown() {
        // To the probe, which need not fall on the month's edge.
        little if little < LEAST_UNKNOWN => "-".to_owned(),
        unknown => time(unknown),
    };
    [
        available(month.ratio(), month.watched),
        month.outages.to_string(),
        mean(month.mtbf()),
        mean(month.mttr()),
        time(month.watched),
        unknown,
    ]
}

/// Less unknown time than this is not shown: what is between the last probe and now.
const LEAST_UNKNOWN: Duration = Duration::from_secs(60);

/// The months of targets, by their names, as tables.
pub fn text(targets: &[(String, Vec<Availability>)]) -> String {
    let mut out = String::new();
    for (name, months) in targets {
        let head = std::iter::once("month".to_owned());
        let mut rows: Vec<Vec<String>> = vec![head.chain(HEADS.map(str::to_owned)).collect()];
        for month in months {
            let first = std::iter::once(month.month.to_string());
            rows.push(first.chain(cells(month)).collect());
        }
        out += &format!("{name}\n");
        if months.is_empty() {
            out += "  Nothing is known of it.\n\n";
            continue;
        }
        let wide = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..=HEADS.len()).map(wide).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths);
            let cells = cells.map(|(cell, wide)| format!("{cell:wide$}"));
            let line = cells.collect::<Vec<_>>().join("  ");
            out += &format!("  {}\n", line.trim_end());
        }
        out += "\n";
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outage::Outage;

    #[test]
    fn a_month_is_a_row() {
        let month: crate::month::Month = "2026-11".parse().unwrap();
        let begin_us = (month.from_s() + 3600) * 1_000_000;
        let outage = Outage {
            begin_us,
            end_us: begin_us + 90_000_000,
            lasts: false,
        };
        let watched = Duration::from_secs(20 * 86_400);
        let found = Availability::new(month, month.to_s(), watched, &[outage]);
        let whole = Availability::new(month, month.to_s(), Duration::from_secs(30 * 86_400), &[]);
        let text = text(&[
            ("gateway".to_owned(), vec![found, whole]),
            ("new".to_owned(), Vec::new()),
        ]);
        assert_eq!(
            text,
            "gateway\n  \
             month    available  outages  MTBF       MTTR        watched   unknown\n  \
             2026-11  99.995 %   1        19 d 23 h  1 min 30 s  20 d 0 h  10 d 0 h\n  \
             2026-11  100 %      0        -          -           30 d 0 h  -\n\n\
             new\n  Nothing is known of it.\n\n"
        );
    }
}
