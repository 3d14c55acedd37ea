//! What is said of a counter.

/// Whether a counter that grows is bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sense {
    /// It counts ordinary work.
    Normal,
    /// Worth a look when it grows with the traffic: loss, delay or work done twice.
    Watch,
    /// Something was refused or thrown away on this machine.
    Bad,
    /// A mechanism that spared the connection something worse.
    Good,
}

impl Sense {
    /// The word before people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::Watch => "watch",
            Self::Bad => "bad",
            Self::Good => "good",
        }
    }
}

/// A counter and what it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Counter {
    /// Name, as nstat(8) has it.
    pub name: &'static str,
    /// Whether its growth is bad.
    pub sense: Sense,
    /// What one count stands for.
    pub meaning: &'static str,
}
