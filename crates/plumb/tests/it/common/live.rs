//! Laboratories in the background, and a terminal to use them from.

use std::io::{self, Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use plumb_net::namespace::Namespaces;

use super::machine::{descendants, is_alive, machine, signal};
use super::network::Network;
use super::slots::{self, Slot, Weight};
use super::{need_root, plumb, stderr, stdout};

/// Runs a test in a network of its own, and sees that it leaves the machine as it was.
pub(crate) fn alone(test: impl FnOnce() + Send) {
    need_root();
    let name = slots::test();
    let before = machine();
    let network = Namespaces::create("test", || Ok::<_, io::Error>(())).unwrap();
    network
        .in_network(|| {
            slots::works_for(name);
            test();
            let left = std::fs::read_to_string("/proc/thread-self/net/unix").unwrap();
            assert!(!left.contains("plumb-lab"), "sockets are left: {left}");
            Ok::<_, io::Error>(())
        })
        .unwrap();
    assert_eq!(machine(), before);
}

/// A laboratory in the background; killed when a test fails before it ends it.
pub(crate) struct Lab {
    pub(crate) name: String,
    pub(crate) pid: u32,
    _slot: Slot,
}

impl Lab {
    pub(crate) fn up(arguments: &[&str]) -> Self {
        let slot = slots::take(Weight::Light);
        let output = plumb(&[&["lab", "up"], arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let name = stdout(&output).split('\'').nth(1).unwrap().to_owned();
        let pid = running()
            .into_iter()
            .find(|lab| lab["name"] == name.as_str())
            .and_then(|lab| lab["pid"].as_u64())
            .expect("it is running");
        Self {
            name,
            pid: u32::try_from(pid).unwrap(),
            _slot: slot,
        }
    }

    pub(crate) fn processes(&self) -> Vec<u32> {
        let mut all = descendants(self.pid);
        all.push(self.pid);
        all
    }

    /// Ends it; when that returns, nothing is left.
    pub(crate) fn down(self, options: &[&str]) {
        let processes = self.processes();
        done(&[&["lab", "down", self.name.as_str()], options].concat());
        assert!(!processes.iter().any(|pid| is_alive(*pid)), "{processes:?}");
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        if is_alive(self.pid) {
            signal(self.pid as i32, "KILL");
        }
    }
}

/// What `plumb lab list` says is running.
pub(crate) fn running() -> Vec<serde_json::Value> {
    let list: serde_json::Value = serde_json::from_str(&done(&["lab", "list", "--json"])).unwrap();
    list["running"].as_array().unwrap().clone()
}

/// Runs plumb, which must succeed, and returns what it printed.
pub(crate) fn done(arguments: &[&str]) -> String {
    let output = plumb(arguments);
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        stderr(&output)
    );
    stdout(&output)
}

/// Runs plumb, which must fail with status 125 and these words.
pub(crate) fn refused(arguments: &[&str], words: &[&str]) {
    says(&plumb(arguments), words);
}

pub(crate) fn says(output: &Output, words: &[&str]) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(125), "{text}");
    assert!(
        words.iter().all(|word| text.contains(word)),
        "{words:?}: {text}"
    );
    assert!(!text.contains("panicked"), "{text}");
}

/// Waits until `what` holds.
pub(crate) fn until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < Duration::from_secs(10), "never: {what}");
        sleep(Duration::from_millis(20));
    }
}

/// Two machines and an emulated link between them that takes no time.
pub(crate) fn pair() -> Network {
    let mut pair = Network::default();
    pair.node("client", "").node("server", "");
    pair.link("wire", ["client", "server"], "emulated = true");
    pair
}

/// A terminal that somebody types at.
pub(crate) struct Terminal {
    pub(crate) child: Child,
    seen: Box<dyn Read>,
}

impl Terminal {
    pub(crate) fn open(command: &str) -> Self {
        // Nothing typed here takes long: what is never shown ends the test.
        let mut child = Command::new("timeout")
            .args(["--signal=KILL", "30", "script"])
            .args(["--quiet", "--return", "--command", command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            seen: Box::new(child.stdout.take().unwrap()),
            child,
        }
    }

    pub(crate) fn types(&mut self, keys: &str) {
        self.child
            .stdin
            .as_mut()
            .unwrap()
            .write_all(keys.as_bytes())
            .unwrap();
    }

    /// Waits until the terminal shows `text`; returns all that it showed from where it was.
    pub(crate) fn shows(&mut self, text: &str) -> String {
        let mut shown = String::new();
        let mut byte = [0];
        while !shown.contains(text) {
            assert_eq!(
                self.seen.read(&mut byte).unwrap(),
                1,
                "'{text}' is not in {shown}"
            );
            shown.push(char::from(byte[0]));
        }
        shown
    }
}
