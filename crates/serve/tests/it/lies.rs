//! A responder that stalls in one phase of the protocol after the other, or says what cannot be: it is
//! noticed within a bounded time, and what this end saw is kept.

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::common::{TIMEOUT, paced_plan, run};
use crate::liar::{Liar, Says, honest};
use plumb_load::{Client, ClientError, EndedEarly, PhaseOutcome};
use plumb_model::printable;
use plumb_wire::native::control::frame::decode_body;
use plumb_wire::native::control::report::{Count, ReceiverTail, ReportTail};
use plumb_wire::native::control::{ClientMessage, Refusal, ServerMessage};

/// A far end that answers heartbeats and nothing else is given up after 10 s; two more for a busy machine.
const GIVEN_UP: Duration = Duration::from_secs(60);

/// Takes all that is sent.
fn takes_all(mut data: TcpStream) {
    let mut buffer = vec![0; 1 << 16];
    while data.read(&mut buffer).is_ok_and(|count| count > 0) {}
}

/// An upload of 300 ms to a far end that says this.
fn upload(says: Says) -> Result<PhaseOutcome, ClientError> {
    let liar = Liar::that_says(says, takes_all);
    let mut client = Client::connect("liar", liar.address, TIMEOUT).unwrap();
    run(&mut client, &paced_plan(0, 1, 300))
}

#[test]
fn whoever_stalls_in_any_phase_is_given_up() {
    let begun = Instant::now();
    let never_ready: Says = |message| match message {
        ClientMessage::Start(_) => Vec::new(),
        other => honest(other),
    };
    let never_started: Says = |message| match message {
        ClientMessage::Start(start) => vec![ServerMessage::Ready { phase: start.phase }],
        other => honest(other),
    };
    let never_reports: Says = |message| match message {
        ClientMessage::Stop { .. } => Vec::new(),
        other => honest(other),
    };
    std::thread::scope(|scope| {
        for says in [never_ready, never_started] {
            scope.spawn(move || {
                let error = upload(says).unwrap_err().to_string();
                assert!(error.contains("not what it was asked"), "{error}");
            });
        }
        scope.spawn(move || {
            let outcome = upload(never_reports).unwrap();
            assert_eq!(outcome.ended_early, Some(EndedEarly::FarEndLost));
            let lost = outcome.lost.unwrap();
            assert!(lost.contains("does not send its record"), "{lost}");
            // What was acknowledged is known here.
            assert!(outcome.up.unwrap().result.bytes > 0);
        });
    });
    assert!(begun.elapsed() < GIVEN_UP, "{:?}", begun.elapsed());
}

/// A report of the stream 0 that received this.
fn reported(phase: u32, stream: u32, counts: Vec<Count>, cpu_s: f64) -> Vec<ServerMessage> {
    let tail = ReportTail {
        senders: Vec::new(),
        receivers: vec![ReceiverTail {
            stream,
            ..ReceiverTail::default()
        }],
        elapsed_s: f64::MIN_POSITIVE,
        cpu_s,
        notes: Vec::new(),
    };
    let counts = ServerMessage::Counts {
        phase,
        stream,
        counts,
    };
    vec![
        counts,
        ServerMessage::Result {
            phase,
            report: Box::new(tail),
        },
    ]
}

#[test]
fn a_record_that_cannot_be_is_not_believed() {
    let too_much: Says = |message| match message {
        ClientMessage::Stop { phase } => {
            let counts = vec![Count {
                t_s: 0.1,
                bytes: u64::MAX,
                ..Count::default()
            }];
            reported(phase, 0, counts, 1e300)
        }
        other => honest(other),
    };
    let outcome = upload(too_much).unwrap();
    let result = outcome.up.unwrap().result;
    // Loopback carries less than 1 TB in 300 ms.
    assert!((1..1_000_000_000_000).contains(&result.bytes), "{result:?}");
    assert!(result.bps.is_finite() && result.cpu.remote_ratio.is_none_or(|used| used == 0.0));
    let notes = outcome.notes.join(" ");
    for what in ["received more than was sent", "processor use cannot be"] {
        assert!(notes.contains(what), "{what}: {notes}");
    }
}

#[test]
fn a_record_that_does_not_fit_is_refused_and_ours_kept() {
    let backwards: Says = |message| match message {
        ClientMessage::Stop { phase } => {
            let at = |t_s| Count {
                t_s,
                bytes: 1,
                ..Count::default()
            };
            reported(phase, 0, vec![at(0.2), at(0.1)], 0.0)
        }
        other => honest(other),
    };
    let another_phase: Says = |message| match message {
        ClientMessage::Stop { phase } => reported(phase + 1, 0, Vec::new(), 0.0),
        other => honest(other),
    };
    let another_stream: Says = |message| match message {
        ClientMessage::Stop { phase } => reported(phase, 7, Vec::new(), 0.0),
        other => honest(other),
    };
    let out_of_turn: Says = |message| match message {
        ClientMessage::Stop { phase } => vec![ServerMessage::Ready { phase }],
        other => honest(other),
    };
    for says in [backwards, another_phase, another_stream, out_of_turn] {
        let outcome = upload(says).unwrap();
        assert_eq!(outcome.ended_early, Some(EndedEarly::FarEndLost));
        let lost = outcome.lost.unwrap();
        assert!(
            lost.contains("does not fit the phase") || lost.contains("out of turn"),
            "{lost}"
        );
        assert!(outcome.up.unwrap().result.bytes > 0);
    }
}

#[test]
fn what_it_says_is_one_short_line_that_commands_no_terminal() {
    // Retitles the window, clears the screen, turns text around; a whole frame of it.
    let evil = || "x\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}\u{202e}\n".repeat(5000);
    let refuses: Says = |message| match message {
        ClientMessage::Start(start) => vec![ServerMessage::Refused {
            phase: start.phase,
            reason: Refusal::Busy,
            message: "x\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}\u{202e}\n".repeat(5000),
        }],
        other => honest(other),
    };
    let notes: Says = |message| match message {
        ClientMessage::Stop { phase } => vec![ServerMessage::Result {
            phase,
            report: Box::new(ReportTail {
                senders: Vec::new(),
                receivers: Vec::new(),
                elapsed_s: 0.3,
                cpu_s: 0.0,
                notes: vec!["x\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}\u{202e}\n".repeat(5000)],
            }),
        }],
        other => honest(other),
    };
    let refused = upload(refuses).unwrap_err().to_string();
    let noted = upload(notes).unwrap().notes;
    let unreadable =
        decode_body::<ServerMessage>(serde_json::json!({ "type": evil() }).to_string().as_bytes());
    let unreadable = unreadable.unwrap_err().to_string();
    for said in noted.iter().chain([&refused, &unreadable]) {
        assert_eq!(printable::line(said), said.as_str());
        assert!(said.len() < 1000, "{} bytes", said.len());
    }
    assert!(noted.iter().any(|note| note.contains("owned")), "{noted:?}");
    assert!(
        refused.contains("owned") && unreadable.contains("owned"),
        "{refused} {unreadable}"
    );
}
