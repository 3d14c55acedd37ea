//! What is said, once, of phases that ended before their time because their shares of the budget were
//! used. Pure.

use plumb_diagnose::lengths::{LATENCY_S, QUEUE_S};
use plumb_model::units::{human_seconds, si};

/// A phase that ended so.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CutShort {
    /// The word for it in Runs.
    pub(crate) name: &'static str,
    /// How long it ran.
    pub(crate) seconds: f64,
    /// How long it was to run.
    pub(crate) wanted_s: f64,
    /// Payload that it carried.
    pub(crate) bytes: u64,
    /// Its part of the whole budget.
    pub(crate) share: f64,
}

/// What the budget worked out is multiplied by: a phase that was largely slow start hides a part of the
/// rate.
const MARGIN: f64 = 1.25;

/// Which they are, what they do not show, and what --budget would have to be; nothing where there are
/// none.
pub(crate) fn note(phases: &[CutShort], latency: bool) -> Option<String> {
    let each: Vec<_> = phases
        .iter()
        .map(|phase| format!("'{}' after {}", phase.name, human_seconds(phase.seconds)))
        .collect();
    let needed = phases.iter().filter_map(CutShort::needs_bytes);
    let needed = needed.reduce(f64::max)?;
    let shortest_s = phases.iter().map(|phase| phase.seconds);
    let shortest_s = shortest_s.fold(f64::INFINITY, f64::min);
    let wanted_s = phases
        .iter()
        .map(|phase| phase.wanted_s)
        .fold(0.0, f64::max);
    let unknown = match (latency, shortest_s) {
        (false, s) if s < LATENCY_S => {
            " Slow start, and when the ends looked, make rates of so short a time uncertain."
        }
        (true, s) if s < LATENCY_S => {
            " Where that is less than 2 s it says nothing of latency under load or of bufferbloat, and its rates are uncertain."
        }
        (true, s) if s < QUEUE_S => {
            " A large queue takes longer to fill, so latency under load may be worse than measured."
        }
        _ => "",
    };
    Some(format!(
        "The shares of the budget were used before the time was over: {}.{unknown} At the rates measured, --budget {} would let each last {}.",
        each.join(", "),
        size(needed * MARGIN),
        human_seconds(wanted_s)
    ))
}

/// The headline of a load whose latency was asked for, and that ended before any of it counts; nothing where one phase
/// was long enough.
pub(crate) fn without_latency(phases: &[CutShort]) -> Option<String> {
    let longest_s = phases.iter().map(|phase| phase.seconds).reduce(f64::max)?;
    let needed = phases.iter().filter_map(CutShort::needs_bytes);
    let needed = needed.reduce(f64::max)?;
    (longest_s < LATENCY_S).then(|| {
        format!(
            "No latency under load was measured: the budget lasted {}, and it takes {} or more. Use --budget {}.",
            human_seconds(longest_s),
            human_seconds(LATENCY_S),
            size(needed * MARGIN)
        )
    })
}

impl CutShort {
    /// The budget of which its share would have lasted; absent where it carried nothing.
    fn needs_bytes(&self) -> Option<f64> {
        let whole = self.bytes as f64 / self.seconds * self.wanted_s / self.share;
        (whole.is_finite() && whole > 0.0).then_some(whole)
    }
}

/// As it can be written after --budget: two digits, rounded up.
pub(crate) fn size(bytes: f64) -> String {
    let unit = 10f64.powf(bytes.log10().floor() - 1.0);
    si((bytes / unit).ceil() * unit, "B").replace(' ', "")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::units::ByteCount;

    fn short(name: &'static str, seconds: f64, gigabytes: f64, share: f64) -> CutShort {
        CutShort {
            name,
            seconds,
            wanted_s: 15.0,
            bytes: (gigabytes * 1e9) as u64,
            share,
        }
    }

    #[test]
    fn one_sentence_says_what_the_budget_would_have_to_be() {
        // 2 GB on 10 Gbit/s: 0.5 s, 0.5 s, and both ways at once twice as much in the same time.
        let phases = [
            short("up", 0.5, 0.5, 0.25),
            short("down", 0.5, 0.5, 0.25),
            short("both", 0.5, 1.0, 0.5),
        ];
        let note = note(&phases, true).unwrap();
        // 15 s at 8 Gbit/s are 15 GB, a quarter of 60 GB.
        assert!(note.contains("--budget 75.0GB would"), "{note}");
        assert!(
            note.contains("'up' after 500 ms, 'down' after 500 ms"),
            "{note}"
        );
        assert!(note.contains("nothing of latency"), "{note}");
    }

    #[test]
    fn a_load_too_short_for_latency_says_so_first_and_how_to_measure_it() {
        let up = short("up", 0.1, 0.5, 0.5);
        assert_eq!(
            without_latency(&[up, short("down", 0.05, 0.5, 0.5)]).unwrap(),
            "No latency under load was measured: the budget lasted 100 ms, and it takes 2.00 s or more. Use --budget 380GB."
        );
        assert_eq!(without_latency(&[up, short("down", 2.5, 0.5, 0.5)]), None);
        assert_eq!(without_latency(&[]), None);
    }

    #[test]
    fn what_was_long_enough_is_not_called_too_short() {
        let note = |seconds| note(&[short("up", seconds, 1.0, 1.0)], true).unwrap();
        assert!(note(10.0).contains("may be worse than measured"));
        let note = note(14.5);
        assert!(
            !note.contains("latency") && !note.contains("uncertain"),
            "{note}"
        );
        assert_eq!(super::note(&[], true), None);
    }

    #[test]
    fn the_budget_that_is_named_can_be_asked_for() {
        for bytes in [1.0e6, 1.23e9, 75e9, 9.99e11, 4.2e12] {
            let asked: ByteCount = size(bytes).parse().unwrap();
            let over = asked.bytes() as f64 / bytes;
            assert!((0.999..1.11).contains(&over), "{} for {bytes}", size(bytes));
        }
    }
}
