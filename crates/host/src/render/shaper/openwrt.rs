//! OpenWrt: a section of /etc/config/sqm.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::framing::Cells;

use super::rendering::{Lines, Rendering, Source, kbit_without_ptm, noun};

pub(super) const RENDERING: Rendering = Rendering {
    lines: Lines::OfAll(lines),
    source: Some(Source {
        title: "SQM configuration /etc/config/sqm",
        publisher: "OpenWrt wiki",
        read: "2026-11",
        shell: true,
    }),
};

fn lines(actions: &[ShaperAction]) -> Vec<String> {
    let Some(first) = actions.first() else {
        return Vec::new();
    };
    let layer = match first.cells {
        Cells::None | Cells::Ptm => "ethernet",
        Cells::Atm => "atm",
    };
    let mut lines = vec![
        "# From OpenWrt 25.12 on: apk update && apk add sqm-scripts".to_owned(),
        "opkg update && opkg install sqm-scripts".to_owned(),
        // The device that IP leaves by, which with PPPoE is not the Ethernet port.
        "WAN=$(ubus call network.interface.wan status | jsonfilter -e '@.l3_device')".to_owned(),
        "uci set sqm.wan=queue".to_owned(),
        "uci set sqm.wan.interface=$WAN".to_owned(),
    ];
    for action in actions {
        let (word, kbit) = (noun(action.direction), kbit_without_ptm(action));
        lines.push(format!("uci set sqm.wan.{word}={kbit}"));
    }
    if let [only] = actions {
        let other = noun(match only.direction {
            OneDirection::Up => OneDirection::Down,
            OneDirection::Down => OneDirection::Up,
        });
        lines.extend([
            format!("# A rate of 0 leaves the {other} alone; one that is set is kept."),
            format!("uci -q get sqm.wan.{other} || uci set sqm.wan.{other}=0"),
        ]);
    }
    lines.extend([
        "uci set sqm.wan.qdisc=cake".to_owned(),
        "uci set sqm.wan.script=piece_of_cake.qos".to_owned(),
        format!("uci set sqm.wan.linklayer={layer}"),
        format!("uci set sqm.wan.overhead={}", first.overhead_bytes),
        format!("uci set sqm.wan.tcMPU={}", first.mpu_bytes),
        "uci set sqm.wan.enabled=1".to_owned(),
        "uci commit sqm && /etc/init.d/sqm enable && /etc/init.d/sqm restart".to_owned(),
    ]);
    lines
}
