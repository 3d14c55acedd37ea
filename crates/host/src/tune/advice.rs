//! Judging a list of settings that somebody advises, for the path at hand: that of the 10 Gbit/s article,
//! or a sysctl.conf(5) of one's own.

use plumb_model::tune::{Judged, Worth};

use crate::knobs::formula::{Advice, Formula};
use crate::knobs::{Catalogue, Knob};
use crate::tune::snapshot::Snapshot;

/// The complete set of the article "Saturating 10 Gigabit on Linux".
pub const ARTICLE: &str = include_str!("article.conf");

/// A line that is no setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is '{text}', which is no setting: write NAME = VALUE, as in sysctl.conf(5)")]
pub struct AdviceError {
    line: usize,
    text: String,
}

/// Reads settings as sysctl.conf(5) has them.
///
/// # Errors
/// When a line is neither a setting nor a comment.
pub fn parse(text: &str) -> Result<Vec<(String, String)>, AdviceError> {
    let mut settings = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let pair = line.split_once('=').map(|(key, value)| {
            let key = key.trim().trim_start_matches('-').replace('/', ".");
            (key, value.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        match pair {
            Some((key, value)) if !key.is_empty() && !key.contains(char::is_whitespace) => {
                settings.push((key, value));
            }
            _ => {
                return Err(AdviceError {
                    line: number + 1,
                    text: line.chars().take(60).collect(),
                });
            }
        }
    }
    Ok(settings)
}

/// Judges settings. `advise` is the planner's own advice for a knob here.
pub fn judge(
    settings: &[(String, String)],
    catalogue: &Catalogue,
    host: &Snapshot,
    advise: impl Fn(&Knob) -> Advice,
) -> Vec<Judged> {
    let judged = |(name, value): &(String, String)| {
        let (worth, why) = match catalogue.find(host.os, name) {
            None => (
                Worth::Unknown,
                "it is not in the catalogue (plumb explain knobs)".to_owned(),
            ),
            Some(knob) => one(knob, value, host, advise(knob)),
        };
        Judged {
            knob: name.clone(),
            value: value.clone(),
            worth,
            why,
        }
    };
    settings.iter().map(judged).collect()
}

fn one(knob: &Knob, value: &str, host: &Snapshot, advice: Advice) -> (Worth, String) {
    if let Some(why) = &knob.obsolete {
        return (Worth::Obsolete, why.clone());
    }
    if let Some(never) = knob.never(value, host.release.as_deref()) {
        return (Worth::Harmful, never.because.clone());
    }
    if let Err(e) = knob.check(value) {
        return (Worth::Impossible, e.to_string());
    }
    let present = host.value(&knob.name);
    let words = |text: &str| {
        text.split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    if present.is_some_and(|present| words(present) == words(value)) {
        return (Worth::Already, "nothing changes".to_owned());
    }
    let numbers = |text: &str| -> Option<Vec<i128>> {
        text.split_whitespace().map(|n| n.parse().ok()).collect()
    };
    // The second number of a buffer is where every connection begins.
    if let (Some([_, now, _]), Some([_, then, _])) = (
        present.and_then(numbers).as_deref(),
        numbers(value).as_deref(),
    ) && then < now
        && knob.short_name().ends_with("mem")
    {
        return (
            Worth::Harmful,
            format!("its second number lowers where connections begin, from {now} to {then}"),
        );
    }
    match advice {
        Advice::Leave { .. } if knob.value == Formula::Leave => (
            Worth::NoEffect,
            format!("Matters: {} Does not: {}", knob.when, knob.not),
        ),
        Advice::Leave { why } => (Worth::NoEffect, why),
        Advice::Set {
            value: best, why, ..
        } => {
            let last = |text: &str| numbers(text).and_then(|n| n.last().copied());
            match (last(value), last(&best), present.and_then(last)) {
                (Some(then), Some(best), _) if then >= best => (Worth::Helps, why),
                (Some(then), Some(best), Some(now)) if then > now => (
                    Worth::TooLittle,
                    format!("{why} This path needs {best}, not {then}."),
                ),
                (None, _, _) if value.eq_ignore_ascii_case(&best) => (Worth::Helps, why),
                _ => (Worth::NoEffect, format!("{why} It should be {best}.")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_article_is_23_settings_of_the_catalogue() {
        let catalogue = Catalogue::built_in().unwrap();
        let settings = parse(ARTICLE).unwrap();
        assert_eq!(settings.len(), 23);
        for (name, _) in &settings {
            assert!(
                catalogue.find(plumb_model::tune::Os::Linux, name).is_some(),
                "{name}"
            );
        }
    }

    #[test]
    fn slashes_comments_and_nonsense() {
        let read = parse("# x\n; y\n\n-net/ipv4/tcp_rmem=4096\t1 2\n").unwrap();
        assert_eq!(
            read,
            [("net.ipv4.tcp_rmem".to_owned(), "4096 1 2".to_owned())]
        );
        assert_eq!(parse("sysctl -p\n").unwrap_err().line, 1);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(\\PC|\n|=){0,200}") {
            let _ = parse(&text);
        }
    }
}
