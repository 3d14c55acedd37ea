//! Frames of IEEE 802.11, whose headers differ in length: where they begin, and where what they carry begins, is found
//! when the program runs. The steps, and what they leave out, are libpcap's, but for the padding: libpcap counts it from the
//! first byte of radiotap's header, whose length may be odd, and here it counts from the frame's.

use super::place::Place;
use super::tree::Tree;
use crate::filter::bpf::{Instruction, Width, code};

/// Words of scratch memory: where the frame begins behind radiotap's header, and where what it carries begins.
const FRAME: u32 = 0;
const CARRIED: u32 = 1;
/// How many words are taken.
pub(super) const CELLS: usize = 2;

/// Bits of a frame's first byte: of its type, and of a subtype with QoS (IEEE 802.11, section 9.2.4.1).
const DATA: u32 = 0x08;
const CONTROL: u32 = 0x04;
const QOS: u32 = 0x80;
/// A header with three addresses, what QoS adds, and what then lacks to a multiple of four.
const HEADER_BYTES: u32 = 24;
const QOS_BYTES: u32 = 2;
const PADDING_BYTES: u32 = 2;

/// Radiotap's first word of what is present, read as big-endian: flags, more such words, and the time before the flags.
const PRESENT: u32 = 4;
const HAS_FLAGS: u32 = 0x0200_0000;
const HAS_MORE: u32 = 0x80;
const HAS_TIME: u32 = 0x0100_0000;
/// Where the flags are, without the time and behind it, and the flag for padding to four bytes.
const FLAGS: u32 = 8;
const FLAGS_BEHIND_TIME: u32 = 16;
const PADDED: u32 = 0x20;

/// The frame's first byte.
pub(super) fn frame() -> Place {
    Place {
        from: Some(FRAME),
        at: 0,
    }
}

/// What the frame carries, from the header of LLC on.
pub(super) fn carried() -> Place {
    Place {
        from: Some(CARRIED),
        at: 0,
    }
}

/// That it is a frame of data.
pub(super) fn is_data() -> Tree {
    let has = |bits| Tree::test(frame().load(Width::One), code::JUMP_ANY_BIT, bits);
    Tree::All(vec![has(CONTROL).not(), has(DATA)])
}

/// Finds both places; what else stands in the program comes after it.
pub(super) fn find(has_radiotap: bool) -> Vec<Instruction> {
    let (mut program, padding) = match has_radiotap {
        true => (behind_radiotap(), padding()),
        false => (vec![Instruction::plain(code::LOAD_X_NUMBER, 0)], Vec::new()),
    };
    let rest = padding.len() as u8;
    program.extend([
        Instruction::plain(code::STORE_X, FRAME),
        Instruction::plain(code::X_TO_A, 0),
        Instruction::plain(code::ADD, HEADER_BYTES),
        Instruction::plain(code::STORE, CARRIED),
        Instruction::plain(code::LOAD_INDEXED | Width::One.code(), 0),
        any_bit(DATA, 0, 5 + rest),
        any_bit(CONTROL, 4 + rest, 0),
        any_bit(QOS, 0, 3 + rest),
        Instruction::plain(code::LOAD_SCRATCH, CARRIED),
        Instruction::plain(code::ADD, QOS_BYTES),
        Instruction::plain(code::STORE, CARRIED),
    ]);
    program.extend(padding);
    program
}

/// Loads the length of radiotap's header, which is little-endian, into X.
fn behind_radiotap() -> Vec<Instruction> {
    let byte = code::LOAD | Width::One.code();
    vec![
        Instruction::plain(byte, 3),
        Instruction::plain(code::SHIFT_LEFT, 8),
        Instruction::plain(code::A_TO_X, 0),
        Instruction::plain(byte, 2),
        Instruction::plain(code::OR | code::WITH_X, 0),
        Instruction::plain(code::A_TO_X, 0),
    ]
}

/// Moves behind the padding of a header with QoS where radiotap's flags say that there is some.
fn padding() -> Vec<Instruction> {
    let byte = code::LOAD | Width::One.code();
    vec![
        Instruction::plain(code::LOAD | Width::Four.code(), PRESENT),
        any_bit(HAS_FLAGS, 0, 9),
        any_bit(HAS_MORE, 8, 0),
        any_bit(HAS_TIME, 0, 2),
        Instruction::plain(byte, FLAGS_BEHIND_TIME),
        any_bit(PADDED, 2, 5),
        Instruction::plain(byte, FLAGS),
        any_bit(PADDED, 0, 3),
        Instruction::plain(code::LOAD_SCRATCH, CARRIED),
        Instruction::plain(code::ADD, PADDING_BYTES),
        Instruction::plain(code::STORE, CARRIED),
    ]
}

/// Passes over so many instructions where a bit of A is set, and so many where none is.
fn any_bit(k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction {
        code: code::JUMP_ANY_BIT,
        jt,
        jf,
        k,
    }
}
