//! A plan as files of other systems, which make it at boot without plumb.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::framing::Cells;
use plumb_model::shape::{Scheme, ShapeClasses};

use super::cake::settings;
use super::objects::ifb_name;
use super::plan::Plan;
use super::reading::Reading;
use super::request::Request;
use plumb_net::netlink::queue::options::{Cake, Tins};

/// What a system's files cannot have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    #[error(
        "systemd-networkd has no filters, which sort hosts into the classes of HTB: use --scheme cake"
    )]
    NoFilters,
}

/// The configuration of OpenWrt's sqm-scripts (/etc/config/sqm).
pub fn openwrt_sqm(request: &Request, plan: &Plan) -> String {
    let any = request.shapers.first();
    let kbit = |direction| {
        request
            .shaper(direction)
            .map_or(0, |shaper| shaper.rate_bps / 1000)
    };
    let several = request.classes != ShapeClasses::Besteffort;
    let (qdisc, script) = match (plan.scheme, several) {
        (Scheme::Cake, false) => ("cake", "piece_of_cake.qos"),
        (Scheme::Cake, true) => ("cake", "layer_cake.qos"),
        (Scheme::Htb, false) => ("fq_codel", "simplest.qos"),
        (Scheme::Htb, true) => ("fq_codel", "simple.qos"),
    };
    let layer = match any.map(|shaper| shaper.cells) {
        Some(Cells::Atm) => "atm",
        _ => "ethernet",
    };
    let name: String = request
        .device
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let mut text = format!(
        "# /etc/config/sqm; then: service sqm enable; service sqm restart\n# Rates in kbit/s; 0 leaves a direction alone.\nconfig queue '{name}'\n"
    );
    let mut option = |key: &str, value: &str| text += &format!("\toption {key} '{value}'\n");
    option("enabled", "1");
    option("interface", &request.device);
    option("download", &kbit(OneDirection::Down).to_string());
    option("upload", &kbit(OneDirection::Up).to_string());
    option("qdisc", qdisc);
    option("script", script);
    option("linklayer", layer);
    if let Some(shaper) = any {
        option("overhead", &shaper.overhead_bytes.to_string());
        option("linklayer_advanced", "1");
        option("tcMPU", &shaper.mpu_bytes.to_string());
    }
    if plan.scheme == Scheme::Cake {
        option("linklayer_adaptation_mechanism", "cake");
        option("qdisc_advanced", "1");
        option("squash_dscp", if several { "0" } else { "1" });
        option("squash_ingress", if several { "0" } else { "1" });
        option("qdisc_really_really_advanced", "1");
        for (key, direction) in [
            ("iqdisc_opts", OneDirection::Down),
            ("eqdisc_opts", OneDirection::Up),
        ] {
            if let Some(shaper) = request.shaper(direction) {
                option(key, &cake_words(request, shaper));
            }
        }
    }
    text
}

/// What sqm-scripts hand on to CAKE beside rate and framing.
fn cake_words(request: &Request, shaper: &ShaperAction) -> String {
    let cake = settings(request, shaper);
    let mut words = vec![match shaper.direction {
        OneDirection::Up => "dual-srchost",
        OneDirection::Down => "dual-dsthost",
    }];
    if request.classes != ShapeClasses::Besteffort {
        words.push(tins(&cake));
    }
    words.push(if cake.nat { "nat" } else { "nonat" });
    if cake.ingress {
        words.push("ingress");
    }
    if cake.ack_filter {
        words.push("ack-filter");
    }
    if shaper.cells == Cells::Ptm {
        words.push("ptm");
    }
    words.join(" ")
}

const fn tins(cake: &Cake) -> &'static str {
    match cake.tins {
        Tins::Besteffort => "besteffort",
        Tins::Diffserv3 => "diffserv3",
        Tins::Diffserv4 => "diffserv4",
    }
}

/// Files of systemd-networkd (systemd.network(5)), and a service for what it cannot do, which is to redirect.
///
/// # Errors
/// When the plan has parts that it cannot have.
pub fn networkd(request: &Request, plan: &Plan, reading: &Reading) -> Result<String, WriteError> {
    if plan.scheme != Scheme::Cake {
        return Err(WriteError::NoFilters);
    }
    let device = &request.device;
    let mut text = String::new();
    let up = request.shaper(OneDirection::Up);
    if let Some(shaper) = up {
        text += &format!(
            "# /etc/systemd/network/{device}.network.d/plumb-shape.conf, beside the file {device}.network that sets {device} up\n{}\n",
            cake_section(request, shaper)
        );
    }
    if let Some(shaper) = request.shaper(OneDirection::Down) {
        let ifb = ifb_name(reading.index);
        text += &format!(
            "# /etc/systemd/network/{ifb}.netdev\n[NetDev]\nName={ifb}\nKind=ifb\n\n# /etc/systemd/network/{ifb}.network\n[Match]\nName={ifb}\n\n[Link]\nActivationPolicy=always-up\nRequiredForOnline=no\n\n{}\n",
            cake_section(request, shaper)
        );
        text += &format!(
            "# /etc/systemd/system/plumb-shape-{device}.service: networkd cannot redirect; then: systemctl enable --now plumb-shape-{device}\n[Unit]\nAfter=systemd-networkd.service sys-subsystem-net-devices-{ifb}.device\nWants=sys-subsystem-net-devices-{ifb}.device\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=tc qdisc replace dev {device} handle ffff: ingress\nExecStart=tc filter replace dev {device} ingress prio 1 protocol all matchall action mirred egress redirect dev {ifb}\nExecStop=tc qdisc del dev {device} ingress\n\n[Install]\nWantedBy=multi-user.target\n"
        );
    }
    Ok(text)
}

fn cake_section(request: &Request, shaper: &ShaperAction) -> String {
    let cake = settings(request, shaper);
    let word = |on: bool| if on { "yes" } else { "no" };
    let cells = match shaper.cells {
        Cells::None => "none",
        Cells::Atm => "atm",
        Cells::Ptm => "ptm",
    };
    let hosts = match shaper.direction {
        OneDirection::Up => "dual-src-host",
        OneDirection::Down => "dual-dst-host",
    };
    let mut lines = vec![
        "[CAKE]".to_owned(),
        format!("Parent={}", "root"),
        format!("Bandwidth={}K", shaper.rate_bps / 1000),
        format!("OverheadBytes={}", shaper.overhead_bytes),
        format!("MPUBytes={}", shaper.mpu_bytes.max(1)),
        format!("CompensationMode={cells}"),
        format!("FlowIsolationMode={hosts}"),
        format!("NAT={}", word(cake.nat)),
        format!("PriorityQueueingPreset={}", tins(&cake)),
        format!("UseRawPacketSize={}", word(false)),
        format!("SplitGSO={}", word(cake.split)),
        format!("AckFilter={}", word(cake.ack_filter)),
    ];
    if shaper.mpu_bytes == 0 {
        lines.retain(|line| !line.starts_with("MPUBytes="));
    }
    if cake.ingress {
        lines.push(
            "# CAKE's 'ingress' has no setting here: what it drops is not counted.".to_owned(),
        );
    }
    lines.join("\n") + "\n"
}
