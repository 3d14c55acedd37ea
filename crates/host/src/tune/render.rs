//! A plan as what other programs take: a sysctl.d(5) file, a shell script, PowerShell, macOS' sysctl.conf.

use std::fmt::Write as _;

use plumb_model::finding::{Action, InterfaceAction, InterfaceChange};
use plumb_model::tune::{HostPlan, Kind, Os, PlannedChange};

/// A way to write a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A file for /etc/sysctl.d, or macOS' and the BSDs' /etc/sysctl.conf.
    Sysctl,
    /// Commands for a POSIX shell.
    Shell,
    PowerShell,
}

/// A plan cannot be written that way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The system has no such thing.
    #[error("a plan for {os} cannot be written as {format}: {instead}")]
    NotThere {
        os: Os,
        /// What was asked for.
        format: &'static str,
        /// What can be had.
        instead: &'static str,
    },
}

/// Windows' templates of TCP settings: each has a congestion control of its own.
const TEMPLATES: [&str; 5] = [
    "Internet",
    "InternetCustom",
    "Datacenter",
    "DatacenterCustom",
    "Compat",
];

/// Windows' knob that is set for each of them.
const CONGESTION: &str = "congestionprovider";

/// Writes a plan.
///
/// # Errors
/// When the plan's system has no such thing.
pub fn render(plan: &HostPlan, format: Format) -> Result<String, RenderError> {
    let windows = plan.os == Os::Windows;
    let wrong = |format, instead| RenderError::NotThere {
        os: plan.os,
        format,
        instead,
    };
    match format {
        Format::PowerShell if !windows => Err(wrong("PowerShell", "use --format shell")),
        Format::Sysctl if windows || plan.os == Os::Solaris => {
            Err(wrong("a sysctl file", "use --format shell or powershell"))
        }
        Format::Shell if windows => Err(wrong("a shell script", "use --format powershell")),
        Format::Sysctl => Ok(sysctl_file(plan)),
        Format::Shell => Ok(script(plan, "#!/bin/sh\nset -e\n")),
        Format::PowerShell => Ok(script(
            plan,
            "# Run as administrator.\n$ErrorActionPreference = 'Stop'\n",
        )),
    }
}

/// The commands that make a change, for people and scripts.
pub fn commands(os: Os, change: &PlannedChange) -> Vec<String> {
    let PlannedChange { knob, to, kind, .. } = change;
    match (os, kind) {
        (_, Kind::Sysctl) => match os {
            Os::Linux | Os::Macos | Os::Netbsd => vec![format!("sysctl -w {knob}=\"{to}\"")],
            _ => vec![format!("sysctl {knob}=\"{to}\"")],
        },
        (_, Kind::Interface) => match &change.action {
            Some(action) => crate::render::commands(action),
            None => vec![format!("# {knob}: {to}")],
        },
        (_, Kind::Netsh) => netsh(knob, to),
        (_, Kind::Registry) => vec![format!("# {knob} in the registry: {to}")],
        (_, Kind::Ipadm) => vec![format!("ipadm set-prop -p {knob}={to} tcp")],
    }
}

/// The template whose provider is read from pasted settings.
const KNOWN_TEMPLATE: &str = "Internet";

fn of_template(template: &str, provider: &str) -> String {
    format!("netsh int tcp set supplemental Template={template} CongestionProvider={provider}")
}

fn netsh(knob: &str, to: &str) -> Vec<String> {
    match knob {
        CONGESTION => TEMPLATES.map(|template| of_template(template, to)).into(),
        "heuristics" => vec![format!("netsh int tcp set heuristics {to}")],
        _ => vec![format!("netsh int tcp set global {knob}={to}")],
    }
}

fn head(plan: &HostPlan) -> String {
    format!(
        "# plumb: {} for {}, {}. Its reasons: plumb tune plan",
        plan.os,
        plan.role.name(),
        plan.on.name()
    )
}

/// Whether a plan changes kernel variables.
pub fn has_variables(plan: &HostPlan) -> bool {
    plan.changes.iter().any(|c| c.kind == Kind::Sysctl)
}

/// The drop-in file of plans that are applied: each kernel variable of this plan with its reason, and the variables of
/// earlier plans that it leaves unchanged.
pub fn drop_in(plan: &HostPlan, before: &[(String, String)]) -> String {
    let mut text = format!("{}; all of it undone: plumb tune undo.\n", head(plan));
    for (key, value) in before {
        if !plan.changes.iter().any(|change| change.knob == *key) {
            let _ = write!(text, "\n# Of a plan before.\n{key} = {value}\n");
        }
    }
    text + &variables(plan)
}

/// A file for users who set the variables without plumb, which then keeps no journal.
fn sysctl_file(plan: &HostPlan) -> String {
    head(plan) + WITHOUT_JOURNAL + &variables(plan) + &undoing(plan)
}

/// What stands in a file that plumb does not apply itself.
const WITHOUT_JOURNAL: &str =
    ".\n# plumb tune undo knows nothing of what others apply: how to undo it is at the end.\n";

fn variables(plan: &HostPlan) -> String {
    let mut text = String::new();
    for change in &plan.changes {
        match change.kind {
            Kind::Sysctl => {
                let _ = write!(
                    text,
                    "\n# {}\n{} = {}\n",
                    change.why, change.knob, change.to
                );
            }
            _ => {
                for command in commands(plan.os, change) {
                    let _ = write!(text, "\n# No variable; by hand, or at boot: {command}\n");
                }
            }
        }
    }
    text
}

fn script(plan: &HostPlan, opening: &str) -> String {
    let mut text = format!("{opening}{}{WITHOUT_JOURNAL}", head(plan));
    for change in &plan.changes {
        let _ = write!(text, "\n# {}\n", change.why);
        for command in commands(plan.os, change) {
            text.push_str(&command);
            text.push('\n');
        }
    }
    text + &undoing(plan)
}

/// What puts everything back, as comments: in the scripts of every system a line that begins with # is one.
fn undoing(plan: &HostPlan) -> String {
    if plan.changes.is_empty() {
        return match plan.notes.is_empty() {
            true => "\n# Nothing needs to change for this path.\n".to_owned(),
            false => format!(
                "\n# No setting helps on this path: {}\n",
                plan.notes.join(" ")
            ),
        };
    }
    let mut text = "\n# To undo it:\n".to_owned();
    for line in plan.changes.iter().flat_map(|change| back(plan.os, change)) {
        let _ = writeln!(text, "#   {line}");
    }
    text
}

/// The commands that undo a change, or how to learn beforehand what they will be.
fn back(os: Os, change: &PlannedChange) -> Vec<String> {
    let PlannedChange {
        knob, from, kind, ..
    } = change;
    match (kind, from) {
        // What it was is known of one template; each of the others has a default of its own, and knows it.
        (Kind::Netsh, from) if knob == CONGESTION => TEMPLATES
            .map(|template| match (template, from) {
                (KNOWN_TEMPLATE, Some(from)) => of_template(template, from),
                _ => of_template(template, "default"),
            })
            .into(),
        (Kind::Ipadm, None) => vec![format!("ipadm reset-prop -p {knob} tcp")],
        (Kind::Sysctl | Kind::Netsh | Kind::Ipadm, Some(from)) => {
            let mut before = change.clone();
            before.to.clone_from(from);
            commands(os, &before)
        }
        (Kind::Interface | Kind::Registry, Some(from)) => match &change.action {
            Some(Action::Interface(action)) => interface_back(action, from),
            _ => None,
        }
        .unwrap_or_else(|| vec![format!("{knob} was: {from}")]),
        (_, None) => vec![format!(
            "{knob}: plumb does not know what it is; write it down first{}",
            match kind {
                Kind::Sysctl => format!(": sysctl {knob}"),
                Kind::Netsh => ": netsh int tcp show global".to_owned(),
                _ => String::new(),
            }
        )],
    }
}

/// The commands that give a setting of an interface its old value again.
fn interface_back(action: &InterfaceAction, from: &str) -> Option<Vec<String>> {
    let InterfaceAction { interface, change } = action;
    let change = match change {
        // What the kernel chose by itself it chooses again.
        InterfaceChange::Qdisc(_) => {
            return Some(vec![format!("tc qdisc del dev {interface} root")]);
        }
        InterfaceChange::Offload { feature, .. } => InterfaceChange::Offload {
            feature: feature.clone(),
            on: from == "on",
        },
        InterfaceChange::ReceiveRingPackets(_) => {
            InterfaceChange::ReceiveRingPackets(from.parse().ok()?)
        }
        InterfaceChange::TransmitQueuePackets(_) => {
            InterfaceChange::TransmitQueuePackets(from.parse().ok()?)
        }
        InterfaceChange::AdaptiveReceive(_) => InterfaceChange::AdaptiveReceive(from == "on"),
        InterfaceChange::DriverQueueMostBytes { queues, .. } => {
            InterfaceChange::DriverQueueMostBytes {
                queues: *queues,
                bytes: from.parse().ok()?,
            }
        }
        InterfaceChange::MtuBytes(_)
        | InterfaceChange::Autonegotiation(_)
        | InterfaceChange::EnergyEfficient(_)
        | InterfaceChange::WifiPowerSave(_)
        | InterfaceChange::ReceiveProcessors { .. } => return None,
    };
    let back = InterfaceAction {
        interface: interface.clone(),
        change,
    };
    Some(crate::render::commands(&Action::Interface(back)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use plumb_model::finding::Actor;

    use super::super::plan::plan_host;
    use super::super::snapshot::Snapshot;
    use super::*;
    use crate::knobs::Catalogue;
    use crate::knobs::situation::Situation;
    use plumb_model::tune::Role;

    fn plan(os: Os) -> HostPlan {
        let situation = Situation {
            rate_bps: 10e9,
            rtt_s: 0.05,
            loss_ratio: None,
            role: Role::Client,
            memory_bytes: None,
            mtu_bytes: None,
            release: None,
        };
        plan_host(
            &Catalogue::built_in().unwrap(),
            &Snapshot::unknown(os),
            &situation,
            Actor::FarHost,
            &[],
        )
    }

    #[test]
    fn each_system_gets_its_own() {
        let linux = render(&plan(Os::Linux), Format::Sysctl).unwrap();
        assert!(
            linux.contains("net.ipv4.tcp_wmem = 4096 16384 134217728\n"),
            "{linux}"
        );
        let mac = render(&plan(Os::Macos), Format::Shell).unwrap();
        assert!(
            mac.contains("sysctl -w kern.ipc.maxsockbuf=\"134217728\""),
            "{mac}"
        );
        let windows = render(&plan(Os::Windows), Format::PowerShell).unwrap();
        assert!(windows.contains("netsh int tcp set global autotuninglevel=experimental"));
        assert_eq!(windows.matches("CongestionProvider=bbr2").count(), 5);
        let solaris = render(&plan(Os::Solaris), Format::Shell).unwrap();
        assert!(
            solaris.contains("ipadm set-prop -p max_buf=134217728 tcp"),
            "{solaris}"
        );
        // There is no journal of what others apply: each file says how to undo it.
        for file in [&linux, &mac, &windows, &solaris] {
            let (_, back) = file.split_once("# To undo it:\n").unwrap();
            assert!(back.lines().all(|line| line.starts_with("#   ")), "{file}");
            assert!(!file.contains("undone: plumb tune undo"), "{file}");
        }
        assert_eq!(windows.matches("CongestionProvider=default").count(), 5);
        assert!(linux.contains("write it down first: sysctl net.ipv4.tcp_wmem\n"));
        assert!(solaris.contains("#   ipadm reset-prop -p max_buf tcp\n"));
        assert!(render(&plan(Os::Windows), Format::Sysctl).is_err());
        assert!(render(&plan(Os::Linux), Format::PowerShell).is_err());
    }

    #[test]
    fn a_template_goes_back_to_what_it_was_and_the_others_to_their_own() {
        let change = PlannedChange {
            from: Some("cubic".to_owned()),
            ..plan(Os::Windows)
                .changes
                .into_iter()
                .find(|change| change.knob == CONGESTION)
                .unwrap()
        };
        let back = back(Os::Windows, &change).join("\n");
        assert!(back.contains("Template=Internet CongestionProvider=cubic"));
        assert_eq!(back.matches("CongestionProvider=default").count(), 4);
    }

    #[test]
    fn an_interface_goes_back_by_commands_too() {
        let back = |change, from| {
            let interface = "eth0".to_owned();
            interface_back(&InterfaceAction { interface, change }, from)
        };
        for (change, from, command) in [
            (
                InterfaceChange::ReceiveRingPackets(4096),
                "256",
                "ethtool -G eth0 rx 256",
            ),
            (
                InterfaceChange::Offload {
                    feature: "rx-gro".to_owned(),
                    on: true,
                },
                "off",
                "ethtool -K eth0 rx-gro off",
            ),
            (
                InterfaceChange::Qdisc("fq".to_owned()),
                "fq_codel",
                "tc qdisc del dev eth0 root",
            ),
        ] {
            assert_eq!(back(change, from), Some(vec![command.to_owned()]));
        }
        assert_eq!(back(InterfaceChange::ReceiveRingPackets(1), "?"), None);
    }

    #[test]
    fn a_plan_without_a_change_says_so_in_every_file() {
        let mut plan = plan(Os::Linux);
        plan.changes.clear();
        for format in [Format::Sysctl, Format::Shell] {
            let file = render(&plan, format).unwrap();
            assert!(
                file.ends_with("\n# Nothing needs to change for this path.\n"),
                "{file}"
            );
        }
    }

    #[test]
    fn known_values_are_put_back_and_the_drop_in_keeps_what_was_before() {
        let mut plan = plan(Os::Linux);
        plan.changes.retain(|c| c.knob == "net.ipv4.tcp_wmem");
        plan.changes[0].from = Some("4096 16384 4194304".to_owned());
        let shell = render(&plan, Format::Shell).unwrap();
        let back = "#   sysctl -w net.ipv4.tcp_wmem=\"4096 16384 4194304\"\n";
        assert!(shell.ends_with(back), "{shell}");
        let before = [("net.ipv4.tcp_wmem", "1"), ("net.ipv4.tcp_rmem", "4 5 6")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
        let file = drop_in(&plan, &before);
        assert!(file.contains("\nnet.ipv4.tcp_rmem = 4 5 6\n") && !file.contains("wmem = 1\n"));
        assert!(file.contains("all of it undone: plumb tune undo.\n"));
    }
}
