//! Instructions of classic BPF, with the numbers of linux/bpf_common.h and linux/filter.h.

/// The scratch memory of a program, in words (BPF_MEMWORDS).
pub(super) const SCRATCH_WORDS: usize = 16;
/// The longest program that Linux takes, in instructions (BPF_MAXINSNS).
pub(super) const LONGEST: usize = 4096;
/// How many bytes of an accepted packet are kept: the largest snapshot of libpcap (MAXIMUM_SNAPLEN).
pub(super) const KEPT_BYTES: u32 = 262_144;

/// An instruction as `struct sock_filter` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction {
    pub code: u16,
    /// How many instructions are passed over where the test holds.
    pub jt: u8,
    /// How many instructions are passed over where it does not.
    pub jf: u8,
    pub k: u32,
}

impl Instruction {
    /// One that does not jump.
    pub(super) const fn plain(code: u16, k: u32) -> Self {
        Self {
            code,
            jt: 0,
            jf: 0,
            k,
        }
    }
}

/// How many bytes a load takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    One,
    Two,
    Four,
}

impl Width {
    /// The bits of the width in the code of a load.
    pub(super) const fn code(self) -> u16 {
        match self {
            Self::Four => 0x00,
            Self::Two => 0x08,
            Self::One => 0x10,
        }
    }
}

/// Codes of instructions, each with all its bits.
pub(super) mod code {
    /// Loads of the packet at a fixed place; the width is added.
    pub(crate) const LOAD: u16 = 0x20;
    /// Loads of the packet at X and a fixed place more; the width is added.
    pub(crate) const LOAD_INDEXED: u16 = 0x40;
    pub(crate) const LOAD_NUMBER: u16 = 0x00;
    pub(crate) const LOAD_SCRATCH: u16 = 0x60;
    pub(crate) const LOAD_LENGTH: u16 = 0x80;
    pub(crate) const LOAD_X_NUMBER: u16 = 0x01;
    pub(crate) const LOAD_X_SCRATCH: u16 = 0x61;
    pub(crate) const LOAD_X_LENGTH: u16 = 0x81;
    /// Four times the lower half of a byte: the length of an IPv4 header.
    pub(crate) const LOAD_X_HEADER: u16 = 0xb1;
    pub(crate) const STORE: u16 = 0x02;
    pub(crate) const STORE_X: u16 = 0x03;
    pub(crate) const NEGATE: u16 = 0x84;
    pub(crate) const JUMP: u16 = 0x05;
    pub(crate) const JUMP_EQUAL: u16 = 0x15;
    pub(crate) const JUMP_GREATER: u16 = 0x25;
    pub(crate) const JUMP_GREATER_EQUAL: u16 = 0x35;
    pub(crate) const JUMP_ANY_BIT: u16 = 0x45;
    pub(crate) const RETURN: u16 = 0x06;
    pub(crate) const RETURN_A: u16 = 0x16;
    pub(crate) const A_TO_X: u16 = 0x07;
    pub(crate) const X_TO_A: u16 = 0x87;

    pub(crate) const ADD: u16 = 0x04;
    pub(crate) const SUBTRACT: u16 = 0x14;
    pub(crate) const MULTIPLY: u16 = 0x24;
    pub(crate) const DIVIDE: u16 = 0x34;
    pub(crate) const OR: u16 = 0x44;
    pub(crate) const AND: u16 = 0x54;
    pub(crate) const SHIFT_LEFT: u16 = 0x64;
    pub(crate) const SHIFT_RIGHT: u16 = 0x74;
    pub(crate) const REMAINDER: u16 = 0x94;
    pub(crate) const EXCLUSIVE_OR: u16 = 0xa4;
    /// Of arithmetic and jumps: the other operand is X, where it else is the instruction's number.
    pub(crate) const WITH_X: u16 = 0x08;
}
