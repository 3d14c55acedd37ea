//! Whether all targets are silent at once, as when this machine's own line is down. Pure.

use std::collections::BTreeMap;

use crate::outage::LEAST_LOST;

/// How many probes in a row each target did not answer.
#[derive(Debug, Default)]
pub(crate) struct Silence {
    lost: BTreeMap<String, usize>,
    /// When all became silent, µs since 1970, where that was said.
    since_us: Option<i64>,
}

impl Silence {
    /// Forgets all targets, as when others are watched from now on.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Takes a probe of one of so many targets. What people should know, once when all are silent and once when that is over.
    pub(crate) fn step(
        &mut self,
        name: &str,
        answered: bool,
        at_us: i64,
        targets: usize,
    ) -> Option<String> {
        let lost = self.lost.entry(name.to_owned()).or_default();
        *lost = if answered { 0 } else { *lost + 1 };
        let all = self.lost.len() >= targets && self.lost.values().all(|lost| *lost >= LEAST_LOST);
        match (all, self.since_us) {
            (true, None) => {
                self.since_us = Some(at_us);
                Some(match targets {
                    1 => format!("{name} does not answer: {LEAST_LOST} probes were lost in a row"),
                    all => format!(
                        "none of the {all} targets answers: of each, {LEAST_LOST} probes or more were lost in a row"
                    ),
                })
            }
            (false, Some(since_us)) => {
                self.since_us = None;
                let lasted_s = at_us.saturating_sub(since_us) as f64 / 1e6;
                Some(format!(
                    "{name} answers again, {lasted_s:.0} s after no target did"
                ))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_of_all_is_said_once_and_its_end_too() {
        let mut silence = Silence::default();
        let mut said = Vec::new();
        let seconds = [
            (false, true),
            (false, false),
            (false, false),
            (false, false),
            (false, false),
            (true, false),
            (true, true),
        ];
        for (second, (one, other)) in (0..).zip(seconds) {
            said.extend(silence.step("one", one, second * 1_000_000, 2));
            said.extend(silence.step("other", other, second * 1_000_000, 2));
        }
        assert_eq!(
            said,
            [
                "none of the 2 targets answers: of each, 3 probes or more were lost in a row",
                "one answers again, 2 s after no target did"
            ]
        );
    }

    #[test]
    fn one_that_was_not_probed_yet_is_not_silent() {
        let mut silence = Silence::default();
        let said: Vec<_> = (0..9)
            .filter_map(|at_us| silence.step("one", false, at_us, 2))
            .collect();
        assert!(said.is_empty(), "{said:?}");
    }
}
