//! Each radio and its link to the access point.

use plumb_model::results::host::{Interface, Wifi, WifiRate};
use plumb_model::units::si;

use crate::number;
use crate::table::{Facts, Table, list, on_off};

pub(super) fn tables(interfaces: &[Interface]) -> Vec<Table> {
    let radios = interfaces.iter();
    radios
        .filter_map(|interface| Some(table(&interface.name, interface.wifi.as_ref()?)))
        .collect()
}

fn table(name: &str, wifi: &Wifi) -> Table {
    let mut facts = Facts::new(format!("Wi-Fi {name}"));
    facts.fact("mode", wifi.mode.clone());
    facts.fact("network", wifi.network.clone());
    facts.fact(
        "channel",
        list([
            wifi.frequency_hz.map(|hz| format!("{:.0} MHz", hz / 1e6)),
            wifi.band().map(|band| format!("in the {band} band")),
            wifi.width_hz.map(wide),
        ]),
    );
    let power = |what: &str, dbm: Option<i32>| {
        dbm.map(|dbm| format!("{what}{} dBm", number::plain(dbm.into())))
    };
    facts.fact(
        "signal",
        list([
            power("", wifi.signal_dbm),
            power("on average ", wifi.average_signal_dbm),
            power("noise ", wifi.noise_dbm),
        ]),
    );
    let busy = wifi.busy_ratio.map(number::percent);
    facts.fact("busy", busy.map(|share| format!("{share} of the time")));
    facts.fact("sends at", wifi.send.as_ref().map(rate));
    facts.fact("receives at", wifi.receive.as_ref().map(rate));
    let count = |what: &str, n: Option<u64>| n.map(|n| format!("{n} {what}"));
    facts.fact(
        "frames",
        list([
            count("sent", wifi.sent),
            count("retries", wifi.retries),
            count("given up", wifi.failed),
        ]),
    );
    let beacons = wifi.beacons_lost.map(|n| n.to_string());
    facts.fact("beacons lost", beacons);
    facts.fact("connected for", wifi.connected_s.map(number::length));
    let save = wifi.power_save.map(|on| on_off(on).to_owned());
    facts.fact("power saving", save);
    facts.into_table()
}

fn wide(hz: f64) -> String {
    format!("{} wide", si(hz, "Hz"))
}

fn rate(rate: &WifiRate) -> String {
    list([
        rate.bps.map(number::rate),
        Some(rate.protocol.name().to_owned()),
        rate.mcs.map(|mcs| format!("MCS {mcs}")),
        rate.streams.map(|streams| match streams {
            1 => "1 stream".to_owned(),
            streams => format!("{streams} streams"),
        }),
        rate.width_hz.map(wide),
    ])
}
