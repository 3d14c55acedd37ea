//! Values that follow from paths.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::advice::in_a_sentence;
use super::*;
use crate::knobs::Catalogue;
use crate::knobs::available::Available;
use plumb_model::tune::{Os, Role};

fn situation(rate_bps: f64, rtt_s: f64) -> Situation {
    Situation {
        rate_bps,
        rtt_s,
        loss_ratio: None,
        role: Role::Client,
        memory_bytes: Some(64 << 30),
        mtu_bytes: Some(1500),
        release: Some("6.12.0".to_owned()),
    }
}

fn advice(os: Os, name: &str, situation: &Situation, value: Option<&str>) -> Advice {
    let catalogue = Catalogue::built_in().unwrap();
    let present = Present {
        value,
        bbr: Available::Yes,
        cubic: Available::Yes,
        congestion_control: Some("cubic"),
        ..Present::default()
    };
    advise(catalogue.find(os, name).unwrap(), situation, present)
}

fn value(advice: &Advice) -> Option<&str> {
    match advice {
        Advice::Set { value, .. } => Some(value),
        Advice::Leave { .. } => None,
    }
}

#[test]
fn buffers_follow_the_path() {
    // The article's path: 62.5 MB in flight need 128 MiB, not 64.
    let long = situation(10e9, 0.050);
    let stock = Some("4096 16384 4194304");
    let send = advice(Os::Linux, "net.ipv4.tcp_wmem", &long, stock);
    assert_eq!(value(&send), Some("4096 16384 134217728"));
    let lan = situation(10e9, 0.0003);
    assert_eq!(
        value(&advice(Os::Linux, "net.ipv4.tcp_wmem", &lan, stock)),
        None
    );
    // A small machine gets what it can afford.
    let small = Situation {
        memory_bytes: Some(1 << 30),
        ..long.clone()
    };
    let send = advice(Os::Linux, "net.ipv4.tcp_wmem", &small, stock);
    assert_eq!(value(&send), Some("4096 16384 67108864"));
    let router = Situation {
        role: Role::Router,
        ..long.clone()
    };
    assert_eq!(
        value(&advice(Os::Linux, "net.ipv4.tcp_wmem", &router, stock)),
        None
    );
    for name in ["net.inet.tcp.autorcvbufmax", "kern.ipc.maxsockbuf"] {
        let mac = advice(Os::Macos, name, &long, None);
        assert_eq!(value(&mac), Some("134217728"), "{name}");
    }
}

#[test]
fn bbr_where_cubic_cannot() {
    let cc = |s: &Situation| {
        value(&advice(
            Os::Linux,
            "net.ipv4.tcp_congestion_control",
            s,
            Some("cubic"),
        ))
        .map(str::to_owned)
    };
    assert_eq!(cc(&situation(10e9, 0.050)).as_deref(), Some("bbr"));
    assert_eq!(cc(&situation(10e9, 0.0003)), None);
    assert_eq!(cc(&situation(50e6, 0.020)), None);
    let lossy = Situation {
        loss_ratio: Some(0.01),
        ..situation(50e6, 0.020)
    };
    assert_eq!(cc(&lossy).as_deref(), Some("bbr"));
}

#[test]
fn reasons_can_be_read() {
    let path = situation(1e9, 0.05);
    let why = |name, value| match advice(Os::Linux, name, &path, Some(value)) {
        Advice::Leave { why } => why,
        set => panic!("{set:?}"),
    };
    assert_eq!(
        why("net.ipv4.tcp_syncookies", "1"),
        "it does not matter: for throughput."
    );
    assert_eq!(
        why("net.core.somaxconn", "4096"),
        "it does not matter: clients, single transfers, and programs that ask for less."
    );
    assert_eq!(why("net.ipv4.tcp_sack", "1"), "already right");
    assert_eq!(why("net.ipv4.tcp_timestamps", "2"), "2 does as well as 1");
    assert_eq!(in_a_sentence("IPv6 routers"), "IPv6 routers");
    assert_eq!(in_a_sentence(""), "");
}

#[test]
fn reno_gives_way_to_cubic_on_a_long_path() {
    let cc = |s: &Situation| {
        let name = "net.ipv4.tcp_congestion_control";
        value(&advice(Os::Linux, name, s, Some("reno"))).map(str::to_owned)
    };
    assert_eq!(cc(&situation(1e9, 0.08)).as_deref(), Some("cubic"));
    assert_eq!(cc(&situation(1e9, 0.001)), None);
    assert_eq!(cc(&situation(10e9, 0.08)).as_deref(), Some("bbr"));
}

#[test]
fn what_must_be_on_is_switched_on() {
    let path = situation(1e9, 0.05);
    let sack = |now| value(&advice(Os::Linux, "net.ipv4.tcp_sack", &path, now)).map(str::to_owned);
    assert_eq!(sack(Some("0")).as_deref(), Some("1"));
    assert_eq!(sack(Some("1")), None);
    let stamps = advice(Os::Linux, "net.ipv4.tcp_timestamps", &path, Some("2"));
    assert_eq!(value(&stamps), None, "2 is as good");
    let server = Situation {
        role: Role::Server,
        ..path.clone()
    };
    let backlog = |s: &Situation, now| {
        value(&advice(Os::Linux, "net.core.somaxconn", s, Some(now))).map(str::to_owned)
    };
    assert_eq!(backlog(&server, "4096").as_deref(), Some("8192"));
    assert_eq!(backlog(&server, "65535"), None);
    assert_eq!(backlog(&path, "128"), None);
}

fn expected(advice: &Advice) -> &str {
    match advice {
        Advice::Set { effect, .. } => effect,
        Advice::Leave { why } => why,
    }
}

/// What is promised is what the proposed buffer carries, not what was asked for.
#[test]
fn expectations_know_the_cap() {
    // 50 GB in flight: the largest window of TCP carries 8.6 Gbit/s.
    let huge = Situation {
        memory_bytes: Some(24 << 30),
        ..situation(400e9, 1.0)
    };
    let stock = Some("4096 16384 4194304");
    let send = advice(Os::Linux, "net.ipv4.tcp_wmem", &huge, stock);
    let Advice::Set {
        value, why, effect, ..
    } = &send
    else {
        panic!("{send:?}")
    };
    assert_eq!(value, "4096 16384 1610612736");
    assert!(
        why.contains("The path would need 62.5 GB, which is too much of this host's memory"),
        "{why}"
    );
    assert_eq!(
        effect,
        "One connection may carry about 8.59 Gbit/s instead of about 26.8 Mbit/s; 47 of them side by side carry 400 Gbit/s, if the line and the other end can."
    );
    let large = Some("4096 16384 2147483647");
    let enough = advice(Os::Linux, "net.ipv4.tcp_wmem", &huge, large);
    assert!(
        expected(&enough).contains("as much as can be"),
        "{enough:?}"
    );
    for (os, name, rate, rtt) in [
        (Os::Macos, "net.inet.tcp.autorcvbufmax", 100e9, 2.0),
        (Os::Freebsd, "net.inet.tcp.sendbuf_max", 100e9, 2.0),
        (Os::Netbsd, "net.inet.tcp.recvbuf_max", 100e9, 2.0),
        (Os::Solaris, "send_buf", 100e9, 2.0),
        (Os::Windows, "autotuninglevel", 100e9, 2.0),
    ] {
        let unknown = Situation {
            memory_bytes: None,
            ..situation(rate, rtt)
        };
        let advice = advice(os, name, &unknown, None);
        assert!(
            expected(&advice).contains("side by side carry 100 Gbit/s"),
            "{os} {advice:?}"
        );
    }
    // Only the rounding up to a power of two does not fit.
    let tight = Situation {
        memory_bytes: Some(16 * 130_000_000),
        ..situation(10e9, 0.050)
    };
    let Advice::Set { why, .. } = advice(Os::Linux, "net.ipv4.tcp_wmem", &tight, stock) else {
        panic!()
    };
    assert!(!why.contains("would need"), "{why}");
}

/// The shares of a buffer are those that measured windows are judged by.
#[test]
fn what_a_present_buffer_carries_is_what_is_measured() {
    let path = situation(1e9, 0.150);
    let send = advice(
        Os::Linux,
        "net.ipv4.tcp_wmem",
        &path,
        Some("4096 16384 4194304"),
    );
    assert!(
        expected(&send).contains("instead of about 179 Mbit/s"),
        "{send:?}"
    );
    let receive = advice(
        Os::Linux,
        "net.ipv4.tcp_rmem",
        &path,
        Some("4096 131072 33554432"),
    );
    assert_eq!(
        value(&receive),
        None,
        "21.8 MB of window hold 18.75 MB: {receive:?}"
    );
    let unknown = advice(Os::Linux, "net.ipv4.tcp_wmem", &path, None);
    let Advice::Set { why, .. } = &unknown else {
        panic!("{unknown:?}")
    };
    assert!(
        why.contains("the kernel's default of 4.19 MB is too little"),
        "{why}"
    );
}

proptest! {
    #[test]
    fn no_value_beyond_what_the_kernel_takes(
        bps in 1.0..1e15f64, rtt in 0.0..1e4f64, loss in prop::option::of(0.0..1.0f64),
        memory in prop::option::of(0u64..u64::MAX), role in 0..3, now in "\\PC{0,20}",
    ) {
        let role = [Role::Client, Role::Server, Role::Router][role as usize];
        let situation = Situation {
            loss_ratio: loss, role, memory_bytes: memory, ..situation(bps, rtt)
        };
        let catalogue = Catalogue::built_in().unwrap();
        for knob in &catalogue.knobs {
            for value in [None, Some(now.as_str()), Some("4096 131072 6291456")] {
                let present = Present { value, ..Present::default() };
                if let Advice::Set { value, .. } = advise(knob, &situation, present) {
                    prop_assert!(knob.check(&value).is_ok(), "{} {value}", knob.name);
                }
            }
        }
    }
}
