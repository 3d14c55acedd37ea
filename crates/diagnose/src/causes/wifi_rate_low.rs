//! A radio sends at a low rate although its signal is strong.
//!
//! How fast a radio may send follows from modulation, width of the channel and generation of the standard; a load gets half
//! to two thirds of that.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::need::Need;
use plumb_model::results::Direction;
use plumb_model::results::host::{Wifi, WifiProtocol, WifiRate};
use plumb_model::units::si;

use crate::Case;
use crate::entry::{Entry, Family};
use crate::evidence::{Carried, Radio, fact};

pub(crate) const CAUSE: Entry = Entry {
    family: Family::Ends,
    vanishes: "over a cable, or with a wider channel or a newer access point, the same load carries more",
    needs: &[Need::Machine, Need::Upload, Need::Download],
    resembles: &[
        (
            Cause::WifiWeak,
            "there the signal is weak, and no setting makes it faster",
        ),
        (
            Cause::WifiRetries,
            "there frames are retried, whatever their rate",
        ),
    ],
    yields_to: &[Cause::WifiWeak],
    examine: |case| {
        let directions = [Direction::Up, Direction::Down].into_iter();
        let found = directions.filter_map(|direction| held_back(case, direction));
        found.take(1).collect()
    },
    ..Entry::PLAIN
};

/// A load of TCP gets such a share of the radio's rate where the radio is what holds it back: half to two thirds, less
/// without aggregation and more with much of it. Outside of it, either the rate that was read is not the rate of the
/// load's frames, but of single frames on an idle radio, as often happens, or something else limits.
const CARRIED_RATIO: std::ops::RangeInclusive<f64> = 0.4..=0.9;

/// Share of the load's queue that stands before the gateway, from which on that is the narrow place.
const LOCAL_RATIO: f64 = 0.5;

/// The weakest signal in dBm that a receiver must understand in 20 MHz, by modulation and coding 0 to 11 (IEEE 802.11-2020,
/// table 21-25; IEEE 802.11ax-2021, table 27-51); each doubling of the width takes 3 dB more.
const SENSITIVITY_DBM: [f64; 12] = [
    -82.0, -79.0, -77.0, -74.0, -70.0, -66.0, -65.0, -64.0, -59.0, -57.0, -54.0, -52.0,
];

/// Bits that a subcarrier has in a symbol, by modulation and coding (same tables): the rate is in proportion to them.
const BITS: [f64; 12] = [
    0.5,
    1.0,
    1.5,
    2.0,
    3.0,
    4.0,
    4.5,
    5.0,
    6.0,
    20.0 / 3.0,
    7.5,
    25.0 / 3.0,
];

/// Decibels that are left for fading, and for transmitters that send the highest modulations with less power.
const MARGIN_DB: f64 = 10.0;

/// A half of what the signal gives is low.
const LOW_RATIO: f64 = 0.5;

/// Stations of 802.11ac and later can use channels of this width in 5 GHz (IEEE 802.11-2020, 21.1.1), in Hz.
const USUAL_WIDTH_HZ: f64 = 80e6;

/// The rate was read before the load.
const CONFIDENCE: f64 = 0.7;

fn held_back(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let radio = case.radio()?;
    let (rate, field) = match direction {
        Direction::Up => (radio.wifi.send?, "send.bps"),
        _ => (radio.wifi.receive?, "receive.bps"),
    };
    let bps = rate.bps.filter(|bps| *bps > 0.0)?;
    let carried = case.full_load(direction)?;
    if !CARRIED_RATIO.contains(&(carried.bps() / bps)) {
        return None;
    }
    let why = why(radio.wifi, rate, f64::from(radio.signal_dbm()?))?;
    let path = case.loaded(direction).and_then(|l| l.result.path.as_ref());
    let is_narrowest = path.is_some_and(|path| path.local_ratio >= Some(LOCAL_RATIO));
    Some(finding(radio, carried, (bps, field), &why, is_narrowest))
}

fn finding(
    radio: Radio<'_>,
    carried: Carried<'_>,
    (bps, field): (f64, &str),
    why: &str,
    is_narrowest: bool,
) -> Finding {
    Finding {
        cause: Cause::WifiRateLow,
        place: Place::LocalSegment,
        // A line that happens to carry as much would be no faster with a faster radio.
        severity: match is_narrowest {
            true => Severity::Warning,
            false => Severity::Info,
        },
        confidence: CONFIDENCE,
        matters_for: Vec::new(),
        summary: format!(
            "The Wi-Fi of {} carries {} of {}loads at a radio rate of {}: {why}.",
            radio.interface.name,
            si(carried.bps(), "bit/s"),
            carried.result.direction.name(),
            si(bps, "bit/s"),
        ),
        evidence: vec![
            fact(
                carried.measurement,
                "bps",
                carried.bps(),
                "rate of the load, against the least part of the radio's rate that a load gets which only the radio limits",
                CARRIED_RATIO.start() * bps,
            ),
            Evidence {
                measurement: radio.measurement().to_owned(),
                field: radio.field(field),
                value: bps.into(),
                rule: format!("rate of the radio: {why}"),
                threshold: (bps / LOW_RATIO).into(),
            },
        ],
        fixes: vec![Fix::advice(
            Actor::Router,
            "Use 5 or 6 GHz with a channel of 80 MHz where neighbours leave one free, and an access point of Wi-Fi 5 or later; move what else sends in that band. A cable needs none of it.",
            "`plumb host` shows a higher rate of the radio, and the load carries more.",
        )],
        kb: "host".to_owned(),
    }
}

/// Why the rate is low for a signal of so many dBm, as a clause; `None` where it is not, or that is not known.
fn why(wifi: &Wifi, rate: WifiRate, signal_dbm: f64) -> Option<String> {
    if signal_dbm < f64::from(super::wifi_weak::WEAK_DBM) {
        return None;
    }
    if rate.protocol == WifiProtocol::Legacy {
        return Some("it uses a generation before Wi-Fi 4, of 54 Mbit/s at most".to_owned());
    }
    let mcs = match rate.protocol {
        // Eight for each number of streams.
        WifiProtocol::N => rate.mcs.map(|mcs| mcs % 8),
        _ => rate.mcs,
    };
    if let (Some(mcs), Some(width_hz)) = (mcs, rate.width_hz.or(wifi.width_hz)) {
        let bits = BITS.get(usize::from(mcs)).copied();
        let of_signal = bits_of(rate.protocol, signal_dbm, width_hz);
        if bits.is_some_and(|bits| bits <= LOW_RATIO * of_signal) {
            return Some(format!(
                "its signal of {signal_dbm:.0} dBm gives at least twice that, so that something else disturbs it"
            ));
        }
    }
    let width_hz = wifi.width_hz.filter(|hz| *hz < USUAL_WIDTH_HZ)?;
    let is_wide_band = matches!(wifi.band(), Some("5 GHz" | "6 GHz"));
    let is_wide = is_wide_band && rate.protocol != WifiProtocol::N;
    is_wide.then(|| format!("its channel is only {} wide", si(width_hz, "Hz")))
}

/// Bits that a subcarrier has in a symbol with the best modulation that such a signal is good for; 0 where it is for none.
fn bits_of(protocol: WifiProtocol, signal_dbm: f64, width_hz: f64) -> f64 {
    // Modulations that the generation has.
    let most = match protocol {
        WifiProtocol::Legacy | WifiProtocol::N => 8,
        WifiProtocol::Ac => 10,
        WifiProtocol::Ax | WifiProtocol::Be => 12,
    };
    let wider_db = 10.0 * (width_hz / 20e6).max(1.0).log10();
    let modulations = SENSITIVITY_DBM.iter().zip(BITS).take(most);
    let heard = modulations.filter(|(least, _)| **least + wider_db + MARGIN_DB <= signal_dbm);
    heard.map(|(_, bits)| bits).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::host::tests::on_wifi;
    use crate::testing::{beside_gateway, carrying, found_in};
    use plumb_model::results::Outcome;

    fn radio(protocol: WifiProtocol, mcs: u8, width_hz: f64, bps: f64, signal_dbm: i32) -> Wifi {
        Wifi {
            frequency_hz: Some(5.18e9),
            width_hz: Some(width_hz),
            average_signal_dbm: Some(signal_dbm),
            send: Some(WifiRate {
                bps: Some(bps),
                protocol,
                mcs: Some(mcs),
                streams: Some(2),
                width_hz: Some(width_hz),
            }),
            ..Wifi::default()
        }
    }

    /// What is found where an upload carried so much through that radio, and so much of its queue stood before the gateway.
    fn found(wifi: Wifi, carried_bps: f64, local_ratio: f64) -> Vec<Severity> {
        let mut gateway = beside_gateway(0.002, 0.001);
        if let Outcome::LoadedLatency(loaded) = &mut gateway.outcome {
            loaded.direction = Direction::Up;
            loaded.path.as_mut().unwrap().local_ratio = Some(local_ratio);
        }
        let measurements = [on_wifi(wifi), carrying(Direction::Up, carried_bps), gateway];
        let found = found_in(CAUSE.examine, &measurements).into_iter();
        found.map(|finding| finding.severity).collect()
    }

    #[test]
    fn a_low_modulation_is_found_where_the_signal_is_strong() {
        use Severity::{Info, Warning};
        // 2 streams of 80 MHz: 117 Mbit/s by MCS 1.
        let slow = |signal| radio(WifiProtocol::Ac, 1, 80e6, 117e6, signal);
        assert_eq!(found(slow(-45), 70e6, 0.9), [Warning]);
        assert_eq!(found(slow(-45), 70e6, 0.1), [Info], "the line is as slow");
        assert_eq!(found(slow(-68), 70e6, 0.9), [], "all that the signal gives");
        assert_eq!(found(slow(-75), 70e6, 0.9), [], "a weak one");
        assert_eq!(found(slow(-45), 20e6, 0.9), [], "something else limits");
        assert_eq!(found(slow(-45), 300e6, 0.9), [], "a rate of idle frames");
        let fast = radio(WifiProtocol::Ac, 9, 80e6, 780e6, -45);
        assert_eq!(found(fast, 500e6, 0.9), []);
    }

    #[test]
    fn narrow_channels_and_old_generations_are_low() {
        let narrow = radio(WifiProtocol::Ax, 9, 20e6, 229e6, -45);
        assert_eq!(found(narrow, 140e6, 0.9), [Severity::Warning]);
        let mut crowded = radio(WifiProtocol::Ax, 9, 20e6, 229e6, -45);
        crowded.frequency_hz = Some(2.437e9);
        assert_eq!(found(crowded, 140e6, 0.9), [], "2.4 GHz has no room");
        let old = radio(WifiProtocol::Legacy, 0, 20e6, 54e6, -50);
        assert_eq!(found(old, 24e6, 0.9), [Severity::Warning]);
    }
}
