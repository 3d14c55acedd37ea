//! What kept programs of this machine from running: the hypervisor, which gave the processors to others, and the quota
//! of a control group.

use super::Source;

/// Where the control groups of both versions are mounted on Linux (file-hierarchy(7), cgroups(7)).
const UNIFIED: &str = "/sys/fs/cgroup";
const OF_PROCESSORS: &str = "/sys/fs/cgroup/cpu";

/// Counters of it: `processor.ticks`, of which `processor.idle_ticks` and `processor.steal_ticks` (in USER_HZ of all
/// processors together), for each processor its `ticks`, `idle_ticks` and `softirq_ticks`, and `control_group.throttled` with
/// `control_group.throttled_us` of this process's groups.
pub(crate) fn waits(source: &mut Source) -> Vec<(String, u64)> {
    let mut found = ticks(&source.optional("/proc/stat").unwrap_or_default());
    let groups = source
        .optional("/proc/thread-self/cgroup")
        .unwrap_or_default();
    let (mut times, mut us) = (0u64, 0u64);
    let mut any = false;
    for path in quota_files(&groups) {
        if let Some(text) = source.silent(&path) {
            let (more, longer) = throttled(&text);
            (times, us) = (times.saturating_add(more), us.saturating_add(longer));
            any = true;
        }
    }
    if any {
        found.push(("control_group.throttled".to_owned(), times));
        found.push(("control_group.throttled_us".to_owned(), us));
    }
    found
}

/// Time of a processor since the machine started, in USER_HZ (proc_stat(5)).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ticks {
    pub all: u64,
    /// Of them, in which it had nothing to do.
    pub idle: u64,
    /// Spent in the kernel's network code, among others.
    pub softirq: u64,
    /// Given to others by the hypervisor.
    pub steal: u64,
}

/// Time of each processor, in the order of their numbers.
pub fn processors(source: &mut Source) -> Vec<Ticks> {
    let stat = source.silent("/proc/stat").unwrap_or_default();
    let each = by_processor(&stat).filter(|(cpu, _)| !cpu.is_empty());
    each.map(|(_, ticks)| ticks).collect()
}

/// `cpu  user nice system idle iowait irq softirq steal …` (proc_stat(5)), by what follows `cpu`: nothing for all together;
/// guests are in `user` already.
fn by_processor(stat: &str) -> impl Iterator<Item = (&str, Ticks)> {
    stat.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let cpu = words.next()?.strip_prefix("cpu")?;
        let counts: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
        let [_, _, _, idle, iowait, _, softirq, steal] = counts[..] else {
            return None;
        };
        let all = counts
            .iter()
            .fold(0u64, |all, count| all.saturating_add(*count));
        let ticks = Ticks {
            all,
            idle: idle.saturating_add(iowait),
            softirq,
            steal,
        };
        Some((cpu, ticks))
    })
}

fn ticks(stat: &str) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    for (cpu, ticks) in by_processor(stat) {
        let name = |what: &str| match cpu {
            "" => format!("processor.{what}"),
            number => format!("processor.cpu{number}.{what}"),
        };
        found.push((name("ticks"), ticks.all));
        found.push((name("idle_ticks"), ticks.idle));
        found.push(match cpu {
            "" => (name("steal_ticks"), ticks.steal),
            _ => (name("softirq_ticks"), ticks.softirq),
        });
    }
    found
}

/// The files of the groups that a process is in and of those around them: a quota of any of them holds it up.
fn quota_files(groups: &str) -> Vec<String> {
    let mut files = Vec::new();
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(group)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let root = match controllers {
            "" => UNIFIED,
            "cpu" | "cpu,cpuacct" => OF_PROCESSORS,
            _ => continue,
        };
        let mut group = group.trim_end_matches('/');
        loop {
            files.push(format!("{root}{group}/cpu.stat"));
            match group.rsplit_once('/') {
                Some((around, _)) => group = around,
                None => break,
            }
        }
    }
    files
}

/// How often, and for how many microseconds: `throttled_usec` of version 2, `throttled_time` in nanoseconds of version 1
/// (Documentation/admin-guide/cgroup-v2.rst, Documentation/scheduler/sched-bwc.rst).
fn throttled(stat: &str) -> (u64, u64) {
    let value = |name: &str| {
        let mut lines = stat.lines();
        lines.find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok())
    };
    let us = value("throttled_usec ").or_else(|| Some(value("throttled_time ")? / 1000));
    (value("nr_throttled ").unwrap_or(0), us.unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ticks_are_those_of_proc_stat() {
        let text = "cpu  100 10 20 300 5 1 7 40 3 0\ncpu0 100 10 20 300 5 1 7 40 3 0\nintr 5\n";
        let named = |(name, value): (&str, u64)| (format!("processor.{name}"), value);
        let expected = [
            ("ticks", 483),
            ("idle_ticks", 305),
            ("steal_ticks", 40),
            ("cpu0.ticks", 483),
            ("cpu0.idle_ticks", 305),
            ("cpu0.softirq_ticks", 7),
        ];
        assert_eq!(ticks(text), expected.map(named));
        assert_eq!(ticks("cpu 1 2 3\ncpux y\n"), []);
    }

    #[test]
    fn a_quota_counts_wherever_it_stands() {
        assert_eq!(
            quota_files("4:memory:/a\n1:cpu:/\n0::/user.slice/run-1.scope\n"),
            [
                "/sys/fs/cgroup/cpu/cpu.stat",
                "/sys/fs/cgroup/user.slice/run-1.scope/cpu.stat",
                "/sys/fs/cgroup/user.slice/cpu.stat",
                "/sys/fs/cgroup/cpu.stat",
            ]
        );
        let second = "usage_usec 5\nnr_periods 9\nnr_throttled 4\nthrottled_usec 81000\n";
        let first = "nr_periods 9\nnr_throttled 4\nthrottled_time 81000000\n";
        assert_eq!([second, first].map(throttled), [(4, 81_000); 2]);
    }

    proptest! {
        #[test]
        fn never_panics(text in "(\\PC{0,40}\n){0,4}") {
            let _ = (ticks(&text), quota_files(&text), throttled(&text));
        }
    }
}
