//! Traffic like that of applications, alone and beside a load, where it is known how it must fare.

use crate::common::network::Network;
use crate::common::{refused, side_by_side, stderr};
use plumb_model::results::app::AppResult;
use plumb_model::results::{Direction, Outcome};
use plumb_model::run::Run;

/// A queue that CUBIC fills to half a second.
const BLOATED: &str = r#"{ type = "fifo", limit = "500ms" }"#;

/// Measures over a line of 20 Mbit/s and 15 ms upwards, 25 ms downwards, with this queue upwards.
fn measured(queue: &str, command: &[&str]) -> Run {
    let up = format!(
        r#"{{ type = "shaper", rate = "20mbit", queue = {queue} }}, {{ type = "delay", delay = "15ms" }}"#
    );
    let down = r#"{ type = "delay", delay = "25ms" }"#;
    Network::served_line(&up, down).measured(command).run
}

/// How an application fared in a phase.
fn fared<'a>(run: &'a Run, profile: &str, phase: &str, direction: Direction) -> &'a AppResult {
    run.measurements
        .iter()
        .filter(|m| m.context.phase.is_some_and(|p| p.name() == phase))
        .find_map(|m| match &m.outcome {
            Outcome::App(app) if app.profile == profile && app.direction == direction => {
                Some(app.as_ref())
            }
            _ => None,
        })
        .unwrap_or_else(|| panic!("no {profile} in phase {phase}: {:#?}", run.measurements))
}

#[test]
fn applications_fare_as_the_queue_has_it() {
    side_by_side(&[
        &a_bloated_queue_ruins_a_call,
        &a_managed_queue_does_not,
        &alone_all_of_them_fare_well,
    ]);
}

/// A call and a film while an upload fills the line.
const CALL_AND_FILM: [&str; 9] = [
    "rate",
    "server",
    "--up",
    "--duration",
    "10s",
    "--with",
    "voice",
    "--with",
    "dash",
];

/// How the call fared upwards.
fn call(run: &Run, phase: &str) -> AppResult {
    fared(run, "voice", phase, Direction::Up).clone()
}

fn film(run: &Run, phase: &str) -> AppResult {
    fared(run, "dash", phase, Direction::Down).clone()
}

fn alone_all_of_them_fare_well() {
    let command = [
        "rate",
        "server",
        "--duration",
        "5s",
        "--profile",
        "voice",
        "--profile",
        "keystrokes",
        "--profile",
        "game",
        "--profile",
        "video-call",
        "--profile",
        "call-200k",
    ];
    let run = measured(BLOATED, &command);
    for profile in ["voice", "keystrokes", "game", "video-call", "call-200k"] {
        for (direction, delay_s) in [(Direction::Up, 0.015), (Direction::Down, 0.025)] {
            let app = fared(&run, profile, "idle", direction);
            assert_eq!(app.good, Some(true), "{app:#?}");
            let delay = app.one_way_delay_s.as_ref().unwrap();
            let uncertainty = app.one_way_delay_uncertainty_s.unwrap();
            assert!(
                (delay.min - delay_s).abs() < uncertainty + 1e-3,
                "{profile} {direction:?}: {delay:?} +- {uncertainty}"
            );
        }
    }
    let call = fared(&run, "voice", "idle", Direction::Up);
    // 20 ms of a packet and 15 ms of the line cost little of 4.41.
    assert!(call.voice.as_ref().unwrap().mos > 4.3, "{call:#?}");
    // Of its packets 172 bytes are payload, 50 times a second.
    assert!((call.bps.unwrap() - 68_800.0).abs() < 2_000.0, "{call:#?}");
}

fn a_bloated_queue_ruins_a_call() {
    let run = measured(BLOATED, &CALL_AND_FILM);
    assert_eq!(call(&run, "idle").good, Some(true));
    // Three segments, the third of which is there after four seconds.
    let alone = film(&run, "idle").playback.unwrap();
    let begins_s = alone.startup_s.unwrap();
    assert!((4.0..5.0).contains(&begins_s), "{alone:?}");
    assert_eq!((alone.stalls, alone.segments), (0, 5));
    // Each question waits in the queue that the upload fills, and so do acknowledgements.
    let behind = film(&run, "up").playback.unwrap();
    let late_s = behind.startup_s.unwrap_or(f64::INFINITY);
    assert!(late_s > begins_s + 0.2, "{behind:?}, alone {alone:?}");
    let loaded = call(&run, "up");
    assert_eq!(loaded.good, Some(false), "{loaded:#?}");
    let voice = loaded.voice.unwrap();
    assert!(voice.mouth_to_ear_s > 0.25 && voice.r < 75.0, "{voice:#?}");
    // The load was there, and is told as ever.
    let rate = run.measurements.iter().find_map(|m| match &m.outcome {
        Outcome::Throughput(t) => Some(t.bps),
        _ => None,
    });
    assert!(rate.unwrap() > 17e6, "{rate:?}");
}

fn a_managed_queue_does_not() {
    let run = measured(r#""fq_codel""#, &CALL_AND_FILM);
    let managed = call(&run, "up");
    assert_eq!(managed.good, Some(true), "{managed:#?}");
    assert!(managed.voice.unwrap().mos > 4.2);
    assert_eq!(film(&run, "up").good, Some(true), "{:#?}", film(&run, "up"));
}

#[test]
fn an_unknown_profile_is_refused_with_the_nearest() {
    for option in ["--profile", "--with"] {
        let output = refused(&["rate", "127.0.0.1", option, "vioce"]);
        assert_eq!(output.status.code(), Some(2));
        let text = stderr(&output);
        assert!(text.contains("did you mean 'voice'?"), "{text}");
    }
}
