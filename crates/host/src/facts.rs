//! What bears on measurements at this end: kernel, TCP's settings, the clock.

use plumb_model::run::HostFacts;
use plumb_net::sysctl;

/// Reads the facts of this host; those that it does not tell are absent.
///
/// The settings of TCP are those of the network namespace of the calling thread.
pub fn facts() -> HostFacts {
    let text = |key: &str| sysctl::read(key).ok();
    let words =
        |key: &str| text(key).map(|t| t.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let triple = |key: &str| sysctl::read_numbers(key).and_then(|numbers| numbers.try_into().ok());
    let kernel: Vec<String> = ["kernel.ostype", "kernel.osrelease"]
        .into_iter()
        .filter_map(text)
        .collect();
    HostFacts {
        plumb: env!("CARGO_PKG_VERSION").to_owned(),
        kernel: kernel.join(" "),
        congestion_control: text("net.ipv4.tcp_congestion_control"),
        congestion_controls: words("net.ipv4.tcp_available_congestion_control").unwrap_or_default(),
        tcp_rmem_bytes: triple("net.ipv4.tcp_rmem"),
        tcp_wmem_bytes: triple("net.ipv4.tcp_wmem"),
        tcp_adv_win_scale: text("net.ipv4.tcp_adv_win_scale").and_then(|t| t.parse().ok()),
        window_scaling: text("net.ipv4.tcp_window_scaling").map(|t| t != "0"),
        clock_source: clock_source(),
        clock_synchronised: plumb_net::clock::synchronised(),
    }
}

/// Name of the kernel's clock source (Documentation/timers/timekeeping.rst).
fn clock_source() -> Option<String> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(path)
        .ok()
        .map(|name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_proc_says() {
        let facts = facts();
        assert!(facts.kernel.starts_with("Linux "), "{}", facts.kernel);
        let rmem = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_rmem").unwrap_or_default();
        let told = facts
            .tcp_rmem_bytes
            .map(|r| r.map(|n| n.to_string()).join("\t"));
        assert_eq!(told.as_deref(), Some(rmem.trim()));
        assert!(
            facts
                .congestion_control
                .is_some_and(|cc| facts.congestion_controls.contains(&cc))
        );
        assert!(facts.window_scaling.is_some() && facts.tcp_adv_win_scale.is_some());
    }
}
