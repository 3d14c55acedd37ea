//! The E-model (ITU-T G.107, 06/2015): what a telephone connection sounds like, computed from its
//! delay and its losses. The rating R is 0 to 100; the mean opinion score (MOS) is 1 to 4.5 and
//! follows from it (annex B).
//!
//! ```text
//! R = Ro − Is − Id − Ie,eff + A                                            (7-1)
//! ```
//!
//! The parts that a network does not change (loudness, noise, side tone, quantisation) have the
//! default values of the recommendation's table 2. It is for planning: it predicts the mean of many
//! listeners, for narrow-band speech, and not what one person heard.

use std::f64::consts::LN_2;

/// What a codec makes of the network: ITU-T G.113 (11/2007), appendix I, tables I.1 and I.4.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Codec {
    /// Name by which telephones call it.
    pub name: &'static str,
    /// Equipment impairment factor Ie: what its coding costs without any loss.
    pub impairment: f64,
    /// Packet-loss robustness factor Bpl: the loss in percent that takes half of what is left.
    pub robustness: f64,
}

/// G.711 with packet-loss concealment (its appendix I), packets of 10 ms: what terminals do today.
pub const G711_PLC: Codec = codec("G.711 with concealment", 0.0, 25.1);

/// G.711 which plays nothing where a packet is lost.
pub const G711: Codec = codec("G.711", 0.0, 4.3);

/// G.729A with voice activity detection and its own concealment, packets of 20 ms.
pub const G729A: Codec = codec("G.729A", 11.0, 19.0);

/// G.723.1 at 6.3 kbit/s with voice activity detection, packets of 30 ms.
pub const G723_1: Codec = codec("G.723.1", 15.0, 16.1);

/// GSM enhanced full rate, packets of 20 ms.
pub const GSM_EFR: Codec = codec("GSM-EFR", 5.0, 10.0);

const fn codec(name: &'static str, impairment: f64, robustness: f64) -> Codec {
    Codec {
        name,
        impairment,
        robustness,
    }
}

/// A connection, as far as a network decides it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Connection {
    /// From the mouth to the ear, codec, packets and jitter buffer included, in seconds.
    pub mouth_to_ear_s: f64,
    /// Share of the packets that were not there when they were to be played, whether they were
    /// lost or came too late.
    pub loss_ratio: f64,
    /// BurstR: the mean length of a run of losses against the one that losses independent of each
    /// other would have; 1 when they are.
    pub burst_ratio: f64,
    /// Codec of the voice, at both ends.
    pub codec: Codec,
}

/// What a connection comes to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rating {
    /// The transmission rating R, 0 to 100; 93.2 without any impairment.
    pub r: f64,
    /// The mean opinion score that goes with it, 1 to 4.5.
    pub mos: f64,
    /// Part of R that delay cost (Id).
    pub delay_impairment: f64,
    /// Part of R that the codec and the losses cost (Ie,eff).
    pub equipment_impairment: f64,
}

impl Connection {
    /// The rating of the connection. Both speakers have the same delay, and the echo path is twice
    /// that long.
    pub fn rating(&self) -> Rating {
        let delay_ms = self.mouth_to_ear_s.max(0.0) * 1e3;
        let noise = noise();
        let basic = basic_signal_to_noise(noise);
        let delay_impairment = delay_impairment(basic, noise, delay_ms);
        let equipment_impairment =
            equipment_impairment(self.codec, self.loss_ratio, self.burst_ratio);
        let r =
            basic - simultaneous_impairment(basic, noise) - delay_impairment - equipment_impairment;
        let r = r.clamp(0.0, 100.0);
        Rating {
            r,
            mos: mean_opinion_score(r),
            delay_impairment,
            equipment_impairment,
        }
    }
}

/// BurstR (G.107, section 7.5): the mean length of the runs in which packets were lost, against
/// 1/(1 − loss), which losses independent of each other would have. 1 without any loss, and not
/// less than 1: losses spread more evenly than chance are not rated better.
pub fn burst_ratio(loss_ratio: f64, mean_run_length: f64) -> f64 {
    if loss_ratio <= 0.0 {
        return 1.0;
    }
    (mean_run_length * (1.0 - loss_ratio)).max(1.0)
}

/// The mean opinion score of a rating (G.107, annex B, formula B-4). The cubic falls a little below 1 for ratings under
/// 6.5, and no score is below 1.
pub fn mean_opinion_score(r: f64) -> f64 {
    match r {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

/// How G.107 annex B (table B.1) and G.109 call a rating.
pub fn category(r: f64) -> &'static str {
    match r {
        r if r >= 90.0 => "very satisfied",
        r if r >= 80.0 => "satisfied",
        r if r >= 70.0 => "some users dissatisfied",
        r if r >= 60.0 => "many users dissatisfied",
        r if r >= 50.0 => "nearly all users dissatisfied",
        _ => "not recommended",
    }
}

/// Default values of G.107, table 2.
mod default {
    /// Send loudness rating, dB.
    pub(super) const SLR: f64 = 8.0;
    /// Receive loudness rating, dB.
    pub(super) const RLR: f64 = 2.0;
    /// Sidetone masking rating, dB.
    pub(super) const STMR: f64 = 15.0;
    /// D-value of the telephone at the send side.
    pub(super) const DS: f64 = 3.0;
    /// Listener sidetone rating at the receive side: STMR and the D-value there, 3, dB.
    pub(super) const LSTR: f64 = 18.0;
    /// Talker echo loudness rating, dB.
    pub(super) const TELR: f64 = 65.0;
    /// Weighted echo path loss, dB.
    pub(super) const WEPL: f64 = 110.0;
    /// Quantisation distortion, in units of qdu.
    pub(super) const QDU: f64 = 1.0;
    /// Circuit noise referred to the 0 dBr point, dBm0p.
    pub(super) const NC: f64 = -70.0;
    /// Noise floor at the receive side, dBmp.
    pub(super) const NFOR: f64 = -64.0;
    /// Room noise at the send side, dB(A).
    pub(super) const PS: f64 = 35.0;
    /// Room noise at the receive side, dB(A).
    pub(super) const PR: f64 = 35.0;
    /// Delay sensitivity sT, without unit.
    pub(super) const DELAY_SENSITIVITY: f64 = 1.0;
    /// Smallest delay that is noticed, mT, ms.
    pub(super) const NOTICED_DELAY_MS: f64 = 100.0;
}

use default::{DS, LSTR, NC, NFOR, PR, PS, QDU, RLR, SLR, STMR, TELR, WEPL};

/// No: the power of all noise, dBm0p (7-3 to 7-7).
fn noise() -> f64 {
    let power = |level: f64| 10_f64.powf(level / 10.0);
    let overall_loudness = SLR + RLR;
    let sent = PS - SLR - DS - 100.0 + 0.004 * (PS - overall_loudness - DS - 14.0).powi(2);
    let room = PR + 10.0 * (1.0 + power(10.0 - LSTR)).log10();
    let received = RLR - 121.0 + room + 0.008 * (room - 35.0).powi(2);
    10.0 * (power(NC) + power(sent) + power(received) + power(NFOR + RLR)).log10()
}

/// Ro: the basic signal-to-noise ratio (7-2).
fn basic_signal_to_noise(noise: f64) -> f64 {
    15.0 - 1.5 * (SLR + noise)
}

/// Is: what happens together with the voice, as too loud, side tone, quantisation (7-8 to 7-17).
fn simultaneous_impairment(basic: f64, noise: f64) -> f64 {
    let root = |x: f64, n: f64| (1.0 + x.powf(n)).powf(1.0 / n);
    let loudness = SLR + RLR + 0.2 * (64.0 + noise - RLR);
    let too_loud = 20.0 * (root(loudness / 8.0, 8.0) - loudness / 8.0);
    let side_tone = non_optimum_side_tone();
    let q = 37.0 - 15.0 * QDU.log10();
    let g = 1.07 + 0.258 * q + 0.0602 * q * q;
    let y = (basic - 100.0) / 15.0 + 46.0 / 8.4 - g / 9.0;
    let z = 46.0 / 30.0 - g / 40.0;
    let quantisation = 15.0 * (1.0 + 10_f64.powf(y) + 10_f64.powf(z)).log10();
    too_loud + side_tone + quantisation
}

/// Ist (7-10): with the default echo loss, the echo adds nothing to the side tone at any delay.
fn non_optimum_side_tone() -> f64 {
    // Even powers, so that the bases may be negative.
    let even = |x: f64, n: i32| (1.0 + x.powi(n)).powf(1.0 / f64::from(n));
    // Of the odd powers the bases are positive: STMRo is 15 dB less a trace of echo.
    12.0 * even((STMR - 13.0) / 6.0, 8)
        - 28.0 * even((STMR + 1.0) / 19.4, 35)
        - 13.0 * even((STMR - 3.0) / 33.0, 13)
        + 29.0
}

/// Id: talker echo, listener echo, and delay as such (7-18 to 7-28).
fn delay_impairment(basic: f64, noise: f64, delay_ms: f64) -> f64 {
    talker_echo(noise, delay_ms) + listener_echo(basic, 2.0 * delay_ms) + long_delay(delay_ms)
}

/// Idte; none below 1 ms, where the talker's echo is side tone.
fn talker_echo(noise: f64, delay_ms: f64) -> f64 {
    if delay_ms < 1.0 {
        return 0.0;
    }
    let t = delay_ms;
    let terv =
        TELR - 40.0 * ((1.0 + t / 10.0) / (1.0 + t / 150.0)).log10() + 6.0 * (-0.3 * t * t).exp();
    let without = -1.5 * (noise - RLR);
    let with = 80.0 + 2.5 * (terv - 14.0);
    let half = (without - with) / 2.0;
    (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - (-t).exp())
}

/// Idle, of the delay once around.
fn listener_echo(basic: f64, round_ms: f64) -> f64 {
    let with = 10.5 * (WEPL + 7.0) * (round_ms + 1.0).powf(-0.25);
    let half = (basic - with) / 2.0;
    half + (half * half + 169.0).sqrt()
}

/// Idd: what a conversation suffers however good the echo control is.
fn long_delay(delay_ms: f64) -> f64 {
    if delay_ms <= default::NOTICED_DELAY_MS {
        return 0.0;
    }
    let power = 6.0 * default::DELAY_SENSITIVITY;
    let x = (delay_ms / default::NOTICED_DELAY_MS).ln() / LN_2;
    let root = |x: f64| (1.0 + x.powf(power)).powf(1.0 / power);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

/// Ie,eff (7-29): with packets lost, Ie grows towards 95.
fn equipment_impairment(codec: Codec, loss_ratio: f64, burst_ratio: f64) -> f64 {
    let percent = 100.0 * loss_ratio.clamp(0.0, 1.0);
    if percent == 0.0 {
        return codec.impairment;
    }
    let per_burst = percent / burst_ratio.max(f64::MIN_POSITIVE);
    codec.impairment + (95.0 - codec.impairment) * percent / (per_burst + codec.robustness)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rated(mouth_to_ear_s: f64, loss_ratio: f64, codec: Codec) -> Rating {
        Connection {
            mouth_to_ear_s,
            loss_ratio,
            burst_ratio: 1.0,
            codec,
        }
        .rating()
    }

    fn near(value: f64, expected: f64, within: f64) {
        assert!(
            (value - expected).abs() <= within,
            "{value} is not {expected} within {within}"
        );
    }

    #[test]
    fn the_default_values_give_the_recommendations_rating() {
        // G.107, section 7.7: "the calculation results in ... R = 93.2".
        let best = rated(0.0, 0.0, G711);
        near(best.r, 93.2, 0.05);
        near(best.mos, 4.41, 0.005);
        assert_eq!(category(best.r), "very satisfied");
    }

    #[test]
    fn opinion_scores_are_those_of_annex_b() {
        // G.107, table B.1: the lower limits of its categories. It says 4.03 where its formula
        // gives 4.024.
        for (r, mos, name) in [
            (90.0, 4.34, "very satisfied"),
            (80.0, 4.03, "satisfied"),
            (70.0, 3.60, "some users dissatisfied"),
            (60.0, 3.10, "many users dissatisfied"),
            (50.0, 2.58, "nearly all users dissatisfied"),
        ] {
            near(mean_opinion_score(r), mos, 0.0061);
            assert_eq!(category(r), name);
        }
        assert_eq!(
            (
                mean_opinion_score(-3.0),
                mean_opinion_score(3.0),
                mean_opinion_score(100.0)
            ),
            (1.0, 1.0, 4.5)
        );
    }

    #[test]
    fn losses_cost_what_g113_measured() {
        // Ie by loss, in whole numbers, as G.113 (02/2001), table I.2, has it from listening tests.
        for (codec, loss_ratio, impairment) in [
            (G711_PLC, 0.02, 7.0),
            (G711_PLC, 0.03, 10.0),
            (G729A, 0.02, 19.0),
            (G729A, 0.04, 26.0),
            (G723_1, 0.02, 24.0),
        ] {
            let rating = rated(0.0, loss_ratio, codec);
            near(rating.equipment_impairment, impairment, 0.5);
        }
        // Half of what is left at Bpl percent in infinitely long bursts: 95 · Ppl / (Ppl/∞ + Bpl).
        let endless = equipment_impairment(G711, 0.0215, f64::INFINITY);
        near(endless, 47.5, 1e-9);
        // 95 · 2 / (2/2 + 4.3) by hand.
        near(equipment_impairment(G711, 0.02, 2.0), 35.849, 1e-3);
        near(rated(0.0, 1.0, G711).mos, 1.0, 0.05);
    }

    #[test]
    fn delay_costs_little_below_150_ms_and_much_above() {
        // By hand, X = log2(Ta/100 ms): Idd(200 ms) = 25 · (2^(1/6) − 3·(1 + 3^−6)^(1/6) + 2).
        near(long_delay(200.0), 3.045, 0.005);
        // X = 2: 25 · (65^(1/6) − 3·(1 + (2/3)^6)^(1/6) + 2).
        near(long_delay(400.0), 24.1, 0.1);
        assert_eq!(long_delay(100.0), 0.0);
        let loss = |ms: f64| rated(0.0, 0.0, G711).r - rated(ms / 1e3, 0.0, G711).r;
        // G.114, figure 1: nearly all are very satisfied to 150 ms, at 400 ms few still are.
        assert!(
            loss(50.0) < 2.0 && loss(150.0) < 7.0,
            "{} {}",
            loss(50.0),
            loss(150.0)
        );
        assert!((25.0..40.0).contains(&loss(400.0)), "{}", loss(400.0));
        let mut before = 0.0;
        for ms in 0..1000 {
            let now = loss(f64::from(ms));
            assert!(now >= before - 0.2, "{ms} ms: {now} after {before}");
            before = now;
        }
    }

    #[test]
    fn bursts_are_held_against_chance() {
        near(burst_ratio(0.0, 0.0), 1.0, 0.0);
        near(burst_ratio(0.1, 1.0 / 0.9), 1.0, 1e-12);
        near(burst_ratio(0.5, 4.0), 2.0, 1e-12);
        near(burst_ratio(0.05, 1.0), 1.0, 0.0);
    }
}
