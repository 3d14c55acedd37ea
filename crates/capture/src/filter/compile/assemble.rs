//! Jumps between tests. The program is written from its end, so that every jump knows how far it goes.

use super::tree::Tree;
use crate::filter::bpf::{Instruction, KEPT_BYTES, LONGEST, code};
use crate::filter::error::FilterError;

/// An instruction, counted from the program's end.
type Label = usize;

/// What is written, the last instruction first.
struct Assembly {
    reversed: Vec<Instruction>,
}

/// The program that makes the tests, and accepts the packet where they hold. It begins with what finds the places that
/// tests load from scratch memory, if one does.
pub(super) fn assemble(tree: &Tree, find: &[Instruction]) -> Result<Vec<Instruction>, FilterError> {
    let mut assembly = Assembly {
        reversed: Vec::new(),
    };
    let refuse = assembly.push(Instruction::plain(code::RETURN, 0))?;
    let accept = assembly.push(Instruction::plain(code::RETURN, KEPT_BYTES))?;
    let begin = assembly.place(tree, accept, refuse)?;
    if begin + 1 != assembly.reversed.len() {
        assembly.jump(begin)?;
    }
    let mut tests = assembly.reversed.iter();
    if tests.any(|instruction| instruction.code == code::LOAD_X_SCRATCH) {
        for instruction in find.iter().rev() {
            assembly.push(*instruction)?;
        }
    }
    assembly.reversed.reverse();
    Ok(assembly.reversed)
}

impl Assembly {
    fn push(&mut self, instruction: Instruction) -> Result<Label, FilterError> {
        if self.reversed.len() >= LONGEST {
            return Err(FilterError::TooManyInstructions { most: LONGEST });
        }
        self.reversed.push(instruction);
        Ok(self.reversed.len() - 1)
    }

    /// Writes tests before what there is; where they begin.
    fn place(&mut self, tree: &Tree, yes: Label, no: Label) -> Result<Label, FilterError> {
        match tree {
            Tree::Always(true) => Ok(yes),
            Tree::Always(false) => Ok(no),
            Tree::Not(tree) => self.place(tree, no, yes),
            Tree::All(trees) => {
                let mut trees = trees.iter().rev();
                trees.try_fold(yes, |next, tree| self.place(tree, next, no))
            }
            Tree::Any(trees) => {
                let mut trees = trees.iter().rev();
                trees.try_fold(no, |next, tree| self.place(tree, yes, next))
            }
            Tree::Test(test) => {
                let begin = self.branch(test.jump, test.number, yes, no)?;
                let mut load = test.load.iter().rev();
                load.try_fold(begin, |_, instruction| self.push(*instruction))
            }
        }
    }

    fn branch(&mut self, jump: u16, k: u32, yes: Label, no: Label) -> Result<Label, FilterError> {
        let (yes, no) = (self.within_reach(yes)?, self.within_reach(no)?);
        let [jt, jf] = [yes, no].map(|label| u8::try_from(self.over(label)).unwrap_or(u8::MAX));
        self.push(Instruction {
            code: jump,
            jt,
            jf,
            k,
        })
    }

    /// How many instructions a jump to there passes over, if it is written next.
    fn over(&self, label: Label) -> usize {
        self.reversed.len().saturating_sub(label + 1)
    }

    /// A label that a jump with conditions reaches: such jumps have a byte for the way, and others 32 bits.
    fn within_reach(&mut self, label: Label) -> Result<Label, FilterError> {
        // The other way of the jump may get an instruction in between.
        match self.over(label) + 1 > usize::from(u8::MAX) {
            true => self.jump(label),
            false => Ok(label),
        }
    }

    fn jump(&mut self, label: Label) -> Result<Label, FilterError> {
        let over = u32::try_from(self.over(label)).unwrap_or(u32::MAX);
        self.push(Instruction::plain(code::JUMP, over))
    }
}
