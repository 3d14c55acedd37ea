//! How to set text.

/// How to set text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to use colours (ANSI escape sequences).
    pub color: bool,
    /// Columns of the page: tables take as many as they need, sentences no more than are easy to read.
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
