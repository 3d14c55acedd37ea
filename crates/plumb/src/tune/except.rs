//! Parts of a plan that the user does not want.

use clap::Args;
use plumb_host::knobs::situation::Situation;
use plumb_host::tune::plan::{NoSuchChange, leave_out};
use plumb_host::tune::snapshot::Snapshot;
use plumb_model::tune::HostPlan;

/// What a plan is to leave out.
#[derive(Args)]
pub(super) struct Except {
    /// Leave this out of the plan: a knob as the plan names it, or the last part of its name; may be said more than once
    #[arg(long = "except", value_name = "KNOB")]
    knobs: Vec<String>,
}

impl Except {
    pub(super) fn knobs(&self) -> &[String] {
        &self.knobs
    }

    /// Takes them out of the changes of a plan for that host and path.
    ///
    /// # Errors
    /// When a knob is not among the changes of the plan, so that a typing error changes nothing.
    pub(super) fn leave_out(
        &self,
        plan: &mut HostPlan,
        host: &Snapshot,
        situation: &Situation,
    ) -> Result<(), NoSuchChange> {
        leave_out(plan, &self.knobs, host, situation)
    }
}
