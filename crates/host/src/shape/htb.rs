//! HTB with FQ-CoDel: a class for each class of traffic, in it one for each host, in that a queue for each flow.

use plumb_model::direction::OneDirection;
use plumb_model::finding::ShaperAction;
use plumb_model::framing::Cells;
use plumb_model::shape::ShapeClasses;
use plumb_net::netlink::queue::Handle;
use plumb_net::netlink::queue::filter::{Filter, HostKey, IpVersion};
use plumb_net::netlink::queue::options::{Discipline, FqCodel, HtbClass, Tbf};

use super::objects::{Object, On, SHAPER, SPLIT_BPS, SPLITTER};
use super::reading::Reading;
use super::request::Request;

/// Classes for hosts. Hosts of a home have neighbouring addresses, and share a class only when there are more.
pub(super) const HOSTS: u16 = 64;

/// Length of an Ethernet header with a tag (IEEE 802.1Q), and without: what Linux counts as part of a packet
/// (`qdisc_pkt_len`).
const TAGGED_HEADER_BYTES: u32 = 18;
const HEADER_BYTES: i16 = 14;

/// How much faster than the shaper the bucket around it is: it is there to cut super-packets apart, and holds a packet up
/// for a tenth of its time on the line.
const SPLITTER_TIMES: u64 = 10;

/// What waits in that bucket in the moment before the shaper is in it, in bytes: a tenth of a second at 100 Mbit/s.
const SPLITTER_LIMIT_BYTES: u32 = 1 << 20;

/// A burst lasts a millisecond, where that is more than a packet: the kernel's timers are that late at times.
const BURSTS_A_SECOND: u64 = 1000;

/// CoDel's target and interval (RFC 8289), and the packets of the largest size that have to fit into the target, as CAKE
/// has it.
const TARGET_US: u64 = 5_000;
const INTERVAL_US: u64 = 100_000;
const TARGET_TENTHS_OF_PACKETS: u64 = 15;

/// For the flows of one host; and what they may take together in bytes, the least that CAKE has for all.
const FLOWS: u32 = 128;
const MEMORY_BYTES: u32 = 4 << 20;

/// A class of traffic: what it is assured of the rate, in sixteenths, and which DSCPs it has, as values under masks.
pub(super) struct Class {
    pub(super) name: &'static str,
    pub(super) sixteenths: u64,
    marks: &'static [(u8, u8)],
}

const ALL: u8 = 0x3F;

/// The shares are the thresholds of CAKE's tins, and best effort has the rest. So are the DSCPs (`diffserv4`, sch_cake.c):
/// CS4, CS5, VA and EF, CS6 and CS7; 4, CS2 to AF33, AF4x; LE, CS1.
const VOICE: Class = Class {
    name: "voice",
    sixteenths: 4,
    marks: &[(32, ALL), (40, ALL), (44, 0x3D), (48, 0x37)],
};
const VIDEO: Class = Class {
    name: "video",
    sixteenths: 8,
    marks: &[(4, ALL), (16, 0x31), (32, 0x39)],
};
const BULK: Class = Class {
    name: "bulk",
    sixteenths: 1,
    marks: &[(1, ALL), (8, ALL)],
};
/// Expedited forwarding and admitted voice.
const PREMIUM: Class = Class {
    name: "premium",
    sixteenths: 4,
    marks: &[(44, 0x3D)],
};
const fn best_effort(sixteenths: u64) -> Class {
    Class {
        name: "best effort",
        sixteenths,
        marks: &[],
    }
}

/// The classes of a plan; what has none of the others' marks is best effort, which is the last.
pub(super) fn classes(classes: ShapeClasses) -> Vec<Class> {
    match classes {
        ShapeClasses::Besteffort => vec![best_effort(16)],
        ShapeClasses::Diffserv4 => vec![VOICE, VIDEO, BULK, best_effort(3)],
        ShapeClasses::Premium => vec![PREMIUM, best_effort(12)],
        ShapeClasses::LessThanBestEffort => vec![BULK, best_effort(15)],
    }
}

/// The class of all, the classes of traffic, and the classes of hosts in them.
pub(super) const WHOLE: Handle = Handle::new(SHAPER, 1);
pub(super) const fn of_traffic(place: u16) -> Handle {
    Handle::new(SHAPER, 0x10 + place)
}
pub(super) const fn of_hosts(place: u16) -> Handle {
    Handle::new(SHAPER, 0x100 * (place + 1))
}
/// The queues of the hosts.
pub(super) const fn queues(place: u16) -> Handle {
    Handle::new(0x7600 + 0x100 * place, 0)
}

/// What the settings of classes follow from.
pub(super) struct Line<'a> {
    pub(super) shaper: &'a ShaperAction,
    pub(super) mtu_bytes: u32,
    /// Whether packets have Ethernet's header here.
    pub(super) ethernet: bool,
}

impl Line<'_> {
    /// HTB knows no PTM: of 65 bytes on such a line 64 are payload.
    fn rate_bps(&self) -> u64 {
        match self.shaper.cells {
            Cells::Ptm => self.shaper.rate_bps / 65 * 64,
            _ => self.shaper.rate_bps,
        }
    }

    pub(super) fn class(&self, assured_bps: u64) -> HtbClass {
        let header = if self.ethernet { HEADER_BYTES } else { 0 };
        let overhead = self.shaper.overhead_bytes.saturating_sub(header);
        let burst = self.rate_bps() / 8 / BURSTS_A_SECOND;
        let packet = self.mtu_bytes + TAGGED_HEADER_BYTES;
        HtbClass {
            rate_bps: assured_bps.max(8),
            ceil_bps: self.rate_bps(),
            burst_bytes: u32::try_from(burst).unwrap_or(u32::MAX).max(packet),
            quantum_bytes: packet,
            overhead_bytes: u16::try_from(overhead).unwrap_or(0),
            mpu_bytes: self.shaper.mpu_bytes,
            atm: self.shaper.cells == Cells::Atm,
        }
    }

    pub(super) fn whole(&self) -> HtbClass {
        self.class(self.rate_bps())
    }

    pub(super) fn share(&self, class: &Class) -> HtbClass {
        self.class(self.rate_bps() * class.sixteenths / 16)
    }

    pub(super) fn host(&self, class: &Class) -> HtbClass {
        self.class(self.rate_bps() * class.sixteenths / 16 / u64::from(HOSTS))
    }

    /// The bucket around it, where there is one.
    fn splitter(&self) -> Option<Discipline> {
        (self.shaper.rate_bps <= SPLIT_BPS).then(|| self.splitter_anyway())
    }

    pub(super) fn splitter_anyway(&self) -> Discipline {
        Discipline::Tbf(Tbf {
            rate_bps: self.shaper.rate_bps.saturating_mul(SPLITTER_TIMES),
            burst_bytes: self.mtu_bytes + TAGGED_HEADER_BYTES,
            limit_bytes: SPLITTER_LIMIT_BYTES,
        })
    }

    fn queue(&self) -> FqCodel {
        let packet = u64::from(self.mtu_bytes + TAGGED_HEADER_BYTES);
        let packet_us = packet * 8_000_000 / self.rate_bps().max(1);
        let target = TARGET_US.max(packet_us * TARGET_TENTHS_OF_PACKETS / 10);
        let whole = |us| u32::try_from(us).unwrap_or(u32::MAX);
        FqCodel {
            target_us: whole(target),
            interval_us: whole(INTERVAL_US + target - TARGET_US),
            flows: FLOWS,
            quantum_bytes: self.mtu_bytes + TAGGED_HEADER_BYTES,
            memory_bytes: MEMORY_BYTES,
        }
    }
}

pub(super) fn objects(
    request: &Request,
    shaper: &ShaperAction,
    reading: &Reading,
    on: On,
) -> Vec<Object> {
    let line = Line {
        shaper,
        mtu_bytes: reading.mtu_bytes,
        ethernet: reading.ethernet,
    };
    let by = match (shaper.direction, request.nat) {
        (OneDirection::Down, _) => HostKey::Destination,
        (OneDirection::Up, true) => HostKey::TranslatedSource,
        (OneDirection::Up, false) => HostKey::Source,
    };
    let shaper_handle = Handle::new(SHAPER, 0);
    let discipline = |parent, handle, what| Object::Discipline {
        on,
        parent,
        handle,
        what,
    };
    let mut objects = Vec::new();
    let mut parent = Handle::ROOT;
    if let Some(splitter) = line.splitter() {
        let handle = Handle::new(SPLITTER, 0);
        objects.push(discipline(parent, handle, splitter));
        parent = Handle::new(SPLITTER, 1);
    }
    objects.push(discipline(parent, shaper_handle, Discipline::Htb));
    objects.push(Object::Class {
        on,
        parent: shaper_handle,
        handle: WHOLE,
        what: line.whole(),
    });
    // Classes come before the filters that lead to them: until then packets pass unshaped.
    let classes = classes(request.classes);
    let mut filters = Vec::new();
    for (place, class) in (0..).zip(&classes) {
        let mut parent = WHOLE;
        if classes.len() > 1 {
            parent = of_traffic(place);
            objects.push(Object::Class {
                on,
                parent: WHOLE,
                handle: parent,
                what: line.share(class),
            });
        }
        objects.push(Object::Hosts {
            on,
            parent,
            first: of_hosts(place),
            count: HOSTS,
            each: line.host(class),
            disciplines: queues(place),
            queue: line.queue(),
        });
        let hosts = Filter::Hosts {
            by,
            first: of_hosts(place),
            classes: HOSTS.into(),
        };
        // What is marked finds its class first and then its host; what is not, the host at once.
        let (at, marked) = match class.marks {
            [] => (shaper_handle, Vec::new()),
            marks => (parent, self::marked(marks, parent)),
        };
        filters.push((at, hosts));
        filters.extend(marked.into_iter().map(|filter| (shaper_handle, filter)));
    }
    // Best effort is the last class, so that its filter would hide none; at a class of its own, the order is free.
    filters
        .sort_by_key(|(at, filter)| *at == shaper_handle && matches!(filter, Filter::Hosts { .. }));
    objects.extend(
        (1..)
            .zip(filters)
            .map(|(priority, (parent, what))| Object::Filter {
                on,
                parent,
                priority,
                what,
            }),
    );
    objects
}

fn marked(marks: &'static [(u8, u8)], class: Handle) -> Vec<Filter> {
    let versions = [IpVersion::V4, IpVersion::V6];
    let each = marks.iter().flat_map(|&(value, mask)| {
        versions.map(|version| Filter::Marked {
            version,
            value,
            mask,
            class,
        })
    });
    each.collect()
}

pub(super) fn notes(request: &Request, reading: &Reading) -> Vec<String> {
    let mut notes = Vec::new();
    if request.ack_filter {
        notes.push(
            "HTB and FQ-CoDel have no filter of acknowledgements: that part is left out."
                .to_owned(),
        );
    }
    if request.nat && request.shaper(OneDirection::Down).is_some() {
        notes.push("What is received still has the translated address when HTB sees it: downwards, flows have equal shares instead of hosts. CAKE separates the hosts.".to_owned());
    }
    let thin = |shaper: &&ShaperAction| shaper.overhead_bytes < HEADER_BYTES;
    if let Some(shaper) = request
        .shapers
        .iter()
        .find(thin)
        .filter(|_| reading.ethernet)
    {
        notes.push(format!(
            "HTB cannot count fewer bytes than {HEADER_BYTES} for a header, and the line adds {}: small packets are shaped a little more than need be.",
            shaper.overhead_bytes
        ));
    }
    notes
}
