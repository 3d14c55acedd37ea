//! Putting a Run together while it is being measured.

use std::collections::BTreeMap;
use std::net::IpAddr;

use jiff::Timestamp;
use plumb_diagnose::host::Audit;
use plumb_diagnose::{Case, diagnose};
use plumb_host::facts::facts;
use plumb_host::render::fill_commands;
use plumb_model::finding::{Finding, Severity};
use plumb_model::results::{Outcome, ThroughputResult};
use plumb_model::run::{HostFacts, Local, Measurement, Run, SCHEMA, Target};
use plumb_model::series::Series;
use plumb_net::clock;
use serde_json::{Map, Value};

use crate::windows::windows;

/// A Run that is being made.
#[derive(Debug)]
pub struct Assembly {
    run: Run,
    /// CLOCK_MONOTONIC at the Run's start.
    zero_ns: u64,
}

/// What is known of one measurement.
#[derive(Debug)]
pub struct Measured {
    /// CLOCK_MONOTONIC at its start.
    pub started_ns: u64,
    /// How long it took.
    pub duration_s: f64,
    /// What was asked for.
    pub params: Map<String, Value>,
    /// What came of it.
    pub outcome: Outcome,
    /// Values over time.
    pub series: BTreeMap<String, Series>,
}

impl Assembly {
    /// Begins a Run now. `command` is the verb and its arguments; there is no `address` where there
    /// are many targets.
    pub fn begin(command: Vec<String>, name: &str, address: impl Into<Option<IpAddr>>) -> Self {
        let mut assembly = Self::here(command);
        assembly.run.target = Some(Target {
            name: name.to_owned(),
            address: address.into().map(|address| address.to_string()),
            host: None,
        });
        assembly
    }

    /// Begins a Run about this machine alone.
    pub fn here(command: Vec<String>) -> Self {
        let zero_ns = clock::monotonic_ns();
        let started =
            Timestamp::from_nanosecond(i128::from(clock::realtime_ns())).unwrap_or_default();
        Self {
            zero_ns,
            run: Run {
                schema: SCHEMA.to_owned(),
                id: uuid::Uuid::now_v7().to_string(),
                started: format!("{started:.9}"),
                plumb: env!("CARGO_PKG_VERSION").to_owned(),
                command,
                local: Local {
                    host: facts(),
                    lab: None,
                },
                target: None,
                measurements: Vec::new(),
                findings: Vec::new(),
                verdict: None,
                notes: Vec::new(),
            },
        }
    }

    /// Facts that the far end told of itself.
    pub fn far_host(&mut self, facts: HostFacts) {
        if let Some(target) = &mut self.run.target {
            target.host = Some(facts);
        }
    }

    /// Adds a measurement.
    pub fn add(&mut self, measured: Measured) {
        self.run.measurements.push(Measurement {
            id: self.next_id(),
            outcome: measured.outcome,
            at_s: measured.started_ns.saturating_sub(self.zero_ns) as f64 / 1e9,
            duration_s: measured.duration_s,
            params: measured.params,
            series: measured.series,
        });
    }

    /// Adds what one connection could carry where `throughput` was measured.
    pub fn add_windows(
        &mut self,
        throughput: &ThroughputResult,
        started_ns: u64,
        params: Map<String, Value>,
    ) {
        let far = self.run.target.as_ref().and_then(|t| t.host.as_ref());
        if let Some(result) = windows(throughput, &self.run.local.host, far) {
            let outcome = Outcome::Tcp(result);
            self.add(Measured {
                started_ns,
                duration_s: 0.0,
                params,
                outcome,
                series: BTreeMap::new(),
            });
        }
    }

    /// Adds a note, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.run.notes.contains(&note) {
            self.run.notes.push(note);
        }
    }

    /// The Run as measured, without a judgement.
    pub fn finish(self) -> Run {
        self.run
    }

    /// The Run with what an audit of its last measurement came to; [`Assembly::add`] has added it.
    pub fn audited(mut self, audit: Audit) -> Run {
        self.run.findings = audit.findings;
        fill_commands(&mut self.run.findings);
        self.run.verdict = Some(audit.verdict);
        self.run
    }

    /// The Run with what a judgement of its last measurement alone came to.
    pub fn judged_by(self, judge: impl Fn(&Measurement) -> Audit) -> Run {
        match self.run.measurements.last().map(judge) {
            Some(audit) => self.audited(audit),
            None => self.run,
        }
    }

    /// The name that the next measurement will have.
    pub fn next_id(&self) -> String {
        format!("m{}", self.run.measurements.len() + 1)
    }

    /// The Run with what the measurements mean, and a verdict only where something is wrong: what
    /// was measured is a part of the path, which does not clear the rest.
    pub fn with_findings(self) -> Run {
        let mut run = self.judge();
        let worth_mending = |finding: &Finding| finding.severity > Severity::Info;
        if !run.findings.iter().any(worth_mending) {
            run.verdict = None;
        }
        run
    }

    /// The Run with what the measurements mean.
    pub fn judge(mut self) -> Run {
        let case = Case {
            measurements: &self.run.measurements,
            local: &self.run.local.host,
            far: self.run.target.as_ref().and_then(|t| t.host.as_ref()),
        };
        let (mut findings, verdict) = diagnose(&case);
        fill_commands(&mut findings);
        self.run.findings = findings;
        self.run.verdict = Some(verdict);
        self.run
    }
}
