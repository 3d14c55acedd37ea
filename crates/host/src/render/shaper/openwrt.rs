//! OpenWrt: a section of /etc/config/sqm.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::framing::Cells;

use super::rendering::{Rendering, Source, kbit_without_ptm};

pub(super) const RENDERING: Rendering = Rendering {
    lines,
    source: Some(Source {
        title: "SQM configuration /etc/config/sqm",
        publisher: "OpenWrt wiki",
        read: "2026-11",
        shell: true,
    }),
};

fn lines(action: &ShaperAction) -> Vec<String> {
    let (shaped, other) = match action.direction {
        OneDirection::Up => ("upload", "download"),
        OneDirection::Down => ("download", "upload"),
    };
    let layer = match action.cells {
        Cells::None | Cells::Ptm => "ethernet",
        Cells::Atm => "atm",
    };
    let kbit = kbit_without_ptm(action);
    let overhead = action.overhead_bytes;
    vec![
        "opkg update && opkg install sqm-scripts   # apk add from 25.12 on".to_owned(),
        // The device that IP leaves by, which with PPPoE is not the Ethernet port.
        "WAN=$(ubus call network.interface.wan status | jsonfilter -e '@.l3_device')".to_owned(),
        "uci set sqm.wan=queue".to_owned(),
        "uci set sqm.wan.interface=$WAN".to_owned(),
        format!("uci set sqm.wan.{shaped}={kbit}"),
        format!("# A rate of 0 leaves the {other} alone; one that is set is kept."),
        format!("uci -q get sqm.wan.{other} || uci set sqm.wan.{other}=0"),
        "uci set sqm.wan.qdisc=cake".to_owned(),
        "uci set sqm.wan.script=piece_of_cake.qos".to_owned(),
        format!("uci set sqm.wan.linklayer={layer}"),
        format!("uci set sqm.wan.overhead={overhead}"),
        format!("uci set sqm.wan.tcMPU={}", action.mpu_bytes),
        "uci set sqm.wan.enabled=1".to_owned(),
        "uci commit sqm && /etc/init.d/sqm enable && /etc/init.d/sqm restart".to_owned(),
    ]
}
