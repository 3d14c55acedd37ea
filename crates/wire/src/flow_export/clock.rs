//! The exporter's clocks: what its times of flows are counted by, and how far they are from this host's.

/// The clocks of one message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Clocks {
    /// When it was sent by the exporter's clock, ms since 1970.
    pub sent_ms: i64,
    /// How long the exporter is up, in ms, of 32 bits: it wraps after 49.7 days.
    pub uptime_ms: Option<u32>,
}

impl Clocks {
    /// A time that is given as how long the exporter was up. It is taken for the one that is nearest to now, because uptimes wrap.
    pub(super) fn at_uptime(self, then_ms: u32) -> Option<i64> {
        let ago_ms = self.uptime_ms?.wrapping_sub(then_ms).cast_signed();
        Some(self.sent_ms.saturating_sub(i64::from(ago_ms)))
    }
}

/// How far an exporter's clock is from this host's, and the time of the path here: arrival less when it was sent, in ms. NetFlow 9 and
/// IPFIX have seconds alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Behind {
    pub last_ms: i64,
    pub least_ms: i64,
    pub most_ms: i64,
}

impl Behind {
    pub(super) fn see(before: Option<Self>, sent_ms: i64, arrived_ms: i64) -> Self {
        let last_ms = arrived_ms.saturating_sub(sent_ms);
        let before = before.unwrap_or(Self {
            last_ms,
            least_ms: last_ms,
            most_ms: last_ms,
        });
        Self {
            last_ms,
            least_ms: before.least_ms.min(last_ms),
            most_ms: before.most_ms.max(last_ms),
        }
    }
}

/// Of milliseconds between 1900, from which NTP counts, and 1970 (RFC 5905, section 6).
const NTP_MS: i64 = 2_208_988_800_000;

/// A timestamp of NTP in ms since 1970: seconds since 1900 and their fraction (RFC 7011, sections 6.1.9 and 6.1.10). The first bit
/// of seconds is zero from 2036 on.
pub(super) fn ntp_ms(timestamp: u64) -> i64 {
    let (seconds, fraction) = (timestamp >> 32, timestamp & 0xffff_ffff);
    let era = match seconds >> 31 {
        0 => 1i64 << 32,
        _ => 0,
    };
    let whole_ms = (i64::try_from(seconds).unwrap_or_default() + era) * 1000;
    let part_ms = i64::try_from((fraction * 1000) >> 32).unwrap_or_default();
    whole_ms + part_ms - NTP_MS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uptimes_are_times_also_over_their_wrap() {
        let clocks = Clocks {
            sent_ms: 1_000_000,
            uptime_ms: Some(500),
        };
        assert_eq!(clocks.at_uptime(200), Some(999_700));
        assert_eq!(clocks.at_uptime(u32::MAX - 499), Some(999_000));
        assert_eq!(clocks.at_uptime(700), Some(1_000_200));
    }

    #[test]
    fn timestamps_of_ntp_are_of_both_eras() {
        assert_eq!(ntp_ms(2_208_988_800 << 32 | 1 << 31), 500);
        assert_eq!(
            ntp_ms(2_085_978_496 << 32) + NTP_MS,
            (2_085_978_496i64 + (1 << 32)) * 1000
        );
        assert_eq!(
            ntp_ms(u64::MAX),
            (i64::from(u32::MAX) * 1000 + 999) - NTP_MS
        );
    }
}
