//! The signal of a radio link is weak.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::entry::{Entry, Family, by_audit};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a cable, or a place nearer to the access point, has neither the delay nor the loss",
    needs: &[Need::Machine],
    resembles: &[
        (
            Cause::BufferbloatDown,
            "a queue on the line delays wired machines too",
        ),
        (
            Cause::WifiChannelBusy,
            "there the signal is strong and others take the air",
        ),
    ],
    examine: by_audit,
    ..Entry::PLAIN
};
