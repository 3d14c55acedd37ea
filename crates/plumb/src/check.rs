//! `plumb check`: the main job.

mod asked;
pub(crate) mod plan;

use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Context as _;
use clap::Args;
use plumb_load::ClientError;
use plumb_measure::after_silence::AfterSilence;
use plumb_measure::conductor::Conducted;
use plumb_measure::far_end::FarEnd;
use plumb_measure::times::Times;
use plumb_measure::{announcement, budget, local, with_far_end, without_responder};
use plumb_model::finding::Severity;
use plumb_model::goal::{Effort, Purpose};
use plumb_model::units::human_seconds;
use plumb_report::text;
use plumb_wire::native::spec::PORT;
use plumb_wire::url::Url;

use crate::exit::{Ends, FOUND, stop_flag};
use crate::far_end::{self, Protocol, Sought, servers};
use crate::load_options::LoadOptions;
use crate::mix::Mix;
use crate::output::{LiveOutput, say};
use crate::target::{Target, command_line};
use crate::trust::TrustOptions;
use crate::usage::wrong;
use crate::weighed::Weighed;
use crate::words;
use asked::AskedOptions;

/// Others that the responder serves first are waited for during this part of the time.
const WAITING_PARTS: u32 = 4;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb check server               at most 60 s
  plumb check --quick server       at most 20 s; finds what shows at once
  plumb check --thorough server    at most 5 minutes, with every measurement
  plumb check                      with one of your servers, or a public one
  plumb check --local              this machine, its link, gateway and resolver
  plumb check --for call server    what matters for calls first
  plumb check --plan 1000/50 server
                                   compared with what is paid for, in Mbit/s

Limits: a loaded direction names the direction of a queue, not the device. Phases shorter than about 15 s do not see \
large queues whole. The proposed shaper rate assumes 18 bytes of framing. Load flows run CUBIC; another congestion \
control may hide what CUBIC fills.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name, address or URL of the far end; none: a server that you agree to
    ///
    /// Also `NAME:PORT` and `[ADDRESS]:PORT`. Most is measured where `plumb serve` runs at the far end. Without a far end, the
    /// first of your servers (servers.toml), or of the public ones that you agreed to, is measured with; where there is none,
    /// this machine, its link, gateway and resolver are checked.
    host: Option<String>,
    /// Measure with this one of the servers in servers.toml, or of the public ones: apple, cloudflare, m-lab
    #[arg(long, value_name = "NAME", conflicts_with_all = ["host", "local", "protocol"])]
    server: Option<String>,
    /// Check this machine, its link, gateway and resolver alone
    #[arg(long, conflicts_with = "host")]
    local: bool,
    #[command(flatten)]
    asked: AskedOptions,
    /// Yield to all other traffic (LEDBAT++); the rates are then not those of the line
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
    /// Exit with status 3 when a finding is this severe
    #[arg(long, value_name = "SEVERITY", value_parser = words::some(&[Severity::Warning, Severity::Critical]))]
    fail_on: Option<Severity>,
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
    let began = Instant::now();
    let asked = arguments.asked.asked();
    let times = match arguments.load.duration() {
        Some(phase) => Times::of_phases(phase),
        None => Times::of(asked.effort),
    };
    let chosen = match (&arguments.host, arguments.local) {
        (None, false) => servers::choose(arguments.server.as_deref())?,
        _ => None,
    };
    let (host, protocol) = match (&arguments.host, &chosen) {
        (Some(host), _) => (host.as_str(), arguments.protocol),
        (None, Some(server)) => (server.host.as_str(), Some(server.protocol)),
        (None, None) => {
            if !arguments.local {
                say(
                    "no far end was given, and there is no server that you agreed to: this machine is checked, and not the line. How to \
                     check the line too: plumb explain far-end",
                );
            }
            return arguments.check_local(asked, times);
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
    let output = arguments.output.begin()?;
    // Before the client's threads start, so that none of them is hit.
    let cancel = stop_flag(Ends::ByItself)?;
    let watcher = arguments.output.watcher();
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
        AfterSilence::probe(&target.name, target.address, &*watcher, &cancel)
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
    let Conducted { mut run, shortfall } = match found.map_err(anyhow::Error::downcast) {
        Ok(far) => {
            let address = target.address.ip();
            let metered = announcement::interface(address)
                .and_then(|name| plumb_host::metered::why_metered(&name));
            let defaults = plan::defaults(&asked, times, arguments.gentle, metered.is_some());
            let groups = arguments.load.groups(&defaults, &Mix::default())?;
            let mut plan = arguments.load.plan(&target, defaults, groups);
            plan.until = times.total.map(|total| began + total);
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
                with_far_end::run(far, &plan, besides, &*watcher, &cancel)
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
            if arguments.fail_on.is_some() {
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
                without_responder::run(plan(asked.clone()), steps.collect(), &*watcher, &cancel)
            })??
        }
        Err(Ok(why)) => return Err(why.into()),
        Err(Err(why)) => return Err(why),
    };
    drop(watcher);
    run.notes.splice(0..0, chosen.map(|server| server.note()));
    let judged = run
        .verdict
        .as_ref()
        .is_some_and(|verdict| verdict.not_measured.is_empty());
    let reached = arguments
        .fail_on
        .is_some_and(|limit| run.findings.iter().any(|finding| finding.severity >= limit));
    arguments.emit(output, run)?;
    match shortfall {
        // Though not all was measured: what was found is there.
        Some(why) if reached => say(why),
        Some(why) => return Err(why.into()),
        None => {}
    }
    if reached {
        return Ok(ExitCode::from(FOUND));
    }
    let stopped = cancel.load(Ordering::Relaxed);
    if arguments.fail_on.is_some() && (stopped || !judged) {
        anyhow::bail!(
            "not everything that --fail-on judges was measured: see the verdict and the notes"
        );
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    /// This machine, its link, gateway and resolver.
    fn check_local(
        &self,
        asked: plumb_model::goal::Asked,
        times: Times,
    ) -> anyhow::Result<ExitCode> {
        let output = self.output.begin()?;
        let cancel = stop_flag(Ends::ByItself)?;
        let watcher = self.output.watcher();
        let time = times.total.unwrap_or(plan::LONGEST);
        say(format_args!(
            "at most {} on this machine and its gateway, with some hundred small packets",
            human_seconds(time.as_secs_f64())
        ));
        let catalogue = plumb_host::knobs::Catalogue::built_in()?;
        let mut host = plumb_measure::host::HostAudit {
            catalogue: &catalogue,
        };
        let (command, watching) = (command_line(), &*watcher);
        let conducted = local::run(command, asked, time, &mut host, watching, &cancel)?;
        drop(watcher);
        let limit = self.fail_on;
        let reached = |severity| limit.is_some_and(|limit| severity >= limit);
        let found = conducted.run.findings.iter().any(|f| reached(f.severity));
        self.emit(output, conducted.run)?;
        match (found, conducted.shortfall) {
            (true, _) => Ok(ExitCode::from(FOUND)),
            (false, Some(why)) => Err(why.into()),
            (false, None) => Ok(ExitCode::SUCCESS),
        }
    }

    fn emit(
        &self,
        output: crate::output::Begun<'_>,
        run: plumb_model::run::Run,
    ) -> anyhow::Result<()> {
        let render = match output.details() {
            true => text::render,
            false => text::render_check,
        };
        output.emit_as(run, |run, style| {
            render(run, style) + &self.weighed.render(run, style)
        })
    }
}
