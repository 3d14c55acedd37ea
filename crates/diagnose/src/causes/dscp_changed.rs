//! A machine on the path changes the DSCP.

use plumb_model::finding::Cause;
use plumb_model::need::Need;
use plumb_model::results::path::AlteredField;

use crate::entry::{Entry, Family};
use crate::evidence::altered;

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Path,
    vanishes: "hops before the one that changes it quote it as it was sent, or one end receives another value than the other sent",
    needs: &[Need::QuotedHeaders],
    examine: |case| {
        let of_route = |route| altered(route, AlteredField::Dscp, Cause::DscpChanged, "DSCP");
        case.routes().flat_map(of_route).collect()
    },
    ..Entry::PLAIN
};
