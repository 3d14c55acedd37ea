//! What to do about a queue that is too long, by the line before which it stands.

use plumb_model::direction::OneDirection;
use plumb_model::distribution::Distribution;
use plumb_model::finding::{Action, Actor, Finding, Fix, ShaperAction};
use plumb_model::framing::Cells;
use plumb_model::grade::Grade;
use plumb_model::results::LoadedLatencyResult;
use plumb_model::units::human_seconds;

use crate::evidence::Carried;
use crate::signs::FULL_RATIO;

/// Share of the line's rate that a shaper may use, so that the queue forms in it and not in
/// the modem.
const SHAPED_RATIO: f64 = 0.95;

/// A full-size packet, its TCP payload with timestamps (RFC 7323), and what Ethernet or DOCSIS
/// adds to it: headers and checksum, as tc-cake(8) counts them under `docsis`.
const PACKET_BYTES: f64 = 1500.0;
const PAYLOAD_BYTES: f64 = 1448.0;
const FRAMING_BYTES: i16 = 18;
const MPU_BYTES: u16 = 64;

/// Rates are proposed in whole steps of this many bits a second.
const RATE_STEP_BPS: f64 = 100_000.0;

/// What a managed queue leaves of the increase, in seconds: two CoDel targets (RFC 8289) of
/// 5 ms each way, the packets being served, and the other side.
pub(crate) const MANAGED_S: f64 = 0.030;

/// From this idle round trip on, in seconds, and this rate, in bit/s, a path is a long network and no home's line: a shaper at
/// the edge reaches no queue of it, and it holds 3 MB under way.
const LONG_RTT_S: f64 = 0.080;
const LONG_BPS: f64 = 300e6;

/// What to do about the queue that a load in `direction` fills, worked out from what it carried.
pub(crate) fn fixes(
    direction: OneDirection,
    carried: Carried<'_>,
    loaded: &LoadedLatencyResult,
) -> Vec<Fix> {
    let Some(steady_bps) = carried.result.steady_bps else {
        return Vec::new();
    };
    if loaded.idle_rtt_s.min >= LONG_RTT_S && steady_bps >= LONG_BPS {
        return of_a_long_path(loaded);
    }
    let low_bps = lowest_bps(carried);
    let line_bps =
        low_bps.unwrap_or(steady_bps) * (PACKET_BYTES + f64::from(FRAMING_BYTES)) / PAYLOAD_BYTES;
    let rate_bps = (line_bps * SHAPED_RATIO / RATE_STEP_BPS).floor() * RATE_STEP_BPS;
    if rate_bps < RATE_STEP_BPS {
        return Vec::new();
    }
    let grade = Grade::of_increase(MANAGED_S * 0.99);
    let rates = [(direction, rate_bps as u64)];
    let line = of_the_line(&rates);
    let below = match low_bps {
        None => format!("95 % of what the line carries with headers, {line}"),
        Some(_) => format!(
            "95 % of the lowest rate that the line kept with headers, {line} (its rate varies: CAKE with autorate follows it)"
        ),
    };
    vec![
        Fix::advice(
            Actor::Router,
            format!(
                "In the router's menu, switch on SQM (Smart Queue, QoS) with {}: {below}.",
                in_a_menu(&rates),
            ),
            format!(
                "Round trips under this load at most {} above idle, instead of {}; grade {} or better; {} % of the rate.",
                human_seconds(MANAGED_S),
                human_seconds(loaded.increase_s.p95),
                grade.name(),
                SHAPED_RATIO * 100.0,
            ),
        )
        .by(Action::Shaper(ShaperAction {
            direction,
            rate_bps: rate_bps as u64,
            overhead_bytes: FRAMING_BYTES,
            mpu_bytes: MPU_BYTES,
            cells: Cells::None,
            qdisc: "fq_codel".to_owned(),
        })),
        Fix::advice(
            Actor::Provider,
            "Ask the provider for queue management in the modem and the access node: DOCSIS-PIE (RFC 8034) is a line in a cable modem's configuration.",
            "The same, without giving up any of the rate.",
        ),
    ]
}

/// Rates as they are typed into a menu: `94900 down and 18900 up (kbit/s)`.
fn in_a_menu(rates: &[(OneDirection, u64)]) -> String {
    let each = of_both(rates, |bps| (bps / 1000).to_string());
    format!("{each} (kbit/s)")
}

/// What the line carries of which those are a part: `99.9 down and 19.9 up (Mbit/s)`.
fn of_the_line(rates: &[(OneDirection, u64)]) -> String {
    let each = of_both(rates, |bps| {
        format!("{:.1}", bps as f64 / SHAPED_RATIO / 1e6)
    });
    format!("{each} (Mbit/s)")
}

/// The rate of each direction, the download first.
fn of_both(rates: &[(OneDirection, u64)], number: impl Fn(u64) -> String) -> String {
    let each = [OneDirection::Down, OneDirection::Up].into_iter();
    let each = each.flat_map(|direction| rates.iter().filter(move |(of, _)| *of == direction));
    let each: Vec<String> = each
        .map(|(direction, bps)| format!("{} {}", number(*bps), direction.name()))
        .collect();
    each.join(" and ")
}

/// Makes one fix of shapers of both directions: who opens a router's menu types both rates. Each finding keeps the action of
/// its own direction.
pub(crate) fn join_directions(findings: &mut [Finding]) {
    let mut fixes: Vec<&mut Fix> = findings
        .iter_mut()
        .flat_map(|finding| &mut finding.fixes)
        .filter(|fix| shaped(fix).is_some())
        .collect();
    let rates: Vec<(OneDirection, u64)> = fixes.iter().filter_map(|fix| shaped(fix)).collect();
    let [(one, _), (other, _)] = rates.as_slice() else {
        return;
    };
    if one == other {
        return;
    }
    for (fix, of) in fixes.iter_mut().zip(&rates) {
        for words in [in_a_menu, of_the_line] {
            fix.summary = fix.summary.replacen(&words(&[*of]), &words(&rates), 1);
        }
    }
    // Where one rate varies, its words are the longer ones, and hold for the pair.
    let longest = fixes.iter().max_by_key(|fix| fix.summary.len());
    let Some(summary) = longest.map(|fix| fix.summary.clone()) else {
        return;
    };
    for fix in fixes {
        fix.summary.clone_from(&summary);
    }
}

/// The direction and the rate of a shaper on the router.
fn shaped(fix: &Fix) -> Option<(OneDirection, u64)> {
    match (&fix.action, fix.on) {
        (Some(Action::Shaper(shaper)), Actor::Router) => Some((shaper.direction, shaper.rate_bps)),
        _ => None,
    }
}

/// The lowest rate that lasted, where it varies: the lower level where it has two, and a slow second otherwise.
fn lowest_bps(carried: Carried<'_>) -> Option<f64> {
    let low = carried.levels().map(|levels| levels.low_bps);
    low.or_else(|| slow_bps(&carried.seconds_bps()?))
}

/// A slow second of a rate without levels, where many are. A segment that is lost holds up what came after it, which then
/// arrives at once: that makes one second slow and the next one faster than the line, and no quarter of them.
fn slow_bps(seconds: &Distribution) -> Option<f64> {
    (seconds.p25 < FULL_RATIO * seconds.p75).then_some(seconds.p25)
}

/// Neither a home's router nor a modem stands before that queue.
fn of_a_long_path(loaded: &LoadedLatencyResult) -> Vec<Fix> {
    vec![
        Fix::advice(
            Actor::ThisHost,
            "Pace the senders below the bottleneck's rate: BBR as congestion control, or net.core.default_qdisc=fq with a largest rate for each socket.",
            format!(
                "Round trips under this load at most {} above idle, instead of {}.",
                human_seconds(MANAGED_S),
                human_seconds(loaded.increase_s.p95),
            ),
        ),
        Fix::advice(
            Actor::Provider,
            "Ask the operator of the narrowest router of the path to manage its queue (FQ-CoDel, PIE, or RED with ECN).",
            "The same for everybody on that path.",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_as_a_menu_takes_them() {
        let (up, down) = (
            (OneDirection::Up, 18_900_000),
            (OneDirection::Down, 94_900_000),
        );
        assert_eq!(in_a_menu(&[up]), "18900 up (kbit/s)");
        assert_eq!(in_a_menu(&[up, down]), "94900 down and 18900 up (kbit/s)");
        assert_eq!(of_the_line(&[up, down]), "99.9 down and 19.9 up (Mbit/s)");
    }

    #[test]
    fn a_hole_that_is_filled_is_no_lower_rate() {
        let slow = |rates: &[f64]| slow_bps(&Distribution::of(rates.iter().copied())?);
        assert_eq!(
            slow(&[19.0, 19.0, 19.0, 8.0, 30.0, 19.0, 19.0, 15.4, 22.0]),
            None
        );
        let drifts = [30.0, 27.0, 24.0, 20.0, 17.0, 14.0, 11.0, 9.0, 8.0];
        assert_eq!(slow(&drifts), Some(11.0));
    }
}
