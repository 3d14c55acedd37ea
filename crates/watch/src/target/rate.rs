//! The rate of one direction to `plumb serve`, within a budget of bytes a day.

use std::time::Duration;

use plumb_measure::phase::carried_bps;
use plumb_measure::times::Times;
use plumb_model::direction::OneDirection;
use plumb_model::results::Direction;
use plumb_model::units::ByteCount;

use super::kind::{FarEnd, Kind, Probed};
use super::loading::{Loading, Loads, Ran, Usual};
use super::settings::{Settings, Wrong};
use crate::unit::Unit;

/// Slow start is over after 5 s on most paths; shorter ones than a second show slow start alone, and longer ones than 15 no more.
/// What may be transferred is 24 measurements of 5 s at 67 Mbit/s.
const USUAL: Usual = Usual {
    per_day: ByteCount::from_bytes(1_000_000_000),
    lasts: Duration::from_secs(5),
    lasts_bounds: (Duration::from_secs(1), Duration::from_secs(15)),
};

/// The least that a load phase of a few round trips takes, as `plumb rate` has it.
const LEAST: ByteCount = ByteCount::from_bytes(1_000_000);

/// Unless the file says otherwise.
const EVERY: Duration = Duration::from_secs(3600);

#[derive(Debug)]
struct Rate {
    direction: OneDirection,
    loading: Loading,
}

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    let direction: String = settings.need("direction", "direction = \"down\", or \"up\"")?;
    let direction = direction
        .parse()
        .map_err(|_| settings.wrong("direction", "a direction is \"up\" or \"down\""))?;
    Ok(Box::new(Rate {
        direction,
        loading: Loading::read(settings, USUAL)?,
    }))
}

impl Kind for Rate {
    fn check(&self, every: Duration) -> Result<(), String> {
        self.loading.check(every, 1, LEAST)
    }

    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let probed = Probed::now();
        let loads = Loads {
            directions: vec![Direction::from(self.direction)],
            times: Times::of_phases(self.loading.lasts),
            streams: 1,
            latency: false,
        };
        let run = match self.loading.run(far, loads)? {
            Ran::Measured(run) => run,
            Ran::Lost(why) => return Ok(probed.lost(why)),
        };
        match carried_bps(&run, self.direction.into()) {
            Some(bps) => Ok(probed.with(bps)),
            None => Ok(probed.lost("nothing was carried")),
        }
    }

    fn unit(&self) -> Unit {
        Unit::BitsPerSecond
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }

    fn is_load(&self) -> bool {
        true
    }

    fn longest(&self) -> Duration {
        self.loading.longest(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::settings::tests::settings;

    fn rate(text: &str) -> Box<dyn Kind> {
        read(&mut settings(text)).unwrap()
    }

    #[test]
    fn a_tenth_of_the_time_and_a_budget_bound_it() {
        let usual = rate("direction = \"down\"");
        usual.check(usual.usual_every()).unwrap();
        let why = usual.check(Duration::from_secs(49)).unwrap_err();
        assert!(why.contains("every 50 s"), "{why}");
        let little = rate("direction = \"up\"\nbytes_a_day = \"10MB\"");
        let why = little.check(EVERY).unwrap_err();
        assert!(why.contains("are the least"), "{why}");
        little.check(Duration::from_secs(12_000)).unwrap();
    }

    #[test]
    fn what_is_no_rate_is_refused() {
        for text in [
            "",
            "direction = \"both\"",
            "direction = \"up\"\nbytes_a_day = \"much\"",
            "direction = \"up\"\nlasts = \"1h\"",
        ] {
            assert!(read(&mut settings(text)).is_err(), "{text}");
        }
    }
}
