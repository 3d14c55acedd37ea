//! What strangers may carry in a day. It refills all the time, so that no client waits for midnight.

use std::time::Duration;

use plumb_wire::share::Bucket;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A load that may carry less shows no rate: 1 s at 8 Mbit/s.
const LEAST_BYTES: u64 = 1_000_000;

/// The bytes of one day.
#[derive(Debug, Default)]
pub(crate) struct Day {
    left: Bucket,
}

impl Day {
    /// Sets as many of the wanted bytes aside as there are, of so many a day.
    ///
    /// # Errors
    /// Where that is too few for any load: in how much time there are enough.
    pub(crate) fn reserve(
        &mut self,
        now: Duration,
        wanted: u64,
        bytes_a_day: u64,
    ) -> Result<u64, Duration> {
        let most = bytes_a_day as f64;
        let rate = most / DAY.as_secs_f64();
        let left = self.left.left(now, rate, most);
        let least = LEAST_BYTES.min(wanted) as f64;
        if left < least {
            let waits_s = (least - left) / rate.max(f64::MIN_POSITIVE);
            return Err(Duration::try_from_secs_f64(waits_s).unwrap_or(DAY).min(DAY));
        }
        let granted = left.min(wanted as f64);
        self.left.draw(now, granted, rate, most);
        Ok(granted as u64)
    }

    /// So many of those that were set aside were not carried.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.left.give_back(bytes as f64);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn what_is_spent_comes_back_with_the_day() {
        const A_DAY: u64 = 86_400_000_000;
        let mut day = Day::default();
        let now = Duration::from_secs(7);
        assert_eq!(day.reserve(now, 60_000_000_000, A_DAY), Ok(60_000_000_000));
        assert_eq!(day.reserve(now, 60_000_000_000, A_DAY), Ok(26_400_000_000));
        // 1 MB a second comes back.
        assert_eq!(
            day.reserve(now, 5_000_000, A_DAY),
            Err(Duration::from_secs(1))
        );
        let later = now + Duration::from_secs(3);
        assert_eq!(day.reserve(later, 5_000_000, A_DAY), Ok(3_000_000));
        day.give_back(2_000_000);
        assert_eq!(day.reserve(later, 5_000_000, A_DAY), Ok(2_000_000));
        assert!(day.reserve(now, 5_000_000, 0).is_err());
    }
}
