//! How the value of a knob follows from a path and a host. Pure, and the only place where values are
//! computed; the catalogue says which knob follows which rule.

pub(crate) mod buffers;
pub(crate) mod congestion;
pub mod interface;

use serde::Deserialize;

use super::Knob;
use super::available::Available;
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
    /// Whether BBR can be had.
    pub bbr: Available,
    /// Whether CUBIC can.
    pub cubic: Available,
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

/// MTU of Ethernet in bytes.
const ETHERNET_MTU_BYTES: u32 = 1500;

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
        return leave(no_matter(knob));
    }
    match knob.value {
        Formula::Leave => leave(no_matter(knob)),
        Formula::ReceiveBuffer | Formula::SendBuffer => buffers::triple(knob, situation, present.value),
        Formula::BufferLimit | Formula::SocketCeiling => buffers::limit(knob, situation, present.value),
        Formula::CongestionControl => congestion::control(situation, present),
        Formula::WindowsCongestionControl => match congestion::losing(situation) {
            Some(why) if !same(present.value, "bbr2") => set(
                "bbr2",
                why,
                "New connections that send hold the rate in spite of the loss.",
            ),
            Some(_) => leave("it is bbr2 already".to_owned()),
            None => leave(congestion::standing(situation)),
        },
        Formula::FairQueue | Formula::FairQueueDevice => congestion::fair_queue(situation, present),
        Formula::NoSlowStartAfterIdle => congestion::idle(situation, present),
        Formula::WindowsAutotuning => buffers::autotuning(situation, present.value),
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
                None => leave("what it is, is not known".to_owned()),
                Some(value) if same(Some(value), wanted) => leave("it is as it must be".to_owned()),
                Some(value) => leave(format!("{value} does as well as {wanted}")),
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

/// That a knob does not matter on a path, or for what a host does.
fn no_matter(knob: &Knob) -> String {
    format!("it does not matter: {}", in_a_sentence(&knob.not))
}

/// A sentence of the catalogue as a part of another; a name, such as IPv6, keeps its capitals.
fn in_a_sentence(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || second == ' ' => {
            format!("{}{second}{}", first.to_lowercase(), letters.as_str())
        }
        _ => text.to_owned(),
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
mod tests;
