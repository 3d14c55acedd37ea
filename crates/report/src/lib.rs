//! Runs in; text, HTML, SVG and the comparison document out.
//!
//! Nothing here does I/O or looks at a clock: the same Run gives the same bytes. Whatever a Run
//! says came from outside and may be hostile: text is stripped of control characters for the
//! terminal ([`text`]) and escaped for the page ([`html`]), and no number makes a chart panic.

pub mod compare;
pub mod flent;
pub mod html;
mod number;
pub mod path;
pub mod standalone;
mod svg;
mod tables;
pub mod text;
mod view;
