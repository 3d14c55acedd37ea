//! A processor or a link saves power while packets wait.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit, no_sign};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "round trips get shorter and steadier without it",
    needs: &[Need::Machine],
    resembles: &[],
    predicts: &[],
    yields_to: &[],
    examine: by_audit,
    explains: no_sign,
};
