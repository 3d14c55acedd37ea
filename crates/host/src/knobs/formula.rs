//! How the value of a knob follows from a path and a host. Pure, and the only place where values are
//! computed; the catalogue says which knob follows which rule.

pub mod interface;

use plumb_model::formula::response::{Algorithm, tolerance};
use plumb_model::formula::{USABLE_BUFFER_RATIO, buffer_for};
use plumb_model::tune::Role;
use plumb_model::units::{human_seconds, si};
use serde::Deserialize;

use super::Knob;
use super::situation::Situation;

/// A rule for values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Formula {
    /// No path calls for a value of its own.
    #[default]
    Leave,
    /// The third of three numbers holds twice what is in flight; the others stay.
    ReceiveBuffer,
    /// As [`Formula::ReceiveBuffer`], of the send buffer.
    SendBuffer,
    /// One number, which holds twice what is in flight.
    BufferLimit,
    /// One number above every [`Formula::BufferLimit`].
    SocketCeiling,
    /// The algorithm that stands the path's loss.
    CongestionControl,
    /// The same on Windows.
    WindowsCongestionControl,
    /// fq, where BBR paces.
    FairQueue,
    /// The same, of an interface that exists.
    FairQueueDevice,
    /// No restart after a pause, on long paths.
    NoSlowStartAfterIdle,
    /// The level whose window is enough.
    WindowsAutotuning,
    /// Probing behind packets that may be too large.
    MtuProbing,
    /// What the catalogue wants, whatever the path.
    MustBe,
    /// No less than the catalogue wants.
    AtLeast,
    /// As many packets as the receive ring can hold, where it was full.
    ReceiveRing,
    /// The kernel's own length of a plain queue, where it is far from it.
    QueueLength,
    /// An offload as the catalogue wants it.
    Offload,
    /// Adaptive, where a fixed wait does not suit.
    Coalescing,
    /// No limit of somebody's that starves a fast link.
    DriverQueue,
}

/// What the host has at present, as far as values depend on it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Present<'a> {
    /// The knob's own value.
    pub value: Option<&'a str>,
    /// Congestion controls that can be had.
    pub congestion_controls: Option<&'a str>,
    /// The one that is chosen, or will be.
    pub congestion_control: Option<&'a str>,
    /// The interface that leads to the path.
    pub interface: interface::Present<'a>,
}

/// What should become of a knob.
#[derive(Debug, Clone, PartialEq)]
pub enum Advice {
    /// Give it this value.
    Set {
        /// The value.
        value: String,
        /// Why.
        why: String,
        /// What is to be seen then.
        effect: String,
        /// Memory that one connection may hold then, in bytes.
        memory_bytes: Option<u64>,
    },
    /// Leave it.
    Leave {
        /// Why.
        why: String,
    },
}

/// Share of the memory that one connection's buffer may take.
const MEMORY_SHARE: u64 = 16;

/// Loss that a clean long path has all the same: one packet in ten million, as dirty optics and
/// overfull switches make it.
const CLEAN_LOSS_RATIO: f64 = 1e-7;

/// Payload of a segment in bytes, for response functions.
const MSS_BYTES: f64 = 1448.0;

/// The window of Windows' autotuning level `normal`: scale 8.
const WINDOWS_NORMAL_BYTES: f64 = 16_776_960.0;

/// MTU of Ethernet in bytes.
const ETHERNET_MTU_BYTES: u32 = 1500;

/// Bytes in flight below which restarting after a pause costs little: the initial window grows to it
/// in five round trips.
const SHORT_PATH_BYTES: f64 = 500_000.0;

impl Formula {
    /// Whether it looks at an interface, its counters and its driver.
    pub fn is_of_an_interface(self) -> bool {
        matches!(
            self,
            Self::ReceiveRing
                | Self::QueueLength
                | Self::Offload
                | Self::Coalescing
                | Self::DriverQueue
        )
    }

    /// The rule in words.
    pub fn words(self, wanted: Option<&str>) -> String {
        let text = match self {
            Self::Leave => "left alone",
            Self::ReceiveBuffer | Self::SendBuffer => {
                "the third number becomes twice rate times round trip, in the next power of two, where it is smaller"
            }
            Self::BufferLimit => {
                "twice rate times round trip, in the next power of two, where it is smaller"
            }
            Self::SocketCeiling => "as large as the buffers below it, where it is smaller",
            Self::CongestionControl | Self::WindowsCongestionControl => {
                "BBR where the path loses more than CUBIC can stand at that rate, else as it is"
            }
            Self::FairQueue | Self::FairQueueDevice => "fq where BBR is chosen, except on routers",
            Self::NoSlowStartAfterIdle => "0 on long paths, where the algorithm is not BBR",
            Self::WindowsAutotuning => "normal, or experimental above 16 MB in flight",
            Self::MtuProbing => "1 where the interface's MTU is above 1500",
            Self::ReceiveRing => "the most that it can hold, where packets found it full",
            Self::QueueLength => {
                "1000 with pfifo_fast, where it is shorter at 1 Gbit/s and above, or is over 50 ms"
            }
            Self::Offload => {
                return format!(
                    "{}, from 1 Gbit/s on, where the driver lets it be changed",
                    wanted.unwrap_or_default()
                );
            }
            Self::Coalescing => {
                "adaptive, where the driver can and interrupts for every packet, or waits over 0.25 ms"
            }
            Self::DriverQueue => {
                "1879048192, the kernel's own, where somebody made it less than 128 KiB at 1 Gbit/s and above"
            }
            Self::MustBe => return format!("always {}", wanted.unwrap_or_default()),
            Self::AtLeast => return format!("at least {}", wanted.unwrap_or_default()),
        };
        text.to_owned()
    }
}

/// What should become of a knob in a situation.
pub fn advise(knob: &Knob, situation: &Situation, present: Present<'_>) -> Advice {
    let leave = |why: String| Advice::Leave { why };
    if let Some(why) = &knob.obsolete {
        return leave(why.clone());
    }
    if !knob.roles.is_empty() && !knob.roles.contains(&situation.role) {
        return leave(knob.not.clone());
    }
    match knob.value {
        Formula::Leave => leave(knob.not.clone()),
        Formula::ReceiveBuffer | Formula::SendBuffer => buffer(knob, situation, present.value),
        Formula::BufferLimit | Formula::SocketCeiling => limit(knob, situation, present.value),
        Formula::CongestionControl => congestion_control(situation, present),
        Formula::WindowsCongestionControl => match losing(situation) {
            Some(why) if !same(present.value, "bbr2") => set(
                "bbr2",
                why,
                "New connections that send hold the rate in spite of the loss.",
            ),
            Some(_) => leave("it is bbr2 already".to_owned()),
            None => leave(standing(situation)),
        },
        Formula::FairQueue | Formula::FairQueueDevice => fair_queue(situation, present),
        Formula::NoSlowStartAfterIdle => idle(situation, present),
        Formula::WindowsAutotuning => autotuning(situation, present.value),
        Formula::MtuProbing => match situation.mtu_bytes {
            Some(mtu) if mtu > ETHERNET_MTU_BYTES && same(present.value, "0") => set(
                "1",
                format!(
                    "The interface sends packets of {mtu} bytes, and a place that takes fewer may not say so."
                ),
                "A connection that stalls on packets too large finds a size that arrives.",
            ),
            _ => leave(
                "packets of the usual 1500 bytes arrive nearly everywhere; 1 is a harmless safety net".to_owned(),
            ),
        },
        Formula::MustBe => {
            let wanted = knob.wanted.as_deref().unwrap_or_default();
            match present.value {
                Some(value) if !same(Some(value), wanted) && !acceptable(knob, value) => {
                    set(wanted, knob.when.clone(), "What it guards works again.")
                }
                _ => leave(format!("it is as it must be: {}", knob.not)),
            }
        }
        Formula::AtLeast => at_least(knob, present.value),
        Formula::ReceiveRing
        | Formula::QueueLength
        | Formula::Offload
        | Formula::Coalescing
        | Formula::DriverQueue => interface::advise(knob, situation, present.interface),
    }
}

fn set(value: &str, why: String, effect: &str) -> Advice {
    Advice::Set {
        value: value.to_owned(),
        why,
        effect: effect.to_owned(),
        memory_bytes: None,
    }
}

fn same(present: Option<&str>, value: &str) -> bool {
    present.is_some_and(|present| present.trim().eq_ignore_ascii_case(value))
}

/// A value that differs from what is wanted and is none that must never be.
fn acceptable(knob: &Knob, value: &str) -> bool {
    knob.never(value, None).is_none() && !knob.never.is_empty()
}

fn numbers(text: Option<&str>) -> Option<Vec<u64>> {
    text?.split_whitespace().map(|n| n.parse().ok()).collect()
}

/// What a buffer should be, and why it may be less than the path needs.
fn wanted_buffer(situation: &Situation) -> (u64, Option<String>) {
    let needed = buffer_for(situation.bdp_bytes());
    match situation.memory_bytes.map(|bytes| bytes / MEMORY_SHARE) {
        Some(share) if share < needed => (
            share,
            Some(format!(
                " The path would need {}, which is too much of this host's memory.",
                si(needed as f64, "B")
            )),
        ),
        _ => (needed, None),
    }
}

fn path_words(situation: &Situation) -> String {
    format!(
        "{} over {} needs {} in flight",
        si(situation.rate_bps, "bit/s"),
        human_seconds(situation.rtt_s),
        si(situation.bdp_bytes(), "B")
    )
}

/// What a connection gains by a larger buffer.
fn buffer_effect(situation: &Situation, present: u64) -> String {
    let rate = present as f64 * USABLE_BUFFER_RATIO * 8.0 / situation.rtt_s.max(1e-9);
    format!(
        "One connection may carry {} instead of about {}, if the line and the other end can.",
        si(situation.rate_bps, "bit/s"),
        si(rate.min(situation.rate_bps), "bit/s")
    )
}

fn buffer(knob: &Knob, situation: &Situation, present: Option<&str>) -> Advice {
    if situation.role == Role::Router {
        return Advice::Leave {
            why: "a router's own TCP does not carry what it passes on".to_owned(),
        };
    }
    // Without the host's own the kernel's defaults stand (`tcp_init`): the least of them.
    let defaults = match knob.value {
        Formula::SendBuffer => [4096, 16_384, 4 << 20],
        _ => [4096, 131_072, 6 << 20],
    };
    let [least, initial, largest] = numbers(present)
        .and_then(|n| <[u64; 3]>::try_from(n).ok())
        .unwrap_or(defaults);
    let (wanted, short) = wanted_buffer(situation);
    let needed = situation.bdp_bytes();
    if largest as f64 * USABLE_BUFFER_RATIO >= needed || wanted <= largest {
        return Advice::Leave {
            why: format!(
                "{}, and {} are allowed already",
                path_words(situation),
                si(largest as f64, "B")
            ),
        };
    }
    Advice::Set {
        value: format!("{least} {initial} {wanted}"),
        why: format!(
            "{}, and about half of a buffer counts: {} are too few.{}",
            path_words(situation),
            si(largest as f64, "B"),
            short.unwrap_or_default()
        ),
        effect: buffer_effect(situation, largest),
        memory_bytes: Some(wanted),
    }
}

fn limit(knob: &Knob, situation: &Situation, present: Option<&str>) -> Advice {
    let (wanted, short) = wanted_buffer(situation);
    let wanted = knob
        .most
        .and_then(|most| u64::try_from(most).ok())
        .map_or(wanted, |most| wanted.min(most));
    // Where the host does not tell, its default does, if the catalogue has one as a number.
    let present = numbers(present)
        .or_else(|| numbers(knob.default.split(';').next()))
        .and_then(|n| n.first().copied());
    match present {
        Some(present)
            if present >= wanted
                || present as f64 * USABLE_BUFFER_RATIO >= situation.bdp_bytes() =>
        {
            Advice::Leave {
                why: format!(
                    "{}, and {} are allowed already",
                    path_words(situation),
                    si(present as f64, "B")
                ),
            }
        }
        present => Advice::Set {
            value: wanted.to_string(),
            why: format!(
                "{}, and about half of a buffer counts.{}",
                path_words(situation),
                short.unwrap_or_default()
            ),
            effect: buffer_effect(situation, present.unwrap_or(0)),
            memory_bytes: Some(wanted),
        },
    }
}

/// Why CUBIC cannot hold the rate; none where it can.
fn losing(situation: &Situation) -> Option<String> {
    let stands = tolerance(
        Algorithm::Cubic,
        situation.rate_bps,
        situation.rtt_s,
        MSS_BYTES,
    );
    let loss = situation.loss_ratio.unwrap_or(CLEAN_LOSS_RATIO);
    let of = match situation.loss_ratio {
        Some(_) => "the path loses",
        None => "even clean paths lose about",
    };
    (!situation.is_lan() && loss > stands).then(|| {
        format!(
            "CUBIC holds {} over {} only while less than {stands:.1e} of the packets are lost, and {of} {loss:.1e}.",
            si(situation.rate_bps, "bit/s"),
            human_seconds(situation.rtt_s)
        )
    })
}

fn standing(situation: &Situation) -> String {
    let stands = tolerance(
        Algorithm::Cubic,
        situation.rate_bps,
        situation.rtt_s,
        MSS_BYTES,
    );
    format!(
        "CUBIC holds {} over {} while less than {stands:.1e} of the packets are lost at random",
        si(situation.rate_bps, "bit/s"),
        human_seconds(situation.rtt_s)
    )
}

fn congestion_control(situation: &Situation, present: Present<'_>) -> Advice {
    let leave = |why: String| Advice::Leave { why };
    if situation.role == Role::Router {
        return leave("a router's own TCP does not carry what it passes on".to_owned());
    }
    let Some(why) = losing(situation) else {
        return leave(standing(situation));
    };
    if same(present.value, "bbr") {
        return leave("it is bbr already".to_owned());
    }
    let there = |text: &str| text.split_whitespace().any(|cc| cc == "bbr");
    if !present.congestion_controls.is_none_or(there) {
        return leave(format!(
            "{why} BBR would, but this kernel has none at hand: modprobe tcp_bbr"
        ));
    }
    set(
        "bbr",
        why,
        "New connections that this host sends on hold the rate in spite of the loss; those that exist stay as they are.",
    )
}

fn fair_queue(situation: &Situation, present: Present<'_>) -> Advice {
    let leave = |why: &str| Advice::Leave {
        why: why.to_owned(),
    };
    if situation.role == Role::Router {
        return leave("on a router fq_codel or CAKE belongs there: fq serves local sockets");
    }
    if !same(present.congestion_control, "bbr") {
        return leave("nothing here paces, so plain queues do as well");
    }
    if same(present.value, "fq") {
        return leave("it is fq already");
    }
    set(
        "fq",
        "BBR paces its packets, and fq does that with less processor than TCP's own timers."
            .to_owned(),
        "Packets leave spaced out; BBR works without it too, since 4.13.",
    )
}

fn idle(situation: &Situation, present: Present<'_>) -> Advice {
    let leave = |why: &str| Advice::Leave {
        why: why.to_owned(),
    };
    if situation.role == Role::Router {
        return leave("a router's own TCP does not carry what it passes on");
    }
    if same(present.congestion_control, "bbr") {
        return leave("BBR skips the restart anyway");
    }
    if situation.bdp_bytes() < SHORT_PATH_BYTES {
        return leave("on a short path a restart costs little");
    }
    if same(present.value, "0") {
        return leave("it is 0 already");
    }
    set(
        "0",
        format!(
            "After a pause a connection would climb from ten segments to {} again.",
            si(situation.bdp_bytes(), "B")
        ),
        "Connections that pause go on at their old window; single transfers do not change.",
    )
}

fn autotuning(situation: &Situation, present: Option<&str>) -> Advice {
    let level = if situation.bdp_bytes() > WINDOWS_NORMAL_BYTES {
        "experimental"
    } else {
        "normal"
    };
    if same(present, level) || (level == "normal" && same(present, "experimental")) {
        return Advice::Leave {
            why: format!("{}, and it is {level} already", path_words(situation)),
        };
    }
    if present.is_none() && level == "normal" {
        return Advice::Leave {
            why: format!(
                "{}, and normal, which is the default, announces up to 16 MB",
                path_words(situation)
            ),
        };
    }
    set(
        level,
        format!("{}.", path_words(situation)),
        "What is received can use a window that fills the path.",
    )
}

fn at_least(knob: &Knob, present: Option<&str>) -> Advice {
    let wanted = knob.wanted.as_deref().unwrap_or_default();
    let enough = numbers(present)
        .and_then(|n| n.first().copied())
        .zip(wanted.parse().ok())
        .is_some_and(|(present, wanted): (u64, u64)| present >= wanted);
    if enough {
        return Advice::Leave {
            why: format!("it is {} already", present.unwrap_or_default()),
        };
    }
    set(
        wanted,
        knob.when.clone(),
        "Bursts of new connections are kept instead of refused, where programs ask for it.",
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;
    use crate::knobs::Catalogue;
    use plumb_model::tune::Os;

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
        let sack =
            |now| value(&advice(Os::Linux, "net.ipv4.tcp_sack", &path, now)).map(str::to_owned);
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
}
