//! What was followed, segment by segment, for other programs: rows of CSV or JSON, and graphs of xplot.

mod rows;
mod xplot;

pub use rows::{Form, Rows};
pub use xplot::{Folder, Xplot};
