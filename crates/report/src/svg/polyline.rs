//! Lines through samples: a lost value breaks the line, and thousands of samples are thinned
//! to what a column of pixels can show without hiding a peak.

use std::fmt::Write;

/// The samples of one column of pixels that a line needs: where it enters, its extremes, where
/// it leaves, in the order in which they came.
struct Column {
    x: f64,
    first: f64,
    low: (usize, f64),
    high: (usize, f64),
    last: f64,
    count: usize,
}

impl Column {
    fn new(x: f64, y: f64) -> Self {
        Self {
            x,
            first: y,
            low: (0, y),
            high: (0, y),
            last: y,
            count: 1,
        }
    }

    fn add(&mut self, y: f64) {
        if y < self.low.1 {
            self.low = (self.count, y);
        }
        if y > self.high.1 {
            self.high = (self.count, y);
        }
        self.last = y;
        self.count += 1;
    }

    /// The points to draw, in order, none twice in a row.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> + '_ {
        let (a, b) = if self.low.0 <= self.high.0 {
            (self.low.1, self.high.1)
        } else {
            (self.high.1, self.low.1)
        };
        let mut last = None;
        [self.first, a, b, self.last]
            .into_iter()
            .filter(move |y| last.replace(*y) != Some(*y))
            .map(|y| (self.x, y))
    }
}

/// The data of a path through points already at their places, `None` where a value was lost.
pub(crate) fn path(points: impl IntoIterator<Item = Option<(f64, f64)>>) -> String {
    let mut path = String::new();
    let mut open: Option<Column> = None;
    let mut pen_down = false;
    for point in points {
        match (point, &mut open) {
            (Some((x, y)), Some(column)) if x.floor() == column.x.floor() => column.add(y),
            (Some((x, y)), _) => {
                draw(&mut path, open.replace(Column::new(x, y)), &mut pen_down);
            }
            (None, _) => {
                draw(&mut path, open.take(), &mut pen_down);
                pen_down = false;
            }
        }
    }
    draw(&mut path, open, &mut pen_down);
    path
}

fn draw(path: &mut String, column: Option<Column>, pen_down: &mut bool) {
    let Some(column) = column else { return };
    for (x, y) in column.points() {
        // Writing to a String does not fail. A point alone is a dot: a line to itself, which
        // round caps show.
        let _ = if *pen_down {
            write!(path, "L{x:.1} {y:.1}")
        } else {
            write!(path, "M{x:.1} {y:.1}h0")
        };
        *pen_down = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_loss_breaks_the_line() {
        assert_eq!(
            path([Some((0.0, 1.0)), Some((2.0, 2.0)), None, Some((6.0, 3.0))]),
            "M0.0 1.0h0L2.0 2.0M6.0 3.0h0"
        );
        assert_eq!(path([None, None]), "");
        assert_eq!(path([]), "");
    }

    #[test]
    fn a_peak_in_a_column_stays() {
        let dense =
            (0..10_000).map(|i| Some((f64::from(i) / 1000.0, if i == 4321 { 99.0 } else { 10.0 })));
        let path = path(dense);
        assert!(path.contains("99.0") && path.len() < 400, "{path}");
    }

    proptest! {
        #[test]
        fn no_line_is_longer_than_its_columns(ys in proptest::collection::vec(proptest::option::of(0.0..200.0f64), 0..3000)) {
            let n = ys.len().max(1) as f64;
            let losses = ys.iter().filter(|y| y.is_none()).count();
            let points = ys.iter().enumerate().map(|(i, y)| y.map(|y| (100.0 * i as f64 / n, y)));
            let path = path(points);
            let drawn = path.matches(['M', 'L']).count();
            prop_assert!(drawn <= 4 * (100 + losses + 1), "{drawn}");
            // The extremes are drawn.
            for extreme in [ys.iter().flatten().copied().reduce(f64::min), ys.iter().flatten().copied().reduce(f64::max)].into_iter().flatten() {
                let text = format!(" {extreme:.1}");
                prop_assert!(path.contains(&text));
            }
        }
    }
}
