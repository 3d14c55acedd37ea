//! A plan as what other programs take: a sysctl.d(5) file, a shell script, PowerShell, macOS' sysctl.conf.

use std::fmt::Write as _;

use plumb_model::tune::{HostPlan, Kind, Os, PlannedChange};

/// A way to write a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A file for /etc/sysctl.d, or macOS' and the BSDs' /etc/sysctl.conf.
    Sysctl,
    /// Commands for a POSIX shell.
    Shell,
    /// Commands for PowerShell.
    PowerShell,
}

/// A plan cannot be written that way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// The system has no such thing.
    #[error("a plan for {os} cannot be written as {format}: {instead}")]
    NotThere {
        /// The system.
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

fn netsh(knob: &str, to: &str) -> Vec<String> {
    match knob {
        "congestionprovider" => TEMPLATES
            .map(|template| {
                format!(
                    "netsh int tcp set supplemental Template={template} CongestionProvider={to}"
                )
            })
            .into(),
        "heuristics" => vec![format!("netsh int tcp set heuristics {to}")],
        _ => vec![format!("netsh int tcp set global {knob}={to}")],
    }
}

fn head(plan: &HostPlan) -> String {
    format!(
        "# plumb: {} for {}, {}. Its reasons: plumb tune plan; all of it undone: plumb tune undo.\n",
        plan.os,
        plan.role.name(),
        plan.on.name()
    )
}

/// The drop-in file of a plan: each kernel variable with its reason.
pub fn sysctl_file(plan: &HostPlan) -> String {
    let mut text = head(plan);
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
    let mut text = format!("{opening}{}", head(plan));
    for change in &plan.changes {
        let _ = write!(text, "\n# {}\n", change.why);
        for command in commands(plan.os, change) {
            text.push_str(&command);
            text.push('\n');
        }
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
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
        assert!(render(&plan(Os::Windows), Format::Sysctl).is_err());
        assert!(render(&plan(Os::Linux), Format::PowerShell).is_err());
    }
}
