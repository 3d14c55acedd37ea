//! Values that follow from paths.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::knobs::Catalogue;
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
        congestion_controls: Some("reno cubic bbr"),
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
