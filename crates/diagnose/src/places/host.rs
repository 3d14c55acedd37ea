//! A host that was checked, and what its checks show.

use std::net::IpAddr;

use plumb_model::finding::Finding;
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::run::Run;

use crate::Case;
use crate::needs::is_measured;

/// A far end with its checks.
#[derive(Debug, Clone)]
pub struct Host<'a> {
    /// Every name by which it was checked.
    pub names: Vec<&'a str>,
    /// Its address, where it is known.
    pub address: Option<IpAddr>,
    pub runs: Vec<&'a Run>,
}

/// The hosts of Runs, in their order; all Runs to one address are of one host. Runs without a far end are of none.
pub fn hosts(runs: &[Run]) -> Vec<Host<'_>> {
    let mut hosts: Vec<Host<'_>> = Vec::new();
    for run in runs {
        let Some(target) = &run.target else {
            continue;
        };
        let name = target.name.as_str();
        let address = target.address.as_ref().and_then(|text| text.parse().ok());
        let same = |host: &&mut Host<'_>| match host.address {
            Some(known) => Some(known) == address,
            None => address.is_none() && host.names.contains(&name),
        };
        match hosts.iter_mut().find(same) {
            Some(host) => {
                host.runs.push(run);
                if !host.names.contains(&name) {
                    host.names.push(name);
                }
            }
            None => hosts.push(Host {
                names: vec![name],
                address,
                runs: vec![run],
            }),
        }
    }
    hosts
}

impl<'a> Host<'a> {
    pub fn name(&self) -> &'a str {
        self.names.first().copied().unwrap_or_default()
    }

    /// Whether it was checked over IPv6, where its address is known.
    pub fn is_ipv6(&self) -> Option<bool> {
        self.address.map(|address| address.is_ipv6())
    }

    /// What its checks found.
    pub fn findings(&self) -> impl Iterator<Item = &'a Finding> {
        self.runs.iter().flat_map(|run| &run.findings)
    }

    /// Whether a check of it found that.
    pub(crate) fn has(&self, is_it: impl Fn(&Finding) -> bool) -> bool {
        self.findings().any(is_it)
    }

    /// Whether anything came back from it: a round trip or payload.
    pub fn answers(&self) -> bool {
        self.runs.iter().any(|run| {
            let case = Case::of(run);
            let carried = [Direction::Up, Direction::Down].into_iter();
            let mut carried = carried.filter_map(|direction| case.carried_alone(direction));
            is_measured(&case, Need::Idle) || carried.any(|carried| carried.result.bytes > 0)
        })
    }

    /// The middle of the round trips of the idle path in its first check that has them, in seconds.
    pub fn idle_s(&self) -> Option<f64> {
        let mut all = self.runs.iter();
        all.find_map(|run| Some(Case::of(run).idle()?.result.rtt_s?.p50))
    }

    /// The most that a load of one direction carried, in bit/s.
    pub fn bps(&self, direction: Direction) -> Option<f64> {
        let all = self.runs.iter();
        let all = all.filter_map(|run| Some(Case::of(run).carried_alone(direction)?.bps()));
        all.max_by(f64::total_cmp)
    }
}
