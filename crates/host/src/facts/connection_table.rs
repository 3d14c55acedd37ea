//! What the kernel's table of connections (nf_conntrack) refused.

use super::Source;

/// Columns that say that a packet was lost to the table, or a connection to another one: no room or no memory, an
/// entry given up early to make room, and one that could not be entered.
const TROUBLE: [&str; 3] = ["drop", "early_drop", "insert_failed"];

/// Growth of /proc/net/stat/nf_conntrack by the kernel's names, of this network namespace: `connections.drop`.
pub(crate) fn dropped_connections(source: &mut Source) -> Vec<(String, u64)> {
    let text = source.optional("/proc/thread-self/net/stat/nf_conntrack");
    parse(&text.unwrap_or_default())
}

/// A line of names, and a line of hexadecimal numbers a processor (`ct_cpu_seq_show`,
/// `net/netfilter/nf_conntrack_standalone.c`).
fn parse(text: &str) -> Vec<(String, u64)> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let rows: Vec<Vec<&str>> = lines
        .map(|line| line.split_whitespace().collect())
        .collect();
    let sum = |name: &str| {
        let column = names.iter().position(|known| *known == name)?;
        let values = rows
            .iter()
            .filter_map(|row| u64::from_str_radix(row.get(column)?, 16).ok());
        Some((
            format!("connections.{name}"),
            values.fold(0, u64::saturating_add),
        ))
    };
    TROUBLE.into_iter().filter_map(sum).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn processors_are_added_up() {
        let text = "entries  clashres found insert_failed drop early_drop\n\
                    00000011  00000000 00000000 00000001 0000000a 00000000\n\
                    00000011  00000000 00000000 00000000 00000010 00000002\n";
        let named = |(name, value): (&str, u64)| (format!("connections.{name}"), value);
        let expected = [("drop", 26), ("early_drop", 2), ("insert_failed", 1)].map(named);
        assert_eq!(parse(text), expected);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(\\PC{0,40}\n){0,4}") {
            let _ = parse(&text);
        }
    }
}
