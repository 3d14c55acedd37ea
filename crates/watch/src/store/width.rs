//! The windows that samples are summed up in.

/// How long a window is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    Minute,
    QuarterHour,
    Day,
}

impl Width {
    pub(super) const ALL: [Self; 3] = [Self::Minute, Self::QuarterHour, Self::Day];

    /// Its length in seconds.
    pub fn seconds(self) -> i64 {
        match self {
            Self::Minute => 60,
            Self::QuarterHour => 900,
            Self::Day => 86_400,
        }
    }

    /// When the window begins in which that time is, s since 1970.
    pub(super) fn start_of(self, at_s: i64) -> i64 {
        at_s.div_euclid(self.seconds()) * self.seconds()
    }

    /// For how many seconds its windows are kept; `None` for ever.
    pub fn kept_s(self) -> Option<i64> {
        match self {
            Self::Minute => Some(30 * 86_400),
            Self::QuarterHour => Some(366 * 86_400),
            Self::Day => None,
        }
    }

    /// The same of flows. With 50 sums of each dimension that is 80 MB of minutes, as much of quarter-hours, and 10 MB a year.
    pub fn flows_kept_s(self) -> Option<i64> {
        match self {
            Self::Minute => Some(2 * 86_400),
            Self::QuarterHour => Some(30 * 86_400),
            Self::Day => None,
        }
    }
}
