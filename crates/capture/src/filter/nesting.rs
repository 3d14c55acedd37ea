//! How high the tree of a filter may become: what walks it does so on the stack.

use super::error::FilterError;
use super::stream::Stream;

/// Parentheses, brackets and `not` within each other.
const DEEPEST: usize = 64;
/// Changes between `and` and `or` in a filter, and operators in a comparison.
const HIGHEST: usize = 256;

/// What makes the tree higher, as far as the text was read.
#[derive(Debug, Default)]
pub(super) struct Nesting {
    depth: usize,
    changes: usize,
    operators: usize,
}

impl Nesting {
    /// Goes into a parenthesis, a bracket or a negation.
    pub(super) fn deepen(&mut self, stream: &Stream<'_>) -> Result<(), FilterError> {
        self.depth += 1;
        allow(self.depth, DEEPEST, stream)
    }

    /// Leaves what was gone into.
    pub(super) fn rise(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Goes from `and` to `or` or back.
    pub(super) fn change(&mut self, stream: &Stream<'_>) -> Result<(), FilterError> {
        self.changes += 1;
        allow(self.changes, HIGHEST, stream)
    }

    /// Takes an operator of a comparison.
    pub(super) fn calculate(&mut self, stream: &Stream<'_>) -> Result<(), FilterError> {
        self.operators += 1;
        allow(self.operators, HIGHEST, stream)
    }

    /// Leaves a comparison, which has a tree of its own.
    pub(super) fn end_comparison(&mut self) {
        self.operators = 0;
    }
}

fn allow(levels: usize, most: usize, stream: &Stream<'_>) -> Result<(), FilterError> {
    match levels > most {
        true => Err(FilterError::TooDeep {
            word: stream.ahead(0).map_or("", |word| word.text).to_owned(),
            at: stream.at(),
            most,
        }),
        false => Ok(()),
    }
}
