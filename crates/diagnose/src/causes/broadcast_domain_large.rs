//! A link has more neighbours than a broadcast domain should.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a smaller network has less broadcast",
    needs: &[Need::Machine],
    resembles: &[],
    predicts: &[],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};
