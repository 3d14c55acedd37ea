//! Parts of a plan that the user does not want.

use clap::Args;
use plumb_host::knobs::situation::Situation;
use plumb_host::tune::plan::leave_out;
use plumb_host::tune::snapshot::Snapshot;
use plumb_model::tune::HostPlan;

use crate::usage::wrong;

/// What a plan is to leave out.
#[derive(Args)]
pub(super) struct Except {
    /// Leave a setting out of the plan; may be repeated
    ///
    /// By its name in the plan, or by the last part of that.
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
    ) -> anyhow::Result<()> {
        leave_out(plan, &self.knobs, host, situation).map_err(|none| wrong(none.to_string()))
    }
}
