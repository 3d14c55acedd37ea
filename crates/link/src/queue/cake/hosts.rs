//! The hosts on both sides of a tin's flows, and how many bulk flows each has: set-associative
//! tables, like the flow table (sch_cake.c).

use super::isolation::{Hashes, Isolation};

/// Queues of a tin, and places for hosts (CAKE_QUEUES).
pub(super) const QUEUES: usize = 1024;
/// Places where one hash may go (CAKE_SET_WAYS).
pub(super) const WAYS: usize = 8;

/// The places of a hash in the order in which they are tried.
pub(super) fn ways(hash: u32) -> impl Iterator<Item = usize> {
    let first = hash as usize % QUEUES;
    let set = first - first % WAYS;
    (first..first + WAYS).map(move |place| set + place % WAYS)
}

/// The hosts of a tin.
#[derive(Debug)]
pub(super) struct Hosts {
    sources: Side,
    destinations: Side,
}

/// Where the two hosts of a flow are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Places {
    source: usize,
    destination: usize,
}

impl Hosts {
    pub(super) fn new() -> Self {
        Self {
            sources: Side::new(),
            destinations: Side::new(),
        }
    }

    pub(super) fn place(&mut self, hashes: Hashes) -> Places {
        Places {
            source: self.sources.place(hashes.source),
            destination: self.destinations.place(hashes.destination),
        }
    }

    pub(super) fn add_bulk_flow(&mut self, of: Places) {
        self.sources.add_bulk_flow(of.source);
        self.destinations.add_bulk_flow(of.destination);
    }

    pub(super) fn remove_bulk_flow(&mut self, of: Places) {
        self.sources.remove_bulk_flow(of.source);
        self.destinations.remove_bulk_flow(of.destination);
    }

    /// How many flows share what the flow with these hosts gets, at least one.
    pub(super) fn load(&self, of: Places, isolation: Isolation) -> u16 {
        let source = match isolation.divides_source() {
            true => self.sources.bulk_flows(of.source),
            false => 1,
        };
        let destination = match isolation.divides_destination() {
            true => self.destinations.bulk_flows(of.destination),
            false => 1,
        };
        source.max(destination).max(1)
    }
}

/// The hosts of one side.
#[derive(Debug)]
struct Side {
    places: Vec<Host>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Host {
    hash: u32,
    bulk_flows: u16,
}

impl Side {
    fn new() -> Self {
        Self {
            places: vec![Host::default(); QUEUES],
        }
    }

    /// The place of the host of this hash: its own, or one without bulk flows, or, when there is
    /// none, one that it has to share.
    fn place(&mut self, hash: u32) -> usize {
        let find = |wanted: fn(&Host, u32) -> bool| {
            ways(hash).find(|place| {
                self.places
                    .get(*place)
                    .is_some_and(|host| wanted(host, hash))
            })
        };
        let place = find(|host, hash| host.hash == hash)
            .or_else(|| find(|host, _| host.bulk_flows == 0))
            .unwrap_or(hash as usize % QUEUES);
        if let Some(host) = self.places.get_mut(place) {
            host.hash = hash;
        }
        place
    }

    fn add_bulk_flow(&mut self, place: usize) {
        if let Some(host) = self.places.get_mut(place) {
            host.bulk_flows = host.bulk_flows.saturating_add(1);
        }
    }

    fn remove_bulk_flow(&mut self, place: usize) {
        if let Some(host) = self.places.get_mut(place) {
            host.bulk_flows = host.bulk_flows.saturating_sub(1);
        }
    }

    fn bulk_flows(&self, place: usize) -> u16 {
        self.places.get(place).map_or(0, |host| host.bulk_flows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ways_of_a_hash_are_those_of_its_set() {
        assert_eq!(
            ways(5).collect::<Vec<_>>(),
            [5, 6, 7, 0, 1, 2, 3, 4],
            "from its own place on, around"
        );
        assert_eq!(
            ways(1024 + 1016).collect::<Vec<_>>(),
            (1016..1024).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_host_keeps_its_place_while_it_has_flows() {
        let mut hosts = Side::new();
        let hash = |i: u32| 16 + i * 1024;
        for i in 0..8 {
            assert_eq!(hosts.place(hash(i)), 16 + i as usize);
            hosts.add_bulk_flow(16 + i as usize);
        }
        // The ninth has to share, and the first comes back to where it was.
        assert_eq!(hosts.place(hash(8)), 16);
        assert_eq!(hosts.place(hash(3)), 19);
        // A place without flows is given away.
        hosts.remove_bulk_flow(21);
        assert_eq!(hosts.place(hash(9)), 21);
        assert_eq!(hosts.bulk_flows(19), 1);
    }

    #[test]
    fn the_busier_host_counts_and_only_where_it_should() {
        let mut hosts = Hosts::new();
        let flow = |source, destination| Hashes {
            flow: 0,
            source,
            destination,
        };
        // Source 1 has three flows, to 1, 2 and 2.
        let flows = [flow(1, 1), flow(1, 2), flow(1, 2)].map(|hashes| hosts.place(hashes));
        for places in flows {
            hosts.add_bulk_flow(places);
        }
        let loads = |isolation| flows.map(|places| hosts.load(places, isolation));
        assert_eq!(loads(Isolation::Flows), [1, 1, 1]);
        assert_eq!(loads(Isolation::DualSrchost), [3, 3, 3]);
        assert_eq!(loads(Isolation::DualDsthost), [1, 2, 2]);
        assert_eq!(loads(Isolation::TripleIsolate), [3, 3, 3]);
    }
}
