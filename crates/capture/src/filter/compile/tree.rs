//! Tests of a packet, and how they are joined.

use super::place::Place;
use crate::filter::bpf::{Instruction, Width, code};

/// What is tested, in this order, and as far as it takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Tree {
    Always(bool),
    All(Vec<Tree>),
    Any(Vec<Tree>),
    Not(Box<Tree>),
    Test(Test),
}

/// Instructions that load a number, and the jump that compares it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) load: Vec<Instruction>,
    /// The code of the jump.
    pub(super) jump: u16,
    pub(super) number: u32,
}

impl Tree {
    pub(super) fn test(load: Vec<Instruction>, jump: u16, number: u32) -> Self {
        Self::Test(Test { load, jump, number })
    }

    /// That a number at a place is this one.
    pub(super) fn equal(at: Place, width: Width, number: u32) -> Self {
        Self::test(at.load(width), code::JUMP_EQUAL, number)
    }

    /// That some bits of a number are these. Where there are no bits, nothing is looked at, as libpcap does; it keeps loads
    /// at places that differ from packet to packet.
    pub(super) fn masked(at: Place, width: Width, mask: u32, number: u32) -> Self {
        match mask {
            0 if at.from.is_none() => Self::Always(true),
            u32::MAX => Self::equal(at, width, number),
            _ => {
                let mut of = at.load(width);
                of.push(Instruction::plain(code::AND, mask));
                Self::test(of, code::JUMP_EQUAL, number)
            }
        }
    }

    pub(super) fn not(self) -> Self {
        Self::Not(Box::new(self))
    }
}
