//! Tables as text for people.

/// Rows with their columns below each other.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..N).map(wide).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, wide)| format!("{cell:wide$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        out += &format!("  {}\n", line.trim_end());
    }
    out
}
