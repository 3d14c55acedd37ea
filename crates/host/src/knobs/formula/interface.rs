//! Rules for settings of interfaces: each follows from what the interface has, what it counted and what its driver
//! supports. A driver without support, or without a report of it, is left alone. Pure.

use plumb_model::results::host::{FAST_BPS, Interface, OVERRUN_RATIO, Qdisc};
use plumb_model::units::{human_seconds, si};

use super::advice::{Advice, no_matter, set};
use super::rule::Formula;
use crate::knobs::Knob;
use crate::knobs::situation::Situation;

/// Fewer lost packets than this say nothing: a few are lost while an interface comes up.
const ENOUGH_OVERRUNS: u64 = 10;

/// Packets that a plain queue holds unless set (`DEFAULT_TX_QUEUE_LEN`, `include/net/pkt_sched.h`).
const QUEUE_PACKETS: u32 = 1000;

/// Delay of a full plain queue above which it is bufferbloat, in seconds: more than the round trip of most
/// paths that it delays.
const QUEUE_DELAY_S: f64 = 0.05;

/// Bits of a packet of 1500 bytes on Ethernet, with everything around it (IEEE 802.3: 38 bytes).
const PACKET_BITS: f64 = 1538.0 * 8.0;

/// Bytes below which a driver's queue runs dry between two interrupts: two of the largest segments that the
/// stack hands down at once (GSO_LEGACY_MAX_SIZE, 64 KiB).
const DRIVER_QUEUE_BYTES: u64 = 2 << 16;

/// What BQL's own limit may grow to unless set (`DQL_MAX_LIMIT`, `include/linux/dynamic_queue_limits.h`).
const DRIVER_QUEUE_MOST_BYTES: u64 = 1_879_048_192;

/// What the host has of an interface.
#[derive(Debug, Clone, Copy, Default)]
pub struct Present<'a> {
    /// The interface that leads to the path.
    pub interface: Option<&'a Interface>,
    pub qdiscs: &'a [Qdisc],
}

/// What an interface is set to, in the words that a plan shows; `None` where it does not report it.
pub(crate) fn value(knob: &Knob, present: Present<'_>) -> Option<String> {
    let interface = present.interface?;
    match knob.value {
        Formula::ReceiveRing => Some(interface.rings?.receive_packets.to_string()),
        Formula::QueueLength => Some(interface.tx_queue_packets?.to_string()),
        Formula::Offload => {
            let offload = interface.offload(knob.feature.as_deref()?)?;
            Some(if offload.on { "on" } else { "off" }.to_owned())
        }
        Formula::Coalescing => {
            let adaptive = interface.coalescing?.adaptive_receive;
            Some(if adaptive { "on" } else { "off" }.to_owned())
        }
        Formula::DriverQueue => Some(driver_queue(interface)?.to_string()),
        _ => None,
    }
}

/// What should become of a setting of an interface.
pub(super) fn advise(knob: &Knob, situation: &Situation, present: Present<'_>) -> Advice {
    let Some(interface) = present.interface else {
        return leave("the interface that leads to the path is not known");
    };
    if interface.is_a_programs() {
        return leave(format!(
            "{} is a TUN device: the program behind it decides",
            interface.name
        ));
    }
    match knob.value {
        Formula::ReceiveRing => ring(interface),
        Formula::QueueLength => queue_length(situation, interface, present.qdiscs),
        Formula::Offload => offload(knob, situation, interface),
        Formula::Coalescing => coalescing(situation, interface),
        Formula::DriverQueue => driver_queue_limit(situation, interface),
        _ => leave(no_matter(knob)),
    }
}

fn leave(why: impl Into<String>) -> Advice {
    Advice::Leave { why: why.into() }
}

fn ring(interface: &Interface) -> Advice {
    let name = &interface.name;
    let Some(rings) = interface.rings else {
        return leave(format!("the driver of {name} does not report its rings"));
    };
    let (now, most) = (rings.receive_packets, rings.receive_max_packets);
    if now >= most {
        return leave(format!("it holds {now} packets, the most that it can"));
    }
    let counters = &interface.counters;
    let lost = counters.overruns();
    let received = counters.rx_packets.saturating_add(lost);
    if received == 0 {
        return leave(format!(
            "it holds {now} of at most {most} packets; only where ethtool -S {name} counts packets missed would more help"
        ));
    }
    if lost < ENOUGH_OVERRUNS || (lost as f64) < OVERRUN_RATIO * received as f64 {
        return leave(format!(
            "{lost} of {received} packets found it full: more would add nothing but memory"
        ));
    }
    set(
        &most.to_string(),
        format!(
            "{lost} packets that {name} received found its ring of {now} full and were lost: one in {:.0}.",
            received as f64 / lost as f64
        ),
        "The counter of missed packets stops.",
    )
}

fn queue_length(situation: &Situation, interface: &Interface, qdiscs: &[Qdisc]) -> Advice {
    let Some(now) = interface.tx_queue_packets else {
        return leave("it is not known");
    };
    // The only one that follows the length while it is in use (`pfifo_fast_change_tx_queue_len`).
    if !qdiscs.iter().any(|q| q.kind == "pfifo_fast") {
        let kinds: Vec<_> = qdiscs.iter().map(|q| q.kind.as_str()).collect();
        let kind = kinds.first().copied().unwrap_or("its queue");
        return leave(format!("{kind} does not go by it"));
    }
    let link = interface.link.as_ref().and_then(|link| link.speed_bps);
    let rate_bps = link.unwrap_or(situation.rate_bps);
    let delay_s = f64::from(now) * PACKET_BITS / rate_bps;
    let to = QUEUE_PACKETS.to_string();
    if now > QUEUE_PACKETS && delay_s > QUEUE_DELAY_S {
        return set(
            &to,
            format!(
                "A full queue of {now} packets is {} of delay for everything that leaves by {}.",
                human_seconds(delay_s),
                interface.name
            ),
            "Other traffic of this host waits less behind a transfer; fq_codel would do better.",
        );
    }
    if now < QUEUE_PACKETS && rate_bps >= FAST_BPS {
        return set(
            &to,
            format!(
                "{now} packets are {} at {}: bursts of several connections overflow it.",
                human_seconds(delay_s),
                si(rate_bps, "bit/s")
            ),
            "This host's own queue drops no bursts (tc -s qdisc).",
        );
    }
    leave(format!(
        "{now} packets are {} at {}",
        human_seconds(delay_s),
        si(rate_bps, "bit/s")
    ))
}

fn offload(knob: &Knob, situation: &Situation, interface: &Interface) -> Advice {
    let name = &interface.name;
    let (Some(feature), Some(wanted)) = (&knob.feature, &knob.wanted) else {
        return leave(no_matter(knob));
    };
    let on = wanted == "on";
    if let Some(kind) = &interface.kind {
        return leave(format!(
            "{name} is a {kind}, which passes large pieces on whole: the card behind it matters"
        ));
    }
    let Some(offload) = interface.offload(feature) else {
        return leave(format!("{name} does not report it"));
    };
    if offload.on == on {
        return leave(format!("it is {wanted} already"));
    }
    if offload.fixed {
        return leave(format!("the driver of {name} does not let it be changed"));
    }
    if on && situation.rate_bps < FAST_BPS {
        return leave("below 1 Gbit/s a processor keeps up without");
    }
    set(
        wanted,
        format!(
            "{} has {feature} {}. {}",
            name,
            if on { "off" } else { "on" },
            knob.when
        ),
        if on {
            "The same rate for less of a processor; a higher one where a processor was the limit."
        } else {
            "Connections that pass through no longer stall or resend."
        },
    )
}

fn coalescing(situation: &Situation, interface: &Interface) -> Advice {
    let name = &interface.name;
    let Some(coalescing) = interface.coalescing else {
        return leave(format!("the driver of {name} does not report it"));
    };
    if coalescing.adaptive_receive {
        return leave("it adapts to the traffic already");
    }
    // Its driver names parameters that most hosts refuse, too.
    if interface.is_paravirtual() {
        return leave(format!(
            "{name} is paravirtual: it interrupts only while no program polls it"
        ));
    }
    if coalescing.adaptive_receive_possible != Some(true) {
        return leave(format!("the driver of {name} cannot adapt it"));
    }
    let wait_s = coalescing.receive_s;
    let why = if coalescing.interrupts_for_each() && situation.rate_bps >= FAST_BPS {
        format!(
            "{name} interrupts for every packet that it receives: {:.0} times a second at {}.",
            situation.rate_bps / PACKET_BITS,
            si(situation.rate_bps, "bit/s")
        )
    } else if coalescing.waits_long() {
        format!(
            "{name} waits up to {} before it interrupts, however little arrives.",
            human_seconds(wait_s)
        )
    } else {
        return leave(format!("a wait of at most {} suits", human_seconds(wait_s)));
    };
    set(
        "on",
        why,
        "Few interrupts under load, and none that is late when little arrives.",
    )
}

/// The least of the most that the driver's queues may hold.
fn driver_queue(interface: &Interface) -> Option<u64> {
    let limits = interface.byte_limits.iter();
    limits.filter_map(|queue| queue.limit_max_bytes).min()
}

fn driver_queue_limit(situation: &Situation, interface: &Interface) -> Advice {
    let Some(most) = driver_queue(interface) else {
        return leave(format!(
            "the driver of {} has no limit in bytes",
            interface.name
        ));
    };
    if most >= DRIVER_QUEUE_BYTES || situation.rate_bps < FAST_BPS {
        return leave("it is high enough, and the driver finds its own limit below it");
    }
    set(
        &DRIVER_QUEUE_MOST_BYTES.to_string(),
        format!(
            "A queue of {} may hold {most} bytes, {} at {}: it runs dry before the next interrupt.",
            interface.name,
            human_seconds(most as f64 * 8.0 / situation.rate_bps),
            si(situation.rate_bps, "bit/s")
        ),
        "The link can be filled; the driver's own limit (BQL) follows the load again.",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use plumb_model::results::host::{
        ByteLimit, Coalescing, LinkCounters, LinkMode, Offload, Rings,
    };
    use plumb_model::tune::{Os, Role};

    use super::*;
    use crate::knobs::Catalogue;

    fn card() -> Interface {
        let offload = |name: &str, on| Offload {
            name: name.to_owned(),
            on,
            fixed: false,
        };
        Interface {
            name: "eth0".to_owned(),
            tx_queue_packets: Some(1000),
            link: Some(LinkMode {
                speed_bps: Some(10e9),
                ..LinkMode::default()
            }),
            offloads: vec![
                offload("tx-tcp-segmentation", true),
                offload("tx-generic-segmentation", true),
                offload("rx-gro", true),
                offload("rx-lro", false),
            ],
            rings: Some(Rings {
                receive_packets: 512,
                receive_max_packets: 4096,
                ..Rings::default()
            }),
            coalescing: Some(Coalescing {
                receive_s: 50e-6,
                adaptive_receive_possible: Some(true),
                ..Coalescing::default()
            }),
            byte_limits: vec![ByteLimit {
                limit_max_bytes: Some(DRIVER_QUEUE_MOST_BYTES),
                ..ByteLimit::default()
            }],
            counters: LinkCounters {
                rx_packets: 1_000_000,
                ..LinkCounters::default()
            },
            ..Interface::default()
        }
    }

    /// What becomes of each setting: the value, or none.
    fn advised(
        interface: &Interface,
        qdisc: &str,
        rate_bps: f64,
        role: Role,
    ) -> Vec<(String, String)> {
        let catalogue = Catalogue::built_in().unwrap();
        let situation = Situation {
            rate_bps,
            rtt_s: 0.01,
            loss_ratio: None,
            role,
            memory_bytes: None,
            mtu_bytes: None,
            release: None,
        };
        let qdisc = Qdisc {
            kind: qdisc.to_owned(),
            parent: "root".to_owned(),
            ..Qdisc::default()
        };
        let present = super::super::Present {
            interface: Present {
                interface: Some(interface),
                qdiscs: &[qdisc],
            },
            ..super::super::Present::default()
        };
        catalogue
            .of(Os::Linux)
            .filter(|knob| knob.value.is_of_an_interface())
            .filter_map(
                |knob| match super::super::advise(knob, &situation, present) {
                    Advice::Set { value, why, .. } => {
                        assert!(why.contains("eth0") || why.contains("packets"), "{why}");
                        Some((knob.name.clone(), value))
                    }
                    Advice::Leave { why } => {
                        assert!(!why.is_empty());
                        None
                    }
                },
            )
            .collect()
    }

    #[test]
    fn a_sound_card_is_left_alone() {
        for qdisc in ["pfifo_fast", "fq_codel"] {
            for rate in [1e6, 10e9] {
                assert_eq!(advised(&card(), qdisc, rate, Role::Client), []);
            }
        }
    }

    #[test]
    fn each_fault_gets_its_setting() {
        let check = |change: fn(&mut Interface), rate, role, knob: &str, value: &str| {
            let mut card = card();
            change(&mut card);
            let expected = [(knob.to_owned(), value.to_owned())];
            assert_eq!(advised(&card, "pfifo_fast", rate, role), expected);
        };
        let client = Role::Client;
        check(
            |c| c.counters.rx_missed_errors = 500,
            1e9,
            client,
            "ring rx",
            "4096",
        );
        for (place, name) in [(0, "offload tso"), (1, "offload gso"), (2, "offload gro")] {
            let mut card = card();
            card.offloads.get_mut(place).unwrap().on = false;
            let expected = [(name.to_owned(), "on".to_owned())];
            assert_eq!(advised(&card, "pfifo_fast", 1e9, client), expected);
            assert_eq!(advised(&card, "pfifo_fast", 100e6, client), []);
            card.offloads.get_mut(place).unwrap().fixed = true;
            assert_eq!(advised(&card, "pfifo_fast", 1e9, client), []);
        }
        let lro: fn(&mut Interface) = |c| c.offloads.get_mut(3).unwrap().on = true;
        check(lro, 1e9, Role::Router, "offload lro", "off");
        check(
            |c| c.tx_queue_packets = Some(100),
            1e9,
            client,
            "txqueuelen",
            "1000",
        );
        let slow: fn(&mut Interface) = |c| {
            c.tx_queue_packets = Some(8000);
            c.link.as_mut().unwrap().speed_bps = Some(100e6);
        };
        check(slow, 50e6, client, "txqueuelen", "1000");
        let every: fn(&mut Interface) = |c| c.coalescing.as_mut().unwrap().receive_s = 0.0;
        check(every, 1e9, client, "interrupt coalescing", "on");
        let late: fn(&mut Interface) = |c| c.coalescing.as_mut().unwrap().receive_s = 1e-3;
        check(late, 1e6, client, "interrupt coalescing", "on");
        let throttled: fn(&mut Interface) =
            |c| c.byte_limits.first_mut().unwrap().limit_max_bytes = Some(3000);
        check(throttled, 1e9, client, "driver queue", "1879048192");
    }

    #[test]
    fn what_a_driver_cannot_is_left_alone() {
        let mut card = card();
        card.counters.rx_missed_errors = 500;
        card.rings.as_mut().unwrap().receive_packets = 4096;
        let coalescing = card.coalescing.as_mut().unwrap();
        coalescing.receive_s = 0.0;
        coalescing.adaptive_receive_possible = None;
        card.tx_queue_packets = Some(100);
        assert_eq!(advised(&card, "fq", 10e9, Role::Client), []);
        let coalescing = card.coalescing.as_mut().unwrap();
        coalescing.adaptive_receive_possible = Some(true);
        card.driver = Some("virtio_net".to_owned());
        assert_eq!(advised(&card, "fq", 10e9, Role::Client), []);
        // Only a card splits and joins.
        card.offloads
            .iter_mut()
            .for_each(|offload| offload.on = false);
        card.kind = Some("veth".to_owned());
        assert_eq!(advised(&card, "fq", 10e9, Role::Client), []);
        // A program behind a TUN device decides for itself.
        card.kind = Some("tun".to_owned());
        assert_eq!(advised(&card, "pfifo_fast", 10e9, Role::Client), []);
    }
}
