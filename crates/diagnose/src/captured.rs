//! What captured packets show of causes, a function each: `causes/` has the rest of each cause.
//!
//! A capture shows which end waited for which and what was lost, and not what the path could carry. What it finds is at
//! most a warning, of the heaviest connection that shows it.

use plumb_model::finding::{Actor, Cause, Evidence, Finding, Fix, Place, Severity};
use plumb_model::results::Direction;
use plumb_model::units::{capital, human_seconds, si};

use crate::Case;
use crate::evidence::{Captured, fact};
use crate::signs::{COSTLY_RATIO, MIN_RTT_S, percent};

/// Share of a connection's time that is more than all else together.
const MOST_RATIO: f64 = 0.5;

/// What people notice as a wait, in seconds (Nielsen, Usability Engineering, chapter 5).
const NOTICED_S: f64 = 0.1;

/// What interrupts people, in seconds (the same).
const INTERRUPTS_S: f64 = 1.0;

/// A transfer, in bytes: less is a conversation, whose programs are expected to wait.
const TRANSFER_BYTES: u64 = 1_000_000;

/// From so many round trips on their 95th percentile is known.
const ENOUGH_ROUND_TRIPS: u64 = 50;

/// Questions and answers of which fewer may be chance.
const ENOUGH_ANSWERS: u64 = 3;

/// Segments that were retransmitted, of which fewer may be chance.
const ENOUGH_LOST: u64 = 3;

/// Share of packets that others overtook, from which on it is the path and not a change of route.
const REORDERED_RATIO: f64 = 0.005;

/// What the sender does not do shows, and not why: a buffer of its own may have been full.
const OF_WAITING_CONFIDENCE: f64 = 0.8;

/// What the packets themselves say.
const OF_PACKETS_CONFIDENCE: f64 = 0.9;

/// What a capture lacks may have passed elsewhere.
const OF_ABSENCE_CONFIDENCE: f64 = 0.6;

/// Losses are seen, and whether a queue dropped them is not.
const OF_LOSSES_CONFIDENCE: f64 = 0.6;

/// The receiver's window held it back, and was of that size because scaling lacks, or for its own sake.
pub(crate) fn window(case: &Case<'_>, unscaled: bool) -> Option<Finding> {
    let captured = case.captured().find(|captured| {
        let lacks = captured.connection.lacking.iter();
        let lacks_scaling = lacks.into_iter().any(|l| l.option == "window scaling");
        let is_far = captured.rtt_s().is_none_or(|rtt| rtt >= MIN_RTT_S);
        is_far && lacks_scaling == unscaled && held(captured) >= MOST_RATIO
    })?;
    let [_, (place, _)] = captured.sides();
    let most = captured.sent.max_window_bytes.unwrap_or_default() as f64;
    let (cause, place, why, fix) = match unscaled {
        true => (
            Cause::WindowScalingStripped,
            Place::Path,
            "its handshake has no window scaling at both ends: one end does not offer it, or something on the path strips it",
            "See whether the option leaves the end that lacks it (capture there too): if it does, something on the path strips it, which is to be taken out; if not, switch it on (Linux: net.ipv4.tcp_window_scaling = 1).",
        ),
        false => (
            Cause::ReceiveBufferSmall,
            place,
            "the buffer of its program or host is smaller than the path",
            "Raise the receiver's largest buffer (Linux: net.ipv4.tcp_rmem), and have its program set none of its own; `plumb tune` does it for a path. Where the program reads slowly, no buffer helps: the window then goes to zero again and again.",
        ),
    };
    Some(finding(
        (cause, place),
        (Severity::Warning, OF_PACKETS_CONFIDENCE),
        format!(
            "The receiver's window, {} at most, held back the connection {} for {} of its time: {why}.",
            si(most, "B"),
            captured.ends(),
            percent(held(&captured))
        ),
        vec![fact(
            captured.measurement,
            captured.field("limited.rwnd_ratio"),
            held(&captured),
            "share of the time in which the receiver's window had no room for a segment",
            MOST_RATIO,
        )],
        (actor(place), fix, "The window no longer fills."),
    ))
}

fn held(captured: &Captured<'_>) -> f64 {
    captured.connection.limited.rwnd_ratio
}

/// The sender's program had nothing to send for most of a transfer.
pub(crate) fn application(case: &Case<'_>) -> Option<Finding> {
    let ratio = |captured: &Captured<'_>| captured.connection.limited.app_ratio;
    let captured = case.captured().find(|captured| {
        captured.sent.payload_bytes >= TRANSFER_BYTES && ratio(captured) >= MOST_RATIO
    })?;
    let [(place, sender), _] = captured.sides();
    Some(finding(
        (Cause::ApplicationLimited, place),
        (Severity::Info, OF_WAITING_CONFIDENCE),
        format!(
            "The program at {sender} had nothing to send for {} of the connection {}: no network makes that faster.",
            percent(ratio(&captured)),
            captured.ends()
        ),
        vec![fact(
            captured.measurement,
            captured.field("limited.app_ratio"),
            ratio(&captured),
            "share of the time in which nothing was in flight and no more came",
            MOST_RATIO,
        )],
        (
            actor(place),
            "See what the program waits for: its disk, its processor, another server, or a send buffer that it set itself.",
            "The sender always has something to send.",
        ),
    ))
}

/// Most of the time went by until the server began to answer.
pub(crate) fn server(case: &Case<'_>) -> Option<Finding> {
    let captured = case.captured().find(|captured| {
        let thinks = captured.connection.server_think_s;
        captured.connection.limited.server_ratio >= MOST_RATIO
            && thinks.is_some_and(|thinks| thinks.p50 >= NOTICED_S)
    })?;
    let ratio = captured.connection.limited.server_ratio;
    let thinks = captured.connection.server_think_s?;
    Some(finding(
        (Cause::ServerSlow, Place::Server),
        (Severity::Warning, OF_PACKETS_CONFIDENCE),
        format!(
            "The server {} takes {} until it begins to answer a request (half of them longer), {} of the connection's time: no network makes that faster.",
            captured.connection.server,
            human_seconds(thinks.p50),
            percent(ratio)
        ),
        vec![
            fact(
                captured.measurement,
                captured.field("server_think_s.p50"),
                thinks.p50,
                "median time from a request to its answer, less the round trip to the server",
                NOTICED_S,
            ),
            fact(
                captured.measurement,
                captured.field("limited.server_ratio"),
                ratio,
                "share of the time in which the server had a request and had not begun to answer",
                MOST_RATIO,
            ),
        ],
        (
            Actor::FarHost,
            "See on the server what a request waits for: its program, its database, another server that it asks.",
            "Answers begin a round trip after their request.",
        ),
    ))
}

/// Turns, one after the other, took most of the time: a chatty protocol.
pub(crate) fn turns(case: &Case<'_>) -> Option<Finding> {
    /// What a turn costs over a long path, in seconds.
    const LONG_PATH_S: f64 = 0.1;
    let (captured, rtt_s) = case.captured().find_map(|captured| {
        let rtt_s = captured.rtt_s()?;
        let waited_s = captured.connection.turns as f64 * rtt_s;
        let ratio = waited_s / captured.connection.duration_s;
        (waited_s >= INTERRUPTS_S && ratio >= MOST_RATIO).then_some((captured, rtt_s))
    })?;
    let turns = captured.connection.turns as f64;
    Some(finding(
        (Cause::ManyRoundTrips, Place::Client),
        (Severity::Info, OF_PACKETS_CONFIDENCE),
        format!(
            "The connection of {} with {} asked {turns} times, each time after the answer before: {} of round trips in {}. Over a path of 100 ms that would take {}.",
            captured.connection.client,
            captured.connection.server,
            human_seconds(turns * rtt_s),
            human_seconds(captured.connection.duration_s),
            human_seconds(turns * LONG_PATH_S)
        ),
        vec![fact(
            captured.measurement,
            captured.field("turns"),
            turns,
            "requests that waited for the answer before, against as many round trips as interrupt people",
            INTERRUPTS_S / rtt_s,
        )],
        (
            Actor::ThisHost,
            "Ask for more at a time, or for the next before the answer has come (pipelining, prefetching, batches), or move the program to its server (remote desktop, a proxy or cache nearby).",
            "Fewer turns: the time falls by a round trip each.",
        ),
    ))
}

/// Segments had to be retransmitted.
pub(crate) fn losses(case: &Case<'_>) -> Option<Finding> {
    let lost = |captured: &Captured<'_>| {
        let segments = &captured.sent.segments;
        segments
            .retransmissions
            .saturating_add(segments.fast_retransmissions)
    };
    let captured = case.captured().find(|captured| {
        let enough = lost(captured) >= ENOUGH_LOST;
        enough && captured.retransmitted_ratio() >= COSTLY_RATIO && waiting_s(captured).is_none()
    })?;
    let ratio = captured.retransmitted_ratio();
    Some(finding(
        (Cause::PathLoss, Place::Path),
        (Severity::Warning, OF_LOSSES_CONFIDENCE),
        format!(
            "{} of {} segments {} were retransmitted ({}), and round trips did not rise before: the path loses packets, or a short queue on it does.",
            lost(&captured),
            captured.sent.packets,
            captured.ends(),
            percent(ratio)
        ),
        vec![fact(
            captured.measurement,
            captured.field_of_sent("segments.fast_retransmissions"),
            ratio,
            "share of the segments that were retransmitted, and not because they came late",
            COSTLY_RATIO,
        )],
        (
            Actor::Provider,
            "Capture at both ends (or further along the path): before the place of the loss the lost segments are seen, and behind it they are not. `plumb check` separates loss by chance from a queue that is too short.",
            "Nothing is retransmitted.",
        ),
    ))
}

/// Round trips rose under the connection's own load: a queue on its path.
pub(crate) fn queue(case: &Case<'_>, direction: Direction) -> Option<Finding> {
    let up = direction == Direction::Up;
    let (captured, waits_s) = case.captured().find_map(|captured| {
        let waits_s = waiting_s(&captured).filter(|_| captured.by_client == up)?;
        Some((captured, waits_s))
    })?;
    let cause = match up {
        true => Cause::BufferbloatUp,
        false => Cause::BufferbloatDown,
    };
    Some(finding(
        (cause, Place::Path),
        (Severity::Warning, OF_LOSSES_CONFIDENCE),
        format!(
            "While data went {}, round trips to the receiver rose by {}: a queue on the path builds up, and everything else that crosses it waits as long.",
            captured.ends(),
            human_seconds(waits_s)
        ),
        vec![fact(
            captured.measurement,
            captured.field_of_sent("rtt_s.p95"),
            waits_s,
            "95th percentile of the round trips to the receiver above the shortest, in seconds",
            NOTICED_S,
        )],
        (
            Actor::Router,
            "Manage the queue at the narrowest link (CAKE or FQ-CoDel a little below its rate); `plumb check` finds the rate and where it is.",
            "Round trips stay as short as on the idle path.",
        ),
    ))
}

/// How much longer round trips to the receiver became than the shortest, where a connection that the path held back
/// shows a queue by that. A receiver delays its acknowledgements by less (40 ms on Linux, 200 ms at the most where a
/// segment is alone, which it is not while data keeps coming).
fn waiting_s(captured: &Captured<'_>) -> Option<f64> {
    let rtt = captured
        .sent
        .rtt_s
        .filter(|rtt| rtt.count >= ENOUGH_ROUND_TRIPS)?;
    let waits_s = rtt.p95 - rtt.min;
    let by_path = captured.connection.limited.path_ratio >= MOST_RATIO;
    let is_load = captured.sent.payload_bytes >= TRANSFER_BYTES;
    (is_load && by_path && waits_s >= NOTICED_S && waits_s >= rtt.min).then_some(waits_s)
}

/// Packets came later than others that were sent after them.
pub(crate) fn order(case: &Case<'_>) -> Option<Finding> {
    let ratio = |captured: &Captured<'_>| {
        captured.sent.segments.out_of_order as f64 / captured.sent.packets.max(1) as f64
    };
    let captured = case.captured().find(|captured| {
        captured.sent.segments.out_of_order >= ENOUGH_LOST && ratio(captured) >= REORDERED_RATIO
    })?;
    Some(finding(
        (Cause::Reordering, Place::Path),
        (Severity::Info, OF_PACKETS_CONFIDENCE),
        format!(
            "Packets overtake each other before the place of the capture: {} of those {} came after later ones.",
            percent(ratio(&captured)),
            captured.ends()
        ),
        vec![fact(
            captured.measurement,
            captured.field_of_sent("segments.out_of_order"),
            ratio(&captured),
            "share of the segments that arrived after later ones",
            REORDERED_RATIO,
        )],
        (
            Actor::Provider,
            "Have parallel links share flows and not single packets.",
            "Packets arrive in the order in which they were sent.",
        ),
    ))
}

/// Name servers answered late, or not at all.
pub(crate) fn names(case: &Case<'_>, silent: bool) -> Option<Finding> {
    let (measurement, dns) = case
        .captures()
        .map(|(measurement, result)| (measurement, &result.dns))
        .find(|(_, dns)| match silent {
            true => dns.queries >= ENOUGH_ANSWERS && dns.answers == 0,
            false => dns
                .answer_s
                .is_some_and(|time| time.count >= ENOUGH_ANSWERS && time.p50 >= NOTICED_S),
        })?;
    let p50 = dns.answer_s.map_or(0.0, |time| time.p50);
    let (cause, confidence, summary, evidence) = match silent {
        true => (
            Cause::ResolverSilent,
            OF_ABSENCE_CONFIDENCE,
            format!(
                "None of {} questions for names was answered in the capture: the name server is silent, or its answers take another path than the capture saw.",
                dns.queries
            ),
            fact(
                measurement,
                "dns.answers",
                0.0,
                "answers to questions for names",
                1.0,
            ),
        ),
        false => (
            Cause::ResolverSlow,
            OF_PACKETS_CONFIDENCE,
            format!(
                "Half of the {} answers to questions for names took {} or longer: every new name waits so long before anything else begins.",
                dns.answers,
                human_seconds(p50)
            ),
            fact(
                measurement,
                "dns.answer_s.p50",
                p50,
                "median time of an answer to a question for a name",
                NOTICED_S,
            ),
        ),
    };
    Some(finding(
        (cause, Place::Client),
        (Severity::Warning, confidence),
        summary,
        vec![evidence],
        (
            Actor::ThisHost,
            "Ask the router or the provider's own resolver, or run a cache (systemd-resolved, dnsmasq, unbound).",
            "Known names are answered within a round trip to the provider.",
        ),
    ))
}

fn actor(place: Place) -> Actor {
    match place {
        Place::Client => Actor::ThisHost,
        Place::Server => Actor::FarHost,
        _ => Actor::Provider,
    }
}

fn finding(
    (cause, place): (Cause, Place),
    (severity, confidence): (Severity, f64),
    summary: String,
    evidence: Vec<Evidence>,
    (actor, fix, effect): (Actor, &str, &str),
) -> Finding {
    Finding {
        cause,
        place,
        severity,
        confidence,
        matters_for: Vec::new(),
        summary: capital(&summary),
        evidence,
        fixes: vec![Fix::advice(actor, fix, effect)],
        kb: "capture".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::found_by_any;
    use plumb_model::distribution::Distribution;
    use plumb_model::results::Outcome;
    use plumb_model::results::capture::{
        CaptureResult, CaptureSide, ConnectionResult, DnsSums, HalfResult, Lacking, LimitedBy,
        SegmentCounts,
    };

    /// Round trips of so many seconds, of which the longest tenth is of so many.
    fn rtt(min: f64, long: f64) -> Option<Distribution> {
        Distribution::of((0..100).map(|i| if i < 90 { min } else { long }))
    }

    /// A transfer from the client over 50 ms that the path held back.
    fn transfer() -> ConnectionResult {
        ConnectionResult {
            client: "10.0.0.1:40000".to_owned(),
            server: "10.0.0.2:80".to_owned(),
            duration_s: 4.0,
            handshake_seen: true,
            limited: LimitedBy {
                path_ratio: 1.0,
                ..LimitedBy::default()
            },
            up: HalfResult {
                packets: 10_000,
                payload_bytes: 14_480_000,
                max_window_bytes: Some(65_535),
                rtt_s: rtt(0.05, 0.06),
                ..HalfResult::default()
            },
            down: HalfResult {
                rtt_s: rtt(0.0001, 0.0002),
                ..HalfResult::default()
            },
            ..ConnectionResult::default()
        }
    }

    fn found(change: impl Fn(&mut ConnectionResult)) -> Vec<(Cause, Place)> {
        let mut connection = transfer();
        change(&mut connection);
        let result = CaptureResult {
            connections: vec![connection],
            ..CaptureResult::default()
        };
        causes(result)
    }

    fn causes(result: CaptureResult) -> Vec<(Cause, Place)> {
        let found = found_by_any(Outcome::Capture(Box::new(result)));
        let found = found.iter();
        found
            .map(|finding| (finding.cause, finding.place))
            .collect()
    }

    fn held(connection: &mut ConnectionResult, limited: LimitedBy) {
        connection.limited = limited;
    }

    #[test]
    fn a_transfer_that_the_path_held_back_without_a_sign_has_no_cause() {
        assert_eq!(found(|_| ()), []);
    }

    #[test]
    fn a_window_is_told_from_one_that_cannot_be_larger() {
        let of_window = LimitedBy {
            rwnd_ratio: 0.9,
            path_ratio: 0.1,
            ..LimitedBy::default()
        };
        let small = found(|connection| held(connection, of_window));
        assert_eq!(small, [(Cause::ReceiveBufferSmall, Place::Server)]);
        let unscaled = found(|connection| {
            held(connection, of_window);
            connection.lacking = vec![Lacking {
                option: "window scaling".to_owned(),
                side: CaptureSide::Server,
            }];
        });
        assert_eq!(unscaled, [(Cause::WindowScalingStripped, Place::Path)]);
        let near = found(|connection| {
            held(connection, of_window);
            connection.up.rtt_s = rtt(0.0005, 0.001);
        });
        assert_eq!(near, [], "a slow reader");
    }

    #[test]
    fn losses_with_and_without_a_queue() {
        let lossy = |connection: &mut ConnectionResult| {
            connection.up.segments = SegmentCounts {
                fast_retransmissions: 200,
                ..SegmentCounts::default()
            };
        };
        assert_eq!(found(lossy), [(Cause::PathLoss, Place::Path)]);
        let queued = found(|connection| {
            lossy(connection);
            connection.up.rtt_s = rtt(0.05, 0.4);
        });
        assert_eq!(queued, [(Cause::BufferbloatUp, Place::Path)]);
        let late = found(|connection| {
            connection.up.segments.spurious_retransmissions = 200;
            connection.up.segments.out_of_order = 200;
        });
        assert_eq!(late, [(Cause::Reordering, Place::Path)]);
    }

    #[test]
    fn programs_and_protocols_at_the_ends() {
        let of_application = LimitedBy {
            app_ratio: 0.8,
            path_ratio: 0.2,
            ..LimitedBy::default()
        };
        let slow_reader = found(|connection| held(connection, of_application));
        assert_eq!(slow_reader, [(Cause::ApplicationLimited, Place::Client)]);
        let talk = |connection: &mut ConnectionResult| {
            held(connection, of_application);
            connection.up.payload_bytes = 50_000;
            connection.down.payload_bytes = 60_000;
        };
        assert_eq!(found(talk), [], "a conversation waits for people");
        let thinking = found(|connection| {
            talk(connection);
            connection.limited = LimitedBy {
                server_ratio: 0.8,
                path_ratio: 0.2,
                ..LimitedBy::default()
            };
            connection.server_think_s = rtt(0.4, 0.8);
        });
        assert_eq!(thinking, [(Cause::ServerSlow, Place::Server)]);
        let chatty = found(|connection| {
            talk(connection);
            connection.limited = transfer().limited;
            connection.turns = 70;
        });
        assert_eq!(chatty, [(Cause::ManyRoundTrips, Place::Client)]);
    }

    #[test]
    fn name_servers_that_are_slow_or_silent() {
        let of = |answers: u64, time: f64| {
            causes(CaptureResult {
                dns: DnsSums {
                    queries: 10,
                    answers,
                    answer_s: Distribution::of((0..answers).map(|_| time)),
                    ..DnsSums::default()
                },
                ..CaptureResult::default()
            })
        };
        assert_eq!(of(10, 0.02), []);
        assert_eq!(of(10, 0.3), [(Cause::ResolverSlow, Place::Client)]);
        assert_eq!(of(0, 0.0), [(Cause::ResolverSilent, Place::Client)]);
    }
}
