//! Looks at all streams of one end every 100 ms, on an absolute schedule; more rarely where there would be too many samples.

use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use plumb_net::tcp::{TcpInfo, socket_memory, tcp_info};
use plumb_wire::native::control::report::{Count, TcpSample};
use plumb_wire::native::spec::SAMPLE_INTERVAL;

/// Samples of all streams that one end keeps: ten streams for ten minutes at [`SAMPLE_INTERVAL`]. At 216 bytes a sample that
/// is 13 MB, so that a responder keeps to its bound of memory whatever number of streams a client asks for.
const MOST_SAMPLES: usize = 60_000;

/// A sending stream: its socket, and the microseconds that its sender waited for the send
/// buffer.
pub(super) type Sending = (Arc<TcpStream>, Arc<AtomicU64>);

/// A receiving stream: its socket, and what its receiver has counted.
pub(super) type Counted = (Arc<TcpStream>, Arc<AtomicU64>);

/// What all streams together had carried at the latest sample.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Looked {
    /// When it was, in seconds since the start of the phase.
    pub t_s: f64,
    /// Payload sent and acknowledged.
    pub acked_bytes: u64,
    pub received_bytes: u64,
}

/// What was seen of one receiving stream.
#[derive(Debug, Default)]
pub(super) struct ReceiverRecord {
    pub(super) counts: Vec<Count>,
    /// Largest limit of its receive buffer.
    pub(super) receive_buffer_bytes: Option<u64>,
}

/// What was seen of all streams, in their order.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) senders: Vec<Vec<TcpSample>>,
    pub(super) receivers: Vec<ReceiverRecord>,
}

/// What looks at the streams of one end.
#[derive(Debug)]
pub(super) struct Sampler {
    senders: Vec<Sending>,
    receivers: Vec<Counted>,
    started: Instant,
    looked: Arc<Mutex<Looked>>,
    record: Record,
    interval: Duration,
}

impl Record {
    fn samples(&self) -> usize {
        let sent: usize = self.senders.iter().map(Vec::len).sum();
        let received: usize = self.receivers.iter().map(|seen| seen.counts.len()).sum();
        sent + received
    }

    /// Keeps the first sample of each stream and every second one after it.
    fn halve(&mut self) {
        self.senders.iter_mut().for_each(every_second);
        for seen in &mut self.receivers {
            every_second(&mut seen.counts);
        }
    }
}

fn every_second<T>(samples: &mut Vec<T>) {
    let mut kept = false;
    samples.retain(|_| {
        kept = !kept;
        kept
    });
}

impl Sampler {
    /// Takes the first sample, which must be before the first byte: all later ones are compared with it.
    pub(super) fn begin(
        senders: Vec<Sending>,
        receivers: Vec<Counted>,
        started: Instant,
        looked: Arc<Mutex<Looked>>,
    ) -> Self {
        let record = Record {
            senders: senders.iter().map(|_| Vec::new()).collect(),
            receivers: receivers
                .iter()
                .map(|_| ReceiverRecord::default())
                .collect(),
        };
        let mut this = Self {
            senders,
            receivers,
            started,
            looked,
            record,
            interval: SAMPLE_INTERVAL,
        };
        this.look();
        this
    }

    /// Samples every [`SAMPLE_INTERVAL`] after the start, whenever `now` says so, and once
    /// more when the other end of `now` is dropped; returns at once then. A sample that comes late
    /// is taken late, and those that it missed are not made up for. At [`MOST_SAMPLES`] every second one is dropped, and
    /// the interval doubles.
    pub(super) fn run(mut self, now: &Receiver<()>) -> Record {
        let mut due = self.started;
        loop {
            while due <= Instant::now() {
                due += self.interval;
            }
            let wait = due.saturating_duration_since(Instant::now());
            let last = matches!(now.recv_timeout(wait), Err(RecvTimeoutError::Disconnected));
            self.look();
            if last {
                return self.record;
            }
        }
    }

    fn look(&mut self) {
        if self.record.samples() >= MOST_SAMPLES {
            self.record.halve();
            self.interval *= 2;
        }
        let record = &mut self.record;
        let t_s = sample(&self.senders, &self.receivers, self.started, record);
        *self.looked.lock().unwrap_or_else(PoisonError::into_inner) = Looked {
            t_s,
            acked_bytes: acked_bytes(record),
            received_bytes: received_bytes(record),
        };
    }
}

fn sample(
    senders: &[Sending],
    receivers: &[Counted],
    started: Instant,
    record: &mut Record,
) -> f64 {
    // Whole microseconds keep the numbers short on the wire.
    let t_s = started.elapsed().as_micros() as f64 / 1e6;
    // The counters first: they go on while the sockets are asked.
    for ((_, counter), seen) in receivers.iter().zip(&mut record.receivers) {
        seen.counts.push(Count {
            t_s,
            bytes: counter.load(Ordering::Relaxed),
            ..Count::default()
        });
    }
    for ((socket, waited), samples) in senders.iter().zip(&mut record.senders) {
        if let Ok(info) = tcp_info(socket) {
            let sndbuf = socket_memory(socket).ok().map(|memory| memory.sndbuf_bytes);
            let mut sample = tcp_sample(t_s, &info, sndbuf);
            // Each sees waits that the other does not; none sees one that was not there.
            sample.sndbuf_limited_us = sample.sndbuf_limited_us.max(waited.load(Ordering::Relaxed));
            samples.push(sample);
        }
    }
    for ((socket, _), seen) in receivers.iter().zip(&mut record.receivers) {
        let rcvbuf = socket_memory(socket)
            .ok()
            .map(|memory| u64::from(memory.rcvbuf_bytes));
        seen.receive_buffer_bytes = seen.receive_buffer_bytes.max(rcvbuf);
    }
    t_s
}

/// What a socket is doing.
pub(crate) fn tcp_sample(t_s: f64, info: &TcpInfo, sndbuf: Option<u32>) -> TcpSample {
    TcpSample {
        t_s,
        bytes_acked: info.bytes_acked,
        bytes_sent: info.bytes_sent,
        in_flight_bytes: info.in_flight_bytes(),
        sacked_bytes: u64::from(info.sacked_segments) * u64::from(info.snd_mss_bytes),
        notsent_bytes: u64::from(info.notsent_bytes),
        cwnd_bytes: u64::from(info.cwnd_segments) * u64::from(info.snd_mss_bytes),
        ssthresh_bytes: info
            .ssthresh_segments
            .map(|segments| u64::from(segments) * u64::from(info.snd_mss_bytes)),
        pacing_bps: info.pacing_bytes_per_s.map(|rate| rate.saturating_mul(8)),
        delivery_bps: info.delivery_bytes_per_s.saturating_mul(8),
        srtt_us: u64::from(info.srtt_us),
        min_rtt_us: info.min_rtt_us.map(u64::from),
        retransmits: u64::from(info.total_retransmits),
        twice: info.twice_segments.map(u64::from),
        snd_wnd_bytes: info.snd_wnd_bytes.map(u64::from),
        sndbuf_bytes: sndbuf.map(u64::from),
        busy_us: info.busy_us,
        rwnd_limited_us: info.rwnd_limited_us,
        sndbuf_limited_us: info.sndbuf_limited_us,
    }
}

fn received_bytes(record: &Record) -> u64 {
    let last = |seen: &ReceiverRecord| seen.counts.last().map(|count| count.bytes);
    record.receivers.iter().filter_map(last).sum()
}

/// Payload acknowledged since the first sample.
fn acked_bytes(record: &Record) -> u64 {
    let of = |samples: &Vec<TcpSample>| {
        let (first, last) = (samples.first()?, samples.last()?);
        Some(last.bytes_acked.saturating_sub(first.bytes_acked))
    };
    record.senders.iter().filter_map(of).sum()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::mpsc;

    use plumb_wire::native::spec::MAX_DURATION;

    #[test]
    fn samples_are_halved_where_there_are_too_many() {
        let (near, _far) = connected();
        let receivers = (0..128)
            .map(|_| (Arc::clone(&near), Arc::default()))
            .collect();
        let mut sampler = Sampler::begin(Vec::new(), receivers, Instant::now(), Arc::default());
        let mut passed = Duration::ZERO;
        while passed < MAX_DURATION {
            sampler.look();
            passed += sampler.interval;
        }
        assert!(sampler.record.samples() < MOST_SAMPLES + 128);
        // 128 streams for 600 s are 12.8 times too many.
        assert_eq!(sampler.interval, SAMPLE_INTERVAL * 16);
        let times: Vec<_> = sampler.record.receivers[0]
            .counts
            .iter()
            .map(|count| count.t_s)
            .collect();
        assert!(times.is_sorted());
    }

    fn connected() -> (Arc<TcpStream>, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let near = Arc::new(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let far = listener.accept().unwrap().0;
        (near, far)
    }

    #[test]
    fn all_that_was_sent_counts_however_late_the_sampler_gets_to_run() {
        let (near, mut far) = connected();
        let looked = Arc::<Mutex<Looked>>::default();
        let senders = vec![(Arc::clone(&near), Arc::default())];
        let sampler = Sampler::begin(senders, Vec::new(), Instant::now(), Arc::clone(&looked));
        (&*near).write_all(&[0; 50_000]).unwrap();
        far.read_exact(&mut [0; 50_000]).unwrap();
        far.write_all(&[0]).unwrap();
        // Brings the acknowledgement of all.
        (&*near).read_exact(&mut [0]).unwrap();
        let (sample, now) = mpsc::channel();
        drop(sample);
        assert_eq!(sampler.run(&now).senders[0].len(), 2);
        assert_eq!(looked.lock().unwrap().acked_bytes, 50_000);
    }
}
