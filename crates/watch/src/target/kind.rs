//! What a kind of target is: it measures once, within a bounded time.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use plumb_model::protocol::Protocol;
use plumb_net::clock::{monotonic_ns, realtime_ns};
use plumb_probe::Trust;

use crate::unit::Unit;

/// How often a target is probed unless the file says otherwise, and the least for strangers without consent.
pub(crate) const EVERY: Duration = Duration::from_secs(10);

/// After this without an answer a probe is lost; above the fullest queue that is met in homes.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(3);

/// Whom to measure, and how often that is done.
#[derive(Debug, Clone, Copy)]
pub struct FarEnd<'a> {
    /// As the file names it.
    pub host: &'a str,
    pub address: IpAddr,
    /// Whose certificates are believed; where a kind asks for that.
    pub trust: Option<&'a Trust>,
    /// How often it is measured.
    pub every: Duration,
}

impl FarEnd<'_> {
    pub(crate) fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.address, port)
    }
}

/// What came of measuring once.
#[derive(Debug, Clone, PartialEq)]
pub struct Probed {
    /// When it was sent, µs of the time of day since 1970 (UTC).
    pub sent_us: i64,
    /// In the unit of the kind; `None` where no answer came in time.
    pub value: Option<f64>,
    /// Why there is no answer, as far as that is known.
    pub why: Option<String>,
    /// What was seen that is kept when it changes, such as a route.
    pub state: Option<String>,
    /// What else was seen, where the target has series beside its own.
    pub series: Vec<Seen>,
}

/// What was seen of one series of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// Behind the name of the target.
    pub name: String,
    /// In the unit of the series, or why there is no value this time.
    pub value: Result<f64, String>,
    /// What is kept when it changes, such as whether a port is up.
    pub state: Option<String>,
}

impl Seen {
    pub(crate) fn of(name: &str, value: Result<f64, String>) -> Self {
        Self {
            name: name.to_owned(),
            value,
            state: None,
        }
    }
}

impl Probed {
    /// Begins now, without an answer.
    pub(crate) fn now() -> Self {
        Self {
            sent_us: now_us(),
            value: None,
            why: None,
            state: None,
            series: Vec::new(),
        }
    }

    pub(crate) fn with(self, value: f64) -> Self {
        Self {
            value: Some(value),
            ..self
        }
    }

    pub(crate) fn lost(self, why: impl Into<String>) -> Self {
        Self {
            why: Some(why.into()),
            ..self
        }
    }
}

/// A kind of target with its settings.
pub trait Kind: Debug + Send + Sync {
    /// Measures once. It ends by itself, within a time that the kind bounds.
    ///
    /// # Errors
    /// When this machine could not measure, which says nothing of the path: why, in words.
    fn probe(&self, far: &FarEnd<'_>) -> Result<Probed, String>;

    /// What its values are measured in.
    fn unit(&self) -> Unit {
        Unit::Seconds
    }

    /// Whether it has series beside its own value.
    fn has_series(&self) -> bool {
        false
    }

    /// What the values of a series of it are measured in, by its name behind the name of the target; `None` where it has no such
    /// series.
    fn series(&self, _name: &str) -> Option<Unit> {
        None
    }

    /// Whether this is a series of another target.
    fn is_series(&self) -> bool {
        false
    }

    /// What the user should know of these settings.
    fn warning(&self) -> Option<&'static str> {
        None
    }

    /// How often it is measured unless the file says otherwise.
    fn usual_every(&self) -> Duration {
        EVERY
    }

    /// Whether it may be measured so often.
    ///
    /// # Errors
    /// When it may not: why, in words.
    fn check(&self, _every: Duration) -> Result<(), String> {
        Ok(())
    }

    /// Whether one may begin while another is under way, so that an interval may be shorter than a timeout.
    fn overlaps(&self) -> bool {
        false
    }

    /// The protocol by which many targets of this kind are probed together, where they can be.
    fn sweeps(&self) -> Option<Protocol> {
        None
    }

    /// Whether it measures a host, which the file then names.
    fn is_remote(&self) -> bool {
        true
    }

    /// How many packets or connections a far end gets at a time.
    fn probes(&self) -> u32 {
        1
    }

    /// Whether it loads the path, so that no two of them may run together.
    fn is_load(&self) -> bool {
        false
    }

    /// How long one measurement takes at most where it loads the path; zero where it does not.
    fn longest(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether it asks whose certificates the system believes.
    fn needs_trust(&self) -> bool {
        false
    }

    /// What is kept when it changes, in a word.
    fn state(&self) -> &'static str {
        "state"
    }

    /// Whether what was seen differs from what was seen before, not by what is unknown alone.
    fn is_change(&self, before: &str, now: &str) -> bool {
        before != now
    }
}

/// The time of day, µs since 1970.
pub(crate) fn now_us() -> i64 {
    i64::try_from(realtime_ns() / 1000).unwrap_or(i64::MAX)
}

/// The time of day at which a monotonic clock read that, µs since 1970.
pub(crate) fn us_at(monotonic: u64) -> i64 {
    let ago_ns = monotonic_ns().saturating_sub(monotonic);
    now_us() - i64::try_from(ago_ns / 1000).unwrap_or_default()
}
