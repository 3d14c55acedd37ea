//! Runs in; text, HTML, SVG and the comparison document out.
//!
//! Nothing here does I/O or looks at a clock: the same Run gives the same bytes. Whatever a Run
//! says came from outside and may be hostile: text passes `plumb_model::printable` on its way to the
//! terminal ([`text`], [`export`]) and the page ([`html`]), which escapes it too, and no number makes a
//! chart panic.

#[cfg(not(feature = "schema"))]
extern crate plumb_schemaless as schemars;

pub mod baseline;
mod carried;
pub mod cases;
pub mod changed;
pub mod compare;
mod contents;
mod context;
mod ends;
mod evidence;
pub mod export;
mod fixes;
mod grade;
mod heading;
pub mod history;
mod host_sections;
pub mod html;
mod kinds;
mod latency;
mod map;
mod number;
mod outcome;
mod phase;
pub mod places;
mod probes;
pub mod problem;
mod registry;
mod round_trips;
pub mod segments;
mod show;
mod svg;
mod table;
pub mod text;
pub mod visited;
