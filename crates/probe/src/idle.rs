//! How long a silent connection is kept on the way: NATs and firewalls forget those that say nothing for
//! a while (RFC 5382, section 5, asks for two hours and four minutes; many give minutes). Where this end
//! speaks first after the silence, a NAT that gives it the same port again keeps the connection although it
//! had forgotten it; where the far end can be asked to, nothing forgotten gets through.
//!
//! Connections that are silent for different times are tried at once: in the first round for the longest
//! time asked for and its halves, in the second for times between the longest that was kept and the
//! shortest that was not.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use plumb_net::tcp::{ConnectError, TcpOptions, abort_on_close, connect, tcp_info};

/// Silences of the first round, each half of the one before.
const HALVES: u32 = 8;

/// Silences of the second round: they part what is between the bounds of the first in ninths.
const BETWEEN: u32 = 8;

/// How long an acknowledgement is waited for, in which TCP sends again some four times at short round
/// trips.
const PATIENCE: Duration = Duration::from_secs(2);

/// How often the end of a wait is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A byte of the far end that comes so much too soon is not that which ends the silence; its clock and
/// ours differ by less.
const TOO_SOON: Duration = Duration::from_millis(100);

/// Opens a connection on which the far end speaks first after a silence.
pub type OpenSilent<'a> = dyn Fn(Duration) -> Result<TcpStream, ConnectError> + Sync + 'a;

/// Who speaks first after the silence.
#[derive(Clone, Copy)]
pub enum Speaker<'a> {
    Us,
    /// The far end, on connections that are opened so.
    Them(&'a OpenSilent<'a>),
}

/// What became of a connection after its silence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum After {
    /// A byte came through: ours was acknowledged, or theirs is here.
    Kept,
    /// It was not, or a reset came after that time.
    Lost(Duration),
    /// The server had ended the connection by itself, after that time.
    Closed(Duration),
    /// Not tried to its end: a shorter silence was too long already, or it was stopped.
    Untried,
}

/// What the trials have shown so far. Pure: the trials themselves are the caller's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The longest silence that was kept.
    pub kept: Option<Duration>,
    /// The shortest that was not.
    pub lost: Option<Duration>,
    /// The shortest after which the server had closed.
    pub closed: Option<Duration>,
    /// How many were tried to their end.
    pub tried: u64,
}

impl Found {
    /// The silences to try first.
    pub fn first_round(longest: Duration) -> Vec<Duration> {
        (0..HALVES).map(|n| longest / (1 << n)).collect()
    }

    /// The silences to try then: none where nothing was lost, or the bounds are close.
    pub fn second_round(&self) -> Vec<Duration> {
        let from = self.kept.unwrap_or_default();
        match self.lost {
            Some(lost) if lost > from => {
                let step = (lost - from) / (BETWEEN + 1);
                (1..=BETWEEN).map(|n| from + step * n).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Takes in what became of a connection after that silence.
    pub fn learn(&mut self, silence: Duration, after: After) {
        match after {
            After::Kept => self.kept = self.kept.max(Some(silence)),
            After::Lost(when) => self.lost = Some(self.lost.map_or(when, |lost| lost.min(when))),
            After::Closed(when) => {
                self.closed = Some(self.closed.map_or(when, |closed| closed.min(when)));
            }
            After::Untried => return,
        }
        self.tried += 1;
    }
}

/// Tries how long connections to `address`, made as `options` ask, are kept that are silent for up to
/// `longest`. Ends within twice that time, or when `stop` is set.
///
/// # Errors
/// When there is no connection to begin with.
pub fn search(
    address: SocketAddr,
    options: &TcpOptions,
    longest: Duration,
    timeout: Duration,
    speaker: Speaker<'_>,
    stop: &AtomicBool,
) -> Result<Found, ConnectError> {
    // One that fails here would be no evidence later.
    abort_on_close(&connect(address, timeout, options)?)?;
    let open = |silence: Duration| match speaker {
        Speaker::Us => connect(address, timeout, options),
        Speaker::Them(open) => open(silence),
    };
    let theirs = matches!(speaker, Speaker::Them(_));
    let mut found = Found::default();
    for round in 0..2 {
        let silences = match round {
            0 => Found::first_round(longest),
            _ => found.second_round(),
        };
        // The shortest silence known to be too long, in ns: longer ones need not be waited for.
        let too_long = AtomicU64::new(u64::MAX);
        let learnt: Vec<_> = thread::scope(|scope| {
            let trials: Vec<_> = silences
                .iter()
                .map(|silence| {
                    let (too_long, open) = (&too_long, &open);
                    let trial = move || match open(*silence) {
                        Ok(stream) => trial(stream, *silence, theirs, too_long, stop),
                        Err(_) => After::Untried,
                    };
                    (*silence, scope.spawn(trial))
                })
                .collect();
            trials
                .into_iter()
                .map(|(silence, trial)| (silence, trial.join().unwrap_or(After::Untried)))
                .collect()
        });
        for (silence, after) in learnt {
            found.learn(silence, after);
        }
    }
    Ok(found)
}

fn trial(
    mut stream: TcpStream,
    silence: Duration,
    theirs: bool,
    too_long: &AtomicU64,
    stop: &AtomicBool,
) -> After {
    let ns = u64::try_from(silence.as_nanos()).unwrap_or(u64::MAX);
    let _ = abort_on_close(&stream);
    if stream.set_nonblocking(true).is_err() {
        return After::Untried;
    }
    let begun = Instant::now();
    let listens = if theirs { silence + PATIENCE } else { silence };
    loop {
        if stop.load(Ordering::Relaxed) || too_long.load(Ordering::Relaxed) < ns {
            return After::Untried;
        }
        match stream.read(&mut [0; 512]) {
            Ok(0) => return After::Closed(begun.elapsed()),
            Ok(_) if theirs && begun.elapsed() + TOO_SOON < silence => return After::Untried,
            Ok(_) if theirs => return After::Kept,
            // What the server says meanwhile is left: our silence is what is tried.
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return lost(begun.elapsed(), too_long),
        }
        // It is looked once more when the time is over: a server that has closed by then did not lose it.
        match listens.checked_sub(begun.elapsed()) {
            Some(left) => thread::sleep(LOOK_EVERY.min(left)),
            None => break,
        }
    }
    match !theirs && acknowledged(&mut stream) {
        true => After::Kept,
        false => lost(silence, too_long),
    }
}

fn lost(after: Duration, too_long: &AtomicU64) -> After {
    let ns = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
    too_long.fetch_min(ns, Ordering::Relaxed);
    After::Lost(after)
}

fn acknowledged(stream: &mut TcpStream) -> bool {
    if stream.write(&[0]).is_err() {
        return false;
    }
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        // A connection that was reset is in no state to acknowledge anything.
        if stream.take_error().is_ok_and(|error| error.is_some()) {
            return false;
        }
        match tcp_info(stream) {
            Ok(info) if info.unacked_segments == 0 && info.bytes_acked > 1 => return true,
            Ok(_) => thread::sleep(LOOK_EVERY),
            Err(_) => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::TcpListener;

    const S: Duration = Duration::from_secs(1);

    /// Finds the bounds of something that forgets after `limit`.
    fn found(limit: Duration, longest: Duration) -> Found {
        let mut found = Found::default();
        for round in 0..2 {
            let silences = match round {
                0 => Found::first_round(longest),
                _ => found.second_round(),
            };
            for silence in silences {
                let after = if silence < limit {
                    After::Kept
                } else {
                    After::Lost(silence)
                };
                found.learn(silence, after);
            }
        }
        found
    }

    #[test]
    fn the_limit_is_found_within_a_ninth() {
        for limit_s in [3, 10, 61, 100, 299] {
            let found = found(limit_s * S, 300 * S);
            let (kept, lost) = (found.kept.unwrap_or_default(), found.lost.unwrap());
            assert!(kept < limit_s * S && lost >= limit_s * S);
            assert!(lost - kept <= lost / 9, "{limit_s}: {kept:?} to {lost:?}");
        }
        let never = found(1000 * S, 300 * S);
        assert_eq!(
            (never.kept, never.lost, never.tried),
            (Some(300 * S), None, 8)
        );
        let at_once = found(Duration::ZERO, 256 * S);
        assert_eq!(at_once.kept, None);
        assert!(at_once.lost.unwrap() <= S);
    }

    /// A server whose connections end after some milliseconds, by a reset or in order.
    fn ending(after_ms: u64, reset: bool) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || {
                    thread::sleep(Duration::from_millis(after_ms));
                    if reset {
                        let _ = abort_on_close(stream.as_ref().unwrap());
                    }
                });
            }
        });
        address
    }

    #[test]
    fn a_middlebox_that_resets_what_was_silent_is_found() {
        let longest = Duration::from_millis(1600);
        let found = search(
            ending(500, true),
            &TcpOptions::default(),
            longest,
            S,
            Speaker::Us,
            &AtomicBool::new(false),
        )
        .unwrap();
        let (kept, lost) = (found.kept.unwrap(), found.lost.unwrap());
        assert!(
            kept < Duration::from_millis(520) && lost > Duration::from_millis(480),
            "{found:?}"
        );
        assert!(lost - kept < Duration::from_millis(250), "{found:?}");
        assert_eq!(found.closed, None);
    }

    #[test]
    fn the_far_end_speaks_first_where_it_can() {
        // It speaks on connections that were silent for less than half a second; what it would say on the
        // others is lost on the way.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for stream in listener.incoming() {
                thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    let mut ms = [0; 8];
                    if stream.read_exact(&mut ms).is_err() {
                        return;
                    }
                    let ms = u64::from_be_bytes(ms);
                    thread::sleep(Duration::from_millis(ms.min(500)));
                    if ms < 500 {
                        let _ = stream.write(&[0]);
                    }
                    thread::sleep(10 * S);
                });
            }
        });
        let open = |silence: Duration| {
            let mut stream = connect(address, S, &TcpOptions::default())?;
            let ms = u64::try_from(silence.as_millis()).unwrap();
            stream.write_all(&ms.to_be_bytes())?;
            Ok(stream)
        };
        let longest = Duration::from_millis(900);
        let stop = AtomicBool::new(false);
        let found = search(
            address,
            &TcpOptions::default(),
            longest,
            S,
            Speaker::Them(&open),
            &stop,
        )
        .unwrap();
        let (kept, lost) = (found.kept.unwrap(), found.lost.unwrap());
        let limit = Duration::from_millis(500);
        assert!(kept < limit && lost >= limit, "{found:?}");
        assert!(
            lost - kept <= lost / 9 + Duration::from_millis(1),
            "{found:?}"
        );
        assert_eq!(found.closed, None);
    }

    #[test]
    fn a_server_that_closes_is_no_middlebox_that_forgets() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                std::thread::spawn(move || {
                    // Between two of the silences that are tried: 200 and 400 ms.
                    std::thread::sleep(Duration::from_millis(300));
                    drop(stream);
                });
            }
        });
        let found = search(
            address,
            &TcpOptions::default(),
            Duration::from_millis(800),
            S,
            Speaker::Us,
            &AtomicBool::new(false),
        )
        .unwrap();
        assert_eq!(found.lost, None);
        let closed = found.closed.unwrap();
        assert!(
            closed >= Duration::from_millis(290) && closed < Duration::from_millis(790),
            "{closed:?}"
        );
        assert!(
            found
                .kept
                .is_some_and(|kept| kept < Duration::from_millis(201))
        );
    }
}
