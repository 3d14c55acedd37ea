//! Streams of TCP: the load's own senders and receivers, and what they recorded in iperf3's terms.

use std::net::TcpStream;
use std::time::Duration;

use plumb_load::TcpLoad;
use plumb_load::logs::count_at;
use plumb_load::streams::Stream as LoadStream;
use plumb_load::traffic::{Traffic, TrafficPlan};
use plumb_net::tcp;
use plumb_wire::iperf3::{ErrorCode, Results, StreamResults, Test, stream_id};
use plumb_wire::native::control::flow::TcpFlow;
use plumb_wire::native::control::report::{Count, ReceiverLog, SenderLog, TcpSample};

use super::control::Ended;
use super::running::Running;
use super::sessions::Stream;

/// ENOENT: this kernel lacks the congestion control. iperf3's server warns, and continues with the default.
const NO_SUCH: i32 = 2;

/// The connections of a test, while it runs.
#[derive(Debug)]
pub(super) struct Connections {
    traffic: Traffic,
    /// How many the client sends on; they come first.
    receives: u32,
    /// Kept until the test is over.
    _sockets: Vec<TcpStream>,
}

impl Connections {
    /// # Errors
    /// Where a stream cannot have what the client asks for, or this machine gives no more threads.
    pub(super) fn start(
        test: &Test,
        streams: Vec<Stream>,
        byte_limit: Option<u64>,
        grace: Duration,
    ) -> Result<Self, Ended> {
        let (mut incoming, mut outgoing) = (Vec::new(), Vec::new());
        let mut kept = Vec::new();
        let sockets = streams.into_iter().filter_map(|stream| match stream {
            Stream::Tcp(socket) => Some(socket),
            Stream::Udp(_) => None,
        });
        for (socket, index) in sockets.zip(0..) {
            let is_received = index < test.receives;
            let flow = flow(test, &socket)?;
            kept.extend(socket.try_clone());
            let stream = LoadStream::Tcp(TcpLoad {
                number: if is_received {
                    index
                } else {
                    index - test.receives
                },
                flow,
                socket,
                tls: None,
                framing: None,
                file: None,
            });
            match is_received {
                true => incoming.push(stream),
                false => outgoing.push(stream),
            }
        }
        let traffic = Traffic::start(TrafficPlan {
            outgoing,
            incoming,
            far: None,
            quic: None,
            byte_limit,
            duration: test.lasts,
            longest: test.lasts + grace,
        });
        let traffic = traffic.map_err(|_| Ended::Refused(ErrorCode::CreateStream, 0))?;
        for socket in &kept {
            // The client reads on until it has the results, and takes a reset for an error.
            let _ = tcp::close_in_order(socket);
            if test.rate_bps.is_some() {
                // What waits here has not been sent at that rate.
                let _ = tcp::set_unsent_limit(socket, test.block_bytes);
            }
        }
        Ok(Self {
            traffic,
            receives: test.receives,
            _sockets: kept,
        })
    }
}

/// What a stream asks for, where it can be had.
fn flow(test: &Test, socket: &TcpStream) -> Result<TcpFlow, Ended> {
    let mut cc = tcp::congestion_control(socket).ok();
    if let Some(name) = &test.congestion {
        match tcp::set_congestion_control(socket, name) {
            Ok(()) => cc = Some(name.clone()),
            Err(error) => match error.raw_os_error().unwrap_or(0) {
                NO_SUCH => {}
                system => return Err(Ended::Refused(ErrorCode::CongestionControl, system)),
            },
        }
    }
    let flow = TcpFlow {
        cc,
        dscp: test.dscp,
        window_bytes: test.window_bytes,
        mss_bytes: test.mss_bytes,
        pacing_bps: test.rate_bps,
        write_bytes: Some(test.block_bytes),
        no_delay: test.no_delay,
        ..TcpFlow::default()
    };
    Ok(flow)
}

impl Running for Connections {
    fn carried_bytes(&self) -> u64 {
        self.traffic.carried_bytes()
    }

    fn finish(self: Box<Self>, omit: Duration) -> Results {
        let report = self.traffic.finish().report;
        let omit_s = omit.as_secs_f64();
        let counted_s = (report.elapsed_s - omit_s).max(0.0);
        let received = report.receivers.iter().map(|log| received(log, omit_s));
        let sent = report.senders.iter().map(|log| sent(log, omit_s));
        let number = |log: &ReceiverLog| log.tail.stream;
        let numbers = report.receivers.iter().map(number);
        let senders = report
            .senders
            .iter()
            .map(|log| self.receives + log.tail.stream);
        let streams = numbers.chain(senders).zip(received.chain(sent));
        let streams = streams.map(|(index, results)| StreamResults {
            id: stream_id(index).into(),
            end_time: counted_s,
            ..results
        });
        let cc = report.senders.first().map(|log| log.tail.cc.clone());
        let cpu = 100.0 * report.cpu_s / report.elapsed_s.max(f64::MIN_POSITIVE);
        Results {
            cpu_util_total: cpu,
            cpu_util_user: 0.0,
            cpu_util_system: cpu,
            sender_has_retransmits: if report.senders.is_empty() { -1 } else { 1 },
            congestion_used: cc.filter(|cc| !cc.is_empty()),
            server_output_text: None,
            streams: streams.collect(),
        }
    }
}

/// What came after what is omitted.
fn received(log: &ReceiverLog, omit_s: f64) -> StreamResults {
    StreamResults {
        bytes: grown(&log.counts, omit_s),
        retransmits: -1,
        ..StreamResults::default()
    }
}

/// What was handed to the kernel after what is omitted, and retransmitted.
fn sent(log: &SenderLog, omit_s: f64) -> StreamResults {
    let of = |count: fn(&TcpSample) -> u64| {
        let counts = log.samples.iter().map(|sample| Count {
            t_s: sample.t_s,
            bytes: count(sample),
            ..Count::default()
        });
        grown(&counts.collect::<Vec<_>>(), omit_s)
    };
    StreamResults {
        bytes: of(|s| s.bytes_acked + s.in_flight_bytes + s.notsent_bytes),
        retransmits: of(|s| s.retransmits).round() as i64,
        ..StreamResults::default()
    }
}

/// What was counted after what is omitted.
fn grown(counts: &[Count], omit_s: f64) -> f64 {
    let end = counts.last().map_or(0, |count| count.bytes) as f64;
    (end - count_at(counts, omit_s)).max(0.0)
}
