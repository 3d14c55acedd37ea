//! What an advised setting is worth on a host for a path. The planner is the judge: what it would still change with the
//! setting in force is compared with what it would change without. Pure.

use plumb_model::tune::{Judged, Worth};
use plumb_model::units::si;

use super::memory;
use super::snapshot::Snapshot;
use crate::knobs::available::Available;
use crate::knobs::formula::{Advice, Formula, buffers, congestion};
use crate::knobs::situation::Situation;
use crate::knobs::{Catalogue, Knob};

/// Fewer ports than this run out in ordinary use: a closed connection keeps its own for a minute (TIME-WAIT), so
/// they are 68 new connections a second to one address and port.
const FEWEST_PORTS: i128 = 4096;

/// How long a closed connection keeps its port (`TCP_TIMEWAIT_LEN`), in seconds.
const TIME_WAIT_S: f64 = 60.0;

/// What settings are judged by.
pub(super) struct Judge<'a, A, F> {
    pub(super) catalogue: &'a Catalogue,
    pub(super) host: &'a Snapshot,
    pub(super) situation: &'a Situation,
    /// The planner's advice for a knob: with a value in force, or as things are.
    pub(super) advise: A,
    /// Why a change of a knob may not be made on this host, though it would help.
    pub(super) forbidden: F,
}

impl<A, F> Judge<'_, A, F>
where
    A: Fn(&Knob, Option<&str>) -> Advice,
    F: Fn(&Knob) -> Option<String>,
{
    /// Judges each setting by itself.
    pub(super) fn all(&self, settings: &[(String, String)]) -> Vec<Judged> {
        let judged = |(name, value): &(String, String)| {
            let (worth, why) = match self.catalogue.find(self.host.os, name) {
                None => (
                    Worth::Unknown,
                    "it is not in the catalogue (plumb explain knobs)".to_owned(),
                ),
                Some(knob) => self.one(knob, value),
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

    fn one(&self, knob: &Knob, value: &str) -> (Worth, String) {
        if let Some(why) = &knob.obsolete {
            return (Worth::Obsolete, why.clone());
        }
        if let Some(never) = knob.never(value, self.host.release.as_deref()) {
            return (Worth::Harmful, never.because.clone());
        }
        if let Err(e) = knob.check(value) {
            return (Worth::Impossible, e.to_string());
        }
        let available = available(knob, self.host, value);
        if let Some(why) = available.why_not(value) {
            return (Worth::Impossible, why);
        }
        let present = self.host.value(&knob.name);
        if present.is_some_and(|present| present.split_whitespace().eq(value.split_whitespace())) {
            return (Worth::Already, "nothing changes".to_owned());
        }
        if let Some(judged) = by_its_own_rule(knob, value, self.host, self.situation) {
            return judged;
        }
        let (worth, why) = self.by_the_planner(knob, value, present);
        match (worth, available) {
            (Worth::Helps | Worth::TooLittle, _) => match (self.forbidden)(knob) {
                Some(why) => (Worth::Impossible, why),
                None => (worth, why),
            },
            (Worth::NoEffect, Available::NotKnown) => (
                Worth::Unknown,
                format!("whether that host has {value} is not known"),
            ),
            _ => (worth, why),
        }
    }

    /// What the planner would change as things are, and with the value in force.
    fn by_the_planner(&self, knob: &Knob, value: &str, present: Option<&str>) -> (Worth, String) {
        let carried = |value: Option<&str>| buffers::carried_with(knob, self.situation, value);
        let then_carried = carried(Some(value)).map_or_else(String::new, |bps| {
            format!(" One connection would carry about {}.", si(bps, "bit/s"))
        });
        match ((self.advise)(knob, None), (self.advise)(knob, Some(value))) {
            (Advice::Leave { .. }, Advice::Leave { .. }) if knob.value == Formula::Leave => (
                Worth::NoEffect,
                format!(
                    "Matters: {} Does not: {}{}",
                    knob.when,
                    knob.not,
                    lowered(present, value)
                ),
            ),
            (Advice::Leave { why }, Advice::Leave { .. }) => (
                Worth::NoEffect,
                format!("{}{}", sentence(why), lowered(present, value)),
            ),
            (Advice::Leave { .. }, Advice::Set { why, .. }) => {
                (Worth::Harmful, format!("{why}{then_carried}"))
            }
            (Advice::Set { why, .. }, Advice::Leave { .. }) => (Worth::Helps, why),
            (
                Advice::Set {
                    why, value: best, ..
                },
                Advice::Set { .. },
            ) => {
                // What more of is better.
                let order = |value: Option<&str>| {
                    carried(value).or_else(|| {
                        let value = value?;
                        let rank = congestion::rank(value).map(|rank| rank as f64);
                        rank.or_else(|| last(value).map(|n| n as f64))
                    })
                };
                match (order(present), order(Some(value))) {
                    // The planner looks at the interface, not at this value.
                    _ if value.eq_ignore_ascii_case(&best) => (Worth::Helps, why),
                    (Some(now), Some(then)) if then > now => (
                        Worth::TooLittle,
                        format!("{} This path needs {best}.{then_carried}", sentence(why)),
                    ),
                    (Some(now), Some(then)) if then < now => (
                        Worth::Harmful,
                        format!(
                            "It is in the wrong direction: this path needs {best}. {}{then_carried}",
                            sentence(why)
                        ),
                    ),
                    _ => (
                        Worth::NoEffect,
                        format!("{} It should be {best}.", sentence(why)),
                    ),
                }
            }
        }
    }
}

/// Whether what is set by its name can be had.
fn available(knob: &Knob, host: &Snapshot, value: &str) -> Available {
    match knob.value {
        Formula::CongestionControl => host.congestion_control(value),
        Formula::FairQueue => host.queue(value),
        _ => Available::Yes,
    }
}

/// Knobs whose numbers say more than that they are enough.
fn by_its_own_rule(
    knob: &Knob,
    value: &str,
    host: &Snapshot,
    situation: &Situation,
) -> Option<(Worth, String)> {
    let present = host.value(&knob.name);
    match (knob.value, knob.name.as_str()) {
        (Formula::ReceiveBuffer | Formula::SendBuffer, _) => {
            // The second number is where every connection begins.
            let ([_, now, _], _) = buffers::of_three(knob, present);
            let ([_, then, _], _) = buffers::of_three(knob, Some(value));
            (then < now).then(|| {
                (
                    Worth::Harmful,
                    format!(
                        "its second number lowers where connections begin, from {now} to {then}"
                    ),
                )
            })
        }
        (Formula::CongestionControl, _) if congestion::rank(value).is_none() => Some((
            Worth::Unknown,
            format!("plumb does not know what loss {value} can stand on a path"),
        )),
        (_, memory::TCP_MEM) => memory::judge(knob, value, host, situation),
        (_, "net.ipv4.ip_local_port_range") => ports(value, present.unwrap_or(&knob.default)),
        _ => None,
    }
}

fn ports(value: &str, present: &str) -> Option<(Worth, String)> {
    let range = |text: &str| -> Option<(i128, i128)> {
        let (first, last) = text.split_once(char::is_whitespace)?;
        Some((first.parse().ok()?, last.trim().parse().ok()?))
    };
    let count = |(first, last): (i128, i128)| last - first + 1;
    let then = range(value)?;
    if then.1 < then.0 {
        return Some((
            Worth::Impossible,
            format!("its last port, {}, is below its first, {}", then.1, then.0),
        ));
    }
    let (then, now) = (count(then), range(present).map(count));
    (then < FEWEST_PORTS && now.is_none_or(|now| then < now)).then(|| {
        (
            Worth::Harmful,
            format!(
                "{then} ports are {:.1} new connections a second to one address and port, because a closed one keeps its port for a minute",
                then as f64 / TIME_WAIT_S
            ),
        )
    })
}

fn last(text: &str) -> Option<i128> {
    text.split_whitespace().last()?.parse().ok()
}

/// A remark where a value is below the present one.
fn lowered(present: Option<&str>, value: &str) -> String {
    match (present.and_then(last), last(value)) {
        (Some(now), Some(then)) if then < now => format!(" It lowers {now} to {then}."),
        _ => String::new(),
    }
}

fn sentence(mut text: String) -> String {
    if !text.ends_with('.') {
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests;
