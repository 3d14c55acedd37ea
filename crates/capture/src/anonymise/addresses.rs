//! The addresses that stand in the place of those of a capture.

use crate::table::Seeded;

pub(super) type Addresses = plumb_wire::anonymous::Addresses<Seeded>;
