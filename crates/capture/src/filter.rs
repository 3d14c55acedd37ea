//! Filters of packets, in a part of libpcap's language (`kb/capture.md` has it): text to a tree, the tree to classic BPF
//! for a link type, and an interpreter for packets of files. The same instructions are what Linux takes for a socket.

mod address;
mod bpf;
mod compile;
mod error;
mod interpreter;
mod names;
mod nesting;
mod number;
mod operators;
mod parser;
mod plain;
mod primitive;
mod program;
mod stream;
mod syntax;
mod words;

pub use bpf::Instruction;
pub use error::FilterError;
pub use program::Program;

use syntax::Condition;

/// A filter that was understood, and is not yet for a link type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    condition: Condition,
}

impl Filter {
    /// Reads the text of a filter.
    ///
    /// # Errors
    /// Where the text is not in the part of the language that is known, with the word and its place.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let condition = parser::parse(text)?;
        Ok(Self { condition })
    }

    /// The program for packets of a link type, in numbers of LINKTYPE_.
    ///
    /// # Errors
    /// Where the link type is not known, or has not what the filter asks for, or the program becomes too long.
    pub fn compile(&self, link_type: u16) -> Result<Program, FilterError> {
        compile::compile(&self.condition, link_type).map(Program::of)
    }
}

#[cfg(test)]
#[path = "filter/tests.rs"]
mod tests;
