//! Pause frames hold a link up.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the rate goes up once flow control is off at one end of the link",
    needs: &[Need::CounterRates],
    resembles: &[(Cause::LinkSlow, "there the negotiated rate itself is low")],
    examine: by_audit,
    ..Entry::PLAIN
};
