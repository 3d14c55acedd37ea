//! What comes of a report that goes by messages.

#![allow(clippy::unwrap_used)]

use super::super::flow::{Flows, TcpFlow};
use super::super::frame::encode_frame;
use super::super::{ServerMessage, Start};
use super::quic::{QuicSample, QuicSenderLog};
use super::udp::{UdpReceiverLog, UdpSenderLog};
use super::*;
use crate::native::spec::{MAX_SERVER_FRAME_BYTES, MAX_STREAMS, MAX_TEXT_BYTES, RECORDS_PER_FRAME};
use plumb_model::direction::OneDirection;
use proptest::prelude::*;

fn start(down_streams: u32, up_streams: u32) -> Start {
    Start {
        phase: 7,
        flows: vec![
            Flows::tcp(down_streams, OneDirection::Down, TcpFlow::default()),
            Flows::tcp(up_streams, OneDirection::Up, TcpFlow::default()),
        ],
        duration_s: 30.0,
        byte_limit: None,
    }
}

fn report(down: u32, up: u32, records: u32) -> Report {
    let time = |k: u32| f64::from(k) / 10.0;
    Report {
        senders: (0..down)
            .map(|stream| SenderLog {
                tail: SenderTail {
                    stream,
                    cc: "cubic".into(),
                    mss_bytes: 1448,
                    ended: None,
                    ..SenderTail::default()
                },
                samples: (0..records)
                    .map(|k| TcpSample {
                        t_s: time(k),
                        ..Default::default()
                    })
                    .collect(),
            })
            .collect(),
        receivers: (0..up)
            .map(|stream| ReceiverLog {
                tail: ReceiverTail {
                    stream,
                    ..Default::default()
                },
                counts: (0..records)
                    .map(|k| Count {
                        t_s: time(k),
                        bytes: u64::from(k),
                        ..Count::default()
                    })
                    .collect(),
            })
            .collect(),
        elapsed_s: 2.5,
        cpu_s: 0.25,
        notes: vec!["a note".into()],
        udp: UdpReport::default(),
        quic: QuicReport {
            senders: (0..down)
                .map(|stream| QuicSenderLog {
                    stream,
                    samples: (0..records)
                        .map(|k| QuicSample {
                            t_s: time(k),
                            ..Default::default()
                        })
                        .collect(),
                    ..Default::default()
                })
                .collect(),
            receivers: Vec::new(),
        },
    }
}

fn assemble(
    start: &Start,
    messages: impl Iterator<Item = ServerMessage>,
) -> Result<Option<Report>, ReportError> {
    let mut assembler = ReportAssembler::new(start);
    for message in messages {
        if let Assembled::Whole(report) = assembler.add(message)? {
            return Ok(Some(*report));
        }
    }
    Ok(None)
}

#[test]
fn the_largest_messages_fit_their_frames() {
    let sample = TcpSample {
        t_s: 119.999_999,
        bytes_acked: u64::MAX,
        bytes_sent: Some(u64::MAX),
        in_flight_bytes: u64::MAX,
        sacked_bytes: u64::MAX,
        notsent_bytes: u64::MAX,
        cwnd_bytes: u64::MAX,
        ssthresh_bytes: Some(u64::MAX),
        pacing_bps: Some(u64::MAX),
        delivery_bps: u64::MAX,
        srtt_us: u64::MAX,
        min_rtt_us: Some(u64::MAX),
        retransmits: u64::MAX,
        twice: Some(u64::MAX),
        snd_wnd_bytes: Some(u64::MAX),
        sndbuf_bytes: Some(u64::MAX),
        busy_us: u64::MAX,
        rwnd_limited_us: u64::MAX,
        sndbuf_limited_us: u64::MAX,
    };
    let mut all = report(MAX_STREAMS, MAX_STREAMS, 0);
    for sender in &mut all.senders {
        sender.samples = vec![sample; RECORDS_PER_FRAME];
        sender.tail.ended = Some(StreamEnd {
            t_s: 119.999_999,
            error: "x".repeat(MAX_TEXT_BYTES),
        });
    }
    for message in all.into_messages(u32::MAX) {
        encode_frame(&message, MAX_SERVER_FRAME_BYTES).unwrap();
    }
}

#[test]
fn what_does_not_fit_the_phase_is_refused() {
    let of = |report: Report, phase| assemble(&start(1, 1), report.into_messages(phase));
    assert!(of(report(1, 1, 300), 7).is_ok_and(|r| r.is_some()));
    assert_eq!(of(report(1, 1, 1), 8), Err(ReportError));
    assert_eq!(of(report(2, 1, 1), 7), Err(ReportError));
    assert_eq!(of(report(1, 2, 0), 7), Err(ReportError));
    assert_eq!(of(report(1, 1, 500), 7), Err(ReportError));
    let mut backwards = report(1, 0, 3);
    backwards
        .senders
        .iter_mut()
        .for_each(|s| s.samples.reverse());
    assert_eq!(of(backwards, 7), Err(ReportError));
}

#[test]
fn udp_streams_come_with_their_counts() {
    let counts = vec![Count::default(); 100];
    let sent = Report {
        udp: UdpReport {
            senders: vec![UdpSenderLog::default()],
            receivers: vec![UdpReceiverLog {
                stream: 1,
                counts,
                ..UdpReceiverLog::default()
            }],
        },
        ..report(0, 1, 3)
    };
    let back = |down, up| assemble(&start(down, up), sent.clone().into_messages(7));
    assert_eq!(back(1, 2), Ok(Some(sent.clone())));
    assert_eq!(
        back(0, 2),
        Err(ReportError),
        "a stream that was not asked for"
    );
    assert_eq!(back(1, 1), Err(ReportError));
}

#[test]
fn texts_are_bounded() {
    assert_eq!(
        clip("a\x1b[31m\nb\u{202e}".into()),
        "a\u{fffd}[31m b\u{fffd}"
    );
    assert!(clip("é".repeat(1000)).len() <= MAX_TEXT_BYTES);
}

proptest! {
    #[test]
    fn reports_come_back(down in 0..4_u32, up in 0..4_u32, records in 0..200_u32) {
        let sent = report(down, up, records);
        let back = assemble(&start(down, up), sent.clone().into_messages(7));
        prop_assert_eq!(back, Ok(Some(sent)));
    }
}
