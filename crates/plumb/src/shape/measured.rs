//! `plumb shape auto` and `plumb shape overhead`: what a shaper needs, measured against a responder.

use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use clap::Args;
use plumb_host::shape::journal::{Journals, STATE};
use plumb_measure::conductor::Conducted;
use plumb_measure::shaping::device::Passed;
use plumb_measure::shaping::following::{FollowPlan, Followed, follow};
use plumb_measure::shaping::plans::{Plan, find_framing, search_rates};
use plumb_model::direction::OneDirection;
use plumb_model::results::{Direction, Outcome};
use plumb_model::units::{ByteCount, human_seconds, si};
use plumb_net::netlink::interface_index;
use plumb_wire::stamp;

use super::standing::StandingShaper;
use crate::exit::{Ends, stop_flag};
use crate::output::{Begun, LiveOutput, say};
use crate::target::{ResponderOptions, Target, command_line};

/// A minute in each direction at 500 Mbit/s.
const BUDGET: ByteCount = ByteCount::from_bytes(8_000_000_000);

/// Fewer reflectors have no majority.
const ENOUGH_REFLECTORS: usize = 3;

#[derive(Args)]
pub(super) struct Arguments {
    /// Interface to the line
    #[arg(value_name = "DEV")]
    device: String,
    /// Name or address of the far end, where plumb serve runs
    host: String,
    /// From here to the far end alone
    #[arg(long, conflicts_with = "down")]
    up: bool,
    /// From the far end to here alone
    #[arg(short = 'R', long, alias = "reverse")]
    down: bool,
    /// The most that may be transferred [default: 8 GB]
    #[arg(long, value_name = "SIZE", value_parser = crate::load_options::enough_budget)]
    budget: Option<ByteCount>,
    #[command(flatten)]
    responder: ResponderOptions,
    #[command(flatten)]
    output: LiveOutput,
}

#[derive(Args)]
pub(super) struct AutoArguments {
    #[command(flatten)]
    measured: Arguments,
    /// Then keep following the line, until it is interrupted
    ///
    /// Rates go between a twentieth and ten times what was found, by what passes anyway and by echo requests: ten a second to each
    /// reflector while the line is loaded, one otherwise. At its end the rates that were found are in force again.
    #[arg(long)]
    follow: bool,
    /// With --follow: a host beyond the line that answers echo requests, besides HOST; may be repeated
    ///
    /// Three or more, so that trouble of one is distinguished from trouble of the line.
    #[arg(long, value_name = "HOST", requires = "follow")]
    reflector: Vec<String>,
}

impl Arguments {
    fn directions(&self) -> Vec<OneDirection> {
        match (self.up, self.down) {
            (true, _) => vec![OneDirection::Up],
            (_, true) => vec![OneDirection::Down],
            _ => vec![OneDirection::Up, OneDirection::Down],
        }
    }

    fn plan(&self, target: &Target, directions: Vec<OneDirection>) -> Plan {
        Plan {
            name: target.name.clone(),
            command: command_line(),
            directions,
            budget: self.budget.unwrap_or(BUDGET),
        }
    }
}

/// Finds the rates of the shaper that stands, and leaves them in force; then follows the line, where that is asked for.
pub(super) fn auto(asked: &AutoArguments) -> anyhow::Result<ExitCode> {
    let arguments = &asked.measured;
    let device = &arguments.device;
    must_exist(device)?;
    let named = asked.reflector.iter().map(|name| Target::resolve(name));
    let others = named.collect::<anyhow::Result<Vec<_>>>()?;
    let mut standing = StandingShaper::find(device)?;
    let mut directions = arguments.directions();
    directions.retain(|direction| standing.kept(*direction).is_some());
    anyhow::ensure!(
        !directions.is_empty(),
        "{device} is not shaped in that direction: plumb shape status {device} shows what is"
    );
    let target = Target::resolve(&arguments.host)?;
    let output = arguments.output.begin()?;
    let stop = stop_flag(Ends::by_signal_if(asked.follow))?;
    let client = target.connect(&arguments.responder)?;
    let plan = arguments.plan(&target, directions);
    say(plan.announcement());
    let watcher = arguments.output.watcher();
    let framing = standing.framing;
    let measured = search_rates(client, &plan, (&mut standing, framing), &*watcher, &stop);
    drop(watcher);
    let conducted = measured.context("cannot measure")?;
    for measurement in &conducted.run.measurements {
        if let Outcome::ShapedRate(result) = &measurement.outcome
            && let Some(bps) = result.rate_bps
        {
            *standing.kept(match result.direction {
                Direction::Up => OneDirection::Up,
                Direction::Down | Direction::Both => OneDirection::Down,
            }) = Some(bps as u64);
        }
    }
    standing.settle();
    let found = conducted.shortfall.is_none() && !stop.load(Ordering::Relaxed);
    let shown = show(output, conducted)?;
    if asked.follow && found {
        let hosts: Vec<&Target> = [&target].into_iter().chain(&others).collect();
        keep_following(device, &mut standing, &hosts, &stop)?;
    }
    Ok(shown)
}

/// Follows the line until `stop` is set, by probes to all of `hosts`.
fn keep_following(
    device: &str,
    standing: &mut StandingShaper,
    hosts: &[&Target],
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let [up, down] = standing.limits();
    let plan = FollowPlan {
        up,
        down,
        reflectors: hosts.iter().map(|host| host.address).collect(),
        stamp: hosts.first().map(|host| {
            let mut address = host.address;
            address.set_port(stamp::PORT);
            address
        }),
    };
    if hosts.len() < ENOUGH_REFLECTORS {
        say(format_args!(
            "with fewer than {ENOUGH_REFLECTORS} reflectors the trouble of one cannot be distinguished from the line's: --reflector HOST adds one"
        ));
    }
    say("following the line; Ctrl-C ends it and sets the rates that were found");
    let mut passed = Passed::of(device, standing.framing)
        .with_context(|| format!("cannot read the counters of {device}"))?;
    let mut report = |followed: &Followed| say(line(followed));
    follow(&plan, &mut passed, standing, &mut report, stop).context("cannot follow the line")
}

/// How a line that is followed stands, in one line.
fn line(followed: &Followed) -> String {
    let rate = |bps: Option<f64>| bps.map_or("not shaped".to_owned(), |bps| si(bps, "bit/s"));
    let delay = followed
        .added_s
        .map_or("no reflector answers".to_owned(), |added_s| {
            let added = human_seconds(added_s.max(0.0));
            format!("{added} added, reflectors answering: {}", followed.live)
        });
    let [up, down] = [followed.up_bps, followed.down_bps].map(rate);
    format!("up {up}, down {down}; {delay}")
}

fn must_exist(device: &str) -> anyhow::Result<()> {
    anyhow::ensure!(
        interface_index(device).is_ok(),
        "there is no interface {device}: `plumb host` lists them"
    );
    Ok(())
}

/// Finds what the line adds to each packet; nothing is changed.
pub(super) fn overhead(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let device = &arguments.device;
    must_exist(device)?;
    if Journals::look(Path::new(STATE), device)?.is_some() {
        anyhow::bail!(
            "{device} is shaped, so that the floods would fill the shaper and not the line: undo it first (plumb shape undo {device})"
        );
    }
    let target = Target::resolve(&arguments.host)?;
    let output = arguments.output.begin()?;
    let cancel = stop_flag(Ends::ByItself)?;
    let client = target.connect(&arguments.responder)?;
    let plan = arguments.plan(&target, arguments.directions());
    say(plan.announcement());
    let watcher = arguments.output.watcher();
    let measured = find_framing(client, &plan, &*watcher, &cancel);
    drop(watcher);
    show(output, measured.context("cannot measure")?)
}

fn show(output: Begun<'_>, conducted: Conducted) -> anyhow::Result<ExitCode> {
    output.emit(conducted.run)?;
    conducted
        .shortfall
        .map_or(Ok(ExitCode::SUCCESS), |why| Err(why.into()))
}
