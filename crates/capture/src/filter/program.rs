//! A compiled filter that packets are given to.

use super::bpf::Instruction;
use super::interpreter;

/// A program of classic BPF.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    instructions: Vec<Instruction>,
}

impl Program {
    /// The program that has these instructions, from any source: [`Self::accepts`] is safe with any.
    pub fn of(instructions: Vec<Instruction>) -> Self {
        Self { instructions }
    }

    /// Whether a frame passes; `original_len` is what it had before the capture cut it, in bytes.
    #[inline]
    pub fn accepts(&self, frame: &[u8], original_len: u32) -> bool {
        interpreter::run(&self.instructions, frame, original_len) != 0
    }

    /// What a socket takes with SO_ATTACH_FILTER.
    pub fn instructions(&self) -> &[Instruction] {
        &self.instructions
    }
}
