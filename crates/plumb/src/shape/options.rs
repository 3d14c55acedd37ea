//! What is to be shaped, from options or a Run.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use plumb_host::shape::plan::{Plan, PlanError, plan};
use plumb_host::shape::reading::{Reading, read};
use plumb_host::shape::request::Request;
use plumb_model::direction::OneDirection;
use plumb_model::finding::{Action, ShaperAction};
use plumb_model::framing::Framing;
use plumb_model::results::Outcome;
use plumb_model::results::shaping::ShapedRateResult;
use plumb_model::run::Run;
use plumb_model::shape::{Scheme, ShapeClasses};
use plumb_model::units::{BitRate, si};

use crate::output::read_run;
use crate::quantity::rate_above_zero;
use crate::usage::wrong;
use crate::words;

/// An interface and how its queues are to be managed.
#[derive(Args)]
pub(super) struct ShapeOptions {
    /// Interface to the line
    #[arg(value_name = "DEV")]
    device: String,
    /// Rate of what it sends, a little below the line's
    #[arg(long, value_name = "RATE", value_parser = rate_above_zero)]
    up: Option<BitRate>,
    /// Rate of what it receives, a little below the line's
    #[arg(long, value_name = "RATE", value_parser = rate_above_zero)]
    down: Option<BitRate>,
    /// Take what a Run advises, or the rates that auto found
    ///
    /// --up, --down and --framing override it.
    #[arg(long, value_name = "RUN")]
    from: Option<PathBuf>,
    /// What the line adds to a packet, as tc-cake(8) [default: docsis]
    ///
    /// docsis, ethernet, pppoe-ptm, bridged-ptm, pppoe-llcsnap and others, or 'overhead 22 mpu 64 ptm'.
    #[arg(long)]
    framing: Option<Framing>,
    /// What shapes [default: cake where the kernel has it]
    #[arg(long, value_parser = words::any::<Scheme>())]
    scheme: Option<Scheme>,
    /// Traffic that has a class of its own, by its DSCP
    #[arg(long, default_value = "besteffort", value_parser = words::any::<ShapeClasses>())]
    classes: ShapeClasses,
    /// Distinguish hosts behind this machine's address translation
    #[arg(long)]
    nat: bool,
    /// Drop acknowledgements that others make superfluous, upwards
    #[arg(long)]
    ack_filter: bool,
    /// Put a configuration that is not plumb's aside until undo
    #[arg(long)]
    replace: bool,
}

/// A plan, and what it follows from.
pub(super) struct Planned {
    pub(super) request: Request,
    pub(super) reading: Reading,
    pub(super) plan: Plan,
}

impl ShapeOptions {
    /// Reads the interface and plans.
    pub(super) fn plan(&self) -> anyhow::Result<Planned> {
        let request = self.request()?;
        let reading = read(&request.device, request.replace)?;
        let plan = plan(&request, &reading).map_err(|error| match error {
            PlanError::Nothing => wrong(error.to_string()),
            error => error.into(),
        })?;
        Ok(Planned {
            request,
            reading,
            plan,
        })
    }

    /// What was asked for, before anything of this machine is read.
    pub(super) fn request(&self) -> anyhow::Result<Request> {
        let run = self.from.as_deref().map(read_run).transpose()?;
        let advised = match (&run, &self.from) {
            (Some(run), Some(file)) => advised(run, self.up.is_some() || self.down.is_some())
                .with_context(|| format!("cannot shape from {}", file.display()))?,
            _ => Vec::new(),
        };
        let one = |direction, rate: Option<BitRate>| {
            let advised = advised.iter().find(|s| s.direction == direction);
            let rate_bps = rate.map(|rate| rate.bps());
            let rate_bps = rate_bps.or_else(|| advised.map(|s| s.rate_bps))?;
            let framing = self.framing.or_else(|| advised.map(ShaperAction::framing));
            let framing = framing.unwrap_or(DEFAULT_FRAMING);
            Some(ShaperAction {
                direction,
                rate_bps,
                overhead_bytes: framing.overhead_bytes,
                mpu_bytes: framing.mpu_bytes,
                cells: framing.cells,
                qdisc: advised.map_or_else(|| "fq_codel".to_owned(), |s| s.qdisc.clone()),
            })
        };
        let shapers = [
            one(OneDirection::Up, self.up),
            one(OneDirection::Down, self.down),
        ];
        let shapers: Vec<ShaperAction> = shapers.into_iter().flatten().collect();
        if let Some(run) = &run {
            shapers.iter().try_for_each(|shaper| carried(shaper, run))?;
        }
        Ok(Request {
            device: self.device.clone(),
            shapers,
            scheme: self.scheme,
            classes: self.classes,
            nat: self.nat,
            ack_filter: self.ack_filter,
            replace: self.replace,
        })
    }
}

/// What findings assume too: Ethernet's header and checksum (`docsis`).
const DEFAULT_FRAMING: Framing = Framing {
    overhead_bytes: 18,
    mpu_bytes: 64,
    cells: plumb_model::framing::Cells::None,
};

/// The shapers that a Run asks for, one of each direction: of the rate that `shape auto` found, or else of its first finding. Where
/// rates are given beside it, it need not ask for any.
fn advised(run: &Run, may_be_none: bool) -> anyhow::Result<Vec<ShaperAction>> {
    let of = |direction| {
        let found_bps = searched(run, direction).and_then(|result| result.rate_bps);
        let found = found_bps.map(|bps| ShaperAction {
            direction,
            rate_bps: bps as u64,
            overhead_bytes: DEFAULT_FRAMING.overhead_bytes,
            mpu_bytes: DEFAULT_FRAMING.mpu_bytes,
            cells: DEFAULT_FRAMING.cells,
            qdisc: "fq_codel".to_owned(),
        });
        let mut fixes = run.findings.iter().flat_map(|finding| &finding.fixes);
        found.or_else(|| {
            fixes.find_map(|fix| match &fix.action {
                Some(Action::Shaper(shaper)) if shaper.direction == direction => {
                    Some(shaper.clone())
                }
                _ => None,
            })
        })
    };
    let both = [OneDirection::Up, OneDirection::Down];
    let shapers: Vec<ShaperAction> = both.into_iter().filter_map(of).collect();
    anyhow::ensure!(
        may_be_none || !shapers.is_empty(),
        "no finding of it advises a shaper: give --up and --down"
    );
    Ok(shapers)
}

/// What `shape auto` found for a direction.
fn searched(run: &Run, direction: OneDirection) -> Option<&ShapedRateResult> {
    let mut outcomes = run.measurements.iter().map(|measured| &measured.outcome);
    outcomes.find_map(|outcome| match outcome {
        Outcome::ShapedRate(result) if result.direction == direction.into() => Some(&**result),
        _ => None,
    })
}

/// Refuses a shaper that this machine's processor could not carry when the Run was measured.
fn carried(shaper: &ShaperAction, run: &Run) -> anyhow::Result<()> {
    let most_bps = searched(run, shaper.direction).and_then(|result| result.processor_bps);
    anyhow::ensure!(
        most_bps.is_none_or(|most_bps| shaper.rate_bps as f64 <= most_bps),
        "this machine's processor carries {} with a shaper for the {}load and no more, as measured: at {} the queue would be before \
         the processor, where nothing manages it; give a lower rate, or shape on a faster machine",
        si(most_bps.unwrap_or_default(), "bit/s"),
        shaper.direction.name(),
        si(shaper.rate_bps as f64, "bit/s")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use serde_json::{Value, json};

    use super::*;

    fn searched_run(processor_bps: Option<f64>) -> Run {
        let text = include_str!("../../../model/fixtures/run-2.json");
        let mut run: Value = serde_json::from_str(text).unwrap();
        let result = json!({
            "direction": "up", "ended": "found", "rate_bps": 38e6, "trade": null, "processor_bps": processor_bps,
            "idle_rtt_s": 0.01, "blocks": [],
        });
        run["measurements"] = json!([
            {"id": "m1", "kind": "shaped_rate", "result": result, "at_s": 0.0, "duration_s": 1.0}
        ]);
        Run::from_json(&run.to_string()).unwrap()
    }

    #[test]
    fn what_was_found_is_planned_and_what_the_processor_cannot_carry_is_not() {
        let run = searched_run(Some(40e6));
        let advised = advised(&run, false).unwrap();
        assert_eq!(advised.len(), 1);
        let found = advised.first().unwrap();
        assert_eq!(
            (found.direction, found.rate_bps),
            (OneDirection::Up, 38_000_000)
        );
        carried(found, &run).unwrap();
        let more = ShaperAction {
            rate_bps: 90_000_000,
            ..found.clone()
        };
        let refused = carried(&more, &run).unwrap_err().to_string();
        assert!(refused.contains("carries 40"), "{refused}");
        carried(&more, &searched_run(None)).unwrap();
        let down = ShaperAction {
            direction: OneDirection::Down,
            ..more
        };
        carried(&down, &run).unwrap();
    }
}
