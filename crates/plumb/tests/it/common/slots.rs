//! Whose turn it is to use the machine.
//!
//! All tests of the binary begin at once and wait here, each time that they run plumb, until what it does fits beside
//! what goes on already: a dozen labs that are only probed, or one that fills a fast line. What fills fast lines waits
//! until all else is done, and has the machine to itself.
//!
//! A slow machine, or one that others use as well, has fewer parts to give ([`Turns::adapt`]).

use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use plumb_lab::scenario::Scenario;
use plumb_link::spec::{CellSpec, ChainSpec};
use plumb_model::units::BitRate;

/// The parts of the machine, which weights take. With twice as many, labs on two processors were late by 10 to 40 ms.
const MACHINE: usize = 12;

/// What a busy machine still gives: with fewer, the tests would take half as long again.
const MACHINE_LEAST: usize = 8;

/// How long the processors are watched before there are fewer or more parts: two phases of a load.
const ADAPTS_EVERY: Duration = Duration::from_secs(2);

/// The share of the time in which the processors are busy, ours and others' work, from which there is one part fewer. Packets
/// and programs wait for each other beyond it.
const TOO_BUSY: f64 = 0.85;

/// And below which there is one more.
const HAS_ROOM: f64 = 0.70;

/// How long after a lab no other begins. The kernel makes the namespaces of one at a time, and a processor that does so
/// carries no packets: labs that began together were late by 20 ms.
const APART: Duration = Duration::from_millis(100);

/// How much of the machine something takes. What comes first goes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// One of two processors, all the time.
    Processor,
    /// A lab in virtual time, which takes one of two processors.
    Virtual,
    /// A line of at most [`MEDIUM_BPS`] is filled: a third of a processor, its two ends included.
    Medium,
    /// A line of at most [`SLOW_BPS`] is filled: a sixth of a processor.
    Slow,
    /// A lab in which a probe is sent now and then: a hundredth of a processor.
    Light,
    /// The same without a lab, or less than a second of computing.
    Brief,
    /// A line of at most [`FAST_BPS`] is filled: half a processor.
    Fast,
    /// Whatever there is is filled.
    Heavy,
}

const ALL: [Weight; 8] = [
    Weight::Processor,
    Weight::Virtual,
    Weight::Medium,
    Weight::Slow,
    Weight::Light,
    Weight::Brief,
    Weight::Fast,
    Weight::Heavy,
];

const SLOW_BPS: u64 = 20_000_000;
const MEDIUM_BPS: u64 = 100_000_000;
const FAST_BPS: u64 = 1_000_000_000;

/// With small packets a line costs the machine so many times as much as with large ones.
const SMALL_TIMES: u64 = 10;

/// Words of commands that fill a line.
const LOADS: [&str; 12] = [
    "check", "rate", "load", "capacity", "overhead", "flood", "iperf3", "verify", "disk", "cipher",
    "speed", "demo",
];

impl Weight {
    pub(crate) fn parts(self) -> usize {
        match self {
            Self::Light | Self::Brief => 1,
            Self::Slow => 2,
            Self::Medium => 3,
            // Two of them even on a busy machine, which they make busy themselves.
            Self::Virtual => MACHINE_LEAST / 2,
            Self::Processor | Self::Fast => 5,
            Self::Heavy => MACHINE,
        }
    }

    /// Of a command line of plumb. What loads the loopback fills whatever there is; reading captures computes.
    pub(crate) fn of(arguments: &[&str]) -> Self {
        if let ["capture", ..] = arguments {
            return Self::Processor;
        }
        if let ["lab", _, "--virtual", ..] = arguments {
            return Self::Virtual;
        }
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
            _ => Self::Brief,
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
    let words = words(command);
    let loads = words.iter().filter(|word| LOADS.contains(word)).count();
    // Of several loads in a script, nobody knows whose option it is.
    let has = |word: &str| loads == 1 && words.contains(&word);
    let (up, down) = (!has("--down"), !has("--up"));
    let links = scenario.links.iter().filter(|link| link.is_emulated());
    let rates = links.map(|link| {
        let up = if up { rate_bps(&link.up) } else { 0 };
        let down = if down { rate_bps(&link.down) } else { 0 };
        up.max(down)
    });
    let asked = asked_bps(&words).filter(|_| loads == 1);
    let filled_bps = rates.chain(asked).min().unwrap_or(u64::MAX);
    match words.contains(&"overhead") {
        true => filled_bps.saturating_mul(SMALL_TIMES),
        false => filled_bps,
    }
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

/// Of a command, or of a script in it.
fn words<'a>(command: &[&'a str]) -> Vec<&'a str> {
    let words = command
        .iter()
        .flat_map(|argument| argument.split_whitespace());
    words.collect()
}

/// Whether a command, or a script in it, fills a line.
fn loads(command: &[&str]) -> bool {
    words(command).iter().any(|word| LOADS.contains(word))
}

struct Turns {
    /// Parts that there are now.
    machine: usize,
    /// Parts that are taken.
    used: usize,
    /// How many wait, by weight.
    waiting: [usize; ALL.len()],
    /// When the last one began that may make a lab.
    begun: Option<Instant>,
}

impl Turns {
    /// Who goes next: the first that waits and fits.
    fn next(&self) -> Option<Weight> {
        let mut waiting = ALL
            .iter()
            .filter(|weight| self.waiting[**weight as usize] > 0);
        waiting
            .find(|weight| self.used + weight.parts().min(self.machine) <= self.machine)
            .copied()
    }

    /// Follows what the machine can do, by the share of the time in which it was busy.
    fn adapt(&mut self, busy: f64) {
        self.machine = match busy {
            TOO_BUSY.. => (self.machine - 1).max(MACHINE_LEAST),
            HAS_ROOM.. => self.machine,
            _ => (self.machine + 1).min(MACHINE),
        };
    }
}

static TURNS: Mutex<Turns> = Mutex::new(Turns {
    machine: MACHINE,
    used: 0,
    waiting: [0; ALL.len()],
    begun: None,
});
static CHANGED: Condvar = Condvar::new();
static WATCHED: Once = Once::new();

/// How long the processors were busy and how long they were there, in the kernel's ticks (the first line of /proc/stat,
/// proc_stat(5): the fourth number is idle, the fifth waits for a disk, and the eighth went to other machines).
fn processor_ticks() -> [u64; 2] {
    let text = std::fs::read_to_string("/proc/stat").expect("the kernel counts");
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .take(8)
        .map(|ticks| ticks.parse().expect("a number of ticks"))
        .collect();
    let all: u64 = ticks.iter().sum();
    [all - ticks[3] - ticks[4], all]
}

/// Adapts to what the machine can do, for as long as the tests last.
fn watch_the_machine() {
    let mut before = processor_ticks();
    loop {
        std::thread::sleep(ADAPTS_EVERY);
        let now = processor_ticks();
        let [busy, all] = [0, 1].map(|at| (now[at] - before[at]) as f64);
        before = now;
        if all > 0.0 {
            turns().adapt(busy / all);
            CHANGED.notify_all();
        }
    }
}

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
    WATCHED.call_once(|| drop(std::thread::spawn(watch_the_machine)));
    let makes_lab = weight != Weight::Brief;
    let mut turns = turns();
    turns.waiting[weight as usize] += 1;
    loop {
        let since = turns.begun.map_or(APART, |begun| begun.elapsed());
        turns = if turns.next() != Some(weight) {
            CHANGED.wait(turns).unwrap_or_else(PoisonError::into_inner)
        } else if let Some(early) = APART
            .checked_sub(since)
            .filter(|early| makes_lab && !early.is_zero())
        {
            let woken = CHANGED.wait_timeout(turns, early);
            woken.unwrap_or_else(PoisonError::into_inner).0
        } else {
            break;
        };
    }
    turns.waiting[weight as usize] -= 1;
    turns.used += weight.parts();
    if makes_lab {
        turns.begun = Some(Instant::now());
    }
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
fn a_busy_machine_gives_less_and_one_that_calms_down_all_again() {
    let mut turns = Turns {
        machine: MACHINE,
        used: 0,
        waiting: [0; ALL.len()],
        begun: None,
    };
    let mut parts_after = |busy: f64, windows: usize| {
        (0..windows).for_each(|_| turns.adapt(busy));
        turns.waiting[Weight::Heavy as usize] = 1;
        // What takes everything still begins where nothing else goes on.
        assert_eq!(turns.next(), Some(Weight::Heavy));
        turns.machine
    };
    assert_eq!(parts_after(0.5, 1), MACHINE);
    assert_eq!(parts_after(0.9, 3), MACHINE - 3);
    assert_eq!(parts_after(0.8, 5), MACHINE - 3);
    assert_eq!(parts_after(1.0, 50), MACHINE_LEAST);
    assert_eq!(parts_after(0.6, 50), MACHINE);
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
            within(
                "fibre",
                &["sh", "-c", "plumb lab flood server --rate 1mbit & wait"],
            ),
            Weight::Slow,
        ),
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
        (Weight::of(&["report", "no such file"]), Weight::Brief),
    ];
    for (number, (found, wanted)) in cases.into_iter().enumerate() {
        assert_eq!(found, wanted, "{number}");
    }
}
