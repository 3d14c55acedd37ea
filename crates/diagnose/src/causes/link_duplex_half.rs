//! Only one end of a link may send at a time.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit, of_lost_frames};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "both ends negotiate full duplex, over another cable or port",
    needs: &[Need::Machine],
    resembles: &[(
        Cause::PathLoss,
        "a bad line loses as much with one direction loaded as with both",
    )],
    examine: by_audit,
    explains: of_lost_frames,
    ..Entry::PLAIN
};
