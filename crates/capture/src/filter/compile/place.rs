//! Where in a packet something is: so far from its first byte, or from one that the program finds.

use crate::filter::bpf::{Instruction, Width, code};

/// A place in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// The word of scratch memory that has where to count from; the packet's first byte where there is none.
    pub(super) from: Option<u32>,
    pub(super) at: u32,
}

impl Place {
    /// A place that is the same in each packet.
    pub(super) fn fixed(at: u32) -> Self {
        Self { from: None, at }
    }

    pub(super) fn plus(self, bytes: u32) -> Self {
        let at = self.at.saturating_add(bytes);
        Self { at, ..self }
    }

    /// Loads the number there into A; X changes where the place is not fixed.
    pub(super) fn load(self, width: Width) -> Vec<Instruction> {
        match self.from {
            None => vec![Instruction::plain(code::LOAD | width.code(), self.at)],
            Some(cell) => vec![
                Instruction::plain(code::LOAD_X_SCRATCH, cell),
                Instruction::plain(code::LOAD_INDEXED | width.code(), self.at),
            ],
        }
    }
}
