//! Connections made segment by segment, in virtual time.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use plumb_model::results::capture::{CaptureLimit, CaptureSide, ConnectionResult};

use super::*;
use crate::packet::{Transport, decode};
use crate::read::Frame;
use crate::testing::{Built, LINUX_SYN, raw};

const MS: u64 = 1_000_000;
const FULL: usize = 1448;

/// A connection between a client near the capture and a server a round trip away.
struct Talk {
    connection: Connection,
    now: u64,
}

impl Talk {
    fn new() -> Self {
        Self {
            connection: Connection::new(0, false, 0),
            now: 0,
        }
    }

    /// The handshake, whose answer takes `rtt` ms to come to the place of the capture.
    fn shaken(rtt: u64) -> Self {
        let mut talk = Self::new();
        talk.up(Built {
            seq: 1000,
            flags: flags::SYN,
            options: &LINUX_SYN,
            window: 64_240,
            ..Built::default()
        });
        talk.wait(rtt);
        talk.down(Built {
            seq: 5000,
            ack: 1001,
            flags: flags::SYN | flags::ACK,
            options: &LINUX_SYN,
            window: 64_240,
            ..Built::default()
        });
        talk.up(Built {
            seq: 1001,
            ack: 5001,
            ..Built::default()
        });
        talk
    }

    fn wait(&mut self, ms: u64) {
        self.now += ms * MS;
    }

    fn up(&mut self, built: Built<'_>) {
        self.take(CLIENT, built);
    }

    fn down(&mut self, built: Built<'_>) {
        self.take(SERVER, built);
    }

    fn take(&mut self, side: Side, built: Built<'_>) {
        let ports = if side == CLIENT {
            [40_000, 80]
        } else {
            [80, 40_000]
        };
        let bytes = raw(&Built { ports, ..built });
        let frame = Frame {
            unix_ns: self.now,
            link: 101,
            bytes: &bytes,
            original_bytes: bytes.len() as u32,
        };
        let packet = decode(&frame);
        let Transport::Tcp(segment) = packet.transport else {
            panic!("{packet:?}");
        };
        let network = packet.network.unwrap();
        self.connection
            .segment(side, &segment, &network, self.now, frame.original_bytes);
    }

    fn data(&mut self, side: Side, seq: u32, length: usize) {
        let ack = if side == CLIENT { 5001 } else { 1001 };
        self.take(
            side,
            Built {
                seq,
                ack,
                payload: length,
                ..Built::default()
            },
        );
    }

    fn ack(&mut self, side: Side, ack: u32) {
        let seq = if side == CLIENT { 1001 } else { 5001 };
        self.take(
            side,
            Built {
                seq,
                ack,
                ..Built::default()
            },
        );
    }

    fn result(&self) -> ConnectionResult {
        let result = self.connection.result(String::new(), String::new(), 0);
        let l = &result.limited;
        let sum = l.handshake_ratio + l.app_ratio + l.server_ratio + l.rwnd_ratio + l.path_ratio;
        assert!(
            (sum - 1.0).abs() < 1e-9 || result.duration_s == 0.0,
            "{l:?}"
        );
        result
    }
}

fn close(value: f64, expected: f64) -> bool {
    (value - expected).abs() < 1e-6
}

#[test]
fn the_handshake_tells_options_and_round_trips() {
    let mut talk = Talk::shaken(40);
    talk.wait(60);
    talk.up(Built {
        seq: 1001,
        ack: 5001,
        flags: flags::ACK | flags::RST,
        ..Built::default()
    });
    let result = talk.result();
    assert_eq!(result.handshake_s, Some(0.04));
    assert!(result.lacking.is_empty() && result.handshake_seen);
    assert_eq!(result.up.offer.unwrap().window_scale, Some(7));
    assert_eq!(result.reset_by, Some(CaptureSide::Client));
    assert!(close(result.up.rtt_s.unwrap().min, 0.04));
    assert!(
        close(result.limited.handshake_ratio, 0.4),
        "{:?}",
        result.limited
    );
    assert!(close(result.limited.app_ratio, 0.6), "{:?}", result.limited);
}

#[test]
fn an_option_that_the_answer_lacks() {
    let mut talk = Talk::new();
    talk.up(Built {
        seq: 1,
        flags: flags::SYN,
        options: &LINUX_SYN,
        ..Built::default()
    });
    talk.wait(10);
    talk.up(Built {
        seq: 1,
        flags: flags::SYN,
        options: &LINUX_SYN,
        ..Built::default()
    });
    talk.down(Built {
        seq: 9,
        ack: 2,
        flags: flags::SYN | flags::ACK,
        options: &[2, 4, 5, 0xb4],
        ..Built::default()
    });
    let result = talk.result();
    let lacking: Vec<&str> = result.lacking.iter().map(|l| l.option.as_str()).collect();
    assert_eq!(
        lacking,
        ["window scaling", "selective acknowledgements", "timestamps"]
    );
    assert!(result.lacking.iter().all(|l| l.side == CaptureSide::Server));
    assert_eq!(
        (result.repeated_syns, result.up.segments.retransmissions),
        (1, 1)
    );
}

/// Six segments, of which the second is lost behind the capture and repeated after three duplicate acknowledgements.
#[test]
fn a_fast_retransmission_at_the_sender() {
    let mut talk = Talk::shaken(40);
    for i in 0..6 {
        talk.data(CLIENT, 1001 + i * FULL as u32, FULL);
    }
    talk.wait(40);
    talk.ack(SERVER, 1001 + FULL as u32);
    for _ in 0..3 {
        talk.ack(SERVER, 1001 + FULL as u32);
    }
    talk.data(CLIENT, 1001 + FULL as u32, FULL);
    let up = talk.result().up;
    assert_eq!(
        (up.segments.fast_retransmissions, up.segments.repeated()),
        (1, 1)
    );
    assert_eq!(talk.result().down.segments.duplicate_acks, 3);
    assert_eq!(up.payload_bytes, 6 * FULL as u64);
    assert_eq!(up.sent_bytes, 7 * FULL as u64);
    assert_eq!(up.max_in_flight_bytes, 6 * FULL as u64);
    assert_eq!(up.initial_window_bytes, Some(6 * FULL as u64));
}

/// The same seen at the receiver, where the segment is missing: one that comes within a round trip was overtaken, one
/// that comes later was repeated.
#[test]
fn a_gap_that_is_filled_soon_or_late() {
    for (after_ms, overtaken) in [(5, true), (60, false)] {
        let mut talk = Talk::shaken(40);
        talk.data(CLIENT, 1001, FULL);
        talk.data(CLIENT, 1001 + 2 * FULL as u32, FULL);
        talk.wait(after_ms);
        talk.data(CLIENT, 1001 + FULL as u32, FULL);
        let up = talk.result().up;
        let found = (up.segments.out_of_order, up.segments.retransmissions);
        assert_eq!(found, (u64::from(overtaken), u64::from(!overtaken)));
        assert_eq!(
            (up.segments.lost_segments, up.payload_bytes),
            (1, 3 * FULL as u64)
        );
        talk.ack(SERVER, 1001 + 3 * FULL as u32);
        assert_eq!(talk.result().up.missed_bytes, 0);
    }
}

#[test]
fn what_the_capture_missed_is_not_the_paths_loss() {
    let mut talk = Talk::shaken(40);
    talk.data(CLIENT, 1001, FULL);
    talk.data(CLIENT, 1001 + 2 * FULL as u32, FULL);
    talk.wait(40);
    talk.ack(SERVER, 1001 + 4 * FULL as u32);
    let result = talk.result();
    assert_eq!(
        result.up.missed_bytes,
        2 * FULL as u64,
        "one in a gap, one at the end"
    );
    assert_eq!(result.down.segments.acked_unseen, 1);
    assert_eq!(result.up.segments.repeated(), 0);
}

#[test]
fn a_repetition_of_what_was_acknowledged_is_spurious() {
    let mut talk = Talk::shaken(40);
    talk.data(CLIENT, 1001, FULL);
    talk.wait(40);
    talk.ack(SERVER, 1001 + FULL as u32);
    talk.data(CLIENT, 1001, FULL);
    // D-SACK: the block lies below what is acknowledged.
    let [end, start] = [1001 + FULL as u32, 1001_u32].map(u32::to_be_bytes);
    let options = [&[1, 1, 5, 10], &start[..], &end[..]].concat();
    talk.down(Built {
        seq: 5001,
        ack: 1001 + FULL as u32,
        options: &options,
        ..Built::default()
    });
    let up = talk.result().up;
    assert_eq!((up.segments.spurious_retransmissions, up.dsacks), (1, 1));
    assert_eq!(up.payload_bytes, FULL as u64);
}

#[test]
fn a_timeout_is_a_repetition_after_silence() {
    let mut talk = Talk::shaken(40);
    talk.data(CLIENT, 1001, FULL);
    talk.wait(250);
    talk.data(CLIENT, 1001, FULL);
    talk.wait(40);
    talk.ack(SERVER, 1001 + FULL as u32);
    let result = talk.result();
    assert_eq!(
        (result.up.timeouts, result.up.segments.retransmissions),
        (1, 1)
    );
    assert_eq!(
        result.up.rtt_s.unwrap().count,
        1,
        "Karn: the handshake's alone"
    );
    assert_eq!(result.limit, Some(CaptureLimit::Path));
}

#[test]
fn keep_alives_and_windows() {
    let mut talk = Talk::shaken(40);
    talk.data(SERVER, 5001, FULL);
    talk.take(
        CLIENT,
        Built {
            seq: 1001,
            ack: 5001 + FULL as u32,
            window: 0,
            ..Built::default()
        },
    );
    talk.wait(500);
    // A probe of one byte, its answer, and the window opens.
    talk.data(SERVER, 5001 + FULL as u32, 1);
    talk.take(
        CLIENT,
        Built {
            seq: 1001,
            ack: 5001 + FULL as u32,
            window: 0,
            ..Built::default()
        },
    );
    talk.wait(500);
    talk.take(
        CLIENT,
        Built {
            seq: 1001,
            ack: 5001 + FULL as u32,
            window: 900,
            ..Built::default()
        },
    );
    talk.wait(50);
    talk.down(Built {
        seq: 5001 + FULL as u32 - 1,
        ack: 1001,
        ..Built::default()
    });
    talk.take(
        CLIENT,
        Built {
            seq: 1001,
            ack: 5001 + FULL as u32,
            window: 900,
            ..Built::default()
        },
    );
    let result = talk.result();
    let (up, down) = (result.up.segments, result.down.segments);
    assert_eq!(
        (up.zero_windows, up.window_updates, up.keep_alive_acks),
        (2, 1, 1)
    );
    assert_eq!(
        (
            down.zero_window_probes,
            up.zero_window_probe_acks,
            down.keep_alives
        ),
        (1, 1, 1)
    );
    assert_eq!(result.limit, Some(CaptureLimit::ReceiveWindow));
    assert!(result.limited.rwnd_ratio > 0.9, "{:?}", result.limited);
}

/// Windows of 10 segments over 40 ms, as they are seen at the sender and at the receiver.
#[test]
fn a_full_window_is_seen_from_both_ends() {
    for near_sender in [true, false] {
        let mut talk = Talk::new();
        let scaled = [2, 4, 0x05, 0xb4, 3, 3, 0, 0];
        talk.up(Built {
            seq: 1000,
            flags: flags::SYN,
            options: &scaled,
            ..Built::default()
        });
        talk.wait(if near_sender { 40 } else { 0 });
        talk.down(Built {
            seq: 5000,
            ack: 1001,
            flags: flags::SYN | flags::ACK,
            options: &scaled,
            window: 14_600,
            ..Built::default()
        });
        talk.wait(if near_sender { 0 } else { 40 });
        talk.up(Built {
            seq: 1001,
            ack: 5001,
            ..Built::default()
        });
        let mut seq = 1001;
        for _ in 0..20 {
            for _ in 0..10 {
                talk.data(CLIENT, seq, 1460);
                seq += 1460;
                if !near_sender {
                    talk.take(
                        SERVER,
                        Built {
                            seq: 5001,
                            ack: seq,
                            window: 14_600,
                            ..Built::default()
                        },
                    );
                }
            }
            talk.wait(40);
            if near_sender {
                talk.take(
                    SERVER,
                    Built {
                        seq: 5001,
                        ack: seq,
                        window: 14_600,
                        ..Built::default()
                    },
                );
            }
        }
        talk.data(CLIENT, seq, 1460);
        let result = talk.result();
        assert_eq!(
            result.limit,
            Some(CaptureLimit::ReceiveWindow),
            "{:?}",
            result.limited
        );
        assert!(
            result.limited.rwnd_ratio > 0.9,
            "{near_sender} {:?}",
            result.limited
        );
    }
}

/// A congestion window of 10 segments where the receiver allows far more.
#[test]
fn the_path_limits_from_both_ends() {
    for near_sender in [true, false] {
        let mut talk = Talk::shaken(if near_sender { 40 } else { 0 });
        if !near_sender {
            // The server's SYN-ACK was answered only after the round trip to the client.
            talk = Talk::new();
            talk.up(Built {
                seq: 1000,
                flags: flags::SYN,
                options: &LINUX_SYN,
                ..Built::default()
            });
            talk.down(Built {
                seq: 5000,
                ack: 1001,
                flags: flags::SYN | flags::ACK,
                options: &LINUX_SYN,
                ..Built::default()
            });
            talk.wait(40);
            talk.ack(CLIENT, 5001);
        }
        let mut seq = 1001;
        for _ in 0..20 {
            for _ in 0..10 {
                talk.data(CLIENT, seq, FULL);
                seq += FULL as u32;
                if !near_sender {
                    talk.ack(SERVER, seq);
                }
            }
            talk.wait(40);
            if near_sender {
                talk.ack(SERVER, seq);
            }
        }
        talk.data(CLIENT, seq, FULL);
        let result = talk.result();
        assert!(
            result.limited.path_ratio > 0.9,
            "{near_sender} {:?}",
            result.limited
        );
    }
}

/// Requests that the server thinks about for 100 ms, over 40 ms, with 300 ms between them.
#[test]
fn a_server_that_thinks_and_a_client_that_waits() {
    let mut talk = Talk::shaken(40);
    let (mut up, mut down) = (1001, 5001);
    for _ in 0..10 {
        talk.up(Built {
            seq: up,
            ack: down,
            payload: 100,
            flags: flags::ACK | flags::PSH,
            ..Built::default()
        });
        up += 100;
        talk.wait(140);
        talk.down(Built {
            seq: down,
            ack: up,
            payload: 200,
            flags: flags::ACK | flags::PSH,
            ..Built::default()
        });
        down += 200;
        talk.up(Built {
            seq: up,
            ack: down,
            ..Built::default()
        });
        talk.wait(300);
    }
    talk.ack(CLIENT, down);
    let result = talk.result();
    let total = 0.04 + 10.0 * 0.44;
    assert_eq!(result.turns, 10);
    assert!(
        close(result.server_think_s.unwrap().p50, 0.1),
        "{:?}",
        result.server_think_s
    );
    assert!(
        close(result.limited.server_ratio, 1.0 / total),
        "{:?}",
        result.limited
    );
    assert!(
        close(result.limited.path_ratio, 0.4 / total),
        "{:?}",
        result.limited
    );
    assert!(
        close(result.limited.app_ratio, 3.0 / total),
        "{:?}",
        result.limited
    );
}

#[test]
fn ports_that_are_reused_begin_anew() {
    let mut talk = Talk::shaken(10);
    let syn = Built {
        seq: 77,
        flags: flags::SYN,
        ports: [40_000, 80],
        ..Built::default()
    };
    let bytes = raw(&syn);
    let frame = Frame {
        unix_ns: 0,
        link: 101,
        bytes: &bytes,
        original_bytes: bytes.len() as u32,
    };
    let Transport::Tcp(segment) = decode(&frame).transport else {
        panic!();
    };
    assert!(talk.connection.is_replaced_by(CLIENT, &segment));
    talk.up(Built {
        seq: 1000,
        flags: flags::SYN,
        options: &LINUX_SYN,
        ..Built::default()
    });
    assert_eq!(talk.result().repeated_syns, 1);
}

#[test]
fn an_idle_connection_is_small() {
    let talk = Talk::shaken(10);
    let size = std::mem::size_of_val(&talk.connection);
    assert!(size <= 1024, "{size} bytes");
}

#[test]
fn time_that_runs_backwards_stands_still() {
    let mut talk = Talk::shaken(40);
    talk.now = 5 * MS;
    talk.data(CLIENT, 1001, FULL);
    assert!(close(talk.result().duration_s, 0.04));
}
