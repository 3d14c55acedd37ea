//! Buffers and windows that hold what a path has in flight.

use plumb_model::formula::{
    RECEIVE_WINDOW_RATIO, SEND_WINDOW_RATIO, WINDOW_OF_A_BUFFER, buffer_for, largest_window,
    window_limited_rate,
};
use plumb_model::tune::Role;
use plumb_model::units::{human_seconds, si};

use super::advice::{Advice, numbers, same, set};
use super::rule::Formula;
use crate::knobs::Knob;
use crate::knobs::situation::Situation;

/// Share of the memory that one connection's buffer may take.
const MEMORY_SHARE: u64 = 16;

/// The window of Windows' autotuning level `normal`: scale 8.
const WINDOWS_NORMAL_BYTES: f64 = 16_776_960.0;

/// What a buffer should be, and why it is less than the path needs, where it is.
fn wanted_buffer(knob: &Knob, situation: &Situation) -> (u64, Option<String>) {
    let most = knob
        .most
        .and_then(|most| u64::try_from(most).ok())
        .unwrap_or(u64::MAX);
    let most = buffer_for(situation.bdp_bytes()).min(most);
    let share = situation.memory_bytes.map(|bytes| bytes / MEMORY_SHARE);
    let wanted = share.map_or(most, |share| share.min(most));
    let needed = situation.bdp_bytes() / window_ratio(knob);
    let short = (needed > wanted as f64).then(|| {
        format!(
            " The path would need {}, which is {}.",
            si(needed, "B"),
            if wanted < most {
                "too much of this host's memory"
            } else {
                "more than the system takes"
            }
        )
    });
    (wanted, short)
}

fn path_words(situation: &Situation) -> String {
    format!(
        "{} over {} needs {} in flight",
        si(situation.rate_bps, "bit/s"),
        human_seconds(situation.rtt_s),
        si(situation.bdp_bytes(), "B")
    )
}

/// Share of a buffer that is window once it has grown. The shares are Linux's, and those that measured windows are
/// judged by.
fn window_ratio(knob: &Knob) -> f64 {
    match knob.value {
        Formula::SendBuffer => SEND_WINDOW_RATIO,
        _ => RECEIVE_WINDOW_RATIO,
    }
}

/// What one connection can have in flight with a buffer of that size.
fn window(knob: &Knob, buffer_bytes: u64) -> f64 {
    (buffer_bytes as f64 * window_ratio(knob)).min(largest_window())
}

/// What one connection carries on the path with a buffer of that size, in bit/s.
fn carried(knob: &Knob, situation: &Situation, buffer_bytes: u64) -> f64 {
    window_limited_rate(window(knob, buffer_bytes), situation.rtt_s).min(situation.rate_bps)
}

/// How many connections carry the rate side by side, where each carries less.
fn side_by_side(situation: &Situation, each_bps: f64) -> String {
    format!(
        "{:.0} of them side by side carry {}",
        (situation.rate_bps / each_bps).ceil(),
        si(situation.rate_bps, "bit/s")
    )
}

/// What a connection gains by a larger buffer.
fn effect(knob: &Knob, situation: &Situation, present: Option<u64>, wanted: u64) -> String {
    let with = carried(knob, situation, wanted);
    let without = present.map_or_else(String::new, |present| {
        let rate = carried(knob, situation, present);
        format!(" instead of about {}", si(rate, "bit/s"))
    });
    if with < situation.rate_bps {
        return format!(
            "One connection may carry about {}{without}; {}, if the line and the other end can.",
            si(with, "bit/s"),
            side_by_side(situation, with)
        );
    }
    format!(
        "One connection may carry {}{without}, if the line and the other end can.",
        si(situation.rate_bps, "bit/s")
    )
}

/// Why a buffer that is large enough, or as large as can be, stays.
fn enough(knob: &Knob, situation: &Situation, present: u64) -> String {
    let carried = carried(knob, situation, present);
    let allowed = si(present as f64, "B");
    if carried < situation.rate_bps {
        return format!(
            "{}, and {allowed}, which are allowed already, are as much as can be: one connection carries about {}, and {}",
            path_words(situation),
            si(carried, "bit/s"),
            side_by_side(situation, carried)
        );
    }
    format!(
        "{}, and {allowed} are allowed already",
        path_words(situation)
    )
}

/// The three numbers of a buffer, and whether they are the kernel's defaults (`tcp_init`; the least of them), which are
/// used where the host does not report its own.
pub(crate) fn of_three(knob: &Knob, present: Option<&str>) -> ([u64; 3], bool) {
    let told = numbers(present).and_then(|n| <[u64; 3]>::try_from(n).ok());
    let defaults = match knob.value {
        Formula::SendBuffer => [4096, 16_384, 4 << 20],
        _ => [4096, 131_072, 6 << 20],
    };
    (told.unwrap_or(defaults), told.is_none())
}

pub(super) fn triple(knob: &Knob, situation: &Situation, present: Option<&str>) -> Advice {
    if situation.role == Role::Router {
        return Advice::Leave {
            why: "a router's own TCP does not carry what it passes on".to_owned(),
        };
    }
    let ([least, initial, largest], default) = of_three(knob, present);
    let (wanted, short) = wanted_buffer(knob, situation);
    if window(knob, largest) >= situation.bdp_bytes() || wanted <= largest {
        return Advice::Leave {
            why: enough(knob, situation, largest),
        };
    }
    let too_few = si(largest as f64, "B");
    let too_few = if default {
        format!("the kernel's default of {too_few} is too little")
    } else {
        format!("{too_few} are too few")
    };
    Advice::Set {
        value: format!("{least} {initial} {wanted}"),
        why: format!(
            "{}, and {WINDOW_OF_A_BUFFER}: {too_few}.{}",
            path_words(situation),
            short.unwrap_or_default()
        ),
        effect: effect(knob, situation, Some(largest), wanted),
        memory_bytes: Some(wanted),
    }
}

/// The present value of a single number; where the host does not report it, its default, if the catalogue has one as a
/// number.
fn of_one(knob: &Knob, present: Option<&str>) -> Option<u64> {
    numbers(present)
        .or_else(|| numbers(knob.default.split(';').next()))
        .and_then(|n| n.first().copied())
}

pub(super) fn limit(knob: &Knob, situation: &Situation, present: Option<&str>) -> Advice {
    let (wanted, short) = wanted_buffer(knob, situation);
    match of_one(knob, present) {
        Some(present) if present >= wanted || window(knob, present) >= situation.bdp_bytes() => {
            Advice::Leave {
                why: enough(knob, situation, present),
            }
        }
        present => Advice::Set {
            value: wanted.to_string(),
            why: format!(
                "{}, and {WINDOW_OF_A_BUFFER}.{}",
                path_words(situation),
                short.unwrap_or_default()
            ),
            effect: effect(knob, situation, present, wanted),
            memory_bytes: Some(wanted),
        },
    }
}

/// What one connection carries on a path with such a value of a buffer; `None` for other knobs.
pub(crate) fn carried_with(knob: &Knob, situation: &Situation, value: Option<&str>) -> Option<f64> {
    let largest = match knob.value {
        Formula::SendBuffer | Formula::ReceiveBuffer => {
            let ([_, _, largest], _) = of_three(knob, value);
            largest
        }
        Formula::BufferLimit | Formula::SocketCeiling => of_one(knob, value)?,
        _ => return None,
    };
    Some(carried(knob, situation, largest))
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
    let most = window_limited_rate(largest_window(), situation.rtt_s);
    if most < situation.rate_bps {
        let effect = format!(
            "What is received can use a window of {}, the largest that TCP has: about {} a connection; {}.",
            si(largest_window(), "B"),
            si(most, "bit/s"),
            side_by_side(situation, most)
        );
        return set(level, format!("{}.", path_words(situation)), &effect);
    }
    set(
        level,
        format!("{}.", path_words(situation)),
        "What is received can use a window that fills the path.",
    )
}
