//! The command. One file a verb: it parses, calls the crate that does the work, and prints.

mod calc;
mod capacity;
mod check;
mod compare;
mod diagnose;
mod direction;
mod explain;
mod files;
mod host;
mod key;
#[cfg(feature = "lab")]
mod lab;
mod load;
mod load_options;
mod mix;
mod mtu;
mod output;
mod owd;
mod page;
mod path;
mod ping;
mod port;
mod progress;
mod rate;
mod report;
mod save;
mod seconds;
mod serve;
mod sparkline;
mod status;
mod stderr;
mod stdout;
mod target;
mod tcp_options;
mod transactions;
mod trust;
#[cfg(feature = "tune")]
mod tune;
mod udp_options;
mod usage;
mod weighed;
#[cfg(not(all(feature = "lab", feature = "tune")))]
mod without;
mod words;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// plumb measures a network path, says what holds it back and why, and names the one change that
/// helps.
#[cfg_attr(
    feature = "lab",
    doc = "In its lab it makes the change and proves that it did."
)]
#[derive(Parser)]
#[command(
    name = "plumb",
    version,
    about,
    max_term_width = 100,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// The main job: measure, find what holds the path back, say what to do
    #[command(after_long_help = check::LIMITS)]
    Check(check::Arguments),
    /// Answer other plumbs: run this at the far end
    #[command(after_long_help = serve::LIMITS)]
    Serve(serve::Arguments),
    /// Round trips of small packets
    #[command(after_long_help = ping::LIMITS)]
    Ping(ping::Arguments),
    /// Whether TCP ports answer: name, connect, TLS and first byte apart; how long silence is kept
    #[command(after_long_help = port::LIMITS)]
    Port(port::Arguments),
    /// What loading a web page takes: name, connect, TLS, first byte and body of each object, and the critical path
    #[command(after_long_help = page::LIMITS)]
    Page(page::Arguments),
    /// How large packets may be, hop by hop
    #[command(after_long_help = mtu::LIMITS)]
    Mtu(mtu::Arguments),
    /// What each line of the path could carry: rate, latency, queueing, and the narrowest place
    #[command(after_long_help = capacity::LIMITS)]
    Capacity(capacity::Arguments),
    /// The path that packets take: hops, loss, routes, what is done to packets
    #[command(after_long_help = path::LIMITS)]
    Path(Box<path::Arguments>),
    /// Delay, loss and order of each direction by itself
    #[command(after_long_help = owd::LIMITS)]
    Owd(owd::Arguments),
    /// Throughput
    #[command(after_long_help = rate::LIMITS)]
    Rate(Box<rate::Arguments>),
    /// Requests and their answers: how many a second, and how long each takes
    #[command(after_long_help = transactions::LIMITS, visible_alias = "rr")]
    Transactions(transactions::Arguments),
    /// Latency while the path is loaded
    #[command(after_long_help = load::LIMITS)]
    Load(load::Arguments),
    /// This machine: what it is, and what of it is fine for which use
    #[command(after_long_help = host::LIMITS)]
    Host(host::Arguments),
    /// Emulated networks whose truth is known
    #[cfg(feature = "lab")]
    #[command(after_long_help = lab::LIMITS)]
    Lab(lab::Arguments),
    #[cfg(not(feature = "lab"))]
    #[command(hide = true)]
    Lab(without::Arguments),
    /// A saved Run as a page or as text
    Report(report::Arguments),
    /// What saved Runs of a path say together
    #[command(after_long_help = diagnose::LIMITS)]
    Diagnose(diagnose::Arguments),
    /// What changed between two saved Runs
    Compare(compare::Arguments),
    /// What to change on a host for a path: plan, apply, undo, verify
    #[cfg(feature = "tune")]
    #[command(after_long_help = tune::LIMITS)]
    Tune(tune::Arguments),
    #[cfg(not(feature = "tune"))]
    #[command(hide = true)]
    Tune(without::Arguments),
    /// Bandwidth-delay product, goodput, windows, loss that TCP can stand, delays, transfer times
    #[command(after_long_help = calc::EXAMPLES)]
    Calc(calc::Arguments),
    /// What plumb knows about a cause or a setting
    Explain(explain::Arguments),
}

/// Exit status when something could not be measured or done.
const FAILED: u8 = 1;

fn main() -> ExitCode {
    let result = match Cli::parse().verb {
        Verb::Check(arguments) => check::run(&arguments),
        Verb::Serve(arguments) => serve::run(&arguments),
        Verb::Ping(arguments) => ping::run(&arguments),
        Verb::Port(arguments) => port::run(&arguments),
        Verb::Page(arguments) => page::run(&arguments),
        Verb::Mtu(arguments) => mtu::run(&arguments),
        Verb::Capacity(arguments) => capacity::run(&arguments),
        Verb::Path(arguments) => path::run(&arguments),
        Verb::Owd(arguments) => owd::run(&arguments),
        Verb::Rate(arguments) => rate::run(&arguments),
        Verb::Transactions(arguments) => transactions::run(&arguments),
        Verb::Load(arguments) => load::run(&arguments),
        Verb::Host(arguments) => host::run(&arguments),
        #[cfg(feature = "lab")]
        Verb::Lab(arguments) => return lab::run(arguments),
        #[cfg(not(feature = "lab"))]
        Verb::Lab(_) => Err(usage::without("lab", "lab")),
        Verb::Report(arguments) => report::run(&arguments),
        Verb::Diagnose(arguments) => diagnose::run(&arguments),
        Verb::Compare(arguments) => compare::run(&arguments),
        #[cfg(feature = "tune")]
        Verb::Tune(arguments) => tune::run(&arguments),
        #[cfg(not(feature = "tune"))]
        Verb::Tune(_) => Err(usage::without("tune", "tune")),
        Verb::Calc(arguments) => calc::run(&arguments),
        Verb::Explain(arguments) => explain::run(&arguments),
    };
    result.unwrap_or_else(|error| {
        output::say(output::message(&error));
        ExitCode::from(match error.is::<usage::UsageError>() {
            true => usage::STATUS,
            false => FAILED,
        })
    })
}
