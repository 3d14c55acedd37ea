//! What a wrong name was probably meant to be.

/// Names the known ones, after the one that is most like `name` if one is close.
///
/// `kind` is their plural, such as `nodes`.
pub(crate) fn known(name: &str, known: &[&str], kind: &str) -> String {
    let nearest = known
        .iter()
        .map(|known| (distance(name, known), known))
        .min()
        // A third of the letters wrong is another word.
        .filter(|(distance, known)| *distance <= known.len().max(3) / 3);
    let hint = nearest.map_or_else(String::new, |(_, known)| {
        format!("did you mean '{known}'? ")
    });
    format!("{hint}the {kind} are {}", known.join(", "))
}

/// Letters to add, drop, change or swap to make `b` of `a` (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let at = |row: &[usize], i: usize| row.get(i).copied().unwrap_or(usize::MAX / 2);
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let changed = at(&last, j) + usize::from(x != y);
            let mut best = changed.min(at(&last, j + 1) + 1).min(at(&row, j) + 1);
            let swapped = i > 0 && j > 0 && a.get(i - 1) == Some(&y) && b.get(j - 1) == Some(&x);
            if swapped {
                best = best.min(at(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    at(&last, b.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggests_what_is_close_and_lists_all() {
        let nodes = ["client", "router", "server"];
        assert_eq!(
            known("sevrer", &nodes, "nodes"),
            "did you mean 'server'? the nodes are client, router, server"
        );
        assert_eq!(
            known("modem", &nodes, "nodes"),
            "the nodes are client, router, server"
        );
        assert_eq!(distance("r1", "r2"), 1);
        assert_eq!(distance("", "abc"), 3);
    }
}
