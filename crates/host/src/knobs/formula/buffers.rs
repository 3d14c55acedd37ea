//! Buffers and windows that hold what a path has in flight.

use plumb_model::formula::{USABLE_BUFFER_RATIO, buffer_for};
use plumb_model::tune::Role;
use plumb_model::units::{human_seconds, si};

use super::{Advice, Formula, numbers, same, set};
use crate::knobs::Knob;
use crate::knobs::situation::Situation;

/// Share of the memory that one connection's buffer may take.
const MEMORY_SHARE: u64 = 16;

/// The window of Windows' autotuning level `normal`: scale 8.
const WINDOWS_NORMAL_BYTES: f64 = 16_776_960.0;

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

pub(super) fn triple(knob: &Knob, situation: &Situation, present: Option<&str>) -> Advice {
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

pub(super) fn limit(knob: &Knob, situation: &Situation, present: Option<&str>) -> Advice {
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

pub(super) fn autotuning(situation: &Situation, present: Option<&str>) -> Advice {
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
