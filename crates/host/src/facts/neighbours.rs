//! Addresses of the interfaces, and who else is on their links.

use plumb_model::results::host::{Interface, NeighbourTable};
use plumb_net::netlink::neighbour::{Neighbour, addresses, neighbours as ask};

use super::Source;

/// Counts the neighbours; each interface gets its own count and its addresses. `most` is how many
/// the table takes, for IPv4 and for IPv6.
pub(super) fn neighbours(
    source: &mut Source,
    most: [Option<u64>; 2],
    interfaces: &mut [Interface],
) -> Vec<NeighbourTable> {
    let known = source.asked("neighbours", ask());
    let addresses = source.asked("addresses", addresses());
    for interface in interfaces {
        let here = |index: u32| index == interface.index;
        interface.addresses = addresses
            .iter()
            .filter(|(index, _)| here(*index))
            .map(|(_, prefix)| prefix.to_string())
            .collect();
        interface.neighbours = known.iter().filter(|n| here(n.interface)).count() as u64;
    }
    tables(&known, most)
}

fn tables(known: &[Neighbour], most: [Option<u64>; 2]) -> Vec<NeighbourTable> {
    [4, 6]
        .into_iter()
        .zip(most)
        .map(|(ip_version, max_entries)| {
            let of = || known.iter().filter(|n| n.ip_version == ip_version);
            NeighbourTable {
                ip_version,
                entries: of().count() as u64,
                failed: of().filter(|n| n.failed).count() as u64,
                max_entries,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_counted_apart() {
        let neighbour = |ip_version, failed| Neighbour {
            interface: 2,
            ip_version,
            failed,
        };
        let known = [neighbour(4, false), neighbour(4, true), neighbour(6, false)];
        let counted: Vec<_> = tables(&known, [Some(1024), None])
            .into_iter()
            .map(|t| (t.ip_version, t.entries, t.failed, t.max_entries))
            .collect();
        assert_eq!(counted, [(4, 2, 1, Some(1024)), (6, 1, 0, None)]);
    }
}
