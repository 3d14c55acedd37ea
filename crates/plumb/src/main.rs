//! The command. One file a verb: it parses, calls the crate that does the work, and prints.

#[cfg(any(feature = "shape", feature = "tune"))]
mod agreed;
mod calc;
mod capacity;
mod capture;
mod charset;
mod check;
mod compare;
mod diagnose;
mod direction;
mod exit;
mod explain;
mod far_end;
mod files;
mod generate;
mod help;
mod host;
mod intervals;
mod judged;
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
mod quantity;
mod quiet;
mod rate;
mod redaction;
#[cfg(feature = "lab")]
mod rehearse;
mod report;
mod router;
mod save;
mod screen;
mod serve;
#[cfg(feature = "shape")]
mod shape;
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
mod typed;
mod udp_options;
mod usage;
#[cfg(feature = "watch")]
mod watch;
#[cfg(any(feature = "shape", feature = "tune"))]
mod watchdog;
mod weighed;
#[cfg(not(all(
    feature = "lab",
    feature = "shape",
    feature = "tune",
    feature = "watch"
)))]
mod without;
mod words;
mod wrapped;

use std::process::ExitCode;

use clap::{Command, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[cfg_attr(
    feature = "lab",
    doc = "plumb measures a network path, finds what limits it and why, and names the change that helps. In its lab it makes the change and shows that it helped."
)]
#[cfg_attr(
    not(feature = "lab"),
    doc = "plumb measures a network path, finds what limits it and why, and names the change that helps."
)]
#[derive(Parser)]
#[command(name = "plumb", version, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Subcommand)]
enum Verb {
    /// Measure a path, find what limits it, say what to do
    #[command(after_long_help = check::LIMITS)]
    Check(check::Arguments),
    /// The responder: run it at the far end
    #[command(after_long_help = serve::LIMITS)]
    Serve(serve::Arguments),
    /// Round-trip times and loss of small packets
    #[command(after_long_help = ping::LIMITS)]
    Ping(ping::Arguments),
    /// Whether TCP ports answer, and how long each part takes
    #[command(after_long_help = port::LIMITS)]
    Port(port::Arguments),
    /// What loading a web page takes, and its critical path
    #[command(after_long_help = page::LIMITS)]
    Page(page::Arguments),
    /// The largest packet that gets through, hop by hop
    #[command(after_long_help = mtu::LIMITS)]
    Mtu(mtu::Arguments),
    /// Rate and queueing of each link, and the narrowest one
    #[command(after_long_help = capacity::LIMITS)]
    Capacity(capacity::Arguments),
    /// Hops, loss and routes, and what is done to packets
    #[command(after_long_help = path::LIMITS)]
    Path(Box<path::Arguments>),
    /// Delay, loss and reordering of each direction by itself
    #[command(after_long_help = owd::LIMITS)]
    Owd(owd::Arguments),
    /// Throughput by TCP, UDP or QUIC
    #[command(after_long_help = rate::LIMITS)]
    Rate(Box<rate::Arguments>),
    /// Requests and answers: how many a second, how long each
    #[command(after_long_help = transactions::LIMITS, visible_alias = "rr")]
    Transactions(transactions::Arguments),
    /// Latency while the path is loaded
    #[command(after_long_help = load::LIMITS)]
    Load(load::Arguments),
    /// Captured packets: what held each TCP connection back
    #[command(after_long_help = capture::LIMITS)]
    Capture(capture::Arguments),
    /// This machine: its settings, counters, disks and ciphers
    #[command(after_long_help = host::LIMITS)]
    Host(host::Arguments),
    /// Targets probed for weeks: their history, outages, a page
    #[cfg(feature = "watch")]
    #[command(after_long_help = watch::LIMITS)]
    Watch(watch::Arguments),
    #[cfg(not(feature = "watch"))]
    #[command(hide = true)]
    Watch(without::Arguments),
    /// Emulated networks whose truth is known
    #[cfg(feature = "lab")]
    #[command(after_long_help = lab::LIMITS)]
    Lab(lab::Arguments),
    #[cfg(not(feature = "lab"))]
    #[command(hide = true)]
    Lab(without::Arguments),
    /// Show a saved Run as text or as a page
    Report(report::Arguments),
    /// Judge several saved Runs of a path together
    #[command(after_long_help = diagnose::LIMITS)]
    Diagnose(diagnose::Arguments),
    /// What changed between two saved Runs
    Compare(compare::Arguments),
    /// Settings of a host for a path: plan, apply, undo, verify
    #[cfg(feature = "tune")]
    #[command(after_long_help = tune::LIMITS)]
    Tune(tune::Arguments),
    #[cfg(not(feature = "tune"))]
    #[command(hide = true)]
    Tune(without::Arguments),
    /// The queue of a line: plan, apply, find its rate, undo
    #[cfg(feature = "shape")]
    #[command(after_long_help = shape::LIMITS)]
    Shape(shape::Arguments),
    #[cfg(not(feature = "shape"))]
    #[command(hide = true)]
    Shape(without::Arguments),
    /// Try the fixes of a Run in the twin of its path
    #[cfg(feature = "lab")]
    #[command(after_long_help = rehearse::LIMITS)]
    Rehearse(rehearse::Arguments),
    #[cfg(not(feature = "lab"))]
    #[command(hide = true)]
    Rehearse(without::Arguments),
    /// Bandwidth-delay product, goodput, windows, loss, delays
    #[command(after_long_help = calc::EXAMPLES)]
    Calc(calc::Arguments),
    /// What a word, a cause, a setting or a counter means
    Explain(explain::Arguments),
    /// Completions for shells, and the manual
    #[command(after_long_help = generate::EXAMPLES)]
    Generate(generate::Arguments),
}

fn main() -> ExitCode {
    let mut words = weighed::joined(std::env::args_os());
    let long = words.iter().any(|word| word == "--help" || word == "help");
    let command = command(long);
    let parsed = command
        .clone()
        .try_get_matches_from(&words)
        .and_then(|mut matches| Cli::from_arg_matches_mut(&mut matches));
    // Without the name of the program.
    words.drain(..words.len().min(1));
    let verb = match parsed {
        Ok(Cli { verb: Some(verb) }) => verb,
        Ok(Cli { verb: None }) => {
            stderr::prompt(help::BEGIN);
            return ExitCode::from(exit::USAGE);
        }
        Err(error) => return typed::answer(error, &command, &words),
    };
    exit::status(match verb {
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
        Verb::Capture(arguments) => capture::run(&arguments),
        Verb::Host(arguments) => host::run(&arguments),
        #[cfg(feature = "watch")]
        Verb::Watch(arguments) => watch::run(&arguments),
        #[cfg(not(feature = "watch"))]
        Verb::Watch(_) => Err(usage::without("watch", "watch")),
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
        #[cfg(feature = "shape")]
        Verb::Shape(arguments) => shape::run(&arguments),
        #[cfg(not(feature = "shape"))]
        Verb::Shape(_) => Err(usage::without("shape", "shape")),
        #[cfg(feature = "lab")]
        Verb::Rehearse(arguments) => rehearse::run(&arguments),
        #[cfg(not(feature = "lab"))]
        Verb::Rehearse(_) => Err(usage::without("rehearse", "lab")),
        Verb::Calc(arguments) => calc::run(&arguments),
        Verb::Explain(arguments) => explain::run(&arguments),
        Verb::Generate(arguments) => generate::run(&arguments, Cli::command()),
    })
}

/// The command line, with `--help` or with `-h`.
fn command(long: bool) -> Command {
    help::arranged(Cli::command(), &defaults, long)
}

/// What a verb does where an option is not given, of options that several verbs share.
fn defaults(verb: &str) -> Vec<(&'static str, String)> {
    match verb {
        "check" => check::defaults(),
        "rate" => rate::defaults(),
        "load" => load::defaults(),
        _ => Vec::new(),
    }
}
