//! What brings settings of an interface back at boot. plumb's drop-in file has kernel variables alone, and what
//! sets an interface up differs from system to system; udev(7) sees every one come, whatever sets it up.

use plumb_model::finding::{Action, InterfaceAction, InterfaceChange};
use plumb_model::tune::PlannedChange;

use crate::render::commands;

/// The variable that says which queueing discipline interfaces get.
pub(super) const DEFAULT_QUEUE: &str = "net.core.default_qdisc";

/// Says of each change what brings it back at boot, where the drop-in file does not. `default_queue` is the queueing
/// discipline that interfaces get at present.
pub(super) fn say(changes: &mut [PlannedChange], default_queue: Option<&str>) {
    let planned = changes.iter().find(|change| change.knob == DEFAULT_QUEUE);
    let planned = planned.map(|change| change.to.clone());
    let default_queue = planned.or_else(|| default_queue.map(str::to_owned));
    for change in changes {
        let action = change.action.as_ref();
        change.at_boot = action.and_then(|action| rule(action, default_queue.as_deref()));
    }
}

/// The rule of udev(7) that makes a change when its interface comes or gets its name.
fn rule(action: &Action, default_queue: Option<&str>) -> Option<String> {
    let Action::Interface(InterfaceAction { interface, change }) = action else {
        return None;
    };
    // A queueing discipline comes back where it is the one that interfaces get by default.
    if matches!(change, InterfaceChange::Qdisc(kind) if Some(kind.as_str()) == default_queue) {
        return None;
    }
    // The kernel takes nearly every character in a name, and a rule and a shell do not.
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if interface.is_empty() || !interface.chars().all(plain) {
        return None;
    }
    let command = commands(action).join("; ");
    // What udev would put something else for.
    let command = command.replace('%', "%%").replace('$', "$$");
    Some(format!(
        "ACTION==\"add|move\", SUBSYSTEM==\"net\", KERNEL==\"{interface}\", RUN+=\"/bin/sh -c '{command}'\""
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn on(interface: &str, change: InterfaceChange) -> Action {
        Action::Interface(InterfaceAction {
            interface: interface.to_owned(),
            change,
        })
    }

    #[test]
    fn a_setting_of_an_interface_has_a_rule_and_a_variable_none() {
        let ring = rule(&on("eth0", InterfaceChange::ReceiveRingPackets(4096)), None);
        assert_eq!(
            ring.as_deref(),
            Some(
                r#"ACTION=="add|move", SUBSYSTEM=="net", KERNEL=="eth0", RUN+="/bin/sh -c 'ethtool -G eth0 rx 4096'""#
            )
        );
        // What a shell is to see as $, udev must not.
        let limit = InterfaceChange::DriverQueueMostBytes {
            queues: 2,
            bytes: 9000,
        };
        let limit = rule(&on("eth0", limit), None).unwrap();
        assert!(limit.contains("echo 9000 > $$queue/"), "{limit}");
        let fq = on("eth0", InterfaceChange::Qdisc("fq".to_owned()));
        assert!(rule(&fq, Some("pfifo_fast")).is_some());
        assert_eq!(rule(&fq, Some("fq")), None);
        assert_eq!(
            rule(&on("e'th", InterfaceChange::TransmitQueuePackets(1)), None),
            None
        );
        let variable = Action::Sysctl(plumb_model::finding::SysctlAction {
            key: "net.ipv4.tcp_sack".to_owned(),
            value: "1".to_owned(),
        });
        assert_eq!(rule(&variable, None), None);
    }
}
