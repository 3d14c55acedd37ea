//! Which findings bear most on what a check was asked for: they come first among those that are as bad.

use plumb_model::finding::Cause;
use plumb_model::goal::{Asked, Complaint, Purpose};

use crate::causes;
use crate::entry::Harm;

/// What a use, or what is complained of, suffers from first (PERT Performance Guides, table 1.3); none where nothing was asked for.
fn harms(asked: &Asked) -> &'static [Harm] {
    match (asked.purpose, asked.complaint) {
        (_, Some(Complaint::Response)) => &[Harm::Delay],
        (_, Some(Complaint::Reliability)) => &[Harm::Delivery],
        (_, Some(Complaint::Throughput)) => &[Harm::Rate],
        (Some(Purpose::Call | Purpose::Game | Purpose::Vr), None) => &[Harm::Delay, Harm::Delivery],
        (Some(Purpose::Video | Purpose::Transfer | Purpose::Backup), None) => &[Harm::Rate],
        (Some(Purpose::Web), None) => &[Harm::Delay, Harm::Rate],
        (None, None) => &[],
    }
}

/// Whether a cause takes from a path what the check was asked about.
pub(crate) fn bears_on(asked: Option<&Asked>, cause: Cause) -> bool {
    asked.is_some_and(|asked| harms(asked).contains(&causes::entry(cause).harms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_and_a_complaint_decide_what_comes_first() {
        let purpose = |purpose| Asked {
            purpose: Some(purpose),
            ..Asked::default()
        };
        let (call, transfer) = (purpose(Purpose::Call), purpose(Purpose::Transfer));
        assert!(bears_on(Some(&call), Cause::BufferbloatUp));
        assert!(bears_on(Some(&call), Cause::PathLoss));
        assert!(!bears_on(Some(&call), Cause::SendBufferSmall));
        assert!(bears_on(Some(&transfer), Cause::SendBufferSmall));
        assert!(!bears_on(Some(&transfer), Cause::BufferbloatUp));
        let complaint = Asked {
            complaint: Some(Complaint::Response),
            ..transfer
        };
        assert!(bears_on(Some(&complaint), Cause::BufferbloatUp));
        assert!(!bears_on(None, Cause::BufferbloatUp));
    }
}
