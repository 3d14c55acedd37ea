//! Whose turn it is to use the machine.
//!
//! All tests of the binary begin at once and wait here, each time that they run plumb, until what it does fits beside
//! what goes on already: a dozen labs that are only probed, or one that fills a fast line. What fills fast lines waits
//! until all else is done, and has the machine to itself.

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plumb_lab::scenario::Scenario;
use plumb_link::spec::{CellSpec, ChainSpec};
use plumb_model::units::BitRate;

/// The parts of the machine, which weights take. With twice as many, labs on two processors were late by 10 to 40 ms.
const MACHINE: usize = 12;

/// How long nothing else begins. The kernel makes the namespaces of one lab at a time, and a processor that does so
/// carries no packets: labs that began together were late by 20 ms.
const APART: Duration = Duration::from_millis(100);

/// How much of the machine something takes. What comes first goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// One of two processors, all the time.
    Processor,
    /// A line of at most [`MEDIUM_BPS`] is filled: a third of a processor, its two ends included.
    Medium,
    /// A line of at most [`SLOW_BPS`] is filled: a sixth of a processor.
    Slow,
    /// A probe now and then, or less than a second of computing: a hundredth of a processor.
    Light,
    /// A line of at most [`FAST_BPS`] is filled: half a processor.
    Fast,
    /// Whatever there is is filled.
    Heavy,
}

const ALL: [Weight; 6] = [
    Weight::Processor,
    Weight::Medium,
    Weight::Slow,
    Weight::Light,
    Weight::Fast,
    Weight::Heavy,
];

const SLOW_BPS: u64 = 20_000_000;
const MEDIUM_BPS: u64 = 100_000_000;
const FAST_BPS: u64 = 1_000_000_000;

/// Words of commands that fill a line.
const LOADS: [&str; 11] = [
    "check", "rate", "load", "capacity", "flood", "iperf3", "verify", "disk", "cipher", "speed",
    "demo",
];

impl Weight {
    fn parts(self) -> usize {
        match self {
            Self::Light => 1,
            Self::Slow => 2,
            Self::Medium => 3,
            Self::Processor | Self::Fast => 5,
            Self::Heavy => MACHINE,
        }
    }

    /// Of a command line of plumb. What loads the loopback fills whatever there is.
    pub(crate) fn of(arguments: &[&str]) -> Self {
        let mut parts = arguments.split(|argument| *argument == "--");
        let options = parts.next().unwrap_or_default();
        let scenario = || options.iter().find_map(|word| Scenario::load(word).ok());
        match (options, scenario()) {
            (["lab", "verify", ..], Some(scenario)) => {
                let measure = scenario.truth.measure.iter().map(String::as_str);
                Self::within(&scenario, &measure.collect::<Vec<_>>())
            }
            (["lab", "run", ..], Some(scenario)) => {
                Self::within(&scenario, &parts.collect::<Vec<_>>().concat())
            }
            (["lab", ..], _) => Self::Light,
            _ if loads(arguments) => Self::Heavy,
            _ => Self::Light,
        }
    }

    /// Of a command in a scenario, with what goes on there besides.
    fn within(scenario: &Scenario, command: &[&str]) -> Self {
        let beside = scenario.traffic.iter().map(|traffic| {
            let words = traffic.run.iter().map(String::as_str);
            words.collect::<Vec<_>>()
        });
        let loads = beside.chain([command.to_vec()]).filter(|run| loads(run));
        match loads.map(|run| filled_bps(scenario, &run)).max() {
            None => Self::Light,
            Some(..=SLOW_BPS) => Self::Slow,
            Some(..=MEDIUM_BPS) => Self::Medium,
            Some(..=FAST_BPS) => Self::Fast,
            Some(_) => Self::Heavy,
        }
    }
}

/// The rate at which a command loads a scenario: what it loads crosses every link, and so the slowest.
fn filled_bps(scenario: &Scenario, command: &[&str]) -> u64 {
    let only = |direction: &str| command.contains(&direction);
    let (up, down) = (!only("--down"), !only("--up"));
    let links = scenario.links.iter().filter(|link| link.is_emulated());
    let rates = links.map(|link| {
        let up = if up { rate_bps(&link.up) } else { 0 };
        let down = if down { rate_bps(&link.down) } else { 0 };
        up.max(down)
    });
    rates.chain(asked_bps(command)).min().unwrap_or(u64::MAX)
}

/// What the narrowest place of a direction lets through at most.
fn rate_bps(chain: &ChainSpec) -> u64 {
    let rates = chain.0.iter().filter_map(|named| match &named.cell {
        CellSpec::Shaper(line) => {
            let steps = line.schedule.iter().map(|step| step.rate.bps());
            line.rate
                .map(|rate| rate.bps())
                .into_iter()
                .chain(steps)
                .max()
        }
        CellSpec::Policer(line) => Some(line.rate.bps()),
        CellSpec::PacketRate(limit) => Some((limit.per_second * 12_000.0) as u64),
        CellSpec::Wifi(radio) => Some(radio.rate.bps()),
        CellSpec::HalfDuplex(line) => Some(line.rate.bps()),
        CellSpec::DuplexMismatch(line) => Some(line.rate.bps()),
        _ => None,
    });
    rates.min().unwrap_or(u64::MAX)
}

/// What a command sends at most where it is told: datagrams at a rate, or what applications send.
fn asked_bps(command: &[&str]) -> Option<u64> {
    let has = |word: &str| command.contains(&word);
    if has("--profile") {
        return Some(SLOW_BPS);
    }
    let at = command.iter().position(|word| *word == "--rate")?;
    let rate: BitRate = command.get(at + 1)?.parse().ok()?;
    (has("--udp") || has("flood")).then(|| rate.bps())
}

/// Whether a command, or a script in it, fills a line.
fn loads(command: &[&str]) -> bool {
    let words = command
        .iter()
        .flat_map(|argument| argument.split_whitespace());
    words.into_iter().any(|word| LOADS.contains(&word))
}

#[derive(Default)]
struct Turns {
    /// Parts that are taken.
    used: usize,
    /// How many wait, by weight.
    waiting: [usize; 6],
    /// When the last one began.
    begun: Option<Instant>,
}

impl Turns {
    /// Who goes next: the first that waits and fits.
    fn next(&self) -> Option<Weight> {
        let mut waiting = ALL
            .iter()
            .filter(|weight| self.waiting[**weight as usize] > 0);
        waiting
            .find(|weight| self.used + weight.parts() <= MACHINE)
            .copied()
    }
}

static TURNS: Mutex<Turns> = Mutex::new(Turns {
    used: 0,
    waiting: [0; 6],
    begun: None,
});
static CHANGED: Condvar = Condvar::new();

fn turns() -> MutexGuard<'static, Turns> {
    TURNS.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    static HAS_ONE: Cell<bool> = const { Cell::new(false) };
    static TEST: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// The test that this thread works for: libtest names its threads so.
pub(crate) fn test() -> String {
    let told = TEST.with_borrow(Clone::clone);
    told.unwrap_or_else(|| std::thread::current().name().unwrap_or("?").to_owned())
}

/// Tells a thread that a test made for which one it works.
pub(crate) fn works_for(test: String) {
    TEST.set(Some(test));
}

/// A part of the machine, until it is dropped.
pub(crate) struct Slot(Option<(Weight, Instant)>);

impl Slot {
    /// Lets this thread, which the test made, use it as well.
    pub(crate) fn covers_this_thread(&self) {
        HAS_ONE.set(true);
    }
}

/// Waits for a part of the machine. A thread that has one needs no other: whoever takes one for more than one command
/// takes what the heaviest needs.
pub(crate) fn take(weight: Weight) -> Slot {
    if HAS_ONE.replace(true) {
        return Slot(None);
    }
    let mut turns = turns();
    turns.waiting[weight as usize] += 1;
    loop {
        let since = turns.begun.map_or(APART, |begun| begun.elapsed());
        turns = if turns.next() != Some(weight) {
            CHANGED.wait(turns).unwrap_or_else(PoisonError::into_inner)
        } else if let Some(early) = APART.checked_sub(since).filter(|early| !early.is_zero()) {
            let woken = CHANGED.wait_timeout(turns, early);
            woken.unwrap_or_else(PoisonError::into_inner).0
        } else {
            break;
        };
    }
    turns.waiting[weight as usize] -= 1;
    turns.used += weight.parts();
    turns.begun = Some(Instant::now());
    drop(turns);
    // The next of them may fit beside it.
    CHANGED.notify_all();
    Slot(Some((weight, Instant::now())))
}

impl Drop for Slot {
    fn drop(&mut self) {
        let Some((weight, since)) = self.0 else {
            return;
        };
        HAS_ONE.set(false);
        turns().used -= weight.parts();
        CHANGED.notify_all();
        // What `make test` adds up by group.
        if let Some(file) = std::env::var_os("PLUMB_TEST_TIMES") {
            let line = format!(
                "{} {weight:?} {:.3}\n",
                test(),
                since.elapsed().as_secs_f64()
            );
            let file = std::fs::OpenOptions::new()
                .append(true)
                .create(true)
                .open(file);
            let _ = file.and_then(|mut file| file.write_all(line.as_bytes()));
        }
    }
}

#[test]
fn what_a_command_takes_follows_from_it_and_its_network() {
    let within = |scenario, command: &[&str]| {
        Weight::of(&[&["lab", "run", "--stats", "x", scenario, "--"], command].concat())
    };
    let cases = [
        (within("fibre", &["plumb", "ping", "server"]), Weight::Light),
        (within("fibre", &["plumb", "check", "server"]), Weight::Fast),
        (
            within("home-cable", &["sh", "-c", "sleep 1; plumb check server"]),
            Weight::Medium,
        ),
        (within("home-udp-flood", &["true"]), Weight::Slow),
        (
            within("dsl-poor", &["plumb", "rate", "server", "--up"]),
            Weight::Slow,
        ),
        (
            within(
                "fibre",
                &["plumb", "rate", "server", "--udp", "--rate", "2mbit"],
            ),
            Weight::Slow,
        ),
        (
            Weight::of(&["lab", "verify", "transatlantic-10g"]),
            Weight::Heavy,
        ),
        (Weight::of(&["rate", "127.0.0.1"]), Weight::Heavy),
        (Weight::of(&["report", "no such file"]), Weight::Light),
    ];
    for (number, (found, wanted)) in cases.into_iter().enumerate() {
        assert_eq!(found, wanted, "{number}");
    }
}
