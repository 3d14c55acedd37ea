//! `plumb check`: the main job.

mod asked;
mod kept;
pub(crate) mod plan;
mod repeat;
mod several;
mod via;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use plumb_load::ClientError;
use plumb_measure::after_silence::AfterSilence;
use plumb_measure::conductor::Conducted;
use plumb_measure::error::MeasureError;
use plumb_measure::far_end::FarEnd;
use plumb_measure::progress::Watcher;
use plumb_measure::times::Times;
use plumb_measure::{announcement, budget, local, with_far_end, without_responder};
use plumb_model::finding::Severity;
use plumb_model::goal::{Effort, Purpose};
use plumb_model::run::Run;
use plumb_model::units::human_seconds;
use plumb_report::changed::{Changed, Other};
use plumb_report::text;
use plumb_wire::native::spec::PORT;
use plumb_wire::url::Url;

use crate::capture::Beside;
use crate::exit::{Ends, FOUND, stop_flag};
use crate::far_end::{self, Protocol, Sought, servers};
use crate::judged;
use crate::load_options::LoadOptions;
use crate::mix::Mix;
use crate::output::{JSON, LiveOutput, say};
use crate::router::RouterOption;
use crate::target::{Target, command_line};
use crate::trust::TrustOptions;
use crate::usage::wrong;
use crate::weighed::Weighed;
use crate::words;
use asked::AskedOptions;
use repeat::RepeatOptions;

/// Others that the responder serves first are waited for during this part of the time.
const WAITING_PARTS: u32 = 4;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb check server               at most 60 s
  plumb check --quick server       at most 20 s; finds what shows at once
  plumb check --thorough server    at most 5 minutes, with every measurement
  plumb check                      with one of your servers, or a public one
  plumb check near.example far.example
                                   is it near, far, or in between?
  plumb check far.example --via middle.example
                                   between which of these is it?
  plumb check --local              this machine, its link, gateway and resolver
  plumb check --for call server    what matters for calls first
  plumb check --plan 1000/50 server
                                   compared with what is paid for, in Mbit/s
  plumb check --back-to-back server
                                   compared with the port of a cable

Limits: a loaded direction names the direction of a queue, not the device. Phases shorter than about 15 s do not see \
large queues whole. The proposed shaper rate assumes 18 bytes of framing. Load flows run CUBIC; another congestion \
control may hide what CUBIC fills.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name, address or URL of the far end; several: say what is near, and what far; none: a server that you agree to
    ///
    /// Several are checked one after the other: what is wrong towards all is near, towards all of one network theirs, and
    /// towards one far. -o then names a directory, in which each check is saved. Also `NAME:PORT` and
    /// `[ADDRESS]:PORT`. Most is measured where `plumb serve` runs at the far end. Without a far end, the first of your servers
    /// (servers.toml), or of the public ones that you agreed to, is measured with; where there is none, this machine, its link,
    /// gateway and resolver are checked.
    #[arg(value_name = "HOST")]
    host: Vec<String>,
    /// Hosts in the middle of the path to HOST, the nearest first: say between which of them a fault is
    ///
    /// Each is checked as HOST is, before it; one that only answers pings shows round trips, their losses, and how large packets may
    /// be. What is there from one of them on and absent before it is between both. -o then names a directory, in which each check
    /// is saved (`plumb diagnose --via` reads them again), and --json prints the segments.
    #[arg(long, value_name = "MIDDLE", value_delimiter = ',', requires = "host")]
    via: Vec<String>,
    /// Measure with this one of the servers in servers.toml, or of the public ones: apple, cloudflare, m-lab
    #[arg(long, value_name = "NAME", conflicts_with_all = ["host", "local", "protocol"])]
    server: Option<String>,
    /// Check this machine, its link, gateway and resolver alone
    #[arg(long, conflicts_with = "host")]
    local: bool,
    #[command(flatten)]
    asked: AskedOptions,
    /// Yield to all other traffic (LEDBAT++); the rates are then not the line's
    #[arg(long)]
    gentle: bool,
    /// With --for web: the page to load [default: https://HOST/]
    #[arg(long, value_name = "URL", requires = "purpose")]
    page: Option<Url>,
    /// What the far end speaks [default: native, else what is found there]
    #[arg(long, value_name = "PROTOCOL", requires = "host")]
    protocol: Option<Protocol>,
    #[command(flatten)]
    trust: TrustOptions,
    #[command(flatten)]
    load: LoadOptions,
    /// A saved Run of the same path by a host like this one: show what this host alone has
    #[arg(long, value_name = "RUN", requires = "host", conflicts_with_all = ["via", "local"])]
    similar: Option<PathBuf>,
    /// Exit with status 3 when a finding is this severe
    #[arg(long, value_name = "SEVERITY", value_parser = words::some(&[Severity::Warning, Severity::Critical]))]
    fail_on: Option<Severity>,
    #[command(flatten)]
    repeat: RepeatOptions,
    #[command(flatten)]
    router: RouterOption,
    #[command(flatten)]
    weighed: Weighed,
    #[command(flatten)]
    output: LiveOutput,
}

/// What it does where these are not given.
pub(crate) fn defaults() -> Vec<(&'static str, String)> {
    vec![
        (
            "duration",
            "by how thorough the check is; below 15s large queues are not seen whole".to_owned(),
        ),
        ("streams", with_far_end::STREAMS.to_string()),
        (
            "budget",
            format!("{}; {} with --thorough", budget::DEFAULT, plan::THOROUGH),
        ),
    ]
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if !arguments.via.is_empty() {
        return arguments.in_segments();
    }
    if let hosts @ [_, _, ..] = arguments.host.as_slice() {
        arguments.refuse_for_several()?;
        arguments.output.hush();
        let folder = arguments.output.file();
        return several::run(hosts, folder, arguments.fail_on, |host, stop| {
            arguments.aside(Some(host), stop)
        });
    }
    let host = arguments.host.first().map(String::as_str);
    if let Some(repeats) = arguments.repeat.repeats() {
        arguments.output.hush();
        let folder = arguments.output.file().unwrap_or(Path::new("."));
        return repeat::run(repeats, folder, arguments.fail_on, |stop| {
            arguments.aside(host, stop)
        });
    }
    let output = arguments.output.begin()?;
    if let Some(file) = &arguments.similar {
        // Better known before the line is loaded.
        judged::read(file)?;
    }
    // Before the client's threads start, so that none of them is hit.
    let cancel = stop_flag(Ends::ByItself)?;
    let watcher = arguments.output.watcher();
    let checked = arguments.checked(host, &*watcher, &cancel)?;
    drop(watcher);
    let reached = checked.reaches(arguments.fail_on);
    let stopped = cancel.load(Ordering::Relaxed);
    let is_open = !checked.is_local && (stopped || !checked.is_judged());
    arguments.emit(output, checked.run)?;
    match checked.shortfall {
        // Though not all was measured: what was found is there.
        Some(why) if reached => say(why),
        Some(why) => return Err(why.into()),
        None => {}
    }
    if reached {
        return Ok(ExitCode::from(FOUND));
    }
    if arguments.fail_on.is_some() && is_open {
        anyhow::bail!(
            "not everything that --fail-on judges was measured: see the verdict and the notes"
        );
    }
    Ok(ExitCode::SUCCESS)
}

/// What a check came to.
struct Checked {
    run: Run,
    /// Why it is not all that was asked for, where it is not.
    shortfall: Option<MeasureError>,
    /// Whether this machine alone was checked.
    is_local: bool,
}

impl Checked {
    /// Whether a finding is so severe.
    fn reaches(&self, limit: Option<Severity>) -> bool {
        let mut findings = self.run.findings.iter();
        limit.is_some_and(|limit| findings.any(|finding| finding.severity >= limit))
    }

    /// Whether everything was measured that an all-clear needs.
    fn is_judged(&self) -> bool {
        let verdict = self.run.verdict.as_ref();
        verdict.is_some_and(|verdict| verdict.not_measured.is_empty())
    }
}

fn conduct(
    arguments: &Arguments,
    host: Option<&str>,
    watcher: &dyn Watcher,
    cancel: &Arc<AtomicBool>,
) -> anyhow::Result<Checked> {
    let began = Instant::now();
    let asked = arguments.asked.asked();
    let times = match arguments.load.duration() {
        Some(phase) => Times::of_phases(phase),
        None => Times::of(asked.effort),
    };
    let chosen = match (host, arguments.local) {
        (None, false) => {
            let usual = plan::most(&asked);
            servers::choose(arguments.server.as_deref(), arguments.load.budget(usual))?
        }
        _ => None,
    };
    let (host, protocol) = match (host, &chosen) {
        (Some(host), _) => (host, arguments.protocol),
        (None, Some(server)) => (server.host.as_str(), Some(server.protocol)),
        (None, None) => {
            arguments.load.refuse_capture()?;
            if !arguments.local {
                say(
                    "no far end was given, and there is no server that you agreed to: this machine is checked, and not the line. How to \
                     check the line too: plumb explain far-end",
                );
            }
            return arguments.check_local(asked, times, watcher, cancel);
        }
    };
    let takes_urls = protocol.is_some_and(Protocol::takes_urls);
    if let Some(server) = &chosen {
        say(server.note());
    }
    let limit = times.total.unwrap_or(plan::LONGEST);
    let of_url = far_end::authority(host).filter(|_| takes_urls);
    let mut target =
        plan::resolve_within(of_url.as_deref().unwrap_or(host), limit / WAITING_PARTS)?;
    if arguments.trust.is_given()
        && chosen.is_none()
        && arguments.asked.purpose != Some(Purpose::Web)
        && !takes_urls
    {
        return Err(wrong(
            "certificates are looked at where a page is loaded, and with servers of the web: add --for web or --protocol, \
             or leave --ca and --insecure out"
                .to_owned(),
        ));
    }
    let page = plan::page(
        asked.purpose,
        arguments.page.as_ref(),
        &arguments.trust,
        arguments.load.budget(budget::DEFAULT).bytes(),
        &target,
    )?;
    // Before anything else is sent to the far end.
    let mut silence = (asked.effort == Effort::Thorough).then(|| {
        say("first three echo requests 12 s apart, for radios that sleep");
        AfterSilence::probe(&target.name, target.address, watcher, cancel)
    });
    let sought = Sought {
        host,
        target: &target,
        responder: &arguments.load.responder,
        trust: &arguments.trust,
        patience: limit / WAITING_PARTS,
    };
    let found = far_end::find(sought, protocol);
    if let Ok(FarEnd::Server {
        named: Some(name),
        address,
        ..
    }) = &found
    {
        target = Target::of(name, *address);
    }
    let capture = arguments.load.capture(target.address.ip())?;
    let Conducted { mut run, shortfall } = match found.map_err(anyhow::Error::downcast) {
        Ok(far) => {
            let address = target.address.ip();
            let metered = announcement::interface(address)
                .and_then(|name| plumb_host::metered::why_metered(&name));
            let defaults = plan::defaults(&asked, times, arguments.gentle, metered.is_some());
            let groups = arguments.load.groups(&defaults, &Mix::default())?;
            let mut plan = arguments.load.plan(&target, defaults, groups);
            plan.until = times.total.map(|total| began + total);
            let mut asked = asked;
            if let Some(cable) = &mut asked.cable {
                cable.port_bps = cable.port_bps.or_else(|| announcement::link_bps(address));
            }
            plan.asked = Some(asked);
            if let Some(why) = metered {
                say(format_args!(
                    "{why}: it transfers little (--budget changes that)"
                ));
            }
            if let Some(others) = announcement::in_use(address).filter(|_| !arguments.gentle) {
                say(format_args!(
                    "the line is in use ({others} now): --gentle yields to others"
                ));
            }
            say(plan.announcement(announcement::link_bps(address)));
            let asked = plan.asked.clone().unwrap_or_default();
            let silence = silence.as_mut();
            let has_responder = far.responder().is_some();
            let port = far.address().port();
            let aim = plan::Aim {
                target: &target,
                port,
                has_responder,
            };
            plan::with_steps(aim, &asked, page.as_ref(), silence, |besides| {
                with_far_end::run(far, &plan, besides, watcher, cancel)
            })?
            .context("cannot measure")?
        }
        Err(Ok(
            why @ (ClientError::Refused { .. }
            | ClientError::TimedOut { .. }
            | ClientError::Unreachable { .. }
            | ClientError::Mute { .. }
            | ClientError::NotPlumb { .. }),
        )) if protocol.is_none_or(|protocol| protocol == Protocol::Native) => {
            if arguments.fail_on.is_some() && !arguments.via.iter().any(|middle| middle == host) {
                return Err(
                    anyhow::Error::new(why).context("nothing could be judged, as --fail-on asks")
                );
            }
            let why = why.to_string();
            let plan = |asked| without_responder::Plan {
                command: command_line(),
                name: &target.name,
                address: target.address,
                why: &why,
                asked,
                idle: times.idle,
                until: began + limit,
            };
            let silence = silence.as_mut();
            let aim = plan::Aim {
                target: &target,
                port: PORT,
                has_responder: false,
            };
            plan::with_steps(aim, &asked, page.as_ref(), silence, |besides| {
                let steps = besides.before.into_iter().chain(besides.after);
                without_responder::run(plan(asked.clone()), steps.collect(), watcher, cancel)
            })??
        }
        Err(Ok(why)) => return Err(why.into()),
        Err(Err(why)) => return Err(why),
    };
    run.notes.extend(capture.map(Beside::finish));
    run.notes.splice(0..0, chosen.map(|server| server.note()));
    Ok(Checked {
        run,
        shortfall,
        is_local: false,
    })
}

impl Arguments {
    /// One check, with the fixes of its findings for the router that was named.
    fn checked(
        &self,
        host: Option<&str>,
        watcher: &dyn Watcher,
        cancel: &Arc<AtomicBool>,
    ) -> anyhow::Result<Checked> {
        let checked = conduct(self, host, watcher, cancel)?;
        Ok(Checked {
            run: self.router.write(checked.run),
            ..checked
        })
    }

    /// Refuses what is of one Run where there are several hosts.
    fn refuse_for_several(&self) -> anyhow::Result<()> {
        let of_one = [
            (self.repeat.repeats().is_some(), "--repeat"),
            (self.page.is_some(), "--page"),
            (self.load.captures(), "--capture"),
            (self.weighed.is_asked(), "--explain"),
            (self.similar.is_some(), "--similar"),
            (self.asked.is_back_to_back(), "--back-to-back"),
        ];
        let given = of_one.into_iter().find(|(given, _)| *given);
        let printed = self.output.of_one_run();
        let printed = printed.filter(|option| self.via.is_empty() || *option != JSON);
        let given = given.map(|(_, option)| option).or(printed);
        match given {
            Some(option) => Err(wrong(format!(
                "{option} is for one host: leave it out, or name one host (-o DIRECTORY saves the Run of each)"
            ))),
            None => Ok(()),
        }
    }

    /// The path to one host in parts: checks of hosts in its middle, and of its end.
    fn in_segments(&self) -> anyhow::Result<ExitCode> {
        let [end] = self.host.as_slice() else {
            return Err(wrong(
                "--via names hosts on the path to one host: name one HOST".to_owned(),
            ));
        };
        self.refuse_for_several()?;
        self.output.hush();
        let path = via::Path {
            middles: &self.via,
            end,
            json: self.output.of_one_run() == Some(JSON),
        };
        via::run(&path, self.output.file(), self.fail_on, |host, stop| {
            self.aside(Some(host), stop)
        })
    }

    /// One check of several, which is not shown by itself.
    fn aside(&self, host: Option<&str>, stop: &Arc<AtomicBool>) -> anyhow::Result<Run> {
        let output = self.output.begin_aside();
        let watcher = self.output.watcher();
        let checked = self.checked(host, &*watcher, stop)?;
        checked.shortfall.iter().for_each(say);
        Ok(output.marked(checked.run))
    }

    /// This machine, its link, gateway and resolver.
    fn check_local(
        &self,
        asked: plumb_model::goal::Asked,
        times: Times,
        watcher: &dyn Watcher,
        cancel: &Arc<AtomicBool>,
    ) -> anyhow::Result<Checked> {
        let time = times.total.unwrap_or(plan::LONGEST);
        say(format_args!(
            "at most {} on this machine and its gateway, with some hundred small packets",
            human_seconds(time.as_secs_f64())
        ));
        let catalogue = plumb_host::knobs::Catalogue::built_in()?;
        let mut host = plumb_measure::host::HostAudit {
            catalogue: &catalogue,
        };
        let command = command_line();
        let conducted = local::run(command, asked, time, &mut host, watcher, cancel)?;
        Ok(Checked {
            run: conducted.run,
            shortfall: conducted.shortfall,
            is_local: true,
        })
    }

    fn emit(&self, output: crate::output::Begun<'_>, mut run: Run) -> anyhow::Result<()> {
        let beside = |file: &PathBuf| judged::beside(Other::Similar, file, &run);
        let changed = self.similar.as_ref().map(beside).transpose()?;
        run.notes.extend(changed.iter().flat_map(Changed::notes));
        let render = match output.details() {
            true => text::render,
            false => text::render_check,
        };
        output.emit_as(run, |run, style| {
            let changed = changed.as_ref();
            let beside = changed.map(|changed| text::render_changed(changed, style));
            render(run, style) + &beside.unwrap_or_default() + &self.weighed.render(run, style)
        })
    }
}
