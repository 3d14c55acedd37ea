//! How the thread of one direction waits for the next departure, the next packet, or a change of its settings. When it
//! waits is decided in `busy_wait.rs`.
//!
//! The timer stays set while packets come and go: to set it for each anew would cost more than
//! being woken.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::EventFd;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use plumb_link::time::Time;
use plumb_net::clock;
use plumb_net::tun::Tun;

use super::busy_wait::{BusyWait, CROWDED_REST, Next, REST};
use super::contention::{Contention, Member};
use crate::epoch::Epoch;

/// What the thread does between two waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn {
    epoch: Epoch,
    /// The time of all that is done in it, where time stands meanwhile.
    stands_at: Option<Time>,
    /// Whether packets may wait at the device.
    pub(super) has_packets: bool,
}

impl Turn {
    /// One in which time passes.
    pub(super) fn real(epoch: Epoch) -> Self {
        Self {
            epoch,
            stands_at: None,
            has_packets: true,
        }
    }

    pub(super) fn now(&self) -> Time {
        self.stands_at.unwrap_or_else(|| self.epoch.now())
    }
}

/// The thread's alarm clock.
pub(super) struct Waiter {
    epoch: Epoch,
    timer: TimerFd,
    /// What the timer is set to.
    alarm: Option<Time>,
    pace: BusyWait,
    /// Whether each wait is a sleep: where time is virtual it stands while a thread looks for work.
    sleeps: bool,
    contention: Member,
    /// When the thread last woke, or was asked to wait and did not.
    woke: Time,
}

impl Waiter {
    /// For a thread that keeps the time of `epoch`.
    pub(super) fn new(epoch: Epoch, contention: &Contention) -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        Ok(Self {
            epoch,
            timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?,
            alarm: None,
            pace: BusyWait::new(Duration::ZERO),
            sleeps: clock::is_virtual(),
            contention: contention.join(),
            woke: epoch.now(),
        })
    }

    /// Measures how late sleeps end here, at the thread's own priority.
    pub(super) fn learn_pace(&mut self, from: &Tun, wake: &EventFd) {
        if self.sleeps {
            return;
        }
        let mut late: [Duration; 5] = std::array::from_fn(|_| {
            let until = self.epoch.now() + REST;
            self.sleep(Some(until), from, PollFlags::empty(), wake);
            self.woke - until
        });
        late.sort_unstable();
        let [_, _, median, ..] = late;
        self.pace = BusyWait::new(median);
    }

    /// Returns when there may be something to do: `next` is due or nearly, a packet waits at `from` (`more`: it may
    /// already), or another thread has written to `wake`.
    pub(super) fn wait(
        &mut self,
        next: Option<Time>,
        more: bool,
        from: &Tun,
        wake: &EventFd,
    ) -> Turn {
        if self.sleeps {
            return self.sleep_virtually(next, from, wake);
        }
        self.wait_or_work(next, more, from, wake);
        Turn::real(self.epoch)
    }

    /// Every system call costs where time is virtual, the clock's too, and none is late: one sleep and one look at the
    /// clock for each turn, and no read of a device that has nothing.
    fn sleep_virtually(&mut self, next: Option<Time>, from: &Tun, wake: &EventFd) -> Turn {
        let left = next.map(|next| TimeSpec::from_duration(next - self.woke));
        let mut fds = [
            PollFd::new(wake.as_fd(), PollFlags::POLLIN),
            PollFd::new(from.as_fd(), PollFlags::POLLIN),
        ];
        let _ = ppoll(&mut fds, left, None);
        let [called, has_packets] = fds.map(|fd| fd.any().unwrap_or(true));
        if called {
            let _ = wake.read();
        }
        self.woke = self.epoch.now();
        Turn {
            epoch: self.epoch,
            stands_at: Some(self.woke),
            has_packets,
        }
    }

    fn wait_or_work(&mut self, next: Option<Time>, more: bool, from: &Tun, wake: &EventFd) {
        let now = self.epoch.now();
        let left = next.map(|next| next - now);
        let at_work = more || left.is_some_and(|left| left <= CROWDED_REST);
        let room = self.contention.room(at_work);
        match self.pace.turn(now - self.woke, left, more, room) {
            Next::Go => self.woke = now,
            Next::Sleep => {
                self.sleep(next, from, PollFlags::POLLIN, wake);
                self.pace.slept(self.woke - now);
            }
            Next::Rest(rest) => {
                self.sleep(Some(now + rest), from, PollFlags::empty(), wake);
                self.pace.rested();
            }
        }
    }

    fn sleep(&mut self, until: Option<Time>, from: &Tun, packets: PollFlags, wake: &EventFd) {
        if self.set_alarm(until).is_ok() {
            let mut fds = [
                PollFd::new(wake.as_fd(), PollFlags::POLLIN),
                PollFd::new(self.timer.as_fd(), PollFlags::POLLIN),
                PollFd::new(from.as_fd(), packets),
            ];
            // An interrupted or failed wait ends early, which the loop does not mind.
            let ready = ppoll(&mut fds, None, None).unwrap_or(0);
            // Most waits end by the clock or with a packet: then this would be a system call
            // for nothing.
            let called = fds.first().and_then(PollFd::any).unwrap_or(true);
            if ready > 0 && called {
                let _ = wake.read();
            }
        }
        self.woke = self.epoch.now();
    }

    /// Sets the timer, which is readable once the time has come until it is set anew.
    fn set_alarm(&mut self, at: Option<Time>) -> io::Result<()> {
        if at == self.alarm {
            return Ok(());
        }
        match at {
            Some(at) => {
                let at = TimeSpec::from_duration(self.epoch.monotonic(at));
                let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
                self.timer.set(Expiration::OneShot(at), flags)?;
            }
            None => self.timer.unset()?,
        }
        self.alarm = at;
        Ok(())
    }
}
