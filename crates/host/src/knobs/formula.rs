//! How the value of a knob follows from a path and a host. Pure, and the only place where values are
//! computed; the catalogue says which knob follows which rule.

mod advice;
pub(crate) mod buffers;
pub(crate) mod congestion;
pub mod interface;
mod present;
mod rule;

use super::Knob;
use super::situation::Situation;
pub use advice::Advice;
use advice::{no_matter, numbers, same, set};
pub use present::Present;
pub use rule::Formula;

/// MTU of Ethernet in bytes.
const ETHERNET_MTU_BYTES: u32 = 1500;

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
        Formula::ReceiveBuffer | Formula::SendBuffer => {
            buffers::triple(knob, situation, present.value)
        }
        Formula::BufferLimit | Formula::SocketCeiling => {
            buffers::limit(knob, situation, present.value)
        }
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
                "packets of the usual 1500 bytes arrive nearly everywhere (1 would do no harm)"
                    .to_owned(),
            ),
        },
        Formula::MustBe => {
            let wanted = knob.wanted.as_deref().unwrap_or_default();
            match present.value {
                Some(value) if !same(Some(value), wanted) && !acceptable(knob, value) => {
                    set(wanted, knob.when.clone(), "What it guards works again.")
                }
                None => leave("its value could not be read".to_owned()),
                Some(value) if same(Some(value), wanted) => leave("already right".to_owned()),
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

/// A value that differs from what is wanted and is none that must never be.
fn acceptable(knob: &Knob, value: &str) -> bool {
    knob.never(value, None).is_none() && !knob.never.is_empty()
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
