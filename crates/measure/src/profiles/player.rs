//! A player of live video that is cut into segments (DASH, ISO/IEC 23009-1; HLS, RFC 8216). Pure.
//!
//! It asks for each segment when it is there, shows the picture once it has as many as it wants to begin with, and
//! stands still whenever the next segment is not whole when it is to be shown. After a stall it continues where it
//! stopped, as soon as that segment has come.

use plumb_model::results::app::Playback;

/// Segments that a player wants to have before it begins: RFC 8216, section 6.3.3, keeps a player
/// three target durations behind the live edge.
pub const SEGMENTS_TO_BEGIN: usize = 3;

/// What a player would have shown of segments of `segment_s` and `segment_bytes` each. `arrivals_s` is when each was
/// whole, in the order in which they are shown, `None` where it never was; it waited for the first
/// since `asked_s`, and gave up at `until_s`.
pub fn play(
    (segment_s, segment_bytes): (f64, u64),
    asked_s: f64,
    arrivals_s: &[Option<f64>],
    until_s: f64,
) -> Playback {
    let in_time: Vec<f64> = arrivals_s
        .iter()
        .map_while(|arrival| arrival.filter(|t_s| *t_s <= until_s))
        .collect();
    let began_s = in_time
        .get(..SEGMENTS_TO_BEGIN)
        .map(|first| first.iter().copied().fold(asked_s, f64::max));
    let (mut stalls, mut stalled_s) = (0, 0.0);
    if let Some(began_s) = began_s {
        let mut clock_s = began_s;
        for arrival_s in &in_time {
            if *arrival_s > clock_s {
                stalls += 1;
                stalled_s += arrival_s - clock_s;
                clock_s = *arrival_s;
            }
            clock_s += segment_s;
        }
        // What was still awaited at the end.
        if clock_s < until_s {
            stalls += 1;
            stalled_s += until_s - clock_s;
        }
    }
    let shown_s = began_s.map_or(0.0, |began_s| until_s - began_s);
    Playback {
        segment_s,
        segment_bytes,
        segments: in_time.len() as u64,
        startup_s: began_s.map(|began_s| began_s - asked_s),
        stalls,
        stalled_s,
        stalled_ratio: if shown_s > 0.0 {
            (stalled_s / shown_s).min(1.0)
        } else {
            0.0
        },
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Segments of 2 s, each there every 2 s, that took `took_s` to come.
    fn segments(took_s: &[f64]) -> Vec<Option<f64>> {
        (0..)
            .zip(took_s)
            .map(|(k, took)| Some(f64::from(k) * 2.0 + took))
            .collect()
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value}, not {expected}");
    }

    #[test]
    fn a_steady_path_never_stalls() {
        let playback = play((2.0, 1), 0.0, &segments(&[0.5; 10]), 20.0);
        // The third segment is there at 4 s and came at 4.5 s; six seconds can be shown then.
        near(playback.startup_s.unwrap(), 4.5);
        assert_eq!((playback.stalls, playback.segments), (0, 10));
        near(playback.stalled_s, 0.0);
    }

    #[test]
    fn a_segment_that_takes_longer_than_the_buffer_stalls_once() {
        // Shown from 4.5 s on; the fifth is wanted at 12.5 s and comes at 14 s; those behind it
        // come in time.
        let mut took = [0.5; 10];
        *took.get_mut(4).unwrap() = 6.0;
        let playback = play((2.0, 1), 0.0, &segments(&took), 20.0);
        assert_eq!(playback.stalls, 1);
        near(playback.stalled_s, 1.5);
        near(playback.stalled_ratio, 1.5 / 15.5);
    }

    #[test]
    fn a_line_slower_than_the_video_stalls_again_and_again() {
        // Each takes 3 s, one after the other: 3, 6, 9, … Shown from 9 s on, when three are there;
        // the fourth is there at 12 (wanted at 15), …, the k-th at 3k, wanted at 9 + 2(k − 1).
        let arrivals: Vec<_> = (1..=20).map(|k| Some(3.0 * f64::from(k))).collect();
        let playback = play((2.0, 1), 0.0, &arrivals, 60.0);
        near(playback.startup_s.unwrap(), 9.0);
        // From the eighth on (24 > 23) each waits: first 1 s, then 1 s each.
        assert_eq!(playback.stalls, 13);
        near(playback.stalled_s, 13.0);
    }

    #[test]
    fn what_never_comes_is_waited_for_until_the_end() {
        let arrivals = [Some(1.0), Some(3.0), Some(5.0), None, Some(7.0)];
        let playback = play((2.0, 1), 0.0, &arrivals, 20.0);
        assert_eq!((playback.stalls, playback.segments), (1, 3));
        near(playback.stalled_s, 20.0 - 11.0);
        let nothing = play((2.0, 1), 0.0, &[None, None], 20.0);
        assert_eq!((nothing.startup_s, nothing.stalls), (None, 0));
        assert_eq!(play((2.0, 1), 0.0, &[], 0.0).segments, 0);
    }
}
