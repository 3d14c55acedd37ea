//! The addresses that replace the addresses of a capture.

use crate::table::Seeded;

pub(super) type Addresses = plumb_wire::anonymous::Addresses<Seeded>;
