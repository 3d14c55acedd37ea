//! One sending stream: departures on a schedule that waits for nothing. What could not leave in
//! time is left out and counted, never caught up.

use std::io::{self, ErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use plumb_model::results::udp::UdpSender;
use plumb_model::summary::Summary;
use plumb_net::bulk::{Batch, BulkSocket};
use plumb_net::clock::{is_virtual, monotonic_ns, sleep_until};
use plumb_net::datagram::set_exact_timers;
use plumb_wire::native::control::flow::udp::UdpFlow;
use plumb_wire::native::control::report::udp::UdpSenderLog;
use plumb_wire::native::datagram::{Datagram, HEADER_BYTES, Tag};
use plumb_wire::native::spec::{END_INTERVAL, LINGER};

use super::clock::Clock;
use super::marks::Marks;
use super::schedule::Schedule;
use crate::phase_state::{POLL_INTERVAL, Stage};

/// The last part of each wait is spent looking at the clock: a sleeping thread wakes up so much
/// late on a machine that saves power. It is the most that one packet costs of a processor.
const SPIN_NS: u64 = 60_000;

/// A stream's schedule begins when its thread runs, and so long after its phase at the latest: slots
/// that passed before a busy machine got to it count as missed, or its rate would seem the path's.
const BEGINS_WITHIN: Duration = Duration::from_millis(1);

/// ICMP errors after which the far end is taken to be gone, or, where no receiver is needed, the packet is given up:
/// one may be about anything.
const MOST_UNREACHABLE: u32 = 16;

/// A stream to send.
pub(super) struct Sending {
    pub(super) number: u32,
    pub(super) flow: UdpFlow,
    pub(super) marks: Marks,
    /// How long its schedule lasts.
    pub(super) duration: Duration,
}

impl Sending {
    /// Sends until the schedule or the stage is over or the far end is gone, says so until that
    /// is answered, and returns within [`LINGER`] of its end. Adds what was sent to `sent_bytes`.
    pub(super) fn run(
        self,
        socket: &BulkSocket,
        sent_bytes: &AtomicU64,
        stage: &Stage,
    ) -> UdpSenderLog {
        let clock = Clock::start();
        let mut unseen = |_: &UdpSender| {};
        let mut trains = Trains::new(socket, &self, sent_bytes, &mut unseen);
        // Without it sleeps end 50 µs late; it cannot be refused.
        let _ = set_exact_timers();
        let ended = match Schedule::of(&self.flow) {
            Some(schedule) => trains.on_schedule(schedule, &clock, stage),
            None => trains.at_once(&clock, stage),
        };
        let ended = ended
            .err()
            .and_then(|error| stage.ended(trains.explain(&error)));
        if let Some(tag) = self.marks.with_end() {
            say_end(socket, &tag, trains.sender.sent, &clock, stage);
        }
        UdpSenderLog {
            stream: self.number,
            sender: UdpSender {
                lateness_s: trains.lateness.distribution(),
                ..trains.sender
            },
            clock_stepped: clock.stepped(),
            ended,
        }
    }
}

impl Sending {
    /// Sends to any address, on the schedule alone: no receiver is needed, and none hears of the end. `left_out` is
    /// shown what was sent whenever a packet that was due was not.
    pub(super) fn unheard(
        self,
        socket: &BulkSocket,
        stage: &Stage,
        left_out: &mut dyn FnMut(&UdpSender),
    ) -> io::Result<UdpSender> {
        let sent_bytes = AtomicU64::new(0);
        let mut trains = Trains::new(socket, &self, &sent_bytes, left_out);
        trains.is_heard = false;
        let _ = set_exact_timers();
        if let Some(schedule) = Schedule::of(&self.flow) {
            trains.on_schedule(schedule, &Clock::start(), stage)?;
        }
        Ok(trains.sender)
    }
}

/// What a send came to.
enum Sent {
    /// The kernel took it.
    Taken,
    /// The kernel has no room or, where no receiver is needed, no route.
    Full,
    /// There is nothing more to send: the budget is spent.
    Spent,
}

/// Departures that leave in one send.
struct Trains<'a> {
    socket: &'a BulkSocket,
    flow: &'a UdpFlow,
    duration: Duration,
    marks: Marks,
    sent_bytes: &'a AtomicU64,
    buffer: Vec<u8>,
    sender: UdpSender,
    lateness: Summary,
    unreachable: u32,
    /// Whether a receiver is needed: without one, the stream ends.
    is_heard: bool,
    /// Is shown what was sent whenever a packet that was due was not.
    left_out: &'a mut dyn FnMut(&UdpSender),
}

impl<'a> Trains<'a> {
    fn new(
        socket: &'a BulkSocket,
        sending: &'a Sending,
        sent_bytes: &'a AtomicU64,
        left_out: &'a mut dyn FnMut(&UdpSender),
    ) -> Self {
        let flow = &sending.flow;
        let segments = usize::from(flow.gso.unwrap_or(1));
        let size = usize::from(flow.largest_bytes()) * segments;
        Self {
            socket,
            flow,
            duration: sending.duration,
            marks: sending.marks,
            sent_bytes,
            buffer: crate::tcp::payload(size)
                .get(..size)
                .unwrap_or_default()
                .to_vec(),
            sender: UdpSender::default(),
            lateness: Summary::new(),
            unreachable: 0,
            is_heard: true,
            left_out,
        }
    }

    fn segments(&self) -> u64 {
        u64::from(self.flow.gso.unwrap_or(1))
    }

    /// Departures at their times, until the duration is over, the silence included that a pattern may end
    /// in. A train leaves when its first packet is due. Each round looks at the clock and passes over what
    /// is too late, so the rounds end with the stage whatever the pattern says.
    fn on_schedule(
        &mut self,
        mut schedule: Schedule,
        clock: &Clock,
        stage: &Stage,
    ) -> io::Result<()> {
        let tolerance = Schedule::tolerance(self.flow).as_nanos() as u64 * self.segments();
        let duration_ns = self.duration.as_nanos() as u64;
        let mut over_ns = None;
        let held_up = stage.started.elapsed().saturating_sub(BEGINS_WITHIN);
        let started_ns = monotonic_ns().saturating_sub(held_up.as_nanos() as u64);
        loop {
            let now_ns = over_at(stage, &mut over_ns).unwrap_or_else(monotonic_ns);
            // What can no longer leave in time is counted, not walked through.
            let gone_ns = (now_ns.saturating_sub(started_ns) + 1).saturating_sub(tolerance);
            self.miss(schedule.skip(gone_ns.min(duration_ns)));
            let first = schedule.departure();
            // A later one is not waited for longer than that.
            let due_ns = started_ns.saturating_add(first.due_ns.min(duration_ns));
            let is_due = due_ns <= now_ns;
            let now_ns = if is_due {
                now_ns
            } else {
                match wait_until(due_ns, stage, &mut over_ns) {
                    Some(now_ns) => now_ns,
                    None => return Ok(()),
                }
            };
            if first.due_ns >= duration_ns {
                return Ok(());
            }
            let late_ns = now_ns - due_ns;
            // What was due before is not too late, or it would have been passed over: a host that is slower
            // than its schedule sends what it can.
            if !is_due && late_ns >= tolerance {
                self.miss(self.segments());
                continue;
            }
            match self.send(first.payload_bytes, clock.at_monotonic(now_ns), stage)? {
                Sent::Taken => self.lateness.record(late_ns, 1),
                Sent::Full => {
                    self.sender.refused += self.segments();
                    (self.left_out)(&self.sender);
                }
                Sent::Spent => return Ok(()),
            }
        }
    }

    /// Packets were due that are too late to be sent.
    fn miss(&mut self, packets: u64) {
        if packets > 0 {
            self.sender.missed = self.sender.missed.saturating_add(packets);
            (self.left_out)(&self.sender);
        }
    }

    /// As fast as the kernel takes them.
    fn at_once(&mut self, clock: &Clock, stage: &Stage) -> io::Result<()> {
        let until_ns = monotonic_ns() + self.duration.as_nanos() as u64;
        loop {
            let now_ns = monotonic_ns();
            if now_ns >= until_ns || stage.is_over() {
                return Ok(());
            }
            match self.send(self.flow.payload_bytes, clock.at_monotonic(now_ns), stage)? {
                Sent::Taken => {}
                Sent::Full => {
                    self.socket.wait_writable(POLL_INTERVAL)?;
                }
                Sent::Spent => return Ok(()),
            }
        }
    }

    /// Sends a train of packets of that size.
    fn send(&mut self, payload_bytes: u16, sent_ns: i64, stage: &Stage) -> io::Result<Sent> {
        let size = usize::from(payload_bytes).max(HEADER_BYTES);
        let segments = self.segments();
        let bytes = size as u64 * segments;
        let granted = stage.budget.reserve(bytes);
        if granted < bytes {
            stage.budget.give_back(granted);
            return Ok(Sent::Spent);
        }
        let train = self.buffer.get_mut(..bytes as usize).unwrap_or_default();
        for (datagram, sequence) in train.chunks_exact_mut(size).zip(self.sender.sent..) {
            self.marks.write(sequence, sent_ns, datagram);
        }
        if !self.is_heard {
            self.unreachable = 0;
        }
        loop {
            let error = match self.socket.send(train) {
                Ok(_) => {
                    self.sender.sent += segments;
                    self.sender.sent_bytes += bytes;
                    self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
                    return Ok(Sent::Taken);
                }
                Err(error) => error,
            };
            if is_unreachable(&error) && self.unreachable < MOST_UNREACHABLE {
                // It is about an earlier packet, and this one has not been sent.
                self.unreachable += 1;
            } else if is_full(&error) || is_unreachable(&error) && !self.is_heard {
                stage.budget.give_back(bytes);
                return Ok(Sent::Full);
            } else if error.kind() != ErrorKind::Interrupted {
                stage.budget.give_back(bytes);
                return Err(error);
            }
        }
    }

    /// Why nothing more could be sent.
    fn explain(&self, error: &io::Error) -> String {
        let size = u32::from(self.flow.largest_bytes()) + self.socket.header_bytes();
        match (error.raw_os_error(), self.socket.mtu_bytes()) {
            (Some(EMSGSIZE | EINVAL), Ok(mtu)) if size > mtu => format!(
                "packets of {size} bytes with their headers are above the MTU of {mtu} bytes; the largest --size that fits is {}",
                mtu.saturating_sub(self.socket.header_bytes())
            ),
            _ if is_unreachable(error) => {
                format!("the far end does not take it any more ({error})")
            }
            _ => error.to_string(),
        }
    }
}

/// errno(3): larger than the socket sends.
const EMSGSIZE: i32 = 90;
/// errno(3): what a train gets whose packets are larger than the MTU.
const EINVAL: i32 = 22;
/// errno(3): our own queue is full.
const ENOBUFS: i32 = 105;

fn is_full(error: &io::Error) -> bool {
    error.kind() == ErrorKind::WouldBlock || error.raw_os_error() == Some(ENOBUFS)
}

fn is_unreachable(error: &io::Error) -> bool {
    use ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionRefused | Kind::HostUnreachable | Kind::NetworkUnreachable
    )
}

/// When the stage was first seen to be over, which `over_ns` keeps.
fn over_at(stage: &Stage, over_ns: &mut Option<u64>) -> Option<u64> {
    if over_ns.is_none() && stage.is_over() {
        *over_ns = Some(monotonic_ns());
    }
    *over_ns
}

/// Waits until CLOCK_MONOTONIC reaches `due_ns`, and returns what it is then; `None` for what is due after the stage
/// was seen to be over, since `over_ns`.
fn wait_until(due_ns: u64, stage: &Stage, over_ns: &mut Option<u64>) -> Option<u64> {
    let poll_ns = POLL_INTERVAL.as_nanos() as u64;
    // Virtual time passes only in sleeps, which end on time.
    let awake_ns = if is_virtual() { 0 } else { SPIN_NS };
    loop {
        if over_at(stage, over_ns).is_some_and(|over_ns| due_ns > over_ns) {
            return None;
        }
        let now_ns = monotonic_ns();
        if now_ns >= due_ns {
            return Some(now_ns);
        }
        let left_ns = due_ns - now_ns;
        if left_ns > awake_ns {
            sleep_until((due_ns - awake_ns).min(now_ns + poll_ns));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// Says how many packets there were, until that is answered or [`LINGER`] is over.
fn say_end(socket: &BulkSocket, tag: &Tag, sent: u64, clock: &Clock, stage: &Stage) {
    let until = Instant::now() + LINGER;
    let mut batch = Batch::new(16, HEADER_BYTES);
    while Instant::now() < until && !stage.is_abandoned() {
        // It is retransmitted, so that no single failure matters.
        let _ = socket.send(&tag.end(sent, clock.now()));
        let answer_by = Instant::now() + END_INTERVAL;
        while let Some(left) = answer_by.checked_duration_since(Instant::now()) {
            if !socket.wait_readable(left).unwrap_or(false) {
                continue;
            }
            if socket.receive(&mut batch).is_err() {
                // The pending ICMP error has been reported by this call.
                std::thread::sleep(Duration::from_millis(1));
                continue;
            }
            let mut answers = batch.messages().map(|message| tag.parse(message.payload));
            if answers.any(|datagram| datagram == Some(Datagram::EndAnswer)) {
                return;
            }
        }
    }
}
