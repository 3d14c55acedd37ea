//! Judges every rule at the end of each minute, and raises and clears alarms. The history is given to it, and the time.

use std::collections::BTreeMap;

use super::maintenance::Window;
use super::record::Alarm;
use super::rule::{Shown, Verdict};
use crate::config::{Config, Target};
use crate::distribution::Distribution;
use crate::glob::matches;
use crate::outage::LEAST_LOST;
use crate::sample::Sample;

/// How often rules judge, in seconds.
pub const JUDGE_EVERY_S: i64 = 60;

/// What was usual is looked up again so often, in seconds: a window of the history that it is made of.
const USUAL_S: i64 = 900;

/// Quarter-hours count as of the same hour up to so many seconds around it.
const AROUND_S: i64 = 1800;

/// After a router answers again, what is behind it has so long to do the same, in seconds, beyond what its rule looks back.
const BEHIND_S: i64 = 120;

/// Where rules find what they judge.
pub trait History {
    type Error;

    /// The samples of a target sent from `from_s` on, in the order of time.
    ///
    /// # Errors
    /// When it cannot be read.
    fn samples(&self, target: &str, from_s: i64) -> Result<Vec<Sample>, Self::Error>;

    /// The quarter-hours of a target that begin from the first time until before the second.
    ///
    /// # Errors
    /// When it cannot be read.
    fn quarters(
        &self,
        target: &str,
        within: (i64, i64),
    ) -> Result<Vec<(i64, Distribution)>, Self::Error>;
}

/// What is known of a rule at a target.
#[derive(Debug, Default)]
struct State {
    /// Since when it has been seen, without an end.
    seen_s: Option<i64>,
    /// Since when it has been quiet, while an alarm stands.
    quiet_s: Option<i64>,
    standing: Option<Alarm>,
}

/// What is known of a target.
#[derive(Debug, Default)]
struct Known {
    /// The last minute's end at which its last probes had no answer, s since 1970.
    dead_s: Option<i64>,
    /// The quarter-hours of earlier days, and until when they serve.
    usual: Vec<(i64, Distribution)>,
    usual_until_s: i64,
}

/// All alarms that stand, and what may become one.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    /// Places of targets, routers before what is behind them.
    order: Vec<usize>,
    states: BTreeMap<(String, String), State>,
    known: BTreeMap<String, Known>,
    /// Alarms that stand, of rules or targets that are there no more.
    orphans: Vec<Alarm>,
}

impl Engine {
    /// Continues with the alarms that stand.
    pub fn new(config: &Config, standing: Vec<Alarm>) -> Self {
        let mut order: Vec<usize> = (0..config.targets.len()).collect();
        order.sort_by_key(|place| {
            let target = config.targets.get(*place);
            target.map_or(0, |target| config.routers(target).len())
        });
        let mut states = BTreeMap::new();
        let mut orphans = Vec::new();
        for alarm in standing {
            let target = config
                .targets
                .iter()
                .find(|target| target.name == alarm.target);
            let target = target.cloned().or_else(|| config.series(&alarm.target));
            let is_watched = target.is_some_and(|target| {
                let mut rules = config.alarms.iter();
                rules.any(|rule| rule.name == alarm.rule && rule.is_for(&target))
            });
            if !is_watched {
                orphans.push(alarm);
                continue;
            }
            let state = State {
                standing: Some(alarm.clone()),
                ..State::default()
            };
            states.insert((alarm.rule, alarm.target), state);
        }
        Self {
            config: config.clone(),
            order,
            states,
            known: BTreeMap::new(),
            orphans,
        }
    }

    /// Has a series of a target be judged too, where a rule is for it.
    pub fn add_series(&mut self, series: Target) {
        let is_judged = self.config.alarms.iter().any(|rule| rule.is_for(&series));
        if is_judged
            && !self
                .config
                .targets
                .iter()
                .any(|target| target.name == series.name)
        {
            self.order.push(self.config.targets.len());
            self.config.targets.push(series);
        }
    }

    /// Judges the minute that ends then: the alarms that it raised or cleared.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn judge<H: History>(&mut self, history: &H, now_s: i64) -> Result<Vec<Alarm>, H::Error> {
        let mut changed = Vec::new();
        for mut alarm in std::mem::take(&mut self.orphans) {
            alarm.cleared_s = Some(now_s);
            changed.push(alarm);
        }
        let config = self.config.clone();
        let mut raised = Vec::new();
        for place in &self.order {
            let Some(target) = config.targets.get(*place) else {
                continue;
            };
            let rules: Vec<_> = config
                .alarms
                .iter()
                .filter(|rule| rule.is_for(target) && rule.rule.is_of(target.kind.unit()))
                .collect();
            if rules.is_empty() && !config.targets.iter().any(|t| t.behind.is_some()) {
                continue;
            }
            let back_s = rules.iter().map(|rule| rule.rule.back_s()).max();
            let mut samples =
                history.samples(&target.name, now_s - back_s.unwrap_or(0).max(300))?;
            samples.truncate(samples.partition_point(|s| s.sent_us < now_s * 1_000_000));
            let known = self.known.entry(target.name.clone()).or_default();
            if is_dead(&samples) {
                known.dead_s = Some(now_s);
            }
            let days = rules.iter().map(|rule| rule.rule.days()).max().unwrap_or(0);
            if days > 0 && now_s >= known.usual_until_s {
                known.usual = same_hour(history, target, days, now_s)?;
                known.usual_until_s = now_s - now_s.rem_euclid(USUAL_S) + USUAL_S;
            }
            let usual = std::mem::take(&mut known.usual);
            let shown = Shown {
                now_s,
                every: target.every,
                unit: target.kind.unit(),
                samples: &samples,
                same_hour: &usual,
            };
            for rule in rules {
                let router_s = config
                    .routers(target)
                    .iter()
                    .filter_map(|router| self.known.get(router.name.as_str())?.dead_s)
                    .max();
                let since_router_s = router_s.map_or(i64::MAX, |dead_s| now_s - dead_s);
                let kept_quiet = since_router_s <= rule.rule.back_s() + BEHIND_S
                    || in_maintenance(&config.maintenance, target, now_s);
                let state = (rule.name.clone(), target.name.clone());
                let state = self.states.entry(state).or_default();
                let before = state.standing.clone();
                state.step(rule.rule.judge(&shown), kept_quiet, now_s, rule);
                match (&before, &mut state.standing) {
                    (None, Some(alarm)) => {
                        alarm.target = target.name.clone();
                        raised.push(alarm.clone());
                    }
                    (Some(alarm), None) => changed.push(Alarm {
                        cleared_s: Some(now_s),
                        ..alarm.clone()
                    }),
                    _ => {}
                }
            }
            if let Some(known) = self.known.get_mut(&target.name) {
                known.usual = usual;
            }
        }
        // What is behind a router is judged after it, so that its silence is known only now.
        for mut alarm in raised {
            if self.is_dead_at(&alarm.target, now_s) {
                let behind = config.targets.iter().filter(|target| {
                    let routers = config.routers(target);
                    routers.iter().any(|router| router.name == alarm.target)
                        && self.is_dead_at(&target.name, now_s)
                });
                alarm.behind = behind.map(|target| target.name.clone()).collect();
            }
            let state = (alarm.rule.clone(), alarm.target.clone());
            if let Some(state) = self.states.get_mut(&state) {
                state.standing = Some(alarm.clone());
            }
            changed.push(alarm);
        }
        Ok(changed)
    }

    /// Whether alarms stand that nothing watches any more.
    pub fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }

    fn is_dead_at(&self, target: &str, now_s: i64) -> bool {
        self.known.get(target).and_then(|known| known.dead_s) == Some(now_s)
    }
}

impl State {
    fn step(
        &mut self,
        verdict: Verdict,
        kept_quiet: bool,
        now_s: i64,
        rule: &crate::config::alarms::Rule,
    ) {
        match verdict {
            // Neither begins nor ends anything.
            Verdict::Unknown => {}
            Verdict::Quiet => {
                self.seen_s = None;
                if self.standing.is_some() {
                    let quiet_s = *self.quiet_s.get_or_insert(now_s);
                    if now_s - quiet_s >= rule.clear_after_s {
                        self.standing = None;
                        self.quiet_s = None;
                    }
                }
            }
            Verdict::Seen { words, since_s } => {
                self.quiet_s = None;
                if self.standing.is_some() {
                    return;
                }
                if kept_quiet {
                    self.seen_s = None;
                    return;
                }
                let seen_s = *self.seen_s.get_or_insert(now_s);
                if now_s - seen_s >= rule.raise_after_s {
                    self.seen_s = None;
                    self.standing = Some(Alarm {
                        rule: rule.name.clone(),
                        target: String::new(),
                        since_s: since_s.unwrap_or(seen_s).min(seen_s),
                        raised_s: now_s,
                        cleared_s: None,
                        words,
                        behind: Vec::new(),
                    });
                }
            }
        }
    }
}

/// Whether the last probes had no answer.
fn is_dead(samples: &[Sample]) -> bool {
    let last = samples.iter().rev().take(LEAST_LOST);
    samples.len() >= LEAST_LOST && last.into_iter().all(|sample| sample.value.is_none())
}

/// Whether it is maintained then; a series is with its target.
fn in_maintenance(windows: &[(Vec<String>, Window)], target: &Target, now_s: i64) -> bool {
    let owner = target.behind.as_ref().filter(|_| target.kind.is_series());
    let is_named = |name: &String| matches(name, &target.name) || Some(name) == owner;
    windows.iter().any(|(targets, window)| {
        (targets.is_empty() || targets.iter().any(is_named)) && window.holds(now_s)
    })
}

/// The quarter-hours around this time of day of earlier days.
fn same_hour<H: History>(
    history: &H,
    target: &Target,
    days: i64,
    now_s: i64,
) -> Result<Vec<(i64, Distribution)>, H::Error> {
    let mut found = Vec::new();
    for day in (1..=days).rev() {
        let at_s = now_s - day * 86_400;
        found.extend(history.quarters(&target.name, (at_s - AROUND_S, at_s + AROUND_S))?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests;
