//! Actions as the commands that people read and type.

mod shaper;

pub use shaper::lines as shaper_lines;

use plumb_model::finding::{
    Action, Actor, Finding, InterfaceAction, InterfaceChange, ShaperAction, SysctlAction,
};
use plumb_model::router::Router;

/// Fills in the commands of every fix that has an action: those on the router for that kind of router.
pub fn fill_commands(findings: &mut [Finding], router: Router) {
    let shapers = on_the_router(findings);
    for fix in findings.iter_mut().flat_map(|f| &mut f.fixes) {
        let is_of_router = fix.on == Actor::Router && matches!(fix.action, Some(Action::Shaper(_)));
        if let Some(instead) = shaper::instead(router).filter(|_| is_of_router) {
            instead.clone_into(&mut fix.summary);
        }
        if let Some(action) = &fix.action {
            fix.commands = match (fix.on, action) {
                (Actor::Router, Action::Shaper(shaper)) => match shapers.as_slice() {
                    [one, other] if one.direction != other.direction => {
                        shaper::lines(&shapers, router)
                    }
                    _ => shaper::lines(std::slice::from_ref(shaper), router),
                },
                _ => commands(action),
            };
        }
    }
}

/// The shapers that findings propose for the router: one of each direction is set in one go.
fn on_the_router(findings: &[Finding]) -> Vec<ShaperAction> {
    let fixes = findings.iter().flat_map(|finding| &finding.fixes);
    let shapers = fixes.filter_map(|fix| match (&fix.action, fix.on) {
        (Some(Action::Shaper(shaper)), Actor::Router) => Some(shaper.clone()),
        _ => None,
    });
    shapers.collect()
}

/// An action for a shell on the Linux machine that has to act.
pub fn commands(action: &Action) -> Vec<String> {
    match action {
        Action::Shaper(shaper) => shaper::lines(std::slice::from_ref(shaper), Router::Linux),
        Action::Sysctl(setting) => set(setting),
        Action::Interface(action) => change(action),
    }
}

fn set(SysctlAction { key, value }: &SysctlAction) -> Vec<String> {
    vec![
        format!("sysctl -w {key}=\"{value}\""),
        "# And after a restart:".to_owned(),
        format!(
            "echo '{key} = {value}' > /etc/sysctl.d/90-plumb-{}.conf",
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
