//! `plumb ping`: round trips of small packets.

mod arguments;
mod chart;
mod fping;
mod live;
pub(crate) mod probes;
mod targets;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use plumb_measure::conductor::{Conducted, Conductor};
use plumb_measure::ping::RoundTrips;
use plumb_measure::progress::Nobody;
use plumb_measure::record::Judgement;
use plumb_measure::sweep;
use plumb_model::protocol::Protocol;
use plumb_probe::sweep::ManyPlan;
use plumb_probe::{Pace, Plan, Sizes, Trust};

use crate::exit::{Ends, stop_flag};
use crate::output::Begun;
use crate::target::{Target, command_line, outlet_towards};
use crate::usage::wrong;
pub(crate) use arguments::Arguments;
use live::{Lines, Live};
use probes::{Probes, usual_port};
use targets::{Printer, Shown};

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb ping server                      ten probes, one every 200 ms
  plumb ping -c 0 -i 1 server            one a second until Ctrl-C
  plumb ping --sweep 56..1472:118 server sizes one after the other
  plumb ping -f -t 10 server             as fast as answers come, for 10 s
  plumb ping 192.0.2.0/24 --pps 500      which hosts of a network answer
  plumb ping --file hosts --json-lines   a stream for programs
  plumb ping --protocol https server     the head of a page
  plumb ping --protocol tcp -p 22 --file hosts
                                         which of many hosts accept connections

Limits: without root, ICMP works where net.ipv4.ping_group_range allows it; where it does not, TCP connections are timed \
instead, and the result shows how to allow ICMP. Routers may answer ICMP late or not at all although they forward \
everything else. The lateness of the probes shows whether the machine was too busy to keep the schedule. See \
`plumb explain ping`.";

/// How many probes are sent by default.
const COUNT: u64 = 10;
/// How often, where there is one target.
const INTERVAL: Duration = Duration::from_millis(200);
/// How long an adaptive one waits for an answer, as ping does.
const ADAPTIVE_INTERVAL: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match arguments.hosts.as_slice() {
        [host] if !host.contains('/') && arguments.file.is_none() && arguments.fping.is_none() => {
            one(arguments, host)
        }
        _ => several(arguments),
    }
}

fn several(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let paced = arguments.flood || arguments.adaptive || arguments.preload > 1;
    if arguments.sweep.is_some() || paced || arguments.outstanding {
        return Err(wrong(
            "several far ends are probed in one size and at a rate: leave out --sweep and --flood, --adaptive, --preload \
             and --outstanding, and choose a rate (--pps)",
        ));
    }
    let file = arguments.file.as_deref().map(targets::read).transpose()?;
    let targets = targets::resolve(&arguments.hosts, file.as_deref(), arguments.family.chosen())?;
    anyhow::ensure!(
        !targets.found.is_empty(),
        "none of the far ends was found ({}): check the spelling, or give addresses",
        targets.unresolved.join(", ")
    );
    let probes = Probes::choose(arguments, targets.found.iter().map(|(_, address)| *address));
    probes.check(arguments, true)?;
    let output = arguments.output.begin()?;
    let stop = stop_flag(arguments.ends())?;
    let plan = arguments.plan_for_many(probes.protocol, &targets)?;
    let shown = arguments.shown();
    let mut printer = shown.map(|shown| Printer::new(shown, &targets));
    if let Some(printer) = &mut printer {
        printer.unresolved(&targets.unresolved);
    }
    let mut tell = printer.as_mut().map(|printer| |seen| printer.tell(seen));
    let pinged = sweep::run(
        command_line(),
        plan,
        targets,
        tell.as_mut().map(|tell| tell as sweep::Tell<'_>),
        &Nobody,
        &stop,
    );
    let pinged = pinged.map_err(|error| probes.explain(error.into()))?;
    printer.map(Printer::finish).transpose()?;
    let printed = arguments.fping.is_some() || arguments.json_lines;
    finish(pinged, output, &probes, None, printed)
}

fn one(arguments: &Arguments, host: &str) -> anyhow::Result<ExitCode> {
    let target = Target::resolve_as(host, arguments.family.chosen())?;
    let probes = Probes::choose(arguments, [target.address]);
    probes.check(arguments, false)?;
    let output = arguments.output.begin()?;
    let stop = stop_flag(arguments.ends())?;
    let plan = arguments.plan(probes.protocol, &target)?;
    let address = target.address.ip().to_string();
    let live = Live::new(
        (arguments.lines(), arguments.outstanding),
        &target.name,
        &address,
        arguments.numeric,
    );
    let address = target.address.ip();
    let conductor = Conductor::towards(command_line(), &target.name, address, &live, &stop);
    let pinged = conductor.only(&mut RoundTrips { plan }, Judgement::AsAudited);
    drop(live);
    let pinged = pinged.map_err(|error| probes.explain(error.into()))?;
    let families = target.families_note(arguments.family.chosen());
    finish(pinged, output, &probes, families, arguments.json_lines)
}

/// Shows or saves what was learnt; nothing at all is no success.
fn finish(
    pinged: Conducted,
    output: Begun<'_>,
    probes: &Probes,
    note: Option<String>,
    printed: bool,
) -> anyhow::Result<ExitCode> {
    let mut run = pinged.run;
    run.notes.extend(probes.instead.clone());
    run.notes.extend(note);
    if printed {
        output.save(run)?;
    } else {
        output.emit(run)?;
    }
    match pinged.shortfall {
        Some(silence) => Err(probes.explain(silence.into())),
        None => Ok(ExitCode::SUCCESS),
    }
}

impl Arguments {
    /// A ping without a count and a time ends by Ctrl-C, as ping's does.
    fn ends(&self) -> Ends {
        Ends::by_signal_if(self.count == Some(0) && self.deadline.is_none())
    }

    /// Whose certificates are believed, where there are any.
    fn trust(&self, protocol: Protocol) -> anyhow::Result<Option<Trust>> {
        if !matches!(protocol, Protocol::Https) {
            return Ok(None);
        }
        self.trust.trust().map(Some)
    }

    fn lines(&self) -> Lines {
        if self.json_lines {
            Lines::Json
        } else if self.output.quiet() || self.flood || self.output.json() {
            Lines::None
        } else {
            Lines::Text {
                stamped: self.stamp,
            }
        }
    }

    fn plan_for_many(
        &self,
        protocol: Protocol,
        targets: &sweep::Targets,
    ) -> anyhow::Result<ManyPlan> {
        let trust = self.trust(protocol)?;
        let port = self.port.unwrap_or_else(|| usual_port(protocol));
        let with_port = |(_, address): &(String, SocketAddr)| match address.port() {
            0 => {
                let mut address = *address;
                address.set_port(port);
                address
            }
            _ => *address,
        };
        let mut plan = ManyPlan::new(protocol, targets.found.iter().map(with_port).collect());
        if plan.asks_by_name() {
            plan.hosts = targets.found.iter().map(|(name, _)| name.clone()).collect();
        }
        plan.trust = trust;
        plan.ask = self.ask.clone();
        plan.path_mtu = self.pmtudisc;
        plan.rounds = match (self.count, self.deadline) {
            (Some(0), _) | (None, Some(_)) => None,
            (count, _) => count.or(plan.rounds),
        };
        plan.duration = self.deadline;
        plan.period = self.interval.unwrap_or(plan.period);
        plan.pps = self.pps.unwrap_or(plan.pps);
        plan.timeout = self.timeout;
        plan.size_bytes = self.size.unwrap_or(plan.size_bytes);
        plan.pattern = self.pattern.unwrap_or_default();
        plan.hop_limit = self.ttl;
        plan.dscp = self.tos.map(|class| class >> 2);
        for v4 in [true, false] {
            let mut of_version = targets.found.iter().filter(|(_, to)| to.is_ipv4() == v4);
            if let Some((name, address)) = of_version.next() {
                plan.outlet = outlet_towards(name, *address, self.from.as_ref())?;
            }
        }
        Ok(plan)
    }

    /// What is printed of each probe to many; nothing unless it was asked for.
    fn shown(&self) -> Option<Shown> {
        match self.fping {
            Some(format) => Some(Shown::Fping {
                format,
                each: !self.output.quiet() && format != fping::Format::Alive,
                errors: !self.output.quiet(),
                stamped: self.stamp,
            }),
            None if self.json_lines => Some(Shown::Json),
            None if self.verbose && !self.output.json() => Some(Shown::Text),
            None => None,
        }
    }

    fn plan(&self, protocol: Protocol, target: &Target) -> anyhow::Result<Plan> {
        let trust = self.trust(protocol)?;
        let port = self.port.unwrap_or_else(|| usual_port(protocol));
        let mut plan = Plan::new(protocol, &target.name, target.at(port));
        plan.ask = self.ask.clone();
        plan.trust = trust;
        plan.count = match (self.count, self.deadline) {
            (Some(0), _) | (None, Some(_)) => None,
            (Some(count), _) => Some(count),
            (None, None) => Some(COUNT),
        };
        plan.duration = self.deadline;
        (plan.pace, plan.interval) = match (self.flood, self.adaptive) {
            (true, _) => (Pace::Flood, INTERVAL),
            (_, true) => (Pace::Answers, ADAPTIVE_INTERVAL),
            _ => (Pace::Schedule, INTERVAL),
        };
        plan.interval = self.interval.unwrap_or(plan.interval);
        plan.preload = self.preload;
        plan.pattern = self.pattern.unwrap_or_default();
        plan.timeout = self.timeout;
        plan.sizes = self
            .sweep
            .or(self.size.map(Sizes::One))
            .unwrap_or(plan.sizes);
        plan.hop_limit = self.ttl;
        plan.dscp = self.tos.map(|class| class >> 2);
        plan.path_mtu = self.pmtudisc;
        plan.outlet = outlet_towards(&target.name, target.address, self.from.as_ref())?;
        Ok(plan)
    }
}
