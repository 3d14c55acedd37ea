//! Steering a running laboratory from the programs inside it.
//!
//! One request and one answer, each a line of JSON, over a Unix socket in the abstract name
//! space. Abstract names belong to a network namespace, so the laboratory listens in each of
//! its nodes, nothing appears in the file system, and nobody outside can reach it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use plumb_model::finding::ShaperAction;
use plumb_model::run::LabMark;
use serde::{Deserialize, Serialize};

use crate::error::LabError;
use crate::instance::Instance;
use crate::stats::LabStats;

/// Environment variable that tells a program which laboratory it is in.
pub const VARIABLE: &str = "PLUMB_LAB";

/// Abstract name of the socket in every node.
pub const SOCKET_NAME: &str = "plumb-lab";

/// A request is a handful of settings.
const MAX_REQUEST_BYTES: u64 = 64 * 1024;

/// The laboratory answers from memory: silence for this long means that it hangs.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a program may ask of the laboratory that it is in.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Request {
    /// Change a cell, or add a shaper where there is none.
    Set {
        /// `LINK.up.CELL` or `LINK.down.CELL`.
        cell: String,
        /// Settings and their values.
        values: BTreeMap<String, String>,
    },
    /// Put shapers where the scenario's router would.
    Shape {
        /// What to put.
        shapers: Vec<ShaperAction>,
    },
    /// Everything that the links did so far.
    Stats,
    /// What a Run must say of the laboratory.
    Mark,
}

/// What the laboratory answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It was done; the lines say what.
    Done(Vec<String>),
    /// The statistics.
    Stats(Box<LabStats>),
    /// The mark.
    Mark(LabMark),
    /// It was not done.
    Refused(String),
}

/// Whether this process runs inside a laboratory.
pub fn inside() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// Asks the laboratory that this process runs in.
///
/// # Errors
/// Outside a laboratory, and when it refuses.
pub fn ask(request: &Request) -> Result<Answer, LabError> {
    if !inside() {
        return Err(LabError::Control(format!(
            "this is not inside a lab ({VARIABLE} is not set): run it as plumb lab run SCENARIO -- plumb lab …"
        )));
    }
    let unreachable = |e: io::Error| LabError::Control(format!("the lab does not answer: {e}"));
    let answer = exchange(request).map_err(unreachable)?;
    match answer {
        Answer::Refused(why) => Err(LabError::Control(why)),
        answer => Ok(answer),
    }
}

fn exchange(request: &Request) -> io::Result<Answer> {
    let mut stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(SOCKET_NAME)?)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(serde_json::from_str(&answer)?)
}

/// Answers requests from every node, each on a thread of its own, which ends with the process:
/// the laboratory is the first process of its PID namespace and answers for as long as it lives.
pub(crate) fn serve(instance: &Arc<Instance>) -> Result<(), LabError> {
    for node in instance.nodes() {
        let listener = node.in_network(|| {
            UnixListener::bind_addr(&SocketAddr::from_abstract_name(SOCKET_NAME)?)
        })?;
        let instance = Arc::clone(instance);
        thread::Builder::new()
            .name("lab-control".into())
            .spawn(move || {
                for stream in listener.incoming().flatten() {
                    // A client that went away is its own affair.
                    let _ = answer(&stream, &instance);
                }
            })?;
    }
    Ok(())
}

fn answer(stream: &UnixStream, instance: &Instance) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut line = String::new();
    BufReader::new(stream.take(MAX_REQUEST_BYTES)).read_line(&mut line)?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => handle(instance, request).unwrap_or_else(|e| Answer::Refused(e.to_string())),
        Err(e) => Answer::Refused(format!("not a request: {e}")),
    };
    let mut stream = stream;
    let mut line = serde_json::to_vec(&answer)?;
    line.push(b'\n');
    stream.write_all(&line)
}

fn handle(instance: &Instance, request: Request) -> Result<Answer, LabError> {
    match request {
        Request::Set { cell, values } => Ok(Answer::Done(vec![instance.set(&cell, &values)?])),
        Request::Shape { shapers } => shapers
            .iter()
            .map(|s| instance.shape(s))
            .collect::<Result<_, _>>()
            .map(Answer::Done),
        Request::Stats => Ok(Answer::Stats(Box::new(instance.stats()))),
        Request::Mark => Ok(Answer::Mark(instance.mark())),
    }
}
