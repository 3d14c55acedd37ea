//! `plumb host`: this machine, read and judged.

pub mod live;
pub mod speed;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use plumb_diagnose::host::{audit, long_path};
use plumb_host::facts::{Source, survey};
use plumb_host::knobs::Catalogue;
use plumb_host::knobs::formula::{Advice, Present, advise};
use plumb_host::knobs::situation::Situation;
use plumb_model::finding::{Action, Finding};
use plumb_model::results::Outcome;
use plumb_model::results::host::HostResult;
use plumb_model::tune::{Os, Role};
use plumb_net::clock;

use crate::conductor::{Conducted, Conductor};
use crate::error::MeasureError;
use crate::progress::Watcher;
use crate::record::{Judgement, Measured};
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

/// Reads this machine and judges it.
///
/// # Errors
/// When it was stopped before.
pub fn run(
    command: Vec<String>,
    catalogue: &Catalogue,
    watcher: &dyn Watcher,
    stop: &Arc<AtomicBool>,
) -> Result<Conducted, MeasureError> {
    let mut conductor = Conductor::here(command, watcher, stop);
    conductor.step(&mut HostAudit { catalogue }, 0);
    conductor.finish(Judgement::AsAudited)
}

/// What this machine is, and what its audit says.
pub struct HostAudit<'a> {
    /// What can be set on a host.
    pub catalogue: &'a Catalogue,
}

impl Step for HostAudit<'_> {
    fn name(&self) -> String {
        "this machine".to_owned()
    }

    fn measure(&mut self, session: &mut Session<'_>) -> Result<Yield, MeasureError> {
        let catalogue = self.catalogue;
        let mut out = Yield::default();
        let started_ns = clock::monotonic_ns();
        let mut result = survey(&mut Source::system(), catalogue);
        let mut audit = audit(&result, &session.next_id);
        as_the_catalogue_advises(&mut audit.findings, &result, catalogue);
        result.audit.clone_from(&audit.checks);
        for unread in &result.unread {
            out.note(format!(
                "{} could not be read: {}.",
                unread.what, unread.why
            ));
        }
        if !result.of_the_machine.is_empty() {
            out.note(format!(
                "This is one network namespace of several. Of the whole machine are: {}, and the kernel variables marked so.",
                result.of_the_machine.join(", ")
            ));
        }
        out.add(Measured::until_now(
            started_ns,
            Outcome::Host(Box::new(result)),
        ));
        out.audit = Some(audit);
        Ok(out)
    }
}

/// Gives variables the values of the catalogue of knobs, which `plumb tune` goes by too, where it has
/// a value for a long path. No value exceeds what the kernel takes.
pub(crate) fn as_the_catalogue_advises<'f>(
    findings: impl IntoIterator<Item = &'f mut Finding>,
    host: &HostResult,
    catalogue: &Catalogue,
) {
    let (rate_bps, rtt_s) = long_path(host);
    let situation = Situation {
        rate_bps,
        rtt_s,
        loss_ratio: None,
        role: Role::Server,
        memory_bytes: host.machine.memory_bytes,
        mtu_bytes: None,
        release: None,
    };
    for fix in findings.into_iter().flat_map(|finding| &mut finding.fixes) {
        let Some(Action::Sysctl(setting)) = &mut fix.action else {
            continue;
        };
        let Some(knob) = catalogue.find(Os::Linux, &setting.key) else {
            continue;
        };
        let present = Present {
            value: host.sysctl(&setting.key),
            ..Present::default()
        };
        if let Advice::Set { value, .. } = advise(knob, &situation, present) {
            setting.value = value;
        } else if knob.check(&setting.value).is_err() {
            fix.action = None;
        }
    }
}
