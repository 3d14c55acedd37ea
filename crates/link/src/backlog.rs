//! How much is held: in a queue, on a line, in a cell.

use std::ops::{Add, AddAssign, Sub, SubAssign};

/// What a queue holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Backlog {
    /// Packets as they are on the wire.
    pub(crate) packets: u64,
    pub(crate) ip_bytes: u64,
    /// Their bytes on the line, with framing.
    pub(crate) wire_bytes: u64,
}

impl Add for Backlog {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            packets: self.packets + other.packets,
            ip_bytes: self.ip_bytes + other.ip_bytes,
            wire_bytes: self.wire_bytes + other.wire_bytes,
        }
    }
}

impl Sub for Backlog {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            packets: self.packets - other.packets,
            ip_bytes: self.ip_bytes - other.ip_bytes,
            wire_bytes: self.wire_bytes - other.wire_bytes,
        }
    }
}

impl AddAssign for Backlog {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl SubAssign for Backlog {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}
