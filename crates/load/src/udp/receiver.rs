//! One receiving stream: takes what comes, with the kernel's times, and finds out what did not.

use std::io::ErrorKind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plumb_model::results::udp::{UdpHostLosses, UdpReceiver};
use plumb_net::bulk::{Batch, BulkSocket, Message};
use plumb_net::udp_counters::{Drops, SocketDrops, UdpCounters};
use plumb_wire::native::control::flow::udp::{MAX_PAYLOAD_BYTES, UdpFlow};
use plumb_wire::native::control::report::udp::UdpReceiverLog;
use plumb_wire::native::datagram::Datagram;
use plumb_wire::native::spec::{LINGER, OVERTAKEN_WAIT, SAMPLE_INTERVAL};

use super::analysis::{Analysis, End, Findings, Packet};
use super::clock::Clock;
use super::marks::Marks;
use crate::phase_state::{POLL_INTERVAL, Stage};

/// Receive buffer to ask for, in bytes before the kernel doubles them: a 1400-byte packet takes
/// 2304 of these, so it holds ten milliseconds of two million a second, which is what another
/// program may keep our thread from its processor.
pub(super) const RECEIVE_BUFFER_BYTES: u32 = 32 * 1024 * 1024;

/// Packets of one system call.
const MESSAGES: usize = 64;
/// Trains of one system call: each may be as long as a datagram can be, and more do not fit a
/// processor's cache.
const TRAINS: usize = 16;
/// As long as a train can be.
const TRAIN_BYTES: usize = 65_536;

/// A stream to receive.
pub(super) struct Receiving {
    pub(super) number: u32,
    pub(super) flow: UdpFlow,
    pub(super) marks: Marks,
}

/// What a receiver knows so far.
struct Received {
    marks: Marks,
    analysis: Analysis,
    /// What the sender says of its end.
    end: Option<End>,
}

impl Receiving {
    /// Takes what comes until the sender says that it has ended, and for [`OVERTAKEN_WAIT`]
    /// after, but no longer than [`LINGER`] after the stage. Counts payload in `bytes`.
    pub(super) fn run(
        self,
        socket: &BulkSocket,
        bytes: &AtomicU64,
        stage: &Stage,
    ) -> UdpReceiverLog {
        let mut clock = Clock::start();
        let (host_before, mut drops) = (UdpCounters::read(), SocketDrops::begin());
        let mut batch = if self.flow.gro {
            Batch::new(TRAINS, TRAIN_BYTES)
        } else {
            Batch::new(MESSAGES, usize::from(self.flow.largest_bytes()))
        };
        let mut received = Received {
            marks: self.marks,
            analysis: analysis(&clock, stage),
            end: None,
        };
        let mut until: Option<Instant> = None;
        let mut ended = None;
        loop {
            let now = Instant::now();
            if received.end.is_none() && until.is_none() && stage.is_over() {
                // Where no end is said, the far end sends until it hears of ours.
                let has_end = self.marks.with_end().is_some();
                until = Some(now + if has_end { LINGER } else { Duration::ZERO });
            }
            if until.is_some_and(|until| now >= until) || stage.is_abandoned() {
                break;
            }
            match socket.wait_readable(POLL_INTERVAL).and_then(|ready| {
                if ready {
                    socket.receive(&mut batch)
                } else {
                    Ok(0)
                }
            }) {
                Ok(0) => continue,
                Ok(_) => {}
                Err(error) if is_passing(error.kind()) => continue,
                Err(error) => {
                    ended = stage.ended(error);
                    break;
                }
            }
            let correction_ns = clock.correction_ns();
            let before = received.analysis.received_bytes();
            let known = received.end.is_some();
            for message in batch.messages() {
                let at_ns = message
                    .kernel_ns
                    .and_then(|ns| i64::try_from(ns).ok())
                    .map_or_else(|| clock.now(), |ns| ns.saturating_add(correction_ns));
                received.take(&message, at_ns, socket);
            }
            let more = received.analysis.received_bytes() - before;
            bytes.fetch_add(more, Ordering::Relaxed);
            if received.end.is_some() && !known {
                until = Some(Instant::now() + OVERTAKEN_WAIT);
            }
            if more > 0 && !stage.budget.take_in(more) && until.is_none() {
                until = Some(Instant::now() + LINGER);
            }
        }
        let Findings {
            receiver,
            known,
            min_delay_ns,
            span_s,
            counts,
        } = received.analysis.finish(received.end);
        UdpReceiverLog {
            stream: self.number,
            receiver: UdpReceiver {
                host: host_losses(host_before),
                receive_buffer_bytes: socket.receive_buffer_bytes(),
                ..with_drops(receiver, drops.of(socket.drops().unwrap_or(0)), &self.flow)
            },
            known,
            min_delay_ns: min_delay_ns.filter(|_| self.marks.has_wall_clock()),
            span_s,
            clock_stepped: clock.stepped(),
            ended,
            counts,
        }
    }
}

impl Received {
    /// Takes a message, which came at `at_ns`.
    fn take(&mut self, message: &Message<'_>, at_ns: i64, socket: &BulkSocket) {
        let size = message.segment_bytes.unwrap_or(message.payload.len());
        for datagram in message.payload.chunks(size.max(1)) {
            match self.marks.parse(datagram) {
                Some(Datagram::Data { sequence, sent_ns }) => self.analysis.record(&Packet {
                    sequence,
                    sent_ns,
                    received_ns: at_ns,
                    payload_bytes: datagram.len() as u32,
                    ecn: message.traffic_class.unwrap_or(0),
                }),
                Some(Datagram::End { datagrams }) => {
                    self.end.get_or_insert(End { datagrams, at_ns });
                    if let Some(tag) = self.marks.with_end() {
                        // When it is lost, the sender says it again.
                        let _ = socket.send(&tag.end_answer());
                    }
                }
                // The client repeats the attachment until it hears that it succeeded, and between binding and
                // connecting, datagrams of any host come in.
                Some(Datagram::EndAnswer) | None => {}
            }
        }
    }
}

/// The analysis of a stream of which nothing came yet. It has intervals for as long as packets are received: from the
/// beginning of the stage until [`LINGER`] after its deadline.
fn analysis(clock: &Clock, stage: &Stage) -> Analysis {
    let passed_ns = stage.started.elapsed().as_nanos() as i64;
    let longest = stage.deadline.duration_since(stage.started) + LINGER;
    let intervals = longest.as_nanos() / SAMPLE_INTERVAL.as_nanos() + 1;
    Analysis::since(clock.now().saturating_sub(passed_ns), intervals as usize)
}

/// What this host has not delivered since `before`.
fn host_losses(before: Option<UdpCounters>) -> Option<UdpHostLosses> {
    let since = UdpCounters::read()?.since(before?);
    Some(UdpHostLosses {
        in_errors: since.in_errors,
        rcvbuf_errors: since.rcvbuf_errors,
        csum_errors: since.csum_errors,
        mem_errors: since.mem_errors,
    })
}

/// Separates what our own socket had no room for from what did not reach it whole. It is unknown how long the trains
/// were that it dropped: each may have been as long as one can be. What is corrupted is in no train: the kernel joins
/// only what has a right checksum.
fn with_drops(receiver: UdpReceiver, drops: Drops, flow: &UdpFlow) -> UdpReceiver {
    let packets = drops.full.saturating_mul(longest_train(flow));
    UdpReceiver {
        dropped_here: drops.full,
        // One that came twice may have come whole once.
        corrupted: drops.corrupted.min(receiver.lost),
        lost_on_path: Some(receiver.lost.saturating_sub(packets)),
        ..receiver
    }
}

/// Packets of what the kernel drops as one.
fn longest_train(flow: &UdpFlow) -> u64 {
    if !flow.gro {
        return 1;
    }
    let fit = MAX_PAYLOAD_BYTES / flow.payload_bytes.max(1);
    // What departed as a train may arrive as the same.
    let together = MOST_OF_GRO.max(flow.gso.unwrap_or(1));
    u64::from(fit.min(together).max(1))
}

/// Most packets that UDP_GRO joins (UDP_GRO_CNT_MAX).
const MOST_OF_GRO: u16 = 64;

/// Whether receiving can go on: an ICMP error is about what was sent.
fn is_passing(kind: ErrorKind) -> bool {
    use ErrorKind as Kind;
    matches!(
        kind,
        Kind::WouldBlock
            | Kind::Interrupted
            | Kind::ConnectionRefused
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_wire::native::control::flow::udp::Pattern;

    fn lost_on_path(lost: u64, dropped_here: u64, flow: &UdpFlow) -> Option<u64> {
        let receiver = UdpReceiver {
            lost,
            ..UdpReceiver::default()
        };
        let drops = Drops {
            full: dropped_here,
            corrupted: 0,
        };
        with_drops(receiver, drops, flow).lost_on_path
    }

    #[test]
    fn what_is_corrupted_is_lost_on_the_path() {
        let receiver = UdpReceiver {
            lost: 100,
            ..UdpReceiver::default()
        };
        let drops = Drops {
            full: 20,
            corrupted: 70,
        };
        let known = with_drops(receiver, drops, &UdpFlow::new(1400, Pattern::Max));
        assert_eq!((known.dropped_here, known.corrupted), (20, 70));
        assert_eq!((known.lost_here(), known.lost_on_path), (20, Some(80)));
    }

    #[test]
    fn what_our_own_socket_dropped_is_not_lost_on_the_path() {
        let single = UdpFlow::new(1400, Pattern::Max);
        assert_eq!(lost_on_path(100, 0, &single), Some(100));
        assert_eq!(lost_on_path(100, 90, &single), Some(10));
        let trains = UdpFlow {
            gro: true,
            gso: Some(46),
            ..single
        };
        // 46 packets of 1400 bytes are as many as fit into one datagram of IP.
        assert_eq!(lost_on_path(913_882, 19_867, &trains), Some(0));
        assert_eq!(lost_on_path(1000, 1, &trains), Some(954));
        assert_eq!(lost_on_path(1000, 0, &trains), Some(1000));
        // Small packets: as many as the kernel joins.
        let small = UdpFlow {
            gro: true,
            ..UdpFlow::new(100, Pattern::Max)
        };
        assert_eq!(lost_on_path(1000, 2, &small), Some(1000 - 128));
    }
}
