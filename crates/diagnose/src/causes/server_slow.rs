//! A server takes long until it begins to answer.
//!
//! Between the last byte of a request and the first of its answer its program works, or waits for others: only packets
//! distinguish that from a long path.

use plumb_model::finding::Cause;
use plumb_model::need::Need;

use crate::captured;
use crate::entry::{Entry, Family};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "a request that takes no work (a small static file) is answered within a round trip",
    needs: &[Need::Capture],
    resembles: &[
        (
            Cause::ManyRoundTrips,
            "there each answer begins after a round trip, and there are many of them",
        ),
        (
            Cause::ApplicationLimited,
            "there the answer has begun, and comes slowly",
        ),
    ],
    examine: |case| captured::server(case).into_iter().collect(),
    ..Entry::PLAIN
};
