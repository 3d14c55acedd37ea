//! The probe streams that run beside everything else, from beginning to end: to the far end, in each
//! class of traffic, and to places on the way.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use plumb_model::context::{Context, Phase, ProbeIdentity};
use plumb_model::distribution::Distribution;
use plumb_model::dscp::{BEST_EFFORT, Class};
use plumb_model::protocol::Protocol;
use plumb_model::results::udp::LossPattern;
use plumb_model::results::{OneWayQueueing, Outcome, PingResult, PlaceMethod, TimestampSource};
use plumb_model::series::Series;
use plumb_net::clock;
use plumb_probe::{Plan, ProbeError, ProbeLog, Probing, Progress, Sample};

use crate::near_hops::Place;
use crate::record::Measured;
use crate::yields::Yield;

/// Fifty probes a second, over UDP where the far end echoes it: a 95th percentile over 13 s rests on more than 30 probes
/// beyond it, and 64 bytes of payload are 50 kbit/s on the line.
const MAIN_INTERVAL: Duration = Duration::from_millis(20);

/// Ten a second over ICMP beside those over UDP, to see whether ICMP is treated otherwise.
const ICMP_INTERVAL: Duration = Duration::from_millis(100);

/// How late an answer may come and still count: several times what the fullest queue holds, so
/// that a path is not called lossy, or healthy, because it is slow.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often it is looked whether answers are still to come.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Twenty a second in each further class and to each place on the way: a third of the main stream's
/// load, and neighbours close enough in time for the round trips of two streams to be compared.
const BESIDE_INTERVAL: Duration = Duration::from_millis(50);

#[derive(Debug, Clone)]
pub struct Aim {
    /// The far end as the user typed it.
    pub name: String,
    pub address: SocketAddr,
    /// Whether it echoes UDP at that port.
    pub echoes: bool,
    /// Classes of traffic that are probed besides best effort.
    pub classes: Vec<Class>,
    /// Places on the way.
    pub places: Vec<Place>,
}

/// Probes, or their logs: the far end in best effort by both protocols, which all that is said of
/// the whole path rests on, and what is probed beside it.
#[derive(Debug)]
struct Streams<T> {
    udp: Option<T>,
    icmp: Option<T>,
    classes: Vec<(Class, T)>,
    places: Vec<(Place, T)>,
}

pub struct Probes {
    streams: Streams<Probing>,
    /// What must be known: streams that could not start.
    pub notes: Vec<String>,
    /// Requests over UDP to which nothing came back, where that is why there are no probes over it.
    pub unanswered_udp: u64,
}

/// What the probes saw.
pub struct ProbeLogs(Streams<ProbeLog>);

/// A stretch of time on CLOCK_MONOTONIC.
#[derive(Debug, Clone, Copy)]
pub struct Window {
    pub from_ns: u64,
    pub to_ns: u64,
}

impl Window {
    /// From `from_ns` until now.
    pub fn until_now(from_ns: u64) -> Self {
        Self {
            from_ns,
            to_ns: clock::monotonic_ns(),
        }
    }

    /// How long it is.
    pub fn seconds(self) -> f64 {
        self.to_ns.saturating_sub(self.from_ns) as f64 / 1e9
    }

    /// The same until `to_ns` at the latest.
    pub fn until(self, to_ns: u64) -> Self {
        Self {
            to_ns: self.to_ns.min(to_ns).max(self.from_ns),
            ..self
        }
    }

    /// The same without its first `seconds`.
    pub fn after(self, seconds: f64) -> Self {
        Self {
            from_ns: self.from_ns + (seconds * 1e9) as u64,
            ..self
        }
    }
}

impl<T> Streams<T> {
    fn none() -> Self {
        Self {
            udp: None,
            icmp: None,
            classes: Vec::new(),
            places: Vec::new(),
        }
    }

    fn map<U>(self, mut each: impl FnMut(T) -> U) -> Streams<U> {
        Streams {
            udp: self.udp.map(&mut each),
            icmp: self.icmp.map(&mut each),
            classes: self
                .classes
                .into_iter()
                .map(|(c, s)| (c, each(s)))
                .collect(),
            places: self.places.into_iter().map(|(p, s)| (p, each(s))).collect(),
        }
    }

    fn look<U>(&self, each: impl Fn(&T) -> Option<U>) -> Streams<U> {
        let beside = |streams: &[(Class, T)]| -> Vec<(Class, U)> {
            let seen = streams.iter().map(|(class, s)| Some((*class, each(s)?)));
            seen.flatten().collect()
        };
        let places = self.places.iter().map(|(p, s)| Some((*p, each(s)?)));
        Streams {
            udp: self.udp.as_ref().and_then(&each),
            icmp: self.icmp.as_ref().and_then(&each),
            classes: beside(&self.classes),
            places: places.flatten().collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &T> {
        let classes = self.classes.iter().map(|(_, stream)| stream);
        let places = self.places.iter().map(|(_, stream)| stream);
        self.udp
            .iter()
            .chain(&self.icmp)
            .chain(classes)
            .chain(places)
    }
}

impl Probes {
    /// No probes at all.
    pub fn none() -> Self {
        Self {
            streams: Streams::none(),
            notes: Vec::new(),
            unanswered_udp: 0,
        }
    }

    /// Starts probing over UDP, where the far end echoes, and over ICMP, and whatever else is
    /// aimed at. What cannot be started is noted.
    pub fn start(aim: &Aim, stop: &Arc<AtomicBool>) -> Self {
        let mut notes = Vec::new();
        let mut unanswered_udp = 0;
        let plan = |protocol, address, interval| Plan {
            interval,
            timeout: TIMEOUT,
            ..Plan::new(protocol, aim.name.as_str(), address)
        };
        let mut start = |what: &str, plan: Plan| {
            let started = Probing::start(plan, Arc::clone(stop));
            if let Err(ProbeError::NoEcho { unanswered, .. }) = &started {
                unanswered_udp = *unanswered;
            }
            started
                .map_err(|error| notes.push(format!("{what} was not measured: {error}")))
                .ok()
        };
        let udp = |interval| {
            aim.echoes
                .then(|| plan(Protocol::Udp, aim.address, interval))
        };
        let main = udp(MAIN_INTERVAL).and_then(|plan| start("UDP", plan));
        let interval = if aim.echoes {
            ICMP_INTERVAL
        } else {
            MAIN_INTERVAL
        };
        let icmp = plan(Protocol::Icmp, aim.address, interval);
        let mut streams = Streams {
            udp: main,
            icmp: start("ICMP", icmp),
            ..Streams::none()
        };
        for class in &aim.classes {
            let plan = udp(BESIDE_INTERVAL).map(|plan| Plan {
                dscp: Some(class.dscp),
                ..plan
            });
            let name = format!("The class {}", class.name);
            let started = plan.and_then(|plan| start(&name, plan));
            streams
                .classes
                .extend(started.map(|probing| (*class, probing)));
        }
        for place in &aim.places {
            let (address, hop_limit) = match place.method {
                PlaceMethod::Echo => (SocketAddr::new(place.address, 0), None),
                PlaceMethod::HopLimit => (aim.address, Some(place.place.hops())),
            };
            let plan = Plan {
                name: place.address.to_string(),
                hop_limit,
                routers_answer: hop_limit.is_some(),
                ..plan(Protocol::Icmp, address, BESIDE_INTERVAL)
            };
            let name = format!("The {}", place.place.name());
            let started = start(&name, plan);
            streams
                .places
                .extend(started.map(|probing| (*place, probing)));
        }
        Self {
            streams,
            notes,
            unanswered_udp,
        }
    }

    /// Starts probing over UDP alone, to compare the two hosts' clocks.
    pub fn for_clocks(
        name: &str,
        address: SocketAddr,
        echoes: bool,
        stop: &Arc<AtomicBool>,
    ) -> Self {
        let mut this = Self::none();
        if !echoes {
            return this;
        }
        let plan = Plan {
            interval: MAIN_INTERVAL,
            timeout: TIMEOUT,
            ..Plan::new(Protocol::Udp, name, address)
        };
        match Probing::start(plan, Arc::clone(stop)) {
            Ok(probing) => this.streams.udp = Some(probing),
            Err(error) => this
                .notes
                .push(format!("The clocks could not be compared: {error}")),
        }
        this
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.streams.all().next().is_none()
    }

    /// How far the main stream has come.
    pub fn latest(&self) -> Progress {
        let Streams { udp, icmp, .. } = &self.streams;
        udp.as_ref()
            .or(icmp.as_ref())
            .map(|probing| probing.progress().read())
            .unwrap_or_default()
    }

    /// What they have seen so far; probes that are not answered yet count as lost.
    pub fn so_far(&self) -> ProbeLogs {
        ProbeLogs(self.streams.look(Probing::so_far))
    }

    /// The same, once whatever was sent before `sent_before_ns` (CLOCK_MONOTONIC) and still comes has come: when
    /// every stream that is answered at all has had the answer to a later probe, and at most after `patience`.
    pub fn settled(&self, sent_before_ns: u64, patience: Duration) -> ProbeLogs {
        let until = Instant::now() + patience;
        loop {
            let seen = self.so_far();
            if Instant::now() >= until || seen.0.all().all(|log| has_settled(log, sent_before_ns)) {
                return seen;
            }
            sleep(LOOK_AGAIN);
        }
    }

    /// Ends the probes at once; what is under way counts no more.
    pub fn end(self) -> ProbeLogs {
        self.streams.all().for_each(Probing::abandon);
        ProbeLogs(self.streams.map(Probing::join))
    }
}

/// Whether a stream has had the answer to a probe that left at `sent_before_ns` or later, or never has one.
fn has_settled(log: &ProbeLog, sent_before_ns: u64) -> bool {
    let sent_ns = |s: &Sample| log.started_monotonic_ns + (s.sent_s * 1e9) as u64;
    let mut answered = log.samples.iter().rev().filter(|s| s.rtt.is_some());
    answered
        .next()
        .is_none_or(|latest| sent_ns(latest) >= sent_before_ns)
}

impl ProbeLogs {
    pub fn none() -> Self {
        Self(Streams::none())
    }

    /// The streams of best effort to the far end, the main one first.
    pub fn streams(&self) -> impl Iterator<Item = &ProbeLog> {
        self.0.udp.iter().chain(&self.0.icmp)
    }

    /// Just after the last probe of the main stream that was answered left, on CLOCK_MONOTONIC.
    pub fn last_answer_ns(&self) -> Option<u64> {
        let log = self.streams().next()?;
        let answered = log.samples.iter().rev().find(|s| s.rtt.is_some())?;
        Some(log.started_monotonic_ns + (answered.sent_s * 1e9) as u64 + 1)
    }

    /// The stream that shows the far host's clock.
    pub fn udp(&self) -> Option<&ProbeLog> {
        self.0.udp.as_ref()
    }

    /// Notes of all streams.
    pub fn notes(&self) -> impl Iterator<Item = &String> {
        self.0.all().flat_map(|log| &log.notes)
    }

    /// The stream of a class of traffic to the far end.
    pub fn class(&self, class: Class) -> Option<&ProbeLog> {
        if class == BEST_EFFORT {
            return self.streams().next();
        }
        let mut classes = self.0.classes.iter();
        classes.find_map(|(known, log)| (*known == class).then_some(log))
    }

    /// The streams to places on the way, nearest first.
    pub fn places(&self) -> &[(Place, ProbeLog)] {
        &self.0.places
    }

    /// What the main stream saw in a window, if anything came back.
    pub fn main(&self, window: Window) -> Option<Answered> {
        self.streams().find_map(|log| {
            let seen = result(log, window);
            Some(Answered {
                protocol: seen.protocol,
                rtt_s: seen.rtt_s?,
                lateness_s: seen.lateness_s,
            })
        })
    }

    /// Adds the round trips of a time without load, one measurement a stream. The measurement of the native stream
    /// includes what its probes waited in each direction. Returns true when any answer came.
    pub fn record_ping(
        &self,
        found: &mut Yield,
        window: Window,
        phase: Phase,
        one_way: Option<OneWayQueueing>,
    ) -> bool {
        let mut answered = false;
        for log in self.streams() {
            let mut ping = result(log, window);
            answered |= ping.received > 0;
            if log.protocol == Protocol::Udp {
                ping.one_way = one_way.map(Box::new);
            }
            let context = Context {
                probes: identity(log, window).into_iter().collect(),
                ..Context::phase(phase)
            };
            let series = [("rtt".to_owned(), window_series(log, window))].into();
            let measured = Measured::of(window.from_ns, window.seconds(), Outcome::Ping(ping));
            found.add(measured.within(context).with_series(series));
        }
        answered
    }

    /// The round trips of every stream in a window, and which probes they were.
    pub fn series(&self, window: Window) -> (BTreeMap<String, Series>, Vec<ProbeIdentity>) {
        let mut series = BTreeMap::new();
        let mut identities = Vec::new();
        for log in self.streams() {
            let is_beside = log.protocol == Protocol::Icmp && self.0.udp.is_some();
            let name = if is_beside { "rtt_icmp" } else { "rtt" };
            series.insert(name.to_owned(), window_series(log, window));
            identities.extend(identity(log, window));
        }
        for (class, log) in &self.0.classes {
            let name = format!("rtt_{}", class.name.to_lowercase());
            series.insert(name, window_series(log, window));
        }
        for (place, log) in &self.0.places {
            let name = format!("rtt_{}", place.place.name().replace('-', "_"));
            series.insert(name, window_series(log, window));
        }
        (series, identities)
    }
}

/// A stream of which something came back.
#[derive(Debug, Clone)]
pub struct Answered {
    /// What the probes were.
    pub protocol: Protocol,
    /// Their round trips, in seconds.
    pub rtt_s: Distribution,
    /// How late this machine sent them, in seconds; `None` where it was not timed.
    pub lateness_s: Option<Distribution>,
}

/// What one stream saw from its beginning to its end.
pub fn whole(log: &ProbeLog) -> Measured {
    let result = log.result(0.0, f64::INFINITY);
    let began_ns = log.started_monotonic_ns;
    Measured::of(began_ns, log.duration_s, Outcome::Ping(result))
}

/// So many requests of one kind to a host that answered none of them, in a window before any load.
pub fn unanswered(protocol: Protocol, address: IpAddr, sent: u64, window: Window) -> Measured {
    let silence = counted(protocol, address, [sent, 0], None);
    let measured = Measured::of(window.from_ns, window.seconds(), silence);
    measured.within(Context::phase(Phase::Idle))
}

/// Round trips of which no more is known than how many were sent and answered, and how long they took.
pub(crate) fn counted(
    protocol: Protocol,
    address: IpAddr,
    [sent, received]: [u64; 2],
    rtt_s: Option<Distribution>,
) -> Outcome {
    let lost = sent.saturating_sub(received);
    Outcome::Ping(PingResult {
        protocol,
        address: address.to_string(),
        sent,
        received,
        loss_ratio: (sent > 0).then(|| lost as f64 / sent as f64),
        duplicates: 0,
        reordered: 0,
        late: 0,
        losses: LossPattern::default(),
        hop_limits: Vec::new(),
        hop_limit_changes: 0,
        icmp_errors: BTreeMap::new(),
        answers: BTreeMap::new(),
        phases: None,
        sizes: Vec::new(),
        send_errors: 0,
        dropped_here: 0,
        corrupted: 0,
        rtt_s,
        lateness_s: None,
        timestamps: TimestampSource::User,
        one_way: None,
    })
}

/// What one stream saw in a window.
pub fn result(log: &ProbeLog, window: Window) -> PingResult {
    let (from, to) = relative(log, window);
    log.result(from, to)
}

/// The round trips of one stream in a window.
pub fn window_series(log: &ProbeLog, window: Window) -> Series {
    let (from, to) = relative(log, window);
    log.series(from, to)
}

/// Which probes they were, so that they can be found again in a capture or a lab's record; `None` where none
/// was sent in the window.
pub fn identity(log: &ProbeLog, window: Window) -> Option<ProbeIdentity> {
    let (from, to) = relative(log, window);
    let first = log.window(from, to).next()?;
    Some(ProbeIdentity {
        protocol: log.protocol,
        id: log.id,
        first_seq: first.sequence,
    })
}

/// A window in seconds from the start of a stream.
pub(crate) fn relative(log: &ProbeLog, window: Window) -> (f64, f64) {
    let seconds = |ns: u64| (ns as f64 - log.started_monotonic_ns as f64) / 1e9;
    (seconds(window.from_ns), seconds(window.to_ns))
}
