//! Checks from one place towards several hosts: what is found towards all is near, towards the hosts of one network theirs,
//! and towards one host far.

mod host;
mod network;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use plumb_model::finding::{Cause, Finding, Place, Severity};
use plumb_model::results::Direction;
use plumb_model::run::Run;

use crate::entry::{Amount, Family};
use crate::measured_again::is_measured_again;
use crate::needs::is_measured;
use crate::{Case, causes};

pub use host::{Host, hosts};
use network::are_paths_seen;
pub use network::{Hop, Network, Uniting, first_router, last_shared, split_after};

/// Two loads that fill one line carry rates that are no further apart than this: rates of one path differ by a tenth between
/// checks, in either direction.
pub(crate) const SAME_RATE_RATIO: f64 = 0.8;

/// What a host's checks say of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Found,
    /// The same was measured, and it was not there.
    Absent,
    /// What it rests on was not measured.
    NotLookedFor,
    /// The load carried less than where it was found: a queue or a limit further up may not have been reached.
    NotReached,
    /// Something was found that looks like it.
    LooksAlike(Cause),
    /// One check of the host found it, and another did not.
    ComesAndGoes,
}

/// Where a finding is.
#[derive(Debug, Clone, PartialEq)]
pub enum Whereabouts {
    /// In what this machine uses towards all hosts.
    Near,
    /// In the network of some hosts, or on the part of the path that only they use.
    Theirs(Network),
    /// In one host, or on the part of the path that only it uses.
    Far,
    /// It cannot be decided.
    Open(Why),
}

/// Why it cannot be decided where a finding is.
#[derive(Debug, Clone, PartialEq)]
pub enum Why {
    /// Only one host was asked for it.
    OneHost,
    /// All that have it are in this network, and no host outside of it is known to lack it: near, or theirs.
    OneNetwork(Network),
    /// Some hosts may lack it, and what the others alone share is not known: near, or theirs.
    NotAll,
    /// It was not looked for, or is hidden, towards the other hosts of this network: theirs, or far.
    RestOfNetwork(Network),
    /// The hosts that have it share nothing that another host lacks.
    NothingShared,
    /// No host has it in each of its checks.
    ComesAndGoes,
}

/// A finding over all hosts.
#[derive(Debug, Clone)]
pub struct Placed<'a> {
    /// As a check has it that says most about its place, and else the worst of it.
    pub finding: &'a Finding,
    /// The worst of it.
    pub severity: Severity,
    pub whereabouts: Whereabouts,
    /// What each host has of it, in the order of the hosts.
    pub seen: Vec<Seen>,
}

impl Placed<'_> {
    /// The hosts towards which it is like that.
    pub fn those(&self, is_it: impl Fn(Seen) -> bool) -> BTreeSet<usize> {
        let all = self.seen.iter().enumerate();
        all.filter(|(_, seen)| is_it(**seen))
            .map(|(index, _)| index)
            .collect()
    }

    /// The hosts towards which it was found.
    pub fn found(&self) -> BTreeSet<usize> {
        self.those(|seen| seen == Seen::Found)
    }

    /// The hosts towards which it was looked for, and is not there.
    pub fn absent(&self) -> BTreeSet<usize> {
        self.those(|seen| seen == Seen::Absent)
    }
}

/// How far hosts are differs without a fault, and a place that is at fault is asked for.
pub fn is_of_distance(cause: Cause) -> bool {
    causes::entry(cause).is_of_distance
}

/// Every finding worth fixing of any host, the worst first.
pub fn place<'a>(hosts: &[Host<'a>]) -> Vec<Placed<'a>> {
    let mut kinds: Vec<&Finding> = Vec::new();
    let findings = hosts.iter().flat_map(Host::findings);
    let worth = findings.filter(|f| f.severity > Severity::Info && !is_of_distance(f.cause));
    for finding in worth {
        match kinds.iter_mut().find(|kind| is_same(kind, finding)) {
            Some(kind) if tells(finding) > tells(kind) => *kind = finding,
            Some(_) => {}
            None => kinds.push(finding),
        }
    }
    let networks = network::networks(hosts);
    let severity = |finding| {
        let findings = hosts.iter().flat_map(Host::findings);
        let same = findings.filter(|other| is_same(other, finding));
        same.map(|same| same.severity).max()
    };
    let mut placed: Vec<Placed<'a>> = kinds
        .into_iter()
        .map(|finding| {
            let seen = seen(hosts, finding);
            let mut placed = Placed {
                finding,
                severity: severity(finding).unwrap_or(finding.severity),
                whereabouts: Whereabouts::Near,
                seen,
            };
            placed.whereabouts = whereabouts(&placed, hosts, &networks);
            placed
        })
        .collect();
    placed.sort_by_key(|placed| std::cmp::Reverse(placed.severity));
    placed
}

/// How much a finding says: whether it is known to be on this side of the gateway, and then how bad it is.
pub(crate) fn tells(finding: &Finding) -> (bool, Severity) {
    (finding.place == Place::LocalSegment, finding.severity)
}

/// Whether two findings of different paths may be one thing. One check may see that it is on this side of the gateway, and
/// another only its direction.
pub(crate) fn is_same(a: &Finding, b: &Finding) -> bool {
    use Place::{Downlink, LocalSegment, Path, Uplink};
    let on_the_way = |place| matches!(place, Uplink | Downlink | LocalSegment | Path);
    let either = matches!((a.place, b.place), (Uplink, Downlink) | (Downlink, Uplink));
    a.cause == b.cause
        && (a.place == b.place || on_the_way(a.place) && on_the_way(b.place) && !either)
}

/// What each host has of a finding.
pub(crate) fn seen(hosts: &[Host<'_>], finding: &Finding) -> Vec<Seen> {
    let found: Vec<bool> = hosts
        .iter()
        .map(|host| host.has(|f| is_same(f, finding)))
        .collect();
    let with = || hosts.iter().zip(&found).filter(|(_, found)| **found);
    let least_bps = with()
        .filter_map(|(host, _)| host.bps(direction(finding)?))
        .min_by(f64::total_cmp);
    // What the hosts that have it have besides is a matter of its own.
    let beside = |cause| with().any(|(host, _)| host.findings().any(|f| f.cause == cause));
    let of = |host: &Host<'_>| {
        if host.has(|f| is_same(f, finding)) {
            let gone = host.runs.iter().any(|after| {
                let has = after.findings.iter().any(|other| is_same(other, finding));
                !has && is_looked_for(after, &host.runs, finding)
            });
            return match gone {
                true => Seen::ComesAndGoes,
                false => Seen::Found,
            };
        }
        let before: Vec<&Run> = with()
            .flat_map(|(host, _)| host.runs.iter().copied())
            .collect();
        let mut runs = host.runs.iter();
        if !runs.any(|after| is_looked_for(after, &before, finding)) {
            return Seen::NotLookedFor;
        }
        let mut others = host.findings().filter(|f| f.severity > Severity::Info);
        if let Some(other) = others.find(|f| looks_alike(f, finding) && !beside(f.cause)) {
            return Seen::LooksAlike(other.cause);
        }
        let bps = direction(finding).and_then(|direction| host.bps(direction));
        match bps.zip(least_bps) {
            Some((bps, least)) if bps < SAME_RATE_RATIO * least => Seen::NotReached,
            _ => Seen::Absent,
        }
    };
    hosts.iter().map(of).collect()
}

/// Whether a Run would have found what others did: all that the cause needs was measured, or the same as in one of them, as
/// where all loads were short.
fn is_looked_for(after: &Run, others: &[&Run], finding: &Finding) -> bool {
    let needs = causes::entry(finding.cause).needs;
    let case = Case::of(after);
    if !needs.is_empty() && needs.iter().all(|need| is_measured(&case, *need)) {
        return true;
    }
    others.iter().any(|before| {
        let mut found = before
            .findings
            .iter()
            .filter(|other| is_same(other, finding));
        found.any(|found| is_measured_again(found, before, after))
    })
}

/// The direction whose rate a finding shows itself by; `None` where it is there at any rate.
pub(crate) fn direction(finding: &Finding) -> Option<Direction> {
    let entry = causes::entry(finding.cause);
    match (entry.family, entry.amount, finding.place) {
        (_, Amount::Queue(direction), _) => Some(direction),
        (Family::Queues, _, Place::Uplink) => Some(Direction::Up),
        (Family::Queues, _, Place::Downlink) => Some(Direction::Down),
        _ => None,
    }
}

/// Whether one may have been taken for the other.
fn looks_alike(a: &Finding, b: &Finding) -> bool {
    let resembles = |a: &Finding, b: &Finding| {
        let mut others = causes::entry(a.cause).resembles.iter();
        others.any(|(other, _)| *other == b.cause)
    };
    let unnamed = [a.cause, b.cause].contains(&Cause::Unexplained);
    let either = matches!(
        (direction(a), direction(b)),
        (Some(a), Some(b)) if a != b
    );
    a.cause != b.cause && !either && (unnamed || resembles(a, b) || resembles(b, a))
}

fn whereabouts(placed: &Placed<'_>, hosts: &[Host<'_>], networks: &[Network]) -> Whereabouts {
    match placed.finding.place {
        Place::ThisHost | Place::LocalSegment | Place::Client => return Whereabouts::Near,
        Place::FarHost | Place::Server => return Whereabouts::Far,
        Place::Uplink | Place::Downlink | Place::Path => {}
    }
    let (found, absent) = (placed.found(), placed.absent());
    let unknown: BTreeSet<usize> = (0..hosts.len())
        .filter(|index| !found.contains(index) && !absent.contains(index))
        .collect();
    if found.is_empty() {
        return Whereabouts::Open(Why::ComesAndGoes);
    }
    if found.len() + absent.len() < 2 {
        return Whereabouts::Open(Why::OneHost);
    }
    let around = |those: &BTreeSet<usize>| {
        let mut all = networks.iter();
        let those = those.clone();
        all.find(move |network| those.is_subset(&network.hosts))
            .cloned()
    };
    if absent.is_empty() {
        return match around(&found) {
            Some(network) => Whereabouts::Open(Why::OneNetwork(network)),
            None if !unknown.is_empty() && !are_paths_seen(hosts) => Whereabouts::Open(Why::NotAll),
            None => Whereabouts::Near,
        };
    }
    let mut apart = networks
        .iter()
        .filter(|network| found.is_subset(&network.hosts) && absent.is_disjoint(&network.hosts));
    match (found.len(), apart.next().cloned()) {
        (1, Some(network)) if !unknown.is_disjoint(&network.hosts) => {
            Whereabouts::Open(Why::RestOfNetwork(network))
        }
        (1, _) => Whereabouts::Far,
        (_, Some(network)) => Whereabouts::Theirs(network),
        (_, None) => Whereabouts::Open(Why::NothingShared),
    }
}
