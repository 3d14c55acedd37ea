//! What packets suffer at random: loss, corruption, duplication, reordering.

use plumb_model::direction::OneDirection;
use plumb_model::finding::{Cause, Place};

use super::draft::{Draft, Link, Order};
use super::measured::{Directed, Measured};
use super::write;

/// Mean bursts from this length on, in packets, are no chance: of packets lost independently with 20 %, 1.25 are lost at a time.
const BURST_PACKETS: f64 = 1.5;

/// Fewer datagrams than these do not show a share of a percent.
const ENOUGH: u64 = 300;

/// With more loss than this, a path carries nothing.
const MOST_RATIO: f64 = 0.9;

/// A path whose other share is this many times as large loses in that direction alone.
const CLEARLY: f64 = 3.0;

pub(super) fn put(measured: &Measured<'_>, draft: &mut Draft) {
    loss(measured, draft);
    let idle = &measured.idle;
    let halves = |ratio: f64| 1.0 - (1.0 - ratio.clamp(0.0, MOST_RATIO)).sqrt();
    let mut both = |cause: Cause, ratio: f64, kind: &str| {
        if measured.finding(cause).is_none() {
            return;
        }
        if ratio <= 0.0 {
            draft.unknown(format!(
                "how often the path has {}: probes saw none",
                cause.name()
            ));
            return;
        }
        let toml = format!(
            "{{ type = \"{kind}\", ratio = \"{}\" }}",
            write::percent(halves(ratio))
        );
        let why = format!(
            "{} of probes, half of it in each direction.",
            write::percent(ratio)
        );
        draft.put_both(Order::Damage, &toml, &why);
        draft.unknown(format!("in which direction the path has {}", cause.name()));
    };
    both(Cause::Duplication, idle.duplicates_ratio, "duplicate");
    let corrupted = idle
        .corrupted_ratio
        .max(idle.lost as f64 / idle.sent.max(1) as f64);
    both(Cause::Corruption, corrupted, "corrupt");
    both(Cause::Reordering, idle.reordered_ratio, "reorder");
}

/// A share lost and how many are lost at a time.
#[derive(Clone, Copy)]
struct Loss {
    ratio: f64,
    burst_packets: Option<f64>,
}

fn loss(measured: &Measured<'_>, draft: &mut Draft) {
    let found: Vec<Place> = measured
        .run
        .findings
        .iter()
        .filter(|finding| finding.cause == Cause::PathLoss)
        .map(|finding| finding.place)
        .collect();
    if found.is_empty() {
        return;
    }
    for directed in measured.directions() {
        let there = Place::line(directed.direction.into());
        let elsewhere =
            |place: &Place| matches!(place, Place::Uplink | Place::Downlink) && *place != there;
        if found.iter().all(elsewhere) {
            continue;
        }
        let Some(loss) = of_datagrams(directed).or_else(|| of_probes(measured, directed)) else {
            continue;
        };
        let (toml, what) = cell(loss);
        draft.put(Link::Line, directed.direction, Order::Damage, toml, what);
    }
    if !found.contains(&Place::Uplink) && !found.contains(&Place::Downlink) {
        draft
            .unknown("in which direction packets are lost: divided by what TCP sent again in each");
    }
}

/// What datagrams below the rate lost: no queue of ours was full then.
fn of_datagrams(directed: &Directed<'_>) -> Option<Loss> {
    let below = directed.below.filter(|below| below.sent >= ENOUGH)?;
    // What TCP lost is of many more packets: it is nearer where it agrees, and where no full queue added to it.
    let near = directed.again_ratio / CLEARLY..=directed.again_ratio * CLEARLY;
    let ratio = match near.contains(&below.loss_ratio) && !directed.queue_stood() {
        true => directed.again_ratio,
        false => below.loss_ratio,
    };
    (ratio > 0.0).then_some(Loss {
        ratio,
        burst_packets: below.burst_packets,
    })
}

/// What probes lost both directions, divided as TCP sent again.
fn of_probes(measured: &Measured<'_>, directed: &Directed<'_>) -> Option<Loss> {
    let idle = &measured.idle;
    let both = idle.lost as f64 / idle.sent.max(1) as f64;
    let [up, down] = measured.directions().map(|directed| directed.again_ratio);
    let share = match (up >= CLEARLY * down, down >= CLEARLY * up) {
        (true, false) => f64::from(directed.direction == OneDirection::Up),
        (false, true) => f64::from(directed.direction == OneDirection::Down),
        _ => 0.5,
    };
    let ratio = 1.0 - (1.0 - both.min(MOST_RATIO)).powf(share);
    (ratio > 0.0).then_some(Loss {
        ratio,
        burst_packets: idle.burst_packets,
    })
}

fn cell(loss: Loss) -> (String, String) {
    let ratio = loss.ratio.clamp(0.0, MOST_RATIO);
    match loss
        .burst_packets
        .filter(|packets| *packets >= BURST_PACKETS)
    {
        Some(packets) => {
            let ends = 1.0 / packets;
            let begins = (ends * ratio / (1.0 - ratio)).min(1.0);
            let toml = format!(
                "{{ type = \"gilbert_elliott\", p = \"{}\", r = \"{}\" }}",
                write::percent(begins),
                write::percent(ends)
            );
            let why = format!(
                "{} of packets were lost, {packets:.1} one after the other.",
                write::percent(ratio)
            );
            (toml, why)
        }
        None => (
            format!(
                "{{ type = \"loss\", ratio = \"{}\" }}",
                write::percent(ratio)
            ),
            format!(
                "{} of packets were lost, singly and not in bursts.",
                write::percent(ratio)
            ),
        ),
    }
}
