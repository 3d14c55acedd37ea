//! `plumb lab impair`: a real interface made worse for a while.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};
use std::time::Duration;

use clap::Args;
use plumb_lab::impair::{self, Ended, ImpairError, Impairment};
use plumb_model::units::human_seconds;

use crate::exit::USAGE;
use crate::quantity::time;
use crate::stderr::say_as;

/// What the verb cannot do, for its help.
pub(super) const LIMITS: &str = "\
Limits: only what the interface sends is impaired; for both directions do the same at the other end. It needs root, tc \
(iproute2) and the kernel's netem, and tbf for a rate. It is always undone: after its time, on Ctrl-C, and when the program is \
killed. Only when both of its processes are killed at once does it stay: tc qdisc del dev DEV root removes it. Where the \
interface cuts large segments itself (TSO, GSO), loss, duplicate, corrupt and reorder hit up to 64 kB at once: ethtool -K DEV \
tso off gso off makes it packet by packet. A rate has a queue of 100 ms, at least ten packets. An interface with a queueing \
discipline that was configured is refused, because it could not be restored.";

#[derive(Args)]
pub(super) struct Arguments {
    /// The interface
    #[arg(value_name = "DEV")]
    device: String,
    /// delay TIME (JITTER), rate RATE, loss PERCENT, duplicate PERCENT, corrupt PERCENT, reorder PERCENT
    #[arg(required = true, value_name = "WHAT")]
    what: Vec<String>,
    /// How long
    #[arg(short = 't', long = "for", alias = "duration", value_name = "TIME", default_value = "60s", value_parser = time)]
    time: Duration,
    /// Be the process that installs and undoes it
    #[arg(long, hide = true)]
    guardian: bool,
}

pub(super) fn run(arguments: &Arguments) -> ExitCode {
    if let Err(wrong) = Impairment::parse(&arguments.what) {
        say(&wrong);
        return ExitCode::from(USAGE);
    }
    let done = if arguments.guardian {
        guard(arguments)
    } else {
        impair(arguments)
    };
    done.unwrap_or_else(|error| {
        say(&error);
        ExitCode::FAILURE
    })
}

fn say(what: &dyn std::fmt::Display) {
    say_as("plumb lab impair", what);
}

fn impair(arguments: &Arguments) -> Result<ExitCode, ImpairError> {
    let Arguments {
        device, what, time, ..
    } = arguments;
    let mut guardian = Command::new("/proc/self/exe");
    guardian
        .args(["lab", "impair", device])
        .args(what)
        .arg("--for")
        .arg(format!("{}ns", time.as_nanos()))
        .arg("--guardian")
        // Not the terminal's foreground group: a key ends the process in front, whose pipe then closes.
        .process_group(0);
    let ended = impair::run(device, guardian, |commands| {
        say(&format!(
            "what {device} sends is impaired for {}, or until Ctrl-C",
            human_seconds(time.as_secs_f64())
        ));
        for command in commands {
            say(&format!("  {command}"));
        }
        say(&format!(
            "by hand it is undone with: {}",
            impair::undo_command(device)
        ));
    })?;
    Ok(match ended {
        Ended::InTime => {
            say(&format!("undone: {device} is as it was"));
            ExitCode::SUCCESS
        }
        Ended::BySignal(signal) => {
            say(&format!("undone after {signal}: {device} is as it was"));
            ExitCode::from(u8::try_from(128 + signal as i32).unwrap_or(u8::MAX))
        }
        Ended::GuardianLost => {
            say(&format!(
                "its guardian was killed before its time; undone: {device} is as it was"
            ));
            ExitCode::FAILURE
        }
    })
}

fn guard(arguments: &Arguments) -> Result<ExitCode, ImpairError> {
    let impairment = Impairment::parse(&arguments.what)?;
    impair::guard(&arguments.device, &impairment, arguments.time)?;
    Ok(ExitCode::SUCCESS)
}
