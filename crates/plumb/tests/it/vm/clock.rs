//! Somebody steps the machine's clock in the middle of a measurement: what intervals are made of does not
//! step with it, and what two clocks are needed for is left out and said.

use std::process::Command;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use plumb_model::results::Outcome;
use plumb_model::run::Run;

use crate::common::responder::Responder;
use crate::common::{plumb, stderr, stdout};

/// An hour forward and two hours back, and then to where it would have been.
const STEPS_S: [i64; 3] = [3600, -7200, 3600];

/// Measures for three seconds while somebody steps the clock.
fn stepped(arguments: &[&str]) -> Run {
    let stepping = thread::spawn(|| {
        for step_s in STEPS_S {
            thread::sleep(Duration::from_millis(800));
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
            let then = now.as_secs().checked_add_signed(step_s).unwrap();
            let set = Command::new("date")
                .args(["-s", &format!("@{then}")])
                .output();
            assert!(set.unwrap().status.success());
        }
    });
    let output = plumb(&[arguments, &["--json"]].concat());
    stepping.join().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap()
}

#[test]
#[ignore = "runs in the virtual machine"]
fn round_trips_do_not_step() {
    let run = stepped(&["ping", "127.0.0.1", "-c", "30", "-i", "100ms"]);
    let Outcome::Ping(ping) = &run.measurements[0].outcome else {
        panic!("{run:?}")
    };
    assert_eq!((ping.sent, ping.received), (30, 30), "{ping:?}");
    let rtt = ping.rtt_s.unwrap();
    assert!(rtt.min > 0.0 && rtt.max < 0.05, "{rtt:?}");
    let took = run.measurements[0].duration_s;
    assert!((2.8..5.0).contains(&took), "{took}");
}

#[test]
#[ignore = "runs in the virtual machine"]
fn a_stream_of_datagrams_keeps_all_but_its_one_way_delay() {
    let responder = Responder::start();
    let far_end = format!("127.0.0.1:{}", responder.port);
    let run = stepped(&[
        "rate",
        &far_end,
        "--udp",
        "--up",
        "--rate",
        "1mbit",
        "--duration",
        "3s",
    ]);
    let udp = run.measurements.iter().find_map(|m| match &m.outcome {
        Outcome::Udp(udp) => Some(udp),
        _ => None,
    });
    let udp = udp.unwrap();
    let receiver = udp.receiver.as_ref().unwrap();
    assert_eq!(receiver.lost, 0, "{udp:?}");
    assert!((0.95e6..1.05e6).contains(&udp.bps.unwrap()), "{udp:?}");
    assert!(receiver.pdv_s.unwrap().max < 0.05, "{receiver:?}");
    assert!(udp.one_way_delay.is_none(), "{udp:?}");
    assert!(
        run.notes.iter().any(|note| note.contains("stepped")),
        "{:?}",
        run.notes
    );
}

#[test]
#[ignore = "runs in the virtual machine"]
fn one_way_delays_are_left_out_and_round_trips_kept() {
    let responder = Responder::start();
    let far_end = format!("127.0.0.1:{}", responder.port);
    let run = stepped(&["owd", &far_end, "-c", "30", "-i", "100ms"]);
    let Outcome::Owd(owd) = &run.measurements[0].outcome else {
        panic!("{run:?}")
    };
    assert_eq!((owd.sent, owd.answered), (30, 30), "{owd:?}");
    assert!(owd.rtt_s.unwrap().max < 0.05, "{owd:?}");
    assert!(
        run.notes.iter().any(|note| note.contains("stepped")),
        "{:?}",
        run.notes
    );
}
