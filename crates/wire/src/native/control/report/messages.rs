//! How a report is split into messages.

use super::super::ServerMessage;
use super::{Count, ReceiverLog, Report, ReportTail, SenderLog};
use crate::native::spec::RECORDS_PER_FRAME;

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
