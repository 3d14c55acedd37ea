//! The order of hosts along a path, as far as their hops and round trips show it.

use std::collections::BTreeSet;

use plumb_model::results::path::PathHop;
use plumb_model::run::Run;

use super::amount::least_rtt_s;
use crate::Case;
use crate::places::Host;

/// A host that is nearer has no longer round trip than this many times the next one's, and so many seconds: machines answer
/// late, and neighbours differ by nothing.
const LONGER_RATIO: f64 = 1.2;
const LONGER_S: f64 = 0.002;

fn hops<'a>(host: &Host<'a>) -> impl Iterator<Item = &'a PathHop> {
    let routes = host.runs.iter().flat_map(|run| Case::of(run).routes());
    let hops = routes.flat_map(|route| &route.result.hops);
    hops.filter(|hop| !hop.this_host)
}

fn addresses(hop: &PathHop) -> impl Iterator<Item = &str> {
    hop.addresses.iter().chain(&hop.address).map(String::as_str)
}

/// How many hops a host is away, where its path was seen to its end.
pub(super) fn distance(host: &Host<'_>) -> Option<u8> {
    let own = host.address?.to_string();
    let itself = hops(host).filter(|hop| addresses(hop).any(|address| address == own));
    itself.map(|hop| hop.ttl).min()
}

/// The first hop, before a middle, at which other routers answer towards it than towards the end.
fn parts_at(middle: &Host<'_>, end: &Host<'_>) -> Option<u8> {
    let until = distance(middle)?;
    let at = |host: &Host<'_>, ttl: u8| -> BTreeSet<String> {
        let of_ttl = hops(host).filter(|hop| hop.ttl == ttl);
        of_ttl.flat_map(addresses).map(str::to_owned).collect()
    };
    (1..until).find(|ttl| {
        let (one, other) = (at(middle, *ttl), at(end, *ttl));
        !one.is_empty() && !other.is_empty() && one.is_disjoint(&other)
    })
}

/// The hosts in the order of the path, the end last, and what is odd about it.
pub(super) fn in_order<'a>(
    mut hosts: Vec<Host<'a>>,
    runs: &'a [Run],
) -> (Vec<Host<'a>>, Vec<String>) {
    let mut notes = Vec::new();
    // The end is the target of the last Run with a far end, though a middle may have had its address.
    let last = runs.iter().rfind(|run| run.target.is_some());
    let is_end = |host: &Host<'_>| {
        last.is_some_and(|last| host.runs.iter().any(|run| std::ptr::eq(*run, last)))
    };
    let Some(at) = hosts.iter().position(is_end) else {
        return (hosts, notes);
    };
    let end = hosts.remove(at);
    let name = |host: &Host<'a>| host.name().to_owned();
    let distances: Option<Vec<u8>> = hosts.iter().map(distance).collect();
    match distances {
        Some(known) if !known.is_sorted() => {
            hosts.sort_by_key(distance);
            let names: Vec<String> = hosts.iter().map(name).collect();
            notes.push(format!(
                "The middles were given in another order than their hops, and are taken in this: {}.",
                names.join(", ")
            ));
        }
        Some(_) => {}
        None => {
            for pair in hosts.windows(2) {
                let [nearer, farther] = pair else { continue };
                let rtts = least_rtt_s(nearer).zip(least_rtt_s(farther));
                if rtts.is_some_and(|(near, far)| near > LONGER_RATIO * far + LONGER_S) {
                    notes.push(format!(
                        "{} answers later than {}, which was given as farther away: their order may be another.",
                        nearer.name(),
                        farther.name()
                    ));
                }
            }
        }
    }
    for middle in &hosts {
        let beyond = distance(middle).zip(distance(&end));
        if let Some(ttl) = parts_at(middle, &end) {
            notes.push(format!(
                "{} is not on the path to {}: other routers answer from hop {ttl} on. What only one of both paths has is not settled by the other; what both share is.",
                middle.name(),
                end.name()
            ));
        } else if beyond.is_some_and(|(middle, end)| middle >= end && end > 1) {
            notes.push(format!(
                "{} is as many hops away as {}, or more: it is beside its path, or beyond its end.",
                middle.name(),
                end.name()
            ));
        } else if distance(middle).is_none() || distance(&end).is_none() {
            let rtts = least_rtt_s(middle).zip(least_rtt_s(&end));
            if rtts.is_some_and(|(near, far)| near > LONGER_RATIO * far + LONGER_S) {
                notes.push(format!(
                    "{} answers later than {}: it may not be on its path.",
                    middle.name(),
                    end.name()
                ));
            }
        }
    }
    hosts.push(end);
    (hosts, notes)
}
