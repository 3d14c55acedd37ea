//! How to set text.

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
