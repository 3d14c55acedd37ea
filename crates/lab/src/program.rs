//! How any program starts in a node, and what it said last.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use plumb_net::namespace::Namespaces;
use plumb_net::process::start_in;

use crate::control;
use crate::error::LabError;
use crate::instance::Instance;

/// How much of a service's last words is reported, in bytes.
const LAST_WORDS_BYTES: usize = 1024;
/// How long to wait for them once it has ended: they are in the pipe already, unless a child of
/// the service still holds it.
const LAST_WORDS_WITHIN: Duration = Duration::from_millis(200);

/// A problem, and what the program said last where it said something.
pub(crate) fn with_last_words(problem: &str, words: Option<&Receiver<String>>) -> String {
    let said = words.and_then(|words| words.recv_timeout(LAST_WORDS_WITHIN).ok());
    let said = said.unwrap_or_default();
    let said: Vec<&str> = said.split_whitespace().collect();
    match said.join(" ").trim_end_matches('.') {
        "" => problem.to_owned(),
        said => format!("{problem}: {said}"),
    }
}

/// A program in a node that neither reads nor writes a terminal.
pub(crate) fn quiet(instance: &Instance, node: &str, run: &[String]) -> Result<Command, LabError> {
    let arguments: Vec<OsString> = run.iter().map(OsString::from).collect();
    let mut command = prepare(instance.namespaces(node)?, &arguments)?;
    // Not the terminal's foreground group: Ctrl-C is for the command.
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .process_group(0);
    Ok(command)
}

/// Reads what a service says, so that it never has to wait, and passes the end of it on.
///
/// The thread ends when the service and its children have ended.
pub(crate) fn keep_last_words(
    mut errors: impl Read + Send + 'static,
) -> io::Result<Receiver<String>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::Builder::new()
        .name("service-errors".into())
        .spawn(move || {
            let mut last = Vec::new();
            let mut buffer = [0; LAST_WORDS_BYTES];
            while let Ok(length @ 1..) = errors.read(&mut buffer) {
                last.extend_from_slice(buffer.get(..length).unwrap_or_default());
                last.drain(..last.len().saturating_sub(LAST_WORDS_BYTES));
            }
            let _ = sender.send(String::from_utf8_lossy(&last).trim().to_owned());
        })?;
    Ok(receiver)
}

/// How a process ended.
pub(crate) fn how(status: WaitStatus) -> String {
    match status {
        WaitStatus::Exited(_, code) => format!("exit status {code}"),
        WaitStatus::Signaled(_, signal, _) => signal.to_string(),
        other => format!("{other:?}"),
    }
}

pub(crate) fn describe(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit status {code}"),
        (_, Some(signal)) => format!("signal {signal}"),
        _ => "no status".to_owned(),
    }
}

/// A command that will start inside a node and find this plumb by its name.
pub(crate) fn prepare(node: &Arc<Namespaces>, arguments: &[OsString]) -> Result<Command, LabError> {
    let plumb = std::env::current_exe()?;
    let Some((program, rest)) = arguments.split_first() else {
        return Err(LabError::Control("there is no command to run".into()));
    };
    let mut path = OsString::from(plumb.parent().unwrap_or(Path::new("/")));
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    let program = if program == OsStr::new("plumb") {
        plumb.as_os_str()
    } else {
        program
    };
    let mut command = Command::new(program);
    command
        .args(rest)
        .env("PATH", path)
        .env(control::VARIABLE, format!("@{}", control::SOCKET_NAME));
    start_in(&mut command, node)?;
    Ok(command)
}

/// Takes note of every process that has ended, among them orphans that the first process of a
/// PID namespace inherits.
pub(crate) fn reap() -> impl Iterator<Item = WaitStatus> {
    std::iter::from_fn(|| match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        Ok(WaitStatus::StillAlive) | Err(_) => None,
        Ok(status) => Some(status),
    })
}
