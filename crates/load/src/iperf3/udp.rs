//! Streams of datagrams: what the server is asked for, how they begin, and what it counted of those that it received.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use plumb_model::direction::OneDirection;
use plumb_model::distribution::Distribution;
use plumb_model::results::udp::UdpReceiver;
use plumb_net::bulk::{Batch, BulkSocket};
use plumb_wire::iperf3::{CONNECT, CONNECT_AGAIN, Parameters, Results, StreamResults, stream_id};
use plumb_wire::native::control::Token;
use plumb_wire::native::control::flow::udp::{Pattern, UdpFlow};
use plumb_wire::native::control::flow::{Flow, count};
use plumb_wire::native::control::frame::Preamble;
use plumb_wire::native::control::report::Report;
use plumb_wire::native::control::report::udp::{UdpReceiverLog, UdpReport};
use plumb_wire::native::spec::TOKEN_BYTES;

use super::control::Control;
use super::server::{Opened, PROTOCOL};
use crate::asked::cannot;
use crate::control_client::ClientError;
use crate::phase_plan::PhasePlan;
use crate::streams::Stream;
use crate::udp::{Marks, UdpStream, prepare_to_receive};

/// How long the answer to each datagram that begins a stream is waited for: 3.5 s in all, above the fullest queue that is met
/// in homes.
const BEGIN_WAITS: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
];

/// How often a server is to look whether datagrams are due, in microseconds. At its own 1000, a stream of 100 Mbit/s
/// leaves in bursts of nine datagrams, which a short queue drops.
const PACING_US: u64 = 50;

/// How often it is checked meanwhile whether the server continues.
const LOOK: Duration = Duration::from_millis(20);

/// What all datagrams have together that begin a stream.
const BEGINNING_BYTES: u64 = (BEGIN_WAITS.len() * CONNECT_AGAIN.len()) as u64;

/// So many streams down and up, all alike.
#[derive(Debug, Clone)]
pub(super) struct Datagrams {
    pub(super) down: u32,
    pub(super) up: u32,
    flow: UdpFlow,
}

impl Datagrams {
    /// What a plan asks for, where it is datagrams; `None` where it is something else.
    ///
    /// # Errors
    /// What iperf3 cannot do with them.
    pub(super) fn of(plan: &PhasePlan, name: &str) -> Result<Option<Self>, ClientError> {
        let mut flows = plan.flows.iter().map(|flows| &flows.flow);
        let Some(Flow::Udp(flow)) = flows.next() else {
            return Ok(None);
        };
        if flows.any(|other| other.udp() != Some(flow)) {
            return Err(cannot(name, PROTOCOL, "streams that differ"));
        }
        let [down, up] = [OneDirection::Down, OneDirection::Up]
            .map(|role| u32::try_from(count(&plan.flows, role)).unwrap_or(u32::MAX));
        if flow.ecn.is_some() {
            return Err(cannot(name, PROTOCOL, "record of ECN"));
        }
        let is_simple = matches!(flow.pattern, Pattern::Constant { .. } | Pattern::Max);
        if down > 0 && !is_simple {
            let what = "pattern of a download other than a constant rate";
            return Err(cannot(name, PROTOCOL, what));
        }
        Ok(Some(Self {
            down,
            up,
            flow: flow.clone(),
        }))
    }

    /// What the server is asked for beside the streams and their directions.
    pub(super) fn parameters(&self, duration: Duration) -> Parameters {
        let flow = &self.flow;
        Parameters {
            udp: true,
            // The client ends the test; the server only bounds it.
            time: duration.as_secs_f64().ceil().max(1.0) as u64,
            len: flow.payload_bytes.into(),
            // As fast as it goes where it is 0.
            bandwidth: flow.mean_bps().map_or(0, |bps| bps.round().max(1.0) as u64),
            window: flow.receive_buffer_bytes.unwrap_or(0).into(),
            tos: u64::from(flow.dscp.unwrap_or(0)) << 2,
            udp_counters_64bit: true,
            pacing_timer: PACING_US,
            ..Parameters::default()
        }
    }

    /// The sockets of all streams, those that this end sends on first, one after the other as the server takes them.
    pub(super) fn open(&self, control: &Control<'_>) -> Result<Opened, ClientError> {
        let far = control.far;
        let mut opened = Opened::default();
        let mut address = far.address();
        address.set_port(control.port);
        for index in 0..self.up + self.down {
            let is_sent = index < self.up;
            let begun = self.begin(address, !is_sent, &|| control.has_word());
            let (socket, is_answered) = begun.map_err(|error| far.no_stream(index, &error))?;
            if !is_answered {
                opened.unanswered = Some(index);
            }
            let held = socket.try_clone().map_err(|error| far.local(&error))?;
            let (role, number, streams) = match is_sent {
                true => (OneDirection::Up, index, &mut opened.streams.outgoing),
                false => (
                    OneDirection::Down,
                    index - self.up,
                    &mut opened.streams.incoming,
                ),
            };
            streams.push(Stream::Udp(UdpStream {
                name: Preamble {
                    token: Token([0; TOKEN_BYTES]),
                    phase: 1,
                    stream: number,
                    role,
                    tls: false,
                },
                flow: self.flow.clone(),
                socket,
                marks: Marks::Iperf3,
            }));
            opened.held.push(held);
        }
        Ok(opened)
    }

    /// A socket that has been announced to the server, and whether it answered. The server answers once; where that is
    /// lost, it still knows the socket. Once it knows all of them, it continues by itself.
    fn begin(
        &self,
        address: SocketAddr,
        receives: bool,
        goes_on: &dyn Fn() -> bool,
    ) -> io::Result<(BulkSocket, bool)> {
        let socket = BulkSocket::connect(address)?;
        if receives {
            prepare_to_receive(&self.flow, &socket)?;
        }
        let mut batch = Batch::new(1, usize::from(self.flow.largest_bytes()));
        let mut says = CONNECT.as_slice();
        for wait in BEGIN_WAITS {
            socket.send(says)?;
            says = &CONNECT_AGAIN;
            let until = Instant::now() + wait;
            while let Some(left) = until.checked_duration_since(Instant::now()) {
                let is_readable = socket.wait_readable(left.min(LOOK))?;
                if goes_on() {
                    // What is to be read may be the stream itself.
                    return Ok((socket, false));
                }
                if !is_readable {
                    continue;
                }
                socket.receive(&mut batch)?;
                // What it says differs by version and by the order of the server's bytes.
                if batch.messages().any(|m| m.payload.len() == CONNECT.len()) {
                    return Ok((socket, true));
                }
            }
        }
        Ok((socket, false))
    }

    /// The plan with the streams as the server sends them: one datagram at a time.
    pub(super) fn as_sent(plan: &PhasePlan) -> PhasePlan {
        let mut plan = plan.clone();
        for flows in &mut plan.flows {
            if let (OneDirection::Down, Flow::Udp(flow)) = (flows.role, &mut flows.flow) {
                flow.gso = None;
            }
        }
        plan
    }
}

/// What this end counted of its streams.
pub(super) fn counted(report: &UdpReport, up: u32) -> Vec<StreamResults> {
    let whole = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    let sent = report.senders.iter().map(|log| StreamResults {
        id: stream_id(log.stream).into(),
        bytes: log.sender.sent_bytes as f64,
        retransmits: -1,
        packets: whole(log.sender.sent),
        ..StreamResults::default()
    });
    let received = report.receivers.iter().map(|log| StreamResults {
        id: stream_id(up + log.stream).into(),
        bytes: log.receiver.received_bytes as f64,
        retransmits: -1,
        jitter: log.receiver.jitter_s.map_or(0.0, |jitter| jitter.mean),
        errors: whole(log.receiver.lost),
        packets: whole(log.known),
        ..StreamResults::default()
    });
    sent.chain(received).collect()
}

/// The server's record of what it received. What it sent is not in it: it sends until it hears of the end, so that it
/// is unknown how much of that was lost. It counts from before this end heard of the beginning: its time is longer by
/// the round trip.
pub(super) fn record(theirs: &Results, ours: &Report, round_trip_s: f64) -> Report {
    let elapsed_s = ours.elapsed_s;
    let received = ours.udp.senders.iter().filter_map(|sent| {
        let id = i64::from(stream_id(sent.stream));
        let one = theirs.streams.iter().find(|one| one.id == id)?;
        let mut log = received(sent.stream, one);
        log.span_s = (log.span_s - round_trip_s).max(0.0);
        // What began the stream, said once more, counts as received.
        let bytes = &mut log.receiver.received_bytes;
        let most = sent.sender.sent_bytes;
        if (most..=most.saturating_add(BEGINNING_BYTES)).contains(bytes) {
            *bytes = most;
        }
        Some(log)
    });
    let cpu_ratio = theirs.cpu_util_total / 100.0;
    Report {
        elapsed_s,
        cpu_s: if cpu_ratio.is_finite() {
            cpu_ratio.max(0.0) * elapsed_s
        } else {
            0.0
        },
        udp: UdpReport {
            receivers: received.collect(),
            ..UdpReport::default()
        },
        ..Report::default()
    }
}

fn received(stream: u32, one: &StreamResults) -> UdpReceiverLog {
    let known = u64::try_from(one.packets).unwrap_or(0);
    let lost = u64::try_from(one.errors).unwrap_or(0).min(known);
    let positive = |number: f64| Some(number).filter(|number| number.is_finite() && *number >= 0.0);
    UdpReceiverLog {
        stream,
        known,
        span_s: positive(one.end_time).unwrap_or(0.0),
        receiver: UdpReceiver {
            received: known - lost,
            received_bytes: positive(one.bytes).unwrap_or(0.0) as u64,
            lost,
            loss_ratio: if known > 0 {
                lost as f64 / known as f64
            } else {
                0.0
            },
            lost_on_path: None,
            jitter_s: positive(one.jitter).and_then(|jitter| Distribution::of([jitter])),
            ..UdpReceiver::default()
        },
        ..UdpReceiverLog::default()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use plumb_model::results::udp::UdpSender;
    use plumb_wire::native::control::report::udp::UdpSenderLog;
    use proptest::prelude::*;

    /// What this end knows of a stream that it sent for two seconds.
    fn ours(stream: u32) -> Report {
        let sender = UdpSender {
            sent: 101,
            sent_bytes: 89_992,
            ..UdpSender::default()
        };
        let log = UdpSenderLog {
            stream,
            sender,
            ..UdpSenderLog::default()
        };
        Report {
            elapsed_s: 2.0,
            udp: UdpReport {
                senders: vec![log],
                ..UdpReport::default()
            },
            ..Report::default()
        }
    }

    #[test]
    fn of_what_a_server_received_it_is_known_how_much() {
        let one = StreamResults {
            id: 3,
            bytes: 90_000.0,
            jitter: 0.001,
            errors: 10,
            packets: 100,
            end_time: 2.0,
            ..StreamResults::default()
        };
        let theirs = Results {
            cpu_util_total: 50.0,
            streams: vec![one],
            ..Results::default()
        };
        let report = record(&theirs, &ours(1), 0.1);
        assert_eq!(report.cpu_s, 1.0);
        // The second stream, which is iperf3's third.
        let [log] = report.udp.receivers.try_into().unwrap();
        assert_eq!((log.stream, log.known, log.span_s), (1, 100, 1.9));
        assert_eq!((log.receiver.received, log.receiver.lost), (90, 10));
        assert_eq!(log.receiver.jitter_s.unwrap().mean, 0.001);
        // What began the stream came twice.
        assert_eq!(log.receiver.received_bytes, 89_992);
    }

    proptest! {
        #[test]
        fn any_results_are_survived(
            numbers in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<i64>(), any::<i64>(), any::<f64>()), 0..4),
            cpu in any::<f64>(),
        ) {
            let streams = numbers.into_iter().map(|(bytes, jitter, errors, packets, end_time)| StreamResults {
                id: 1, bytes, jitter, errors, packets, end_time, ..StreamResults::default()
            });
            let theirs = Results { cpu_util_total: cpu, streams: streams.collect(), ..Results::default() };
            let report = record(&theirs, &ours(0), 0.1);
            prop_assert!(report.cpu_s.is_finite());
            for log in report.udp.receivers {
                prop_assert!(log.receiver.lost + log.receiver.received == log.known);
                prop_assert!((0.0..=1.0).contains(&log.receiver.loss_ratio) && log.span_s.is_finite());
            }
        }
    }
}
