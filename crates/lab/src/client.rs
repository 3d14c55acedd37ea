//! Reaching a running laboratory: the one that this process is in, or one in the background.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};
use nix::unistd::{Pid, geteuid};
use plumb_model::run::LabMark;
use plumb_net::descriptor_passing::{self, Peer};
use plumb_net::namespace::{DOORS, enter_node};
use plumb_net::process::end_with_starter;
use plumb_net::terminal;

use crate::control::{
    Answer, OUTSIDE, Request, SOCKET_NAME, TIMEOUT, VARIABLE, check_name, outside_address,
};
use crate::error::LabError;
use crate::list::Running;
use crate::nearest::known;
use crate::observe::Sight;
use crate::{program, supervise};

/// Flag of a listening socket in /proc/net/unix (`__SO_ACCEPTCON`, `linux/net.h`).
const LISTENING: &str = "00010000";

/// How soon it is noticed that the viewer wants to see no more.
const NOTICE: Duration = Duration::from_millis(50);

/// How much of an answer is looked at in one go.
const PEEK_BYTES: usize = 65_536;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunningLab {
    /// The one that this process runs in.
    Inside,
    /// One in the background.
    Named(String),
}

/// Whether this process runs inside a laboratory.
pub fn inside() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Names of the laboratories in the background, in the network that this process is in.
///
/// # Errors
/// When /proc cannot be read.
pub fn names() -> io::Result<BTreeSet<String>> {
    Ok(listening(&std::fs::read_to_string(
        "/proc/thread-self/net/unix",
    )?))
}

/// Columns: number, references, protocol, flags, type, state, inode, name (`net/unix/af_unix.c`).
fn listening(table: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let mut columns = line.split_whitespace();
        let flags = columns.nth(3)?;
        let name = columns.nth(3)?.strip_prefix('@')?.strip_prefix(OUTSIDE)?;
        (flags == LISTENING && check_name(name).is_ok()).then(|| name.to_owned())
    };
    table.lines().filter_map(name).collect()
}

/// The laboratories in the background that belong to this user.
///
/// # Errors
/// When /proc cannot be read.
pub fn running() -> Result<Vec<Running>, LabError> {
    let mut all = Vec::new();
    for name in names()? {
        let reach = RunningLab::Named(name.clone());
        // A laboratory of another user, or one that has just ended, is not listed.
        let Ok((stream, peer)) = reach.connect() else {
            continue;
        };
        if let Ok((Answer::About(about), _)) = exchange(&stream, &Request::About) {
            all.push(Running {
                name,
                pid: peer.process,
                ..about
            });
        }
    }
    Ok(all)
}

impl RunningLab {
    /// The laboratory of that name; without one, that which this process is in, or else the only
    /// one in the background.
    ///
    /// # Errors
    /// When it is not there, or several could be meant.
    pub fn find(name: Option<&str>) -> Result<Self, LabError> {
        match name {
            None if inside() => Ok(Self::Inside),
            name => Self::find_running(name),
        }
    }

    /// The laboratory of that name in the background; without one, the only one.
    ///
    /// # Errors
    /// When it is not there, or several could be meant.
    pub fn find_running(name: Option<&str>) -> Result<Self, LabError> {
        let names = names()?;
        choose(name, &names)
            .map(Self::Named)
            .map_err(LabError::Control)
    }

    fn connect(&self) -> Result<(UnixStream, Peer), LabError> {
        let connect = |address: io::Result<SocketAddr>| -> io::Result<_> {
            let stream = UnixStream::connect_addr(&address?)?;
            stream.set_read_timeout(Some(TIMEOUT))?;
            stream.set_write_timeout(Some(TIMEOUT))?;
            let peer = descriptor_passing::peer(&stream)?;
            Ok((stream, peer))
        };
        let name = match self {
            Self::Inside => {
                return connect(SocketAddr::from_abstract_name(SOCKET_NAME))
                    .map_err(|e| unreachable(&e));
            }
            Self::Named(name) => name,
        };
        let (stream, peer) = connect(outside_address(name)).map_err(|e| unreachable(&e))?;
        // Its namespaces are entered and its answers believed, so it must belong to root or to this user.
        if peer.user != 0 && peer.user != geteuid().as_raw() {
            return Err(LabError::Control(format!(
                "the lab '{name}' belongs to user {0}: ask as that user (sudo -u '#{0}' plumb lab …)",
                peer.user
            )));
        }
        Ok((stream, peer))
    }

    /// Asks.
    ///
    /// # Errors
    /// When it does not answer, or refuses.
    pub fn ask(&self, request: &Request) -> Result<Answer, LabError> {
        exchange(&self.connect()?.0, request).map(|(answer, _)| answer)
    }

    /// Looks on, and writes what there is to see to `out`, until the laboratory ends, the time is over or
    /// `stop` is set.
    ///
    /// # Errors
    /// When it refuses, or `out` takes no more.
    pub fn look(
        &self,
        sight: &Sight,
        out: &mut impl Write,
        duration: Option<Duration>,
        stop: &AtomicBool,
    ) -> Result<(), LabError> {
        let (mut stream, _) = self.connect()?;
        let request = Request::Look {
            sight: sight.clone(),
        };
        exchange(&stream, &request)?;
        let until = duration.map(|duration| Instant::now() + duration);
        let mut enough = false;
        let mut buffer = vec![0; 65_536];
        loop {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            let over = left.is_some_and(|left| left.is_zero()) || stop.load(Ordering::Relaxed);
            if over && !enough {
                // What is under way comes behind, and then the end.
                stream.shutdown(Shutdown::Write)?;
                enough = true;
            }
            let wait = left
                .filter(|left| !left.is_zero())
                .map_or(NOTICE, |left| left.min(NOTICE));
            stream.set_read_timeout(Some(wait))?;
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => {
                    let seen = buffer.get(..length).unwrap_or_default();
                    let written = out.write_all(seen).and_then(|()| out.flush());
                    written.map_err(LabError::Output)?;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// Ends it and waits until it is gone with all that was in it.
    ///
    /// # Errors
    /// When it refuses, or is still there after ten seconds.
    pub fn end(&self) -> Result<(), LabError> {
        let (stream, peer) = self.connect()?;
        let (_, descriptors) = exchange(&stream, &Request::End)?;
        let process = descriptors.first().ok_or_else(odd_answer)?;
        let mut fds = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
        let within = PollTimeout::try_from(TIMEOUT).unwrap_or(PollTimeout::MAX);
        if poll(&mut fds, within).map_err(io::Error::from)? == 0 {
            let pid = peer
                .process
                .map_or("its process".into(), |pid| pid.to_string());
            return Err(LabError::Control(format!(
                "the lab has not ended within {} s: kill -9 {pid} ends it",
                TIMEOUT.as_secs()
            )));
        }
        Ok(())
    }

    /// Runs a command inside a node and returns its exit status, as a shell would show it.
    ///
    /// Must be called while the process has a single thread; it can start none afterwards.
    ///
    /// # Errors
    /// When there is no such node, or it cannot be entered.
    pub fn run_inside(&self, node: &str, command: &[OsString]) -> Result<i32, LabError> {
        let request = Request::Enter {
            node: node.to_owned(),
        };
        let (_, descriptors) = exchange(&self.connect()?.0, &request)?;
        let doors = <[OwnedFd; DOORS]>::try_from(descriptors).map_err(|_| odd_answer())?;
        let node = enter_node(doors)?;
        let mut command = program::prepare(&Arc::new(node), command)?;
        end_with_starter(&mut command);
        let signals = supervise::outside_signals()?;
        let foreground = terminal::in_foreground();
        let child = match supervise::spawn(&mut command) {
            Ok(child) => child,
            Err(status) => return Ok(status),
        };
        let status = supervise::wait_outside(Pid::from_raw(child.id() as i32), &signals)?;
        if foreground {
            terminal::take_foreground();
        }
        Ok(supervise::exit_code(status))
    }
}

/// The time in which a Run is made. At its end, the laboratory that this process is in reports how well it kept up
/// meanwhile.
#[derive(Debug)]
pub struct LatenessWatch(UnixStream);

impl LatenessWatch {
    /// Begins now.
    ///
    /// # Errors
    /// When the laboratory does not answer.
    pub fn begin() -> Result<Self, LabError> {
        let (stream, _) = RunningLab::Inside.connect()?;
        match exchange(&stream, &Request::Mark)? {
            (Answer::Begun, _) => Ok(Self(stream)),
            _ => Err(odd_answer()),
        }
    }

    /// Ends now.
    ///
    /// # Errors
    /// When the laboratory does not answer.
    pub fn end(mut self) -> Result<LabMark, LabError> {
        self.0.write_all(b"\n").map_err(|e| unreachable(&e))?;
        match receive(&self.0)? {
            (Answer::Mark(mark), _) => Ok(mark),
            _ => Err(odd_answer()),
        }
    }
}

fn unreachable(error: &io::Error) -> LabError {
    LabError::Control(format!("the lab does not answer: {error}"))
}

fn odd_answer() -> LabError {
    LabError::Control(
        "the lab answered something else: was it started by another version of plumb?".to_owned(),
    )
}

fn exchange(
    mut stream: &UnixStream,
    request: &Request,
) -> Result<(Answer, Vec<OwnedFd>), LabError> {
    let mut line = serde_json::to_vec(request).map_err(io::Error::from)?;
    line.push(b'\n');
    // A laboratory that refuses before it has read says why all the same.
    let _ = stream.write_all(&line);
    receive(stream)
}

/// What comes next on a stream, without taking it.
fn peek(stream: &UnixStream, buffer: &mut [u8]) -> io::Result<usize> {
    Ok(recv(stream.as_raw_fd(), buffer, MsgFlags::MSG_PEEK)?)
}

fn receive(stream: &UnixStream) -> Result<(Answer, Vec<OwnedFd>), LabError> {
    let read = || {
        // Descriptors come with the first byte.
        let mut line = vec![0];
        let (length, descriptors) = descriptor_passing::receive(stream, &mut line)?;
        line.truncate(length);
        // Not a byte more: what there is to see may follow.
        while line.last() != Some(&b'\n') {
            let before = line.len();
            line.resize(before + PEEK_BYTES, 0);
            let seen = peek(stream, line.get_mut(before..).unwrap_or_default())?;
            let end = line
                .iter()
                .skip(before)
                .take(seen)
                .position(|b| *b == b'\n');
            let take = end.map_or(seen, |end| end + 1);
            line.truncate(before + take);
            if take == 0 {
                break;
            }
            let mut stream = stream;
            stream.read_exact(line.get_mut(before..).unwrap_or_default())?;
        }
        Ok((serde_json::from_slice(&line)?, descriptors))
    };
    match read().map_err(|e: io::Error| unreachable(&e))? {
        (Answer::Refused(why), _) => Err(LabError::Control(why)),
        answered => Ok(answered),
    }
}

/// The laboratory that is meant, of those that there are.
fn choose(wanted: Option<&str>, names: &BTreeSet<String>) -> Result<String, String> {
    let all = || {
        names
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut each = names.iter();
    match (wanted, each.next(), each.next()) {
        (Some(name), _, _) if names.contains(name) => Ok(name.to_owned()),
        (Some(name), None, _) => Err(format!(
            "no lab '{name}' is running, nor any other: start one with plumb lab up SCENARIO"
        )),
        (Some(name), _, _) => {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(format!(
                "no lab '{name}' is running: {}",
                known(name, &names, "running labs")
            ))
        }
        (None, Some(only), None) => Ok(only.clone()),
        (None, None, _) => Err(format!(
            "no lab is running, and this is not inside a lab ({VARIABLE} is not set): start one with plumb lab up SCENARIO, or run it as plumb lab run SCENARIO -- plumb lab …"
        )),
        (None, _, _) => Err(format!(
            "several labs are running, so say which one: {}",
            all()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TABLE: &str = "\
Num       RefCount Protocol Flags    Type St Inode Path
0000000000000000: 00000002 00000000 00010000 0001 01 21321 @plumb-lab/home-cable
0000000000000000: 00000003 00000000 00000000 0001 03 21399 @plumb-lab/home-cable
0000000000000000: 00000002 00000000 00010000 0001 01 21000 @plumb-lab
0000000000000000: 00000002 00000000 00010000 0001 01 21001 /plumb-lab/file
0000000000000000: 00000002 00000000 00010000 0001 01 21002 @plumb-lab/a b
0000000000000000: 00000002 00000000 00010000 0001 01 21003 @plumb-lab/
0000000000000000: 00000002 00000000 00000000 0001 03 21004
0000000000000000: 00000002 00000000 00010000 0001 01 21005 @plumb-lab/two
";

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn finds_who_listens() {
        // A name with a blank cannot be a laboratory's; its first word may be taken for one.
        assert_eq!(listening(TABLE), set(&["a", "home-cable", "two"]));
    }

    #[test]
    fn chooses_the_one_that_is_meant() {
        let one = set(&["home"]);
        let two = set(&["fibre", "home"]);
        assert_eq!(choose(None, &one), Ok("home".to_owned()));
        assert_eq!(choose(Some("fibre"), &two), Ok("fibre".to_owned()));
        let says = |wanted, names: &BTreeSet<String>, words: &[&str]| {
            let text = choose(wanted, names).expect_err("nothing is meant");
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        };
        says(None, &two, &["fibre, home"]);
        says(
            Some("hom"),
            &two,
            &["'hom'", "did you mean 'home'", "fibre, home"],
        );
        says(Some("x"), &set(&[]), &["'x'", "plumb lab up"]);
        says(None, &set(&[]), &["not inside a lab", "plumb lab up"]);
    }

    proptest! {
        #[test]
        fn any_table_is_read(table in "[ -~\n]{0,200}", name in "\\PC{0,20}") {
            let _ = listening(&table);
            let _ = listening(&format!("0: 2 0 {LISTENING} 1 01 5 @{OUTSIDE}{name}"));
        }
    }
}
