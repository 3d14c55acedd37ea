//! How the thread of one direction waits for the next departure, the next packet, or whoever
//! steers it. When it does is `busy_wait.rs`.
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
use plumb_net::tun::Tun;

use super::busy_wait::{BusyWait, CROWDED_REST, REST, Turn};
use super::contention::{Contention, Member};
use crate::epoch::Epoch;

/// The thread's alarm clock.
pub(super) struct Waiter {
    epoch: Epoch,
    timer: TimerFd,
    /// What the timer is set to.
    alarm: Option<Time>,
    pace: BusyWait,
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
            contention: contention.join(),
            woke: epoch.now(),
        })
    }

    /// Measures how late sleeps end here, at the thread's own priority.
    pub(super) fn learn_pace(&mut self, from: &Tun, wake: &EventFd) {
        let mut late: [Duration; 5] = std::array::from_fn(|_| {
            let until = self.epoch.now() + REST;
            self.sleep(Some(until), from, PollFlags::empty(), wake);
            self.woke - until
        });
        late.sort_unstable();
        let [_, _, median, ..] = late;
        self.pace = BusyWait::new(median);
    }

    /// Returns when there may be something to do: `next` is due or nearly, a packet waits at
    /// `from` (`more`: it may already), or somebody has written to `wake`.
    pub(super) fn wait(&mut self, next: Option<Time>, more: bool, from: &Tun, wake: &EventFd) {
        let now = self.epoch.now();
        let left = next.map(|next| next - now);
        let at_work = more || left.is_some_and(|left| left <= CROWDED_REST);
        let room = self.contention.room(at_work);
        match self.pace.turn(now - self.woke, left, more, room) {
            Turn::Go => self.woke = now,
            Turn::Sleep => {
                self.sleep(next, from, PollFlags::POLLIN, wake);
                self.pace.slept(self.woke - now);
            }
            Turn::Rest(rest) => {
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
