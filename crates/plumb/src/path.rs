//! `plumb path`: the way that packets take, and what becomes of them on it.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumb_measure::conductor::Conductor;
use plumb_measure::path::{Back, Hops, Wanted};
use plumb_measure::progress::{Nobody, Watcher};
use plumb_measure::record::Judgement;
use plumb_measure::resolver::of_this_host;
use plumb_model::results::path::MapPlace;
use plumb_net::egress::Outlet;
use plumb_net::names::host_name;
use plumb_probe::path::atlas::{Atlas, degrees};
use plumb_probe::path::trace::TracePlan;
use plumb_probe::path::{ProtocolAndPort, Target as PathTarget, UDP_PORT};
use plumb_report::export::path::{self as forms, Order};
use plumb_wire::native::spec;

use crate::exit::{Ends, stop_flag};
use crate::output::{Output, print};
use crate::progress::Line;
use crate::quantity::{time, time_above_zero};
use crate::target::{FamilyOptions, Target, command_line, outlet_towards};
use crate::usage::wrong;

mod live;
use live::View;

/// What the verb cannot do, for its help.
pub(crate) const LIMITS: &str = "\
Examples:
  plumb path server                    three probes to each hop
  plumb path server --continuous       until Ctrl-C, as mtr does
  plumb path server --tcp=443          by SYNs to the port that matters
  plumb path server --all-paths        every path of equal-cost routing
  plumb path server --both             the reverse path too, from plumb serve
  plumb path server --dot | dot -Tsvg  as a picture

Limits: routers answer when they have time. What is shown of a hop is of the forward path and of the answer's reverse path \
together. Without CAP_NET_RAW, what the path changes in packets is not seen. The letters are mtr's; `plumb explain \
options` lists them. See `plumb explain path`.";

/// Port of TCP probes: what firewalls let through most.
const TCP_PORT: u16 = 443;

#[derive(Args)]
pub(crate) struct Arguments {
    /// Name or address of the far end
    host: String,
    /// ICMP echoes [default: ICMP, then TCP and UDP where that does not get through]
    #[arg(short = 'I', long)]
    icmp: bool,
    /// UDP to a port [default: 33434]
    #[arg(short, long, value_name = "PORT", num_args = 0..=1, require_equals = true, value_parser = clap::value_parser!(u16).range(1..), conflicts_with_all = ["icmp", "tcp"])]
    udp: Option<Option<u16>>,
    /// TCP SYNs to a port [default: 443]; answered ones are reset
    #[arg(short = 'T', long, value_name = "PORT", num_args = 0..=1, require_equals = true, value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "icmp")]
    tcp: Option<Option<u16>>,
    /// Port of --udp or --tcp, as mtr has it
    #[arg(short = 'P', long, visible_short_alias = 'p', value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Probes to each hop
    #[arg(short, long, alias = "count", value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    cycles: u32,
    /// Go on until Ctrl-C
    #[arg(long, conflicts_with = "cycles")]
    continuous: bool,
    /// All paths on which equal-cost routing sends flows
    ///
    /// By UDP where no other protocol is asked for.
    #[arg(long)]
    all_paths: bool,
    /// With --all-paths, how sure to be at each router that no next hop was missed, above 0 and below 1
    #[arg(long, value_name = "SHARE", default_value = "0.95", value_parser = share, requires = "all_paths")]
    confidence: f64,
    /// Time between probes of a hop [default: 20ms]
    ///
    /// With more than ten cycles 1s.
    #[arg(short, long, value_name = "TIME", value_parser = time)]
    interval: Option<Duration>,
    /// A probe that takes longer counts as unanswered
    #[arg(short = 'W', long, visible_short_alias = 'Z', value_name = "TIME", default_value = "3s", value_parser = time_above_zero)]
    timeout: Duration,
    /// After the last probe, wait this long for answers, --timeout at most [default: by the answers so far]
    #[arg(short = 'G', long, visible_alias = "gracetime", value_name = "TIME", value_parser = time)]
    grace: Option<Duration>,
    /// The first hop
    #[arg(short, long, value_name = "HOP", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..))]
    first_hop: u8,
    /// The last hop
    #[arg(short, long, value_name = "HOP", default_value_t = 30, value_parser = clap::value_parser!(u8).range(1..))]
    max_hops: u8,
    /// Stop after so many hops in a row that do not answer
    #[arg(short = 'U', long, value_name = "HOPS", value_parser = clap::value_parser!(u8).range(1..))]
    max_unknown: Option<u8>,
    /// The byte that fills ICMP and UDP probes, which have 64 bytes then unless --size is given
    #[arg(short = 'B', long, value_name = "BYTE")]
    bitpattern: Option<u8>,
    /// Bytes of a whole packet, IP header included [default: the least]
    #[arg(short = 's', long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(28..))]
    size: Option<u16>,
    /// Type of service, or traffic class, of the probes: DSCP times four
    #[arg(short = 'Q', long, value_name = "BYTE", default_value_t = 0)]
    tos: u8,
    /// Do not test DSCP and ECN by a marked probe to each hop
    #[arg(long)]
    no_marks: bool,
    #[command(flatten)]
    family: FamilyOptions,
    /// Interface to send by, or address to send from
    #[arg(short = 'a', long, visible_aliases = ["address", "interface"], value_name = "IF|ADDR")]
    from: Option<Outlet>,
    /// The reverse path too, from plumb serve at the far end
    ///
    /// Fails where no responder reports it. Without the option it is shown where one does.
    #[arg(long, conflicts_with = "one_way")]
    both: bool,
    /// Do not ask for the reverse path
    #[arg(long)]
    one_way: bool,
    /// TCP port of the responder that reports the reverse path
    #[arg(long, value_name = "PORT", default_value_t = spec::PORT, value_parser = clap::value_parser!(u16).range(1..))]
    responder_port: u16,
    /// Show addresses alone
    #[arg(short, long)]
    no_names: bool,
    /// Database of networks or places; may be given several times, the first that knows an address is used
    ///
    /// MaxMind's database (.mmdb) of networks or of cities, or a text file of `PREFIX,ASN,NAME[,LATITUDE,LONGITUDE]` lines.
    #[arg(long, value_name = "FILE")]
    asn_db: Vec<PathBuf>,
    /// Ask DNS for the networks of public addresses on the path, as far as no database has them
    ///
    /// The resolver of this host, or the one named, asks Team Cymru (origin.asn.cymru.com), who thereby see which addresses
    /// are on the path. None is asked without this option.
    #[arg(long, value_name = "RESOLVER", num_args = 0..=1, require_equals = true, value_parser = resolver)]
    asn_dns: Option<Option<SocketAddr>>,
    /// Where this host is, in degrees north and east
    #[arg(long, value_name = "LATITUDE,LONGITUDE", value_parser = place, allow_hyphen_values = true)]
    here: Option<MapPlace>,
    #[command(flatten)]
    form: Form,
    /// mtr's report too; it never cuts names
    #[arg(short = 'w', long, conflicts_with_all = ["traceroute", "dot", "graph_json", "json"])]
    report_wide: bool,
    /// In mtr's forms, addresses behind names
    #[arg(short = 'b', long, conflicts_with = "no_names")]
    show_ips: bool,
    /// In mtr's forms, the network of each address, as far as --asn-db or --asn-dns knows it
    #[arg(short = 'z', long)]
    aslookup: bool,
    /// Fields of mtr's forms, by the letters of mtr's --order
    ///
    /// L loss, D dropped, R received, S sent, N newest, B best, A average, W worst, V deviation, G geometric mean, J M X I
    /// jitter: the latest, mean, worst, interarrival.
    #[arg(long, value_name = "FIELDS", default_value = Order::USUAL)]
    order: Order,
    #[command(flatten)]
    output: Output,
}

/// Other forms than text and a Run.
#[derive(Args)]
#[group(multiple = false)]
struct Form {
    /// mtr's report
    #[arg(short = 'r', long, conflicts_with = "json")]
    mtr_report: bool,
    /// mtr's JSON
    #[arg(short = 'j', long, conflicts_with = "json")]
    mtr_json: bool,
    /// mtr's CSV
    #[arg(short = 'C', long, conflicts_with = "json")]
    mtr_csv: bool,
    /// What traceroute prints
    #[arg(long, conflicts_with = "json")]
    traceroute: bool,
    /// The graph of the path in Graphviz's language
    #[arg(long, conflicts_with = "json")]
    dot: bool,
    /// The graph of the path as JSON: nodes and edges
    #[arg(long, conflicts_with = "json")]
    graph_json: bool,
}

impl Form {
    /// The form that was asked for.
    fn chosen(&self) -> Option<forms::Form> {
        let all = [
            (self.mtr_report, forms::Form::MtrReport),
            (self.mtr_json, forms::Form::MtrJson),
            (self.mtr_csv, forms::Form::MtrCsv),
            (self.traceroute, forms::Form::Traceroute),
            (self.dot, forms::Form::Dot),
            (self.graph_json, forms::Form::GraphJson),
        ];
        all.into_iter()
            .find(|(asked, _)| *asked)
            .map(|(_, form)| form)
    }
}

fn share(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text
        .parse()
        .ok()
        .filter(|share| *share > 0.0 && *share < 1.0);
    value.ok_or_else(|| format!("'{text}' is no share above 0 and below 1: write 0.95"))
}

/// A resolver by its address, with a port where it is not the port of DNS.
fn resolver(text: &str) -> Result<SocketAddr, String> {
    let by_port = text.parse();
    let usual = |address: IpAddr| SocketAddr::new(address, plumb_wire::dns::PORT);
    by_port.or_else(|_| text.parse().map(usual)).map_err(|_| {
        format!("'{text}' is no address of a resolver: write 192.0.2.1 or 192.0.2.1:53")
    })
}

fn place(text: &str) -> Result<MapPlace, String> {
    let wrong =
        || format!("'{text}' is no place: write LATITUDE,LONGITUDE in degrees, as 52.37,4.90");
    let (latitude, longitude) = text.split_once(',').ok_or_else(wrong)?;
    Ok(MapPlace {
        latitude_deg: degrees(latitude, 90.0).ok_or_else(wrong)?,
        longitude_deg: degrees(longitude, 180.0).ok_or_else(wrong)?,
    })
}

impl Arguments {
    /// The kind of probes that was asked for; a port may be `typed` behind the host too.
    ///
    /// # Errors
    /// When there is a port that goes with nothing, or two.
    fn protocol(&self, typed: Option<u16>) -> anyhow::Result<Option<ProtocolAndPort>> {
        let option = self.udp.or(self.tcp);
        let said = [option.flatten(), self.port, typed].into_iter().flatten();
        match (said.count(), option) {
            (0, _) | (1, Some(_)) => {}
            (1, None) => {
                return Err(wrong(
                    "a port is for datagrams or connections: add --udp or --tcp",
                ));
            }
            _ => return Err(wrong("the port is given twice: leave one out")),
        }
        let port = |given: Option<u16>, default| given.or(self.port).or(typed).unwrap_or(default);
        Ok(match (self.udp, self.tcp) {
            (Some(given), _) => Some(ProtocolAndPort::Udp {
                port: port(given, UDP_PORT),
            }),
            (_, Some(given)) => Some(ProtocolAndPort::Tcp {
                port: port(given, TCP_PORT),
            }),
            _ => self.icmp.then_some(ProtocolAndPort::Icmp),
        })
    }

    /// The form that was asked for, where it is not text.
    fn form(&self) -> Option<forms::Form> {
        let wide = self.report_wide.then_some(forms::Form::MtrReport);
        self.form.chosen().or(wide)
    }

    /// Other programs' forms have no place for it.
    fn back(&self) -> Back {
        let shown = match self.form() {
            None | Some(forms::Form::Dot | forms::Form::GraphJson) => true,
            Some(_) => false,
        };
        match (self.both, self.one_way || !shown) {
            (true, _) => Back::Required(self.responder_port),
            (false, true) => Back::No,
            (false, false) => Back::IfAnswered(self.responder_port),
        }
    }

    /// Whom to ask for networks.
    ///
    /// # Errors
    /// When it is to be this host's resolver, and that is not known.
    fn networks_by(&self) -> anyhow::Result<Option<SocketAddr>> {
        let Some(named) = self.asn_dns else {
            return Ok(None);
        };
        let own = || {
            let servers = of_this_host().context("cannot read which resolver this host asks")?;
            let first = servers.first().context(
                "this host has no resolver to ask for networks: name one, as --asn-dns=192.0.2.1",
            )?;
            anyhow::Ok(SocketAddr::new(*first, plumb_wire::dns::PORT))
        };
        named.map_or_else(own, Ok).map(Some)
    }

    fn plan(&self, target: &Target) -> TracePlan {
        /// So many cycles may follow each other fast; more would be a load on routers.
        const FAST_CYCLES: u32 = 10;
        let slow = self.continuous || self.cycles > FAST_CYCLES;
        let usual = if slow {
            Duration::from_secs(1)
        } else {
            Duration::from_millis(20)
        };
        // What mtr sends; the smallest probe has no room to fill.
        let filled = if self.bitpattern.is_some() { 64 } else { 0 };
        TracePlan {
            first_hop: self.first_hop,
            last_hop: self.max_hops,
            cycles: (!self.continuous).then_some(self.cycles),
            interval: self.interval.unwrap_or(usual),
            timeout: self.timeout,
            size_bytes: self.size.unwrap_or(filled),
            fill: self.bitpattern.unwrap_or(0),
            max_unknown: self.max_unknown,
            grace: self.grace,
            traffic_class: self.tos,
            inspect: !self.no_marks,
            ..TracePlan::new(target.address.ip())
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.first_hop > arguments.max_hops {
        return Err(wrong(format!(
            "the first hop ({}) is behind the last ({}): see --max-hops",
            arguments.first_hop, arguments.max_hops
        )));
    }
    let target = Target::resolve_as(&arguments.host, arguments.family.chosen())?;
    let typed = Some(target.address.port()).filter(|port| *port != 0);
    let protocol = arguments.protocol(typed)?;
    let atlas = read_atlas(&arguments.asn_db)?;
    let output = arguments.output.begin()?;
    let stop = stop_flag(Ends::by_signal_if(arguments.continuous))?;
    let mut wanted = Wanted {
        plan: arguments.plan(&target),
        protocol,
        all_paths: arguments.all_paths.then_some(arguments.confidence),
        names: !arguments.no_names,
        atlas,
        networks_by: arguments.networks_by()?,
        back: arguments.back(),
        has_responder: false,
        here: arguments.here,
        target: PathTarget {
            name: target.name.clone(),
            address: target.address,
            outlet: outlet_towards(&target.name, target.address, arguments.from.as_ref())?,
        },
    };
    let text = arguments.form().is_none() && !arguments.output.json();
    let mut view = (arguments.continuous && text)
        .then(|| View::open(&stop))
        .flatten();
    // A view says all that a progress line would.
    let line: Box<dyn Watcher> = if view.is_some() {
        Box::new(Nobody)
    } else {
        Box::new(Line::new())
    };
    let traced = loop {
        let (name, address) = (&wanted.target.name, wanted.target.address.ip());
        let conductor = Conductor::towards(command_line(), name, address, line.as_ref(), &stop);
        let mut hops = Hops {
            wanted: &wanted,
            show: &mut |log, names| {
                if let Some(view) = &mut view {
                    view.show(log, names);
                }
            },
        };
        let traced = conductor.only(&mut hops, Judgement::Part)?;
        if !view.as_mut().is_some_and(View::switches) {
            break traced;
        }
        wanted.protocol = Some(match wanted.protocol {
            Some(ProtocolAndPort::Udp { .. }) => ProtocolAndPort::Icmp,
            _ => ProtocolAndPort::Udp { port: UDP_PORT },
        });
        stop.store(false, Ordering::Relaxed);
    };
    drop((line, view));
    let mut run = traced.run;
    run.notes
        .extend(target.families_note(arguments.family.chosen()));
    match arguments.form() {
        Some(form) => {
            let shown = forms::Shown {
                order: &arguments.order,
                here: &host_name(),
                both: arguments.show_ips,
                networks: arguments.aslookup,
                numeric: arguments.no_names,
                last_hop: arguments.max_hops,
                size_bytes: arguments.size,
                traffic_class: arguments.tos,
                fill: arguments.bitpattern.unwrap_or(0),
            };
            print(&forms::render(&run, form, &shown))?;
            output.save(run)?;
        }
        None => output.emit(run)?,
    }
    traced
        .shortfall
        .map_or(Ok(ExitCode::SUCCESS), |why| Err(why.into()))
}

fn read_atlas(files: &[PathBuf]) -> anyhow::Result<Atlas> {
    let mut atlas = Atlas::default();
    for file in files {
        let bytes =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        atlas
            .add(bytes)
            .with_context(|| format!("{} is no database of networks", file.display()))?;
    }
    Ok(atlas)
}
