//! Rules about the kernel, its processors, limits and clock.

use super::*;
use crate::{Case, testing};
use plumb_model::goal::Asked;
use plumb_model::results::Outcome;
use plumb_model::run::HostFacts;

#[test]
fn receiving() {
    let backlog = one(Cause::BacklogDrops, Severity::Warning, |h| {
        h.softnet[0].dropped = 5000
    });
    let Some(Action::Sysctl(action)) = &backlog.findings[0].fixes[0].action else {
        panic!("{backlog:?}")
    };
    assert_eq!(
        (action.key.as_str(), action.value.as_str()),
        ("net.core.netdev_max_backlog", "4000")
    );
    one(Cause::BacklogDrops, Severity::Info, |h| {
        h.softnet[0].squeezed = 1_000_000
    });
    one(Cause::OneProcessorReceives, Severity::Info, |h| {
        h.interrupts[0].counts = vec![0, 5_000_000, 0, 0, 0, 0, 0, 0];
    });
    // RPS spreads them.
    assert_eq!(
        causes(&after(|h| {
            h.interrupts[0].counts = vec![0, 5_000_000, 0, 0, 0, 0, 0, 0];
            h.interfaces[0].steering[0].cpus = "fe".into();
        })),
        []
    );
    one(Cause::PowerSaving, Severity::Warning, |h| {
        h.cpus.frequency_driver = Some("acpi-cpufreq".into())
    });
    one(Cause::PowerSaving, Severity::Info, |h| {
        h.cpus.wake_s = Some(0.001)
    });
}

#[test]
fn tcp() {
    let scaling = one(Cause::TcpFeatureOff, Severity::Critical, |h| {
        set(h, "net.ipv4.tcp_window_scaling", "0")
    });
    assert!(
        scaling.findings[0]
            .matters_for
            .contains(&PathKind::LongPath)
    );
    one(Cause::TcpFeatureOff, Severity::Warning, |h| {
        set(h, "net.ipv4.tcp_sack", "0")
    });
    one(Cause::TcpFeatureOff, Severity::Warning, |h| {
        set(h, "net.ipv4.ip_no_pmtu_disc", "1")
    });
    let small = one(Cause::SendBufferSmall, Severity::Info, |h| {
        set(h, "net.ipv4.tcp_wmem", "4096 16384 4194304")
    });
    let Some(Action::Sysctl(action)) = &small.findings[0].fixes[0].action else {
        panic!("{small:?}")
    };
    // 10 Gbit/s over 100 ms is 125 MB, and a buffer of twice that is proposed.
    assert_eq!(action.value, "4096 16384 268435456");
    one(Cause::ReceiveBufferSmall, Severity::Info, |h| {
        set(h, "net.ipv4.tcp_rmem", "4096 131072 6291456")
    });
    // What is no three numbers is not known, rather than wrong.
    assert_eq!(causes(&after(|h| set(h, "net.ipv4.tcp_rmem", "lots"))), []);
    one(Cause::RetransmitsHigh, Severity::Info, |h| {
        count(h, "TcpRetransSegs", 200_000)
    });
    one(Cause::RetransmitsHigh, Severity::Warning, |h| {
        count(h, "TcpRetransSegs", 400_000)
    });
}

/// Most programs ask for no buffer, and what they may ask for at most does not help them.
#[test]
fn datagrams_without_room_take_a_larger_default_as_well() {
    let found = one(Cause::UdpBufferSmall, Severity::Warning, |h| {
        count(h, "UdpRcvbufErrors", 500);
        set(h, "net.core.rmem_default", "212992");
    });
    let fixes = &found.findings[0].fixes;
    let set = fixes.iter().filter_map(|fix| match &fix.action {
        Some(Action::Sysctl(action)) => Some(action.key.as_str()),
        _ => None,
    });
    let set: Vec<&str> = set.collect();
    assert_eq!(set, ["net.core.rmem_max", "net.core.rmem_default"]);
    let text = &found.verdict.headline;
    assert!(text.starts_with("1 of "), "{text}");
}

#[test]
fn room_for_connections_and_datagrams() {
    one(Cause::UdpBufferSmall, Severity::Warning, |h| {
        count(h, "UdpRcvbufErrors", 500)
    });
    one(Cause::ListenOverflow, Severity::Warning, |h| {
        count(h, "TcpExtListenOverflows", 4)
    });
    let full = one(Cause::ListenOverflow, Severity::Critical, |h| {
        h.sockets.listeners[0].waiting = 511
    });
    assert!(full.findings[0].summary.contains("0.0.0.0:443"));
    one(Cause::MemoryPressure, Severity::Warning, |h| {
        count(h, "TcpExtTCPMemoryPressures", 2)
    });
    one(Cause::MemoryPressure, Severity::Critical, |h| {
        count(h, "TcpExtTCPAbortOnMemory", 1)
    });
    one(Cause::ReceiveBufferPruned, Severity::Warning, |h| {
        count(h, "TcpExtRcvPruned", 5000)
    });
    one(Cause::FragmentsLost, Severity::Warning, |h| {
        count(h, "IpReasmFails", 40)
    });
    one(Cause::LimitNear, Severity::Warning, |h| {
        h.neighbours[0].entries = 900
    });
    one(Cause::LimitNear, Severity::Critical, |h| {
        h.neighbours[0].entries = 1024
    });
    one(Cause::LimitNear, Severity::Warning, |h| {
        h.files.open = Some(900_000)
    });
    one(Cause::LimitNear, Severity::Warning, |h| {
        set(h, "net.netfilter.nf_conntrack_count", "900")
    });
    one(Cause::LimitNear, Severity::Info, |h| {
        count(h, "TcpExtTCPTimeWaitOverflow", 1)
    });
    one(Cause::LimitNear, Severity::Info, |h| {
        h.files.per_process_max = Some(1024)
    });
}

#[test]
fn old_advice_and_clocks() {
    one(Cause::ObsoleteSetting, Severity::Warning, |h| {
        h.sysctls[0].never_because = Some("it breaks clients behind NAT".into());
    });
    // What TCP's own rule judges is one finding, though the catalogue names it too.
    for (key, value) in [
        ("net.ipv4.tcp_sack", "0"),
        ("net.ipv4.ip_no_pmtu_disc", "1"),
    ] {
        one(Cause::TcpFeatureOff, Severity::Warning, |h| {
            set(h, key, value);
            let sysctl = h.sysctls.iter_mut().find(|s| s.key == key).unwrap();
            sysctl.never_because = Some("it is obsolete advice".into());
        });
    }
    one(Cause::ClockUnsynchronised, Severity::Info, |h| {
        h.clock.synchronised = Some(false)
    });
    one(Cause::ClockSourceSlow, Severity::Warning, |h| {
        h.clock.source = Some("hpet".into())
    });
}

/// A check without a far end reports it as the audit does, and does not begin with it.
#[test]
fn what_was_counted_since_boot_is_as_grave_without_a_far_end() {
    let mut host = healthy();
    count(&mut host, "UdpRcvbufErrors", 1_000_000);
    let measurements = [testing::measurement(Outcome::Host(Box::new(host)))];
    let asked = |local| Asked {
        local,
        ..Asked::default()
    };
    let severity = |local| {
        let asked = asked(local);
        let case = Case {
            measurements: &measurements,
            local: &HostFacts::default(),
            far: None,
            asked: Some(&asked),
            log: None,
        };
        let found = crate::rules::found(&case);
        found.iter().map(|f| f.severity).max()
    };
    assert_eq!(severity(false), Some(Severity::Warning));
    assert_eq!(severity(true), Some(Severity::Warning));
    let mut run =
        plumb_model::run::Run::from_json(include_str!("../../../fixtures/policer.json")).unwrap();
    run.measurements = measurements.to_vec();
    run.asked = Some(asked(true));
    run.findings = crate::rules::found(&Case::of(&run));
    let headline = crate::verdict::local(&run).headline;
    assert!(
        headline.starts_with("Inconclusive: nothing wrong"),
        "{headline}"
    );
    assert!(
        headline.ends_with("since it booted: udp-buffer-small."),
        "{headline}"
    );
}

/// Beside a path, of the machine that counts which is so now and bears on it.
#[test]
fn what_was_counted_since_boot_holds_back_no_path() {
    let beside_a_path = |change: fn(&mut HostResult)| {
        let mut host = healthy();
        change(&mut host);
        let measurements = [
            testing::measurement(Outcome::Host(Box::new(host))),
            testing::measurement(Outcome::Port(Box::default())),
        ];
        let case = Case {
            measurements: &measurements,
            local: &HostFacts::default(),
            far: None,
            asked: None,
            log: None,
        };
        let found = crate::rules::found(&case);
        found.iter().map(|f| f.cause).collect::<Vec<_>>()
    };
    let dropped = beside_a_path(|h| count(h, "UdpRcvbufErrors", 1_000_000));
    assert_eq!(dropped, []);
    let backlog = beside_a_path(|h| h.softnet[0].dropped = 5000);
    assert_eq!(backlog, []);
    let half = beside_a_path(|h| {
        h.interfaces[0].link.as_mut().unwrap().duplex = Some(Duplex::Half);
    });
    assert!(half.contains(&Cause::LinkDuplexHalf), "{half:?}");
}
