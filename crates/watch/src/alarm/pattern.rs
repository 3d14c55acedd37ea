//! A pattern, as SmokePing's alerts have them (smokeping_config, section Alerts): what the last intervals were one after the
//! other, such as `>0%,>0%,>0%` or `<20ms,*3*,>50ms,>50ms`. The grammar is in kb/watch.md.

use serde::Deserialize;

use super::rule::{MOST_BACK_S, Quantity, Rule, Shown, Verdict, ratio, round_trip, seconds};
use crate::page::words::{ms, percent};
use crate::unit::Unit;

/// The interval unless the file says otherwise, in seconds: the smallest window that is kept.
const EVERY_S: i64 = 60;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    pattern: String,
    interval: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Comparison {
    Above,
    Below,
    AtLeast,
    AtMost,
    Equal,
    Unequal,
}

/// What one or several intervals have to be.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Is(Comparison, f64),
    /// Nothing is known of it: not probed, or for round trips nothing answered.
    Unknown,
    Known,
    /// An interval of any kind.
    Any,
    /// So many intervals or fewer, whatever they are.
    UpTo(usize),
}

#[derive(Debug, PartialEq)]
struct Pattern {
    text: String,
    quantity: Quantity,
    steps: Vec<Step>,
    /// The most intervals that it matches.
    most: usize,
    every_s: i64,
}

pub(super) fn read(settings: toml::Table) -> Result<Box<dyn Rule>, String> {
    let settings: Settings = settings.try_into().map_err(|e| e.message().to_owned())?;
    let every_s = match &settings.interval {
        Some(text) => seconds("interval", text, (60, 3600))?,
        None => EVERY_S,
    };
    Ok(Box::new(parsed(&settings.pattern, every_s)?))
}

fn parsed(text: &str, every_s: i64) -> Result<Pattern, String> {
    let mut quantity = None;
    let mut steps = Vec::new();
    for word in text.split(',').map(str::trim) {
        steps.push(step(word, &mut quantity)?);
    }
    let Some(quantity) = quantity else {
        return Err(format!(
            "the pattern '{text}' compares nothing: write it as \">0%,>0%,>0%\" or \"<20ms,>50ms,>50ms\""
        ));
    };
    if matches!(steps.last(), Some(Step::Any | Step::UpTo(_))) {
        return Err(format!(
            "the pattern '{text}' ends with any value: the last interval has to be something"
        ));
    }
    let lengths = steps.iter().map(|step| match step {
        Step::UpTo(most) => *most,
        _ => 1,
    });
    let most = lengths.fold(0, usize::saturating_add);
    let back_s = i64::try_from(most)
        .unwrap_or(i64::MAX)
        .saturating_mul(every_s);
    if back_s.saturating_add(every_s) > MOST_BACK_S {
        return Err(format!(
            "the pattern '{text}' spans {most} intervals of {every_s} s, which is more than a day"
        ));
    }
    Ok(Pattern {
        text: text.to_owned(),
        quantity,
        steps,
        most,
        every_s,
    })
}

fn step(word: &str, quantity: &mut Option<Quantity>) -> Result<Step, String> {
    let wrong = || {
        format!(
            "'{word}' is no step of a pattern: there are >5%, >=5%, <5%, <=5%, ==5%, !=5%, the same with a round trip \
             such as 80ms, ==U, !=U, * and *3*"
        )
    };
    if word == "*" {
        return Ok(Step::Any);
    }
    if let Some(inner) = word.strip_prefix('*') {
        let number = inner.strip_suffix('*').and_then(|n| n.parse().ok());
        return number.filter(|n| *n > 0).map(Step::UpTo).ok_or_else(wrong);
    }
    let operators = [
        (">=", Comparison::AtLeast),
        ("<=", Comparison::AtMost),
        ("==", Comparison::Equal),
        ("!=", Comparison::Unequal),
        (">", Comparison::Above),
        ("<", Comparison::Below),
    ];
    let (comparison, value) = operators
        .iter()
        .find_map(|(sign, comparison)| Some((*comparison, word.strip_prefix(sign)?.trim())))
        .ok_or_else(wrong)?;
    if value == "U" {
        return match comparison {
            Comparison::Equal => Ok(Step::Unknown),
            Comparison::Unequal => Ok(Step::Known),
            _ => Err(wrong()),
        };
    }
    // A number alone is milliseconds, as SmokePing writes round trips.
    let (own, value) = match value.parse::<f64>() {
        _ if value.ends_with('%') => (Quantity::Loss, ratio(value).map_err(|_| wrong())?),
        Ok(ms) if ms.is_finite() && ms >= 0.0 => (Quantity::Median, ms / 1e3),
        _ => (Quantity::Median, round_trip(value).map_err(|_| wrong())?),
    };
    if quantity.is_some_and(|other| other != own) {
        return Err("a pattern is of losses or of round trips, not of both".to_owned());
    }
    *quantity = Some(own);
    Ok(Step::Is(comparison, value))
}

impl Step {
    fn fits(self, value: Option<f64>) -> bool {
        match (self, value) {
            (Self::Any | Self::UpTo(_), _) | (Self::Unknown, None) | (Self::Known, Some(_)) => true,
            (Self::Unknown, Some(_)) | (Self::Known | Self::Is(..), None) => false,
            (Self::Is(comparison, than), Some(value)) => match comparison {
                Comparison::Above => value > than,
                Comparison::Below => value < than,
                Comparison::AtLeast => value >= than,
                Comparison::AtMost => value <= than,
                Comparison::Equal => value == than,
                Comparison::Unequal => value != than,
            },
        }
    }
}

/// Whether the steps fit the last values, one after the other up to the very last one. `values` has the latest first.
fn fits(steps: &[Step], values: &[Option<f64>]) -> bool {
    // Where a step may begin: at so many values before the end.
    let mut at: Vec<bool> = vec![true];
    at.resize(values.len() + 1, false);
    for step in steps.iter().rev() {
        let mut next = vec![false; values.len() + 1];
        for place in (0..at.len()).filter(|place| at.get(*place) == Some(&true)) {
            let reached = match step {
                Step::UpTo(most) => place..=place.saturating_add(*most).min(values.len()),
                step => match values.get(place) {
                    Some(value) if step.fits(*value) => place + 1..=place + 1,
                    _ => continue,
                },
            };
            next.iter_mut()
                .take(reached.end() + 1)
                .skip(*reached.start())
                .for_each(|one| *one = true);
        }
        at = next;
    }
    at.contains(&true)
}

impl Rule for Pattern {
    fn back_s(&self) -> i64 {
        // The interval under way is left out.
        (i64::try_from(self.most).unwrap_or(i64::MAX) + 1).saturating_mul(self.every_s)
    }

    fn window_s(&self) -> i64 {
        self.every_s
    }

    fn is_of(&self, unit: Unit) -> bool {
        self.quantity.is_of(unit)
    }

    fn judge(&self, shown: &Shown) -> Verdict {
        let over_s = shown.now_s.rem_euclid(self.every_s);
        let before = |number: i64| over_s + number * self.every_s;
        let value = |number: i64| {
            self.quantity
                .of(shown.between(before(number + 1), before(number)))
        };
        let values: Vec<_> = (0..i64::try_from(self.most).unwrap_or_default())
            .map(value)
            .collect();
        if fits(&self.steps, &values) {
            let now = match values.first().copied().flatten() {
                None => "no answer".to_owned(),
                Some(ratio) if self.quantity == Quantity::Loss => percent(ratio),
                Some(time_s) => ms(time_s),
            };
            let words = format!("{} of {now} ({})", self.quantity.words(), self.text);
            return Verdict::Seen {
                words,
                since_s: None,
            };
        }
        match values.first() {
            Some(Some(_)) => Verdict::Quiet,
            _ => Verdict::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Values in percent from the oldest to the latest; a negative one is unknown.
    fn seen(pattern: &str, percents: &[f64]) -> bool {
        let pattern = parsed(pattern, 60).unwrap();
        let known = |percent: &f64| (*percent >= 0.0).then_some(percent / 100.0);
        let values: Vec<_> = percents.iter().rev().map(known).collect();
        fits(&pattern.steps, &values)
    }

    #[test]
    fn patterns_fit_the_end_of_what_was_seen() {
        for (pattern, values, expected) in [
            (">0%,>0%,>0%", &[0.0, 1.0, 2.0, 3.0][..], true),
            (">0%,>0%,>0%", &[1.0, 2.0, 3.0, 0.0], false),
            (">0%,>0%,>0%", &[1.0, 2.0], false),
            (">0%,*2*,>0%", &[1.0, 0.0, 0.0, 1.0], true),
            (">0%,*2*,>0%", &[1.0, 1.0], true),
            (">0%,*2*,>0%", &[1.0, 0.0, 0.0, 0.0, 1.0], false),
            ("==0%,*,>=50%", &[0.0, 9.0, 50.0], true),
            ("==U,!=100%", &[-1.0, 4.0], true),
            ("!=U,>1%", &[-1.0, 4.0], false),
            ("==100%,==U", &[100.0, -1.0], true),
        ] {
            assert_eq!(seen(pattern, values), expected, "{pattern} {values:?}");
        }
    }

    #[test]
    fn round_trips_have_units_or_are_milliseconds() {
        let bare = parsed("<10,>100", 60).unwrap();
        let with_units = parsed("<10ms,>100ms", 60).unwrap();
        assert_eq!(bare.steps, with_units.steps);
        assert_eq!(bare.quantity, Quantity::Median);
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        for text in [
            "",
            ">",
            ">x",
            ">5%,>10ms",
            "*",
            "==U",
            ">0%,*",
            ">0%,*9999*,>0%",
            "**",
            ">-1",
            ">101%",
            "*0*,>0%",
            ">U",
        ] {
            assert!(parsed(text, 60).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_taken_or_refused(text in "[-><=!*%U0-9ms,. ]{0,40}", values in proptest::collection::vec(-1.0f64..100.0, 0..50)) {
            if let Ok(pattern) = parsed(&text, 60) {
                let values: Vec<_> = values.iter().map(|v| (*v >= 0.0).then_some(*v)).collect();
                let _ = fits(&pattern.steps, &values);
            }
        }

        /// Steps without repetition fit exactly where each fits its own value.
        #[test]
        fn plain_steps_fit_one_by_one(above in proptest::collection::vec(0u32..100, 1..6), values in proptest::collection::vec(0u32..100, 0..8)) {
            let text: Vec<_> = above.iter().map(|above| format!(">{above}%")).collect();
            let percents: Vec<_> = values.iter().map(|v| f64::from(*v)).collect();
            let expected = values.len() >= above.len()
                && above.iter().rev().zip(values.iter().rev()).all(|(above, value)| value > above);
            prop_assert_eq!(seen(&text.join(","), &percents), expected);
        }
    }
}
