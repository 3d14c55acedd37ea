//! What is said of a counter.

use crate::vocabulary;

vocabulary! {
    /// Whether a counter that grows is bad.
    pub enum Sense {
        /// It counts ordinary work.
        Normal = "normal",
        /// Worth a look when it grows with the traffic: loss, delay or work done twice.
        Watch = "watch",
        /// Something was refused or thrown away on this machine.
        Bad = "bad",
        /// A mechanism that spared the connection something worse.
        Good = "good",
    }
}

/// A counter and what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Name, as nstat(8) has it.
    pub name: &'static str,
    /// Whether its growth is bad.
    pub sense: Sense,
    /// What one count means.
    pub meaning: &'static str,
}
