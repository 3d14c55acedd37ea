//! What is asked for cannot be, which is seen only when all options are known: a usage error, as what clap finds.

use std::fmt;

/// Options that contradict each other or mean nothing together.
#[derive(Debug)]
pub(crate) struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// Such an error: what contradicts what, and what to leave out.
pub(crate) fn wrong(what: impl Into<String>) -> anyhow::Error {
    UsageError(what.into()).into()
}

/// What was asked for needs a cargo feature that this plumb was built without.
#[cfg(not(all(
    feature = "html",
    feature = "lab",
    feature = "shape",
    feature = "tune",
    feature = "watch"
)))]
pub(crate) fn without(words: &str, feature: &str) -> anyhow::Error {
    wrong(format!(
        "this plumb was built without `plumb {words}` (cargo feature `{feature}` of the crate plumb)"
    ))
}
