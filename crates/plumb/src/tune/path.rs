//! Which path a plan is for, from options or a Run.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use plumb_diagnose::path_to_prepare::path_to_prepare;
use plumb_host::knobs::situation::Situation;
use plumb_model::finding::Actor;
use plumb_model::run::Run;
use plumb_model::tune::{PlannedPath, Role};
use plumb_model::units::BitRate;

use crate::calc::share;
use crate::output::read_run;
use crate::quantity::{rate_above_zero, round_trip};
use crate::usage::wrong;
use crate::words;

/// The path, and what the host does on it.
#[derive(Args)]
pub(super) struct PathOptions {
    /// Rate that one connection has to reach
    #[arg(long, value_name = "RATE", value_parser = rate_above_zero)]
    rate: Option<BitRate>,
    /// Round-trip time of the idle path
    #[arg(long, value_name = "TIME", value_parser = round_trip)]
    rtt: Option<Duration>,
    /// Share of packets that the path loses, such as 0.01%
    #[arg(long, value_parser = share)]
    loss: Option<f64>,
    /// Take the path from a Run
    ///
    /// Its rate, its round-trip time, and which end limits. --rate and --rtt override it.
    #[arg(long, value_name = "RUN")]
    from: Option<PathBuf>,
    /// Role of the host
    #[arg(long, default_value = "client", value_parser = words::any::<Role>())]
    role: Role,
}

/// A path to plan for.
pub(super) struct Path {
    pub(super) situation: Situation,
    pub(super) planned: PlannedPath,
    /// The ends that limit, where a Run says.
    pub(super) ends: Vec<Actor>,
    /// The Run that it is from.
    pub(super) run: Option<Run>,
}

impl Path {
    /// An address on it, for the interface that leads there.
    pub(super) fn address(&self) -> Option<IpAddr> {
        self.run
            .as_ref()?
            .target
            .as_ref()?
            .address
            .as_ref()?
            .parse()
            .ok()
    }
}

impl PathOptions {
    /// Reads the Run, if there is one, and puts the options before it.
    pub(super) fn resolve(&self) -> anyhow::Result<Path> {
        self.with(self.from.as_deref().map(read_run).transpose()?)
    }

    /// The same where a Run has just been made, unless another is given.
    pub(super) fn resolve_with(&self, measured: &Run) -> anyhow::Result<Path> {
        match &self.from {
            Some(_) => self.resolve(),
            None => self.with(Some(measured.clone())),
        }
    }

    /// Options that name the same path again.
    pub(super) fn written(&self, path: &Path) -> String {
        let planned = &path.planned;
        // As many digits as anybody would write.
        let thousandths = |value: f64| (value * 1e3).round() / 1e3;
        let mut text = format!(
            "--rate {}mbit --rtt {}ms",
            thousandths(planned.rate_bps / 1e6),
            thousandths(planned.rtt_s * 1e3)
        );
        if let Some(loss) = planned.loss_ratio {
            text += &format!(" --loss {}%", digits(loss * 100.0));
        }
        if self.role != Role::Client {
            text += &format!(" --role {}", self.role);
        }
        text
    }

    fn with(&self, run: Option<Run>) -> anyhow::Result<Path> {
        let measured = match &run {
            // What the options give need not be in it.
            Some(run) if self.rate.is_none() || self.rtt.is_none() => Some(path_to_prepare(run)?),
            Some(run) => path_to_prepare(run).ok(),
            None => None,
        };
        let rate_bps = self
            .rate
            .map(|rate| rate.bps() as f64)
            .or(measured.as_ref().map(|m| m.rate_bps));
        let rtt_s = self
            .rtt
            .map(|rtt| rtt.as_secs_f64())
            .or(measured.as_ref().map(|m| m.rtt_s));
        let (Some(rate_bps), Some(rtt_s)) = (rate_bps, rtt_s) else {
            return Err(wrong(
                "which path? Give --rate and --rtt, as in --rate 10gbit --rtt 50ms, or --from a saved Run",
            ));
        };
        if !(rate_bps > 0.0 && rtt_s > 0.0) {
            return Err(wrong("the rate and the RTT must be above zero"));
        }
        let from = match (&self.from, self.rate.is_some() && self.rtt.is_some()) {
            (Some(file), false) => format!("from {}", file.display()),
            (None, false) => "as measured".to_owned(),
            _ => "as given".to_owned(),
        };
        let situation = Situation {
            rate_bps,
            rtt_s,
            loss_ratio: self.loss.or(measured.as_ref().and_then(|m| m.loss_ratio)),
            role: self.role,
            memory_bytes: None,
            mtu_bytes: None,
            release: None,
        };
        Ok(Path {
            planned: PlannedPath {
                rate_bps,
                rtt_s,
                loss_ratio: situation.loss_ratio,
                bdp_bytes: situation.bdp_bytes(),
                from,
            },
            situation,
            ends: measured.map_or_else(|| vec![Actor::ThisHost], |m| m.ends),
            run,
        })
    }
}

/// A number without the digits that multiplying left behind: 7, not 7.000000000000001.
fn digits(value: f64) -> f64 {
    format!("{value:.11e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_written_as_it_was_given() {
        for (ratio, percent) in [(0.07, "7"), (0.29, "29"), (0.000_001, "0.0001")] {
            assert_eq!(digits(ratio * 100.0).to_string(), percent);
        }
    }
}
