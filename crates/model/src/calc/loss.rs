//! What loss each congestion control can stand at a rate, and the reverse.

use super::{CalcError, Calculation, above_zero, calculation};
use crate::formula::response::{Algorithm, SMALL_LOSS_RATIO, rate, reno_with_timeouts, tolerance};
use crate::units::{human_seconds, share, si};
use crate::vocabulary::Vocabulary as _;

/// What random loss each congestion control can stand at a rate.
///
/// # Errors
/// When a quantity is zero.
pub fn loss_for_rate(rate_bps: f64, rtt_s: f64, mss_bytes: f64) -> Result<Calculation, CalcError> {
    above_zero("rate", rate_bps)?;
    let mut answers = response(rtt_s, mss_bytes)?;
    for &(algorithm, name) in Algorithm::WORDS {
        let stands = tolerance(algorithm, rate_bps, rtt_s, mss_bytes);
        let packets = 1.0 / stands;
        let apart = packets * mss_bytes * 8.0 / rate_bps;
        answers = answers.answer(
            &format!("{}_loss_ratio", name.to_ascii_lowercase()),
            stands,
            format!(
                "{name:6} holds {} while no more than {} is lost: one packet in {}, one each {}",
                si(rate_bps, "bit/s"),
                share(stands),
                many(packets),
                human_seconds(apart)
            ),
        );
    }
    let reno = tolerance(Algorithm::Reno, rate_bps, rtt_s, mss_bytes);
    let cubic = tolerance(Algorithm::Cubic, rate_bps, rtt_s, mss_bytes);
    answers.warning = beyond_small_loss(reno.max(cubic), rtt_s, mss_bytes);
    Ok(answers)
}

/// What rate each congestion control holds while that share is lost at random; no more than the line's, where it is
/// known.
///
/// # Errors
/// When a quantity is zero, or everything is lost.
pub fn rate_at_loss(
    loss_ratio: f64,
    rtt_s: f64,
    mss_bytes: f64,
    line_bps: Option<f64>,
) -> Result<Calculation, CalcError> {
    if loss_ratio >= 1.0 {
        return Err(CalcError::AllLost);
    }
    let line = line_bps.map(|bps| above_zero("rate", bps)).transpose()?;
    let mut answers = response(rtt_s, mss_bytes)?.answer(
        "loss_ratio",
        loss_ratio,
        match loss_ratio {
            0.0 => "Nothing is lost:".to_owned(),
            lost => format!(
                "{} is lost, one packet in {}:",
                share(lost),
                many(1.0 / lost)
            ),
        },
    );
    for &(algorithm, name) in Algorithm::WORDS {
        let held = rate(
            algorithm,
            loss_ratio,
            rtt_s,
            mss_bytes,
            line.unwrap_or(f64::INFINITY),
        );
        let text = match (held, line) {
            (0.0, _) => format!(
                "{name:6} gives way: it stands {}",
                share(tolerance(algorithm, 1.0, rtt_s, mss_bytes))
            ),
            (held, None) if held.is_infinite() => {
                format!("{name:6} holds whatever the line carries, less what is lost")
            }
            (held, _) => format!("{name:6} holds {}", si(held, "bit/s")),
        };
        answers = answers.answer(
            &format!("{}_bps", name.to_ascii_lowercase()),
            (held > 0.0).then_some(held),
            text,
        );
    }
    answers.warning = beyond_small_loss(loss_ratio, rtt_s, mss_bytes);
    Ok(answers)
}

/// An answer about response functions, still empty.
fn response(rtt_s: f64, mss_bytes: f64) -> Result<Calculation, CalcError> {
    above_zero("RTT", rtt_s)?;
    above_zero("segment", mss_bytes)?;
    let sources: Vec<_> = Algorithm::WORDS
        .iter()
        .map(|(algorithm, name)| format!("{name}: {}", algorithm.source()))
        .collect();
    Ok(calculation(
        "loss",
        format!(
            "One connection, segments of {mss_bytes} bytes, loss at random. {}.",
            sources.join("; ")
        ),
    ))
}

/// What is to be said where more is lost than the formulas of Reno and CUBIC are for.
fn beyond_small_loss(loss_ratio: f64, rtt_s: f64, mss_bytes: f64) -> Option<String> {
    (loss_ratio > SMALL_LOSS_RATIO).then(|| {
        format!(
            "The formulas of Reno and CUBIC are for a loss up to some {} (Mathis et al. 1997): above it timeouts, which they leave out, take more and more of the rate. At {} Reno holds about {} with its timeouts (Padhye et al. 1998), and CUBIC no more.",
            share(SMALL_LOSS_RATIO),
            share(loss_ratio),
            si(reno_with_timeouts(loss_ratio, rtt_s, mss_bytes), "bit/s")
        )
    })
}

/// A count of which the first digits matter.
fn many(count: f64) -> String {
    match count {
        n if n >= 1e12 => format!("{n:.1e}"),
        n if n >= 1e9 => format!("{:.2} billion", n / 1e9),
        n if n >= 1e6 => format!("{:.2} million", n / 1e6),
        n if n < 10.0 && (n - n.round()).abs() >= 0.05 => format!("{n:.1}"),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn what_each_can_stand_is_as_people_read_it() {
        let stands = {
            let answers = loss_for_rate(10e9, 0.1, 1448.0).unwrap().answers;
            let lines: Vec<_> = answers.into_iter().map(|a| a.text).collect();
            lines.join("\n")
        };
        assert!(
            stands.contains(
                "no more than 2.0e-8 % is lost: one packet in 4.97 billion, one each 1 h 36 min"
            ),
            "{stands}"
        );
        assert!(stands.contains("no more than 20 % is lost: one packet in 5, one each 6 µs"));
    }

    #[test]
    fn what_was_understood_of_a_loss_is_said_and_a_large_one_carries_a_warning() {
        let small = rate_at_loss(0.001, 0.1, 1448.0, None).unwrap();
        assert_eq!(small.answers[0].text, "0.1 % is lost, one packet in 1000:");
        assert_eq!(small.warning, None);
        // Without a line's rate Reno's is bounded by the loss alone.
        assert!(
            small
                .value("reno_bps")
                .is_some_and(|bps| (4e6..5e6).contains(&bps))
        );
        let bbr = small
            .answers
            .iter()
            .find(|a| a.name == "bbrv1_bps")
            .unwrap();
        assert!(bbr.value.is_none() && bbr.text.contains("whatever the line carries"));
        let large = rate_at_loss(0.1, 0.1, 1448.0, Some(1e9)).unwrap();
        let warning = large.warning.unwrap();
        assert!(
            warning.contains("timeouts") && warning.contains("At 10 % Reno holds about"),
            "{warning}"
        );
        assert!(
            loss_for_rate(100e3, 0.01, 1448.0)
                .unwrap()
                .warning
                .is_some()
        );
        assert_eq!(loss_for_rate(1e9, 0.1, 1448.0).unwrap().warning, None);
        assert_eq!(
            rate_at_loss(1.0, 0.1, 1448.0, None),
            Err(CalcError::AllLost)
        );
    }
}
