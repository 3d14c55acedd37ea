//! How large packets may be.

use plumb_model::results::Outcome;
use plumb_model::results::mtu::MtuResult;
use plumb_model::run::Measurement;

use crate::Case;

/// A search for the largest packet.
#[derive(Clone, Copy)]
pub(crate) struct Sizes<'a> {
    pub(crate) measurement: &'a Measurement,
    pub(crate) result: &'a MtuResult,
}

impl Sizes<'_> {
    /// IP and TCP headers without options, by the version of the address.
    pub(crate) fn headers_bytes(self) -> u32 {
        match self.result.address.contains(':') {
            true => 60,
            false => 40,
        }
    }
}

/// Whether it was such a search.
pub(crate) fn is_search_of_sizes(measurement: &Measurement) -> bool {
    matches!(measurement.outcome, Outcome::Mtu(_))
}

impl<'a> Case<'a> {
    pub(crate) fn sizes(&self) -> impl Iterator<Item = Sizes<'a>> + use<'a> {
        self.measurements
            .iter()
            .filter_map(|measurement| match &measurement.outcome {
                Outcome::Mtu(result) => Some(Sizes {
                    measurement,
                    result,
                }),
                _ => None,
            })
    }
}
