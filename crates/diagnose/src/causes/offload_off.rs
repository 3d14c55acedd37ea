//! Work that hardware or kernel could do in large pieces is done packet by packet.

use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "the processor does less for the same rate once the offload is on",
    needs: &[Need::Machine],
    examine: by_audit,
    ..Entry::PLAIN
};
