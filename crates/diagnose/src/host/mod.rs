//! The audit of a machine: pure rules over what `plumb host` read, each with what is fine as well as
//! with what is not.
//!
//! A rule looks at one subject. It says nothing of a subject that the machine does not have, that it
//! is unknown where the machine did not tell, and otherwise that it is fine, with the number that
//! says so, or what is wrong and for which uses it matters.

mod broadcast;
mod clock;
mod coalescing;
mod drops;
mod energy;
mod errors;
mod limits;
mod link;
mod listen;
mod memory;
mod module;
mod mtu;
mod obsolete;
mod offloads;
mod pause;
mod power;
mod queueing;
mod softnet;
mod stages;
mod steering;
mod tcp;
#[cfg(test)]
mod tests;
mod udp;
mod wifi;

use plumb_model::finding::{
    Action, Actor, Cause, Evidence, Finding, Fix, InterfaceAction, InterfaceChange, Observed,
    PathKind, Place, Severity, SysctlAction, Verdict,
};
use plumb_model::results::host::{Check, CheckState, HostResult, Interface};

pub use stages::stages;

/// What the audit came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Audit {
    /// Everything that was looked at.
    pub checks: Vec<Check>,
    /// What is not fine, worst first.
    pub findings: Vec<Finding>,
    /// In one sentence.
    pub verdict: Verdict,
}

/// Judges a machine. `measurement` is the name that evidence has for what was read.
pub fn audit(host: &HostResult, measurement: &str) -> Audit {
    let facts = Facts { host, measurement };
    let judged: Vec<Judged> = RULES.iter().flat_map(|rule| rule(&facts)).collect();
    conclude(judged)
}

/// The rate in bit/s and the round trip in seconds that a machine's buffers are judged by.
pub fn long_path(host: &HostResult) -> (f64, f64) {
    tcp::long_path(&Facts {
        host,
        measurement: "",
    })
}

/// Sorts what rules said.
fn conclude(judged: Vec<Judged>) -> Audit {
    let mut checks = Vec::new();
    let mut findings = Vec::new();
    for one in judged {
        let (subject, state, summary) = match one {
            Judged::Fine(subject, summary) => (subject, CheckState::Fine, summary),
            Judged::Unknown(subject, summary) => (subject, CheckState::Unknown, summary),
            Judged::Found(subject, finding) => {
                let summary = finding.summary.clone();
                findings.push(*finding);
                (subject, CheckState::Found, summary)
            }
        };
        checks.push(Check {
            subject,
            state,
            summary,
        });
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let verdict = Verdict {
        headline: headline(&checks, &findings),
        grade: None,
    };
    Audit {
        checks,
        findings,
        verdict,
    }
}

fn headline(checks: &[Check], findings: &[Finding]) -> String {
    let count = |state| checks.iter().filter(|check| check.state == state).count();
    let fine = count(CheckState::Fine);
    let unknown = match count(CheckState::Unknown) {
        0 => String::new(),
        n => format!("; {n} could not be told"),
    };
    let worse = findings
        .iter()
        .filter(|f| f.severity > Severity::Info)
        .count();
    match findings.first() {
        Some(worst) if worst.severity > Severity::Info => format!(
            "{worse} of {} checks found something to mend, first: {}",
            checks.len(),
            worst.summary
        ),
        Some(_) => format!(
            "Nothing needs mending: {fine} of {} checks are fine, {}{unknown}.",
            checks.len(),
            match findings.len() {
                1 => "one is worth knowing".to_owned(),
                several => format!("{several} are worth knowing"),
            }
        ),
        None => format!(
            "Nothing needs mending: {fine} of {} checks are fine{unknown}.",
            checks.len()
        ),
    }
}

/// A rule of the audit.
type Rule = fn(&Facts<'_>) -> Vec<Judged>;

/// From the cable upwards.
const RULES: [Rule; 22] = [
    link::examine,
    errors::examine,
    pause::examine,
    energy::examine,
    module::examine,
    wifi::examine,
    mtu::examine,
    broadcast::examine,
    offloads::examine,
    queueing::examine,
    drops::examine,
    coalescing::examine,
    softnet::examine,
    steering::examine,
    power::examine,
    tcp::examine,
    udp::examine,
    listen::examine,
    memory::examine,
    limits::examine,
    obsolete::examine,
    clock::examine,
];

/// What a rule looks at.
struct Facts<'a> {
    host: &'a HostResult,
    measurement: &'a str,
}

impl<'a> Facts<'a> {
    /// Interfaces that carry packets, with their place in the list.
    fn in_use(&self) -> impl Iterator<Item = (usize, &'a Interface)> {
        let interfaces = self.host.interfaces.iter().enumerate();
        interfaces.filter(|(_, interface)| interface.is_in_use())
    }

    /// Those of them that are hardware.
    fn hardware(&self) -> impl Iterator<Item = (usize, &'a Interface)> {
        self.in_use()
            .filter(|(_, interface)| interface.is_physical())
    }

    /// A piece of evidence; `field` is what follows `result.`.
    fn evidence(
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
    fn counted(&self, name: &str, rule: &str, threshold: f64) -> Evidence {
        let value = self.host.counter(name).unwrap_or_default();
        self.evidence(format!("counters.{name}"), value as f64, rule, threshold)
    }
}

/// What a rule says of a subject.
#[derive(Debug, PartialEq)]
enum Judged {
    Fine(String, String),
    Unknown(String, String),
    Found(String, Box<Finding>),
}

fn fine(subject: impl Into<String>, summary: impl Into<String>) -> Judged {
    Judged::Fine(subject.into(), summary.into())
}

fn unknown(subject: impl Into<String>, why: impl Into<String>) -> Judged {
    Judged::Unknown(subject.into(), why.into())
}

/// A finding of this host about `subject`; evidence and fixes are added to it.
fn found(
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
struct Found {
    subject: String,
    finding: Finding,
}

impl Found {
    fn evidence(mut self, evidence: Evidence) -> Self {
        self.finding.evidence.push(evidence);
        self
    }

    fn place(mut self, place: Place) -> Self {
        self.finding.place = place;
        self
    }

    fn sure(mut self, confidence: f64) -> Self {
        self.finding.confidence = confidence;
        self
    }

    fn page(mut self, page: &str) -> Self {
        page.clone_into(&mut self.finding.kb);
        self
    }

    /// Something that only people can do.
    fn advice(self, summary: impl Into<String>, expect: &str) -> Self {
        self.fix(summary, None, expect)
    }

    /// A kernel variable.
    fn sysctl(self, summary: impl Into<String>, key: &str, value: String, expect: &str) -> Self {
        let action = Action::Sysctl(SysctlAction {
            key: key.to_owned(),
            value,
        });
        self.fix(summary, Some(action), expect)
    }

    /// A setting of an interface.
    fn interface(
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

    fn fix(mut self, summary: impl Into<String>, action: Option<Action>, expect: &str) -> Self {
        self.finding.fixes.push(Fix {
            on: Actor::ThisHost,
            summary: summary.into(),
            action,
            commands: Vec::new(),
            expect: expect.to_owned(),
        });
        self
    }

    fn done(self) -> Judged {
        Judged::Found(self.subject, Box::new(self.finding))
    }
}

/// `part` of `whole` where there are at least [`ENOUGH`] of it to speak of; 0 otherwise, so that a few
/// packets lost while an interface came up are no finding.
fn ratio(part: u64, whole: u64) -> f64 {
    if part < ENOUGH || whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Fewer than this many events say nothing.
const ENOUGH: u64 = 10;

/// A counter of the kernel as a number of events.
fn events(host: &HostResult, name: &str) -> Option<u64> {
    host.counter(name).map(|n| u64::try_from(n).unwrap_or(0))
}
