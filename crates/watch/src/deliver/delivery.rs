//! What a delivery is.

use std::fmt::Debug;
use std::time::Duration;

/// The time that one try may take unless the file says otherwise.
pub(super) const WITHIN: &str = "30s";

/// The same at most and at least, in seconds: a delivery sends one message after the other.
pub(super) const WITHIN_S: (i64, i64) = (1, 600);

/// Why a message was not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotTaken {
    pub why: String,
    /// Whether it is to be sent again.
    pub again: bool,
}

impl From<String> for NotTaken {
    fn from(why: String) -> Self {
        Self { why, again: true }
    }
}

/// By what alarms leave this machine.
pub trait Delivery: Debug + Send + Sync {
    /// Sends one message of JSON, in a thread that may wait for it.
    ///
    /// # Errors
    /// When it was not taken within the time that one try may take.
    fn send(&self, message: &str) -> Result<(), NotTaken>;

    /// How often it is sent all that stands and what was cleared lately, in place of each change once, in seconds: for a
    /// receiver that takes silence for the end of an alarm.
    fn state_every_s(&self) -> Option<i64> {
        None
    }
}

/// The time that one try may take.
pub(super) fn within(text: Option<&str>) -> Result<Duration, String> {
    let time_s = crate::alarm::rule::seconds("within", text.unwrap_or(WITHIN), WITHIN_S)?;
    Ok(Duration::from_secs(time_s.unsigned_abs()))
}
