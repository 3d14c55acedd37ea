//! What one end recorded of a phase, and how it is split into messages and put together again.
//!
//! Times count from that end's own start of the phase. Counters are the kernel's (TCP_INFO,
//! Linux `include/uapi/linux/tcp.h`), as they stood, not as differences.

pub mod quic;
pub mod udp;

use serde::{Deserialize, Serialize};

use super::flow;
use super::frame::Role;
use super::{ServerMessage, Start};
use crate::native::spec::{
    ATTACH_TIMEOUT, MAX_TEXT_BYTES, RECORDS_PER_FRAME, SAMPLE_INTERVAL, STOP_GRACE,
};
use quic::{QuicReceiverLog, QuicReport, QuicSample, QuicSenderLog};
use udp::{UdpReceiverLog, UdpReport};

/// The sending TCP of one stream at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TcpSample {
    /// Seconds since the start of the phase.
    pub t_s: f64,
    /// Payload bytes acknowledged.
    pub bytes_acked: u64,
    /// Payload bytes sent, those sent again included; absent before Linux 4.19.
    pub bytes_sent: Option<u64>,
    /// Payload bytes sent and not acknowledged.
    pub in_flight_bytes: u64,
    /// Part of it that the receiver has, out of order (SACK).
    pub sacked_bytes: u64,
    /// Bytes in the send buffer not sent yet.
    pub notsent_bytes: u64,
    /// Congestion window: segments times the segment size.
    pub cwnd_bytes: u64,
    /// Where slow start ends; absent before something sets it.
    #[serde(default)]
    pub ssthresh_bytes: Option<u64>,
    /// Most that leaves a second; absent when nothing limits it.
    #[serde(default)]
    pub pacing_bps: Option<u64>,
    /// Payload that the receiver lately acknowledged a second.
    #[serde(default)]
    pub delivery_bps: u64,
    /// Smoothed round trip.
    pub srtt_us: u64,
    /// Smallest round trip; absent before the first.
    pub min_rtt_us: Option<u64>,
    /// Segments sent again.
    pub retransmits: u64,
    /// Window that the receiver advertised; absent before Linux 5.4.
    pub snd_wnd_bytes: Option<u64>,
    /// Limit of the send buffer.
    pub sndbuf_bytes: Option<u64>,
    /// Time with data outstanding or to send.
    pub busy_us: u64,
    /// Part of it held back by the receiver's window.
    pub rwnd_limited_us: u64,
    /// Part of it held back by the send buffer: the larger of tcpi_sndbuf_limited and the time
    /// that the sending end counted while it waited for room in the buffer.
    pub sndbuf_limited_us: u64,
}

/// What a receiver had counted at one instant.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Count {
    /// Seconds since the start of the phase.
    pub t_s: f64,
    /// Payload received until then.
    pub bytes: u64,
}

/// How a stream ended by itself, before it was told to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// Seconds since the start of the phase.
    pub t_s: f64,
    /// What the socket said.
    pub error: String,
}

/// The log of a stream that this end sent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SenderLog {
    /// What is said once.
    pub tail: SenderTail,
    /// At every sample.
    pub samples: Vec<TcpSample>,
}

/// What is said once of a stream that this end sent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SenderTail {
    /// Number of the stream.
    pub stream: u32,
    /// Congestion control that the socket ran.
    pub cc: String,
    /// Segment size.
    pub mss_bytes: u64,
    /// Whether the connection negotiated ECN.
    #[serde(default)]
    pub ecn: bool,
    /// Whether its SYN carried data (Fast Open).
    #[serde(default)]
    pub fast_open: bool,
    /// Whether it ran Multipath TCP.
    #[serde(default)]
    pub mptcp: bool,
    /// Whether its payload was sent without a copy.
    #[serde(default)]
    pub zero_copy: bool,
    /// Time that it waited for the file that its payload came from; absent without one.
    #[serde(default)]
    pub file_wait_us: Option<u64>,
    /// Set when the stream ended by itself.
    pub ended: Option<StreamEnd>,
}

/// The log of a stream that this end received.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReceiverLog {
    /// What is said once.
    pub tail: ReceiverTail,
    /// At every sample.
    pub counts: Vec<Count>,
}

/// What is said once of a stream that this end received.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverTail {
    /// Number of the stream.
    pub stream: u32,
    /// Largest limit of the receive buffer.
    pub receive_buffer_bytes: Option<u64>,
    /// Whether its payload was dropped unseen.
    #[serde(default)]
    pub discard: bool,
    /// Time that it waited for the file that its payload went to; absent without one.
    #[serde(default)]
    pub file_wait_us: Option<u64>,
    /// Set when the stream ended by itself.
    pub ended: Option<StreamEnd>,
}

/// The whole record of one end.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// Streams that it sent.
    pub senders: Vec<SenderLog>,
    /// Streams that it received.
    pub receivers: Vec<ReceiverLog>,
    /// UDP streams.
    pub udp: UdpReport,
    /// QUIC connections.
    pub quic: QuicReport,
    /// How long its phase took.
    pub elapsed_s: f64,
    /// Processor time that its process used meanwhile.
    pub cpu_s: f64,
    /// What must be known to read the numbers.
    pub notes: Vec<String>,
}

/// The part of a report that ends it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportTail {
    /// Streams that the server sent.
    pub senders: Vec<SenderTail>,
    /// Streams that it received.
    pub receivers: Vec<ReceiverTail>,
    /// How long its phase took.
    pub elapsed_s: f64,
    /// Processor time that its process used meanwhile.
    pub cpu_s: f64,
    /// What must be known to read the numbers.
    pub notes: Vec<String>,
}

impl Report {
    /// The messages that carry it, in order.
    pub fn into_messages(self, phase: u32) -> impl Iterator<Item = ServerMessage> {
        let (mut senders, mut receivers) = (Vec::new(), Vec::new());
        let mut logs = Vec::new();
        let count = |stream, counts: &[Count]| {
            counts
                .chunks(RECORDS_PER_FRAME)
                .map(|part| ServerMessage::Counts {
                    phase,
                    stream,
                    counts: part.to_vec(),
                })
                .collect::<Vec<_>>()
        };
        for SenderLog { tail, samples } in self.senders {
            let stream = tail.stream;
            logs.extend(
                samples
                    .chunks(RECORDS_PER_FRAME)
                    .map(|part| ServerMessage::Samples {
                        phase,
                        stream,
                        samples: part.to_vec(),
                    }),
            );
            senders.push(tail);
        }
        for ReceiverLog { tail, counts } in self.receivers {
            logs.extend(count(tail.stream, &counts));
            receivers.push(tail);
        }
        for log in self.udp.senders {
            logs.push(ServerMessage::UdpSent {
                phase,
                log: Box::new(log),
            });
        }
        for log in self.udp.receivers {
            logs.extend(count(log.stream, &log.counts));
            logs.push(ServerMessage::UdpReceived {
                phase,
                log: Box::new(log),
            });
        }
        for log in self.quic.senders {
            let stream = log.stream;
            let parts = log.samples.chunks(RECORDS_PER_FRAME);
            logs.extend(parts.map(|part| ServerMessage::QuicSamples {
                phase,
                stream,
                samples: part.to_vec(),
            }));
            logs.push(ServerMessage::QuicSent {
                phase,
                log: Box::new(log),
            });
        }
        for log in self.quic.receivers {
            logs.extend(count(log.stream, &log.counts));
            logs.push(ServerMessage::QuicReceived {
                phase,
                log: Box::new(log),
            });
        }
        let tail = ReportTail {
            senders,
            receivers,
            elapsed_s: self.elapsed_s,
            cpu_s: self.cpu_s,
            notes: self.notes,
        };
        logs.into_iter().chain([ServerMessage::Result {
            phase,
            report: Box::new(tail),
        }])
    }
}

/// A report that does not belong to the phase it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the far end's record of the phase does not fit the phase")]
pub struct ReportError;

/// Puts a report together. What the far end may send is bounded by the phase that was asked.
#[derive(Debug)]
pub struct ReportAssembler {
    phase: u32,
    most_records: usize,
    samples: Vec<Vec<TcpSample>>,
    counts: Vec<Vec<Count>>,
    udp: UdpReport,
    quic_samples: Vec<Vec<QuicSample>>,
    quic: QuicReport,
}

impl ReportAssembler {
    /// For the phase that was started so.
    pub fn new(start: &Start) -> Self {
        let streams = |role| flow::count(&start.flows, role) as usize;
        let longest_s = start.duration_s + (STOP_GRACE + ATTACH_TIMEOUT).as_secs_f64();
        Self {
            phase: start.phase,
            most_records: (longest_s / SAMPLE_INTERVAL.as_secs_f64()) as usize,
            samples: vec![Vec::new(); streams(Role::Down)],
            counts: vec![Vec::new(); streams(Role::Up)],
            udp: UdpReport::default(),
            quic_samples: vec![Vec::new(); streams(Role::Down)],
            quic: QuicReport::default(),
        }
    }

    /// Takes a message; gives the report when it is complete, and the message back when it is
    /// no part of a report.
    ///
    /// # Errors
    /// When it is a part of another phase or stream, or more than the phase can have.
    pub fn add(&mut self, message: ServerMessage) -> Result<Assembled, ReportError> {
        match message {
            ServerMessage::Samples {
                phase,
                stream,
                samples,
            } if phase == self.phase => {
                let log = self.samples.get_mut(stream as usize).ok_or(ReportError)?;
                extend(log, samples, self.most_records, |s| s.t_s)?;
                Ok(Assembled::Part)
            }
            ServerMessage::Counts {
                phase,
                stream,
                counts,
            } if phase == self.phase => {
                let log = self.counts.get_mut(stream as usize).ok_or(ReportError)?;
                extend(log, counts, self.most_records, |c| c.t_s)?;
                Ok(Assembled::Part)
            }
            ServerMessage::UdpSent { phase, log } if phase == self.phase => {
                let known = &mut self.udp.senders;
                if known.len() >= self.samples.len() {
                    return Err(ReportError);
                }
                known.push(log.clipped());
                Ok(Assembled::Part)
            }
            ServerMessage::UdpReceived { phase, log } if phase == self.phase => {
                let counts = self.counts.get_mut(log.stream as usize);
                let counts = std::mem::take(counts.ok_or(ReportError)?);
                if self.udp.receivers.len() >= self.counts.len() {
                    return Err(ReportError);
                }
                self.udp.receivers.push(UdpReceiverLog {
                    counts,
                    ..log.clipped()
                });
                Ok(Assembled::Part)
            }
            ServerMessage::QuicSamples {
                phase,
                stream,
                samples,
            } if phase == self.phase => {
                let log = self.quic_samples.get_mut(stream as usize);
                let log = log.ok_or(ReportError)?;
                extend(log, samples, self.most_records, |s| s.t_s)?;
                Ok(Assembled::Part)
            }
            ServerMessage::QuicSent { phase, log } if phase == self.phase => {
                let samples = self.quic_samples.get_mut(log.stream as usize);
                let samples = std::mem::take(samples.ok_or(ReportError)?);
                if self.quic.senders.len() >= self.samples.len() {
                    return Err(ReportError);
                }
                self.quic.senders.push(QuicSenderLog {
                    samples,
                    ..log.clipped()
                });
                Ok(Assembled::Part)
            }
            ServerMessage::QuicReceived { phase, log } if phase == self.phase => {
                let counts = self.counts.get_mut(log.stream as usize);
                let counts = std::mem::take(counts.ok_or(ReportError)?);
                if self.quic.receivers.len() >= self.counts.len() {
                    return Err(ReportError);
                }
                self.quic.receivers.push(QuicReceiverLog {
                    counts,
                    ..log.clipped()
                });
                Ok(Assembled::Part)
            }
            ServerMessage::Result { phase, report } if phase == self.phase => self.finish(*report),
            ServerMessage::Samples { .. }
            | ServerMessage::Counts { .. }
            | ServerMessage::UdpSent { .. }
            | ServerMessage::UdpReceived { .. }
            | ServerMessage::QuicSamples { .. }
            | ServerMessage::QuicSent { .. }
            | ServerMessage::QuicReceived { .. }
            | ServerMessage::Result { .. } => Err(ReportError),
            other => Ok(Assembled::Other(other)),
        }
    }

    fn finish(&mut self, tail: ReportTail) -> Result<Assembled, ReportError> {
        if tail.senders.len() > self.samples.len() || tail.receivers.len() > self.counts.len() {
            return Err(ReportError);
        }
        let mut report = Report {
            elapsed_s: tail.elapsed_s,
            cpu_s: tail.cpu_s,
            notes: tail.notes.into_iter().take(MAX_NOTES).map(clip).collect(),
            udp: std::mem::take(&mut self.udp),
            quic: std::mem::take(&mut self.quic),
            ..Report::default()
        };
        for mut tail in tail.senders {
            let samples = std::mem::take(
                self.samples
                    .get_mut(tail.stream as usize)
                    .ok_or(ReportError)?,
            );
            tail.cc = clip(tail.cc);
            tail.ended = tail.ended.map(clip_end);
            report.senders.push(SenderLog { tail, samples });
        }
        for mut tail in tail.receivers {
            let counts = std::mem::take(
                self.counts
                    .get_mut(tail.stream as usize)
                    .ok_or(ReportError)?,
            );
            tail.ended = tail.ended.map(clip_end);
            report.receivers.push(ReceiverLog { tail, counts });
        }
        Ok(Assembled::Whole(Box::new(report)))
    }
}

/// Notes of the far end that are kept.
const MAX_NOTES: usize = 8;

/// What a message was to a [`ReportAssembler`].
#[derive(Debug, PartialEq)]
pub enum Assembled {
    /// A part; more follow.
    Part,
    /// The last part; this is all.
    Whole(Box<Report>),
    /// No part of a report.
    Other(ServerMessage),
}

/// Appends records, which must go forward in time and not be too many.
fn extend<T>(
    log: &mut Vec<T>,
    more: Vec<T>,
    most: usize,
    time: fn(&T) -> f64,
) -> Result<(), ReportError> {
    for record in more {
        let after = log.last().map_or(0.0, time);
        // A time that is no number fails this, too.
        if !(time(&record) >= after && time(&record).is_finite()) || log.len() >= most {
            return Err(ReportError);
        }
        log.push(record);
    }
    Ok(())
}

/// What is left of a text from the network: bounded, and without control characters.
pub fn clip(text: String) -> String {
    let mut bytes = 0;
    text.chars()
        .filter(|c| !c.is_control())
        .take_while(|c| {
            bytes += c.len_utf8();
            bytes <= MAX_TEXT_BYTES
        })
        .collect()
}

fn clip_end(end: StreamEnd) -> StreamEnd {
    StreamEnd {
        error: clip(end.error),
        ..end
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::flow::{Flows, TcpFlow};
    use super::super::frame::encode_frame;
    use super::udp::UdpSenderLog;
    use super::*;
    use crate::native::spec::{MAX_SERVER_FRAME_BYTES, MAX_STREAMS};
    use proptest::prelude::*;

    fn start(down_streams: u32, up_streams: u32) -> Start {
        Start {
            phase: 7,
            flows: vec![
                Flows::tcp(down_streams, Role::Down, TcpFlow::default()),
                Flows::tcp(up_streams, Role::Up, TcpFlow::default()),
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
        assert_eq!(clip("a\x1b[31m\nb".into()), "a[31mb");
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
}
