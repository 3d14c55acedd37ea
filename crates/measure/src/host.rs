//! `plumb host`: this machine, read and judged.

pub mod counted;
pub mod live;
pub mod speed;

use plumb_diagnose::host::{audit, long_path};
use plumb_host::facts::{Source, survey};
use plumb_host::knobs::Catalogue;
use plumb_model::results::Outcome;
use plumb_net::clock;

use crate::advice::as_the_catalogue_advises;
use crate::error::MeasureError;
use crate::record::Measured;
use crate::session::Session;
use crate::step::Step;
use crate::yields::Yield;

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
        as_the_catalogue_advises(
            &mut audit.findings,
            long_path(&result),
            result.machine.memory_bytes,
            |key| result.sysctl(key),
            catalogue,
        );
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
