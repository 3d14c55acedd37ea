//! Streams of UDP: a thread each, which sends at its rate or counts what comes.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::{Duration, Instant};

use plumb_net::bulk::{Batch, BulkSocket};
use plumb_wire::iperf3::{
    CONNECT_AGAIN, CONNECTED, Counter, ErrorCode, Header, Results, StreamResults, Test, is_connect,
    stream_id,
};

use super::control::Ended;
use super::running::Running;
use super::sessions::Stream;

/// How often a stream looks whether it is to end, while nothing comes or leaves.
const LOOK: Duration = Duration::from_millis(50);

/// Datagrams of one system call: at 10 Gbit/s of 1460 bytes 26,000 calls a second.
const BATCH: usize = 32;

/// Datagrams that a sender which is late sends before it looks at its time again.
const AT_ONCE: u32 = 64;

/// The streams of a test, while it runs.
#[derive(Debug)]
pub(super) struct Datagrams {
    shared: Arc<Shared>,
    begun: Instant,
    threads: Vec<JoinHandle<StreamResults>>,
}

#[derive(Debug)]
struct Shared {
    over: AtomicBool,
    carried: AtomicU64,
    byte_limit: u64,
    omit: Duration,
}

impl Shared {
    fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Counts bytes, and returns whether more may be carried.
    fn carries(&self, bytes: usize) -> bool {
        let before = self.carried.fetch_add(bytes as u64, Ordering::Relaxed);
        before.saturating_add(bytes as u64) < self.byte_limit
    }
}

impl Datagrams {
    /// # Errors
    /// Where this machine gives no more threads.
    pub(super) fn start(
        test: &Test,
        streams: Vec<Stream>,
        byte_limit: Option<u64>,
    ) -> Result<Self, Ended> {
        let mut this = Self {
            shared: Arc::new(Shared {
                over: AtomicBool::new(false),
                carried: AtomicU64::new(0),
                byte_limit: byte_limit.unwrap_or(u64::MAX),
                omit: test.omit,
            }),
            begun: Instant::now(),
            threads: Vec::new(),
        };
        let sockets = streams.into_iter().filter_map(|stream| match stream {
            Stream::Udp(socket) => Some(socket),
            Stream::Tcp(_) => None,
        });
        for (socket, index) in sockets.zip(0..) {
            let (shared, test) = (Arc::clone(&this.shared), test.clone());
            let thread = Builder::new().name("plumb-iperf3-s".to_owned());
            let thread = thread.spawn(move || {
                // A class that the kernel refuses is one that the path would not show either.
                let _ = test.dscp.map(|dscp| socket.set_traffic_class(dscp, 0));
                let results = match index < test.receives {
                    true => receive(&socket, &test, &shared),
                    false => send(&socket, &test, &shared),
                };
                StreamResults {
                    id: stream_id(index).into(),
                    ..results
                }
            });
            // What began ends when it is dropped.
            let thread = thread.map_err(|_| Ended::Refused(ErrorCode::CreateStream, 0))?;
            this.threads.push(thread);
        }
        Ok(this)
    }
}

impl Drop for Datagrams {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

impl Running for Datagrams {
    fn carried_bytes(&self) -> u64 {
        self.shared.carried.load(Ordering::Relaxed)
    }

    fn finish(mut self: Box<Self>, omit: Duration) -> Results {
        let counted = self.begun.elapsed().saturating_sub(omit);
        self.shared.over.store(true, Ordering::Relaxed);
        let threads = std::mem::take(&mut self.threads);
        let results = threads.into_iter().filter_map(|thread| thread.join().ok());
        Results {
            sender_has_retransmits: -1,
            streams: results
                .map(|results| StreamResults {
                    end_time: counted.as_secs_f64(),
                    ..results
                })
                .collect(),
            ..Results::default()
        }
    }
}

/// Counts what comes until the test is over, and what had come by then: the end travels on a connection of its own, and a
/// busy machine may read it first. Done within twice [`LOOK`] of the end, whatever still comes.
fn receive(socket: &BulkSocket, test: &Test, shared: &Shared) -> StreamResults {
    let begun = Instant::now();
    let mut batch = Batch::new(
        BATCH,
        test.block_bytes.max(CONNECT_AGAIN.len() as u32) as usize,
    );
    let (mut counter, mut omitted) = (Counter::default(), None);
    let mut until = None;
    loop {
        if until.is_none() && shared.is_over() {
            until = Some(Instant::now() + LOOK);
        }
        if until.is_some_and(|until| Instant::now() >= until) {
            break;
        }
        if omitted.is_none() && begun.elapsed() >= shared.omit {
            omitted = Some(counter);
        }
        match socket.receive(&mut batch) {
            Ok(0) if until.is_some() => break,
            Ok(0) => {
                let _ = socket.wait_readable(LOOK);
            }
            Ok(_) => {
                for message in batch.messages() {
                    let datagram = message.payload;
                    // The answer to the first one was lost.
                    if is_connect(datagram) {
                        let _ = socket.send(&CONNECTED);
                        continue;
                    }
                    let Some(header) = Header::read(test.has_long_counters, datagram) else {
                        continue;
                    };
                    let at = message.kernel_ns.map(Duration::from_nanos);
                    let at =
                        at.unwrap_or_else(|| Duration::from_nanos(plumb_net::clock::realtime_ns()));
                    counter.count(header, datagram.len() as u64, at);
                    if !shared.carries(datagram.len()) {
                        return counted(counter, omitted);
                    }
                }
            }
            Err(error) if is_momentary(&error) => {
                let _ = socket.wait_readable(LOOK);
            }
            Err(_) => break,
        }
    }
    counted(counter, omitted)
}

fn counted(counter: Counter, omitted: Option<Counter>) -> StreamResults {
    let omitted = omitted.unwrap_or(counter);
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    StreamResults {
        bytes: counter.bytes.saturating_sub(omitted.bytes) as f64,
        retransmits: -1,
        jitter: counter.jitter_s,
        errors: number(counter.lost),
        omitted_errors: number(omitted.lost),
        packets: number(counter.packets),
        omitted_packets: number(omitted.packets),
        ..StreamResults::default()
    }
}

/// Sends at the rate until the test is over, within [`LOOK`] of that.
fn send(socket: &BulkSocket, test: &Test, shared: &Shared) -> StreamResults {
    let begun = Instant::now();
    let mut datagram = vec![0; test.block_bytes as usize];
    let each_s = test
        .rate_bps
        .map_or(0.0, |bps| datagram.len() as f64 * 8.0 / bps as f64);
    let (mut sent, mut omitted) = (0u64, None);
    'test: while !shared.is_over() {
        let elapsed = begun.elapsed();
        if omitted.is_none() && elapsed >= shared.omit {
            omitted = Some(sent);
        }
        let due_s = sent as f64 * each_s - elapsed.as_secs_f64();
        if due_s > 0.0 {
            sleep(LOOK.min(Duration::try_from_secs_f64(due_s).unwrap_or(LOOK)));
            continue;
        }
        for _ in 0..test.burst.clamp(1, AT_ONCE) {
            let header = Header {
                sent: Duration::from_nanos(plumb_net::clock::realtime_ns()),
                number: sent + 1,
            };
            header.write(test.has_long_counters, &mut datagram);
            match socket.send(&datagram) {
                Ok(_) => sent += 1,
                Err(error) if is_momentary(&error) => {
                    let _ = socket.wait_writable(LOOK);
                    break;
                }
                Err(_) => break 'test,
            }
            if !shared.carries(datagram.len()) {
                break 'test;
            }
        }
    }
    let omitted = omitted.unwrap_or(sent);
    let number = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    StreamResults {
        bytes: (sent - omitted) as f64 * datagram.len() as f64,
        retransmits: -1,
        packets: number(sent),
        omitted_packets: number(omitted),
        ..StreamResults::default()
    }
}

/// Whether the next call may do what this one did not: no room or nothing there for now, or an error that the far end's
/// machine reported, whose program may not have opened its socket yet.
fn is_momentary(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::WouldBlock | Kind::Interrupted | Kind::ConnectionRefused
    )
}
