//! Plans follow from requests and readings alone.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use plumb_model::framing::{Cells, Framing};
use plumb_model::shape::ShapeClasses;
use plumb_net::netlink::queue::filter::{Filter, HostKey};
use plumb_net::netlink::queue::options::Tins;
use proptest::prelude::*;

use super::super::render::commands;
use super::super::restore::Recorded;
use super::super::write::{WriteError, networkd, openwrt_sqm};
use super::*;
use crate::facts::Modules;

fn reading() -> Reading {
    Reading {
        index: 7,
        mtu_bytes: 1500,
        ethernet: true,
        loopback: false,
        bridge: None,
        link_bps: Some(1_000_000_000),
        root: Root::Default {
            kind: "fq_codel".into(),
        },
        received: Received::Nothing,
        modules: Modules::default(),
    }
}

/// All that both schemes need of a kernel, but for some.
fn modules_but(absent: &[&str]) -> Modules {
    let all = [
        "sch_cake",
        "sch_htb",
        "sch_tbf",
        "sch_fq_codel",
        "sch_ingress",
        "cls_flow",
        "cls_u32",
        "cls_matchall",
        "act_mirred",
        "ifb",
    ];
    let there = all.into_iter().filter(|name| !absent.contains(name));
    Modules::only(&there.collect::<Vec<_>>())
}

fn shaper(direction: OneDirection, rate_bps: u64, framing: &str) -> ShaperAction {
    let framing: Framing = framing.parse().unwrap();
    ShaperAction {
        direction,
        rate_bps,
        overhead_bytes: framing.overhead_bytes,
        mpu_bytes: framing.mpu_bytes,
        cells: framing.cells,
        qdisc: "fq_codel".into(),
    }
}

fn request() -> Request {
    Request {
        device: "eth0".into(),
        shapers: vec![
            shaper(OneDirection::Up, 19_000_000, "docsis"),
            shaper(OneDirection::Down, 95_000_000, "docsis"),
        ],
        scheme: None,
        classes: ShapeClasses::Besteffort,
        nat: false,
        ack_filter: true,
        replace: false,
    }
}

fn htb() -> Request {
    Request {
        scheme: Some(Scheme::Htb),
        ..request()
    }
}

fn at(objects: &[Object], wanted: impl Fn(&Object) -> bool) -> usize {
    objects.iter().position(wanted).unwrap()
}

#[test]
fn cake_is_one_discipline_a_direction_and_the_redirection_is_last() {
    let plan = plan(&request(), &reading()).unwrap();
    assert_eq!(
        (plan.scheme, plan.ifb.as_deref()),
        (Scheme::Cake, Some("plumb7"))
    );
    assert_eq!(plan.objects.len(), 5);
    assert_eq!(plan.objects.last(), Some(&Object::Redirect));
    let lines = commands(&plan, "eth0", &reading());
    assert_eq!(
        lines,
        [
            "tc qdisc add dev eth0 root handle 7587: cake bandwidth 19000kbit besteffort dual-srchost nonat egress ack-filter split-gso noatm overhead 18 mpu 64",
            "ip link add plumb7 type ifb",
            "ip link set plumb7 up",
            "tc qdisc add dev plumb7 root handle 7587: cake bandwidth 95000kbit besteffort dual-dsthost nonat ingress no-ack-filter split-gso noatm overhead 18 mpu 64",
            "tc qdisc add dev eth0 handle ffff: ingress",
            "tc filter add dev eth0 ingress prio 30087 protocol all matchall action mirred egress redirect dev plumb7",
        ]
    );
}

#[test]
fn without_cake_it_is_htb_and_that_is_said() {
    let reading = Reading {
        modules: modules_but(&["sch_cake"]),
        ..reading()
    };
    let plan = plan(&request(), &reading).unwrap();
    assert_eq!(plan.scheme, Scheme::Htb);
    assert_eq!(plan.lacking, [lacking(Scheme::Cake, &["sch_cake"])]);
    assert!(
        plan.notes
            .iter()
            .any(|note| note.contains("acknowledgements"))
    );
    // Where it is not known what the kernel has, it is tried.
    let unknown = Reading {
        modules: Modules::default(),
        ..reading
    };
    let plan = super::plan(&request(), &unknown).unwrap();
    assert_eq!((plan.scheme, plan.lacking), (Scheme::Cake, Vec::new()));
}

fn lacking(scheme: Scheme, modules: &[&str]) -> Lacking {
    let modules = modules.iter().map(|name| (*name).to_owned()).collect();
    Lacking { scheme, modules }
}

#[test]
fn all_that_is_missing_is_named_for_each_scheme() {
    let without = |absent: &[&str]| Reading {
        modules: modules_but(absent),
        ..reading()
    };
    let bare = without(&[
        "sch_cake",
        "sch_fq_codel",
        "cls_flow",
        "cls_matchall",
        "ifb",
    ]);
    let both = plan(&request(), &bare).unwrap();
    assert_eq!(
        both.lacking,
        [
            lacking(Scheme::Cake, &["sch_cake", "ifb", "cls_matchall"]),
            lacking(
                Scheme::Htb,
                &["sch_fq_codel", "cls_flow", "ifb", "cls_matchall"]
            ),
        ]
    );
    // The upload alone needs neither the device for what is received nor the redirection to it.
    let up = Request {
        shapers: vec![shaper(OneDirection::Up, 19_000_000, "docsis")],
        ..htb()
    };
    let up = plan(&up, &bare).unwrap();
    assert_eq!(
        up.lacking,
        [lacking(Scheme::Htb, &["sch_fq_codel", "cls_flow"])]
    );
    let marked = Request {
        classes: ShapeClasses::Diffserv4,
        ..htb()
    };
    let marked = plan(&marked, &without(&["cls_u32", "sch_htb", "sch_tbf"])).unwrap();
    let needed = ["sch_tbf", "sch_htb", "cls_u32"];
    assert_eq!(marked.lacking, [lacking(Scheme::Htb, &needed)]);
    assert!(
        plan(&htb(), &without(&["sch_cake"]))
            .unwrap()
            .lacking
            .is_empty()
    );
}

#[test]
fn a_reading_that_does_not_allow_it_is_an_error() {
    let refused = |request: &Request, reading: &Reading| plan(request, reading).unwrap_err();
    let with = |root| Reading { root, ..reading() };
    let theirs = |again| Root::Theirs {
        kind: "fq".into(),
        handle: Handle::new(1, 0),
        again,
    };
    let replace = Request {
        replace: true,
        ..request()
    };
    let recorded = Recorded {
        kind: "fq".into(),
        handle: Handle::new(1, 0),
        listed: vec![1],
        written: vec![2],
    };
    let error = refused(&request(), &with(theirs(Ok(recorded.clone()))));
    assert!(error.to_string().contains("--replace"), "{error}");
    assert!(plan(&replace, &with(theirs(Ok(recorded)))).is_ok());
    let error = refused(&replace, &with(theirs(Err("it has filters".into()))));
    assert!(error.to_string().contains("it has filters"), "{error}");
    assert!(matches!(
        refused(&replace, &with(Root::Ours)),
        PlanError::Ours { .. }
    ));
    let filters = Received::Filters {
        kind: "clsact".into(),
        count: 2,
    };
    let filters = Reading {
        received: filters,
        ..reading()
    };
    let error = refused(&replace, &filters).to_string();
    assert!(error.contains("2 of them at its clsact"), "{error}");
    // Filters do not matter to a shaper upwards alone, nor does a configured root to a shaper downwards alone.
    let only = |direction| Request {
        shapers: vec![shaper(direction, 1_000_000, "raw")],
        ..request()
    };
    assert!(plan(&only(OneDirection::Up), &filters).is_ok());
    let root = with(theirs(Err(String::new())));
    assert!(plan(&only(OneDirection::Down), &root).is_ok());
    for (rate, word) in [(2_000_000_000, "runs at 1.00 Gbit/s"), (7_999, "too small")] {
        let request = Request {
            shapers: vec![shaper(OneDirection::Up, rate, "raw")],
            ..request()
        };
        let error = refused(&request, &reading()).to_string();
        assert!(error.contains(word), "{error}");
    }
    let twice = Request {
        shapers: [1, 2]
            .map(|n| shaper(OneDirection::Up, n * 1_000_000, "raw"))
            .into(),
        ..request()
    };
    assert_eq!(refused(&twice, &reading()), PlanError::Twice);
}

/// Every handle that a class or a filter names was made before it, and no two are the same.
fn is_sound(objects: &[Object]) {
    let mut made: BTreeSet<(bool, Handle)> = BTreeSet::new();
    let mut new =
        |on: On, handle: Handle| assert!(made.insert((on == On::Ifb, handle)), "{handle}");
    let mut places: BTreeSet<(bool, Handle)> = BTreeSet::new();
    for object in objects {
        match object {
            Object::Ifb | Object::Redirect => {}
            Object::Discipline { on, handle, .. } => {
                new(*on, *handle);
                places.insert((*on == On::Ifb, *handle));
                places.insert((*on == On::Ifb, Handle(handle.0 | 1)));
            }
            Object::Class {
                on, parent, handle, ..
            } => {
                assert!(places.contains(&(*on == On::Ifb, *parent)), "{parent}");
                new(*on, *handle);
                places.insert((*on == On::Ifb, *handle));
            }
            Object::Hosts {
                on,
                parent,
                first,
                count,
                disciplines,
                ..
            } => {
                assert!(places.contains(&(*on == On::Ifb, *parent)), "{parent}");
                for n in 0..u32::from(*count) {
                    new(*on, Handle(first.0 + n));
                    new(*on, Handle(disciplines.0 + (n << 16)));
                    places.insert((*on == On::Ifb, Handle(first.0 + n)));
                }
            }
            Object::Filter {
                on, parent, what, ..
            } => {
                assert!(places.contains(&(*on == On::Ifb, *parent)), "{parent}");
                let to = match what {
                    Filter::Hosts { first, classes, .. } => Handle(first.0 + classes - 1),
                    Filter::Marked { class, .. } => *class,
                    Filter::Redirect { .. } => unreachable!("made apart"),
                };
                assert!(places.contains(&(*on == On::Ifb, to)), "{to}");
            }
        }
    }
}

/// The class that a packet of best effort with a DSCP comes into, by the filters at the root as the kernel asks them.
fn class_of(objects: &[Object], dscp: u8) -> Handle {
    let root = Handle::new(0x7587, 0);
    let mut filters: Vec<_> = objects
        .iter()
        .filter_map(|object| match object {
            Object::Filter {
                on: On::Line,
                parent,
                priority,
                what,
            } if *parent == root => Some((*priority, *what)),
            _ => None,
        })
        .collect();
    filters.sort_by_key(|(priority, _)| *priority);
    let found = filters.iter().find_map(|(_, filter)| match filter {
        Filter::Marked {
            value, mask, class, ..
        } => (dscp & mask == *value).then_some(*class),
        Filter::Hosts { first, .. } => Some(*first),
        Filter::Redirect { .. } => None,
    });
    found.unwrap()
}

/// sch_cake.c's table of diffserv4, with its tins in the order of their names here.
const DIFFSERV4: [&str; 64] = {
    let (be, bulk, video, voice) = ("best effort", "bulk", "video", "voice");
    let mut table = [be; 64];
    let mut n = 0;
    while n < 64 {
        table[n] = match n {
            1 | 8 => bulk,
            4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38 => video,
            32 | 40 | 44 | 46 | 48 | 56 => voice,
            _ => be,
        };
        n += 1;
    }
    table
};

#[test]
fn htb_sorts_dscps_as_cake_does() {
    let request = Request {
        classes: ShapeClasses::Diffserv4,
        ..htb()
    };
    let plan = plan(&request, &reading()).unwrap();
    is_sound(&plan.objects);
    let names = htb::classes(ShapeClasses::Diffserv4);
    for (dscp, wanted) in (0..).zip(DIFFSERV4) {
        let class = class_of(&plan.objects, dscp);
        let found = (0..)
            .zip(&names)
            .find(|(place, _)| class == htb::of_traffic(*place) || class == htb::of_hosts(*place));
        assert_eq!(found.unwrap().1.name, wanted, "DSCP {dscp}");
    }
}

#[test]
fn htb_counts_what_the_line_adds() {
    let class = |framing: &str, ethernet| {
        let shaper = shaper(OneDirection::Up, 65_000_000, framing);
        let line = htb::Line {
            shaper: &shaper,
            mtu_bytes: 1500,
            ethernet,
        };
        line.whole()
    };
    // Linux counts Ethernet's 14 bytes already, and none at PPP.
    assert_eq!(class("docsis", true).overhead_bytes, 4);
    assert_eq!(class("docsis", false).overhead_bytes, 18);
    assert_eq!(class("pppoa-vcmux", true).overhead_bytes, 0);
    assert!(class("pppoe-llcsnap", true).atm);
    let ptm = class("pppoe-ptm", true);
    assert_eq!(
        (ptm.rate_bps, ptm.overhead_bytes, ptm.atm),
        (64_000_000, 16, false)
    );
    let thin = Request {
        shapers: vec![shaper(OneDirection::Up, 1_000_000, "pppoa-vcmux")],
        ack_filter: false,
        ..htb()
    };
    let notes = plan(&thin, &reading()).unwrap().notes;
    assert!(
        notes.iter().any(|note| note.contains("14 for a header")),
        "{notes:?}"
    );
}

#[test]
fn super_packets_are_cut_apart_up_to_a_gigabit() {
    for (rate, roots) in [(1_000_000_000, 1), (900_000_000, 1), (1_100_000_000, 0)] {
        let request = Request {
            shapers: vec![shaper(OneDirection::Up, rate, "raw")],
            ..htb()
        };
        let reading = Reading {
            link_bps: None,
            ..reading()
        };
        let plan = plan(&request, &reading).unwrap();
        let buckets = plan.objects.iter().filter(
            |object| matches!(object, Object::Discipline { what, .. } if what.kind() == "tbf"),
        );
        assert_eq!(buckets.count(), roots, "{rate}");
    }
}

#[test]
fn hosts_are_known_by_the_address_on_this_side() {
    for (nat, wanted) in [
        (false, [HostKey::Source, HostKey::Destination]),
        (true, [HostKey::TranslatedSource, HostKey::Destination]),
    ] {
        let plan = plan(&Request { nat, ..htb() }, &reading()).unwrap();
        let keys = plan.objects.iter().filter_map(|object| match object {
            Object::Filter {
                what: Filter::Hosts { by, .. },
                ..
            } => Some(*by),
            _ => None,
        });
        assert_eq!(keys.collect::<Vec<_>>(), wanted);
        let told = plan
            .notes
            .iter()
            .any(|note| note.contains("downwards, flows"));
        assert_eq!(told, nat);
    }
}

#[test]
fn the_download_begins_only_when_its_queue_stands() {
    for request in [request(), htb()] {
        let objects = plan(&request, &reading()).unwrap().objects;
        let redirect = at(&objects, |object| *object == Object::Redirect);
        assert_eq!(redirect, objects.len() - 1);
        assert!(at(&objects, |object| *object == Object::Ifb) < redirect);
    }
    // A clsact qdisc that exists already is used and not made anew.
    let reading = Reading {
        received: Received::Empty {
            kind: "clsact".into(),
        },
        ..reading()
    };
    let objects = plan(&request(), &reading).unwrap().objects;
    assert!(!objects.iter().any(
        |object| matches!(object, Object::Discipline { what, .. } if *what == Discipline::Ingress)
    ));
}

#[test]
fn other_systems_have_files() {
    let request = Request {
        classes: ShapeClasses::Diffserv4,
        nat: true,
        shapers: vec![
            shaper(OneDirection::Up, 19_000_000, "pppoe-ptm"),
            shaper(OneDirection::Down, 95_000_000, "pppoe-ptm"),
        ],
        ..request()
    };
    let plan = plan(&request, &reading()).unwrap();
    let sqm = openwrt_sqm(&request, &plan);
    for line in [
        "config queue 'eth0'",
        "\toption upload '19000'",
        "\toption download '95000'",
        "\toption script 'layer_cake.qos'",
        "\toption overhead '30'",
        "\toption eqdisc_opts 'dual-srchost diffserv4 nat ack-filter ptm'",
        "\toption iqdisc_opts 'dual-dsthost diffserv4 nat ingress ptm'",
    ] {
        assert!(sqm.lines().any(|there| there == line), "{line}: {sqm}");
    }
    let files = networkd(&request, &plan, &reading()).unwrap();
    for line in [
        "[CAKE]",
        "Bandwidth=19000K",
        "Bandwidth=95000K",
        "OverheadBytes=30",
        "CompensationMode=ptm",
        "FlowIsolationMode=dual-dst-host",
        "PriorityQueueingPreset=diffserv4",
        "Kind=ifb",
    ] {
        assert!(files.lines().any(|there| there == line), "{line}: {files}");
    }
    let htb = super::plan(&htb(), &reading()).unwrap();
    assert_eq!(
        networkd(&request, &htb, &reading()),
        Err(WriteError::NoFilters)
    );
}

#[test]
fn a_class_that_cake_has_only_with_another_is_explained() {
    let request = Request {
        classes: ShapeClasses::Premium,
        ..request()
    };
    let plan = plan(&request, &reading()).unwrap();
    assert!(plan.notes[0].contains("diffserv3"), "{:?}", plan.notes);
    let shaper = request.shaper(OneDirection::Up).unwrap();
    assert_eq!(cake::settings(&request, shaper).tins, Tins::Diffserv3);
}

proptest! {
    /// Whatever is asked for, no class is assured what the whole has not, and all of it is sound.
    #[test]
    fn every_plan_is_sound(
        rate in 8_000..10_000_000_000_u64,
        overhead in -64_i16..=256,
        mpu in 0_u16..=256,
        cells in 0_usize..3,
        classes in 0_usize..4,
        nat: bool,
        mtu in 68_u32..65_536,
    ) {
        let classes = [
            ShapeClasses::Besteffort,
            ShapeClasses::Diffserv4,
            ShapeClasses::Premium,
            ShapeClasses::LessThanBestEffort,
        ][classes];
        let shaper = |direction| ShaperAction {
            direction,
            rate_bps: rate,
            overhead_bytes: overhead,
            mpu_bytes: mpu,
            cells: [Cells::None, Cells::Atm, Cells::Ptm][cells],
            qdisc: String::new(),
        };
        let request = Request {
            shapers: vec![shaper(OneDirection::Up), shaper(OneDirection::Down)],
            classes,
            nat,
            ..htb()
        };
        let reading = Reading { mtu_bytes: mtu, link_bps: None, ..reading() };
        let plan = plan(&request, &reading).unwrap();
        is_sound(&plan.objects);
        let mut assured = 0;
        let mut whole = 0;
        for object in &plan.objects {
            match object {
                Object::Class { on: On::Line, handle, what, .. } if *handle == htb::WHOLE => whole = what.rate_bps,
                Object::Hosts { on: On::Line, each, count, .. } => assured += each.rate_bps * u64::from(*count),
                _ => {}
            }
            if let Object::Class { what, .. } = object {
                prop_assert!(what.burst_bytes > mtu && what.quantum_bytes > mtu);
            }
        }
        // The kernel counts in whole bytes a second: the least that a class has is one of them.
        prop_assert!(assured <= whole + 8 * 64 * 4, "{assured} of {whole}");
        prop_assert!(whole <= rate);
        let _ = (commands(&plan, "eth0", &reading), openwrt_sqm(&request, &plan));
    }
}
