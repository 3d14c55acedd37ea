//! An alarm, in the form in which it is kept, shown and sent.

/// That a rule saw something at a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alarm {
    /// The name of the rule.
    pub rule: String,
    /// The name of the target.
    pub target: String,
    /// Since when the rule has seen it, s since 1970.
    pub since_s: i64,
    /// When it had lasted long enough, s since 1970.
    pub raised_s: i64,
    /// When it had been over for long enough, s since 1970; `None` while it stands.
    pub cleared_s: Option<i64>,
    /// What was seen when it was raised, such as "loss of 4.0 %".
    pub words: String,
    /// Targets behind this one that were silent too, and have no alarm of their own.
    pub behind: Vec<String>,
}

impl Alarm {
    /// What was seen, with how many targets behind it.
    pub fn in_words(&self) -> String {
        match self.behind.len() {
            0 => self.words.clone(),
            1 => format!("{}, with 1 target behind it", self.words),
            count => format!("{}, with {count} targets behind it", self.words),
        }
    }
}
