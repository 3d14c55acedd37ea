//! From the tree of a filter to a program for a link type: tests of the packet first, and their jumps then.

mod arithmetic;
mod assemble;
mod header;
mod layout;
mod lower;
mod place;
mod tree;
mod wireless;

use super::bpf::Instruction;
use super::error::FilterError;
use super::syntax::Condition;

/// The instructions for packets of a link type.
pub(super) fn compile(
    condition: &Condition,
    link_type: u16,
) -> Result<Vec<Instruction>, FilterError> {
    let mut layout = layout::Layout::of(link_type)?;
    let tree = lower::lower(condition, &mut layout)?;
    assemble::assemble(&tree, &layout.find())
}
