//! Actions as the commands that people read and type.

use plumb_model::direction::OneDirection;
use plumb_model::finding::{
    Action, Finding, InterfaceAction, InterfaceChange, ShaperAction, SysctlAction,
};

/// Length of the Ethernet header, which Linux counts as part of every packet on an Ethernet
/// device before a class adds its overhead (`qdisc_pkt_len`, `net/sched/sch_htb.c`).
const ETHERNET_HEADER_BYTES: i16 = 14;

/// Fills in the commands of every fix that has an action.
pub fn fill_commands(findings: &mut [Finding]) {
    for fix in findings.iter_mut().flat_map(|f| &mut f.fixes) {
        if let Some(action) = &fix.action {
            fix.commands = commands(action);
        }
    }
}

/// An action for a shell on the Linux machine that has to act.
pub fn commands(action: &Action) -> Vec<String> {
    match action {
        Action::Shaper(shaper) => shape(shaper),
        Action::Sysctl(setting) => set(setting),
        Action::Interface(action) => change(action),
    }
}

fn shape(action: &ShaperAction) -> Vec<String> {
    let ShaperAction {
        direction,
        rate_bps,
        overhead_bytes,
        mpu_bytes,
        qdisc,
    } = action;
    let rate = format!("{}kbit", rate_bps / 1000);
    let overhead = overhead_bytes - ETHERNET_HEADER_BYTES;
    let mut lines = vec!["WAN=eth0   # the router's interface to the modem".to_owned()];
    let (device, cake_device) = match direction {
        OneDirection::Up => ("$WAN", "$WAN root"),
        OneDirection::Down => {
            lines.extend([
                "ip link add ifb0 type ifb && ip link set ifb0 up".to_owned(),
                "tc qdisc replace dev $WAN handle ffff: ingress".to_owned(),
                "tc filter replace dev $WAN parent ffff: protocol all prio 1 matchall action mirred egress redirect dev ifb0".to_owned(),
            ]);
            ("ifb0", "ifb0 root")
        }
    };
    lines.extend([
        format!("tc qdisc replace dev {device} root handle 1: htb default 1"),
        format!("tc class replace dev {device} parent 1: classid 1:1 htb rate {rate} ceil {rate} overhead {overhead} mpu {mpu_bytes}"),
        format!("tc qdisc replace dev {device} parent 1:1 {qdisc}"),
        format!("# or, where the kernel has CAKE: tc qdisc replace dev {cake_device} cake bandwidth {rate} overhead {overhead_bytes} mpu {mpu_bytes}"),
    ]);
    lines
}

fn set(SysctlAction { key, value }: &SysctlAction) -> Vec<String> {
    vec![
        format!("sysctl -w {key}=\"{value}\""),
        format!(
            "echo '{key} = {value}' > /etc/sysctl.d/90-plumb-{}.conf   # and after a restart",
            key.rsplit('.').next().unwrap_or(key)
        ),
    ]
}

fn change(InterfaceAction { interface, change }: &InterfaceAction) -> Vec<String> {
    let word = |on: bool| if on { "on" } else { "off" };
    vec![match change {
        InterfaceChange::MtuBytes(bytes) => format!("ip link set dev {interface} mtu {bytes}"),
        InterfaceChange::Offload { feature, on } => {
            format!("ethtool -K {interface} {feature} {}", word(*on))
        }
        InterfaceChange::ReceiveRingPackets(packets) => {
            format!("ethtool -G {interface} rx {packets}")
        }
        InterfaceChange::TransmitQueuePackets(packets) => {
            format!("ip link set dev {interface} txqueuelen {packets}")
        }
        InterfaceChange::AdaptiveReceive(on) => {
            format!("ethtool -C {interface} adaptive-rx {}", word(*on))
        }
        InterfaceChange::DriverQueueMostBytes { bytes, .. } => format!(
            "for queue in /sys/class/net/{interface}/queues/tx-*; do echo {bytes} > $queue/byte_queue_limits/limit_max; done"
        ),
        InterfaceChange::EnergyEfficient(on) => {
            format!("ethtool --set-eee {interface} eee {}", word(*on))
        }
        InterfaceChange::Qdisc(kind) => format!("tc qdisc replace dev {interface} root {kind}"),
        InterfaceChange::Autonegotiation(on) => {
            format!("ethtool -s {interface} autoneg {}", word(*on))
        }
        InterfaceChange::WifiPowerSave(on) => {
            format!("iw dev {interface} set power_save {}", word(*on))
        }
        InterfaceChange::ReceiveProcessors { queue, cpus } => {
            format!("echo {cpus} > /sys/class/net/{interface}/queues/{queue}/rps_cpus")
        }
    }]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shaper_on_ethernet_does_not_count_its_header_twice() {
        let lines = shape(&ShaperAction {
            direction: OneDirection::Up,
            rate_bps: 19_000_000,
            overhead_bytes: 18,
            mpu_bytes: 64,
            qdisc: "fq_codel".into(),
        });
        assert!(
            lines
                .iter()
                .any(|l| l.contains("rate 19000kbit") && l.contains("overhead 4 ")),
            "{lines:?}"
        );
        assert!(
            lines
                .iter()
                .any(|l| l.contains("cake bandwidth 19000kbit overhead 18")),
            "{lines:?}"
        );
    }
}
