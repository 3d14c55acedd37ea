//! Round trips while the path is loaded, up and then down, to `plumb serve`, within a budget of bytes a day: a short form of
//! `plumb load`.

use std::time::Duration;

use plumb_measure::phase::carried_bps;
use plumb_measure::times::Times;
use plumb_model::results::Direction;
use plumb_model::run::Run;
use plumb_model::units::ByteCount;

use super::kind::{FarEnd, Kind, Probed, Seen};
use super::loading::{Loading, Loads, Ran, Usual};
use super::settings::{Settings, Wrong};
use crate::unit::Unit;

/// Slow start takes two seconds, in which no queue is judged, and a queue of 300 ms is full after six. What may be transferred is
/// 12 measurements of 6 s in each direction at 110 Mbit/s.
const USUAL: Usual = Usual {
    per_day: ByteCount::from_bytes(2_000_000_000),
    lasts: Duration::from_secs(6),
    lasts_bounds: (Duration::from_secs(4), Duration::from_secs(15)),
};

/// Loads of one measurement: up, and down.
const LOADS: u32 = 2;

/// The least that one measurement may transfer: 4 s of 1 Mbit/s in each direction.
const LEAST: ByteCount = ByteCount::from_bytes(1_000_000);

const EVERY: Duration = Duration::from_secs(7200);

/// How long the idle path is looked at: 100 round trips, and longer than the second that Wi-Fi's power saving takes to end.
const IDLE: Duration = Duration::from_secs(2);

/// So many connections load a direction, as RRUL has them.
const STREAMS: u32 = 4;

/// The names of its series, behind the target's, with what they are measured in.
const SERIES: [(&str, Unit); 5] = [
    ("idle", Unit::Seconds),
    ("up", Unit::Seconds),
    ("down", Unit::Seconds),
    ("rate up", Unit::BitsPerSecond),
    ("rate down", Unit::BitsPerSecond),
];

#[derive(Debug)]
struct Load(Loading);

pub(super) fn read(settings: &mut Settings) -> Result<Box<dyn Kind>, Wrong> {
    Ok(Box::new(Load(Loading::read(settings, USUAL)?)))
}

/// What a Run shows, in the order of [`SERIES`].
fn seen(run: &Run) -> [Option<f64>; 5] {
    let loaded = run
        .measurements
        .iter()
        .filter_map(|measured| measured.outcome.loaded_latency());
    let idle = loaded.clone().next().map(|seen| seen.idle_rtt_s.p50);
    let [up, down] = [Direction::Up, Direction::Down].map(|direction| {
        let of = loaded.clone().find(|seen| seen.direction == direction);
        of.map(|seen| seen.rtt_s.p50)
    });
    let rate = |direction| carried_bps(run, direction);
    [idle, up, down, rate(Direction::Up), rate(Direction::Down)]
}

impl Kind for Load {
    fn check(&self, every: Duration) -> Result<(), String> {
        self.0.check(every, LOADS, LEAST)
    }

    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String> {
        let mut probed = Probed::now();
        let loads = Loads {
            directions: vec![Direction::Up, Direction::Down],
            times: Times {
                idle: IDLE,
                after: Duration::ZERO,
                ..Times::of_phases(self.0.lasts)
            },
            streams: STREAMS,
            latency: true,
        };
        let run = match self.0.run(far, loads)? {
            Ran::Measured(run) => run,
            Ran::Lost(why) => return Ok(probed.lost(why)),
        };
        let values = seen(&run);
        let [_, up, down, ..] = values;
        probed.series = SERIES
            .iter()
            .zip(values)
            .map(|((name, _), value)| {
                let why = "too little was carried within its share of bytes_a_day, or too short";
                Seen::of(name, value.ok_or_else(|| why.to_owned()))
            })
            .collect();
        match (up, down) {
            (Some(up), Some(down)) => Ok(probed.with(up.max(down))),
            _ if values.iter().all(Option::is_none) => Ok(probed.lost("nothing was carried")),
            // What is not known of a queue is no loss.
            _ => Err(
                "its share of bytes_a_day was carried before a queue showed: give it more, or measure more seldom"
                    .to_owned(),
            ),
        }
    }

    fn has_series(&self) -> bool {
        true
    }

    fn series(&self, name: &str) -> Option<Unit> {
        let found = SERIES.iter().find(|(known, _)| *known == name);
        found.map(|(_, unit)| *unit)
    }

    fn usual_every(&self) -> Duration {
        EVERY
    }

    fn is_load(&self) -> bool {
        true
    }

    fn longest(&self) -> Duration {
        IDLE + self.0.longest(LOADS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::settings::tests::settings;

    #[test]
    fn two_loads_have_a_tenth_of_the_time_and_a_budget() {
        let load = |text: &str| read(&mut settings(text)).unwrap();
        let usual = load("");
        usual.check(usual.usual_every()).unwrap();
        let why = usual.check(Duration::from_secs(119)).unwrap_err();
        assert!(why.contains("every 120 s"), "{why}");
        let little = load("bytes_a_day = \"10MB\"");
        let why = little.check(EVERY).unwrap_err();
        assert!(why.contains("are the least"), "{why}");
        assert!(read(&mut settings("lasts = \"3s\"")).is_err());
        let mut more = settings("direction = \"up\"");
        read(&mut more).unwrap();
        assert!(more.end("load").is_err());
    }

    #[test]
    fn every_series_has_its_unit() {
        let load = read(&mut settings("")).unwrap();
        assert_eq!(load.series("idle"), Some(Unit::Seconds));
        assert_eq!(load.series("rate down"), Some(Unit::BitsPerSecond));
        assert_eq!((load.series("both"), load.has_series()), (None, true));
    }
}
