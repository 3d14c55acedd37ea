//! An Ethernet whose ends disagree: one is half duplex, the other full. Each does as its own
//! mode says (IEEE 802.3 clause 4; S. Shalunov and R. Carlson, Detecting Duplex Mismatch on
//! Ethernet, PAM 2005; PERT Performance Guides, Duplex Mismatch).
//!
//! The full-duplex end does not listen and sends whenever it likes. Where that meets a
//! transmission of the half-duplex end, this one sees a collision: it breaks off, so that the
//! full-duplex end sees a fragment, and it receives nothing of the frame that comes (FCS error). A
//! collision in the first 512 bit times costs an attempt; a later one costs the frame. So
//! nearly nothing is lost while one end is quiet, and the half-duplex end suffers when both talk.

use std::time::Duration;

use plumb_model::units::{BitRate, duration_text};
use serde::{Deserialize, Serialize};

use super::Terms;
use super::half_duplex::cable;
use super::station::Duplex;
use crate::queue::QueueSpec;
use crate::settings::Settings;

/// `{ type = "duplex_mismatch", rate = "100mbit", half = "first" }`, in both directions of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuplexMismatchSpec {
    /// 10 or 100 Mbit/s.
    pub rate: BitRate,
    /// Which node of the link's `between` is half duplex.
    pub half: WhichEnd,
    /// From one station to the other; 100 m of twisted pair when absent.
    #[serde(default = "cable", with = "duration_text")]
    pub propagation: Duration,
    /// The queue of each station; a FIFO when absent.
    #[serde(default)]
    pub queue: QueueSpec,
}

/// One of the two ends of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WhichEnd {
    /// The one that sends up.
    First,
    /// The one that sends down.
    Second,
}

impl Settings for DuplexMismatchSpec {
    fn check(&self) -> Result<(), String> {
        self.terms().check()
    }
}

impl DuplexMismatchSpec {
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            rate: self.rate,
            propagation: self.propagation,
            queue: self.queue.clone(),
            duplex: match self.half {
                WhichEnd::First => [Duplex::Half, Duplex::Full],
                WhichEnd::Second => [Duplex::Full, Duplex::Half],
            },
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::tests::Segment;
    use crate::random::Random;
    use crate::spec::CellSpec;

    /// Preambles and frames at 10 Mbit/s, in nanoseconds.
    const FRAME_1500: u64 = (1500 + 18 + 8) * 800;
    const FRAME_100: u64 = (100 + 18 + 8) * 800;
    const GAP: u64 = 9_600;

    /// The first end is half duplex.
    fn segment(rate: &str) -> Segment {
        let pairs = [("rate", rate), ("half", "first"), ("propagation", "500ns")];
        Segment::new("duplex_mismatch", &pairs, 1)
    }

    #[test]
    fn either_end_by_itself_loses_nothing() {
        for side in [0, 1] {
            let mut s = segment("10mbit");
            s.send(side, 0, 1500);
            s.send(side, 0, 100);
            let first = FRAME_1500 + 500;
            assert_eq!(s.departures(side), [first, first + GAP + FRAME_100]);
        }
        // The half-duplex end also waits for what comes.
        let mut s = segment("10mbit");
        s.send(1, 0, 1500);
        s.send(0, 1_000, 100);
        assert_eq!(s.departures(1), [FRAME_1500 + 500]);
        assert_eq!(s.departures(0), [FRAME_1500 + 500 + GAP + FRAME_100 + 500]);
        assert_eq!(s.dropped(), [None, None]);
    }

    #[test]
    fn a_late_collision_loses_both_frames() {
        let mut s = segment("10mbit");
        s.send(0, 0, 1500);
        s.send(0, 0, 100);
        s.send(1, 300_000, 100);
        // It breaks off at 300.5 µs, jams for 3.2, waits for the frame that comes to end at
        // 401.3, and for the gap.
        let clear = 300_000 + FRAME_100 + 500 + GAP;
        assert_eq!(s.departures(0), [clear + FRAME_100 + 500]);
        assert_eq!(s.departures(1), Vec::<u64>::new());
        assert_eq!(s.dropped(), [Some("late_collision"), Some("fcs_error")]);
        // The last instant of the slot is early, the next late.
        for (at, drops) in [(50_700, None), (50_701, Some("late_collision"))] {
            let mut s = segment("10mbit");
            s.send(0, 0, 1500);
            s.send(1, at, 100);
            s.departures(1);
            s.departures(0);
            assert_eq!(s.dropped(), [drops, Some("fcs_error")]);
        }
    }

    #[test]
    fn an_early_collision_costs_the_half_duplex_end_an_attempt_only() {
        let mut s = segment("10mbit");
        s.send(0, 0, 1500);
        s.send(1, 20_000, 100);
        // One slot of backoff is over before the other's frame is.
        let clear = 20_000 + FRAME_100 + 500 + GAP;
        assert_eq!(s.departures(0), [clear + FRAME_1500 + 500]);
        assert_eq!(s.departures(1), Vec::<u64>::new());
        assert_eq!(s.dropped(), [None, Some("fcs_error")]);
    }

    #[test]
    fn the_second_end_can_be_the_half_one() {
        let pairs = [("rate", "100mbit"), ("half", "second")];
        let mut s = Segment::new("duplex_mismatch", &pairs, 1);
        s.send(1, 0, 1500);
        s.send(0, 50_000, 1500);
        s.departures(0);
        s.departures(1);
        assert_eq!(s.dropped(), [Some("fcs_error"), Some("late_collision")]);
    }

    /// Packets of 1500 bytes that the half and the full end send for ten seconds at these shares
    /// of 100 Mbit/s, with gaps from none to twice the mean: the ratio that collisions lose in
    /// the end, and the ratio that arrives within those ten seconds.
    fn talk(half: f64, full: f64) -> ([f64; 2], [f64; 2]) {
        const MEANS: f64 = (1u64 << 20) as f64;
        let mut s = segment("100mbit");
        let mut random = Random::new(5);
        let mut gap = |share: f64| {
            let means = random.below_power_of_two(21) as f64 / MEANS;
            1538.0 * 80.0 / share * means
        };
        // Who never sends does not send first either.
        let mut due = [half, full].map(|share| if share > 0.0 { 0.0 } else { f64::INFINITY });
        let (mut sent, mut arrived) = ([0u64; 2], [0u64; 2]);
        loop {
            let side = usize::from(due[1] < due[0]);
            if due[side] > 10e9 {
                break;
            }
            for end in [0, 1] {
                arrived[end] += s.collect(end, due[side] as u64) / 1500;
            }
            s.send(side, due[side] as u64, 1500);
            due[side] += gap([half, full][side]);
            sent[side] += 1;
        }
        s.departures(0);
        s.departures(1);
        let lost = s.drops().map(|causes| causes.values().sum::<u64>());
        let ratio = |of: [u64; 2]| [0, 1].map(|side| of[side] as f64 / sent[side].max(1) as f64);
        (ratio(lost), ratio(arrived))
    }

    #[test]
    fn it_loses_only_when_both_talk_and_the_half_duplex_end_suffers() {
        assert_eq!(talk(0.9, 0.0).0, [0.0, 0.0]);
        assert_eq!(talk(0.0, 0.9).0, [0.0, 0.0]);
        // 4 % of the time the other sends: so much is lost of either.
        let (light, _) = talk(0.04, 0.04);
        assert!(
            light.iter().all(|loss| (0.02..0.08).contains(loss)),
            "{light:?}"
        );
        // An upload from the half-duplex end, and a frame the other way for every seventeen:
        // each comes in the middle of one of them, four times in five.
        let ([half, full], _) = talk(0.8, 0.047);
        assert!((0.03..0.07).contains(&half), "{half}");
        assert!((0.7..0.9).contains(&full), "{full}");
        // Both busy: hardly a frame of the half-duplex end finds a gap, and its queue grows.
        let (_, [half, full]) = talk(0.97, 0.97);
        assert!(half < 0.2 && full > 0.7, "{half} {full}");
    }

    #[test]
    fn mistakes_are_named() {
        for (pairs, says) in [
            (vec![("rate", "10mbit")], "half"),
            (vec![("rate", "10mbit"), ("half", "both")], "first"),
            (
                vec![("rate", "1gbit"), ("half", "first")],
                "10mbit and 100mbit",
            ),
        ] {
            let error = CellSpec::from_pairs("duplex_mismatch", &pairs)
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
