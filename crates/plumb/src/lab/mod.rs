//! `plumb lab`: emulated networks. One file a group of actions.

mod complain;
mod flood;
mod from;
mod igd;
mod impair;
mod list;
mod look;
mod mark;
mod proxy;
mod session;
mod set;
#[cfg(feature = "shape")]
pub(crate) mod shaping;
mod stats;
mod verify;
mod virtual_time;

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use plumb_lab::observe::Sight;
use plumb_lab::supervise::{LAB_FAILED, Session};
use plumb_model::run::LabBackend;

use self::complain::complain;
pub(crate) use mark::Mark;

use crate::exit::{USAGE, unless_cut_short};
use crate::output::message;
use crate::usage::UsageError;
use crate::words;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: every direction of a link takes a share of a processor; a lab that the machine could not keep up with reports it, \
and so does every Run made in it. With --virtual it runs in a kernel whose clock is its own (plumb explain virtual-lab): exact on \
any machine, without root, for lines up to some 100 Mbit/s. Otherwise it needs root, or a system that gives users a user namespace and /dev/net/tun: links then \
run at ordinary priority, which the lab reports too. With --backend kernel the cells are the kernel's netem, tbf and CAKE: no \
truth about single packets, no changes while it runs, delay and loss before the rate.

How to write a scenario: plumb explain scenario; what links can do: plumb explain cells.";

/// What comes after `lab up`.
const AFTER_UP: &str = "\
A lab in the background writes no file of its own: `plumb lab stats --json` prints what every link did so far, and `plumb \
lab down --stats FILE` saves it at the end.";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Do,
}

#[derive(Subcommand)]
enum Do {
    /// The scenarios that come with plumb, and the labs that run
    List {
        /// Only scenarios with these words in name, group or summary
        words: Vec<String>,
        /// Print them as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a scenario's file
    Show {
        /// Name of a scenario, or path of a .toml file
        scenario: String,
    },
    /// Write the scenario that reproduces a measured path
    ///
    /// What the Run does not show is said in comments, with what is assumed instead.
    From {
        /// A saved Run of plumb check
        run: PathBuf,
        /// Write to this file [default: standard output]
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Run a command in an emulated network
    ///
    /// It ends with the status of the command, or 125 where the lab itself failed.
    Run {
        /// Name of a scenario, or path of a .toml file
        scenario: String,
        /// Write to this file what every link did
        ///
        /// When the command has ended; with --repeat to FILE.1, FILE.2 and so on.
        #[arg(long, value_name = "FILE")]
        stats: Option<PathBuf>,
        /// Node in which the command runs [default: the scenario's first]
        #[arg(long)]
        node: Option<String>,
        /// Seed of all that is random [default: the scenario's]
        ///
        /// With --vary a new one.
        #[arg(long)]
        seed: Option<u64>,
        /// Draw the scenario's free parameters by the seed
        #[arg(long)]
        vary: bool,
        /// Run it so many times, each with the next seed
        #[arg(long, value_name = "TIMES", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        repeat: u32,
        /// Write what happens to every packet, a line of JSON each
        #[arg(long, value_name = "FILE")]
        log: Option<PathBuf>,
        /// Capture packets at LINK@NODE=FILE, as pcapng
        #[arg(long, value_name = "END")]
        capture: Vec<String>,
        /// What carries the links that have cells
        #[arg(long, default_value = "emulated", value_parser = words::any::<LabBackend>())]
        backend: LabBackend,
        #[command(flatten)]
        clock: virtual_time::Options,
        /// The command and its arguments
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Start an emulated network in the background
    ///
    /// Returns when it is ready.
    #[command(after_help = AFTER_UP)]
    Up {
        /// Name of a scenario, or path of a .toml file
        scenario: String,
        /// What to call it [default: the scenario's name]
        #[arg(long)]
        name: Option<String>,
        /// Seed of everything random in it [default: the scenario's; with --vary: a new one]
        #[arg(long)]
        seed: Option<u64>,
        /// Draw the scenario's free parameters from their ranges, by the seed
        #[arg(long)]
        vary: bool,
        /// What carries the links that have cells
        #[arg(long, default_value = "emulated", value_parser = words::any::<LabBackend>())]
        backend: LabBackend,
    },
    /// End a lab in the background
    ///
    /// Waits until nothing is left of it.
    Down {
        /// Its name; not needed while there is only one
        name: Option<String>,
        /// Write what every link did to this file first
        #[arg(long, value_name = "FILE")]
        stats: Option<PathBuf>,
    },
    /// Run a shell or a command in a node of a lab
    ///
    /// It ends with the status of the command, or 125 where the lab itself failed.
    Shell {
        /// The node
        node: String,
        #[command(flatten)]
        which: Which,
        /// The command and its arguments [default: your shell]
        #[arg(last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Change a cell of a link, or add a shaper
    ///
    /// All that is asked, or nothing.
    Set {
        /// LINK.up.CELL or LINK.down.CELL
        cell: String,
        /// What to change, such as rate=19mbit or queue=fq_codel
        #[arg(required = true, value_name = "KEY=VALUE")]
        values: Vec<String>,
        #[command(flatten)]
        which: Which,
    },
    /// Apply the fixes of a Run to the lab's router
    Apply {
        /// A saved Run
        run: PathBuf,
        #[command(flatten)]
        which: Which,
    },
    /// What the links did so far
    Stats {
        /// Print them as JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        which: Which,
    },
    /// What happens to every packet from now on, as JSON lines
    Log {
        /// LINK.up or LINK.down [default: all]
        direction: Vec<String>,
        #[command(flatten)]
        look: look::Options,
        #[command(flatten)]
        which: Which,
    },
    /// Capture packets at an end of a link, as pcapng
    Capture {
        /// The link
        link: String,
        /// The node at the end that is meant
        node: String,
        #[command(flatten)]
        look: look::Options,
        #[command(flatten)]
        which: Which,
    },
    /// Fill a link with UDP packets at a constant rate
    Flood(flood::Options),
    /// Impair what a real interface sends, for a while
    #[command(after_long_help = impair::LIMITS)]
    Impair(impair::Arguments),
    /// Compare a Run with the truth of its scenario
    ///
    /// One that is made now, or a saved one.
    Verify {
        /// Name of a scenario, or path of a .toml file
        scenario: String,
        /// A saved Run [default: run the scenario and measure in it]
        #[arg(requires = "stats")]
        run: Option<PathBuf>,
        /// What --stats wrote while the Run was made
        stats: Option<PathBuf>,
        #[command(flatten)]
        clock: virtual_time::Options,
    },
    /// What the kernel of a lab in virtual time runs first
    #[command(hide = true)]
    Boot,
    /// A transparent TCP proxy, as a service inside a lab
    Proxy(proxy::Arguments),
    /// A gateway that reports its line, as a service inside a lab
    Igd(igd::Arguments),
}

/// Which laboratory is meant.
#[derive(Args)]
struct Which {
    /// Name of a lab in the background [default: the lab that this runs in, or else the only one]
    #[arg(long, value_name = "NAME")]
    lab: Option<String>,
}

impl Which {
    fn name(&self) -> Option<&str> {
        self.lab.as_deref()
    }
}

impl Do {
    /// The clock that the lab is to have.
    fn clock(&self) -> Option<&virtual_time::Options> {
        match self {
            Self::Run { clock, .. } | Self::Verify { clock, .. } => Some(clock),
            _ => None,
        }
    }
}

pub(crate) fn run(arguments: Arguments) -> ExitCode {
    let failed = LAB_FAILED as u8;
    if let Some(settings) = arguments
        .action
        .clock()
        .and_then(virtual_time::Options::to_enter)
    {
        return virtual_time::enter(&settings);
    }
    let result = match arguments.action {
        Do::List { words, json } => list::list(&words, json),
        Do::Show { scenario } => list::show(&scenario),
        Do::From { run, output } => from::from(&run, output.as_deref()),
        Do::Run {
            scenario,
            stats,
            node,
            seed,
            vary,
            repeat,
            log,
            capture,
            backend,
            clock: _,
            command,
        } => look::records(log, &capture).and_then(|records| {
            let session = Session {
                node,
                backend,
                command,
                records,
            };
            session::run(
                &scenario,
                session,
                stats.as_deref(),
                &session::Draw { seed, vary, repeat },
            )
        }),
        Do::Up {
            scenario,
            name,
            seed,
            vary,
            backend,
        } => session::up(&scenario, name, seed, vary, backend),
        Do::Down { name, stats } => session::down(name.as_deref(), stats.as_deref()),
        Do::Shell {
            node,
            which,
            command,
        } => session::shell(&node, which.name(), command),
        Do::Set {
            cell,
            values,
            which,
        } => set::set(which.name(), cell, &values),
        Do::Apply { run, which } => set::apply(which.name(), &run),
        Do::Stats { json, which } => stats::stats(which.name(), json),
        Do::Log {
            direction,
            look,
            which,
        } => look::look(which.name(), &Sight::Log(direction), &look),
        Do::Capture {
            link,
            node,
            look,
            which,
        } => look::look(which.name(), &Sight::Capture { link, node }, &look),
        Do::Flood(options) => flood::flood(&options),
        Do::Impair(arguments) => return impair::run(&arguments),
        Do::Verify {
            scenario,
            run: Some(run),
            stats: Some(stats),
            ..
        } => verify::saved(&scenario, &run, &stats),
        Do::Verify { scenario, .. } => verify::now(&scenario),
        Do::Boot => plumb_lab::virtual_time::boot()
            .map(|()| ExitCode::SUCCESS)
            .map_err(Into::into),
        Do::Proxy(arguments) => proxy::proxy(arguments),
        Do::Igd(arguments) => igd::igd(arguments),
    };
    let code = result.unwrap_or_else(|error| {
        complain(&message(&error));
        // 125 means that the lab failed; what was typed wrongly has a status of its own.
        ExitCode::from(match error.is::<UsageError>() {
            true => USAGE,
            false => failed,
        })
    });
    unless_cut_short(code, "what was seen until then is written")
}
