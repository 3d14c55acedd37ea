//! The algorithm that stands a path's loss, and what goes with it.

use plumb_model::formula::response::{Algorithm, tolerance};
use plumb_model::tune::Role;
use plumb_model::units::{human_seconds, si};

use super::advice::{Advice, same, set};
use super::present::Present;
use crate::knobs::available::Available;
use crate::knobs::situation::Situation;

/// Loss that a clean long path has all the same: one packet in ten million, as dirty optics and
/// overfull switches make it.
const CLEAN_LOSS_RATIO: f64 = 1e-7;

/// Payload of a segment in bytes, for response functions.
const MSS_BYTES: f64 = 1448.0;

/// Bytes in flight below which restarting after a pause costs little: the initial window grows to it
/// in five round trips.
const SHORT_PATH_BYTES: f64 = 500_000.0;

/// How much loss an algorithm stands, beside the others that plumb knows; `None` for any other.
pub(crate) fn rank(name: &str) -> Option<usize> {
    ["reno", "cubic", "bbr"]
        .iter()
        .position(|known| *known == name)
}

/// Why CUBIC cannot hold the rate; none where it can.
pub(super) fn losing(situation: &Situation) -> Option<String> {
    losing_with(Algorithm::Cubic, situation)
}

fn losing_with(algorithm: Algorithm, situation: &Situation) -> Option<String> {
    let stands = tolerance(algorithm, situation.rate_bps, situation.rtt_s, MSS_BYTES);
    let loss = situation.loss_ratio.unwrap_or(CLEAN_LOSS_RATIO);
    let of = match situation.loss_ratio {
        Some(_) => "the path loses",
        None => "even clean paths lose about",
    };
    (!situation.is_lan() && loss > stands).then(|| {
        format!(
            "{} holds {} over {} only while less than {stands:.1e} of the packets are lost, and {of} {loss:.1e}.",
            algorithm.name(),
            si(situation.rate_bps, "bit/s"),
            human_seconds(situation.rtt_s)
        )
    })
}

/// Up to which loss CUBIC holds the rate.
pub(super) fn standing(situation: &Situation) -> String {
    standing_with(Algorithm::Cubic, situation)
}

fn standing_with(algorithm: Algorithm, situation: &Situation) -> String {
    let stands = tolerance(algorithm, situation.rate_bps, situation.rtt_s, MSS_BYTES);
    format!(
        "{} can hold {} over {} while less than {stands:.1e} of the packets are lost at random",
        algorithm.name(),
        si(situation.rate_bps, "bit/s"),
        human_seconds(situation.rtt_s)
    )
}

pub(super) fn control(situation: &Situation, present: Present<'_>) -> Advice {
    let leave = |why: String| Advice::Leave { why };
    if situation.role == Role::Router {
        return leave("a router's own TCP does not carry what it passes on".to_owned());
    }
    let Some(why) = losing(situation) else {
        return match losing_with(Algorithm::Reno, situation) {
            Some(why) if same(present.value, "reno") && present.cubic.is_possible() => set(
                "cubic",
                why,
                "New connections that this host sends on come back to the rate sooner after each loss; those that exist stay as they are.",
            ),
            _ if same(present.value, "bbr") => leave(format!(
                "BBR is in use, and does as well here as CUBIC would: {}",
                standing(situation)
            )),
            _ if same(present.value, "reno") => leave(standing_with(Algorithm::Reno, situation)),
            _ => leave(standing(situation)),
        };
    };
    if same(present.value, "bbr") {
        return leave("it is bbr already".to_owned());
    }
    if let Some(not) = present.bbr.why_not("bbr") {
        return leave(format!("{why} BBR would, but {not}"));
    }
    let unsure = match present.bbr {
        Available::NotKnown => {
            " Whether that host's kernel has BBR is not known: modprobe -n tcp_bbr shows it."
        }
        _ => "",
    };
    set(
        "bbr",
        format!("{why}{unsure}"),
        "New connections that this host sends on hold the rate in spite of the loss; those that exist stay as they are.",
    )
}

pub(super) fn fair_queue(situation: &Situation, present: Present<'_>) -> Advice {
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

pub(super) fn idle(situation: &Situation, present: Present<'_>) -> Advice {
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
