//! The machine that tests run on, which a laboratory must leave as it was.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What of the real machine a laboratory must leave as it was.
pub(crate) fn machine() -> Vec<String> {
    let read = |path: &str| format!("{path}: {}", std::fs::read_to_string(path).unwrap());
    let interfaces: BTreeSet<_> = std::fs::read_dir("/sys/class/net")
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    let mounts: BTreeSet<String> = std::fs::read_to_string("/proc/self/mountinfo")
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let sysctl_d: BTreeSet<_> = std::fs::read_dir("/etc/sysctl.d").map_or_else(
        |_| BTreeSet::new(),
        |entries| {
            entries
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect()
        },
    );
    let mut state = vec![
        format!("{interfaces:?}"),
        format!("{mounts:#?}"),
        format!("{sysctl_d:?}"),
    ];
    state.extend(
        [
            "/etc/hosts",
            "/proc/sys/kernel/hostname",
            "/proc/sys/net/ipv4/ip_forward",
            "/proc/sys/net/ipv4/tcp_congestion_control",
            "/proc/sys/net/ipv4/tcp_allowed_congestion_control",
            "/proc/sys/net/ipv4/tcp_rmem",
            "/proc/sys/net/ipv4/tcp_wmem",
            "/proc/sys/net/ipv4/icmp_ratelimit",
            "/proc/sys/net/ipv4/ping_group_range",
        ]
        .map(read),
    );
    state
}

/// Every process below `root`, by the parents that /proc tells.
pub(crate) fn descendants(root: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let pid = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name in parentheses may contain anything; the parent is the second field after.
            let parent = stat
                .rsplit_once(')')?
                .1
                .split_whitespace()
                .nth(1)?
                .parse()
                .ok()?;
            Some((pid, parent))
        })
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(
            parents
                .iter()
                .filter(|(_, p)| *p == parent)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.remove(0);
    found
}

/// Whether a process has not ended. One that its parent has not taken note of yet is a zombie;
/// while threads of it besides the first still end, they hold its files, and it is alive.
pub(crate) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    // proc_pid_stat(5): fields 3 and 20; the name in field 2 may contain anything.
    let mut fields = stat.rsplit_once(')').unwrap().1.split_whitespace();
    let state = fields.next().unwrap();
    let threads: u32 = fields.nth(16).unwrap().parse().unwrap();
    state != "Z" || threads > 1
}

/// Waits for a process to say that it is.
pub(crate) fn says_ready(child: &mut Child) {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "ready\n");
}

/// Waits until these processes have ended.
pub(crate) fn all_end(pids: &[u32]) {
    let started = Instant::now();
    while pids.iter().any(|pid| is_alive(*pid)) {
        assert!(
            started.elapsed() < Duration::from_secs(10),
            "processes are left behind: {pids:?}"
        );
        sleep(Duration::from_millis(20));
    }
}

/// Sends a signal to a process, or to a group by its negative number.
pub(crate) fn signal(pid: i32, name: &str) {
    assert!(
        Command::new("kill")
            .args([&format!("-{name}"), "--", &pid.to_string()])
            .status()
            .unwrap()
            .success()
    );
}
