//! Making a real interface worse for a while: netem(8), and tbf(8) for a rate, as its outermost
//! queueing discipline. Only what the interface *sends* passes them.
//!
//! Nothing is written to disk, and it is always undone. Two processes see to that: the *guardian*
//! installs the disciplines and takes them away; the one that the user started watches the
//! guardian and holds the other end of a pipe. Whichever of the two is killed, the other one
//! undoes it.

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use plumb_model::framing::Framing;
use plumb_model::units::{BitRate, parse_duration};
use plumb_net::process::{ENDING, block_signals};

use crate::kernel::{Line, Loss, Netem, Queue, Tree};
use plumb_net::tc::{self, TcError};

/// Handle of the outermost discipline, plumb's port read as hexadecimal: what bears it is ours,
/// and nothing else is ever taken away.
const HANDLE: u16 = 0x7586;

/// How long packets may wait for the rate: what routers at home often have.
const QUEUE: Duration = Duration::from_millis(100);
/// A queue that takes the ten packets with which a TCP connection begins (RFC 6928).
const LEAST_QUEUE_PACKETS: u64 = 10;

/// The MTU where the system does not report one, in bytes: the MTU of Ethernet.
const USUAL_MTU_BYTES: u32 = 1500;

/// The Ethernet header, which the kernel counts and a framing begins without.
const ETHERNET_HEADER_BYTES: i16 = 14;

/// What the guardian says when the disciplines are in place.
const INSTALLED: &str = "installed";

/// What is to become worse.
#[derive(Debug, Clone, PartialEq)]
pub struct Impairment {
    netem: Netem,
    rate: Option<BitRate>,
}

/// An impairment that cannot be, or could not be taken away.
#[derive(Debug, thiserror::Error)]
pub enum ImpairError {
    /// What was written is no impairment.
    #[error("{0}")]
    Words(String),
    /// There is no such interface.
    #[error("there is no interface '{device}': the interfaces are {known}")]
    NoDevice {
        /// What was asked for.
        device: String,
        known: String,
    },
    /// The interface already had a configured queue, and it could not be put back.
    #[error(
        "{device} already has the queueing discipline {kind} (handle {handle}), which plumb could not put back: nothing was changed; take it away yourself first (tc qdisc del dev {device} root)"
    )]
    Taken {
        device: String,
        kind: String,
        handle: String,
    },
    /// `tc`, missing or refusing.
    #[error(transparent)]
    Tc(#[from] TcError),
    /// The guardian said why.
    #[error("nothing was changed")]
    NotInstalled,
    /// It is still there.
    #[error("{device} is still impaired ({source}): take it away with {undo}")]
    NotUndone {
        device: String,
        undo: String,
        source: TcError,
    },
    /// Something else in the operating system.
    #[error("impairing failed: {0}")]
    Io(#[from] io::Error),
}

/// How an impairment came to its end.
#[derive(Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its time was over.
    InTime,
    /// A signal ended it, and it was undone.
    BySignal(Signal),
    /// The guardian was killed, and the impairment was undone.
    GuardianLost,
}

impl Impairment {
    /// Reads `delay TIME [JITTER]`, `rate RATE`, `loss`, `duplicate`, `corrupt` and `reorder
    /// PERCENT`, as netem(8) has them.
    ///
    /// # Errors
    /// When it is none of these, impossible, or nothing at all.
    pub fn parse<S: AsRef<str>>(words: &[S]) -> Result<Self, ImpairError> {
        let wrong = |text: String| Err(ImpairError::Words(text));
        let mut impairment = Self {
            netem: Netem::default(),
            rate: None,
        };
        let netem = &mut impairment.netem;
        let mut words = words.iter().map(AsRef::as_ref).peekable();
        let mut given = BTreeSet::new();
        while let Some(key) = words.next() {
            if !given.insert(key) {
                return wrong(format!("{key} is given twice: leave one out"));
            }
            let mut value = || {
                words.next().ok_or_else(|| {
                    ImpairError::Words(format!(
                        "'{key}' needs a value, such as delay 100ms, rate 18mbit or loss 1%"
                    ))
                })
            };
            match key {
                "delay" => {
                    netem.delay = time(key, value()?)?;
                    if let Some(jitter) =
                        words.next_if(|word| word.starts_with(|c: char| c.is_ascii_digit()))
                    {
                        netem.jitter = time("jitter", jitter)?;
                    }
                }
                "rate" => {
                    let text = value()?;
                    let rate: BitRate = text
                        .parse()
                        .map_err(|e| ImpairError::Words(format!("rate: {e}")))?;
                    if rate.bps() < 8 {
                        return wrong(format!(
                            "rate {text}: nothing would pass; an outage is loss 100%"
                        ));
                    }
                    if text.parse::<f64>().is_ok() {
                        return wrong(format!(
                            "rate {text}: the unit is missing: write {text}kbit or {text}mbit"
                        ));
                    }
                    impairment.rate = Some(rate);
                }
                "loss" => netem.loss = Loss::Random(percent(key, value()?)?),
                "duplicate" => netem.duplicate_ratio = percent(key, value()?)?,
                "corrupt" => netem.corrupt_ratio = percent(key, value()?)?,
                "reorder" => netem.reorder_ratio = percent(key, value()?)?,
                _ => {
                    return wrong(format!(
                        "'{key}' is no impairment: write delay TIME [JITTER], rate RATE, loss PERCENT, duplicate PERCENT, corrupt PERCENT or reorder PERCENT"
                    ));
                }
            }
        }
        if netem.jitter > netem.delay {
            return wrong(
                "the jitter is larger than the delay, and no packet arrives before it was sent"
                    .into(),
            );
        }
        if netem.reorder_ratio > 0.0 && netem.delay.is_zero() {
            return wrong(
                "reorder sends packets ahead of delayed ones: give a delay as well".into(),
            );
        }
        // A netem with "0 ms" would stay and queue.
        if netem.is_nothing() && impairment.rate.is_none() {
            return wrong(
                "there is nothing to impair: write, for example, delay 100ms rate 18mbit loss 1%"
                    .into(),
            );
        }
        Ok(impairment)
    }

    /// The commands of `tc` that install it on `device`.
    fn commands(&self, device: &str, mtu_bytes: u32) -> Vec<Vec<String>> {
        let line = self.rate.map(|rate| {
            let bytes = QUEUE.as_secs_f64() * rate.bps() as f64 / 8.0;
            Line {
                rate,
                // Counted as the kernel does: the device need not be an Ethernet.
                framing: Framing {
                    overhead_bytes: ETHERNET_HEADER_BYTES,
                    ..Framing::default()
                },
                burst_bytes: 0,
                peak_rate: None,
                queue: Queue::Own {
                    limit_bytes: (bytes as u64).max(LEAST_QUEUE_PACKETS * u64::from(mtu_bytes)),
                    counts_framing: true,
                },
            }
        });
        let tree = Tree {
            netem: self.netem.clone(),
            line,
            notes: Vec::new(),
        };
        tree.commands(device, mtu_bytes, HANDLE)
    }
}

fn time(what: &str, text: &str) -> Result<Duration, ImpairError> {
    parse_duration(text).map_err(|e| ImpairError::Words(format!("{what}: {e}")))
}

fn percent(what: &str, text: &str) -> Result<f64, ImpairError> {
    let number = text
        .strip_suffix('%')
        .and_then(|number| number.parse::<f64>().ok());
    match number {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(ImpairError::Words(format!(
            "{what}: '{text}' is not a share: write 0% to 100%, such as 1%"
        ))),
    }
}

/// The command that takes an impairment of `device` away.
pub fn undo_command(device: &str) -> String {
    tc::spell(&undo_arguments(device))
}

fn undo_arguments(device: &str) -> Vec<String> {
    ["qdisc", "del", "dev", device, "root", "handle"]
        .into_iter()
        .map(str::to_owned)
        .chain([format!("{HANDLE:x}:")])
        .collect()
}

/// Looks whether `device` is there and its queue is the kernel's own choice.
fn check(device: &str) -> Result<(), ImpairError> {
    let interfaces = nix::net::if_::if_nameindex().map_err(io::Error::from)?;
    let known: Vec<_> = interfaces
        .iter()
        .map(|i| i.name().to_string_lossy())
        .collect();
    if !known.iter().any(|name| name == device) {
        return Err(ImpairError::NoDevice {
            device: device.to_owned(),
            known: known.join(", "),
        });
    }
    // What the kernel installs of itself has no handle (`qdisc_create_dflt`).
    match tc::qdiscs(device)?
        .into_iter()
        .find(|q| q.root && q.handle != "0:")
    {
        None => Ok(()),
        Some(root) => Err(ImpairError::Taken {
            device: device.to_owned(),
            kind: root.kind,
            handle: root.handle,
        }),
    }
}

fn install(device: &str, impairment: &Impairment) -> Result<Vec<Vec<String>>, ImpairError> {
    check(device)?;
    let mtu = std::fs::read_to_string(format!("/sys/class/net/{device}/mtu"));
    let mtu = mtu
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(USUAL_MTU_BYTES);
    let commands = impairment.commands(device, mtu);
    for command in &commands {
        if let Err(e) = tc::run(command) {
            // The first may be in place when the second is refused.
            undo(device)?;
            return Err(e.into());
        }
    }
    Ok(commands)
}

/// Takes away what is ours. It may be gone already: another program removed it, or the interface has gone.
fn undo(device: &str) -> Result<(), ImpairError> {
    let arguments = undo_arguments(device);
    let Err(source) = tc::run(&arguments) else {
        return Ok(());
    };
    let handle = format!("{HANDLE:x}:");
    let ours = |qdiscs: Vec<tc::Qdisc>| qdiscs.iter().any(|q| q.root && q.handle == handle);
    if tc::qdiscs(device).is_ok_and(ours) {
        return Err(ImpairError::NotUndone {
            device: device.to_owned(),
            undo: tc::spell(&arguments),
            source,
        });
    }
    Ok(())
}

/// Impairs `device` for `time` and returns when it is no longer impaired; `installed` receives the commands when it is.
/// `guardian` is the command that runs [`guard`] with the same arguments.
///
/// # Errors
/// Before anything is changed, when it cannot be done; afterwards, when it could not be undone.
pub fn run(
    device: &str,
    mut guardian: Command,
    installed: impl FnOnce(&[String]),
) -> Result<Ended, ImpairError> {
    check(device)?;
    let mut watched = ENDING.to_vec();
    watched.push(Signal::SIGCHLD);
    // The guardian inherits this: from its first instruction on, only a SIGKILL ends it early.
    let set = block_signals(&watched)?;
    let signals = SignalFd::new(&set).map_err(io::Error::from)?;
    let mut guardian = guardian
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let result = watch(&mut guardian, &signals, installed);
    // Closing the pipe makes the guardian undo; `wait` does so first.
    let status = guardian.wait();
    match result {
        Err(ImpairError::NotInstalled) => Err(ImpairError::NotInstalled),
        result if status.as_ref().is_ok_and(|status| status.success()) => result,
        result => {
            undo(device)?;
            result.map(|_| Ended::GuardianLost)
        }
    }
}

/// Waits until the guardian ends or a signal comes.
fn watch(
    guardian: &mut Child,
    signals: &SignalFd,
    installed: impl FnOnce(&[String]),
) -> Result<Ended, ImpairError> {
    let mut commands = Vec::new();
    let said = guardian.stdout.take().map(BufReader::new);
    for line in said.into_iter().flat_map(BufRead::lines) {
        let line = line?;
        if line == INSTALLED {
            installed(&commands);
            return loop {
                let Some(info) = signals.read_signal().map_err(io::Error::from)? else {
                    continue;
                };
                match Signal::try_from(info.ssi_signo as i32) {
                    Ok(Signal::SIGCHLD) => break Ok(Ended::InTime),
                    Ok(signal) => break Ok(Ended::BySignal(signal)),
                    Err(_) => {}
                }
            };
        }
        commands.push(line);
    }
    // It ended without having installed anything, and said why on standard error.
    Err(ImpairError::NotInstalled)
}

/// The guardian: impairs `device`, says so on standard output, and undoes it. It ends after
/// `time`, or at once when its standard input is closed, which happens when the process that
/// started it ends in whatever way. Signals that a user sends do not end it: they are blocked.
///
/// # Errors
/// As [`run`].
pub fn guard(device: &str, impairment: &Impairment, time: Duration) -> Result<(), ImpairError> {
    block_signals(&ENDING)?;
    let commands = install(device, impairment)?;
    let until = Instant::now() + time;
    // The reader may have gone, which the wait below finds out.
    let mut text: String = commands.iter().map(|c| tc::spell(c) + "\n").collect();
    text += INSTALLED;
    text += "\n";
    let _ = io::stdout()
        .write_all(text.as_bytes())
        .and_then(|()| io::stdout().flush());
    wait_for_end(until);
    undo(device)
}

fn wait_for_end(until: Instant) {
    let mut stdin = io::stdin().lock();
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        // In milliseconds, rounded up; longer than it can say means another turn.
        let timeout =
            PollTimeout::try_from(left + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX);
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match poll(&mut fds, timeout) {
            Ok(0) | Err(nix::errno::Errno::EINTR) => continue,
            Ok(_) => {}
            Err(_) => return,
        }
        match stdin.read(&mut [0; 64]) {
            Ok(0) => return,
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn commands(text: &str) -> Vec<String> {
        let words: Vec<&str> = text.split(' ').collect();
        let impairment = Impairment::parse(&words).unwrap();
        impairment
            .commands("eth0", 1500)
            .iter()
            .map(|c| tc::spell(c))
            .collect()
    }

    fn error(text: &str) -> String {
        let words: Vec<&str> = text.split(' ').filter(|w| !w.is_empty()).collect();
        Impairment::parse(&words).unwrap_err().to_string()
    }

    #[test]
    fn the_words_become_commands() {
        // netem: 2 x 18e6 / 672 packets/s for 110 ms (5892) and 1000. tbf: 2 x 1514 B and 250 µs;
        // a queue of 100 ms.
        assert_eq!(
            commands("delay 100ms 10ms rate 18mbit loss 1%"),
            [
                "tc qdisc add dev eth0 root handle 7586: netem limit 11218 delay 100000us 10000us loss random 1.000000000%",
                "tc qdisc add dev eth0 parent 7586:1 handle 7587: tbf rate 18000000bit burst 3590 limit 225000",
            ]
        );
        // Ten packets at the least.
        assert_eq!(
            commands("rate 64kbit"),
            ["tc qdisc add dev eth0 root handle 7586: tbf rate 64000bit burst 3030 limit 15000"]
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (text, says) in [
            ("", "nothing to impair"),
            ("delay 0ms", "nothing to impair"),
            ("loss 0%", "nothing to impair"),
            ("delay", "needs a value"),
            ("delay fast", "delay"),
            ("delay 10ms 20ms", "jitter is larger"),
            ("rate 1mbit rate 2mbit", "rate is given twice"),
            ("rate 0mbit", "nothing would pass"),
            ("rate quick", "rate"),
            ("rate 10000", "10000kbit"),
            ("loss 1", "such as 1%"),
            ("loss 101%", "0% to 100%"),
            ("loss NaN%", "0% to 100%"),
            ("reorder 5%", "give a delay"),
            ("latency 5ms", "is no impairment: write delay"),
        ] {
            let error = error(text);
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(words in prop::collection::vec("(delay|rate|loss|reorder|[0-9.]{1,30}(ms|mbit|%|h)|\\PC{0,9})", 0..6)) {
            if let Ok(impairment) = Impairment::parse(&words) {
                prop_assert!(!impairment.commands("x", 1500).is_empty());
            }
        }
    }
}
