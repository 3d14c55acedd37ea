//! Filters: where packets of a device go, to a class or to another device (tc-flow(8), tc-u32(8), tc-matchall(8)).

use super::handle::Handle;
use crate::netlink::attribute::{encode, nested, number, text};

/// What a filter does, to packets of which protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Whatever comes leaves by another device instead (mirred).
    Redirect { to: u32 },
    /// A class for each host, by the last bits of its address, from a first one on.
    Hosts {
        by: HostKey,
        first: Handle,
        classes: u32,
    },
    /// Packets of a version of IP whose DSCP under a mask has a value.
    Marked {
        version: IpVersion,
        value: u8,
        mask: u8,
        class: Handle,
    },
}

/// By which address a host is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostKey {
    Source,
    /// The source before it was translated, as the kernel's table of connections has it.
    TranslatedSource,
    Destination,
}

/// A version of IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpVersion {
    V4,
    V6,
}

/// `ETH_P_ALL`, `ETH_P_IP`, `ETH_P_IPV6` of `linux/if_ether.h`.
const ALL: u16 = 0x0003;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86DD;

/// What becomes of a packet that was redirected (`TC_ACT_STOLEN`), and to where (`TCA_EGRESS_REDIR`).
const STOLEN: u32 = 4;
const TO_EGRESS: u32 = 1;

/// `TC_U32_TERMINAL`: a packet that matches has found its class.
const TERMINAL: u8 = 1;

impl HostKey {
    /// The word of tc-flow(8) for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Source => "src",
            Self::TranslatedSource => "nfct-src",
            Self::Destination => "dst",
        }
    }

    /// `FLOW_KEY_*`, a bit each.
    const fn bit(self) -> u32 {
        match self {
            Self::Source => 1,
            Self::Destination => 1 << 1,
            Self::TranslatedSource => 1 << 9,
        }
    }
}

impl Filter {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Redirect { .. } => "matchall",
            Self::Hosts { .. } => "flow",
            Self::Marked { .. } => "u32",
        }
    }

    /// The number that distinguishes it from others of its priority: `flow` is refused without one (`flow_change`), and others
    /// get one.
    pub const fn number(&self) -> Option<u32> {
        match self {
            Self::Hosts { .. } => Some(1),
            _ => None,
        }
    }

    pub(super) const fn protocol(&self) -> u16 {
        match self {
            Self::Marked {
                version: IpVersion::V4,
                ..
            } => IPV4,
            Self::Marked {
                version: IpVersion::V6,
                ..
            } => IPV6,
            _ => ALL,
        }
    }

    pub(super) fn encoded(&self) -> Vec<u8> {
        match *self {
            Self::Redirect { to } => {
                // `struct tc_mirred`: index, capabilities, action, two counts, where, interface.
                let mirred = [0, 0, STOLEN, 0, 0, TO_EGRESS, to].map(u32::to_ne_bytes);
                let options = nested(2, &[encode(2, &mirred.concat())]);
                nested(2, &[nested(1, &[text(1, "mirred"), options])])
            }
            Self::Hosts { by, first, classes } => [
                number(1, by.bit()),
                // FLOW_MODE_MAP: the address modulo the number of classes, so that neighbours do not meet.
                number(2, 0),
                number(3, first.0),
                number(8, classes),
            ]
            .concat(),
            Self::Marked {
                version,
                value,
                mask,
                class,
            } => {
                // The DSCP in the first four bytes of the header: of IPv4 the second byte, of IPv6 behind four bits.
                let shift = match version {
                    IpVersion::V4 => 18,
                    IpVersion::V6 => 22,
                };
                let at = |bits: u8| (u32::from(bits) << shift).to_be_bytes();
                // `struct tc_u32_sel` with one key: flags, shift, number of keys; the rest is for headers of
                // variable length.
                let mut selector = vec![0_u8; 16];
                selector.splice(0..3, [TERMINAL, 0, 1]);
                selector.extend(at(mask));
                selector.extend(at(value));
                selector.extend([0; 8]);
                [number(1, class.0), encode(5, &selector)].concat()
            }
        }
    }
}
