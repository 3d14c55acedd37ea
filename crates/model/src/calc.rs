//! The field's formulas as questions with answers, as `plumb calc` shows them: what was given, what comes
//! out, and what was counted.

mod loss;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::formula::delay::{Medium, propagation, serialisation};
use crate::formula::goodput::{Headers, goodput, payload};
use crate::formula::transfer::{Transfer, transfer_time};
use crate::formula::{
    RECEIVE_WINDOW_RATIO, WINDOW_OF_A_BUFFER, bandwidth_delay_product, buffer_for,
    largest_scaled_window, window_limited_rate, window_scale_for,
};
use crate::framing::Framing;
use crate::units::{human_seconds, si};

pub use loss::{loss_for_rate, rate_at_loss};

/// Version of the document.
pub const SCHEMA: &str = "plumb.calc/1";

/// The answer to one question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Calculation {
    /// Version of the document, always `plumb.calc/1`.
    pub schema: String,
    /// What was asked: `bdp`, `goodput`, `window`, `scale`, `loss`, `delay`, `transfer`.
    pub question: String,
    /// The answers, in the order in which they are shown.
    pub answers: Vec<Quantity>,
    /// What was counted, and where the formula is from.
    pub method: String,
    /// Why the numbers are to be taken with care; absent where they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// A number that came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Quantity {
    /// Name of the quantity; its suffix is the unit, which is a base one.
    pub name: String,
    /// Value in the unit that the suffix of the name has. Null where there is none, as a window scale beyond 14.
    pub value: Option<f64>,
    /// The same for people, with its meaning.
    pub text: String,
}

/// A question that has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CalcError {
    /// The headers fill the packet.
    #[error("{headers} bytes of headers leave no room in an MTU of {mtu}: give a larger --mtu")]
    NoRoom {
        /// Headers of each packet, in bytes.
        headers: u32,
        /// MTU of the path, in bytes.
        mtu: u32,
    },
    /// A quantity that must be above zero.
    #[error("the {0} must be above zero")]
    Zero(&'static str),
    /// Nothing arrives at that loss.
    #[error("where all is lost nothing arrives: give a loss below 100 %")]
    AllLost,
    /// Neither a rate nor a loss.
    #[error(
        "give the rate that is to be held (--rate), or the loss (--loss) for the rate that each holds"
    )]
    RateOrLoss,
}

fn calculation(question: &str, method: impl Into<String>) -> Calculation {
    Calculation {
        schema: SCHEMA.to_owned(),
        question: question.to_owned(),
        answers: Vec::new(),
        method: method.into(),
        warning: None,
    }
}

impl Calculation {
    fn answer(mut self, name: &str, value: impl Into<Option<f64>>, text: String) -> Self {
        self.answers.push(Quantity {
            name: name.to_owned(),
            value: value.into().filter(|v| v.is_finite()),
            text,
        });
        self
    }

    /// The number of that name.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.answers
            .iter()
            .find(|answer| answer.name == name)?
            .value
    }
}

fn above_zero(what: &'static str, value: f64) -> Result<f64, CalcError> {
    if value > 0.0 && value.is_finite() {
        Ok(value)
    } else {
        Err(CalcError::Zero(what))
    }
}

/// Bytes in flight that fill a path, and what they need of buffers and window scale.
///
/// # Errors
/// When a quantity is zero.
pub fn bdp(rate_bps: f64, rtt_s: f64) -> Result<Calculation, CalcError> {
    let bytes = bandwidth_delay_product(above_zero("rate", rate_bps)?, above_zero("RTT", rtt_s)?);
    let buffer = buffer_for(bytes);
    let scale = window_scale_for(bytes);
    Ok(calculation(
        "bdp",
        format!(
            "rate x RTT / 8. Of Linux, {WINDOW_OF_A_BUFFER}: the buffer is what a receiver needs, in the next power of two, at least 4 MiB."
        ),
    )
    .answer(
        "bdp_bytes",
        bytes,
        format!(
            "{} ({}) in flight fill {} over {}",
            si(bytes, "B"),
            binary(bytes),
            si(rate_bps, "bit/s"),
            precise(rtt_s)
        ),
    )
    .answer(
        "buffer_bytes",
        buffer as f64,
        buffer_words(buffer, bytes, rtt_s),
    )
    .answer(
        "window_scale",
        scale.map(f64::from),
        scale.map_or_else(
            || "no window scale announces such a window: use several connections".to_owned(),
            |scale| format!("window scale {scale} or more announces it"),
        ),
    ))
}

/// What the buffer for so many bytes in flight is worth: beyond what kernels take, none allows them.
fn buffer_words(buffer: u64, in_flight_bytes: f64, rtt_s: f64) -> String {
    let usable = buffer as f64 * RECEIVE_WINDOW_RATIO;
    let size = binary(buffer as f64);
    if usable >= in_flight_bytes {
        return format!("a buffer of {buffer} bytes ({size}) allows it");
    }
    let carried = window_limited_rate(usable, rtt_s);
    format!(
        "{buffer} bytes ({size}) are the largest buffer that kernels take, with which one connection carries about {}: use {:.0} connections",
        si(carried, "bit/s"),
        (in_flight_bytes / usable).ceil()
    )
}

/// Bytes in binary prefixes, as buffers are given, to four digits.
fn binary(bytes: f64) -> String {
    let (scale, unit) = match bytes {
        b if b >= 1_073_741_824.0 => (1_073_741_824.0, "GiB"),
        b if b >= 1_048_576.0 => (1_048_576.0, "MiB"),
        b if b >= 1024.0 => (1024.0, "KiB"),
        _ => (1.0, "B"),
    };
    let scaled = bytes / scale;
    let decimals = match scaled {
        s if s == s.round() || s >= 1000.0 => 0,
        s if s >= 100.0 => 1,
        s if s >= 10.0 => 2,
        _ => 3,
    };
    format!("{scaled:.decimals$} {unit}")
}

/// What a line carries of payload, by the usual count of headers and, where asked, by others.
///
/// # Errors
/// When the headers leave no room, or the rate is zero.
pub fn payload_rate(
    rate_bps: f64,
    mtu_bytes: u32,
    framing: Framing,
    headers: Headers,
) -> Result<Calculation, CalcError> {
    above_zero("rate", rate_bps)?;
    let none = || CalcError::NoRoom {
        headers: headers.bytes(),
        mtu: mtu_bytes,
    };
    let bytes = payload(mtu_bytes, headers).ok_or_else(none)?;
    let carried = goodput(rate_bps, mtu_bytes, framing, headers).ok_or_else(none)?;
    let wire = framing.wire_bytes(mtu_bytes);
    let counted: Vec<_> = headers
        .parts()
        .into_iter()
        .map(|(what, bytes)| format!("{what} {bytes}"))
        .collect();
    Ok(calculation(
        "goodput",
        format!(
            "Counted of {wire} bytes on the line: {} of the link ({framing}), {}; {bytes} of payload remain.",
            i64::from(wire) - i64::from(mtu_bytes),
            counted.join(", ")
        ),
    )
    .answer(
        "goodput_bps",
        carried,
        format!(
            "{} of payload on {} ({:.2} %)",
            to_the_thousandth(carried),
            si(rate_bps, "bit/s"),
            carried / rate_bps * 100.0
        ),
    )
    .answer("payload_bytes", f64::from(bytes), format!("{bytes} bytes of payload a packet"))
    .answer("wire_bytes", f64::from(wire), format!("{wire} bytes on the line a packet"))
    .answer(
        "packets_pps",
        rate_bps / 8.0 / f64::from(wire.max(1)),
        format!("{:.0} packets a second", rate_bps / 8.0 / f64::from(wire.max(1))),
    ))
}

/// A rate as guides print it: `2.354 Gbit/s`, `9.493 Mbit/s`.
fn to_the_thousandth(bps: f64) -> String {
    match bps {
        v if v >= 1e9 => format!("{:.3} Gbit/s", v / 1e9),
        v if v >= 1e6 => format!("{:.3} Mbit/s", v / 1e6),
        v if v >= 1e3 => format!("{:.3} kbit/s", v / 1e3),
        v => format!("{v:.3} bit/s"),
    }
}

/// The most that one connection carries with a window over a round trip.
///
/// # Errors
/// When a quantity is zero.
pub fn window(window_bytes: f64, rtt_s: f64) -> Result<Calculation, CalcError> {
    let carried = window_limited_rate(
        above_zero("window", window_bytes)?,
        above_zero("RTT", rtt_s)?,
    );
    Ok(
        calculation("window", "window x 8 / RTT, however fast the line is.").answer(
            "rate_bps",
            carried,
            format!(
                "{} is the most that {} carry over {}",
                to_the_thousandth(carried),
                binary(window_bytes),
                precise(rtt_s)
            ),
        ),
    )
}

/// The table of window scales, with the rate of each over a round trip where one is given.
pub fn scales(rtt_s: Option<f64>) -> Calculation {
    (0..=14).filter_map(|scale| Some((scale, largest_scaled_window(scale)?))).fold(
        calculation(
            "scale",
            "65535 << scale (RFC 7323). The scale is fixed at the handshake by each end for what it receives; the window is in every segment.",
        ),
        |table, (scale, window)| {
            let rate = rtt_s.filter(|rtt| *rtt > 0.0).map_or_else(String::new, |rtt| {
                format!(", {} over {}", si(window_limited_rate(window as f64, rtt), "bit/s"), precise(rtt))
            });
            table.answer(
                &format!("scale_{scale}_window_bytes"),
                window as f64,
                format!("scale {scale:2}: {window} bytes ({}){rate}", binary((window + (1 << scale)) as f64)),
            )
        },
    )
}

/// How long packets take to leave, and to arrive.
///
/// # Errors
/// When there is nothing to compute, or a quantity is zero.
pub fn delay(
    packet: Option<(f64, f64)>,
    length: Option<(f64, Medium)>,
) -> Result<Calculation, CalcError> {
    let mut answers = calculation(
        "delay",
        "Serialisation: bytes x 8 / rate. Propagation: length over the speed of light, divided by 1.468 in fibre, times 0.66 in copper. Cables are longer than the distance as the crow flies, often by half.",
    );
    if let Some((bytes, rate_bps)) = packet {
        let time = serialisation(above_zero("size", bytes)?, above_zero("rate", rate_bps)?);
        answers = answers.answer(
            "serialisation_s",
            time,
            format!(
                "{} to send {bytes} bytes at {}",
                precise(time),
                si(rate_bps, "bit/s")
            ),
        );
    }
    if let Some((length_m, medium)) = length {
        let time = propagation(above_zero("length", length_m)?, medium);
        answers = answers
            .answer(
                "propagation_s",
                time,
                format!("{} one way over {:.0} km", precise(time), length_m / 1000.0),
            )
            .answer(
                "rtt_s",
                2.0 * time,
                format!("{} there and back", precise(2.0 * time)),
            );
    }
    if answers.answers.is_empty() {
        return Err(CalcError::Zero("rate or the length"));
    }
    Ok(answers)
}

/// A time to the nanosecond below a second, with no digits that say nothing: `163.6 ms`, `600 µs`.
fn precise(seconds: f64) -> String {
    let (scaled, unit) = match seconds {
        s if s >= 1.0 => return human_seconds(s),
        s if s >= 1e-3 => (s * 1e3, "ms"),
        s if s >= 1e-6 => (s * 1e6, "µs"),
        s => (s * 1e9, "ns"),
    };
    let text = format!("{scaled:.3}");
    format!(
        "{} {unit}",
        text.trim_end_matches('0').trim_end_matches('.')
    )
}

/// How long a transfer takes.
///
/// # Errors
/// When a quantity is zero.
pub fn transfer(transfer: Transfer) -> Result<Calculation, CalcError> {
    above_zero("size", transfer.bytes)?;
    above_zero("rate", transfer.rate_bps)?;
    above_zero("RTT", transfer.rtt_s)?;
    if let Some(window) = transfer.window_bytes {
        above_zero("window", window)?;
    }
    let time = transfer_time(transfer);
    let alone = transfer.bytes * 8.0 / transfer.rate_bps;
    Ok(calculation(
        "transfer",
        "No loss, an empty path: one RTT to connect, windows that double each RTT from 10 segments (RFC 6928), then the rate of the path or of the window, half an RTT for the last byte. The rate is of payload (plumb calc goodput).",
    )
    .answer("time_s", time.time_s, format!("{} for {}", human_seconds(time.time_s), si(transfer.bytes, "B")))
    .answer(
        "average_bps",
        time.average_bps,
        format!("{} on average", si(time.average_bps, "bit/s")),
    )
    .answer(
        "slow_start_rounds",
        f64::from(time.slow_start_rounds),
        format!(
            "{} round trips of slow start, in which {} go",
            time.slow_start_rounds,
            si(time.slow_start_bytes, "B")
        ),
    )
    .answer(
        "line_time_s",
        alone,
        format!("{} it would take at the full rate from the first bit", human_seconds(alone)),
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;

    #[test]
    fn answers_name_what_was_counted() {
        let framing = "ethernet".parse().unwrap();
        let usual = payload_rate(2.5e9, 1500, framing, Headers::usual(false)).unwrap();
        assert!(
            usual.method.contains("timestamps 10, padding 2; 1448"),
            "{usual:?}"
        );
        assert!(
            usual
                .answers
                .iter()
                .any(|a| a.text.contains("2.354 Gbit/s"))
        );
        let generous = payload_rate(2.5e9, 1500, framing, Headers::generous(false)).unwrap();
        assert!(
            generous.method.contains("SACK blocks 24; 1424"),
            "{generous:?}"
        );
        let path = bdp(10e9, 0.05).unwrap();
        assert_eq!(path.value("bdp_bytes"), Some(62.5e6));
        assert_eq!(path.value("buffer_bytes"), Some(134_217_728.0));
        assert_eq!(path.value("window_scale"), Some(10.0));
        let huge = bdp(400e9, 0.6).unwrap();
        let buffer = huge.answers.iter().find(|a| a.name == "buffer_bytes");
        assert!(
            buffer
                .unwrap()
                .text
                .contains("18.6 Gbit/s: use 22 connections"),
            "{buffer:?}"
        );
        assert_eq!(scales(None).answers.len(), 15);
        assert_eq!(
            scales(None).value("scale_14_window_bytes"),
            Some(1_073_725_440.0)
        );
    }

    #[test]
    fn numbers_are_as_people_read_them() {
        let text = |calculation: &Calculation| {
            let lines: Vec<_> = calculation.answers.iter().map(|a| a.text.clone()).collect();
            lines.join("\n")
        };
        assert!(text(&bdp(1e9, 1e-3).unwrap()).contains("125 kB (122.1 KiB)"));
        assert!(text(&bdp(2.5e9, 0.1636).unwrap()).contains("over 163.6 ms"));
        let slow = Transfer {
            bytes: 1e12,
            rate_bps: 1e6,
            rtt_s: 0.1,
            mss_bytes: 1448.0,
            window_bytes: None,
        };
        let slow = text(&transfer(slow).unwrap());
        assert!(
            slow.contains("92 days 14 h for 1.00 TB") && slow.contains("1.00 Mbit/s on average"),
            "{slow}"
        );
        assert!(
            text(&window(1e9, 1e-6).unwrap()).contains("Gbit/s is the most that 953.7 MiB carry")
        );
    }

    #[test]
    fn impossible_questions_are_refused() {
        assert_eq!(bdp(0.0, 0.1), Err(CalcError::Zero("rate")));
        assert_eq!(window(1.0, 0.0), Err(CalcError::Zero("RTT")));
        assert!(delay(None, None).is_err());
        let none = payload_rate(1e9, 40, Framing::default(), Headers::usual(false));
        assert!(matches!(none, Err(CalcError::NoRoom { .. })));
    }
}
