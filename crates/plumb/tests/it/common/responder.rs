//! `plumb serve` on the loopback.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::slots::{self, Slot, Weight};
use super::{PLUMB, words};

/// A responder on loopback, ended when dropped.
pub(crate) struct Responder {
    pub(crate) child: Child,
    pub(crate) port: u16,
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
        // A free port: bound, read and given back.
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let child = Command::new(PLUMB)
            .args([
                "serve",
                "--listen",
                "127.0.0.1",
                "--port",
                &port.to_string(),
                "--quiet",
            ])
            .args(options)
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let started = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(
                started.elapsed() < Duration::from_secs(5),
                "the responder does not listen"
            );
            sleep(Duration::from_millis(20));
        }
        Self {
            child,
            port,
            _slot: slot,
        }
    }

    /// Waits until another port of it listens: the first does before the others.
    pub(crate) fn listens(&self, at: SocketAddr) {
        let begun = Instant::now();
        while TcpStream::connect(at).is_err() {
            assert!(
                begun.elapsed() < Duration::from_secs(5),
                "{at} does not listen"
            );
            sleep(Duration::from_millis(20));
        }
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

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
