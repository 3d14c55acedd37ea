//! Somebody on the path clears the ECN field.

use plumb_model::finding::Cause;
use plumb_model::need::Need;
use plumb_model::results::path::AlteredField;

use crate::entry::{Entry, Family, no_sign};
use crate::evidence::altered;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "hops before the one that clears it quote it as it was sent, or one end receives another value than the other sent",
    needs: &[Need::QuotedHeaders],
    resembles: &[],
    predicts: &[],
    yields_to: &[],
    examine: |case| {
        let of_route = |route| altered(route, AlteredField::Ecn, Cause::EcnCleared, "ECN field");
        case.routes().flat_map(of_route).collect()
    },
    explains: no_sign,
};
