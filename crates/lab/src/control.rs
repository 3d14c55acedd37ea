//! Steering a running laboratory: what can be asked of it, and how it answers.
//!
//! One request and one answer, each a line of JSON, over Unix sockets in the abstract name
//! space. Abstract names belong to a network namespace, so nothing appears in the file system.
//! A laboratory listens in each of its nodes, for the programs inside, and one in the background
//! also in the network from which it was started, for its owner and for root.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};
use plumb_model::finding::ShaperAction;
use plumb_model::run::LabMark;
use plumb_net::descriptor_passing;
use plumb_net::process::own_pidfd;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::instance::Instance;
use crate::list::Running;
use crate::observe::{Observer, Sight};
use crate::stats::LabStats;

/// Environment variable that names the laboratory which a program runs in.
pub const VARIABLE: &str = "PLUMB_LAB";

/// Abstract name of the socket in every node.
pub(crate) const SOCKET_NAME: &str = "plumb-lab";

/// What stands before a laboratory's name in the abstract name of its socket outside.
pub(crate) const OUTSIDE: &str = "plumb-lab/";

/// Longest name of a laboratory: with what stands before it, it fits `sun_path` (unix(7)).
const MAX_NAME_BYTES: usize = 64;

/// A request is a handful of settings.
const MAX_REQUEST_BYTES: u64 = 64 * 1024;

/// The longest note that is taken: a sentence or two.
const MAX_NOTE_BYTES: usize = 512;

/// The laboratory answers from memory: silence for this long means that it hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(10);

/// Conversations at a time, each of which has a thread and, while a Run is made, a copy of the
/// histograms: more than the Runs that anybody makes at once.
const MAX_CONVERSATIONS: usize = 64;

/// How long an observer waits for more before it passes on what it has.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// What may be asked of a laboratory.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// Change a cell, or add a shaper where there is none: all settings, or none.
    Set {
        /// `LINK.up.CELL` or `LINK.down.CELL`.
        cell: String,
        /// Settings and their values.
        values: BTreeMap<String, String>,
    },
    /// Put shapers where the scenario's router would: all of them, or none.
    Shape {
        shapers: Vec<ShaperAction>,
    },
    /// Everything that the links did so far.
    Stats,
    /// What a Run must say of the laboratory. The Run begins with the first answer, ends with the
    /// line that is sent then, and is covered by the second answer.
    Mark,
    /// Keep a note: something in the laboratory is not as its scenario says.
    Note {
        /// What; at most 512 bytes.
        text: String,
    },
    About,
    /// Look on: what there is to see follows the answer on the same stream, until the client
    /// closes it.
    Look {
        sight: Sight,
    },
    /// The way into a node.
    Enter {
        node: String,
    },
    End,
}

/// What the laboratory answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It was done; the lines say what.
    Done(Vec<String>),
    Stats(Box<LabStats>),
    /// The Run may begin.
    Begun,
    Mark(LabMark),
    About(Running),
    /// The node's namespaces come with this ([`plumb_net::namespace::Doors`]).
    Enter,
    /// What there is to see follows.
    Looking,
    /// A descriptor of the laboratory's first process comes with this, to wait for its end.
    Ending,
    /// It was not done.
    Refused(String),
}

/// Whether a laboratory can have this name: one that needs no quoting in a shell or a table.
pub(crate) fn check_name(name: &str) -> Result<(), LabError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if name.is_empty() || name.len() > MAX_NAME_BYTES || !name.chars().all(fits) {
        return Err(LabError::Control(format!(
            "'{name}' cannot be the name of a lab: give it (--name) 1 to {MAX_NAME_BYTES} letters, digits, dots, hyphens and underscores"
        )));
    }
    Ok(())
}

/// The address at which a laboratory of this name is found from outside.
pub(crate) fn outside_address(name: &str) -> io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{OUTSIDE}{name}"))
}

/// Takes a name in the network of the calling thread.
pub(crate) fn take_name(name: &str) -> Result<UnixListener, LabError> {
    UnixListener::bind_addr(&outside_address(name)?).map_err(|e| match e.kind() {
        io::ErrorKind::AddrInUse => LabError::Control(format!(
            "there is a lab '{name}' already: end it (plumb lab down {name}), or give this one another name (--name)"
        )),
        _ => e.into(),
    })
}

/// Answers the programs in every node.
pub(crate) fn serve_inside(instance: &Arc<Instance>) -> Result<(), LabError> {
    let busy = Arc::default();
    for node in instance.nodes() {
        let listener = node.in_network(|| {
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(SOCKET_NAME)?)
        })?;
        serve(listener, instance, Admit::Everyone, &busy)?;
    }
    Ok(())
}

/// Answers the owner and root.
pub(crate) fn serve_outside(
    listener: UnixListener,
    instance: &Arc<Instance>,
) -> Result<(), LabError> {
    serve(listener, instance, Admit::Owner, &Arc::default())
}

#[derive(Debug, Clone, Copy)]
enum Admit {
    Everyone,
    Owner,
}

/// Answers on a thread of its own, and on one for every conversation. They end with the process,
/// the first of its PID namespace, which answers for as long as it lives; a conversation ends
/// with the answer, within [`TIMEOUT`] of a request that does not come, or with the client. Of those
/// that `busy` counts there are [`MAX_CONVERSATIONS`].
fn serve(
    listener: UnixListener,
    instance: &Arc<Instance>,
    admit: Admit,
    busy: &Arc<AtomicUsize>,
) -> Result<(), LabError> {
    let (instance, busy) = (Arc::clone(instance), Arc::clone(busy));
    thread::Builder::new()
        .name("lab-control".into())
        .spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    // Without descriptors or memory it would be asked again at once, for ever.
                    thread::sleep(LOOK_EVERY);
                    continue;
                };
                let conversation = Conversation {
                    stream,
                    instance: Arc::clone(&instance),
                };
                // A client that went away is its own affair.
                let refuse = |why: &str| {
                    let _ = conversation.send(&Answer::Refused(why.to_owned()), &[]);
                };
                if !admit.admits(&conversation.stream) {
                    refuse("it belongs to another user");
                    continue;
                }
                if busy.fetch_add(1, Ordering::Relaxed) >= MAX_CONVERSATIONS {
                    refuse("too many ask it at once");
                    busy.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let done = Arc::clone(&busy);
                let spawned = thread::Builder::new()
                    .name("lab-answer".into())
                    .spawn(move || {
                        let _ = conversation.hold();
                        done.fetch_sub(1, Ordering::Relaxed);
                    });
                if spawned.is_err() {
                    busy.fetch_sub(1, Ordering::Relaxed);
                }
            }
        })?;
    Ok(())
}

impl Admit {
    fn admits(self, stream: &UnixStream) -> bool {
        match self {
            Self::Everyone => true,
            Self::Owner => descriptor_passing::peer(stream)
                .is_ok_and(|peer| peer.user == 0 || peer.user == geteuid().as_raw()),
        }
    }
}

struct Conversation {
    stream: UnixStream,
    instance: Arc<Instance>,
}

impl Conversation {
    fn hold(&self) -> io::Result<()> {
        self.stream.set_read_timeout(Some(TIMEOUT))?;
        self.stream.set_write_timeout(Some(TIMEOUT))?;
        let mut line = String::new();
        let mut reader = BufReader::new((&self.stream).take(MAX_REQUEST_BYTES));
        reader.read_line(&mut line)?;
        let refused = |e: LabError| Answer::Refused(e.to_string());
        let instance = &self.instance;
        match serde_json::from_str(&line) {
            Ok(Request::Mark) => {
                let begun = instance.readings();
                self.send(&Answer::Begun, &[])?;
                // A Run takes as long as it takes; a client that ends closes the stream.
                self.stream.set_read_timeout(None)?;
                if reader.read_line(&mut line)? == 0 {
                    return Ok(());
                }
                self.send(&Answer::Mark(instance.mark(&begun)), &[])
            }
            Ok(Request::Look { sight }) => self.look(&sight),
            Ok(Request::Enter { node }) => match instance.namespaces(&node) {
                Ok(node) => {
                    let doors = node.doors()?;
                    self.send(&Answer::Enter, &doors.descriptors())
                }
                Err(e) => self.send(&refused(e), &[]),
            },
            Ok(Request::End) => {
                let process: OwnedFd = own_pidfd()?;
                self.send(&Answer::Ending, &[process.as_fd()])?;
                // As anybody else would: the main thread is waiting for signals.
                Ok(kill(Pid::this(), Signal::SIGTERM)?)
            }
            Ok(request) => {
                let answer = handle(instance, request).unwrap_or_else(refused);
                self.send(&answer, &[])
            }
            Err(e) => self.send(&Answer::Refused(format!("not a request: {e}")), &[]),
        }
    }

    /// Writes what there is to see until the client closes its side or takes nothing for
    /// [`TIMEOUT`].
    fn look(&self, sight: &Sight) -> io::Result<()> {
        let mut begun = Vec::new();
        let mut observer = match Observer::begin(&self.instance, sight, &mut begun) {
            Ok(observer) => observer,
            Err(e) => return self.send(&Answer::Refused(e.to_string()), &[]),
        };
        self.send(&Answer::Looking, &[])?;
        let mut out = BufWriter::new(&self.stream);
        out.write_all(&begun)?;
        loop {
            // What there was to see until it left is written behind.
            let is_left = self.is_left();
            let tell = Instant::now() + LOOK_EVERY;
            let left = || tell.saturating_duration_since(Instant::now());
            while observer.write(&mut out, left())? && !left().is_zero() {}
            out.flush()?;
            if is_left {
                return Ok(());
            }
        }
    }

    /// Whether the client has closed its side of the stream: it has nothing more to say.
    fn is_left(&self) -> bool {
        let mut fds = [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)];
        poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    }

    fn send(&self, answer: &Answer, descriptors: &[std::os::fd::BorrowedFd<'_>]) -> io::Result<()> {
        let mut line = serde_json::to_vec(answer)?;
        line.push(b'\n');
        // Statistics may be more than a socket holds; descriptors go with the first byte.
        let (first, rest) = line.split_at(1);
        descriptor_passing::send(&self.stream, first, descriptors)?;
        (&self.stream).write_all(rest)
    }
}

/// Does what is asked, if the answer to it is a line and no conversation.
fn handle(instance: &Instance, request: Request) -> Result<Answer, LabError> {
    match request {
        Request::Set { cell, values } => instance.set(cell, values).map(Answer::Done),
        Request::Shape { shapers } => instance.shape(&shapers).map(Answer::Done),
        Request::Note { text } if text.len() > MAX_NOTE_BYTES => Err(LabError::Control(format!(
            "a note has at most {MAX_NOTE_BYTES} bytes"
        ))),
        Request::Note { text } => {
            instance.note(text);
            Ok(Answer::Done(Vec::new()))
        }
        Request::Stats => Ok(Answer::Stats(Box::new(instance.stats()))),
        Request::About => Ok(Answer::About(about(instance))),
        Request::Mark | Request::Look { .. } | Request::Enter { .. } | Request::End => {
            Err(LabError::Control("that takes a conversation".into()))
        }
    }
}

/// What the laboratory reports of itself. The process that asks knows its name and process already.
fn about(instance: &Instance) -> Running {
    let scenario = instance.scenario();
    Running {
        scenario: scenario.name.clone(),
        seed: scenario.seed,
        nodes: scenario.nodes.iter().map(|n| n.name.clone()).collect(),
        links: scenario.links.iter().map(|l| l.name.clone()).collect(),
        duration_s: instance.duration_s(),
        ..Running::default()
    }
}
