//! For the terminal: the verdict for everybody on top, the numbers for engineers below.

mod comparison;
mod layout;
mod run;

pub use comparison::render_comparison;
pub use run::render;

/// How to set text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colours (ANSI escape sequences).
    pub color: bool,
    /// Columns to wrap sentences at; tables take what they need.
    pub width: usize,
}

impl Default for Style {
    fn default() -> Self {
        Self {
            color: false,
            width: 80,
        }
    }
}
