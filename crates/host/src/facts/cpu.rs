//! Processors: their speed, and how deep they sleep.

use std::collections::BTreeSet;

use plumb_model::results::host::Cpus;

use super::Source;

const FOLDER: &str = "/sys/devices/system/cpu";

pub(super) fn cpus(source: &mut Source) -> Cpus {
    let online = source
        .optional(&format!("{FOLDER}/online"))
        .unwrap_or_default();
    let cpuinfo = source.optional("/proc/cpuinfo").unwrap_or_default();
    let policies = source.names(&format!("{FOLDER}/cpufreq"));
    let policies: Vec<_> = policies
        .iter()
        .filter(|name| name.starts_with("policy"))
        .map(|name| format!("{FOLDER}/cpufreq/{name}"))
        .collect();
    let mut each = |file: &str| -> Vec<String> {
        let read = policies
            .iter()
            .filter_map(|policy| source.optional(&format!("{policy}/{file}")));
        read.collect::<BTreeSet<_>>().into_iter().collect()
    };
    let governors = each("scaling_governor");
    let energy_preferences = each("energy_performance_preference");
    let max_khz = each("cpuinfo_max_freq");
    let mut of_first = |file: &str| source.optional(&format!("{}/{file}", policies.first()?));
    // Reading the frequency of a processor can take 10 ms, so only the first one is asked.
    let frequency_hz = of_first("scaling_cur_freq").and_then(|khz| hertz(&khz));
    let frequency_driver = of_first("scaling_driver");
    Cpus {
        model: cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
            .map(|(_, name)| name.trim().to_owned()),
        online: count(&online),
        frequency_driver,
        governors,
        frequency_hz,
        max_frequency_hz: max_khz.iter().filter_map(|khz| hertz(khz)).reduce(f64::max),
        energy_preferences,
        idle_driver: source.optional(&format!("{FOLDER}/cpuidle/current_driver")),
        wake_s: wake(source),
    }
}

/// Kilohertz as the kernel writes them.
fn hertz(text: &str) -> Option<f64> {
    text.parse::<f64>()
        .ok()
        .filter(|khz| khz.is_finite() && *khz > 0.0)
        .map(|khz| khz * 1e3)
}

/// How many numbers a list such as `0-3,8` has.
fn count(list: &str) -> u32 {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        last.checked_sub(first)?.checked_add(1)
    });
    ranges.fold(0, u32::saturating_add)
}

/// The exit latency of the deepest idle state in use (Documentation/admin-guide/pm/cpuidle.rst),
/// which all processors of a machine share as a rule.
fn wake(source: &mut Source) -> Option<f64> {
    let folder = format!("{FOLDER}/cpu0/cpuidle");
    let mut deepest: Option<f64> = None;
    for state in source.names(&folder) {
        let mut read = |file: &str| source.number(&format!("{folder}/{state}/{file}"));
        if read("disable") == Some(0)
            && let Some(us) = read("latency")
        {
            let wake = us as f64 / 1e6;
            deepest = Some(deepest.map_or(wake, |d| d.max(wake)));
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lists_are_counted() {
        assert_eq!(count("0-3,8\n"), 5);
        assert_eq!(count("0"), 1);
        assert_eq!(count("3-1,x,"), 0);
    }

    #[test]
    fn a_laptop_that_saves_power_is_read() {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("online", "0-1"),
            ("cpufreq/policy0/scaling_governor", "powersave"),
            ("cpufreq/policy1/scaling_governor", "powersave"),
            ("cpufreq/policy0/scaling_driver", "intel_pstate"),
            ("cpufreq/policy0/scaling_cur_freq", "800000"),
            ("cpufreq/policy0/cpuinfo_max_freq", "4200000"),
            ("cpufreq/policy1/cpuinfo_max_freq", "4400000"),
            ("cpu0/cpuidle/state0/latency", "0"),
            ("cpu0/cpuidle/state0/disable", "0"),
            ("cpu0/cpuidle/state1/latency", "890"),
            ("cpu0/cpuidle/state1/disable", "0"),
            ("cpu0/cpuidle/state2/latency", "1048"),
            ("cpu0/cpuidle/state2/disable", "1"),
        ] {
            let file = root.path().join("sys/devices/system/cpu").join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, format!("{text}\n")).unwrap();
        }
        let read = cpus(&mut Source::below(root.path()));
        assert_eq!(
            (read.online, read.governors.as_slice()),
            (2, &["powersave".to_owned()][..])
        );
        assert_eq!(
            (read.frequency_hz, read.max_frequency_hz),
            (Some(8e8), Some(4.4e9))
        );
        assert_eq!(
            read.wake_s,
            Some(0.00089),
            "the disabled state does not count"
        );
    }

    proptest! {
        #[test]
        fn never_panics(text in "[0-9,x-]{0,30}") {
            let _ = (count(&text), hertz(&text));
        }
    }
}
