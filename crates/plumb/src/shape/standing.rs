//! The shaper that stands at an interface, for who searches its rate and follows the line with it.

use std::error::Error;
use std::path::Path;

use anyhow::Context as _;
use plumb_host::shape::journal::STATE;
use plumb_host::shape::rates::Shaped;
use plumb_measure::shaping::follow::Limits;
use plumb_measure::shaping::rate_step::Shaper;
use plumb_model::direction::OneDirection;
use plumb_model::framing::Framing;

#[cfg(feature = "lab")]
use crate::lab::shaping;
use crate::output::say;

/// More than any line that a shaper is before: as good as none.
const OFF_BPS: u64 = 100_000_000_000;

/// How far from the rate that was found it may go, as parts of it.
const LEAST_RATIO: f64 = 0.05;
const MOST_RATIO: f64 = 10.0;

/// A shaper that stands, and goes back to the rates that it had unless others are to be kept.
pub(super) struct StandingShaper {
    device: Shaping,
    pub(super) framing: Framing,
    /// In bits a second, up and down; none where that direction is not shaped.
    kept: [Option<u64>; 2],
}

impl StandingShaper {
    /// The shaper of an interface; in a laboratory the shaper of its router, where the interface has none.
    pub(super) fn find(device: &str) -> anyhow::Result<Self> {
        let shaped = match Shaped::find(Path::new(STATE), device) {
            #[cfg(feature = "lab")]
            Err(_) if shaping::is_there() => {
                // Before minutes of load: a scenario need not have such a router.
                for direction in [OneDirection::Up, OneDirection::Down] {
                    shaping::set(direction, OFF_BPS)
                        .map_err(|why| anyhow::anyhow!("{device} has no shaper, and {why}"))?;
                }
                say(
                    "the interface has no shaper: the lab's own managed queue (FQ-CoDel) at the scenario's router is set instead",
                );
                return Ok(Self {
                    device: Shaping::OfLab,
                    framing: shaping::FRAMING,
                    kept: [Some(OFF_BPS); 2],
                });
            }
            shaped => shaped.with_context(|| {
                format!(
                    "{device} has no shaper whose rate could be searched: apply one first, at any rate below the line's (plumb shape \
                     apply {device} --up RATE --down RATE)"
                )
            })?,
        };
        let both =
            || [OneDirection::Up, OneDirection::Down].map(|direction| shaped.asked(direction));
        let kept = both().map(|asked| asked.map(|asked| asked.rate_bps));
        let framing = both().into_iter().flatten().next();
        let framing = framing.map(plumb_model::finding::ShaperAction::framing);
        Ok(Self {
            framing: framing.unwrap_or_default(),
            kept,
            device: Shaping::OfKernel(Box::new(shaped)),
        })
    }

    /// Between which rates a direction is followed; none where it has no rate yet.
    pub(super) fn limits(&self) -> [Option<Limits>; 2] {
        let found = |bps: Option<u64>| bps.filter(|bps| *bps < OFF_BPS).map(|bps| bps as f64);
        self.kept.map(|kept| {
            found(kept).map(|base_bps| Limits {
                least_bps: base_bps * LEAST_RATIO,
                base_bps,
                most_bps: base_bps * MOST_RATIO,
            })
        })
    }

    /// What a direction is to keep.
    pub(super) fn kept(&mut self, direction: OneDirection) -> &mut Option<u64> {
        let [up, down] = &mut self.kept;
        match direction {
            OneDirection::Up => up,
            OneDirection::Down => down,
        }
    }
}

/// Who shapes for this command.
enum Shaping {
    OfKernel(Box<Shaped>),
    #[cfg(feature = "lab")]
    OfLab,
}

impl Shaping {
    fn set(
        &mut self,
        direction: OneDirection,
        bps: u64,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let (up, down) = match direction {
            OneDirection::Up => (Some(bps), None),
            OneDirection::Down => (None, Some(bps)),
        };
        match self {
            Self::OfKernel(shaped) => Ok(shaped.set_rates(up, down)?),
            #[cfg(feature = "lab")]
            Self::OfLab => shaping::set(direction, bps),
        }
    }
}

impl Shaper for StandingShaper {
    fn set(
        &mut self,
        direction: OneDirection,
        rate_bps: Option<f64>,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let bps = rate_bps.map_or(OFF_BPS, |bps| bps as u64);
        self.device.set(direction, bps)
    }
}

impl StandingShaper {
    /// Gives it the rates that it is to keep.
    pub(super) fn settle(&mut self) {
        for direction in [OneDirection::Up, OneDirection::Down] {
            let kept = *self.kept(direction);
            if let Some(Err(why)) = kept.map(|bps| self.device.set(direction, bps)) {
                say(format_args!(
                    "the shaper has another rate than it is to keep: {why}"
                ));
            }
        }
    }
}

impl Drop for StandingShaper {
    fn drop(&mut self) {
        self.settle();
    }
}
