//! What a check measures, by how thorough it is to be and what it was asked for.

use std::net::IpAddr;
use std::sync::mpsc;
use std::thread::Builder;
use std::time::Duration;

use plumb_host::knobs::Catalogue;
use plumb_measure::after_silence::AfterSilence;
use plumb_measure::budget;
use plumb_measure::capacity::{self, LineCapacity};
use plumb_measure::connects::Connects;
use plumb_measure::gateway::AskGateway;
use plumb_measure::host::HostAudit;
use plumb_measure::interception::Interception;
use plumb_measure::mtu::LargestPacket;
use plumb_measure::owd::{Clocks, OneWay};
use plumb_measure::page::PageLoad;
use plumb_measure::path::{self, Hops};
use plumb_measure::resolver::Resolvers;
use plumb_measure::small_objects::SmallObjects;
use plumb_measure::step::Step;
use plumb_measure::times::Times;
use plumb_measure::traffic_classes::Shape;
use plumb_measure::versions::Versions;
use plumb_measure::with_far_end::{self, Besides};
use plumb_measure::within::Within;
use plumb_model::goal::{Asked, Complaint, Effort, Purpose};
use plumb_model::need::Need;
use plumb_model::protocol::Protocol;
use plumb_model::results::Direction;
use plumb_model::units::ByteCount;
use plumb_net::egress::Outlet;
use plumb_probe::page::PagePlan;
use plumb_probe::path::Target as PathTarget;
use plumb_probe::{Plan as ProbePlan, Sizes};
use plumb_wire::native::control::flow::{Flow, TcpFlow};
use plumb_wire::native::spec::PORT;
use plumb_wire::url::Url;

use crate::files::OpenFiles;
use crate::load_options::Defaults;
use crate::target::Target;
use crate::trust::TrustOptions;

/// A check with phases of a length of its own takes no longer than this without a responder.
pub(super) const LONGEST: Duration = Duration::from_secs(60);

/// What a check may transfer where bytes are paid for: a fortieth of the usual, and a percent of a small mobile plan.
const METERED: ByteCount = ByteCount::from_bytes(50_000_000);

/// What a thorough check may transfer: its phases are 2.6 times as long.
pub(super) const THOROUGH: ByteCount = ByteCount::from_bytes(5_000_000_000);

/// How long each step may take, in a default check and in a thorough one. The steps of a default check fit into the
/// time that its loads leave; on most paths each ends in a second.
const HOST: Duration = Duration::from_secs(4);
const HOPS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(20)];
// Past a black hole each lost probe takes some round trips.
const SIZES: [Duration; 2] = [Duration::from_secs(4), Duration::from_secs(20)];
// A search without an answer takes 3 s, and each question of a slow gateway 2 s.
const GATEWAY: Duration = Duration::from_secs(8);
// Two seconds of them, and a round trip at its beginning and end.
const OBJECTS: Duration = Duration::from_secs(4);
const CONNECTS: Duration = Duration::from_secs(4);
const INTERCEPTION: Duration = Duration::from_secs(2);
const NAMES: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(8)];
const VERSIONS: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(5)];
const PAGE: [Duration; 2] = [Duration::from_secs(10), Duration::from_secs(30)];

/// What only a thorough check has: the route for so long as a terminal of Starlink keeps it and longer, each direction
/// by itself, and the lines of the path.
const ROUTE: Duration = Duration::from_secs(18);
const ONE_WAY_PROBES: u64 = 500;
const ONE_WAY: Duration = Duration::from_secs(14);
const LINES: Duration = Duration::from_secs(50);

/// Where the steps of a check go.
#[derive(Clone, Copy)]
pub(super) struct Aim<'a> {
    pub(super) target: &'a Target,
    /// The port on which something listens there.
    pub(super) port: u16,
    pub(super) has_responder: bool,
}

/// Hands the steps of a check besides its loads to `measure`.
pub(super) fn with_steps<T>(
    aim: Aim<'_>,
    asked: &Asked,
    page: Option<&PagePlan>,
    silence: Option<&mut AfterSilence>,
    measure: impl FnOnce(Besides<'_>) -> T,
) -> anyhow::Result<T> {
    let Aim {
        target,
        port,
        has_responder,
    } = aim;
    let thorough = usize::from(asked.effort == Effort::Thorough);
    let [hops_time, sizes_time, names_time, versions_time, page_time] =
        [HOPS, SIZES, NAMES, VERSIONS, PAGE]
            .map(|times| times.get(thorough).copied().unwrap_or(HOST));
    let far = PathTarget {
        name: target.name.clone(),
        address: target.address,
        outlet: Outlet::default(),
    };
    let catalogue = Catalogue::built_in()?;
    let mut host = HostAudit {
        catalogue: &catalogue,
    };
    let mut hops = path::Wanted::hops(far.clone());
    hops.has_responder = has_responder;
    let mut hops = Hops {
        wanted: &hops,
        show: &mut |_, _| {},
    };
    let mut sizes = LargestPacket {
        target: PathTarget {
            address: target.at(port),
            ..far.clone()
        },
    };
    let mut connects = Connects::to_both(target.at(port), target.other_at(port));
    let mut interception = Interception {
        host: target.host().to_owned(),
    };
    let addresses = [Some(target.address), target.other_version];
    let mut versions = match addresses {
        [Some(one), Some(other)] => Some(Versions {
            name: target.name.clone(),
            addresses: [one, other],
        }),
        _ => None,
    };
    let mut page = page.map(|plan| PageLoad {
        plan,
        repetition: None,
    });
    let mut route = path::Wanted::hops(far.clone());
    route.plan.cycles = None;
    route.plan.interval = Duration::from_millis(50);
    let mut route = Hops {
        wanted: &route,
        show: &mut |_, _| {},
    };
    let mut one_way = ProbePlan::new(Protocol::Udp, &target.name, target.at(PORT));
    one_way.count = Some(ONE_WAY_PROBES);
    one_way.interval = Duration::from_millis(20);
    one_way.sizes = Sizes::One(one_way.least_size_bytes());
    let mut one_way = OneWay {
        plan: one_way,
        clocks: Clocks::Judge,
    };
    let lines = capacity::Wanted::of(far);
    let mut lines = LineCapacity { wanted: &lines };
    let resolvers = &mut Resolvers;
    let mut gateway = AskGateway {
        towards: target.address.ip(),
    };

    let within = |step, time| Within { step, time };
    let mut before = vec![within(&mut host as &mut dyn Step, HOST)];
    if asked.effort != Effort::Quick {
        before.push(within(&mut hops, hops_time));
        before.push(within(&mut sizes, sizes_time));
        before.push(within(&mut connects, CONNECTS));
        before.push(within(&mut interception, INTERCEPTION));
        // Where an address was typed, no resolver was asked.
        if target.host().parse::<IpAddr>().is_err() {
            before.push(within(resolvers, names_time));
        }
        before.extend(versions.iter_mut().map(|v| within(v, versions_time)));
        // What is complained of comes first: what is measured last is what a short time leaves out.
        let first = match (asked.complaint, asked.purpose) {
            (Some(Complaint::Throughput), _)
            | (None, Some(Purpose::Transfer | Purpose::Backup)) => Some(2),
            _ => None,
        };
        if let Some(first) = first {
            before.swap(1, first);
        }
    }
    before.extend(silence.map(|step| within(step, HOST)));
    let mut objects = SmallObjects {
        name: target.name.clone(),
    };
    let mut after = Vec::new();
    let copies = matches!(asked.purpose, Some(Purpose::Transfer | Purpose::Backup));
    if copies && has_responder && asked.effort != Effort::Quick {
        after.push(within(&mut objects as &mut dyn Step, OBJECTS));
    }
    if asked.effort == Effort::Thorough {
        after.push(within(&mut route as &mut dyn Step, ROUTE));
        if has_responder {
            after.push(within(&mut one_way, ONE_WAY));
        }
        after.push(within(&mut lines, LINES));
    }
    if asked.gateway {
        // A user who agreed to it wants it, however short the check is.
        before.insert(0, within(&mut gateway, GATEWAY));
    }
    let mut page = page.as_mut().map(|page| within(page, page_time));
    let page = page.iter_mut().map(|page| page as &mut dyn Step);
    let before = before.iter_mut().map(|step| step as &mut dyn Step);
    Ok(measure(Besides {
        before: page.chain(before).collect(),
        after: after.iter_mut().map(|step| step as &mut dyn Step).collect(),
    }))
}

/// The most that a check transfers where nothing else is said.
pub(super) fn most(asked: &Asked) -> ByteCount {
    match asked.effort {
        Effort::Thorough => THOROUGH,
        Effort::Quick | Effort::Usual => budget::DEFAULT,
    }
}

/// The loads of a check; `gentle` ones yield to all other traffic.
pub(super) fn defaults(asked: &Asked, times: Times, gentle: bool, metered: bool) -> Defaults {
    let (up, down, both) = (Direction::Up, Direction::Down, Direction::Both);
    let first_down = matches!(asked.purpose, Some(Purpose::Video | Purpose::Web));
    let mut directions = match first_down {
        true => vec![down, up, both],
        false => vec![up, down, both],
    };
    if times.both.is_zero() {
        directions.pop();
    }
    Defaults {
        directions,
        budget: match metered {
            true => METERED,
            false => most(asked),
        },
        times,
        streams: with_far_end::STREAMS,
        flow: Flow::Tcp(TcpFlow {
            background: gentle,
            ..TcpFlow::default()
        }),
        shape: Shape::BestEffort,
        files: OpenFiles::default(),
        bytes: None,
        until_steady: false,
        applications: Vec::new(),
        latency: true,
        judge: true,
        as_iperf3: false,
    }
}

/// The page to load, where the path is judged for the web: by default the root page of the far end. It may take so
/// many bytes.
pub(super) fn page(
    purpose: Option<Purpose>,
    url: Option<&Url>,
    trust: &TrustOptions,
    bytes: u64,
    target: &Target,
) -> anyhow::Result<Option<PagePlan>> {
    if purpose != Some(Purpose::Web) {
        return Ok(None);
    }
    let host = target.host();
    let url = match url {
        Some(url) => url.clone(),
        None if host.contains(':') => format!("https://[{host}]/").parse()?,
        None => format!("https://{host}/").parse()?,
    };
    let trust = trust.trust_for(&url)?;
    let mut plan = PagePlan::new(url, trust);
    plan.limits.bytes = plan.limits.bytes.min(bytes);
    Ok(Some(plan))
}

/// Looks a name up, for so long at most: the system's resolver tries each server for 5 s, twice (resolv.conf(5)).
pub(super) fn resolve_within(name: &str, time: Duration) -> anyhow::Result<Target> {
    let (tell, told) = mpsc::channel();
    let asked = name.to_owned();
    // It ends when the system's resolver does, or with the program.
    Builder::new()
        .name("plumb-resolve".to_owned())
        .spawn(move || tell.send(Target::resolve(&asked)))?;
    told.recv_timeout(time).unwrap_or_else(|_| {
        anyhow::bail!(
            "cannot find '{name}': the resolver does not answer within {} s; `plumb check` without a name checks this machine, its gateway and its resolver",
            time.as_secs()
        )
    })
}

/// The kind of far end that a check has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FarEnd {
    Responder,
    /// Any host that answers.
    Host,
    /// No far end: this machine, its gateway and its resolvers.
    None,
}

/// Whether a check measures what a cause needs; `raw` is whether it may open raw sockets.
pub(crate) fn measures(need: Need, effort: Effort, far: FarEnd, raw: bool) -> bool {
    let (responder, path) = (far == FarEnd::Responder, far != FarEnd::None);
    let (usual, thorough) = (effort != Effort::Quick, effort == Effort::Thorough);
    match need {
        Need::Machine | Need::Radio => true,
        Need::Idle => path,
        Need::Upload | Need::Download | Need::BothHosts => responder,
        Need::UploadQueue | Need::DownloadQueue | Need::BothLoads | Need::Datagrams => {
            responder && usual
        }
        Need::Route | Need::PacketSizes => path && usual,
        Need::Silence => path && thorough,
        Need::ProviderHop | Need::Marks => responder && usual,
        Need::QuotedHeaders => usual && (path && raw || responder),
        Need::SegmentSize => path && usual && raw,
        Need::RouteOverTime | Need::Lines => path && thorough,
        Need::OneWayDelays => responder && thorough,
        // Others ask for them where something is left unexplained.
        Need::SmallPackets | Need::SingleStreams => responder && thorough,
        // Beside loads; what a machine counted since it booted is not of a path.
        Need::CounterRates => responder || far == FarEnd::None,
        Need::Resolver => usual || far == FarEnd::None,
        Need::BothVersions => path && usual,
        Need::Connections => far == FarEnd::Host,
        // Verbs of their own measure these, --for web a page, and --for transfer small objects.
        Need::Places
        | Need::Capture
        | Need::Files
        | Need::Ciphers
        | Need::Page
        | Need::SmallObjects
        | Need::SilentConnections => false,
    }
}
