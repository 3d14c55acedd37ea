//! Running iproute2's `tc`, by which plumb impairs links; shapers are made over netlink.

use std::io::{self, Read as _};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use crate::missing;

/// `tc`, missing or refusing.
#[derive(Debug, thiserror::Error)]
pub enum TcError {
    /// The program is not there.
    #[error("tc is not installed: install iproute2 (apt install iproute2, dnf install iproute-tc)")]
    Missing,
    /// The program could not be run.
    #[error("tc cannot be run: {0}")]
    Run(io::Error),
    #[error("the kernel's queues may not be changed: run it as root (sudo)")]
    Privilege,
    /// The kernel has no such queueing discipline, not even as a module that it could load.
    #[error("{0}")]
    NoSuchKind(String),
    #[error("'{command}' failed: {message}")]
    Refused { command: String, message: String },
}

/// What the kernel counts for one queueing discipline of a device. Bytes are as the discipline
/// counts them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Qdisc {
    /// Kind of the discipline, such as `netem`.
    pub kind: String,
    /// Handle of the discipline; `0:` where the kernel put it there by itself.
    pub handle: String,
    /// Whether it is the outermost of the device.
    #[serde(default)]
    pub root: bool,
    /// Class that the discipline serves. Absent for the outermost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Bytes that it sent.
    #[serde(default)]
    pub bytes: u64,
    /// Packets that it sent.
    #[serde(default)]
    pub packets: u64,
    /// Packets dropped, whatever the cause: netem's losses and full queues alike.
    #[serde(default)]
    pub drops: u64,
    /// Times that a packet had to wait for the rate.
    #[serde(default)]
    pub overlimits: u64,
    /// Bytes that wait now.
    #[serde(default, alias = "backlog")]
    pub backlog_bytes: u64,
    /// Packets that wait now.
    #[serde(default, alias = "qlen")]
    pub backlog_packets: u64,
    /// Packets marked with congestion experienced. Absent where the discipline does not count them.
    #[serde(default, alias = "ecn_mark", skip_serializing_if = "Option::is_none")]
    pub marked: Option<u64>,
}

/// Runs `tc` in the network of the calling thread and returns what it printed.
///
/// # Errors
/// When there is no `tc`, or the kernel refuses.
pub fn run<S: AsRef<str>>(arguments: &[S]) -> Result<String, TcError> {
    let arguments: Vec<&str> = arguments.iter().map(AsRef::as_ref).collect();
    let child = Command::new("tc")
        .args(&arguments)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = match child {
        Ok(child) => child,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(TcError::Missing),
        Err(e) => return Err(TcError::Run(e)),
    };
    let (mut printed, mut said) = (String::new(), String::new());
    // One after the other: what tc says of a failure fits into a pipe.
    let read = child
        .stdout
        .take()
        .map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut printed))
        .and_then(|_| {
            let pipe = child.stderr.take();
            pipe.map_or(Ok(0), |mut pipe| pipe.read_to_string(&mut said))
        });
    // The first process of a lab collects the exit status of every process in it, of this one too. Empty error output
    // then means success.
    let succeeded = child
        .wait()
        .map_or(said.is_empty(), |status| status.success());
    read.map_err(TcError::Run)?;
    if succeeded {
        return Ok(printed);
    }
    Err(refusal(&arguments, &said))
}

/// The queueing disciplines of a device in the network of the calling thread, with counters.
///
/// # Errors
/// When there is no such device, or no `tc`.
pub fn qdiscs(device: &str) -> Result<Vec<Qdisc>, TcError> {
    let arguments = ["-s", "-j", "qdisc", "show", "dev", device];
    let text = run(&arguments)?;
    serde_json::from_str(&text).map_err(|e| TcError::Refused {
        command: spell(&arguments),
        message: format!("what it printed is not understood ({e})"),
    })
}

/// A `tc` command as a user types it.
pub fn spell<S: AsRef<str>>(arguments: &[S]) -> String {
    arguments
        .iter()
        .fold("tc".to_owned(), |line, word| line + " " + word.as_ref())
}

/// What a failure means, from what tc says: the kernel's own words, or `strerror`.
fn refusal(arguments: &[&str], said: &str) -> TcError {
    if said.contains("Operation not permitted") {
        return TcError::Privilege;
    }
    // Asking for a discipline by a kind that the kernel lacks is the only case in which adding one fails with ENOENT,
    // which kernels before 4.17 report without a message.
    if said.contains("qdisc kind is unknown")
        || (arguments.contains(&"add") && said.contains("No such file or directory"))
    {
        let kind = kind_in(arguments);
        return TcError::NoSuchKind(missing::of(kind, &[format!("sch_{kind}")]));
    }
    let message = said
        .trim()
        .trim_start_matches("Error: ")
        .replace('\n', "; ");
    TcError::Refused {
        command: spell(arguments),
        message,
    }
}

/// The word that names the discipline: after the handle, and after a size table if there is one.
fn kind_in<'a>(arguments: &[&'a str]) -> &'a str {
    let mut words = arguments
        .iter()
        .copied()
        .skip_while(|word| *word != "handle")
        .skip(2);
    match words.next() {
        // "stab overhead N"
        Some("stab") => words.nth(2).unwrap_or_default(),
        kind => kind.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn refusals_say_what_to_do() {
        let add = [
            "qdisc", "add", "dev", "x", "root", "handle", "1:", "stab", "overhead", "-14", "netem",
            "limit", "9",
        ];
        let text = refusal(&add, "Error: Specified qdisc kind is unknown.\n").to_string();
        assert!(
            text.contains("has no netem") && text.contains("modprobe sch_netem"),
            "{text}"
        );
        let text = refusal(&add, "RTNETLINK answers: No such file or directory\n").to_string();
        assert!(text.contains("modprobe sch_netem"), "{text}");
        let text = refusal(&add, "RTNETLINK answers: Operation not permitted\n").to_string();
        assert!(text.contains("as root"), "{text}");
        let text = refusal(&["qdisc", "show"], "Error: Nonsense.\n").to_string();
        assert_eq!(text, "'tc qdisc show' failed: Nonsense.");
    }

    #[test]
    fn reads_what_tc_prints() {
        // tc -s -j qdisc of iproute2 6.1.
        let text = r#"[{"kind":"fq_codel","handle":"3:","parent":"2:1","options":{"limit":10240},"bytes":9,"packets":1,"drops":0,"overlimits":0,"requeues":0,"backlog":84,"qlen":2,"maxpacket":0,"ecn_mark":7}]"#;
        let [qdisc] = &serde_json::from_str::<Vec<Qdisc>>(text).unwrap()[..] else {
            panic!()
        };
        assert_eq!(
            (qdisc.backlog_bytes, qdisc.backlog_packets, qdisc.marked),
            (84, 2, Some(7))
        );
        assert!(!qdisc.root && qdisc.parent.as_deref() == Some("2:1"));
    }
}
