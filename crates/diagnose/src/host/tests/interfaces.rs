//! Rules about interfaces: their links, drivers, sizes and queues.

use super::*;

#[test]
fn links() {
    let link = |change: fn(&mut LinkMode)| {
        move |host: &mut HostResult| change(host.interfaces[0].link.as_mut().unwrap())
    };
    let mismatch = one(
        Cause::LinkDuplexHalf,
        Severity::Critical,
        link(|l| {
            l.duplex = Some(Duplex::Half);
            l.partner_speed_bps = None;
        }),
    );
    assert!(mismatch.findings[0].summary.contains("does not negotiate"));
    one(
        Cause::LinkSlow,
        Severity::Warning,
        link(|l| l.speed_bps = Some(1e9)),
    );
    // The far end's port is only that fast: nothing to fix.
    let slow = after(link(|l| {
        l.speed_bps = Some(1e9);
        l.partner_speed_bps = Some(1e9);
    }));
    assert_eq!(causes(&slow), []);
    one(Cause::LinkUnsteady, Severity::Info, |h| {
        h.interfaces[0].carrier_changes = Some(300)
    });
    one(Cause::BusSlow, Severity::Warning, |h| {
        h.interfaces[0].bus.as_mut().unwrap().speed_bps = Some(4e9);
    });
    // What is down is not judged.
    let down = after(|h| {
        h.interfaces[0].carrier = false;
        h.interfaces[0].link.as_mut().unwrap().duplex = Some(Duplex::Half);
    });
    assert_eq!(causes(&down), []);
}

#[test]
fn frames_and_rings() {
    one(Cause::LinkErrors, Severity::Warning, |h| {
        h.interfaces[0].counters.rx_crc_errors = 500
    });
    one(Cause::LinkErrors, Severity::Critical, |h| {
        h.interfaces[0].counters.rx_crc_errors = 50_000
    });
    let overrun = one(Cause::ReceiveOverrun, Severity::Warning, |h| {
        h.interfaces[0].counters.rx_missed_errors = 5000;
    });
    let Some(Action::Interface(action)) = &overrun.findings[0].fixes[0].action else {
        panic!("{overrun:?}")
    };
    assert_eq!(action.change, InterfaceChange::ReceiveRingPackets(4096));
}

#[test]
fn pause_frames() {
    let paused = |count: u64| {
        move |h: &mut HostResult| {
            h.interfaces[0].pause = Some(Pause {
                autonegotiation: true,
                receive: true,
                send: true,
            });
            let counters = &mut h.interfaces[0].driver_counters;
            counters.insert("rx_flow_control_xoff".into(), count);
        }
    };
    one(Cause::PauseFlood, Severity::Warning, paused(50_000));
    // A burst of them among 100 million packets.
    assert_eq!(causes(&after(paused(5000))), []);
}

#[test]
fn light_and_radio() {
    let module = |receive: Option<f64>| {
        move |h: &mut HostResult| {
            h.interfaces[0].module = Some(Module {
                receive_dbm: vec![receive],
                receive_low_dbm: Some(-18.0),
                ..Module::default()
            });
        }
    };
    one(
        Cause::ModuleLightLow,
        Severity::Warning,
        module(Some(-21.0)),
    );
    one(Cause::ModuleLightLow, Severity::Critical, module(None));
    assert_eq!(causes(&after(module(Some(-6.0)))), []);

    let radio = |change: fn(&mut Wifi)| {
        move |h: &mut HostResult| {
            let mut wifi = Wifi {
                signal_dbm: Some(-55),
                sent: Some(100_000),
                retries: Some(5000),
                busy_ratio: Some(0.2),
                frequency_hz: Some(5.18e9),
                power_save: Some(false),
                ..Wifi::default()
            };
            change(&mut wifi);
            h.interfaces[0].wifi = Some(wifi);
        }
    };
    assert_eq!(causes(&after(radio(|_| {}))), []);
    one(
        Cause::WifiWeak,
        Severity::Warning,
        radio(|w| w.signal_dbm = Some(-75)),
    );
    one(
        Cause::WifiWeak,
        Severity::Critical,
        radio(|w| w.signal_dbm = Some(-84)),
    );
    one(
        Cause::WifiRetries,
        Severity::Warning,
        radio(|w| w.retries = Some(40_000)),
    );
    // Whose frames they are, the driver does not report.
    one(
        Cause::WifiChannelBusy,
        Severity::Info,
        radio(|w| w.busy_ratio = Some(0.8)),
    );
    let airtime = |own_s: f64| {
        move |w: &mut Wifi| {
            w.busy_ratio = Some(0.8);
            w.airtime = Some(WifiAirtime {
                all_s: 1000.0,
                busy_s: 800.0,
                sent_s: Some(own_s / 2.0),
                own_received_s: Some(own_s / 2.0),
            });
        }
    };
    let busy = |own_s: f64| {
        move |h: &mut HostResult| {
            let mut wifi = Wifi {
                signal_dbm: Some(-55),
                ..Wifi::default()
            };
            airtime(own_s)(&mut wifi);
            h.interfaces[0].wifi = Some(wifi);
        }
    };
    one(Cause::WifiChannelBusy, Severity::Warning, busy(100.0));
    assert_eq!(causes(&after(busy(600.0))), [], "its own frames");
    one(
        Cause::WifiPowerSave,
        Severity::Info,
        radio(|w| w.power_save = Some(true)),
    );
}

#[test]
fn packet_sizes_and_neighbours() {
    // Ports of a bridge.
    let bridge = |h: &mut HostResult, other: u32| {
        let mut port = h.interfaces[0].clone();
        port.name = "eth1".into();
        port.index = 3;
        port.mtu_bytes = other;
        port.addresses.clear();
        port.controller = Some(9);
        h.interfaces[0].controller = Some(9);
        h.interfaces[0].addresses.clear();
        h.interfaces.push(port);
        h.interfaces.push(Interface {
            name: "br0".into(),
            index: 9,
            kind: Some("bridge".into()),
            mtu_bytes: 1500,
            ..Interface::default()
        });
    };
    let mixed = after(|h| bridge(h, 9000));
    assert_eq!(causes(&mixed)[0], (Cause::MtuMismatch, Severity::Warning));
    assert!(
        mixed.findings[0]
            .summary
            .starts_with("eth0 takes packets of 1500 bytes"),
        "{mixed:?}"
    );
    let alike = after(|h| bridge(h, 1500));
    assert!(
        causes(&alike)
            .iter()
            .all(|(cause, _)| *cause != Cause::MtuMismatch)
    );
    // IPv6 needs 1280.
    one(Cause::MtuMismatch, Severity::Warning, |h| {
        h.interfaces[0].mtu_bytes = 1200
    });

    one(Cause::BroadcastDomainLarge, Severity::Warning, |h| {
        h.interfaces[0].neighbours = 700
    });
    // A large prefix alone does no harm.
    assert_eq!(
        causes(&after(
            |h| h.interfaces[0].addresses = vec!["10.0.0.7/8".into()]
        )),
        []
    );
}

#[test]
fn offloads() {
    let off = one(Cause::OffloadOff, Severity::Warning, |h| {
        h.interfaces[0].offloads[2].on = false
    });
    assert!(off.findings[0].summary.contains("rx-gro"));
    // On a slow link it is only worth knowing, and what cannot be changed is no finding.
    let slow = after(|h| {
        h.interfaces[0].offloads[2].on = false;
        let link = h.interfaces[0].link.as_mut().unwrap();
        for speed in [
            &mut link.speed_bps,
            &mut link.best_speed_bps,
            &mut link.partner_speed_bps,
            &mut link.offered_speed_bps,
        ] {
            *speed = Some(100e6);
        }
    });
    assert_eq!(causes(&slow), [(Cause::OffloadOff, Severity::Info)]);
    assert_eq!(
        causes(&after(|h| {
            h.interfaces[0].offloads[2].on = false;
            h.interfaces[0].offloads[2].fixed = true;
        })),
        []
    );
    one(Cause::OffloadHarmful, Severity::Warning, |h| {
        h.interfaces[0].offloads[3].on = true;
        set(h, "net.ipv4.ip_forward", "1");
    });
    assert_eq!(
        causes(&after(|h| h.interfaces[0].offloads[3].on = true)),
        []
    );
}

/// A container host has one for each container, and the card behind them is judged.
#[test]
fn what_is_no_card_needs_no_offloads() {
    let container = after(|h| {
        let mut veth = h.interfaces[0].clone();
        veth.name = "d0".into();
        veth.index = 3;
        veth.kind = Some("veth".into());
        veth.bus = None;
        veth.offloads[2].on = false;
        veth.addresses.clear();
        h.interfaces.push(veth);
    });
    assert_eq!(causes(&container), []);
}

#[test]
fn a_queue_that_the_kernel_lacks_is_not_advised() {
    let fix = |kinds: Option<&[&str]>| {
        let audit = one(Cause::QueueUnmanaged, Severity::Info, |h| {
            h.qdiscs[0].kind = "pfifo_fast".into();
            h.qdiscs[0].drops = 0;
            h.queue_kinds = kinds.map(|kinds| kinds.iter().map(|k| (*k).into()).collect());
        });
        audit.findings[0].fixes[0].clone()
    };
    let set = |kinds| match fix(kinds).action {
        Some(Action::Interface(action)) => match action.change {
            InterfaceChange::Qdisc(kind) => Some(kind),
            other => panic!("{other:?}"),
        },
        _ => None,
    };
    assert_eq!(set(None).as_deref(), Some("fq_codel"));
    assert_eq!(
        set(Some(&["pfifo", "fq_codel", "sfq"])).as_deref(),
        Some("fq_codel")
    );
    assert_eq!(set(Some(&["pfifo", "sfq"])).as_deref(), Some("sfq"));
    assert_eq!(set(Some(&["pfifo", "fq"])), None);
    let summary = fix(Some(&["pfifo"])).summary;
    assert!(summary.contains("this kernel has neither it"), "{summary}");
}

#[test]
fn queues() {
    // Drops of fq_codel are its work; drops of a plain queue are not.
    one(Cause::QueueUnmanaged, Severity::Info, |h| {
        h.qdiscs[0].kind = "pfifo_fast".into();
        h.qdiscs[0].drops = 0;
    });
    let router = after(|h| {
        h.qdiscs[0].kind = "pfifo_fast".into();
        set(h, "net.ipv4.ip_forward", "1");
    });
    assert_eq!(
        causes(&router),
        [
            (Cause::QueueDrops, Severity::Warning),
            (Cause::QueueUnmanaged, Severity::Warning)
        ]
    );
    one(Cause::DriverQueueUnlimited, Severity::Info, |h| {
        h.interfaces[0].byte_limits[0].limit_bytes = 0
    });
}

#[test]
fn interrupts_for_every_packet_and_late_ones() {
    let adaptive = |audit: &Audit| match &audit.findings[0].fixes[0].action {
        Some(Action::Interface(action)) => action.change == InterfaceChange::AdaptiveReceive(true),
        _ => false,
    };
    let unfit = |change: fn(&mut Coalescing)| {
        one(Cause::CoalescingUnfit, Severity::Info, |h| {
            change(h.interfaces[0].coalescing.as_mut().unwrap());
        })
    };
    let every = unfit(|c| c.receive_s = 0.0);
    assert!(adaptive(&every) && every.findings[0].summary.contains("every packet"));
    let late = unfit(|c| c.receive_s = 1e-3);
    assert!(
        adaptive(&late) && late.findings[0].summary.contains("1.0 ms"),
        "{late:?}"
    );
    let cannot = unfit(|c| {
        c.receive_s = 1e-3;
        c.adaptive_receive_possible = Some(false);
    });
    assert!(cannot.findings[0].fixes[0].action.is_none());
    // One that adapts, and a paravirtual card, are left alone.
    for change in [
        (|i: &mut Interface| i.coalescing.as_mut().unwrap().adaptive_receive = true)
            as fn(&mut Interface),
        |i| i.driver = Some("virtio_net".into()),
    ] {
        let mut host = healthy();
        host.interfaces[0].coalescing.as_mut().unwrap().receive_s = 0.0;
        change(&mut host.interfaces[0]);
        assert_eq!(causes(&audit(&host, "m1")), []);
    }
}

#[test]
fn a_link_that_sleeps() {
    let sleeps = one(Cause::PowerSaving, Severity::Info, |h| {
        h.interfaces[0].energy_efficient = Some(true);
    });
    assert!(sleeps.findings[0].matters_for == [PathKind::Lan]);
    let mut host = healthy();
    host.interfaces[0].energy_efficient = Some(true);
    host.interfaces[0].carrier_changes = Some(40);
    let worst = &audit(&host, "m1").findings[0];
    assert_eq!(
        (worst.cause, worst.severity),
        (Cause::PowerSaving, Severity::Warning)
    );
}
