//! When a message that could not be sent is sent again, and when that is given up. Pure.

/// The pause after the first try, in seconds: a line that was cut for a moment.
const FIRST_S: i64 = 30;

/// The longest pause, in seconds: after an outage of days it is known within an hour.
const MOST_S: i64 = 3600;

/// How long a message is kept, in seconds: a week, longer than lines are down.
const KEPT_S: i64 = 7 * 86_400;

/// The time of the next try after so many that failed, s since 1970; `None` to give up a message that waits since then.
pub fn again_s(tries: u32, queued_s: i64, now_s: i64) -> Option<i64> {
    let doubled = 1i64
        .checked_shl(tries.saturating_sub(1))
        .filter(|_| tries < 32);
    let pause_s = doubled.map_or(MOST_S, |times| FIRST_S.saturating_mul(times).min(MOST_S));
    (now_s - queued_s < KEPT_S).then_some(now_s + pause_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour_and_a_week_is_the_end() {
        let pauses = [1, 2, 3, 7, 8, 9, 40, u32::MAX].map(|tries| again_s(tries, 0, 0));
        assert_eq!(
            pauses,
            [30, 60, 120, 1920, 3600, 3600, 3600, 3600].map(Some)
        );
        assert_eq!(again_s(1, 0, KEPT_S), None);
    }
}
