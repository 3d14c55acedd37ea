//! What this machine counted while something was measured.

use std::collections::BTreeSet;

use plumb_model::context::Phase;
use plumb_model::results::Outcome;
use plumb_model::results::host::RatesResult;
use plumb_model::run::Measurement;

use crate::Case;

/// An interface counts as one of the path where it carried this share of the bytes of the busiest one.
const IN_USE_RATIO: f64 = 0.1;

/// Growth of this machine's counters during a phase.
#[derive(Clone, Copy)]
pub(crate) struct Counted<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a RatesResult,
}

impl<'a> Counted<'a> {
    /// By how much a counter grew; 0 where it stood still or is not there.
    pub(crate) fn grown(self, name: &str) -> u64 {
        self.result.grown.get(name).copied().unwrap_or(0)
    }

    /// By how much some counters grew together.
    pub(crate) fn sum<'n>(self, names: impl IntoIterator<Item = &'n str>) -> u64 {
        let grown = names.into_iter().map(|name| self.grown(name));
        grown.fold(0, u64::saturating_add)
    }

    /// What it was counted beside, in words that follow a sentence.
    pub(crate) fn during(self) -> &'static str {
        match self.measurement.context.phase {
            Some(Phase::Idle) => "before any load",
            Some(Phase::Up) => "during the upload",
            Some(Phase::Down) => "during the download",
            Some(Phase::Both) => "while both directions were loaded",
            Some(Phase::After) => "after the load",
            Some(Phase::Silence) => "after a silence",
            None => "meanwhile",
        }
    }

    /// The interfaces that carried the traffic, but for the loopback.
    pub(crate) fn interfaces(self) -> Vec<&'a str> {
        let names = self.result.grown.keys();
        let names = names.filter_map(|name| {
            let sent = name.strip_suffix(".tx_packets");
            sent.or_else(|| name.strip_suffix(".rx_packets"))
        });
        let names: BTreeSet<&str> = names.filter(|name| *name != "lo").collect();
        let mut carried: Vec<(&str, f64)> = names
            .into_iter()
            .map(|name| {
                let bytes = ["rx_bytes", "tx_bytes"].map(|way| self.of(name, way) as f64);
                (name, bytes.iter().sum())
            })
            .collect();
        let most = carried.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
        carried.retain(|(_, bytes)| *bytes >= IN_USE_RATIO * most);
        carried.into_iter().map(|(name, _)| name).collect()
    }

    /// By how much a counter of an interface grew.
    pub(crate) fn of(self, interface: &str, counter: &str) -> u64 {
        self.grown(&format!("{interface}.{counter}"))
    }
}

impl<'a> Case<'a> {
    /// Growth of this machine's counters, for each phase that it was read beside.
    pub(crate) fn counted(&self) -> impl Iterator<Item = Counted<'a>> + use<'a> {
        self.measurements
            .iter()
            .filter_map(|measurement| match &measurement.outcome {
                Outcome::HostRates(result) => Some(Counted {
                    measurement,
                    result,
                }),
                _ => None,
            })
    }

    /// Whether this is the machine's first network namespace, so that what is of the whole machine is of the path, too;
    /// `None` where that was not read.
    pub(crate) fn is_whole_machine(&self) -> Option<bool> {
        let (_, host) = self.hosts().next()?;
        Some(host.machine.first_network_namespace)
    }
}
