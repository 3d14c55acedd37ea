//! For the terminal: the verdict for everybody on top, the numbers for engineers below.

mod baseline;
mod brief;
mod changed;
mod check;
mod comparison;
mod findings;
mod grid;
mod history;
mod host_sections;
mod layout;
mod places;
mod problem;
mod rates;
mod run;
mod segments;
mod style;
mod title;
mod tune_plan;
mod weighing;

pub use crate::host_sections::HostSection;
pub use baseline::render_baseline;
pub use brief::render_brief;
pub use changed::render_changed;
pub use check::render_check;
pub use comparison::render_comparison;
pub use history::render_history;
pub use host_sections::{has_host_sections, render_host_sections};
pub use places::render_places;
pub use problem::render_problem;
pub use rates::render_rates;
pub use run::render;
pub use segments::render_segments;
pub use style::Style;
pub use tune_plan::render_tune_plan;
pub use weighing::render_accounts;
