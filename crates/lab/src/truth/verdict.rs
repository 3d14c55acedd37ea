//! What came of holding a Run against a truth.

/// Something in the Run that is not so.
#[derive(Debug, Clone, PartialEq)]
pub struct Deviation {
    /// What was expected, in words.
    pub what: String,
    /// What was there instead.
    pub found: String,
}

impl std::fmt::Display for Deviation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.what, self.found)
    }
}

/// What came of holding a Run against a truth.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Verdict {
    /// What is so, and what was found.
    pub holds: Vec<String>,
    pub deviations: Vec<Deviation>,
}

impl Verdict {
    pub(super) fn take(&mut self, what: &str, outcome: Result<String, String>) {
        match outcome {
            Ok(found) => self.holds.push(format!("{what}: {found}")),
            Err(found) => self.deviations.push(Deviation {
                what: what.to_owned(),
                found,
            }),
        }
    }
}

/// Words for the bounds of a number.
pub(super) fn bounds(min: Option<f64>, max: Option<f64>) -> String {
    match (min, max) {
        (Some(min), Some(max)) if min == max => format!(" (must be {min})"),
        (Some(min), Some(max)) => format!(" (from {min} to {max})"),
        (Some(min), None) => format!(" (at least {min})"),
        (None, Some(max)) => format!(" (at most {max})"),
        (None, None) => String::new(),
    }
}
