//! A report put together from its messages, within what its phase can have.

use super::super::flow;
use super::super::{ServerMessage, Start};
use super::count::{clip, clip_end};
use super::quic::{QuicReceiverLog, QuicReport, QuicSample, QuicSenderLog};
use super::udp::{UdpReceiverLog, UdpReport};
use super::{Count, ReceiverLog, Report, ReportTail, SenderLog, TcpSample};
use crate::native::spec::{ATTACH_TIMEOUT, SAMPLE_INTERVAL, STOP_GRACE};
use plumb_model::direction::OneDirection;

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
            samples: vec![Vec::new(); streams(OneDirection::Down)],
            counts: vec![Vec::new(); streams(OneDirection::Up)],
            udp: UdpReport::default(),
            quic_samples: vec![Vec::new(); streams(OneDirection::Down)],
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
