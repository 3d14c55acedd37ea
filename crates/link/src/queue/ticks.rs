//! The timer of a queue whose controller is adjusted every so often: done when the queue is next
//! used, as of the times when it was due, so that nothing depends on who asks when.

use std::time::Duration;

use crate::time::Time;

/// The shortest time between updates: what is due while a queue is not used is bounded.
const SHORTEST: Duration = Duration::from_micros(100);

/// Whether a controller can be adjusted this often.
pub(super) fn check(interval: Duration) -> Result<(), String> {
    if interval >= SHORTEST {
        return Ok(());
    }
    Err(format!(
        "a tupdate of {interval:?} is not possible: it is at least {SHORTEST:?}"
    ))
}

/// When the next update is due; the first is one interval after the queue's first use.
#[derive(Debug, Default)]
pub(super) struct Ticks {
    next: Option<Time>,
}

impl Ticks {
    /// Calls `update` for each time that is due up to `now`. It returns whether it changed
    /// anything: when not, the rest up to `now` would not either, because nothing came or left.
    pub(super) fn advance(
        &mut self,
        now: Time,
        interval: Duration,
        mut update: impl FnMut(Time) -> bool,
    ) {
        let Some(mut next) = self.next else {
            self.next = Some(now + interval);
            return;
        };
        while next <= now {
            let changed = update(next);
            next += interval;
            if !changed && next <= now {
                let interval = interval.as_nanos().max(1) as u64;
                let skipped = now.nanos_since(next) / interval + 1;
                next += Duration::from_nanos(skipped.saturating_mul(interval));
            }
        }
        self.next = Some(next);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_due_at_whole_intervals_from_the_first_use_and_skips_what_changes_nothing() {
        let (mut ticks, mut seen) = (Ticks::default(), Vec::new());
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let mut advance = |now, changes| {
            ticks.advance(now, Duration::from_millis(10), |at| {
                seen.push(at);
                changes
            });
        };
        advance(ms(3), true);
        advance(ms(12), true);
        advance(ms(13), true);
        advance(ms(38), true);
        advance(ms(143), false);
        advance(ms(152), true);
        advance(ms(153), true);
        assert_eq!(seen, [ms(13), ms(23), ms(33), ms(43), ms(153)]);
    }
}
