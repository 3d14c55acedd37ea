//! `plumb serve` on the loopback.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};

use super::slots::{self, Slot, Weight};
use super::{PLUMB, words};

/// A responder on loopback, ended when dropped.
pub(crate) struct Responder {
    pub(crate) child: Child,
    pub(crate) port: u16,
    messages: Mutex<Receiver<String>>,
    _slot: Slot,
}

impl Responder {
    /// One that has the machine to itself: nothing limits what it carries.
    pub(crate) fn start() -> Self {
        Self::start_for(Weight::Heavy, &[])
    }

    /// One for clients that take no more than this.
    pub(crate) fn start_for(weight: Weight, options: &[&str]) -> Self {
        let slot = slots::take(weight);
        let options = [&["--listen", "127.0.0.1", "--port", "0"], options].concat();
        let (child, port, messages) = serving(&options);
        Self {
            child,
            port,
            messages: Mutex::new(messages),
            _slot: slot,
        }
    }

    /// Where it serves another protocol, which `--port-of NAME=0` puts on a free port.
    pub(crate) fn serves(&self, protocol: &str) -> SocketAddr {
        let begins = format!("plumb: {protocol} on ");
        let messages = self.messages.lock().unwrap();
        let address = messages.iter().find_map(|line| {
            let (address, _) = line.strip_prefix(&begins)?.split_once(',')?;
            address.parse().ok()
        });
        address.unwrap_or_else(|| panic!("it does not serve {protocol}"))
    }

    /// A download of 20 Mbit/s that goes on until somebody ends it.
    pub(crate) fn long_download(&self) -> Child {
        let line = "rate 127.0.0.1 --down --pacing 20mbit --duration 20s --json";
        Command::new(PLUMB)
            .args(words(line))
            .args(["--port", &self.port.to_string()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }
}

/// Starts `plumb serve`, and returns once it says on which port it listens: a port that a test had chosen, another
/// program could have by then, and a client that asks for one before there is a listener can connect to itself.
pub(crate) fn serving(options: &[&str]) -> (Child, u16, Receiver<String>) {
    let mut child = Command::new(PLUMB)
        .arg("serve")
        .args(options)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut messages = BufReader::new(child.stderr.take().unwrap()).lines();
    let mut before = Vec::new();
    let port = messages.by_ref().map_while(Result::ok).find_map(|line| {
        let port = port_of(&line);
        before.push(line);
        port
    });
    let port = port.unwrap_or_else(|| panic!("{options:?}: it does not listen: {before:?}"));
    let (heard, rest) = mpsc::channel();
    // Ends with the responder. The rest is shown with a test that fails, and to whoever asks.
    std::thread::spawn(move || {
        for line in messages.map_while(Result::ok) {
            eprintln!("{line}");
            let _ = heard.send(line);
        }
    });
    (child, port, rest)
}

/// The port in the line that begins what a responder says: "plumb: listening on 127.0.0.1:7586, TCP and UDP; …".
fn port_of(line: &str) -> Option<u16> {
    let (_, listening) = line.split_once("listening on ")?;
    let (address, _) = listening.split_once(',')?;
    let address: SocketAddr = address.parse().ok()?;
    Some(address.port())
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
