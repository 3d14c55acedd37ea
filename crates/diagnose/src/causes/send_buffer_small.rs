//! The sender's buffer is smaller than the path.

use plumb_model::finding::Cause;

use crate::entry::{Entry, Family};
use crate::window::{self, Side};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a larger buffer, or several connections side by side, carry more",
    resembles: &[(
        Cause::ReceiveBufferSmall,
        "there the sender waits for the window that the receiver announces",
    )],
    yields_to: &[],
    examine: |case| window::examine(case, Side::Sender),
    explains: window::explains,
};
