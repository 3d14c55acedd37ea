//! For the terminal: the verdict for everybody on top, the numbers for engineers below.

mod comparison;
mod host_facts;
mod layout;
mod rates;
mod run;
mod tune_plan;

pub use crate::tables::host_facts::HostSection;
pub use comparison::render_comparison;
pub use host_facts::render_host_facts;
pub use rates::render_rates;
pub use run::render;
pub use tune_plan::render_tune_plan;

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
