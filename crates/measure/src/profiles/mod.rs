//! Traffic that resembles the traffic of known applications: their packets ([`catalogue`]), and how they fared. Pure;
//! [`crate::phase`] sends them, alone or beside a load.

pub mod catalogue;
pub mod player;
mod voice;

use plumb_load::TransactionsOutcome;
use plumb_model::direction::OneDirection;
use plumb_model::emodel::G711_PLC;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use plumb_model::results::app::{AppResult, Goal};
use plumb_model::results::udp::UdpResult;
use plumb_wire::native::control::flow::transactions::TransactionFlow;
use plumb_wire::native::control::flow::udp::{Pattern, UdpFlow};
use plumb_wire::native::control::flow::{Flow, Flows};

use catalogue::{Departures, Profile, Stream};

/// The streams of some profiles, in order, each with what it belongs to.
pub(crate) fn streams<'a>(
    profiles: &'a [&'static Profile],
) -> impl Iterator<Item = (&'static Profile, &'static Stream)> + 'a {
    profiles
        .iter()
        .flat_map(|profile| profile.streams.iter().map(move |stream| (*profile, stream)))
}

/// Payload of the question for a segment: a GET of HTTP/1.1 with the heads that browsers send.
const QUESTION_BYTES: u32 = 500;

/// What a responder is asked for.
pub(crate) fn flows(stream: &Stream) -> Flows {
    let (role, flow) = match (stream.departures, stream.direction) {
        // Who is to get it asks for it.
        (Departures::Segments { segment_s, bytes }, _) => (
            OneDirection::Up,
            Flow::Transactions(segments(segment_s, bytes)),
        ),
        (_, direction) => (direction, Flow::Udp(packets(stream))),
    };
    Flows {
        count: 1,
        role,
        flow,
    }
}

fn segments(segment_s: f64, bytes: u32) -> TransactionFlow {
    TransactionFlow {
        transport: Protocol::Tcp,
        connect: false,
        request_bytes: QUESTION_BYTES,
        response_bytes: bytes,
        rate_tps: Some(1.0 / segment_s),
        on_demand: false,
    }
}

fn packets(stream: &Stream) -> UdpFlow {
    let (payload_bytes, pattern) = match stream.departures {
        // No datagram: it is asked for over TCP.
        Departures::Segments { .. } => (0, Pattern::Max),
        Departures::Constant { pps, payload_bytes } => (payload_bytes, Pattern::Constant { pps }),
        Departures::Poisson { pps, payload_bytes } => (payload_bytes, Pattern::Poisson { pps }),
        Departures::Frames {
            fps,
            packets,
            key_packets,
            key_every,
            payload_bytes,
        } => {
            let frame = |number: u16| {
                let count = if number == 0 { key_packets } else { packets };
                (0..count).map(move |k| (if k == 0 { 1.0 / fps } else { 0.0 }, payload_bytes))
            };
            let packets = (0..key_every).flat_map(frame).collect();
            (payload_bytes, Pattern::Trace { packets })
        }
    };
    UdpFlow {
        dscp: Some(stream.dscp),
        ..UdpFlow::new(payload_bytes, pattern)
    }
}

/// How a stream of a profile fared.
pub(crate) fn result(profile: &Profile, stream: &Stream, udp: &UdpResult) -> AppResult {
    let receiver = udp.receiver.as_ref().filter(|r| r.received + r.lost > 0);
    let delay = udp.one_way_delay.as_ref();
    let loss_ratio = receiver.map(|r| r.loss_ratio);
    let variation = receiver.and_then(|r| r.pdv_s);
    let packet_s = match stream.departures {
        Departures::Constant { pps, .. } => 1.0 / pps,
        Departures::Poisson { .. } | Departures::Frames { .. } | Departures::Segments { .. } => 0.0,
    };
    let heard = receiver
        .zip(delay)
        .zip(variation.as_ref())
        .filter(|_| profile.rated_as_voice);
    let voice = heard.map(|((receiver, delay), variation)| {
        voice::score(
            &voice::Heard {
                least_delay_s: delay.delay_s.min,
                delay_variation_s: variation,
                loss_ratio: receiver.loss_ratio,
                mean_loss_run: receiver.losses.period_length.map_or(1.0, |runs| runs.mean),
                packet_s,
            },
            G711_PLC,
        )
    });
    let most = |field: &str, limit: Option<f64>, value: Option<f64>, uncertainty: f64| {
        limit.map(|limit| goal(field, value, limit, uncertainty, false))
    };
    let needs = profile.needs;
    let goals: Vec<Goal> = [
        most("loss_ratio", needs.loss_ratio, loss_ratio, 0.0),
        most(
            "one_way_delay_s.p95",
            needs.one_way_delay_p95_s,
            delay.map(|delay| delay.delay_s.p95),
            delay.map_or(0.0, |delay| delay.uncertainty_s),
        ),
        most(
            "delay_variation_s.p95",
            needs.delay_variation_p95_s,
            variation.map(|variation| variation.p95),
            0.0,
        ),
        needs.voice_r.map(|limit| {
            let r = voice.as_ref().map(|voice| voice.r);
            goal("voice.r", r, limit, 0.0, true)
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    AppResult {
        profile: profile.name.to_owned(),
        stands_for: profile.stands_for.to_owned(),
        direction: udp.direction,
        bps: udp.bps,
        loss_ratio,
        one_way_delay_s: delay.map(|delay| delay.delay_s),
        one_way_delay_uncertainty_s: delay.map(|delay| delay.uncertainty_s),
        delay_variation_s: variation,
        voice,
        playback: None,
        good: good(&goals),
        goals,
    }
}

/// How a stream of segments fared, which `segments` are the transactions of, in a phase of so many
/// seconds; where the far end was `lost` meanwhile, what it did not answer says nothing of the path.
pub(crate) fn result_of_segments(
    profile: &Profile,
    segments: &TransactionsOutcome,
    duration_s: f64,
    lost: bool,
) -> AppResult {
    let size = segments.result.response_bytes;
    let length_s = segments
        .result
        .offered_tps
        .map_or(f64::INFINITY, f64::recip);
    let arrivals: Vec<_> = segments.completed_at_s.iter().copied().map(Some).collect();
    let until_s = match lost {
        false => duration_s,
        true => segments.completed_at_s.iter().copied().fold(0.0, f64::max),
    };
    let playback = player::play((length_s, size), 0.0, &arrivals, until_s);
    let stalled = match playback.startup_s {
        Some(_) => Some(playback.stalled_ratio),
        // A picture that never began stands still all the time, once a path that keeps up would have
        // brought what it begins with.
        None => (until_s >= length_s * player::SEGMENTS_TO_BEGIN as f64).then_some(1.0),
    };
    let limit = profile.needs.stalled_ratio;
    let goals: Vec<Goal> = limit
        .map(|limit| goal("stalled_ratio", stalled, limit, 0.0, false))
        .into_iter()
        .collect();
    AppResult {
        profile: profile.name.to_owned(),
        stands_for: profile.stands_for.to_owned(),
        direction: Direction::Down,
        bps: (until_s > 0.0)
            .then(|| segments.result.completed as f64 * size as f64 * 8.0 / until_s),
        loss_ratio: None,
        one_way_delay_s: None,
        one_way_delay_uncertainty_s: None,
        delay_variation_s: None,
        voice: None,
        playback: Some(playback),
        good: good(&goals),
        goals,
    }
}

/// Whether a goal was met; open where the value is not known, or not closely enough.
fn goal(field: &str, value: Option<f64>, limit: f64, uncertainty: f64, at_least: bool) -> Goal {
    let known = value.filter(|value| (value - limit).abs() >= uncertainty);
    Goal {
        field: field.to_owned(),
        value,
        limit,
        at_least,
        met: known.map(|value| {
            if at_least {
                value >= limit
            } else {
                value <= limit
            }
        }),
    }
}

fn good(goals: &[Goal]) -> Option<bool> {
    if goals.iter().any(|goal| goal.met == Some(false)) {
        return Some(false);
    }
    goals
        .iter()
        .all(|goal| goal.met == Some(true))
        .then_some(true)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing)]
    use super::*;
    use catalogue::CATALOGUE;
    use plumb_model::distribution::Distribution;
    use plumb_model::results::udp::{OneWayDelay, UdpReceiver};
    use plumb_model::results::{CpuUse, TransactionsResult};

    #[test]
    fn every_profile_can_be_asked_for() {
        for profile in CATALOGUE {
            for stream in profile.streams {
                let flows = flows(stream);
                assert_eq!(flows.check(), Ok(()), "{}", profile.name);
            }
        }
        let call = catalogue::find("video-call").unwrap();
        let packets = packets(call.streams.first().unwrap());
        // 29 frames of 4 packets and one of 12, 1,200 bytes each, a second.
        assert!((packets.mean_bps().unwrap() - 128.0 * 9600.0).abs() < 1.0);
        let voice = catalogue::find("voice").unwrap();
        let rate = super::packets(voice.streams.first().unwrap()).mean_bps();
        assert_eq!(rate, Some(68_800.0));
    }

    /// A stream with that loss, and delays of `least_ms` to `most_ms`.
    fn udp(loss_ratio: f64, least_ms: f64, most_ms: f64, uncertainty_ms: f64) -> UdpResult {
        let spread = |from: f64| {
            let step = (most_ms - least_ms) / 1e5;
            Distribution::of((0..=100).map(|k| (from + f64::from(k) * step * 1e3) / 1e3)).unwrap()
        };
        UdpResult {
            direction: Direction::Up,
            stream: 0,
            pattern: "constant".to_owned(),
            payload_bytes: 172,
            asked_bps: Some(68_800.0),
            gso_segments: 1,
            gro: false,
            bps: Some(68_800.0),
            sender: None,
            receiver: Some(UdpReceiver {
                received: 1000,
                loss_ratio,
                pdv_s: Some(spread(0.0)),
                ..UdpReceiver::default()
            }),
            one_way_delay: Some(OneWayDelay {
                delay_s: spread(least_ms),
                uncertainty_s: uncertainty_ms / 1e3,
                clock_offset_s: 0.0,
                clock_drift_s: None,
            }),
            standing_s: None,
            probe_wait_s: None,
            cpu: CpuUse::default(),
            error: None,
        }
    }

    fn fared(name: &str, udp: &UdpResult) -> AppResult {
        let profile = catalogue::find(name).unwrap();
        result(profile, profile.streams.first().unwrap(), udp)
    }

    #[test]
    fn an_application_is_well_when_it_has_all_it_needs() {
        assert_eq!(fared("game", &udp(0.0, 10.0, 20.0, 0.5)).good, Some(true));
        let lossy = fared("game", &udp(0.02, 10.0, 20.0, 0.5));
        assert_eq!(lossy.good, Some(false));
        let missed: Vec<_> = lossy
            .goals
            .iter()
            .filter(|goal| goal.met == Some(false))
            .map(|goal| (goal.field.as_str(), goal.value))
            .collect();
        assert_eq!(missed, [("loss_ratio", Some(0.02))]);
        let call = fared("voice", &udp(0.0, 10.0, 20.0, 0.5));
        assert!(call.good == Some(true) && call.voice.unwrap().mos > 4.3);
        let late = fared("voice", &udp(0.0, 500.0, 700.0, 0.5));
        assert!(late.good == Some(false) && late.voice.unwrap().mos < 3.0);
    }

    fn film(completed_at_s: Vec<f64>) -> AppResult {
        film_of(completed_at_s, 20.0, false)
    }

    fn film_of(completed_at_s: Vec<f64>, duration_s: f64, lost: bool) -> AppResult {
        let result = TransactionsResult {
            transport: Protocol::Tcp,
            connect: false,
            request_bytes: 500,
            response_bytes: 1_250_000,
            concurrency: 1,
            offered_tps: Some(0.5),
            completed: completed_at_s.len() as u64,
            failed: 0,
            unfinished: 0,
            delayed: 0,
            rate_tps: 0.5,
            latency_s: None,
            connect_s: None,
            tls_handshake_s: None,
            response_s: None,
            error: None,
            cpu: udp(0.0, 1.0, 2.0, 0.0).cpu,
        };
        let outcome = TransactionsOutcome {
            result,
            series: std::collections::BTreeMap::new(),
            completed_at_s,
        };
        let dash = catalogue::find("dash").unwrap();
        result_of_segments(dash, &outcome, duration_s, lost)
    }

    #[test]
    fn a_film_is_well_when_it_hardly_ever_stands_still() {
        let smooth = film((0..10).map(|k| 2.0 * f64::from(k) + 0.4).collect());
        assert_eq!((smooth.good, smooth.bps), (Some(true), Some(5e6)));
        // One segment comes four seconds late.
        let mut late: Vec<f64> = (0..10).map(|k| 2.0 * f64::from(k) + 0.4).collect();
        late.splice(4..6, [14.0, 14.4]);
        let late = film(late);
        assert_eq!(late.good, Some(false));
        assert_eq!(late.playback.unwrap().stalls, 1);
        // Nothing to be seen is no good picture.
        assert_eq!(film(Vec::new()).good, Some(false));
    }

    #[test]
    fn of_a_film_that_could_not_begin_nothing_is_said() {
        // The third segment is asked for at 4 s.
        let short = film_of(vec![0.4, 2.4], 3.0, false);
        assert_eq!((short.good, short.goals[0].value), (None, None));
        assert_eq!(film_of(vec![0.4, 2.4], 6.0, false).good, Some(false));
        // The far end went away after the fourth, and was missed five seconds later.
        let shown = vec![0.4, 2.4, 4.4, 6.4];
        assert_eq!(film_of(shown.clone(), 12.0, true).good, Some(true));
        assert_eq!(film_of(shown, 20.0, false).good, Some(false));
        assert_eq!(film_of(vec![0.4], 12.0, true).good, None);
    }

    #[test]
    fn what_is_not_known_is_left_open() {
        // 49.5 ms against 50 ms, known to within 1 ms.
        let near = fared("keystrokes", &udp(0.0, 40.0, 50.0, 1.0));
        assert_eq!(near.good, None, "{:?}", near.goals);
        let unclocked = UdpResult {
            one_way_delay: None,
            standing_s: None,
            probe_wait_s: None,
            ..udp(0.0, 10.0, 20.0, 0.5)
        };
        let open = fared("voice", &unclocked);
        assert!(open.good.is_none() && open.voice.is_none());
        let nothing = UdpResult {
            receiver: None,
            ..unclocked
        };
        assert_eq!(fared("game", &nothing).loss_ratio, None);
    }
}
