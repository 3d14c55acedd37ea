//! A user namespace for users that are not root (user_namespaces(7)): inside it the caller is root
//! over what is made there, and has no privilege outside.

use std::io;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use crate::sysctl;

/// What stands between the caller and namespaces of its own, and what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Obstacle(String);

/// Leaves the caller's user namespace for a new one in which it is root: user and group 0 are
/// the caller's own, and there are no others.
///
/// Only for a process with a single thread.
///
/// # Errors
/// Where the system does not let ordinary users have one, with what to do about it.
pub fn enter_own() -> Result<(), Obstacle> {
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|e| obstacle(e.into()))?;
    // An ordinary user may map its group only after giving up setgroups(2), by which a group
    // could be left that was there to forbid something.
    for (file, text) in [
        ("uid_map", format!("0 {user} 1")),
        ("setgroups", "deny".to_owned()),
        ("gid_map", format!("0 {group} 1")),
    ] {
        std::fs::write(format!("/proc/self/{file}"), text).map_err(obstacle)?;
    }
    Ok(())
}

/// Why the kernel refused with `error`: what it says itself is the same for every cause.
pub(crate) fn obstacle(error: io::Error) -> Obstacle {
    let switch = |key: &str| sysctl::read(key).ok();
    Obstacle(explain(
        error
            .raw_os_error()
            .map_or(Errno::UnknownErrno, Errno::from_raw),
        &Switches {
            max_user_namespaces: switch("user.max_user_namespaces"),
            unprivileged_userns_clone: switch("kernel.unprivileged_userns_clone"),
            apparmor_restricts: switch("kernel.apparmor_restrict_unprivileged_userns"),
        },
    ))
}

/// The kernel's variables that keep ordinary users from user namespaces, where it has them.
#[derive(Default)]
struct Switches {
    /// How many there may be (every kernel).
    max_user_namespaces: Option<String>,
    /// Whether others than root may have one (Debian's kernels).
    unprivileged_userns_clone: Option<String>,
    /// Whether AppArmor takes their powers away (Ubuntu's kernels).
    apparmor_restricts: Option<String>,
}

fn explain(error: Errno, switches: &Switches) -> String {
    let is = |switch: &Option<String>, value: &str| switch.as_deref() == Some(value);
    let by_sysctl =
        |setting: &str| format!("run it as root (sudo), or allow it: sudo sysctl -w {setting}");
    if is(&switches.max_user_namespaces, "0") {
        return format!(
            "user.max_user_namespaces is 0, so only root may make namespaces: {}",
            by_sysctl("user.max_user_namespaces=10000")
        );
    }
    if is(&switches.unprivileged_userns_clone, "0") {
        return format!(
            "kernel.unprivileged_userns_clone is 0, so only root may make namespaces: {}",
            by_sysctl("kernel.unprivileged_userns_clone=1")
        );
    }
    if is(&switches.apparmor_restricts, "1") && matches!(error, Errno::EPERM | Errno::EACCES) {
        return format!(
            "AppArmor keeps programs without a profile from namespaces (kernel.apparmor_restrict_unprivileged_userns is 1): {}",
            by_sysctl("kernel.apparmor_restrict_unprivileged_userns=0")
        );
    }
    match error {
        Errno::ENOSPC | Errno::EUSERS => {
            "there are as many namespaces already as the limits under /proc/sys/user allow, or 32 levels of them: end what holds them, or run it as root (sudo)".to_owned()
        }
        Errno::EINVAL => {
            "this kernel has no user namespaces (CONFIG_USER_NS): run it as root (sudo)".to_owned()
        }
        Errno::EPERM | Errno::EACCES => {
            "the system forbids it, as a container's seccomp filter or a chroot does: run it as root (sudo), in a container with --privileged".to_owned()
        }
        other => format!("{}: run it as root (sudo)", other.desc()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switches(max: &str, clone: Option<&str>, apparmor: Option<&str>) -> Switches {
        Switches {
            max_user_namespaces: Some(max.to_owned()),
            unprivileged_userns_clone: clone.map(str::to_owned),
            apparmor_restricts: apparmor.map(str::to_owned),
        }
    }

    #[test]
    fn names_the_switch_that_is_off() {
        for (error, switches, says) in [
            (
                Errno::ENOSPC,
                switches("0", None, None),
                "sysctl -w user.max_user_namespaces=",
            ),
            (
                Errno::EPERM,
                switches("9", Some("0"), None),
                "sysctl -w kernel.unprivileged_userns_clone=1",
            ),
            (
                Errno::EPERM,
                switches("9", Some("1"), Some("1")),
                "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
            ),
            (Errno::EACCES, switches("9", None, Some("1")), "AppArmor"),
            (Errno::EPERM, switches("9", None, Some("0")), "seccomp"),
            (Errno::EPERM, Switches::default(), "seccomp"),
            (
                Errno::ENOSPC,
                switches("9", None, Some("1")),
                "/proc/sys/user",
            ),
            (Errno::EINVAL, switches("9", None, None), "CONFIG_USER_NS"),
        ] {
            let text = explain(error, &switches);
            assert!(
                text.contains(says) && text.contains("root"),
                "{error}: {text}"
            );
        }
    }
}
