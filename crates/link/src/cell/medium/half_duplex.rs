//! A half-duplex Ethernet: two stations on one medium, of which one sends at a time. They
//! listen before they send, collide, and back off (CSMA/CD, IEEE 802.3 clause 4).

use std::time::Duration;

use plumb_model::units::{BitRate, duration_text};
use serde::{Deserialize, Serialize};

use super::station::Duplex;
use super::{CABLE, Terms};
use crate::queue::QueueSpec;
use crate::settings::Settings;

/// `{ type = "half_duplex", rate = "10mbit" }`, in both directions of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HalfDuplexSpec {
    /// 10 or 100 Mbit/s.
    pub rate: BitRate,
    /// From one station to the other; 100 m of twisted pair when absent.
    #[serde(default = "cable", with = "duration_text")]
    pub propagation: Duration,
    /// The queue of each station; a FIFO when absent.
    #[serde(default)]
    pub queue: QueueSpec,
}

pub(super) fn cable() -> Duration {
    CABLE
}

impl Settings for HalfDuplexSpec {
    fn check(&self) -> Result<(), String> {
        self.terms().check()
    }
}

impl HalfDuplexSpec {
    pub(crate) fn terms(&self) -> Terms {
        Terms {
            rate: self.rate,
            propagation: self.propagation,
            queue: self.queue.clone(),
            duplex: [Duplex::Half; 2],
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::super::tests::Segment;
    use crate::spec::CellSpec;

    /// Preamble and frame of a packet of 1500 bytes at 10 Mbit/s, in nanoseconds.
    const FRAME: u64 = (1500 + 18 + 8) * 800;
    const GAP: u64 = 9_600;

    fn segment(seed: u64) -> Segment {
        let pairs = [("rate", "10mbit"), ("propagation", "500ns")];
        Segment::new("half_duplex", &pairs, seed)
    }

    #[test]
    fn a_station_alone_sends_frame_after_frame() {
        let mut s = segment(1);
        s.send(0, 1_000, 1500);
        s.send(0, 1_000, 1500);
        // 46 bytes fill the smallest frame of 64; with 40 it is padded.
        s.send(0, 1_000, 40);
        let first = 1_000 + FRAME + 500;
        let third = first + FRAME + 2 * GAP + 72 * 800;
        assert_eq!(s.departures(0), [first, first + GAP + FRAME, third]);
    }

    #[test]
    fn a_station_waits_for_the_other_and_for_the_gap() {
        let mut s = segment(1);
        s.send(0, 0, 1500);
        s.send(1, 10_000, 1500);
        // The second senses the end 500 ns late.
        assert_eq!(s.departures(0), [FRAME + 500]);
        assert_eq!(s.departures(1), [FRAME + 500 + GAP + FRAME + 500]);
        assert_eq!(s.dropped(), [None, None]);
    }

    #[test]
    fn both_back_off_after_a_collision() {
        // Both begin at 0 and hear each other at 500 ns; the jam follows the preamble and ends
        // at 9.6 µs, and both sense its end at 10.1 µs. The one that draws fewer slots sends first.
        let jam = 9_600;
        let early = jam + 500 + GAP + FRAME + 500;
        let late = early + GAP + FRAME + 500;
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..20 {
            let mut s = segment(seed);
            s.send(0, 0, 1500);
            s.send(1, 0, 1500);
            let both = (s.departures(0)[0], s.departures(1)[0]);
            // Those who draw the same collide again, which is another story.
            if both == (early, late) || both == (late, early) {
                seen.insert(both);
            } else {
                assert!(both.0.min(both.1) > early, "{both:?}");
                let again = s.first_backoffs();
                assert_eq!(again[0], again[1], "{seed}");
            }
        }
        assert_eq!(seen.len(), 2);
    }

    #[test]
    fn a_collision_in_flight_is_noticed_by_both() {
        // The second begins 499 ns after the first, which it cannot hear yet: carrier comes
        // 1 ns later, and to the first at 999 ns. Jams end at 9.6 and 10.099 µs.
        let mut s = segment(3);
        s.send(0, 0, 1500);
        s.send(1, 499, 1500);
        let [first, second] = s.first_backoffs();
        assert_ne!(first, second, "choose another seed");
        let (sender, jam, heard) = if first < second {
            (0, 9_600, 10_599)
        } else {
            (1, 10_099, 10_100)
        };
        // The gap begins when neither sends.
        let clear = heard.max(jam) + GAP;
        assert_eq!(s.departures(sender), [clear + FRAME + 500]);
        assert_eq!(s.departures(1 - sender).len(), 1);
    }

    /// Two stations with something to send at any time: what the packets carry, of 10 Mbit/s.
    fn saturated(size: usize) -> (f64, f64) {
        let mut s = segment(9);
        let (mut bytes, seconds) = ([0, 0], 20);
        for tick in 0..seconds * 1000 {
            for side in [0, 1] {
                s.fill(side, tick * 1_000_000, size, 30);
            }
            for (side, sum) in bytes.iter_mut().enumerate() {
                *sum += s.collect(side, tick * 1_000_000);
            }
        }
        let share = |bytes: u64| bytes as f64 * 8.0 / (seconds as f64 * 10e6);
        (share(bytes[0] + bytes[1]), share(bytes[0].min(bytes[1])))
    }

    #[test]
    fn two_saturated_stations_get_less_than_the_rate() {
        let (large, least) = saturated(1500);
        // 1500 of 1538 bytes are the packet's. Collisions cost little more, because the station that has won keeps
        // winning while the other backs off longer and longer (K. Ramakrishnan and H. Yang, The Ethernet Capture
        // Effect, LCN 1994).
        assert!((0.95..1500.0 / 1538.0).contains(&large), "{large}");
        // But not for ever.
        assert!(least > 0.2, "{least}");
        let (small, _) = saturated(46);
        assert!((0.5..46.0 / 84.0).contains(&small), "{small}");
    }

    #[test]
    fn sixteen_collisions_end_a_frame() {
        // A station that has sent wins more and more often against one that backs off longer
        // and longer, until that one gives up a frame.
        let mut s = segment(9);
        for tick in 0..200_000 {
            s.fill(0, tick * 1_000_000, 1500, 30);
            s.fill(1, tick * 1_000_000, 1500, 30);
            s.collect(0, tick * 1_000_000);
            s.collect(1, tick * 1_000_000);
        }
        let dropped = s.drops();
        let gave_up: u64 = dropped
            .iter()
            .filter_map(|d| d.get("excessive_collisions"))
            .sum();
        assert!(gave_up > 0, "{dropped:?}");
        // No frame is lost in any other way.
        assert!(
            dropped
                .iter()
                .all(|d| d.keys().all(|k| k == "excessive_collisions")),
            "{dropped:?}"
        );
    }

    #[test]
    fn mistakes_are_named() {
        for (pairs, says) in [
            (vec![("rate", "1gbit")], "10mbit and 100mbit"),
            (
                vec![("rate", "10mbit"), ("propagation", "0s")],
                "above zero",
            ),
            (vec![("rate", "100mbit"), ("propagation", "3us")], "2.4µs"),
            (vec![("rate", "10mbit"), ("half", "first")], "half"),
        ] {
            let error = CellSpec::from_pairs("half_duplex", &pairs)
                .unwrap_err()
                .to_string();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn settings_reach_both_stations() {
        let mut s = segment(1);
        s.send(0, 0, 1500);
        s.send(0, 0, 1500);
        s.set(0, 100_000, &[("rate", "100mbit"), ("propagation", "500ns")]);
        s.send(1, 100_000, 1500);
        // The frame on the medium keeps its time. Both begin after the shorter gap, the first
        // 500 ns before the second, which hears it only then.
        let [first, second] = s.first_backoffs();
        let out = (s.departures(0), s.departures(1));
        assert_eq!(out.0[0], FRAME + 500);
        assert!(
            out.0[1].max(out.1[0]) < FRAME + 3 * (FRAME / 10),
            "{out:?} {first} {second}"
        );
    }
}
