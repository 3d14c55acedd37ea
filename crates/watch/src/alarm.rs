//! Alarms: what the rules of the configuration see in the history, raised and cleared. A kind of rule is a file and a line in
//! [`kinds`].

mod change;
pub mod engine;
pub mod kinds;
pub mod maintenance;
mod pattern;
pub mod record;
pub mod rule;
mod threshold;

#[cfg(test)]
mod tests;
