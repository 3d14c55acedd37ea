//! A process that is killed at any moment of applying or undoing a plan leaves a machine that undo puts
//! back, byte for byte. In a network namespace of its own, with the kernel's real variables and its loopback.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use nix::sys::signal::{Signal, raise};
use plumb_host::tune::apply::{apply, undo};
use plumb_host::tune::interface::Setting;
use plumb_host::tune::journal::{Directory, Journal, JournalError, Step, Store, Target};
use plumb_host::tune::machine::{Machine, MachineError, ThisMachine};
use plumb_net::namespace::Namespaces;

/// At which moment the child dies, and where its files are.
const DIE_AT: &str = "PLUMB_TEST_DIE_AT";
const PLACE: &str = "PLUMB_TEST_PLACE";

/// Kills its own process at a moment: before a call or after it.
struct Fate {
    at: usize,
    moments: usize,
}

impl Fate {
    fn meet(&mut self) {
        if self.moments == self.at {
            raise(Signal::SIGKILL).unwrap();
        }
        self.moments += 1;
    }

    fn around<T>(&mut self, call: impl FnOnce() -> T) -> T {
        self.meet();
        let result = call();
        self.meet();
        result
    }
}

struct Mortal<T> {
    inner: T,
    fate: Rc<RefCell<Fate>>,
}

impl Machine for Mortal<ThisMachine> {
    fn read(&mut self, target: &Target) -> Result<Option<String>, MachineError> {
        self.fate.borrow_mut().around(|| self.inner.read(target))
    }
    fn write(&mut self, target: &Target, value: Option<&str>) -> Result<(), MachineError> {
        self.fate
            .borrow_mut()
            .around(|| self.inner.write(target, value))
    }
}

impl Store for Mortal<Directory> {
    fn load(&mut self) -> Result<Option<Journal>, JournalError> {
        self.fate.borrow_mut().around(|| self.inner.load())
    }
    fn save(&mut self, journal: &Journal) -> Result<(), JournalError> {
        self.fate.borrow_mut().around(|| self.inner.save(journal))
    }
    fn remove(&mut self) -> Result<(), JournalError> {
        self.fate.borrow_mut().around(|| self.inner.remove())
    }
}

const VARIABLES: [(&str, &str); 3] = [
    ("net.ipv4.tcp_wmem", "4096 16384 134217728"),
    ("net.ipv4.tcp_rmem", "4096 131072 134217728"),
    ("net.ipv4.tcp_slow_start_after_idle", "0"),
];

fn steps(drop_in: &Path) -> Vec<Step> {
    let step = |target, new: &str| Step::to(target, new.to_owned());
    let mut steps: Vec<_> = VARIABLES
        .iter()
        .map(|(key, value)| step(Target::Sysctl((*key).to_owned()), value))
        .collect();
    steps.extend(on_the_loopback().map(|(target, value)| step(target, value)));
    steps.push(step(Target::File(drop_in.to_owned()), "# settings\n"));
    steps
}

/// One of each kind that an interface without hardware has.
fn on_the_loopback() -> [(Target, &'static str); 3] {
    let lo = |setting| Target::Interface("lo".to_owned(), setting);
    [
        (Target::Qdisc("lo".to_owned()), "pfifo 7586:"),
        (
            lo(Setting::Offload("tx-tcp-segmentation".to_owned())),
            "off",
        ),
        (lo(Setting::QueueLength), "321"),
    ]
}

fn files(place: &Path) -> (PathBuf, PathBuf) {
    (place.join("state"), place.join("90-plumb-tune.conf"))
}

/// Everything that a plan may touch.
fn machine(place: &Path) -> Vec<String> {
    let proc = |(key, _): &(&str, &str)| {
        std::fs::read_to_string(Path::new("/proc/sys").join(key.replace('.', "/"))).unwrap()
    };
    let mut names: Vec<_> = std::fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "state")
        .collect();
    names.sort();
    let interface = on_the_loopback().map(|(target, _)| {
        let value = ThisMachine.read(&target).unwrap();
        value.unwrap_or_default()
    });
    VARIABLES
        .iter()
        .map(proc)
        .chain(names)
        .chain(interface)
        .collect()
}

/// Not a test by itself: the process that is killed.
#[test]
fn child() {
    let (Ok(at), Ok(place)) = (std::env::var(DIE_AT), std::env::var(PLACE)) else {
        return;
    };
    let (state, drop_in) = files(Path::new(&place));
    let fate = Rc::new(RefCell::new(Fate {
        at: at.parse().unwrap(),
        moments: 0,
    }));
    let mut store = Mortal {
        inner: Directory::lock(&state, &drop_in).unwrap(),
        fate: fate.clone(),
    };
    let mut machine = Mortal {
        inner: ThisMachine,
        fate,
    };
    // Until the next boot, to another value in part; and for good, on top of that.
    let first = [("net.ipv4.tcp_wmem", "4096 16384 67108864"), VARIABLES[1]];
    let first = first.map(|(key, value)| Step::to(Target::Sysctl(key.into()), value.into()));
    for steps in [first.into(), steps(&drop_in)] {
        let (id, now) = ("id".to_owned(), "now".to_owned());
        apply(&mut store, &mut machine, id, now, None, steps).unwrap();
    }
    // The same while it undoes.
    undo(&mut store, &mut machine).unwrap();
}

#[test]
fn undo_restores_after_a_kill_at_every_moment() {
    let network = Namespaces::create("killed", || Ok::<_, io::Error>(())).unwrap();
    network
        .in_network(|| {
            let mut at = 0;
            loop {
                let place = tempfile::tempdir().unwrap();
                let before = machine(place.path());
                let status = Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "killed::child", "--test-threads=1", "--quiet"])
                    .env(DIE_AT, at.to_string())
                    .env(PLACE, place.path())
                    .stdout(Stdio::null())
                    .status()
                    .unwrap();
                let (state, drop_in) = files(place.path());
                let mut store = Directory::lock(&state, &drop_in).unwrap();
                if let Some(undone) = undo(&mut store, &mut ThisMachine).unwrap() {
                    assert!(
                        undone.failed.is_empty() && undone.kept.is_empty(),
                        "{at}: {undone:?}"
                    );
                }
                assert_eq!(machine(place.path()), before, "killed at {at}");
                assert_eq!(store.load().unwrap(), None, "{at}");
                if status.success() {
                    break;
                }
                at += 1;
            }
            // Reads, writes and saves, before and after each, there and back.
            assert!(at > 100, "only {at} moments");
            Ok::<_, io::Error>(())
        })
        .unwrap();
}
