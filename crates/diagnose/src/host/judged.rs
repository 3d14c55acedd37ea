//! What rules look at, and what they say: fine, unknown, or found.

use plumb_model::finding::{
    Action, Actor, Cause, Evidence, Finding, Fix, InterfaceAction, InterfaceChange, Observed,
    PathKind, Place, Severity, SysctlAction,
};
use plumb_model::results::Outcome;
use plumb_model::results::host::{HostResult, Interface};
use plumb_model::run::Measurement;

use crate::Case;

/// What a rule looks at.
pub(crate) struct Facts<'a> {
    pub(crate) host: &'a HostResult,
    pub(crate) measurement: &'a str,
}

impl<'a> Case<'a> {
    /// What was read of this machine, and the measurements that it is of.
    pub fn hosts(&self) -> impl Iterator<Item = (&'a str, &'a HostResult)> + use<'a> {
        self.measurements.iter().filter_map(|m| match &m.outcome {
            Outcome::Host(host) => Some((m.id.as_str(), &**host)),
            _ => None,
        })
    }

    /// Whether something else was measured than this machine.
    pub(crate) fn has_path(&self) -> bool {
        let of_path = |m: &Measurement| !matches!(m.outcome, Outcome::Host(_));
        let local = self.asked.is_some_and(|asked| asked.local);
        !local && self.measurements.iter().any(of_path)
    }
}

impl<'a> Facts<'a> {
    /// Interfaces that carry packets, with their place in the list.
    pub(crate) fn in_use(&self) -> impl Iterator<Item = (usize, &'a Interface)> + use<'a> {
        let interfaces = self.host.interfaces.iter().enumerate();
        interfaces.filter(|(_, interface)| interface.is_in_use())
    }

    /// Interfaces in use that are hardware.
    pub(crate) fn hardware(&self) -> impl Iterator<Item = (usize, &'a Interface)> + use<'a> {
        self.in_use()
            .filter(|(_, interface)| interface.is_physical())
    }

    /// Interfaces in use that report what their driver takes over, with their place in the list.
    pub(crate) fn with_offloads(&self) -> impl Iterator<Item = (usize, &'a Interface)> + use<'a> {
        self.in_use().filter(|(_, interface)| {
            !interface.offloads.is_empty() && interface.wifi.is_none() && !interface.is_a_programs()
        })
    }

    /// The place of a variable in the list; 0 where it was not read.
    pub(crate) fn place_of(&self, key: &str) -> usize {
        let mut all = self.host.sysctls.iter();
        all.position(|sysctl| sysctl.key == key).unwrap_or_default()
    }

    /// A piece of evidence; `field` is what follows `result.`.
    pub(crate) fn evidence(
        &self,
        field: impl std::fmt::Display,
        value: impl Into<Observed>,
        rule: &str,
        threshold: impl Into<Observed>,
    ) -> Evidence {
        Evidence {
            measurement: self.measurement.to_owned(),
            field: format!("result.{field}"),
            value: value.into(),
            rule: rule.to_owned(),
            threshold: threshold.into(),
        }
    }

    /// A counter against the count of what it is a part of, as evidence for each.
    pub(crate) fn counted(&self, name: &str, rule: &str, threshold: f64) -> Evidence {
        let value = self.host.counter(name).unwrap_or_default();
        self.evidence(format!("counters.{name}"), value as f64, rule, threshold)
    }
}

/// What a rule says of a subject.
#[derive(Debug, PartialEq)]
pub(crate) enum Judged {
    Fine(String, String),
    Unknown(String, String),
    Found(String, Box<Finding>),
}

pub(crate) fn fine(subject: impl Into<String>, summary: impl Into<String>) -> Judged {
    Judged::Fine(subject.into(), summary.into())
}

pub(crate) fn unknown(subject: impl Into<String>, why: impl Into<String>) -> Judged {
    Judged::Unknown(subject.into(), why.into())
}

/// A finding of this host about `subject`; evidence and fixes are added to it.
pub(crate) fn found(
    subject: impl Into<String>,
    cause: Cause,
    severity: Severity,
    matters_for: &[PathKind],
    summary: impl Into<String>,
) -> Found {
    Found {
        subject: subject.into(),
        finding: Finding {
            cause,
            place: Place::ThisHost,
            severity,
            confidence: 0.95,
            matters_for: matters_for.to_vec(),
            summary: summary.into(),
            evidence: Vec::new(),
            fixes: Vec::new(),
            kb: "host".to_owned(),
        },
    }
}

/// A finding in the making.
pub(crate) struct Found {
    subject: String,
    finding: Finding,
}

impl Found {
    pub(crate) fn evidence(mut self, evidence: Evidence) -> Self {
        self.finding.evidence.push(evidence);
        self
    }

    pub(crate) fn place(mut self, place: Place) -> Self {
        self.finding.place = place;
        self
    }

    pub(crate) fn sure(mut self, confidence: f64) -> Self {
        self.finding.confidence = confidence;
        self
    }

    pub(crate) fn page(mut self, page: &str) -> Self {
        page.clone_into(&mut self.finding.kb);
        self
    }

    /// Something that only people can do.
    pub(crate) fn advice(self, summary: impl Into<String>, expect: &str) -> Self {
        self.fix(summary, None, expect)
    }

    pub(crate) fn sysctl(
        self,
        summary: impl Into<String>,
        key: &str,
        value: String,
        expect: &str,
    ) -> Self {
        let action = Action::Sysctl(SysctlAction {
            key: key.to_owned(),
            value,
        });
        self.fix(summary, Some(action), expect)
    }

    /// A setting of an interface.
    pub(crate) fn interface(
        self,
        summary: impl Into<String>,
        interface: &Interface,
        change: InterfaceChange,
        expect: &str,
    ) -> Self {
        let action = Action::Interface(InterfaceAction {
            interface: interface.name.clone(),
            change,
        });
        self.fix(summary, Some(action), expect)
    }

    pub(crate) fn fix(
        mut self,
        summary: impl Into<String>,
        action: Option<Action>,
        expect: &str,
    ) -> Self {
        self.finding.fixes.push(Fix {
            on: Actor::ThisHost,
            summary: summary.into(),
            action,
            commands: Vec::new(),
            expect: expect.to_owned(),
        });
        self
    }

    pub(crate) fn done(self) -> Judged {
        Judged::Found(self.subject, Box::new(self.finding))
    }
}

/// How much of all a share is, in words: small ones by how many there are to each, large ones in percent.
pub(crate) fn one_in(share: f64) -> String {
    /// "One in 9" is the least that reads as a number of its own.
    const LARGE: f64 = 0.1;
    match share > LARGE {
        true => format!("{:.0} % of all", share * 100.0),
        false => format!("one in {:.0}", 1.0 / share),
    }
}

/// `part` of `whole` where there are at least [`ENOUGH`] of it to speak of; 0 otherwise, so that a few
/// packets lost while an interface came up are no finding.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if part < ENOUGH || whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Fewer than this many events say nothing.
pub(crate) const ENOUGH: u64 = 10;

/// A counter of the kernel as a number of events.
pub(crate) fn events(host: &HostResult, name: &str) -> Option<u64> {
    host.counter(name).map(|n| u64::try_from(n).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::one_in;

    #[test]
    fn a_large_share_is_said_in_percent() {
        assert_eq!(one_in(0.5), "50 % of all");
        assert_eq!(one_in(0.01), "one in 100");
    }
}
