//! Radios as nl80211 describes them (`linux/nl80211.h`).

use plumb_model::results::host::{Wifi, WifiAirtime, WifiProtocol, WifiRate};

use super::NetlinkError;
use super::attribute::{Attribute, attributes, find, number};
use super::generic::Family;

const GET_INTERFACE: u8 = 5;
const GET_STATION: u8 = 17;
const GET_SCAN: u8 = 32;
const GET_SURVEY: u8 = 50;
const GET_POWER_SAVE: u8 = 62;

const IFINDEX: u16 = 3;
const IFTYPE: u16 = 5;
const STA_INFO: u16 = 21;
const WIPHY_FREQ: u16 = 38;
const BSS: u16 = 47;
const SSID: u16 = 52;
const PS_STATE: u16 = 93;
const SURVEY_INFO: u16 = 84;
const CHANNEL_WIDTH: u16 = 159;

/// The radios of the namespace, with the numbers of their interfaces. None where the kernel has
/// no wireless part, or no radio.
///
/// # Errors
/// Errors of the kernel, [`std::io::ErrorKind::NotFound`] among them where it has no such part.
pub fn radios() -> Result<Vec<(u32, Wifi)>, NetlinkError> {
    let mut family = Family::open("nl80211", "radios")?;
    let mut found: Vec<_> = family
        .list(GET_INTERFACE, &[])?
        .iter()
        .filter_map(|body| interface(body))
        .collect();
    for (index, wifi) in &mut found {
        let which = number(IFINDEX, *index);
        // An interface that is gone by now, or a driver that does not answer, leaves gaps.
        for body in family.list(GET_STATION, &which).unwrap_or_default() {
            station(&body, wifi);
        }
        for body in family.list(GET_SURVEY, &which).unwrap_or_default() {
            survey(&body, wifi);
        }
        // What is known of earlier scans; none is begun.
        for body in family.list(GET_SCAN, &which).unwrap_or_default() {
            heard(&body, wifi);
        }
        for body in family.one(GET_POWER_SAVE, &which).unwrap_or_default() {
            wifi.power_save = find(&body, PS_STATE).and_then(|a| a.u32()).map(|v| v != 0);
        }
    }
    Ok(found)
}

fn interface(body: &[u8]) -> Option<(u32, Wifi)> {
    let index = find(body, IFINDEX)?.u32()?;
    let wifi = Wifi {
        network: find(body, SSID).map(|a| String::from_utf8_lossy(a.value).into_owned()),
        mode: match find(body, IFTYPE).and_then(|a| a.u32()) {
            Some(1) => "ad hoc",
            Some(2) => "station",
            Some(3) => "access point",
            Some(6) => "monitor",
            Some(7) => "mesh",
            _ => "other",
        }
        .to_owned(),
        // Megahertz.
        frequency_hz: find(body, WIPHY_FREQ)
            .and_then(|a| a.u32())
            .map(|mhz| f64::from(mhz) * 1e6),
        width_hz: find(body, CHANNEL_WIDTH)
            .and_then(|a| a.u32())
            .and_then(channel_width),
        ..Wifi::default()
    };
    Some((index, wifi))
}

/// `enum nl80211_chan_width`.
fn channel_width(value: u32) -> Option<f64> {
    let mhz = match value {
        0 | 1 => 20.0,
        2 => 40.0,
        3 => 80.0,
        4 | 5 => 160.0,
        6 => 5.0,
        7 => 10.0,
        13 => 320.0,
        _ => return None,
    };
    Some(mhz * 1e6)
}

/// What a station knows of its link (`enum nl80211_sta_info`). An access point has one for each of
/// its clients; then the last is kept.
fn station(body: &[u8], wifi: &mut Wifi) {
    let Some(info) = find(body, STA_INFO) else {
        return;
    };
    let decibels = |a: &Attribute<'_>| a.u8().map(|v| i32::from(v.cast_signed()));
    let count = |a: &Attribute<'_>| a.u32().map(u64::from);
    for attribute in attributes(info.value) {
        match attribute.kind {
            7 => wifi.signal_dbm = decibels(&attribute),
            8 => wifi.send = Some(rate(attribute.value)),
            10 => wifi.sent = count(&attribute),
            11 => wifi.retries = count(&attribute),
            12 => wifi.failed = count(&attribute),
            13 => wifi.average_signal_dbm = decibels(&attribute),
            14 => wifi.receive = Some(rate(attribute.value)),
            16 => wifi.connected_s = attribute.u32().map(f64::from),
            18 => wifi.beacons_lost = count(&attribute),
            _ => {}
        }
    }
}

/// The channel in use, of a survey of all (`enum nl80211_survey_info`; times in milliseconds).
fn survey(body: &[u8], wifi: &mut Wifi) {
    let Some(info) = find(body, SURVEY_INFO) else {
        return;
    };
    // NL80211_SURVEY_INFO_IN_USE is a flag.
    if find(info.value, 3).is_none() {
        return;
    }
    wifi.noise_dbm = find(info.value, 2)
        .and_then(|a| a.u8())
        .map(|v| i32::from(v.cast_signed()));
    let time_s = |kind| {
        let ms = find(info.value, kind).and_then(|a| a.u64());
        ms.map(|ms| ms as f64 / 1e3)
    };
    wifi.airtime = time_s(4).zip(time_s(5)).map(|(all_s, busy_s)| WifiAirtime {
        all_s,
        busy_s,
        sent_s: time_s(8),
        own_received_s: time_s(11),
    });
    let airtime = wifi.airtime.filter(|airtime| airtime.all_s > 0.0);
    wifi.busy_ratio = airtime.map(|airtime| (airtime.busy_s / airtime.all_s).min(1.0));
}

/// Channels so far apart do not overlap where they have the least width, in Hz (IEEE 802.11-2020, 17.3.8.4).
const APART_HZ: f64 = 20e6;

/// An access point that was heard (`enum nl80211_bss`): on another channel only while the radio scanned.
fn heard(body: &[u8], wifi: &mut Wifi) {
    let field = |kind| {
        let bss = find(body, BSS)?;
        find(bss.value, kind)?.u32().map(f64::from)
    };
    // Megahertz, and milliseconds ago.
    let (Some(own_hz), Some(mhz), Some(ago_ms)) = (wifi.frequency_hz, field(2), field(10)) else {
        return;
    };
    if (mhz * 1e6 - own_hz).abs() >= APART_HZ {
        let ago_s = ago_ms / 1e3;
        wifi.scanned_ago_s = Some(wifi.scanned_ago_s.map_or(ago_s, |known| known.min(ago_s)));
    }
}

/// How frames are modulated (`enum nl80211_rate_info`).
fn rate(bytes: &[u8]) -> WifiRate {
    let mut read = WifiRate::default();
    let mut wide = Some(20e6);
    for attribute in attributes(bytes) {
        let byte = attribute.u8();
        match attribute.kind {
            // Both in units of 100 kbit/s; the one of 16 bits is absent where it would not fit.
            1 if read.bps.is_none() => {
                read.bps = attribute.u16().map(|v| f64::from(v) * 1e5);
            }
            5 => read.bps = attribute.u32().map(|v| f64::from(v) * 1e5),
            2 => {
                read.protocol = WifiProtocol::N;
                read.mcs = byte;
                // Eight of them for each number of streams (IEEE 802.11-2020, 19.5).
                read.streams = byte.map(|mcs| mcs / 8 + 1);
            }
            6 => (read.protocol, read.mcs) = (WifiProtocol::Ac, byte),
            13 => (read.protocol, read.mcs) = (WifiProtocol::Ax, byte),
            19 => (read.protocol, read.mcs) = (WifiProtocol::Be, byte),
            7 | 14 | 20 => read.streams = byte,
            3 => wide = Some(40e6),
            8 => wide = Some(80e6),
            9 | 10 => wide = Some(160e6),
            11 => wide = Some(10e6),
            12 => wide = Some(5e6),
            18 => wide = Some(320e6),
            // A share of the channel (OFDMA), which does not have the width of a channel.
            17 | 22 => wide = None,
            _ => {}
        }
    }
    read.width_hz = wide;
    read
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::attribute::encode;
    use super::*;
    use proptest::prelude::*;

    fn flag(kind: u16) -> Vec<u8> {
        encode(kind, &[])
    }

    #[test]
    fn a_station_on_802_11ax_is_read() {
        let body = [
            encode(IFINDEX, &3_u32.to_ne_bytes()),
            encode(IFTYPE, &2_u32.to_ne_bytes()),
            encode(SSID, b"attic"),
            encode(WIPHY_FREQ, &5180_u32.to_ne_bytes()),
            encode(CHANNEL_WIDTH, &3_u32.to_ne_bytes()),
        ];
        let (index, mut wifi) = interface(&body.concat()).unwrap();
        assert_eq!(index, 3);
        assert_eq!(
            (wifi.network.as_deref(), wifi.mode.as_str()),
            (Some("attic"), "station")
        );
        assert_eq!((wifi.band(), wifi.width_hz), (Some("5 GHz"), Some(80e6)));

        let bitrate = [
            encode(5, &12010_u32.to_ne_bytes()),
            encode(1, &12010_u16.to_ne_bytes()),
            encode(13, &[11]),
            encode(14, &[2]),
            flag(8),
        ];
        let info = [
            encode(7, &[(-61_i8).cast_unsigned()]),
            encode(8, &bitrate.concat()),
            encode(10, &1000_u32.to_ne_bytes()),
            encode(11, &70_u32.to_ne_bytes()),
            encode(12, &2_u32.to_ne_bytes()),
        ];
        station(&encode(STA_INFO, &info.concat()), &mut wifi);
        assert_eq!(wifi.signal_dbm, Some(-61));
        assert_eq!(
            (wifi.sent, wifi.retries, wifi.failed),
            (Some(1000), Some(70), Some(2))
        );
        assert_eq!(
            wifi.send,
            Some(WifiRate {
                bps: Some(1.201e9),
                protocol: WifiProtocol::Ax,
                mcs: Some(11),
                streams: Some(2),
                width_hz: Some(80e6),
            })
        );
    }

    #[test]
    fn the_generations_are_told_apart() {
        let n = rate(
            &[
                encode(2, &[15]),
                encode(1, &3000_u16.to_ne_bytes()),
                flag(3),
            ]
            .concat(),
        );
        assert_eq!(
            (n.protocol, n.streams, n.width_hz),
            (WifiProtocol::N, Some(2), Some(40e6))
        );
        assert_eq!(n.bps, Some(300e6));
        let old = rate(&encode(1, &540_u16.to_ne_bytes()));
        assert_eq!(
            (old.protocol, old.bps, old.streams),
            (WifiProtocol::Legacy, Some(54e6), None)
        );
        let be = rate(&[encode(19, &[13]), encode(20, &[2]), flag(18)].concat());
        assert_eq!((be.protocol, be.width_hz), (WifiProtocol::Be, Some(320e6)));
    }

    #[test]
    fn only_the_channel_in_use_counts() {
        let times = [
            encode(4, &1000_u64.to_ne_bytes()),
            encode(5, &250_u64.to_ne_bytes()),
        ]
        .concat();
        let mut wifi = Wifi::default();
        survey(&encode(SURVEY_INFO, &times), &mut wifi);
        assert_eq!(wifi.busy_ratio, None);
        let used = [times, flag(3), encode(2, &[(-92_i8).cast_unsigned()])].concat();
        survey(&encode(SURVEY_INFO, &used), &mut wifi);
        assert_eq!((wifi.busy_ratio, wifi.noise_dbm), (Some(0.25), Some(-92)));
        let others_ratio = |wifi: &Wifi| wifi.airtime.and_then(|airtime| airtime.others_ratio());
        assert_eq!(others_ratio(&wifi), None, "whose frames they were");
        let own = [
            used,
            encode(8, &30_u64.to_ne_bytes()),
            encode(11, &20_u64.to_ne_bytes()),
        ];
        survey(&encode(SURVEY_INFO, &own.concat()), &mut wifi);
        assert!(others_ratio(&wifi).is_some_and(|share| (share - 0.2).abs() < 1e-9));
    }

    #[test]
    fn what_is_heard_on_another_channel_was_heard_by_a_scan() {
        let mut wifi = Wifi {
            frequency_hz: Some(5180e6),
            ..Wifi::default()
        };
        let mut hear = |mhz: u32, ago_ms: u32| {
            let bss = [
                encode(2, &mhz.to_ne_bytes()),
                encode(10, &ago_ms.to_ne_bytes()),
            ];
            heard(&encode(BSS, &bss.concat()), &mut wifi);
            wifi.scanned_ago_s
        };
        assert_eq!(hear(5180, 50), None, "its own channel");
        assert_eq!(hear(2412, 9000), Some(9.0));
        assert_eq!(hear(5240, 4000), Some(4.0));
        assert_eq!(hear(5500, 7000), Some(4.0), "the latest counts");
    }

    proptest! {
        #[test]
        fn never_panics(body in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut wifi = Wifi::default();
            let _ = interface(&body);
            station(&encode(STA_INFO, &body), &mut wifi);
            survey(&encode(SURVEY_INFO, &body), &mut wifi);
            heard(&encode(BSS, &body), &mut wifi);
            let _ = rate(&body);
        }
    }
}
