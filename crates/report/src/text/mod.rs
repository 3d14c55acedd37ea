//! For the terminal: the verdict for everybody on top, the numbers for engineers below.

mod comparison;
mod host_sections;
mod layout;
mod rates;
mod run;
mod style;
mod title;
mod tune_plan;

pub use crate::host_sections::HostSection;
pub use comparison::render_comparison;
pub use host_sections::{has_host_sections, render_host_sections};
pub use rates::render_rates;
pub use run::render;
pub use style::Style;
pub use tune_plan::render_tune_plan;
