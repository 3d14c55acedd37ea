//! The Run while it is being measured.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use jiff::Timestamp;
use plumb_diagnose::host::{Audit, long_path};
use plumb_diagnose::{Case, Scope, diagnose};
use plumb_host::facts::facts;
use plumb_host::knobs::Catalogue;
use plumb_host::render::fill_commands;
use plumb_model::context::Context;
use plumb_model::finding::{Finding, Severity};
use plumb_model::goal::Asked;
use plumb_model::results::Outcome;
use plumb_model::router::Router;
use plumb_model::run::{Ended, HostFacts, Local, Measurement, Run, SCHEMA, Target};
use plumb_model::series::Series;
use plumb_net::clock;
use serde_json::{Map, Value};

use crate::advice::as_the_catalogue_advises;

/// A Run that is being measured.
#[derive(Debug)]
pub struct Record {
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
    /// When and beside what it was made.
    pub context: Context,
    /// How it came to its end.
    pub ended: Ended,
    /// What else was asked for.
    pub settings: Map<String, Value>,
    /// What came of it.
    pub outcome: Outcome,
    pub series: BTreeMap<String, Series>,
}

impl Measured {
    /// A result with nothing else to say of it; `started_ns` is of CLOCK_MONOTONIC.
    pub fn of(started_ns: u64, duration_s: f64, outcome: Outcome) -> Self {
        Self {
            started_ns,
            duration_s,
            context: Context::default(),
            ended: Ended::Complete,
            settings: Map::new(),
            outcome,
            series: BTreeMap::new(),
        }
    }

    /// The same of what has just ended.
    pub fn until_now(started_ns: u64, outcome: Outcome) -> Self {
        let now_ns = clock::monotonic_ns();
        Self::of(
            started_ns,
            now_ns.saturating_sub(started_ns) as f64 / 1e9,
            outcome,
        )
    }
}

impl Measured {
    /// The same with something else that was asked for, by its name.
    #[must_use]
    pub fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.settings.insert(name.to_owned(), value.into());
        self
    }

    /// The same made beside something.
    #[must_use]
    pub fn within(self, context: Context) -> Self {
        Self { context, ..self }
    }

    /// The same with values over time.
    #[must_use]
    pub fn with_series(self, series: BTreeMap<String, Series>) -> Self {
        Self { series, ..self }
    }
}

impl Record {
    /// Begins a Run now. `command` is the verb and its arguments; there is no `address` where there
    /// are many targets.
    pub fn begin(command: Vec<String>, name: &str, address: impl Into<Option<IpAddr>>) -> Self {
        let mut record = Self::here(command);
        record.run.target = Some(Target {
            name: name.to_owned(),
            address: address.into().map(|address| address.to_string()),
            host: None,
        });
        record
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
                asked: None,
                measurements: Vec::new(),
                findings: Vec::new(),
                verdict: None,
                notes: Vec::new(),
            },
        }
    }

    /// Continues a Run that was measured before: times count from its start.
    pub fn resume(run: Run) -> Self {
        let now_ns = i128::from(clock::realtime_ns());
        let started: Option<Timestamp> = run.started.parse().ok();
        let ago_ns = started.map_or(0, |started| now_ns - started.as_nanosecond());
        Self {
            zero_ns: clock::monotonic_ns().saturating_sub(u64::try_from(ago_ns).unwrap_or(0)),
            run,
        }
    }

    /// Facts that the far end reported of itself.
    pub fn far_host(&mut self, facts: HostFacts) {
        if let Some(target) = &mut self.run.target {
            target.host = Some(facts);
        }
    }

    /// The same of what another host began to measure so long ago, of which `local` is known.
    #[must_use]
    pub fn of_another(mut self, ago: Duration, local: HostFacts) -> Self {
        let started: Option<Timestamp> = self.run.started.parse().ok();
        let earlier = started.and_then(|started| started.checked_sub(ago).ok());
        if let Some(earlier) = earlier {
            self.run.started = format!("{earlier:.9}");
        }
        self.run.local.host = local;
        self
    }

    /// Adds what began so many seconds after the Run.
    pub fn add_at(&mut self, at_s: f64, measured: Measured) {
        self.add(measured);
        if let Some(last) = self.run.measurements.last_mut() {
            last.at_s = at_s;
        }
    }

    pub fn add(&mut self, measured: Measured) {
        self.run.measurements.push(Measurement {
            id: self.next_id(),
            outcome: measured.outcome,
            at_s: measured.started_ns.saturating_sub(self.zero_ns) as f64 / 1e9,
            duration_s: measured.duration_s,
            context: measured.context,
            ended: measured.ended,
            settings: measured.settings,
            series: measured.series,
        });
    }

    /// Adds a note, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.run.notes.contains(&note) {
            self.run.notes.push(note);
        }
    }

    /// What the check was asked for.
    pub fn asked(&mut self, asked: Option<Asked>) {
        self.run.asked = asked;
    }

    /// The Run so far.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Whether nothing was measured yet.
    pub fn is_empty(&self) -> bool {
        self.run.measurements.is_empty()
    }

    /// The name that the next measurement will have.
    pub fn next_id(&self) -> String {
        format!("m{}", self.run.measurements.len() + 1)
    }

    /// Adds what a measurement of this machine says by itself.
    pub fn audited(&mut self, audit: Audit) {
        self.run.findings.extend(audit.findings);
        self.run.verdict = Some(audit.verdict);
    }

    /// The Run with what the measurements mean, judged as wanted.
    pub fn finish(self, judgement: Judgement) -> Run {
        match judgement {
            Judgement::AsAudited => {
                let mut run = self.run;
                fill_commands(&mut run.findings, Router::default());
                run
            }
            Judgement::Part => {
                let mut run = self.judge(Scope::Part);
                let worth_fixing = |finding: &Finding| finding.severity > Severity::Info;
                if !run.findings.iter().any(worth_fixing) {
                    run.verdict = None;
                }
                run
            }
            Judgement::Whole => self.judge(Scope::Path),
        }
    }

    fn judge(mut self, scope: Scope) -> Run {
        let case = Case::of(&self.run);
        let (mut findings, verdict) = diagnose(&case, scope);
        if let Ok(catalogue) = Catalogue::built_in() {
            for (id, host) in case.hosts() {
                let of_it = |finding: &&mut Finding| {
                    let mut evidence = finding.evidence.iter();
                    evidence.any(|evidence| evidence.measurement == id)
                };
                let findings = findings.iter_mut().filter(of_it);
                as_the_catalogue_advises(
                    findings,
                    long_path(host),
                    host.machine.memory_bytes,
                    |key| host.sysctl(key),
                    &catalogue,
                );
            }
        }
        fill_commands(&mut findings, Router::default());
        self.run.findings = findings;
        self.run.verdict = Some(verdict);
        self.run
    }
}

/// How far a Run is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Judgement {
    /// Judged only by its steps, where they audit this machine.
    AsAudited,
    /// As a part of a path, which does not clear the rest: there is a verdict only where something is wrong.
    Part,
    /// As a whole path.
    Whole,
}
