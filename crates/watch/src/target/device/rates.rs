//! What a port carried between two readings of its counters. Where a counter wrapped, began anew or cannot be right there is
//! no value rather than a spike, and why. Pure.

use std::time::Duration;

/// A time in seconds by which the device's clock may differ from ours over an interval, and the share of it beyond that: agents
/// answer late, and clocks are a thousandth off at most.
const CLOCK_SLACK_S: f64 = 5.0;
const CLOCK_SLACK_RATIO: f64 = 0.1;

/// A rate of so many times the port's speed is no rate: agents that read counters seldom show the half of twice as long an
/// interval in the next one.
const MOST_OF_SPEED: f64 = 2.0;

/// A frame of the least size takes so many bits of an Ethernet: 64 bytes, the preamble and the gap (IEEE 802.3).
const LEAST_FRAME_BITS: f64 = 84.0 * 8.0;

/// A counter of 32 bits wraps at so many bits of what it counts in bytes.
const WRAPS_AT_BITS: f64 = 8.0 * 4_294_967_296.0;

/// How wide the counters of bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Bits32,
    Bits64,
}

/// A port's counters at one time, each in and out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Counts {
    /// By a monotonic clock of ours.
    pub(super) at: Duration,
    /// Of the agent, in hundredths of a second.
    pub(super) uptime: u32,
    /// When the port's counters began, by the agent's uptime.
    pub(super) began: Option<u32>,
    pub(super) width: Width,
    pub(super) bytes: [Option<u64>; 2],
    pub(super) errors: [Option<u64>; 2],
    pub(super) discards: [Option<u64>; 2],
    pub(super) speed_bps: Option<f64>,
}

/// A rate, or why there is none; `None` where the agent does not have the counter.
pub(super) type Rate = Option<Result<f64, &'static str>>;

/// What a port carried, each in and out.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rates {
    pub(super) bps: [Rate; 2],
    pub(super) errors_per_s: [Rate; 2],
    pub(super) discards_per_s: [Rate; 2],
}

/// Between two readings.
///
/// # Errors
/// When nothing can be said of any counter: why.
pub(super) fn rates(before: &Counts, now: &Counts) -> Result<Rates, &'static str> {
    let elapsed_s = now.at.saturating_sub(before.at).as_secs_f64();
    if elapsed_s <= 0.0 {
        return Err("both readings are of the same time");
    }
    if now.uptime < before.uptime {
        return Err("the agent began anew: its uptime went back");
    }
    let uptime_s = f64::from(now.uptime - before.uptime) / 100.0;
    if (uptime_s - elapsed_s).abs() > CLOCK_SLACK_S + CLOCK_SLACK_RATIO * elapsed_s {
        return Err("the agent's uptime did not go on as time did: it began anew meanwhile");
    }
    if now.began != before.began {
        return Err("the port's counters began anew");
    }
    if now.width != before.width {
        return Err("the port has counters of another width now");
    }
    let speed_bps = match (before.speed_bps, now.speed_bps) {
        (Some(before), Some(now)) => Some(before.max(now)),
        (one, other) => one.or(other),
    };
    let may_wrap =
        now.width == Width::Bits32 && speed_bps.is_none_or(|bps| bps * elapsed_s >= WRAPS_AT_BITS);
    let bps = |place: usize| -> Rate {
        let bytes = increase(&before.bytes, &now.bytes, place)?;
        Some(bytes.and_then(|bytes| {
            let bps = bytes * 8.0 / elapsed_s;
            match speed_bps {
                _ if may_wrap => Err("its counter of 32 bits may wrap within such an interval"),
                Some(speed) if bps > MOST_OF_SPEED * speed => {
                    Err("its counter rose by more than twice of what the port can carry")
                }
                _ => Ok(bps),
            }
        }))
    };
    let per_s = |of: fn(&Counts) -> &[Option<u64>; 2], place: usize| -> Rate {
        let frames = increase(of(before), of(now), place)?;
        Some(frames.and_then(|frames| {
            let per_s = frames / elapsed_s;
            match speed_bps {
                Some(speed) if per_s > MOST_OF_SPEED * speed / LEAST_FRAME_BITS => {
                    Err("its counter rose by more frames than the port can carry")
                }
                _ => Ok(per_s),
            }
        }))
    };
    Ok(Rates {
        bps: [bps(0), bps(1)],
        errors_per_s: [0, 1].map(|place| per_s(|counts| &counts.errors, place)),
        discards_per_s: [0, 1].map(|place| per_s(|counts| &counts.discards, place)),
    })
}

/// By how much a counter rose; `None` where one of the readings lacks it.
fn increase(before: &[Option<u64>; 2], now: &[Option<u64>; 2], place: usize) -> Rate {
    let (before, now) = ((*before.get(place)?)?, (*now.get(place)?)?);
    Some(match now.checked_sub(before) {
        Some(increase) => Ok(increase as f64),
        None => Err("its counter wrapped, or began anew"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A port of 100 Mbit/s at that time, with this count of bytes in each direction.
    fn counts(at_s: u64, bytes: u64) -> Counts {
        Counts {
            at: Duration::from_secs(at_s),
            uptime: 1000 + 100 * at_s as u32,
            began: Some(7),
            width: Width::Bits64,
            bytes: [Some(bytes), Some(0)],
            errors: [Some(bytes / 1000), None],
            discards: [None, None],
            speed_bps: Some(1e8),
        }
    }

    #[test]
    fn a_rate_is_of_the_time_between() {
        let found = rates(&counts(10, 1_000_000), &counts(70, 61_000_000)).unwrap();
        assert_eq!(found.bps, [Some(Ok(8e6)), Some(Ok(0.0))]);
        assert_eq!(found.errors_per_s, [Some(Ok(1000.0)), None]);
        assert_eq!(found.discards_per_s, [None, None]);
    }

    #[test]
    fn a_counter_that_wraps_has_no_value() {
        let mut before = counts(0, u32::MAX.into());
        let mut now = counts(60, 5000);
        (before.width, now.width) = (Width::Bits32, Width::Bits32);
        let found = rates(&before, &now).unwrap();
        assert_eq!(
            found.bps,
            [
                Some(Err("its counter wrapped, or began anew")),
                Some(Ok(0.0))
            ]
        );
        // At 1 Gbit/s it wraps in 34 s, which need not show.
        let (mut before, mut now) = (counts(0, 5), counts(60, 5000));
        for counts in [&mut before, &mut now] {
            (counts.width, counts.speed_bps) = (Width::Bits32, Some(1e9));
        }
        let found = rates(&before, &now).unwrap();
        assert_eq!(
            found.bps,
            [Some(Err(
                "its counter of 32 bits may wrap within such an interval"
            )); 2]
        );
        let mut now = counts(30, 5000);
        (now.width, now.speed_bps) = (Width::Bits32, Some(1e9));
        assert!(matches!(
            rates(&before, &now).unwrap().bps,
            [Some(Ok(_)), Some(Ok(_))]
        ));
    }

    #[test]
    fn what_began_anew_has_no_value() {
        let before = counts(60, 1000);
        let mut restarted = counts(120, 900_000);
        restarted.uptime = 3000;
        assert_eq!(
            rates(&before, &restarted),
            Err("the agent began anew: its uptime went back")
        );
        // It began anew, and is up for longer than it was before by now.
        let (young, mut older) = (counts(1, 1000), counts(61, 900_000));
        older.uptime = 3000;
        let why = rates(&young, &older).unwrap_err();
        assert!(why.contains("did not go on as time did"), "{why}");
        let mut port = counts(120, 900_000);
        port.began = Some(11_000);
        assert_eq!(rates(&before, &port), Err("the port's counters began anew"));
        let mut narrow = counts(120, 900_000);
        narrow.width = Width::Bits32;
        assert!(rates(&before, &narrow).is_err());
        assert!(rates(&before, &before).is_err());
    }

    #[test]
    fn a_counter_that_lies_has_no_value() {
        let (before, mut now) = (counts(0, 0), counts(60, 2_000_000_000));
        now.errors = [Some(60 * 400_000), None];
        let found = rates(&before, &now).unwrap();
        assert_eq!(
            found.bps[0],
            Some(Err(
                "its counter rose by more than twice of what the port can carry"
            ))
        );
        assert_eq!(
            found.errors_per_s[0],
            Some(Err(
                "its counter rose by more frames than the port can carry"
            ))
        );
        // Twice of it may be two intervals of an agent that reads seldom.
        let found = rates(&before, &counts(60, 1_500_000_000)).unwrap();
        assert_eq!(found.bps[0], Some(Ok(2e8)));
    }
}
