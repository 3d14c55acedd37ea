//! `plumb shape`: the queue of a line, managed where it is.

mod change;
mod measured;
mod options;
mod plan;
mod standing;
mod status;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Examples and limits, for the verb's help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb shape plan eth0 --up 19mbit --down 95mbit    the tc commands of it
  plumb shape plan eth0 --from run.json              what a check advised
  plumb shape plan eth0 --up 19mbit --write openwrt-sqm
  plumb shape plan wan --up 19mbit --router mikrotik   its own words
  plumb shape apply eth0 --up 19mbit --down 95mbit   undone after 60 s
  plumb shape confirm eth0                           unless confirmed
  plumb shape status eth0 -i 1                       each class, every second
  plumb shape overhead eth0 server                   framing of an unshaped line
  plumb shape auto eth0 server                       its rates, once shaped
  plumb shape auto eth0 server --follow --reflector HOST2 --reflector HOST3
  plumb shape undo eth0

DEV is the interface to the line, as a router's to the modem; rates are a little below the line's, so that the queue forms \
here. What is sent is shaped at DEV, what is received on a device of its own (ifb), to which it is redirected.

Limits: lasts until the next boot (--write makes files that come back). Hosts are distinguished by address; with HTB 64 at a time, \
and behind NAT only upwards. No bridge ports. Whether the processor can carry the rate, auto measures.";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// What would be done, as commands; nothing is changed
    Plan(plan::Arguments),
    /// Shape, with a journal; undone by itself unless confirmed
    Apply(change::ApplyArguments),
    /// Keep what was applied
    Confirm(change::OnDevice),
    /// Rates, delays, drops and marks of each class
    Status(status::Arguments),
    /// Find the rates of the shaper that stands, by latency under load, and leave them in force
    Auto(measured::AutoArguments),
    /// What the line adds to each packet, by floods of small ones
    Overhead(measured::Arguments),
    /// Restore what was there before
    Undo(change::OnDevice),
    /// Be the process that undoes a shaper after a while
    #[command(hide = true)]
    Watchdog(change::WatchdogArguments),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.verb {
        Verb::Plan(arguments) => plan::run(arguments),
        Verb::Apply(arguments) => change::apply(arguments),
        Verb::Confirm(on) => change::confirm(on),
        Verb::Status(arguments) => status::run(arguments),
        Verb::Auto(arguments) => measured::auto(arguments),
        Verb::Overhead(arguments) => measured::overhead(arguments),
        Verb::Undo(on) => change::undo(on),
        Verb::Watchdog(arguments) => change::watchdog(arguments),
    }
}
