//! Where things are in packets of a link type.

use super::place::Place;
use super::tree::Tree;
use super::wireless;
use crate::filter::bpf::{Instruction, Width};
use crate::filter::error::FilterError;
use crate::filter::syntax::Protocol;

/// Link types (the list of LINKTYPE_ values of libpcap); raw IP has the numbers of several systems.
const ETHERNET: u16 = 1;
const RAW: [u16; 5] = [12, 14, 101, 228, 229];
const COOKED_1: u16 = 113;
const COOKED_2: u16 = 276;
const WIRELESS: u16 = 105;
const RADIOTAP: u16 = 127;

/// The EtherType in the header of LLC with SNAP, and that header (IEEE 802).
const SNAP_ETHER_TYPE: u32 = 6;
const SNAP_BYTES: u32 = 8;

/// A tag has two bytes of number, and two of the EtherType that follows (IEEE 802.1Q).
const TAG_BYTES: u32 = 4;
/// What announces a tag: of IEEE 802.1Q and 802.1ad, and what some used before.
const TAGS: [u32; 3] = [0x8100, 0x88a8, 0x9100];
/// The bits of a tag that are its number.
const TAG_NUMBER: u32 = 0x0fff;

/// Where frames of a link type have what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    link_type: u16,
    /// Of the EtherType; raw IP has none.
    ether_type: Option<Place>,
    /// Of what the frame carries.
    payload: Place,
}

impl Layout {
    pub(super) fn of(link_type: u16) -> Result<Self, FilterError> {
        let (ether_type, payload) = match link_type {
            ETHERNET => (Some(Place::fixed(12)), Place::fixed(14)),
            COOKED_1 => (Some(Place::fixed(14)), Place::fixed(16)),
            COOKED_2 => (Some(Place::fixed(0)), Place::fixed(20)),
            WIRELESS | RADIOTAP => {
                let llc = wireless::carried();
                (Some(llc.plus(SNAP_ETHER_TYPE)), llc.plus(SNAP_BYTES))
            }
            raw if RAW.contains(&raw) => (None, Place::fixed(0)),
            _ => return Err(FilterError::LinkType { link_type }),
        };
        Ok(Self {
            link_type,
            ether_type,
            payload,
        })
    }

    pub(super) fn payload(&self) -> Place {
        self.payload
    }

    /// The frame's first byte, behind what the capture put before it.
    pub(super) fn frame(&self) -> Place {
        match self.is_wireless() {
            true => wireless::frame(),
            false => Place::fixed(0),
        }
    }

    /// What finds the places that differ from packet to packet, where there are any.
    pub(super) fn find(&self) -> Vec<Instruction> {
        match self.is_wireless() {
            true => wireless::find(self.link_type == RADIOTAP),
            false => Vec::new(),
        }
    }

    /// How many words of scratch memory are taken, the first ones.
    pub(super) fn cells(&self) -> usize {
        match self.is_wireless() {
            true => wireless::CELLS,
            false => 0,
        }
    }

    fn is_wireless(&self) -> bool {
        matches!(self.link_type, WIRELESS | RADIOTAP)
    }

    /// That the frame carries what has this EtherType.
    pub(super) fn has_ether_type(&self, ether_type: u32) -> Tree {
        /// The bits of IP's first byte that are its version.
        const VERSION: u32 = 0xf0;
        if let Some(at) = self.ether_type {
            let has = Tree::equal(at, Width::Two, ether_type);
            return match self.is_wireless() {
                true => Tree::All(vec![wireless::is_data(), has]),
                false => has,
            };
        }
        let version = match ether_type {
            0x0800 => 0x40,
            0x86dd => 0x60,
            _ => return Tree::Always(false),
        };
        Tree::masked(self.payload, Width::One, VERSION, version)
    }

    /// That the frame carries a protocol that has an EtherType.
    pub(super) fn carries(&self, protocol: Protocol) -> Tree {
        match protocol.ether_type() {
            Some(ether_type) => self.has_ether_type(ether_type),
            None => Tree::Always(false),
        }
    }

    /// Refuses what Ethernet alone has.
    pub(super) fn need_ethernet(&self, word: &'static str, at: usize) -> Result<(), FilterError> {
        match self.link_type {
            ETHERNET => Ok(()),
            link_type => Err(FilterError::NotOnLink {
                word,
                at,
                link_type,
            }),
        }
    }

    /// That the frame has a tag, of this number where one is given. What is asked for from then on lies behind the tag.
    pub(super) fn enter_vlan(&mut self, id: Option<u32>) -> Tree {
        let tags = TAGS.map(|tag| self.has_ether_type(tag));
        let mut tests = vec![Tree::Any(tags.to_vec())];
        if let Some(id) = id {
            tests.push(Tree::masked(self.payload, Width::Two, TAG_NUMBER, id));
        }
        self.ether_type = self.ether_type.map(|at| at.plus(TAG_BYTES));
        self.payload = self.payload.plus(TAG_BYTES);
        Tree::All(tests)
    }
}
