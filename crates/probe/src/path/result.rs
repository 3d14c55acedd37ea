//! What a trace comes to: hops, loss, routes, and what was done to packets.

use std::collections::{BTreeMap, BTreeSet};

use plumb_model::distribution::Distribution;
use plumb_model::protocol::Protocol;
use plumb_model::results::path::{
    Alteration, HopAnswers, MplsEntry, PathHop, PathResult, PathRoute, RouteChange, SynAckSeen,
};
use plumb_model::series::{Series, Unit};
use plumb_wire::tcp_options::{SACK_PERMITTED, TIMESTAMPS};

use super::routes::{self, Cycle, Routes};
use super::target::ProtocolAndPort;
use super::trace::{Seen, Shot, TraceLog};
use plumb_model::hop_loss::{self, Count, Last};

impl ProtocolAndPort {
    /// The name in Runs, and the port.
    pub fn named(self) -> (Protocol, Option<u16>) {
        match self {
            Self::Icmp => (Protocol::Icmp, None),
            Self::Udp { port } => (Protocol::Udp, Some(port)),
            Self::Tcp { port } => (Protocol::Tcp, Some(port)),
        }
    }
}

impl TraceLog {
    /// The hop at which the path ends: where the target answered in the latest cycle that it
    /// answered in, or else a router refused.
    fn end(&self) -> Option<(u8, bool)> {
        let ending = |reached: bool| {
            let mut ends: BTreeMap<u32, u8> = BTreeMap::new();
            for shot in self.shots.iter().filter(|shot| shot.cycle.is_some()) {
                let Some(seen) = &shot.seen else { continue };
                let is_end = if reached {
                    seen.arrival
                } else {
                    seen.annotation
                        .as_ref()
                        .is_some_and(|a| !a.starts_with("!F"))
                };
                if is_end {
                    let cycle = shot.cycle.unwrap_or(0);
                    let end = ends.entry(cycle).or_insert(shot.hops);
                    *end = (*end).min(shot.hops);
                }
            }
            ends
        };
        // A cycle whose probe to the target's hop was lost saw it one hop later: the least of the
        // latest few.
        let nearest = |ends: BTreeMap<u32, u8>| ends.values().rev().take(3).min().copied();
        nearest(ending(true))
            .map(|end| (end, true))
            .or_else(|| nearest(ending(false)).map(|end| (end, false)))
    }

    /// The last hop of the result: the end, or one beyond the last that answered.
    fn last_hop(&self) -> u8 {
        let furthest = self
            .shots
            .iter()
            .filter(|shot| shot.seen.is_some())
            .map(|shot| shot.hops)
            .max()
            .unwrap_or(0);
        match self.end() {
            Some((end, _)) => end,
            None => furthest.saturating_add(1).min(self.plan.last_hop),
        }
    }

    /// What the trace found, without names and places.
    pub fn result(&self, protocol: ProtocolAndPort) -> PathResult {
        let (protocol, port) = protocol.named();
        let reached = self.end().is_some_and(|(_, reached)| reached);
        let last_hop = self.last_hop();
        let by_hop = self.by_hop(last_hop);
        let routes = if self.plan.flow_per_cycle {
            // Another flow is no other time.
            Routes::default()
        } else {
            routes::find(&self.cycles(last_hop))
        };
        let counts: Vec<Count> = by_hop
            .iter()
            .map(|(ttl, shots)| Count {
                ttl: *ttl,
                sent: shots.len() as u64,
                lost: shots.iter().filter(|shot| shot.seen.is_none()).count() as u64,
            })
            .collect();
        let (answers, loss) = hop_loss::examine(&counts, last_says(reached, protocol, &by_hop));
        let mut hops: Vec<PathHop> = by_hop
            .iter()
            .zip(&answers)
            .map(|((ttl, shots), answers)| hop(*ttl, shots, routes.in_use(), *answers))
            .collect();
        for hop in &mut hops {
            if routes.varying.contains(&hop.ttl) {
                hop.notes.push(
                    "answers of one flow come from several addresses: packets are shared one by one, or the route is unstable"
                        .to_owned(),
                );
            } else if hop.addresses.len() > 1 && self.plan.flow_per_cycle {
                hop.notes.push(
                    "each cycle is a flow of its own here, and flows take different paths"
                        .to_owned(),
                );
            }
        }
        PathResult {
            protocol,
            port,
            address: self.plan.target.to_string(),
            reached,
            cycles: self.cycles.into(),
            hops,
            loss,
            routes: self.routes(&routes),
            changes: self.changes(&routes),
            alterations: self.alterations(last_hop),
            quoting_hops: Some(self.quoting_hops(last_hop)),
            marks: None,
            syn_ack: self.syn_ack(),
            multipath: None,
            distance: None,
            way_back: None,
            symmetry: None,
        }
    }

    /// The probes to each hop that count, without the marked ones and those that were cut off here.
    fn by_hop(&self, last_hop: u8) -> BTreeMap<u8, Vec<&Shot>> {
        let mut hops: BTreeMap<u8, Vec<&Shot>> = BTreeMap::new();
        for shot in &self.shots {
            if shot.cycle.is_some() && shot.hops <= last_hop && shot.counts() {
                hops.entry(shot.hops).or_default().push(shot);
            }
        }
        hops
    }

    fn cycles(&self, last_hop: u8) -> Vec<Cycle> {
        let mut cycles: BTreeMap<u32, Cycle> = BTreeMap::new();
        for shot in &self.shots {
            let Some(number) = shot.cycle else { continue };
            let cycle = cycles.entry(number).or_insert_with(|| Cycle {
                sent_ns: shot.sent_ns,
                ..Cycle::default()
            });
            if let Some(seen) = &shot.seen {
                if seen.arrival {
                    cycle.end = Some(cycle.end.map_or(shot.hops, |end| end.min(shot.hops)));
                }
                cycle.hops.insert(shot.hops, seen.from);
            }
        }
        let mut cycles: Vec<Cycle> = cycles.into_values().collect();
        for cycle in &mut cycles {
            // Behind the target it answers again and again. One that lost the probe to the target's own
            // hop would have it one hop too late.
            let end = cycle.end.unwrap_or(last_hop);
            cycle.hops.retain(|hop, _| *hop <= end);
        }
        repair_ends(&mut cycles);
        cycles
    }

    fn seconds(&self, ns: u64) -> f64 {
        ns.saturating_sub(self.started_ns) as f64 / 1e9
    }

    fn routes(&self, found: &Routes) -> Vec<PathRoute> {
        let cycle_of = |shot: &Shot| shot.cycle.map(|cycle| cycle as usize);
        found
            .routes
            .iter()
            .map(|route| {
                let last = route.hops.keys().next_back().copied().unwrap_or(0);
                let end = route.end.unwrap_or(last);
                let members: BTreeSet<usize> = route.cycles.iter().copied().collect();
                let shots: Vec<&Shot> = self
                    .shots
                    .iter()
                    .filter(|shot| cycle_of(shot).is_some_and(|cycle| members.contains(&cycle)))
                    .collect();
                let to_end: Vec<&&Shot> = shots
                    .iter()
                    .filter(|shot| shot.hops == end && shot.counts())
                    .collect();
                let rtts = to_end.iter().filter_map(|shot| rtt(shot));
                let times = || shots.iter().map(|shot| self.seconds(shot.sent_ns));
                PathRoute {
                    addresses: (1..=end)
                        .map(|hop| route.hops.get(&hop).map(ToString::to_string))
                        .collect(),
                    first_s: times().reduce(f64::min).unwrap_or(0.0),
                    last_s: times().reduce(f64::max).unwrap_or(0.0),
                    cycles: route.cycles.len() as u64,
                    sent: to_end.len() as u64,
                    received: to_end.iter().filter(|shot| shot.seen.is_some()).count() as u64,
                    rtt_s: Distribution::of(rtts),
                }
            })
            .collect()
    }

    fn changes(&self, found: &Routes) -> Vec<RouteChange> {
        let first_shot = |cycle: usize, hop: u8| {
            let mut of_cycle = self
                .shots
                .iter()
                .filter(|shot| shot.cycle.map(|c| c as usize) == Some(cycle));
            let at_hop = of_cycle.clone().find(|shot| shot.hops == hop);
            at_hop
                .or_else(|| of_cycle.next())
                .map_or(0.0, |shot| self.seconds(shot.sent_ns))
        };
        found
            .changes
            .iter()
            .map(|change| RouteChange {
                at_s: first_shot(change.first_cycle, change.hop),
                after_s: first_shot(change.last_cycle, change.hop),
                time: None,
                from_route: change.from,
                to_route: change.to,
                ttl: change.hop,
            })
            .collect()
    }

    /// How many hops quoted a probe.
    fn quoting_hops(&self, last_hop: u8) -> u64 {
        let answered = |shot: &&Shot| shot.seen.as_ref().is_some_and(|seen| seen.quoted);
        let shots = self.shots.iter().filter(|shot| shot.hops <= last_hop);
        let hops: BTreeSet<u8> = shots.filter(answered).map(|shot| shot.hops).collect();
        hops.len() as u64
    }

    /// Each change once, where it was first seen.
    fn alterations(&self, last_hop: u8) -> Vec<Alteration> {
        let mut quoting: Vec<(u8, &Seen)> = self
            .shots
            .iter()
            .filter(|shot| shot.hops <= last_hop)
            .filter_map(|shot| Some((shot.hops, shot.seen.as_ref()?)))
            .filter(|(_, seen)| seen.quoted || !seen.differences.is_empty())
            .collect();
        quoting.sort_by_key(|(hops, _)| *hops);
        let mut found: Vec<Alteration> = Vec::new();
        for (hops, seen) in &quoting {
            for difference in &seen.differences {
                let known = found
                    .iter()
                    .any(|a| a.field == difference.field && a.seen == difference.seen);
                if known {
                    continue;
                }
                let intact_at_ttl = quoting
                    .iter()
                    .filter(|(nearer, other)| {
                        nearer < hops
                            && other.quoted
                            && other
                                .differences
                                .iter()
                                .all(|d| d.field != difference.field)
                    })
                    .map(|(nearer, _)| *nearer)
                    .max();
                found.push(Alteration {
                    field: difference.field,
                    sent: difference.sent.clone(),
                    seen: difference.seen.clone(),
                    seen_at_ttl: *hops,
                    intact_at_ttl,
                });
            }
        }
        found
    }

    fn syn_ack(&self) -> Option<SynAckSeen> {
        let (offered, ecn) = self
            .shots
            .iter()
            .rev()
            .find_map(|shot| shot.seen.as_ref()?.syn_ack.as_ref())?;
        let ecn = *ecn
            || self.shots.iter().any(|shot| {
                matches!(
                    &shot.seen,
                    Some(Seen {
                        syn_ack: Some((_, true)),
                        ..
                    })
                )
            });
        Some(SynAckSeen {
            mss_bytes: offered.mss_bytes,
            window_scale: offered.window_scale,
            sack: offered.kinds.contains(&SACK_PERMITTED),
            timestamps: offered.kinds.contains(&TIMESTAMPS),
            ecn,
        })
    }

    /// The round trips of each hop over time: `rtt_hop_1` and so on.
    pub fn series(&self) -> BTreeMap<String, Series> {
        self.by_hop(self.last_hop())
            .into_iter()
            .map(|(ttl, shots)| {
                let mut series = Series::new(Unit::Seconds);
                for shot in shots {
                    series.push(self.seconds(shot.sent_ns), rtt(shot));
                }
                (format!("rtt_hop_{ttl}"), series)
            })
            .collect()
    }

    /// Whether the target answered, and the furthest hop that did.
    pub fn reach(&self) -> (bool, u8) {
        let seen = self.shots.iter().filter(|shot| shot.seen.is_some());
        let furthest = seen.map(|shot| shot.hops).max().unwrap_or(0);
        (self.end().is_some_and(|(_, reached)| reached), furthest)
    }
}

/// So many cycles on either side show where the target stands: a path that loses one probe in ten loses that to the
/// target's own hop in all of six only once in a million.
const BESIDE_CYCLES: usize = 3;

/// Corrects ends that are one hop too late, because the probe to the target's own hop was lost, by the cycles beside
/// them: only the target can have answered there.
fn repair_ends(cycles: &mut [Cycle]) {
    let ends: Vec<Option<u8>> = cycles.iter().map(|cycle| cycle.end).collect();
    for (index, cycle) in cycles.iter_mut().enumerate() {
        let from = index.saturating_sub(BESIDE_CYCLES);
        let beside = ends
            .iter()
            .skip(from)
            .take(index - from + 1 + BESIDE_CYCLES);
        let nearest = beside.flatten().copied().min();
        if let (Some(end), Some(near)) = (cycle.end, nearest)
            && near < end
            && !(near..end).any(|hop| cycle.hops.contains_key(&hop))
        {
            let target = cycle.hops.remove(&end);
            cycle.hops.extend(target.map(|target| (near, target)));
            cycle.end = Some(near);
        }
    }
}

/// What the last hop that answers says: errors where the target did not answer, refuses, or is asked by UDP on
/// a port where nothing listens.
fn last_says(reached: bool, protocol: Protocol, hops: &BTreeMap<u8, Vec<&Shot>>) -> Last {
    let mut at_end = hops.values().next_back().into_iter().flatten();
    let refuses = at_end.any(|shot| shot.seen.as_ref().is_some_and(|s| s.annotation.is_some()));
    if reached && protocol != Protocol::Udp && !refuses {
        Last::Replies
    } else {
        Last::Errors
    }
}

fn rtt(shot: &Shot) -> Option<f64> {
    shot.seen.as_ref().map(|seen| seen.rtt.as_secs_f64())
}

/// One hop of the result. Where the route changed before it or at it, who answers and how fast is of the
/// route in use alone; the probes are all.
fn hop(ttl: u8, shots: &[&Shot], in_use: Option<(u8, &[usize])>, answers: HopAnswers) -> PathHop {
    let seen: Vec<&Seen> = shots.iter().filter_map(|shot| shot.seen.as_ref()).collect();
    let mut addresses: Vec<String> = Vec::new();
    for seen in &seen {
        let address = seen.from.to_string();
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    let sent = shots.len() as u64;
    let received = seen.len() as u64;
    let is_in_use = |shot: &&&Shot| match (in_use, shot.cycle) {
        (Some((first_hop, cycles)), Some(cycle)) if ttl >= first_hop => {
            cycles.binary_search(&(cycle as usize)).is_ok()
        }
        _ => true,
    };
    let shots = shots.iter().filter(is_in_use);
    let seen: Vec<&Seen> = shots.filter_map(|shot| shot.seen.as_ref()).collect();
    let latest = seen.last();
    let return_hops = latest.and_then(|seen| seen.hop_limit).map(return_hops);
    let mut notes = Vec::new();
    let at_target = latest.is_some_and(|seen| seen.arrival);
    match answers {
        HopAnswers::Silent => notes.push("does not answer, and may forward well".to_owned()),
        HopAnswers::Sparing => notes.push(
            "answers sparingly: hops beyond it answer more often, so it limits its ICMP and loses nothing"
                .to_owned(),
        ),
        HopAnswers::TooFew => notes.push(format!(
            "left {} of {sent} probes unanswered, those beyond it none: too few probes to show whether it limits its ICMP or packets are lost",
            sent - received
        )),
        HopAnswers::Unclear if at_target => notes.push(
            "left probes unanswered, as hosts do that limit their ICMP errors: --icmp or --tcp show whether packets are lost"
                .to_owned(),
        ),
        HopAnswers::Unclear => notes.push(
            "left probes unanswered, as routers do that limit their ICMP: nothing beyond it shows whether packets are lost"
                .to_owned(),
        ),
        HopAnswers::Well => {}
    }
    if let Some(back) = return_hops.filter(|back| *back != ttl) {
        notes.push(format!(
            "its answers come back over {back} hops, not {ttl}: the path back differs, or a tunnel hides hops"
        ));
    }
    PathHop {
        ttl,
        address: latest.map(|seen| seen.from.to_string()),
        addresses,
        name: None,
        asn: None,
        as_name: None,
        place: None,
        sent,
        received,
        unanswered_ratio: if sent == 0 {
            0.0
        } else {
            (sent - received) as f64 / sent as f64
        },
        answers,
        rtt_s: Distribution::of(seen.iter().map(|seen| seen.rtt.as_secs_f64())),
        last_rtt_s: latest.map(|seen| seen.rtt.as_secs_f64()),
        annotation: seen.iter().rev().find_map(|seen| seen.annotation.clone()),
        this_host: false,
        mpls: latest.map_or_else(Vec::new, |seen| {
            let entry = |label: &plumb_wire::icmp_report::MplsLabel| MplsEntry {
                label: label.label,
                traffic_class: label.traffic_class,
                ttl: label.ttl,
            };
            seen.labels.iter().map(entry).collect()
        }),
        return_hops,
        notes,
    }
}

/// How many hops an answer took whose time to live was one of the usual at its start.
fn return_hops(left: u8) -> u8 {
    let start = [64u8, 128, 255].into_iter().find(|start| left <= *start);
    start
        .unwrap_or(u8::MAX)
        .saturating_sub(left)
        .saturating_add(1)
}
