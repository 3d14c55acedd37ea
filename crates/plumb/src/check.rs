//! `plumb check`: the main job.

use std::process::ExitCode;
use std::sync::atomic::Ordering;

use anyhow::Context as _;
use clap::Args;
use plumb_host::knobs::Catalogue;
use plumb_load::client::ClientError;
use plumb_measure::conductor::Conducted;
use plumb_measure::host::HostAudit;
use plumb_measure::page::PageLoad;
use plumb_measure::path::{self, Hops};
use plumb_measure::step::{Optional, Step};
use plumb_measure::traffic_classes::Shape;
use plumb_measure::{announcement, budget, with_responder, without_responder};
use plumb_model::finding::Severity;
use plumb_model::goal::Goal;
use plumb_net::egress::Outlet;
use plumb_probe::page::PagePlan;
use plumb_probe::path::Target as PathTarget;
use plumb_wire::native::control::flow::{Flow, TcpFlow};
use plumb_wire::url::Url;

use crate::files::OpenFiles;
use crate::load_options::{Defaults, LoadOptions};
use crate::mix::Mix;
use crate::output::{LiveOutput, say};
use crate::target::{Target, command_line, interruptible};
use crate::trust::TrustOptions;
use crate::usage::wrong;
use crate::words;

/// Exit status when a finding reaches `--fail-on`.
const FOUND: u8 = 3;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Limits: a loaded direction names the direction of a queue, not the device. Phases shorter than
about 15 s do not see large queues whole. The proposed shaper rate assumes 18 bytes of framing.
Load flows run CUBIC; another congestion control may hide what CUBIC fills.";

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end, where `plumb serve` runs; also `NAME:PORT` and `[ADDRESS]:PORT`
    host: String,
    /// What the path is to be good for: web loads a page first
    #[arg(long = "for", value_name = "USE", value_parser = words::any::<Goal>())]
    goal: Option<Goal>,
    /// With --for web: the page to load [default: https://HOST/]
    #[arg(long, value_name = "URL", requires = "goal")]
    page: Option<Url>,
    #[command(flatten)]
    trust: TrustOptions,
    #[command(flatten)]
    load: LoadOptions,
    /// Exit with status 3 when a finding is at least this bad
    #[arg(long, value_name = "SEVERITY", value_parser = words::some(&[Severity::Warning, Severity::Critical]))]
    fail_on: Option<Severity>,
    #[command(flatten)]
    output: LiveOutput,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let target = Target::resolve(&arguments.host)?;
    let output = arguments.output.begin()?;
    // Before the client's threads start, so that none of them is hit.
    let cancel = interruptible()?;
    let watcher = arguments.output.watcher();
    let page = arguments.page(&target)?;
    let mut page = page.as_ref().map(|plan| PageLoad {
        plan,
        repetition: None,
    });
    let catalogue = Catalogue::built_in()?;
    let mut host = HostAudit {
        catalogue: &catalogue,
    };
    let wanted = path::Wanted::hops(PathTarget {
        name: target.name.clone(),
        address: target.address,
        outlet: Outlet::default(),
    });
    let mut hops = Hops {
        wanted: &wanted,
        show: &mut |_, _| {},
    };
    let (mut host, mut hops) = (Optional(&mut host), Optional(&mut hops));
    let mut idle_steps: Vec<&mut dyn Step> = vec![&mut host, &mut hops];
    idle_steps.extend(page.iter_mut().map(|page| page as &mut dyn Step));
    let Conducted { run, shortfall } = match target.connect(arguments.load.port) {
        Ok(client) => {
            let defaults = Defaults {
                directions: with_responder::CHECK_DIRECTIONS.to_vec(),
                budget: budget::DEFAULT,
                duration: with_responder::PHASE,
                streams: with_responder::STREAMS,
                flow: Flow::Tcp(TcpFlow::default()),
                shape: Shape::BestEffort,
                files: OpenFiles::default(),
                bytes: None,
                until_steady: false,
                applications: Vec::new(),
                latency: true,
                judge: true,
            };
            let groups = arguments.load.groups(&defaults, &Mix::default())?;
            let plan = arguments.load.plan(&target, defaults, groups);
            let link_bps = announcement::link_bps(target.address.ip());
            say(plan.announcement(link_bps));
            with_responder::run(client, &plan, &mut idle_steps, &*watcher, &cancel)
                .context("cannot measure")?
        }
        Err(
            why @ (ClientError::Refused { .. }
            | ClientError::TimedOut { .. }
            | ClientError::Unreachable { .. }
            | ClientError::Mute { .. }
            | ClientError::NotPlumb { .. }),
        ) => {
            if arguments.fail_on.is_some() {
                return Err(
                    anyhow::Error::new(why).context("nothing could be judged, as --fail-on asks")
                );
            }
            without_responder::run(
                command_line(),
                &target.name,
                target.address,
                &why.to_string(),
                &mut idle_steps,
                &*watcher,
                &cancel,
            )?
        }
        Err(e) => return Err(e.into()),
    };
    drop(watcher);
    let judged = run
        .verdict
        .as_ref()
        .is_some_and(|verdict| verdict.not_measured.is_empty());
    let reached = arguments
        .fail_on
        .is_some_and(|limit| run.findings.iter().any(|finding| finding.severity >= limit));
    output.emit(run)?;
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
    /// The page to load, where the path is to be good for that.
    fn page(&self, target: &Target) -> anyhow::Result<Option<PagePlan>> {
        let Some(Goal::Web) = self.goal else {
            if self.trust.is_given() {
                return Err(wrong(
                    "certificates are looked at where a page is loaded: add --for web, or leave --ca and --insecure out"
                        .to_owned(),
                ));
            }
            return Ok(None);
        };
        let host = target.host();
        let url = match &self.page {
            Some(url) => url.clone(),
            None if host.contains(':') => format!("https://[{host}]/").parse()?,
            None => format!("https://{host}/").parse()?,
        };
        let trust = self.trust.trust_for(&url)?;
        let mut plan = PagePlan::new(url, trust);
        plan.limits.bytes = plan
            .limits
            .bytes
            .min(self.load.budget(budget::DEFAULT).bytes());
        Ok(Some(plan))
    }
}
