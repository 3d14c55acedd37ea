//! The running streams of one end of a phase. It is the same at both ends: a client sends its
//! uploads and receives its downloads, a server the other way round.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use plumb_net::clock::process_cpu_time;
use plumb_net::{sysctl, tcp};
use plumb_wire::native::control::report::{
    ReceiverLog, ReceiverTail, Report, SenderLog, SenderTail, StreamEnd,
};

use crate::sampler::{self, Record};
use crate::sender::{Budget, payload};
use crate::{receiver, sender};

/// Stack of a stream's thread: its buffers are on the heap.
const STACK_BYTES: usize = 128 * 1024;

/// What one end of a phase carries. Streams go by their numbers.
#[derive(Debug)]
pub struct TrafficPlan<'a> {
    /// Streams to send on.
    pub outgoing: Vec<(u32, TcpStream)>,
    /// Streams to receive from.
    pub incoming: Vec<(u32, TcpStream)>,
    /// Congestion control of the streams to send on.
    pub cc: &'a str,
    /// Payload that may be carried, both directions together.
    pub byte_limit: Option<u64>,
    /// Everything ends after so long, told to or not.
    pub longest: Duration,
}

/// Running streams. Dropping it stops them within 100 ms and aborts their connections.
#[derive(Debug)]
pub struct Traffic {
    started: Instant,
    cpu_at_start: Duration,
    stop: Arc<AtomicBool>,
    budget: Arc<Budget>,
    running: Arc<AtomicUsize>,
    acked: Arc<AtomicU64>,
    senders: Vec<(SenderTail, Stream)>,
    receivers: Vec<(u32, Stream, Arc<AtomicU64>)>,
    sampler: Option<(Sender<()>, JoinHandle<Record>)>,
    notes: Vec<String>,
}

#[derive(Debug)]
struct Stream {
    socket: Arc<TcpStream>,
    thread: JoinHandle<Option<StreamEnd>>,
}

impl Traffic {
    /// Starts all streams and the sampler.
    ///
    /// # Errors
    /// When the machine gives no more threads; what had started is stopped.
    pub fn start(plan: TrafficPlan<'_>) -> io::Result<Self> {
        let started = Instant::now();
        let mut traffic = Self {
            started,
            cpu_at_start: process_cpu_time(),
            stop: Arc::default(),
            budget: Arc::new(Budget::new(plan.byte_limit)),
            running: Arc::default(),
            acked: Arc::default(),
            senders: Vec::new(),
            receivers: Vec::new(),
            sampler: None,
            notes: Vec::new(),
        };
        let outgoing: Vec<_> = plan
            .outgoing
            .into_iter()
            .map(|(stream, socket)| (stream, Arc::new(socket), Arc::<AtomicU64>::default()))
            .collect();
        let incoming: Vec<_> = plan
            .incoming
            .into_iter()
            .map(|(stream, socket)| (stream, Arc::new(socket), Arc::<AtomicU64>::default()))
            .collect();
        let tails = traffic.prepare(&outgoing, &incoming, plan.cc)?;
        // The sampler first, so that its first sample comes before the first byte.
        traffic.start_sampler(&outgoing, &incoming)?;

        let (deadline, payload) = (started + plan.longest, payload());
        for (tail, (_, socket, waited)) in tails.into_iter().zip(outgoing) {
            let (thread_socket, payload) = (Arc::clone(&socket), Arc::clone(&payload));
            let thread = traffic.spawn("plumb-send", move |budget, stop| {
                sender::run(
                    &thread_socket,
                    &payload,
                    budget,
                    &waited,
                    stop,
                    started,
                    deadline,
                )
            })?;
            traffic.senders.push((tail, Stream { socket, thread }));
        }
        for (stream, socket, counter) in incoming {
            let (thread_socket, thread_counter) = (Arc::clone(&socket), Arc::clone(&counter));
            let thread = traffic.spawn("plumb-receive", move |budget, stop| {
                receiver::run(
                    &thread_socket,
                    &thread_counter,
                    budget,
                    stop,
                    started,
                    deadline,
                )
            })?;
            traffic
                .receivers
                .push((stream, Stream { socket, thread }, counter));
        }
        Ok(traffic)
    }

    /// How long it has run.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Payload received so far.
    pub fn received_bytes(&self) -> u64 {
        self.receivers
            .iter()
            .map(|(_, _, counter)| counter.load(Ordering::Relaxed))
            .sum()
    }

    /// Payload sent and acknowledged so far, as of the last sample.
    pub fn acked_bytes(&self) -> u64 {
        self.acked.load(Ordering::Relaxed)
    }

    /// Whether all streams have ended by themselves; the counters read afterwards are final.
    pub fn has_ended(&self) -> bool {
        self.running.load(Ordering::Acquire) == 0
    }

    /// Stops all streams, which takes up to 50 ms, aborts their connections and tells what they
    /// did.
    pub fn finish(mut self) -> Report {
        // One sample at the end of the phase, another when everything has stopped.
        if let Some((sample, _)) = &self.sampler {
            let _ = sample.send(());
        }
        self.stop.store(true, Ordering::Relaxed);
        let (senders, receivers) = (
            std::mem::take(&mut self.senders),
            std::mem::take(&mut self.receivers),
        );
        let elapsed_s = self.started.elapsed().as_secs_f64();
        // The sockets live until the last sample is taken.
        let mut sockets = Vec::new();
        let mut join = |stream: Stream| {
            sockets.push(stream.socket);
            stream.thread.join().unwrap_or_else(|_| {
                Some(StreamEnd {
                    t_s: elapsed_s,
                    error: "the stream's thread failed".to_owned(),
                })
            })
        };
        let senders: Vec<_> = senders
            .into_iter()
            .map(|(tail, stream)| SenderTail {
                ended: join(stream),
                ..tail
            })
            .collect();
        let receivers: Vec<_> = receivers
            .into_iter()
            .map(|(number, stream, _)| (number, join(stream)))
            .collect();
        let record = self.sampler.take().and_then(|(sample, thread)| {
            drop(sample);
            thread.join().ok()
        });
        drop(sockets);

        let record = record.unwrap_or_default();
        Report {
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
            elapsed_s,
            cpu_s: process_cpu_time()
                .saturating_sub(self.cpu_at_start)
                .as_secs_f64(),
            notes: std::mem::take(&mut self.notes),
        }
    }

    /// Sets what the sockets need, and tells what the senders got.
    fn prepare(
        &mut self,
        outgoing: &[(u32, Arc<TcpStream>, Arc<AtomicU64>)],
        incoming: &[(u32, Arc<TcpStream>, Arc<AtomicU64>)],
        cc: &str,
    ) -> io::Result<Vec<SenderTail>> {
        let mut refusal = None;
        let mut tails = Vec::new();
        for (stream, socket, _) in outgoing {
            tcp::abort_on_close(socket)?;
            if let Err(error) = tcp::set_congestion_control(socket, cc) {
                refusal = Some(error);
            }
            tails.push(SenderTail {
                stream: *stream,
                cc: tcp::congestion_control(socket).unwrap_or_default(),
                mss_bytes: tcp::tcp_info(socket).map_or(0, |info| u64::from(info.snd_mss_bytes)),
                ended: None,
            });
        }
        for (_, socket, _) in incoming {
            tcp::abort_on_close(socket)?;
        }
        if let (Some(error), Some(tail)) = (refusal, tails.iter().find(|tail| tail.cc != cc)) {
            let available = sysctl::read("net.ipv4.tcp_available_congestion_control");
            self.notes.push(refused(
                cc,
                &tail.cc,
                &error,
                &available.unwrap_or_else(|_| "the kernel did not say which".to_owned()),
            ));
        }
        Ok(tails)
    }

    fn start_sampler(
        &mut self,
        outgoing: &[(u32, Arc<TcpStream>, Arc<AtomicU64>)],
        incoming: &[(u32, Arc<TcpStream>, Arc<AtomicU64>)],
    ) -> io::Result<()> {
        let senders: Vec<_> = outgoing
            .iter()
            .map(|(_, socket, waited)| (Arc::clone(socket), Arc::clone(waited)))
            .collect();
        let receivers: Vec<_> = incoming
            .iter()
            .map(|(_, socket, counter)| (Arc::clone(socket), Arc::clone(counter)))
            .collect();
        let (sample, now) = mpsc::channel();
        let (started, acked) = (self.started, Arc::clone(&self.acked));
        let thread = Builder::new()
            .name("plumb-sample".to_owned())
            .spawn(move || sampler::run(&senders, &receivers, started, &acked, &now))?;
        self.sampler = Some((sample, thread));
        Ok(())
    }

    fn spawn(
        &self,
        name: &str,
        work: impl FnOnce(&Budget, &AtomicBool) -> Option<StreamEnd> + Send + 'static,
    ) -> io::Result<JoinHandle<Option<StreamEnd>>> {
        let (budget, stop, running) = (
            Arc::clone(&self.budget),
            Arc::clone(&self.stop),
            Arc::clone(&self.running),
        );
        running.fetch_add(1, Ordering::Relaxed);
        Builder::new()
            .name(name.to_owned())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let ended = work(&budget, &stop);
                running.fetch_sub(1, Ordering::Release);
                ended
            })
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

impl Drop for Traffic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
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
