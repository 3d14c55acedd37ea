//! Whether a number of round trips a minute says something of the machines at the ends in the place of
//! the path between them. Pure.

use plumb_model::distribution::Distribution;
use plumb_model::results::responsiveness::RpmTimes;
use plumb_model::results::{CpuUse, Direction};
use plumb_model::units::human_seconds;

use super::controller::Found;

/// By so much more the number would have to be before it is worth a word: what it may be off by
/// anyhow.
const WORTH_RATIO: f64 = 0.1;

/// What the server's flight of a handshake carries besides a round trip, in bytes: a self-made
/// certificate of P-256 with its proof, and the headers of its packets (measured: 0.9 to 1.1 kB).
const FLIGHT_BYTES: f64 = 1200.0;

/// Share of all processors of a host from which on its own program may be what held things up.
const BUSY_RATIO: f64 = 0.85;

/// What held the number down besides the path.
pub(crate) fn notes(
    direction: Direction,
    found: &Found,
    cpu: Option<&CpuUse>,
    processors: usize,
) -> Vec<String> {
    let way = direction.name();
    let handshakes = computing_s(&found.times_s, found.goodput_bps).and_then(|computing_s| {
        let gained = without(found, computing_s)? / found.rpm.both()? - 1.0;
        (gained > WORTH_RATIO).then(|| {
            format!(
                "Of each TLS handshake beside the {way}load {} were computing at the two ends and not the path (median): without that the {way}load would have some {:.0} % more round trips a minute.",
                human_seconds(computing_s),
                gained * 100.0
            )
        })
    });
    let busy = |used: f64, of: usize| used > BUSY_RATIO * of as f64;
    let here = cpu.and_then(|cpu| cpu.local_ratio);
    let here = here.filter(|used| busy(*used, processors)).map(|used| {
        format!(
            "plumb itself took {used:.1} of this host's {processors} processors during the {way}load: round trips a minute are limited by the path or by this host, whichever allows fewer."
        )
    });
    // The number of processors is unknown.
    let there = cpu
        .and_then(|cpu| cpu.remote_ratio)
        .filter(|used| busy(*used, 1));
    let there = there.map(|used| {
        format!(
            "The responder took {used:.1} processors during the {way}load: where it has no more, round trips a minute are its own and not the path's."
        )
    });
    [handshakes, here, there].into_iter().flatten().collect()
}

/// What a handshake takes beyond a round trip of TCP and the carrying of what it holds: the median, which
/// no loss disturbs.
fn computing_s(times: &RpmTimes<Option<Distribution>>, goodput_bps: Option<f64>) -> Option<f64> {
    let median = |times: Option<Distribution>| times.map(|times| times.p50);
    let round_trip_s = (median(times.connect)? + median(times.first_answer)?) / 2.0;
    let carrying_s = FLIGHT_BYTES * 8.0 / goodput_bps.filter(|bps| *bps > 0.0)?;
    Some((median(times.tls_handshake)? - round_trip_s - carrying_s).max(0.0))
}

/// The round trips a minute if handshakes took so much less.
fn without(found: &Found, computing_s: f64) -> Option<f64> {
    let foreign_s = 60.0 / found.rpm.foreign? - computing_s / 3.0;
    let foreign = 60.0 / foreign_s.max(f64::MIN_POSITIVE);
    Some((foreign + found.rpm.in_band?) / 2.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use crate::responsiveness::controller::Controller;
    use crate::responsiveness::formula::Rpm;
    use std::time::Duration;

    /// A path of 20 ms at 100 Mbit/s, where handshakes take so long.
    fn found(handshake_s: f64) -> Found {
        let of = |seconds| Distribution::of([seconds]);
        let times = RpmTimes {
            connect: Some(0.020),
            tls_handshake: Some(handshake_s),
            first_answer: Some(0.020),
            in_band: Some(0.020),
        };
        Found {
            rpm: Rpm::of(&times),
            times_s: RpmTimes {
                connect: of(0.020),
                tls_handshake: of(handshake_s),
                first_answer: of(0.020),
                in_band: of(0.020),
            },
            goodput_bps: Some(100e6),
            ..Controller::new(Duration::from_secs(1), |_| 0).finish()
        }
    }

    fn cpu(local_ratio: f64, remote_ratio: f64) -> CpuUse {
        CpuUse {
            local_ratio: Some(local_ratio),
            remote_ratio: Some(remote_ratio),
            local_s_per_gb: None,
            remote_s_per_gb: None,
        }
    }

    fn told(handshake_s: f64, cpu: Option<CpuUse>) -> Vec<String> {
        notes(Direction::Down, &found(handshake_s), cpu.as_ref(), 2)
    }

    #[test]
    fn handshakes_that_take_a_round_trip_are_not_worth_a_word() {
        assert_eq!(told(0.0205, Some(cpu(1.0, 0.5))), Vec::<String>::new());
        // 6 ms more are a tenth of three round trips, and lower the round trips a minute by half as much.
        assert_eq!(told(0.026, None), Vec::<String>::new());
    }

    #[test]
    fn what_computing_a_handshake_takes_is_told() {
        let notes = told(0.040, None);
        // 2,250 and 3,000 in the place of 3,000 twice, less what 1.2 kB take.
        assert!(
            notes.len() == 1 && notes[0].contains("19.9 ms") && notes[0].contains("14 %"),
            "{notes:?}"
        );
    }

    #[test]
    fn a_busy_host_is_told() {
        let notes = told(0.020, Some(cpu(1.9, 0.2)));
        assert!(
            notes.len() == 1 && notes[0].contains("1.9 of this host's 2"),
            "{notes:?}"
        );
        let notes = told(0.020, Some(cpu(0.5, 0.95)));
        assert!(
            notes.len() == 1 && notes[0].contains("responder took 0.9"),
            "{notes:?}"
        );
    }

    #[test]
    fn without_a_number_nothing_is_said_of_handshakes() {
        let silent = Controller::new(Duration::from_secs(1), |_| 0).finish();
        assert_eq!(notes(Direction::Up, &silent, None, 1), Vec::<String>::new());
    }
}
