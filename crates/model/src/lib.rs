//! The vocabulary of plumb: units, statistics, formulas, and the [`Run`](run::Run), the one
//! document that every verb writes or reads.
//!
//! Nothing here does I/O, looks at a clock or draws a random number: what the numbers mean
//! must be testable from the numbers alone.

#![warn(missing_docs)]

#[cfg(not(feature = "schema"))]
extern crate plumb_schemaless as schemars;

pub mod addresses;
pub mod calc;
pub mod context;
pub mod counter;
pub mod direction;
pub mod distribution;
pub mod dscp;
pub mod emodel;
pub mod fairness;
pub mod finding;
pub mod formula;
pub mod framing;
pub mod goal;
pub mod grade;
pub mod hop_loss;
pub mod json;
pub mod loss;
pub mod need;
pub mod order;
pub mod prefix;
pub mod printable;
pub mod protocol;
pub mod results;
pub mod router;
pub mod run;
pub mod segments;
pub mod series;
pub mod shape;
pub mod summary;
pub mod tune;
pub mod units;
pub mod vocabulary;
