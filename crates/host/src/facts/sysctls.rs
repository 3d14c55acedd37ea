//! Kernel variables that bear on the network.

use plumb_model::results::host::{Scope, Sysctl};

use super::Source;

/// The variables that are read, as the tuning guides name them, and those that rules look at.
const KEYS: &[&str] = &[
    "fs.file-max",
    "fs.nr_open",
    "net.core.busy_poll",
    "net.core.busy_read",
    "net.core.default_qdisc",
    "net.core.dev_weight",
    "net.core.netdev_budget",
    "net.core.netdev_budget_usecs",
    "net.core.netdev_max_backlog",
    "net.core.optmem_max",
    "net.core.rmem_default",
    "net.core.rmem_max",
    "net.core.rps_sock_flow_entries",
    "net.core.somaxconn",
    "net.core.wmem_default",
    "net.core.wmem_max",
    "net.ipv4.conf.all.rp_filter",
    "net.ipv4.ip_forward",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_no_pmtu_disc",
    "net.ipv4.ipfrag_high_thresh",
    "net.ipv4.ipfrag_time",
    "net.ipv4.neigh.default.gc_thresh1",
    "net.ipv4.neigh.default.gc_thresh2",
    "net.ipv4.neigh.default.gc_thresh3",
    "net.ipv4.tcp_adv_win_scale",
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_autocorking",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_base_mss",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_ecn",
    "net.ipv4.tcp_ecn_fallback",
    "net.ipv4.tcp_fastopen",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_limit_output_bytes",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_max_reordering",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_mem",
    "net.ipv4.tcp_min_tso_segs",
    "net.ipv4.tcp_moderate_rcvbuf",
    "net.ipv4.tcp_mtu_probing",
    "net.ipv4.tcp_no_metrics_save",
    "net.ipv4.tcp_no_ssthresh_metrics_save",
    "net.ipv4.tcp_notsent_lowat",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_reordering",
    "net.ipv4.tcp_rfc1337",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_sack",
    "net.ipv4.tcp_shrink_window",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_timestamps",
    "net.ipv4.tcp_tso_rtt_log",
    "net.ipv4.tcp_tso_win_divisor",
    "net.ipv4.tcp_tw_recycle",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_window_scaling",
    "net.ipv4.tcp_wmem",
    "net.ipv4.udp_mem",
    "net.ipv4.udp_rmem_min",
    "net.ipv4.udp_wmem_min",
    "net.ipv6.conf.all.disable_ipv6",
    "net.ipv6.conf.all.forwarding",
    "net.ipv6.neigh.default.gc_thresh3",
    "net.netfilter.nf_conntrack_count",
    "net.netfilter.nf_conntrack_max",
    "vm.min_free_kbytes",
    "vm.page-cluster",
    "vm.swappiness",
];

/// Of the network's variables, those that are not a namespace's own (`net_core_table` of
/// `net/core/sysctl_net_core.c`, `ipv4_table` of `net/ipv4/sysctl_net_ipv4.c`).
const OF_THE_MACHINE: [&str; 6] = [
    "net.ipv4.tcp_allowed_congestion_control",
    "net.ipv4.tcp_available_congestion_control",
    "net.ipv4.tcp_max_orphans",
    "net.ipv4.tcp_mem",
    "net.ipv4.udp_mem",
    "net.netfilter.nf_conntrack_max",
];

/// Of `net.core`, the few that are (`netns_core_table`).
const OF_THE_NAMESPACE: [&str; 2] = ["net.core.optmem_max", "net.core.somaxconn"];

/// The variables of the network namespace of the calling thread.
pub(super) fn sysctls(source: &mut Source) -> Vec<Sysctl> {
    KEYS.iter()
        .map(|key| Sysctl {
            key: (*key).to_owned(),
            value: source
                .optional(&format!("/proc/sys/{}", key.replace('.', "/")))
                .map(|value| value.split_whitespace().collect::<Vec<_>>().join(" ")),
            scope: scope(key),
            never_because: None,
        })
        .collect()
}

/// How far a variable reaches.
pub fn scope(key: &str) -> Scope {
    let shared = OF_THE_MACHINE.contains(&key)
        || !key.starts_with("net.")
        || key.contains(".neigh.default.gc_thresh")
        || (key.starts_with("net.core.") && !OF_THE_NAMESPACE.contains(&key));
    if shared {
        Scope::Machine
    } else {
        Scope::Namespace
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_in_order_and_stand_once() {
        assert!(KEYS.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn scopes_are_the_kernels() {
        assert_eq!(scope("net.ipv4.tcp_rmem"), Scope::Namespace);
        assert_eq!(scope("net.core.somaxconn"), Scope::Namespace);
        assert_eq!(scope("net.core.rmem_max"), Scope::Machine);
        assert_eq!(scope("net.ipv4.tcp_mem"), Scope::Machine);
        assert_eq!(scope("vm.swappiness"), Scope::Machine);
    }
}
