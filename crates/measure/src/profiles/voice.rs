//! What a telephone call over a stream of packets would have been like. Pure.
//!
//! A telephone plays what comes at a steady pace out of a jitter buffer: what comes later than the
//! buffer is long is as good as lost, and the buffer adds to the delay. A good telephone makes it as
//! long as suits the path; here it is as long as rates best among the quantiles of the
//! delay variation.

use plumb_model::distribution::Distribution;
use plumb_model::emodel::{self, Codec, Connection, Rating};
use plumb_model::results::app::VoiceScore;

/// What was seen of a stream of voice.
#[derive(Debug, Clone, Copy)]
pub(super) struct Heard<'a> {
    pub(super) least_delay_s: f64,
    pub(super) delay_variation_s: &'a Distribution,
    /// Share of the packets that the network lost.
    pub(super) loss_ratio: f64,
    /// Mean length of the runs of losses, in packets.
    pub(super) mean_loss_run: f64,
    /// Speech in a packet, which has to be spoken before it is sent.
    pub(super) packet_s: f64,
}

/// What it would have been like with that codec.
pub(super) fn score(heard: &Heard<'_>, codec: Codec) -> VoiceScore {
    let variation = heard.delay_variation_s;
    // A buffer, and what comes too late for it.
    let buffers = [
        (variation.p50, 0.5),
        (variation.p75, 0.25),
        (variation.p95, 0.05),
        (variation.p99, 0.01),
        (variation.max, 0.0),
    ];
    let [first, others @ ..] = buffers.map(|buffer| (buffer, with_buffer(heard, codec, buffer)));
    let rating_of = |rated: &((f64, f64), (Connection, Rating))| rated.1.1.r;
    let best = others.into_iter().fold(first, |best, this| {
        if rating_of(&this) > rating_of(&best) {
            this
        } else {
            best
        }
    });
    let ((jitter_buffer_s, late_ratio), (connection, rating)) = best;
    VoiceScore {
        codec: codec.name.to_owned(),
        r: rating.r,
        mos: rating.mos,
        category: emodel::category(rating.r).to_owned(),
        mouth_to_ear_s: connection.mouth_to_ear_s,
        jitter_buffer_s,
        loss_ratio: heard.loss_ratio,
        late_ratio: late_ratio * (1.0 - heard.loss_ratio),
        burst_ratio: connection.burst_ratio,
    }
}

fn with_buffer(
    heard: &Heard<'_>,
    codec: Codec,
    (buffer_s, late_ratio): (f64, f64),
) -> (Connection, Rating) {
    let connection = Connection {
        mouth_to_ear_s: heard.packet_s + heard.least_delay_s + buffer_s,
        loss_ratio: heard.loss_ratio + late_ratio * (1.0 - heard.loss_ratio),
        burst_ratio: emodel::burst_ratio(heard.loss_ratio, heard.mean_loss_run),
        codec,
    };
    (connection, connection.rating())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::emodel::G711_PLC;

    fn heard(variation: &Distribution, least_delay_s: f64, loss_ratio: f64) -> VoiceScore {
        score(
            &Heard {
                least_delay_s,
                delay_variation_s: variation,
                loss_ratio,
                mean_loss_run: 1.0 / (1.0 - loss_ratio),
                packet_s: 0.02,
            },
            G711_PLC,
        )
    }

    #[test]
    fn a_good_path_sounds_as_well_as_the_codec() {
        let still = Distribution::of((0..1000).map(|k| f64::from(k) * 1e-6)).unwrap();
        let score = heard(&still, 0.01, 0.0);
        assert!(score.mos > 4.38 && score.r > 92.0, "{score:?}");
        assert!((score.mouth_to_ear_s - 0.031).abs() < 1e-4 && score.late_ratio == 0.0);
        assert_eq!(score.category, "very satisfied");
    }

    #[test]
    fn losses_and_long_queues_are_heard() {
        let still = Distribution::of(vec![0.0, 1e-3]).unwrap();
        // 95 · 5 / (5 + 25.1) = 15.8 of the rating.
        let lossy = heard(&still, 0.01, 0.05);
        assert!(
            (lossy.r - (heard(&still, 0.01, 0.0).r - 15.8)).abs() < 0.3,
            "{lossy:?}"
        );
        let late = heard(&still, 0.6, 0.0);
        assert!(late.r < 60.0 && late.mos < 3.1, "{late:?}");
    }

    #[test]
    fn the_buffer_is_as_long_as_rates_best() {
        // One packet in a thousand comes a second late: a player does not wait for it.
        let spikes = Distribution::of((0..1000).map(|k| if k == 0 { 1.0 } else { 0.002 })).unwrap();
        let score = heard(&spikes, 0.02, 0.0);
        assert!(score.jitter_buffer_s < 0.01, "{score:?}");
        // Delays spread evenly over 40 ms: a buffer for all of them costs less than losses.
        let spread = Distribution::of((0..1000).map(|k| f64::from(k) * 4e-5)).unwrap();
        let score = heard(&spread, 0.02, 0.0);
        assert!((score.jitter_buffer_s - 0.04).abs() < 1e-3 && score.late_ratio == 0.0);
    }
}
