//! Checks of hosts along one path: in which segment each finding is, by who has it and who would have shown it and does not.

mod amount;
mod order;
#[cfg(test)]
mod tests;

use plumb_model::finding::{Finding, Place, Severity};
use plumb_model::results::Direction;
use plumb_model::run::Run;
use plumb_model::segments::{
    HostShare, SCHEMA, SegmentFinding, SegmentHost, SegmentStep, Segments, Share, StepOf,
};

use crate::causes;
use crate::places::{Host, SAME_RATE_RATIO, Seen, hosts, is_of_distance, is_same, seen, tells};
use amount::{RULE, least_rtt_s, packet_bytes, weight};
use order::in_order;

/// The logarithm of 20: one answer is taken and another left where it is so many times as likely.
const SURE: f64 = 2.995_732_273_553_991;

/// From this share of the round trip on a segment has most of it.
const MOST_OF_RATIO: f64 = 0.5;

/// What Runs of hosts along one path come to, given in the order of the path; the last is of its end.
pub fn segments(runs: &[Run]) -> Segments {
    let (hosts, notes) = in_order(hosts(runs), runs);
    let mut findings: Vec<SegmentFinding> = kinds(&hosts)
        .into_iter()
        .flat_map(|finding| place(&hosts, finding))
        .collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Segments {
        schema: SCHEMA.to_owned(),
        findings,
        steps: steps(&hosts),
        notes,
        hosts: hosts.iter().map(described).collect(),
    }
}

fn described(host: &Host<'_>) -> SegmentHost {
    SegmentHost {
        name: host.name().to_owned(),
        address: host.address.map(|address| address.to_string()),
        hops: order::distance(host),
        idle_rtt_s: least_rtt_s(host),
        up_bps: host.bps(Direction::Up),
        down_bps: host.bps(Direction::Down),
        path_mtu_bytes: packet_bytes(host),
    }
}

/// One finding of each kind that is worth placing.
fn kinds<'a>(hosts: &[Host<'a>]) -> Vec<&'a Finding> {
    let mut kinds: Vec<&Finding> = Vec::new();
    let all = hosts.iter().flat_map(Host::findings);
    let worth = all.filter(|finding| {
        let entry = causes::entry(finding.cause);
        let is_worth = finding.severity > Severity::Info || entry.amount.is_counted();
        is_worth && !is_of_distance(finding.cause)
    });
    for finding in worth {
        match kinds.iter_mut().find(|kind| is_same(kind, finding)) {
            Some(kind) if tells(finding) > tells(kind) => *kind = finding,
            Some(_) => {}
            None => kinds.push(finding),
        }
    }
    kinds
}

/// Where a finding is; several where a nearer segment has a smaller one of its own.
fn place(hosts: &[Host<'_>], finding: &Finding) -> Vec<SegmentFinding> {
    let seen = seen(hosts, finding);
    let mut found: Vec<usize> = indices(&seen, |seen| seen == Seen::Found);
    if found.is_empty() {
        found = indices(&seen, |seen| seen == Seen::ComesAndGoes);
    }
    let itself = match finding.place {
        Place::ThisHost | Place::LocalSegment | Place::Client => Some((vec![0], None)),
        Place::FarHost | Place::Server => None,
        Place::Uplink | Place::Downlink | Place::Path => {
            return on_the_path(hosts, finding, &seen, found);
        }
    };
    let shares: Vec<HostShare> = seen.iter().map(|seen| by_rule(*seen)).map(shared).collect();
    let at = match itself {
        Some(at) => vec![at],
        None => found.into_iter().map(|at| (Vec::new(), Some(at))).collect(),
    };
    at.into_iter()
        .map(|at| sited(hosts, finding, at, shares.clone()))
        .collect()
}

fn indices(seen: &[Seen], is_it: impl Fn(Seen) -> bool) -> Vec<usize> {
    let all = seen.iter().enumerate();
    all.filter(|(_, seen)| is_it(**seen))
        .map(|(at, _)| at)
        .collect()
}

/// How much speaks for a host's having it (above zero) or lacking it, and why neither does.
type Weight = (f64, Option<String>);

fn on_the_path(
    hosts: &[Host<'_>],
    finding: &Finding,
    seen: &[Seen],
    mut found: Vec<usize>,
) -> Vec<SegmentFinding> {
    let mut all = Vec::new();
    // Hosts from this one on have what was placed already.
    let mut end = hosts.len();
    // It ends because each round leaves fewer hosts before `end`.
    while let Some(reference) = found.last().copied() {
        let of = |at: usize| -> Weight {
            let (Some(host), Some(with), Some(seen)) =
                (hosts.get(at), hosts.get(reference), seen.get(at))
            else {
                return (0.0, None);
            };
            if at >= end || at == reference {
                return (RULE, None);
            }
            let by_rule = by_rule(*seen);
            match weight(host, with, finding) {
                // A rule that found it is believed, unless it is far less.
                Some(weight) if *seen == Seen::Found && weight > -SURE => (weight.max(RULE), None),
                Some(weight) if weight.abs() >= SURE => (weight, None),
                Some(weight) if !matches!(*seen, Seen::Absent | Seen::Found) => (weight, by_rule.1),
                Some(weight) => (
                    weight,
                    Some("too little was measured there to exclude it".to_owned()),
                ),
                None => by_rule,
            }
        };
        let weights: Vec<Weight> = (0..hosts.len()).map(of).collect();
        let numbers: Vec<f64> = weights.iter().map(|(weight, _)| *weight).collect();
        let at = locate(&numbers, reference);
        let first = at.0.first().copied().or(at.1).unwrap_or(0);
        let shares = weights.into_iter().map(shared).collect();
        all.push(sited(hosts, finding, at, shares));
        end = first.min(reference);
        found.retain(|at| *at < end);
    }
    all
}

/// The segments from which on every host has it that are nearly as likely as the best, and the host that may have it alone.
fn locate(weights: &[f64], reference: usize) -> (Vec<usize>, Option<usize>) {
    let others = |from: usize| -> f64 {
        let all = weights.iter().enumerate().skip(from);
        all.filter(|(at, _)| *at != reference)
            .map(|(_, weight)| *weight)
            .sum()
    };
    let scores: Vec<f64> = (0..=reference).map(others).collect();
    // The end of the path is not distinguished from the segment before it.
    let alone = (reference + 1 < weights.len()).then_some(0.0);
    let best = scores.iter().copied().chain(alone).fold(f64::MIN, f64::max);
    let near = |score: f64| best - score < SURE;
    let segments = scores.iter().enumerate();
    let segments = segments.filter(|(_, score)| near(**score));
    let alone = alone.filter(|score| near(*score)).map(|_| reference);
    (segments.map(|(at, _)| at).collect(), alone)
}

fn by_rule(seen: Seen) -> Weight {
    let unsure = |why: &str| (0.0, Some(why.to_owned()));
    match seen {
        Seen::Found => (RULE, None),
        Seen::Absent => (-RULE, None),
        Seen::NotLookedFor => unsure("it was not looked for there"),
        Seen::NotReached => unsure("less was carried there, so that it may not show"),
        Seen::LooksAlike(cause) => (
            0.0,
            Some(format!("{cause} was found there, which looks like it")),
        ),
        Seen::ComesAndGoes => unsure("one check of it found it, and another did not"),
    }
}

fn shared((weight, why): Weight) -> HostShare {
    let share = match weight {
        weight if weight >= SURE => Share::Has,
        weight if weight <= -SURE => Share::Lacks,
        _ => Share::Unsure,
    };
    HostShare {
        share,
        why: why.filter(|_| share == Share::Unsure),
    }
}

fn sited(
    hosts: &[Host<'_>],
    finding: &Finding,
    (segments, only_at): (Vec<usize>, Option<usize>),
    shares: Vec<HostShare>,
) -> SegmentFinding {
    let has = |at: usize| {
        shares
            .get(at)
            .is_some_and(|share| share.share == Share::Has)
    };
    let those = hosts.iter().enumerate().filter(|(at, _)| has(*at));
    let findings = those.flat_map(|(_, host)| host.findings());
    let same = findings.filter(|other| is_same(other, finding));
    let worst = same.max_by_key(|other| other.severity).unwrap_or(finding);
    SegmentFinding {
        cause: finding.cause,
        place: finding.place,
        severity: worst.severity,
        summary: worst.summary.clone(),
        segments,
        only_at,
        shares,
    }
}

fn steps(hosts: &[Host<'_>]) -> Vec<SegmentStep> {
    let rates =
        |direction| -> Vec<Option<f64>> { hosts.iter().map(|host| host.bps(direction)).collect() };
    let sizes: Vec<Option<f64>> = hosts
        .iter()
        .map(|host| packet_bytes(host).map(f64::from))
        .collect();
    let falls = [
        fall(StepOf::Up, &rates(Direction::Up), SAME_RATE_RATIO),
        fall(StepOf::Down, &rates(Direction::Down), SAME_RATE_RATIO),
        // A size is exact.
        fall(StepOf::PacketSize, &sizes, 1.0).filter(|step| step.before.is_some()),
    ];
    let rtts: Vec<Option<f64>> = hosts.iter().map(least_rtt_s).collect();
    falls.into_iter().flatten().chain(longest(&rtts)).collect()
}

/// Where what a path carries falls to what it carries at its end. A host with less than the end has a limit of its own, and
/// says nothing.
fn fall(of: StepOf, values: &[Option<f64>], same_ratio: f64) -> Option<SegmentStep> {
    let mut all = values.iter().enumerate();
    let (reference, end) = all.rfind(|(_, value)| value.is_some())?;
    let end = (*end)?;
    let weights: Vec<f64> = values
        .iter()
        .map(|value| match value {
            Some(value) if *value * same_ratio > end => -RULE,
            Some(value) if *value >= same_ratio * end => RULE,
            _ => 0.0,
        })
        .collect();
    let (segments, _) = locate(weights.get(..=reference)?, reference);
    let first = segments.first().copied()?;
    let before = first.checked_sub(1).and_then(|at| values.get(at).copied()?);
    Some(SegmentStep {
        of,
        before,
        after: end,
        segments,
    })
}

/// The segment that has most of the round trip, from a host whose round trip is known to the next.
fn longest(rtts: &[Option<f64>]) -> Option<SegmentStep> {
    let known: Vec<(usize, f64)> = rtts
        .iter()
        .enumerate()
        .filter_map(|(at, rtt)| Some((at, (*rtt)?)))
        .collect();
    let (last, end) = known.last().copied()?;
    if last + 1 < rtts.len() || known.len() < 2 {
        return None;
    }
    let before =
        std::iter::once((None, 0.0)).chain(known.iter().map(|(at, rtt)| (Some(*at), *rtt)));
    let parts = before.zip(&known).map(|((from, before), (to, after))| {
        let first = from.map_or(0, |from: usize| from + 1);
        (first, *to, before, after - before)
    });
    let (first, to, before, adds) = parts.max_by(|a, b| a.3.total_cmp(&b.3))?;
    (adds >= MOST_OF_RATIO * end).then(|| SegmentStep {
        of: StepOf::RoundTrip,
        before: (first > 0).then_some(before),
        after: end,
        segments: (first..=to).collect(),
    })
}
