//! Moves the packets of one direction of a link: from a TUN device, through a chain of cells,
//! into another TUN device.
//!
//! The chain decides when each packet leaves; the driver only has to be there in time, and
//! keeps a record of how late it was.

mod busy_wait;
mod contention;
mod read_delay;
mod wait;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use nix::sys::eventfd::{EfdFlags, EventFd};
use plumb_link::chain::Chain;
use plumb_link::packet::Packet;
use plumb_link::time::Time;
use plumb_model::summary::Summary;
use plumb_net::clock::ThreadClock;
use plumb_net::sched::set_realtime;
use plumb_net::tun::{Entrance, Tun, VNET_HEADER_BYTES};
use plumb_wire::virtio::VirtioHeader;

pub(crate) use self::contention::Contention;
use self::read_delay::ReadDelay;
use self::wait::{Turn, Waiter};
use crate::buffers::Buffers;
use crate::epoch::Epoch;
use crate::observe::Tap;

/// Packets read before due ones are written, so that a flood on the way in does not hold up
/// what has to leave: a large segment takes about 30 µs to read.
const READ_BATCH: usize = 4;

/// How overdue a packet may be before the driver counts as behind: a tenth of the 10 ms that a
/// listener first notices, and half of what a probe in twenty may be off by.
const TOLERATED: Duration = Duration::from_millis(1);

/// Real-time priority, in the middle of the range of SCHED_FIFO (1 to 99): above every ordinary
/// thread, below whatever the machine's owner thinks more urgent.
const PRIORITY: i32 = 50;

/// One direction of a running link.
pub(crate) struct Driver {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    carried: Mutex<Carried>,
    wake: EventFd,
    stop: AtomicBool,
}

/// What the driver shares with the threads that control or read it.
pub(crate) struct Carried {
    pub(crate) chain: Chain,
    /// How long after their due time packets were written, and how long those that came then had
    /// waited to be read.
    pub(crate) lateness: Summary,
    /// Time in which a packet was overdue by more than [`TOLERATED`]: to be read, or to be written.
    pub(crate) behind: Duration,
    /// Until when [`Self::behind`] is counted.
    counted: Time,
    /// What waits to be read.
    unread: ReadDelay,
    /// Those who look on.
    taps: Vec<Tap>,
    /// Packets that the kernel did not take.
    pub(crate) write_errors: u64,
    /// Packets that were not IP, which no TUN device takes, or otherwise made no sense.
    pub(crate) unreadable: u64,
    /// Whether the thread runs with real-time priority.
    pub(crate) realtime: bool,
    /// The processor time of the thread.
    clock: Option<ThreadClock>,
    /// Whether the device that packets come from went away.
    pub(crate) stopped: bool,
}

impl Driver {
    /// Starts carrying packets read from `from`, whose `entrance` is its own, to `to`.
    ///
    /// The thread ends within one packet's time of [`Driver`] being dropped, or when the device
    /// goes away.
    pub(crate) fn start(
        name: &str,
        epoch: Epoch,
        contention: &Contention,
        chain: Chain,
        (from, entrance): (Arc<Tun>, Entrance),
        to: Arc<Tun>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            carried: Mutex::new(Carried {
                chain,
                lateness: Summary::new(),
                behind: Duration::ZERO,
                counted: Time::ZERO,
                unread: ReadDelay::new(TOLERATED),
                taps: Vec::new(),
                write_errors: 0,
                unreadable: 0,
                realtime: false,
                clock: None,
                stopped: false,
            }),
            wake: EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC)?,
            stop: AtomicBool::new(false),
        });
        let waiter = Waiter::new(epoch, contention)?;
        let (started, starts) = mpsc::sync_channel(1);
        let thread = thread::Builder::new().name(name.to_owned()).spawn({
            let shared = Arc::clone(&shared);
            move || {
                let realtime = set_realtime(PRIORITY).is_ok();
                let _ = started.send((realtime, ThreadClock::of_this_thread().ok()));
                carry(&shared, epoch, waiter, (&from, &entrance), &to);
            }
        })?;
        // Known from the start on, and not whenever the thread first runs.
        if let Ok((realtime, clock)) = starts.recv() {
            let mut carried = shared.lock();
            (carried.realtime, carried.clock) = (realtime, clock);
        }
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Looks at, or changes, what is being carried; the packets wait meanwhile.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut Carried) -> T) -> T {
        let result = work(&mut self.shared.lock());
        // What was changed may have something due earlier than the thread sleeps for.
        let _ = self.shared.wake.write(1);
        result
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        let _ = self.shared.wake.write(1);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Carried> {
        self.carried.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the packet's version field is 4 or 6.
fn is_ip(packet: &[u8]) -> bool {
    packet
        .first()
        .is_some_and(|first| matches!(first >> 4, 4 | 6))
}

fn carry(
    shared: &Shared,
    epoch: Epoch,
    mut waiter: Waiter,
    (from, entrance): (&Tun, &Entrance),
    to: &Tun,
) {
    let mut buffers = Buffers::new();
    waiter.learn_pace(from, &shared.wake);
    let mut turn = Turn::real(epoch);
    while !shared.stop.load(Ordering::Relaxed) {
        let (next, more) = {
            let mut carried = shared.lock();
            let Ok(more) = carried.take_in(&turn, from, &mut buffers) else {
                // Another program removed the device. Reading it again would only spin.
                carried.stopped = true;
                return;
            };
            if more {
                let now = turn.now();
                carried.unread.ask(now, |mark| entrance.put(mark).is_ok());
            }
            carried.put_out(&turn, from, to, &mut buffers);
            carried.tell_outcomes();
            (carried.chain.next_event(), more)
        };
        turn = waiter.wait(next, more, from, &shared.wake);
    }
}

impl Carried {
    /// Reads what waits at the device; true when there may be more.
    fn take_in(&mut self, turn: &Turn, from: &Tun, buffers: &mut Buffers) -> io::Result<bool> {
        if !turn.has_packets {
            self.unread.empty();
            return Ok(false);
        }
        let mut header = [0; VNET_HEADER_BYTES];
        for _ in 0..READ_BATCH {
            let Some(length) = from.read(&mut header, buffers.scratch())? else {
                self.unread.empty();
                return Ok(false);
            };
            let now = turn.now();
            if let Some(since) = self.unread.since() {
                self.overdue(since, now);
            }
            let data = buffers.scratch().get(..length).unwrap_or_default();
            if self.unread.read(now, data) {
                continue;
            }
            match VirtioHeader::parse(&header) {
                Ok(vnet) if is_ip(data) => {
                    let packet = Packet::new(buffers.take(length), vnet, now);
                    for tap in &mut self.taps {
                        tap.entered(now, &packet);
                    }
                    self.chain.enqueue(now, packet);
                }
                _ => self.unreadable += 1,
            }
        }
        Ok(true)
    }

    /// Writes what is due.
    fn put_out(&mut self, turn: &Turn, from: &Tun, to: &Tun, buffers: &mut Buffers) {
        while let Some((due, packet)) = self.chain.dequeue(turn.now()) {
            let left = turn.now();
            let to = if packet.back { from } else { to };
            if to.write(&packet.vnet.to_bytes(), &packet.data).is_err() {
                self.write_errors += 1;
                continue;
            }
            // A packet that met no cell is due when it was read.
            self.overdue(due, left);
            let late = left - due + self.unread.waited(left);
            let nanos = u64::try_from(late.as_nanos()).unwrap_or(u64::MAX);
            self.lateness.record(nanos, 1);
            self.chain.departed(&packet, left);
            for tap in &mut self.taps {
                tap.left(left, &packet);
            }
            buffers.give_back(packet.into_data());
        }
    }

    /// Counts the time from `due` to `now`, but for what is tolerated. Several packets may be overdue
    /// at once; the time counts once.
    fn overdue(&mut self, due: Time, now: Time) {
        let since = self.counted.max(due + TOLERATED);
        if now > since {
            self.behind += now - since;
            self.counted = now;
        }
    }

    /// Processor time that the thread has used, the kernel's in it included.
    pub(crate) fn cpu(&self) -> Option<Duration> {
        self.clock.and_then(ThreadClock::read)
    }

    /// Adds an observer from now on.
    pub(crate) fn add_tap(&mut self, tap: Tap) {
        self.chain.keep_outcomes(true);
        self.taps.push(tap);
    }

    /// Removes all observers: all of them saw the same packets.
    pub(crate) fn end_taps(&mut self) {
        self.tell_outcomes();
        self.taps.clear();
        self.chain.keep_outcomes(false);
    }

    /// Reports to those who look on what became of packets.
    fn tell_outcomes(&mut self) {
        if self.taps.is_empty() {
            return;
        }
        let (outcomes, missed) = self.chain.take_outcomes();
        for tap in &mut self.taps {
            if tap.wants_outcomes() {
                tap.outcomes(outcomes.clone(), missed);
            }
        }
        self.taps.retain(Tap::is_live);
        if self.taps.is_empty() {
            self.chain.keep_outcomes(false);
        }
    }
}
