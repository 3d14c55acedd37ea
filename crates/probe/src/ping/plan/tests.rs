//! Plans and sizes that can be, and that cannot.

#![allow(clippy::unwrap_used)]

use super::*;

fn plan() -> Plan {
    Plan::new(
        Protocol::Udp,
        "example.net",
        SocketAddr::from(([192, 0, 2, 1], 7586)),
    )
}

#[test]
fn the_first_limit_ends_it() {
    let limited = |count, ms: Option<u64>| {
        Plan {
            count,
            duration: ms.map(Duration::from_millis),
            ..plan()
        }
        .probes()
    };
    assert_eq!(limited(Some(5), None), 5);
    assert_eq!(limited(Some(5), Some(300)), 3);
    assert_eq!(limited(None, Some(301)), 4, "one is due at 300 ms");
    assert_eq!(limited(None, None), u32::MAX);
    assert_eq!(limited(Some(0), None), 0);
}

#[test]
fn impossible_plans_are_refused() {
    assert!(plan().check().is_ok());
    let error = |plan: Plan| plan.check().map_err(|e| e.to_string());
    assert!(
        error(Plan {
            interval: Duration::ZERO,
            ..plan()
        })
        .is_err_and(|e| e.contains("1ms"))
    );
    assert!(
        error(Plan {
            sizes: Sizes::One(63),
            ..plan()
        })
        .is_err_and(|e| e.contains("64 to 65507"))
    );
    let dscp = Some(64);
    assert!(error(Plan { dscp, ..plan() }).is_err_and(|e| e.contains("0 to 63")));
    let icmp = Plan {
        protocol: Protocol::Icmp,
        sizes: Sizes::One(12),
        ..plan()
    };
    assert!(icmp.check().is_ok());
}

#[test]
fn sizes_are_swept_from_the_smallest_to_the_largest_and_again() {
    let sizes: Sizes = "100..200:40".parse().unwrap();
    let sent: Vec<usize> = (0..5).map(|n| sizes.of(n)).collect();
    assert_eq!(sent, [100, 140, 180, 100, 140]);
    assert_eq!("64..1472".parse::<Sizes>().map(Sizes::count), Ok(16));
    assert_eq!("64..64:1".parse::<Sizes>().map(Sizes::count), Ok(1));
    for wrong in [
        "",
        "64",
        "64..",
        "200..100:1",
        "1..9:0",
        "1..70000:1",
        "a..b:c",
        "-1..3:1",
    ] {
        assert_eq!(wrong.parse::<Sizes>(), Err(SweepError), "{wrong}");
    }
}

#[test]
fn many_hosts_at_once_are_refused() {
    for address in ["255.255.255.255", "224.0.0.1", "ff02::1"] {
        let target = SocketAddr::new(address.parse().unwrap(), 0);
        let plan = Plan::new(Protocol::Icmp, address, target);
        assert!(
            matches!(plan.check(), Err(ProbeError::Many { .. })),
            "{address}"
        );
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_a_sweep_that_leaves_its_bounds(text in "[0-9.:]{0,12}", sequence: u32) {
        if let Ok(sizes @ Sizes::Sweep { from, to, .. }) = text.parse::<Sizes>() {
            proptest::prop_assert!((from..=to).contains(&sizes.of(sequence)));
        }
    }
}

#[test]
fn far_ends_are_named_as_typed() {
    assert_eq!(plan().far_end(), "example.net:7586");
    assert_eq!(
        Plan {
            name: "2001:db8::1".into(),
            ..plan()
        }
        .far_end(),
        "[2001:db8::1]:7586"
    );
}

#[test]
fn what_keeps_a_socket_from_being_opened_is_said_and_privileges_only_where_they_lack() {
    let icmp = |outlet: Outlet, [raw, ping]: [i32; 2]| {
        let plan = Plan { outlet, ..plan() };
        let [raw, ping] = [raw, ping].map(io::Error::from_raw_os_error);
        ProbeError::icmp(&plan, IcmpError { raw, ping }).to_string()
    };
    let (eperm, eacces, enetunreach) = (1, 13, 101);
    let by = |interface: &str| Outlet {
        interface: Some(interface.to_owned()),
        source: None,
    };
    let denied = icmp(Outlet::default(), [eperm, eacces]);
    assert!(denied.contains("raw sockets"), "{denied}");
    for (outlet, codes, wanted) in [
        (
            Outlet::default(),
            [enetunreach; 2],
            "no route to 192.0.2.1;",
        ),
        (Outlet::default(), [eperm, enetunreach], "no route"),
        (by("eth7"), [enetunreach; 2], "by the interface eth7"),
    ] {
        let said = icmp(outlet, codes);
        assert!(said.contains(wanted) && !said.contains("setcap"), "{said}");
    }
}

#[test]
fn a_port_is_said_once() {
    let far_end = |name: &str| {
        Plan {
            name: name.to_owned(),
            ..plan()
        }
        .far_end()
    };
    assert_eq!(far_end("server:9"), "server:7586");
    assert_eq!(far_end("[2001:db8::1]:9"), "[2001:db8::1]:7586");
    assert_eq!(far_end("2001:db8::1"), "[2001:db8::1]:7586");
}
