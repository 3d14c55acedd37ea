//! Parts of a plan that the user does not want.

use clap::Args;
use plumb_model::tune::{HostPlan, Left};

/// What a plan is to leave out.
#[derive(Args)]
pub(super) struct Except {
    /// Leave this out of the plan: a knob as the plan names it, or the last part of its name; may be said more than once
    #[arg(long = "except", value_name = "KNOB")]
    knobs: Vec<String>,
}

impl Except {
    /// Takes them out of the changes.
    ///
    /// # Errors
    /// When a knob is not among the changes of the plan, so that a typing error changes nothing.
    pub(super) fn leave_out(&self, plan: &mut HostPlan) -> anyhow::Result<()> {
        for knob in &self.knobs {
            let named = |name: &str| name == knob || name.rsplit('.').next() == Some(knob.as_str());
            let before = plan.changes.len();
            let taken = plan.changes.extract_if(.., |change| named(&change.knob));
            plan.left.extend(taken.map(|change| Left {
                knob: change.knob,
                value: change.from,
                why: "as asked (--except)".to_owned(),
            }));
            if plan.changes.len() == before {
                let there: Vec<_> = plan.changes.iter().map(|c| c.knob.as_str()).collect();
                anyhow::bail!(
                    "the plan has no change of '{knob}' to leave out; it has: {}",
                    if there.is_empty() {
                        "none".to_owned()
                    } else {
                        there.join(", ")
                    }
                );
            }
        }
        Ok(())
    }
}
