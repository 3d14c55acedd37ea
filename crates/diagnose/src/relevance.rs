//! Which findings bear most on what a check was asked for: they come first among those that are as bad.

use plumb_model::finding::Cause;
use plumb_model::goal::{Asked, Complaint, Purpose};

use crate::causes;
use crate::entry::Family;

/// What a use suffers from first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Packets that come soon, and each like the other.
    Delay,
    /// Packets that come at all.
    Delivery,
    /// Many packets in little time.
    Rate,
}

/// The needs of a use or a complaint (PERT Performance Guides, table 1.3); none where nothing was asked for.
fn needs(asked: &Asked) -> &'static [Need] {
    match (asked.purpose, asked.complaint) {
        (_, Some(Complaint::Response)) => &[Need::Delay],
        (_, Some(Complaint::Reliability)) => &[Need::Delivery],
        (_, Some(Complaint::Throughput)) => &[Need::Rate],
        (Some(Purpose::Call | Purpose::Game | Purpose::Vr), None) => &[Need::Delay, Need::Delivery],
        (Some(Purpose::Video | Purpose::Transfer | Purpose::Backup), None) => &[Need::Rate],
        (Some(Purpose::Web), None) => &[Need::Delay, Need::Rate],
        (None, None) => &[],
    }
}

/// What a cause takes from a path first.
fn takes(cause: Cause) -> Need {
    match cause {
        Cause::BufferbloatUp
        | Cause::BufferbloatDown
        | Cause::CrossTraffic
        | Cause::CongestedInterconnection
        | Cause::RrcWakeUp
        | Cause::Satellite
        | Cause::OneWayDelayAsymmetric
        | Cause::RouteDetour
        | Cause::WifiPowerSave
        | Cause::WifiRetries
        | Cause::WifiScans
        | Cause::PowerSaving => Need::Delay,
        Cause::NothingCarried | Cause::RouteFlapping | Cause::LinkUnsteady => Need::Delivery,
        _ if causes::entry(cause).family == Family::Damage => Need::Delivery,
        _ => Need::Rate,
    }
}

/// Whether a cause takes from a path what the check was asked about.
pub(crate) fn bears_on(asked: Option<&Asked>, cause: Cause) -> bool {
    asked.is_some_and(|asked| needs(asked).contains(&takes(cause)))
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
