//! Names of queueing disciplines and classes: two numbers of 16 bits (`TC_H_MAJ`, `linux/pkt_sched.h`).

use std::fmt;

use serde::{Deserialize, Serialize};

/// Name of a discipline (`7587:`), of a class in it (`7587:1`), or of a place where a device has one.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
pub struct Handle(pub u32);

impl Handle {
    /// What the kernel gives to a discipline that it chose itself.
    pub const NONE: Self = Self(0);
    /// Where the outermost discipline of a device is (`TC_H_ROOT`).
    pub const ROOT: Self = Self(0xFFFF_FFFF);
    /// Where that is which sees what a device receives (`TC_H_INGRESS`, the same number as `TC_H_CLSACT`).
    pub const INGRESS: Self = Self(0xFFFF_FFF1);
    /// The handle that the kernel gives to that one.
    pub const INGRESS_DISCIPLINE: Self = Self(0xFFFF_0000);
    /// Where filters of received packets are, in `ingress` as in `clsact` (`TC_H_MIN_INGRESS`).
    pub const INGRESS_FILTERS: Self = Self(0xFFFF_FFF2);

    /// A class of a discipline, or with 0 the discipline.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self((major as u32) << 16 | minor as u32)
    }

    /// The discipline that a class belongs to.
    pub const fn discipline(self) -> Self {
        Self(self.0 & 0xFFFF_0000)
    }

    /// The second number of a handle.
    pub const fn minor(self) -> u16 {
        (self.0 & 0xFFFF) as u16
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (major, minor) = (self.0 >> 16, self.minor());
        match *self {
            Self::ROOT => f.write_str("root"),
            Self::INGRESS => f.write_str("ingress"),
            _ if minor == 0 => write!(f, "{major:x}:"),
            _ => write!(f, "{major:x}:{minor:x}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_as_tc_writes_them() {
        let class = Handle::new(0x7587, 0x1f);
        assert_eq!(class.to_string(), "7587:1f");
        assert_eq!(class.discipline().to_string(), "7587:");
        assert_eq!(Handle::NONE.to_string(), "0:");
        assert_eq!(Handle::ROOT.to_string(), "root");
    }
}
