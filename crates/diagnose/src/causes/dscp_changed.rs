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
        let found = case
            .routes()
            .flat_map(|route| altered(route, AlteredField::Dscp, Cause::DscpChanged, "DSCP"))
            .collect();
        let measured = ("the routers of the path", case.routes().next().is_some());
        let statement = "routers quote, or the responder received, another DSCP than was sent";
        case.facts(None).found(measured, statement, found)
    },
    ..Entry::PLAIN
};
