//! Which ways the packets of one flow took, and when that changed.
//!
//! Hops that do not answer say nothing, so two cycles are of one route unless a hop answered in
//! both and differs, or they ended at different distances. A router that shares traffic packet by
//! packet makes hops change all the time, back and forth: such hops do not make a route.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// What one cycle saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cycle {
    /// When its probes were sent, ns.
    pub sent_ns: u64,
    /// Who answered at each hop.
    pub hops: BTreeMap<u8, IpAddr>,
    /// The hop at which the target answered.
    pub end: Option<u8>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Route {
    /// The address at each hop, as far as any cycle has found it.
    pub hops: BTreeMap<u8, IpAddr>,
    /// The hop at which the target answered.
    pub end: Option<u8>,
    /// Numbers of the cycles, from 0.
    pub cycles: Vec<usize>,
}

/// A change from one route to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Number of the last cycle on the old route.
    pub last_cycle: usize,
    /// Number of the first on the new one.
    pub first_cycle: usize,
    /// Number of the old route.
    pub from: usize,
    /// Number of the new one.
    pub to: usize,
    /// The first hop that differs.
    pub hop: u8,
}

/// What the cycles come to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Routes {
    /// In the order in which they were first seen.
    pub routes: Vec<Route>,
    /// In the order in which they happened.
    pub changes: Vec<Change>,
    /// Hops whose answers came from several addresses in no lasting order.
    pub varying: BTreeSet<u8>,
}

impl Routes {
    /// Where the route changed: the first hop that ever differed, and the cycles on the route that was in use
    /// last.
    pub fn in_use(&self) -> Option<(u8, &[usize])> {
        let first_hop = self.changes.iter().map(|change| change.hop).min()?;
        let last = self.routes.get(self.changes.last()?.to)?;
        Some((first_hop, &last.cycles))
    }
}

/// Finds the routes of one flow's cycles.
pub fn find(cycles: &[Cycle]) -> Routes {
    let mut found = Routes {
        varying: varying(cycles),
        ..Routes::default()
    };
    let seen: Vec<Cycle> = cycles
        .iter()
        .map(|cycle| Cycle {
            hops: cycle
                .hops
                .iter()
                .filter(|(hop, _)| !found.varying.contains(hop))
                .map(|(hop, address)| (*hop, *address))
                .collect(),
            ..cycle.clone()
        })
        .collect();
    let mut current: Option<usize> = None;
    let mut last_cycle = 0;
    for (number, cycle) in seen.iter().enumerate() {
        if cycle.hops.is_empty() {
            continue;
        }
        let fits = |route: &Route| differing(route, cycle).is_none();
        let to = match current {
            Some(index) if found.routes.get(index).is_some_and(fits) => index,
            _ => {
                // A cycle in which the route changed is of both, and of none.
                let between = current.is_some()
                    && seen
                        .get(number + 1)
                        .is_some_and(|next| differing(&Route::of(cycle), next).is_some());
                if between {
                    continue;
                }
                found.routes.iter().position(fits).unwrap_or_else(|| {
                    found.routes.push(Route::default());
                    found.routes.len() - 1
                })
            }
        };
        if let Some(from) = current.filter(|from| *from != to) {
            let hop = found.routes.get(from).and_then(|r| differing(r, cycle));
            found.changes.push(Change {
                last_cycle,
                first_cycle: number,
                from,
                to,
                hop: hop.unwrap_or(0),
            });
        }
        if let Some(route) = found.routes.get_mut(to) {
            route.add(number, cycle);
        }
        current = Some(to);
        last_cycle = number;
    }
    found
}

impl Route {
    fn of(cycle: &Cycle) -> Self {
        let mut route = Self::default();
        route.add(0, cycle);
        route
    }

    fn add(&mut self, number: usize, cycle: &Cycle) {
        self.hops.extend(&cycle.hops);
        self.end = self.end.or(cycle.end);
        self.cycles.push(number);
    }
}

/// The first hop at which a cycle cannot be of a route.
fn differing(route: &Route, cycle: &Cycle) -> Option<u8> {
    let hop = cycle
        .hops
        .iter()
        .find(|(hop, address)| route.hops.get(hop).is_some_and(|known| known != *address))
        .map(|(hop, _)| *hop);
    let end = match (route.end, cycle.end) {
        (Some(a), Some(b)) if a != b => Some(a.min(b)),
        _ => None,
    };
    hop.into_iter().chain(end).min()
}

/// Hops that change back and forth rather than now and then.
fn varying(cycles: &[Cycle]) -> BTreeSet<u8> {
    /// With this many answers, a change near the beginning or the end is distinguished from a swing.
    const ENOUGH: usize = 5;
    let hops: BTreeSet<u8> = cycles.iter().flat_map(|c| c.hops.keys().copied()).collect();
    hops.into_iter()
        .filter(|hop| {
            let answers: Vec<IpAddr> = cycles
                .iter()
                .filter_map(|cycle| cycle.hops.get(hop).copied())
                .collect();
            let runs: Vec<usize> = answers.chunk_by(|a, b| a == b).map(<[_]>::len).collect();
            let is_swing = |(index, length): (usize, &usize)| {
                let at_an_end = index == 0 || index + 1 == runs.len();
                *length < 2 && !(at_an_end && answers.len() >= ENOUGH)
            };
            runs.len() > 1 && runs.iter().enumerate().any(is_swing)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    /// Cycles a second apart; a letter is an address, a dot no answer, the last letter the target.
    fn cycles(rows: &[&str]) -> Vec<Cycle> {
        let of = |(second, row): (usize, &&str)| Cycle {
            sent_ns: second as u64 * 1_000_000_000,
            hops: (1..)
                .zip(row.bytes())
                .filter(|(_, letter)| *letter != b'.')
                .map(|(hop, letter)| (hop, IpAddr::from([10, 0, 0, letter])))
                .collect(),
            end: (!row.ends_with('.')).then_some(row.len() as u8),
        };
        rows.iter().enumerate().map(of).collect()
    }

    #[test]
    fn a_lasting_change_is_an_event() {
        let found = find(&cycles(&["abz", "a.z", "acz", "acz", "ac.", ".bz", "abz"]));
        let cycles: Vec<_> = found.routes.iter().map(|r| r.cycles.clone()).collect();
        assert_eq!(cycles, [vec![0, 1, 5, 6], vec![2, 3, 4]]);
        let change = |last_cycle, first_cycle, from, to| Change {
            last_cycle,
            first_cycle,
            from,
            to,
            hop: 2,
        };
        assert_eq!(found.changes, [change(1, 2, 0, 1), change(4, 5, 1, 0)]);
        assert!(found.varying.is_empty());
        assert_eq!(found.in_use(), Some((2, [0, 1, 5, 6].as_slice())));
    }

    #[test]
    fn a_longer_way_is_another() {
        let found = find(&cycles(&["abz", "abz", "abdz", "abdz"]));
        assert_eq!(found.routes.len(), 2);
        assert_eq!(found.changes.first().map(|c| c.hop), Some(3));
    }

    #[test]
    fn sharing_by_packet_is_no_change() {
        let rows = ["abz", "acz", "abz", "acz", "acz", "abz"];
        let found = find(&cycles(&rows));
        assert_eq!((found.routes.len(), found.changes.len()), (1, 0));
        assert_eq!(found.varying, BTreeSet::from([2]));
        // Three cycles are too few to decide.
        assert!(find(&cycles(&["abz", "abz", "acz"])).changes.is_empty());
        // Many can.
        let rows = ["abz", "abz", "abz", "abz", "abz", "acz"];
        assert_eq!(find(&cycles(&rows)).changes.len(), 1);
    }

    #[test]
    fn a_cycle_between_two_routes_is_neither() {
        let found = find(&cycles(&["abdz", "abdz", "abez", "acez", "acez"]));
        assert_eq!((found.routes.len(), found.changes.len()), (2, 1));
        assert_eq!(found.changes.first().unwrap().hop, 2);
    }

    proptest! {
        #[test]
        fn every_change_has_its_routes(rows in proptest::collection::vec("[ab.][cd.][z.]", 0..30)) {
            let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
            let found = find(&cycles(&rows));
            for change in &found.changes {
                prop_assert!(change.from < found.routes.len() && change.to < found.routes.len());
                prop_assert!(change.last_cycle < change.first_cycle && change.from != change.to);
            }
        }
    }
}
