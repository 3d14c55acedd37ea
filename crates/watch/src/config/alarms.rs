//! The rules of alarms, and maintenance, as the file has them.

use std::ops::Range;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use super::watched::{Target, series};
use crate::alarm::kinds;
use crate::alarm::maintenance::Window;
use crate::alarm::rule::{self, LEAST_PROBES, seconds};
use crate::glob::matches;

/// How long something has to last unless the file says otherwise: two judgements.
const RAISE_AFTER_S: i64 = 60;

/// How long it has to be over unless the file says otherwise, so that what comes and goes is one alarm.
const CLEAR_AFTER_S: i64 = 600;

/// The longest time of both, in seconds.
const MOST_AFTER_S: i64 = 86_400;

/// The longest name of a rule, in characters.
const MOST_NAME: usize = 100;

/// What is wrong, and where in the file.
pub(super) type Wrong = (Range<usize>, String);

/// A rule of the file.
#[derive(Debug, Clone)]
pub struct Rule {
    pub name: String,
    /// Names of targets and series, or patterns of those; empty for all targets, without their series.
    pub targets: Vec<String>,
    pub raise_after_s: i64,
    pub clear_after_s: i64,
    pub rule: Arc<dyn rule::Rule>,
}

impl Rule {
    /// Whether it judges this target, or series of one.
    pub fn is_for(&self, target: &Target) -> bool {
        match self.targets.is_empty() {
            true => !target.kind.is_series(),
            false => self.targets.iter().any(|name| matches(name, &target.name)),
        }
    }
}

/// What rules of all kinds have; the rest is of its kind.
#[derive(Deserialize)]
pub(super) struct Entry {
    name: Spanned<String>,
    kind: Spanned<String>,
    targets: Option<Spanned<Vec<String>>>,
    raise_after: Option<Spanned<String>>,
    clear_after: Option<Spanned<String>>,
    #[serde(flatten)]
    own: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Maintenance {
    from: Spanned<String>,
    until: String,
    days: Option<Vec<String>>,
    targets: Option<Spanned<Vec<String>>>,
}

/// The targets of that name, which may be a pattern, or the series of one as far as the name says what it is.
fn find(name: &str, known: &[Target]) -> Vec<Target> {
    let found = known.iter().filter(|target| matches(name, &target.name));
    let found: Vec<Target> = found.cloned().collect();
    match found.is_empty() {
        true => series(known, name).into_iter().collect(),
        false => found,
    }
}

/// The names of targets that an entry lists, all of which have to be there.
fn listed(targets: Option<&Spanned<Vec<String>>>, known: &[Target]) -> Result<Vec<String>, Wrong> {
    let Some(targets) = targets else {
        return Ok(Vec::new());
    };
    if targets.get_ref().is_empty() {
        return Err((
            targets.span(),
            "it lists no target: leave it out for all".into(),
        ));
    }
    for name in targets.get_ref() {
        if find(name, known).is_empty() {
            return Err((targets.span(), format!("no target is called '{name}'")));
        }
    }
    Ok(targets.get_ref().clone())
}

impl Entry {
    /// The rule, for these targets.
    pub(super) fn rule(&self, known: &[Target]) -> Result<Rule, Wrong> {
        let name = self.name.get_ref().trim();
        if name.is_empty() || name.chars().count() > MOST_NAME || name.contains(char::is_control) {
            let why = format!("a name has 1 to {MOST_NAME} characters, and no control characters");
            return Err((self.name.span(), why));
        }
        let after = |key: &str, text: &Option<Spanned<String>>, usual_s: i64| match text {
            None => Ok(usual_s),
            Some(text) => {
                seconds(key, text.get_ref(), (0, MOST_AFTER_S)).map_err(|why| (text.span(), why))
            }
        };
        let rule = kinds::rule(self.kind.get_ref(), self.own.clone())
            .map_err(|why| (self.kind.span(), format!("alarm '{name}': {why}")))?;
        let targets = listed(self.targets.as_ref(), known)?;
        let judged: Vec<Target> = match targets.is_empty() {
            true => known.to_vec(),
            false => targets.iter().flat_map(|name| find(name, known)).collect(),
        };
        for Target {
            name: target,
            every,
            kind,
            ..
        } in &judged
        {
            let is_of = rule.is_of(kind.unit());
            if !targets.is_empty() && !is_of {
                let why = format!(
                    "alarm '{name}': median and p95 are of targets that measure times, and value of those that do not, unlike '{target}'"
                );
                return Err((self.kind.span(), why));
            }
            let least_s = every.as_secs_f64() * LEAST_PROBES as f64;
            if is_of && (rule.window_s() as f64) < least_s {
                let why = format!(
                    "alarm '{name}': its window of {} s has fewer than {LEAST_PROBES} probes of '{target}', which is probed \
                     every {} s: give it a longer one, or list other targets",
                    rule.window_s(),
                    every.as_secs_f64()
                );
                return Err((self.kind.span(), why));
            }
        }
        Ok(Rule {
            name: name.to_owned(),
            targets,
            raise_after_s: after("raise_after", &self.raise_after, RAISE_AFTER_S)?,
            clear_after_s: after("clear_after", &self.clear_after, CLEAR_AFTER_S)?,
            rule: rule.into(),
        })
    }

    /// Where its name stands.
    pub(super) fn span(&self) -> Range<usize> {
        self.name.span()
    }
}

impl Maintenance {
    pub(super) fn window(&self, known: &[Target]) -> Result<(Vec<String>, Window), Wrong> {
        let window = Window::read(self.from.get_ref(), &self.until, self.days.as_deref())
            .map_err(|why| (self.from.span(), why))?;
        Ok((listed(self.targets.as_ref(), known)?, window))
    }
}
