//! How far back a page looks, and of how long windows.

use crate::distribution::Distribution;
use crate::sample::Sample;
use crate::store::{Store, StoreError, Width};

/// A stretch of time that ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Range {
    Hour,
    Day,
    Month,
    Year,
}

impl Range {
    pub(super) const ALL: [Self; 4] = [Self::Hour, Self::Day, Self::Month, Self::Year];

    /// As a query asks for it: `range=24h`; an hour where nothing is asked. `None` for anything else.
    pub(super) fn of(query: Option<&str>) -> Option<Self> {
        let Some(query) = query.filter(|query| !query.is_empty()) else {
            return Some(Self::Hour);
        };
        Self::of_word(query.strip_prefix("range=")?)
    }

    pub(super) fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|range| range.word() == word)
    }

    /// Its name in addresses, and for people.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Hour => "1h",
            Self::Day => "24h",
            Self::Month => "30d",
            Self::Year => "1y",
        }
    }

    pub(super) fn seconds(self) -> i64 {
        match self {
            Self::Hour => 3600,
            Self::Day => 86_400,
            Self::Month => 30 * 86_400,
            Self::Year => 365 * 86_400,
        }
    }

    /// The length of a window in seconds.
    pub(super) fn window_s(self) -> i64 {
        match self {
            Self::Hour => 60,
            Self::Day => 900,
            Self::Month => Width::QuarterHour.seconds(),
            Self::Year => Width::Day.seconds(),
        }
    }

    /// The windows of a target up to now, with when each begins. Windows of a day or less are made of its samples, so
    /// that the one under way is there too.
    pub(super) fn windows(
        self,
        store: &Store,
        name: &str,
        now_s: i64,
    ) -> Result<Vec<(i64, Distribution)>, StoreError> {
        let (from_s, to_s) = (now_s - self.seconds(), now_s);
        match self {
            Self::Month => store.summed(name, Width::QuarterHour, (from_s, to_s)),
            Self::Year => store.summed(name, Width::Day, (from_s, to_s)),
            Self::Hour | Self::Day => {
                let mut samples = store.samples(name, from_s)?;
                samples.retain(|sample| sample.sent_us <= to_s.saturating_add(1) * 1_000_000);
                let window =
                    |sample: &Sample| sample.sent_us.div_euclid(self.window_s() * 1_000_000);
                let chunks = samples.chunk_by(|a, b| window(a) == window(b));
                let start = |chunk: &[Sample]| chunk.first().map_or(0, window) * self.window_s();
                Ok(chunks
                    .map(|chunk| (start(chunk), Distribution::of(chunk)))
                    .collect())
            }
        }
    }
}
