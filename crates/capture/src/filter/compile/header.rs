//! What lies in IP: protocols, and where their headers begin.

use super::layout::Layout;
use super::tree::Tree;
use crate::filter::bpf::{Instruction, Width, code};
use crate::filter::syntax::Protocol;

/// IPv4's flags and place of a fragment, and its protocol (RFC 791).
const V4_FRAGMENT: u32 = 6;
const V4_PROTOCOL: u32 = 9;
/// The bits of a fragment's place: it is a later one where any is set.
const LATER_FRAGMENT: u32 = 0x1fff;
/// IPv6's next header, how long its own header is (RFC 8200), and the number of a fragment's header.
const V6_NEXT: u32 = 6;
pub(super) const V6_BYTES: u32 = 40;
const V6_FRAGMENT: u32 = 44;

/// That a frame carries IPv4, and in it this number.
pub(super) fn in_v4(layout: &Layout, number: u32) -> Tree {
    let protocol = Tree::equal(layout.payload().plus(V4_PROTOCOL), Width::One, number);
    Tree::All(vec![layout.carries(Protocol::Ip), protocol])
}

/// That a frame carries IPv6, and in it this number, also in a fragment.
pub(super) fn in_v6(layout: &Layout, number: u32) -> Tree {
    let fragment = layout.payload().plus(V6_BYTES);
    let fragment = Tree::All(vec![
        v6_next(layout, V6_FRAGMENT),
        Tree::equal(fragment, Width::One, number),
    ]);
    let any = Tree::Any(vec![v6_next(layout, number), fragment]);
    Tree::All(vec![layout.carries(Protocol::Ip6), any])
}

/// That the header behind IPv6's has this number.
pub(super) fn v6_next(layout: &Layout, number: u32) -> Tree {
    Tree::equal(layout.payload().plus(V6_NEXT), Width::One, number)
}

/// That a packet of IPv4 is whole or a first fragment, which alone have the header of what lies in it.
pub(super) fn not_later_fragment(layout: &Layout) -> Tree {
    let load = layout.payload().plus(V4_FRAGMENT).load(Width::Two);
    Tree::test(load, code::JUMP_ANY_BIT, LATER_FRAGMENT).not()
}

/// Loads the length of IPv4's header into X, and adds where its place counts from.
pub(super) fn v4_header(layout: &Layout) -> Vec<Instruction> {
    let payload = layout.payload();
    if payload.from.is_none() {
        return vec![Instruction::plain(code::LOAD_X_HEADER, payload.at)];
    }
    let mut load = payload.load(Width::One);
    load.extend([
        Instruction::plain(code::AND, 0x0f),
        Instruction::plain(code::SHIFT_LEFT, 2),
        Instruction::plain(code::ADD | code::WITH_X, 0),
        Instruction::plain(code::A_TO_X, 0),
    ]);
    load
}
