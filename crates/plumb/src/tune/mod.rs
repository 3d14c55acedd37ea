//! `plumb tune`: what to change on a host for a path, doing it, undoing it, proving it.

mod change;
mod except;
mod path;
mod plan;
mod status;
mod verify;

use std::process::ExitCode;

use clap::{Args, Subcommand};

/// Examples and limits, for the verb's help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb tune plan --rate 10gbit --rtt 50ms    what would change here, and why
  plumb tune plan --from run.json             for the path of a Run
  plumb tune plan --rate 10gbit --rtt 50ms --judge article
                                              the 10 Gbit/s article, judged
  plumb tune plan --rate 1gbit --rtt 80ms --os windows --format powershell
  plumb tune plan --rate 1gbit --rtt 80ms --facts pasted.txt
                                              the settings of another machine
  plumb tune apply --rate 1gbit --rtt 150ms -t 10m
                                              undone by itself after ten minutes
  plumb tune apply --rate 10gbit --rtt 50ms --except 'ring rx'
  plumb tune undo
  plumb tune verify HOST                      measure, and keep what helps

Limits: plumb changes kernel variables, and of the interface that leads to the path its queueing discipline, receive ring, \
offloads, interrupt coalescing, txqueuelen and the limit of the driver's queue, where its driver can; the MTU is named, not \
changed. The drop-in file restores the variables among them at boot. A new congestion control or buffer is for new \
connections. In a namespace (a container, a lab's node) what belongs to the machine is refused by name.

verify allows for noise of a run of up to 20 %, decides against a change that it cannot see (and reports how small that is), \
and transfers what --runs times --duration at the line's rate amounts to, at most --budget; killed, it leaves nothing of what \
it tried.";

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// What would change, and why; nothing is changed
    Plan(plan::Arguments),
    /// Make the changes, with a journal of the old values
    Apply(change::ApplyArguments),
    /// What is applied, and whether it was changed since
    Status(status::StatusArguments),
    /// Restore everything
    Undo,
    /// Measure with and without each part, keep what helps
    Verify(Box<verify::Arguments>),
    /// Be the process that undoes a plan after a while
    #[command(hide = true)]
    Watchdog(change::WatchdogArguments),
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.verb {
        Verb::Plan(arguments) => plan::run(arguments),
        Verb::Apply(arguments) => change::apply(arguments),
        Verb::Status(arguments) => status::status(arguments),
        Verb::Undo => change::undo(),
        Verb::Verify(arguments) => verify::run(arguments),
        Verb::Watchdog(arguments) => change::watchdog(arguments),
    }
}
