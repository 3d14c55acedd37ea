//! The map of the components: this host, its link, the routers and lines, and the far end, each with what is known of it
//! and what was found there.

use plumb_model::context::Phase;
use plumb_model::finding::{Finding, Place};
use plumb_model::results::Direction;
use plumb_model::run::{HostFacts, Run};
use serde::Serialize;

use crate::map::{Map, note};
use crate::phase::flow;
use crate::registry::{self, shown};
use crate::{heading, number};

/// A component, the nearest to this host first.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Component {
    /// What it is called; a line between two machines has no name.
    pub(crate) name: Option<String>,
    pub(crate) facts: Vec<String>,
    /// What was found there.
    pub(crate) findings: Vec<Found>,
}

/// A finding on the map.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Found {
    pub(crate) cause: &'static str,
    pub(crate) severity: &'static str,
    sure: String,
}

impl Found {
    pub(crate) fn sentence(&self) -> String {
        format!("{} ({}, {} sure)", self.cause, self.severity, self.sure)
    }
}

/// What this host says of itself.
pub(super) fn this_host(run: &Run) -> String {
    let facts = said(&run.local.host);
    match facts.is_empty() {
        true => "this host".to_owned(),
        false => format!("this host ({})", facts.join(", ")),
    }
}

fn said(host: &HostFacts) -> Vec<String> {
    let plumb = (!host.plumb.is_empty()).then(|| format!("plumb {}", host.plumb));
    let kernel = Some(host.kernel.clone()).filter(|kernel| !kernel.is_empty());
    [kernel, plumb].into_iter().flatten().collect()
}

/// The whole path, or the known part of it.
pub(super) fn of(run: &Run) -> Vec<Component> {
    let mut map = Map::default();
    map.here.extend(said(&run.local.host));
    for measurement in &run.measurements {
        shown(measurement).on_map(&mut map);
    }
    carried(run, &mut map);
    let found = |places: &[Place]| found(run, places);
    let mut parts = vec![Component {
        name: Some("this host".to_owned()),
        facts: std::mem::take(&mut map.here),
        findings: found(&[Place::ThisHost, Place::Client]),
    }];
    let Some(target) = &run.target else {
        parts.push(line(map.link, found(&[Place::LocalSegment])));
        return parts;
    };
    parts.push(line(
        std::mem::take(&mut map.link),
        found(&[Place::LocalSegment]),
    ));
    let mut beyond = Some(line(
        [
            std::mem::take(&mut map.lines),
            std::mem::take(&mut map.whole),
        ]
        .concat(),
        found(&[Place::Uplink, Place::Downlink, Place::Path]),
    ));
    let clear_until = map.clear_until.unwrap_or(0);
    let far_ttl = map.far_ttl.unwrap_or(u8::MAX);
    let mut far = Vec::new();
    for (ttl, hop) in map.hops().filter(|(ttl, _)| *ttl <= far_ttl) {
        // What is before the first router is the local link.
        match parts.last_mut().filter(|_| ttl <= 1) {
            Some(link) => link.facts.extend(hop.line.iter().cloned()),
            None => {
                let mut facts = hop.line.clone();
                if let Some(mut first) = beyond.take_if(|_| ttl > clear_until) {
                    facts.append(&mut first.facts);
                    parts.push(line(facts, first.findings));
                } else {
                    parts.push(line(facts, Vec::new()));
                }
            }
        }
        if ttl == far_ttl {
            far.clone_from(&hop.facts);
            continue;
        }
        let name = hop.name.as_deref().unwrap_or("unknown");
        parts.push(Component {
            name: Some(format!("hop {ttl}: {name}")),
            facts: hop.facts.clone(),
            findings: Vec::new(),
        });
    }
    // Where no router is known behind it, or the far end is the next machine.
    parts.extend(beyond.filter(|line| !line.facts.is_empty() || !line.findings.is_empty()));
    if parts.last().is_some_and(|last| last.name.is_some()) {
        parts.push(line(Vec::new(), Vec::new()));
    }
    if let Some(host) = &target.host {
        far.extend(said(host));
    }
    parts.push(Component {
        name: Some(heading::target(run)),
        facts: far,
        findings: found(&[Place::FarHost, Place::Server]),
    });
    merged(parts)
}

/// Lines that follow each other without a machine between as one.
fn merged(parts: Vec<Component>) -> Vec<Component> {
    let mut whole: Vec<Component> = Vec::new();
    for mut part in parts {
        match whole.last_mut() {
            Some(last) if last.name.is_none() && part.name.is_none() => {
                last.facts.append(&mut part.facts);
                last.findings.append(&mut part.findings);
            }
            _ => whole.push(part),
        }
    }
    whole
}

fn line(facts: Vec<String>, findings: Vec<Found>) -> Component {
    Component {
        name: None,
        facts,
        findings,
    }
}

/// What reached the receiver of each direction alone.
fn carried(run: &Run, map: &mut Map) {
    for direction in [Direction::Down, Direction::Up] {
        let of_phase = run.measurements.iter().filter(|measurement| {
            let experiment = measurement.context.experiment.is_some();
            registry::phase(measurement) == Phase::from(direction) && !experiment
        });
        let rates = of_phase.filter_map(|measurement| shown(measurement).rate());
        let rate = rates.map(|(_, bps)| bps).reduce(f64::max);
        let rate = rate.map(|bps| format!("{} of {}", flow(direction), number::rate(bps)));
        note(&mut map.lines, rate);
    }
}

fn found(run: &Run, places: &[Place]) -> Vec<Found> {
    let there = run.findings.iter();
    let there = there.filter(|finding| places.contains(&finding.place));
    let found = |finding: &Finding| Found {
        cause: finding.cause.name(),
        severity: finding.severity.name(),
        sure: number::percent(finding.confidence),
    };
    there.map(found).collect()
}
