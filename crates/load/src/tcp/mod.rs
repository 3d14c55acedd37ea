//! TCP streams of one end of a phase: a thread each, and one that samples them all.

mod receiver;
mod sampler;
mod sender;

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};

use plumb_net::{sysctl, tcp};
use plumb_wire::native::control::flow::{Flow, TcpFlow};
use plumb_wire::native::control::report::{
    ReceiverLog, ReceiverTail, SenderLog, SenderTail, StreamEnd,
};

use crate::stage::Stage;
use crate::streams::Stream;
use crate::tls::TlsSession;
use sampler::Record;

/// Running TCP streams.
#[derive(Debug, Default)]
pub(crate) struct TcpStreams {
    acked: Arc<AtomicU64>,
    senders: Vec<(SenderTail, Running)>,
    receivers: Vec<(u32, Running, Arc<AtomicU64>)>,
    sampler: Option<(Sender<()>, JoinHandle<Record>)>,
    notes: Vec<String>,
}

/// What they did.
#[derive(Debug, Default)]
pub(crate) struct TcpLogs {
    /// Streams sent.
    pub(crate) senders: Vec<SenderLog>,
    /// Streams received.
    pub(crate) receivers: Vec<ReceiverLog>,
    /// What must be known to read them.
    pub(crate) notes: Vec<String>,
}

#[derive(Debug)]
struct Running {
    socket: Arc<TcpStream>,
    thread: JoinHandle<Option<StreamEnd>>,
}

/// A stream that is about to run, with the counter that its thread and the sampler share: what
/// the sender waited for its buffer in microseconds, or what the receiver counted in bytes.
struct Prepared {
    number: u32,
    flow: TcpFlow,
    socket: Arc<TcpStream>,
    counter: Arc<AtomicU64>,
    tls: Option<TlsSession>,
}

impl From<Stream> for Prepared {
    fn from(stream: Stream) -> Self {
        let Flow::Tcp(flow) = stream.flow;
        Self {
            number: stream.number,
            flow,
            socket: Arc::new(stream.socket),
            counter: Arc::default(),
            tls: stream.tls,
        }
    }
}

impl TcpStreams {
    /// Starts them and the sampler.
    pub(crate) fn start(
        stage: &Arc<Stage>,
        outgoing: Vec<Stream>,
        incoming: Vec<Stream>,
    ) -> io::Result<Self> {
        let mut this = Self::default();
        let outgoing: Vec<_> = outgoing.into_iter().map(Prepared::from).collect();
        let incoming: Vec<_> = incoming.into_iter().map(Prepared::from).collect();
        let tails = this.prepare(&outgoing, &incoming)?;
        // The sampler first, so that its first sample comes before the first byte.
        this.start_sampler(stage, &outgoing, &incoming)?;

        let payload = sender::payload();
        for (tail, stream) in tails.into_iter().zip(outgoing) {
            let (socket, waited) = (Arc::clone(&stream.socket), stream.counter);
            let (payload, mut tls) = (Arc::clone(&payload), stream.tls);
            let thread = stage.spawn("plumb-send", move |stage| {
                sender::run(&socket, tls.as_mut(), &payload, &waited, stage)
            })?;
            let socket = stream.socket;
            this.senders.push((tail, Running { socket, thread }));
        }
        for stream in incoming {
            let (socket, counter) = (Arc::clone(&stream.socket), Arc::clone(&stream.counter));
            let mut tls = stream.tls;
            let thread = stage.spawn("plumb-receive", move |stage| {
                receiver::run(&socket, tls.as_mut(), &counter, stage)
            })?;
            let socket = stream.socket;
            this.receivers
                .push((stream.number, Running { socket, thread }, stream.counter));
        }
        Ok(this)
    }

    /// Payload received so far.
    pub(crate) fn received_bytes(&self) -> u64 {
        self.receivers
            .iter()
            .map(|(_, _, counter)| counter.load(Ordering::Relaxed))
            .sum()
    }

    /// Payload sent and acknowledged so far, as of the last sample.
    pub(crate) fn acked_bytes(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    /// Takes one sample at the end of the phase; another comes when everything has stopped.
    pub(crate) fn last_sample(&self) {
        if let Some((sample, _)) = &self.sampler {
            let _ = sample.send(());
        }
    }

    /// Waits for the threads, which have been told to stop, and aborts the connections.
    pub(crate) fn finish(self, elapsed_s: f64) -> TcpLogs {
        // The sockets live until the last sample is taken.
        let mut sockets = Vec::new();
        let mut join = |stream: Running| {
            sockets.push(stream.socket);
            stream.thread.join().unwrap_or_else(|_| {
                Some(StreamEnd {
                    t_s: elapsed_s,
                    error: "the stream's thread failed".to_owned(),
                })
            })
        };
        let senders: Vec<_> = self
            .senders
            .into_iter()
            .map(|(tail, stream)| SenderTail {
                ended: join(stream),
                ..tail
            })
            .collect();
        let receivers: Vec<_> = self
            .receivers
            .into_iter()
            .map(|(number, stream, _)| (number, join(stream)))
            .collect();
        let record = self.sampler.and_then(|(sample, thread)| {
            drop(sample);
            thread.join().ok()
        });
        drop(sockets);

        let record = record.unwrap_or_default();
        TcpLogs {
            senders: senders
                .into_iter()
                .zip(record.senders)
                .map(|(tail, samples)| SenderLog { tail, samples })
                .collect(),
            receivers: receivers
                .into_iter()
                .zip(record.receivers)
                .map(|((stream, ended), seen)| ReceiverLog {
                    tail: ReceiverTail {
                        stream,
                        receive_buffer_bytes: seen.receive_buffer_bytes,
                        ended,
                    },
                    counts: seen.counts,
                })
                .collect(),
            notes: self.notes,
        }
    }

    /// Sets what the sockets need, and tells what the senders got.
    fn prepare(
        &mut self,
        outgoing: &[Prepared],
        incoming: &[Prepared],
    ) -> io::Result<Vec<SenderTail>> {
        let mut tails = Vec::new();
        for Prepared {
            number,
            flow,
            socket,
            ..
        } in outgoing
        {
            tcp::abort_on_close(socket)?;
            let wanted = flow.congestion_control();
            let refusal = tcp::set_congestion_control(socket, wanted).err();
            let cc = tcp::congestion_control(socket).unwrap_or_default();
            if let Some(error) = refusal.filter(|_| cc != wanted) {
                let available = sysctl::read("net.ipv4.tcp_available_congestion_control");
                let note = refused(
                    wanted,
                    &cc,
                    &error,
                    &available.unwrap_or_else(|_| "the kernel did not say which".to_owned()),
                );
                if !self.notes.contains(&note) {
                    self.notes.push(note);
                }
            }
            tails.push(SenderTail {
                stream: *number,
                cc,
                mss_bytes: tcp::tcp_info(socket).map_or(0, |info| u64::from(info.snd_mss_bytes)),
                ended: None,
            });
        }
        for Prepared { socket, .. } in incoming {
            tcp::abort_on_close(socket)?;
        }
        for Prepared { socket, flow, .. } in outgoing.iter().chain(incoming) {
            if let Some(dscp) = flow.dscp {
                tcp::set_dscp(socket, dscp)?;
            }
        }
        Ok(tails)
    }

    fn start_sampler(
        &mut self,
        stage: &Stage,
        outgoing: &[Prepared],
        incoming: &[Prepared],
    ) -> io::Result<()> {
        let of = |streams: &[Prepared]| -> Vec<_> {
            streams
                .iter()
                .map(|stream| (Arc::clone(&stream.socket), Arc::clone(&stream.counter)))
                .collect()
        };
        let (senders, receivers) = (of(outgoing), of(incoming));
        let (sample, now) = mpsc::channel();
        let (started, acked) = (stage.started, Arc::clone(&self.acked));
        let thread = Builder::new()
            .name("plumb-sample".to_owned())
            .spawn(move || sampler::run(&senders, &receivers, started, &acked, &now))?;
        self.sampler = Some((sample, thread));
        Ok(())
    }
}

/// That the kernel refused the congestion control `cc` and ran `got`, why, and what to do.
fn refused(cc: &str, got: &str, error: &io::Error, available: &str) -> String {
    let (why, advice) = match error.kind() {
        // ENOENT: no such congestion control is built in or loaded.
        io::ErrorKind::NotFound => (
            format!("this kernel does not have the congestion control '{cc}'"),
            format!(
                "load its module (modprobe tcp_{cc}) or choose one of those available: {available}"
            ),
        ),
        // EPERM: it is there, and only privileged processes may use it.
        io::ErrorKind::PermissionDenied => (
            format!("the congestion control '{cc}' may not be used without privilege"),
            "allow it with net.ipv4.tcp_allowed_congestion_control".to_owned(),
        ),
        _ => (
            format!("the kernel refused the congestion control '{cc}' ({error})"),
            format!("choose one of those available: {available}"),
        ),
    };
    format!("{why}, and '{got}' ran: queues that '{cc}' would fill may not show; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_congestion_control_that_is_absent_is_told_from_one_that_is_not_allowed() {
        let note = |errno| {
            refused(
                "bbr",
                "cubic",
                &io::Error::from_raw_os_error(errno),
                "reno cubic",
            )
        };
        let absent = note(2); // ENOENT
        assert!(
            absent.contains("does not have") && absent.contains("available: reno cubic"),
            "{absent}"
        );
        assert!(
            !absent.contains("tcp_allowed_congestion_control"),
            "{absent}"
        );
        let forbidden = note(1); // EPERM
        assert!(
            forbidden.contains("may not be used")
                && forbidden.contains("net.ipv4.tcp_allowed_congestion_control"),
            "{forbidden}"
        );
    }
}
