//! `plumb serve` on the loopback.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::slots::{self, Slot, Weight};
use super::{PLUMB, words};

/// A responder on loopback, ended when dropped. It has the machine to itself: nothing limits what it carries.
pub(crate) struct Responder {
    pub(crate) child: Child,
    pub(crate) port: u16,
    _slot: Slot,
}

impl Responder {
    pub(crate) fn start() -> Self {
        Self::start_with(&[])
    }

    pub(crate) fn start_with(options: &[&str]) -> Self {
        let slot = slots::take(Weight::Heavy);
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

    /// A download that goes on until somebody ends it.
    pub(crate) fn long_download(&self) -> Child {
        let line = "rate 127.0.0.1 --down --duration 20s --budget 2TB --json";
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
