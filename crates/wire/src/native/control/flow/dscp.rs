//! The DSCP of a flow.

use std::ops::RangeInclusive;

/// Six bits (RFC 2474, section 3).
pub const DSCP: RangeInclusive<u64> = 0..=63;
