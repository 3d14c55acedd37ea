//! The process that watches: it probes when the schedule says so, writes what became of it each second, and serves the
//! page.

use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use plumb_probe::{ProbeError, Trust, TrustError};

use crate::alarm::engine::{Engine, JUDGE_EVERY_S};
use crate::alarm::record::Alarm;
use crate::config::deliveries::Delivery;
use crate::config::{Config, ConfigError, Target};
use crate::deliver::delivery::NotTaken;
use crate::deliver::message::{line, message};
use crate::deliver::retry;
use crate::flows::listening::{Heard, Listening};
use crate::mesh::fetching;
use crate::mesh::slots::Slots;
use crate::page;
use crate::probe::{News, Prober};
use crate::remote_write::sending::{self as remote_write, Sending};
use crate::sample::Sample;
use crate::schedule::Schedule;
use crate::silence::Silence;
use crate::store::{Queued, Store, StoreError};
use crate::sweep::{self, Sweeps};
use crate::target::kind::{Seen, now_us};

/// How often samples are written: what is lost when the machine stops.
const WRITE_EVERY: Duration = Duration::from_secs(1);

/// How often windows that are over are summed up.
const SUM_UP_EVERY: Duration = Duration::from_secs(60);

/// How soon a signal is seen.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Probes under way at once: each is two threads and up to two descriptors, for a timeout of 3 s at most. Of 1024 descriptors,
/// which a process has by default, it leaves some to the page.
const MOST_UNDER_WAY: usize = 400;

/// Samples that wait for a database that cannot be written, before the oldest are dropped: 24 MB at most.
const MOST_WAITING: usize = 200_000;

/// Minutes of flows that wait for it likewise: half an hour of two places, in 20 MB.
const MOST_FLOWS_WAITING: usize = 60;

/// A minute is judged so long after its end, in seconds: the last answers have come, and are written.
const JUDGE_AFTER_S: i64 = 10;

/// How often it is looked whether a message is to be sent.
const SEND_EVERY: Duration = Duration::from_secs(2);

/// For how long an alarm that was cleared is part of what a delivery of state is sent, in seconds: Prometheus' own time
/// (`resolvedRetention`), in which a receiver that was away hears of it.
const STATE_KEEPS_S: i64 = 900;

/// Why watching ended or could not begin.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("HTTPS cannot be probed: {0}")]
    Trust(#[from] TrustError),
    #[error("the targets cannot be probed: {0}")]
    Probe(#[from] ProbeError),
    #[error("the flows '{name}' cannot be listened to at {listen}: {source}")]
    Flows {
        name: String,
        listen: std::net::SocketAddr,
        source: std::io::Error,
    },
    #[error(
        "the page cannot be served at {listen}: {source}; listen = \"ADDRESS:PORT\" under [page] moves it"
    )]
    Page {
        listen: std::net::SocketAddr,
        source: std::io::Error,
    },
}

/// What signals ask for.
#[derive(Debug, Default)]
pub struct Asked {
    pub stop: Arc<AtomicBool>,
    /// To read the file again.
    pub reload: Arc<AtomicBool>,
}

/// Watches what the file says until it is asked to end. `say` gets what people should know.
///
/// # Errors
/// When the file is wrong, or the database or the page's address cannot be had.
pub fn run(file: &Path, asked: &Asked, say: &dyn Fn(&str)) -> Result<(), WatchError> {
    let config = Config::read(file)?;
    let store = Store::open(&config.store)?;
    let listen = config.listen;
    let page_failed = |source| WatchError::Page { listen, source };
    let listener = TcpListener::bind(listen).map_err(page_failed)?;
    let address = listener.local_addr().map_err(page_failed)?;
    let shown = Arc::new(Mutex::new(Arc::new(config.clone())));
    let (sender, news) = mpsc::channel();
    for warning in &config.warnings {
        say(warning);
    }
    let mut watching = Watching {
        series: BTreeMap::new(),
        places: Vec::new(),
        slots: Slots::default(),
        schedule: Schedule::new(Vec::new(), Duration::ZERO),
        sweeps: Sweeps::default(),
        engine: Engine::new(&config, store.standing()?),
        judged_s: 0,
        changed: Vec::new(),
        sending: Vec::new(),
        sent: mpsc::channel(),
        state_due_s: BTreeMap::new(),
        store,
        waiting: Vec::new(),
        complaints: Complaints::default(),
        silence: Silence::default(),
        under_way: 0,
        busy: BTreeSet::new(),
        news,
        prober: Prober::new(None, sender),
        listening: listening(&config)?,
        flows_waiting: Vec::new(),
        remote_write: None,
        config,
        say,
    };
    watching.prepare()?;
    watching.begin(Duration::ZERO)?;
    let heard = fetching::Shared::default();
    page::serve(listener, Arc::clone(&shown), Arc::clone(&heard)).map_err(page_failed)?;
    if let Err(why) = fetching::begin(Arc::clone(&shown), heard, Arc::clone(&asked.stop)) {
        say(&format!(
            "rows of other members of a mesh cannot be fetched: {why}"
        ));
    }
    watching.begin_remote_write(&shown);
    say(&format!(
        "watching {}; the page is at http://{address}/",
        watching.config.summary()
    ));
    watching.until_stopped(file, asked, &shown);
    if let Some(sending) = watching.remote_write.take() {
        sending.end();
    }
    let heard = watching.listening.end();
    watching.flows_waiting.extend(heard);
    watching.store.append_flows(&watching.flows_waiting)?;
    Ok(watching.store.append(&watching.waiting)?)
}

/// Listens to the exporters of the file.
fn listening(config: &Config) -> Result<Listening, WatchError> {
    Listening::begin(&config.flows).map_err(|(source, error)| WatchError::Flows {
        name: source.name,
        listen: source.listen,
        source: error,
    })
}

/// What was complained of last, so that the same is not said with each probe.
#[derive(Debug, Default)]
struct Complaints(BTreeMap<String, String>);

impl Complaints {
    /// Whether that is new of this name.
    fn is_new(&mut self, name: &str, why: &str) -> bool {
        self.0.insert(name.to_owned(), why.to_owned()).as_deref() != Some(why)
    }
}

/// What became of a message: of which delivery, which one of the queue if it is of that, and why it was not taken.
type Sent = (String, Option<Queued>, Result<(), NotTaken>);

struct Watching<'a> {
    config: Config,
    /// Of targets that are probed one by one, in this order.
    schedule: Schedule,
    /// Their places in the file.
    places: Vec<usize>,
    /// Of targets that load paths of a mesh, by the time of day.
    slots: Slots,
    /// All others, of which many are alike.
    sweeps: Sweeps,
    store: Store,
    engine: Engine,
    /// The end of the last minute that was judged, s since 1970.
    judged_s: i64,
    /// Alarms that were raised or cleared, and are not written yet.
    changed: Vec<Alarm>,
    /// Names of deliveries that are sending a message.
    sending: Vec<String>,
    sent: (mpsc::Sender<Sent>, mpsc::Receiver<Sent>),
    /// When deliveries of state are sent it again, s since 1970, by their names.
    state_due_s: BTreeMap<String, i64>,
    /// Samples that are not written yet.
    waiting: Vec<(String, Sample)>,
    complaints: Complaints,
    silence: Silence,
    /// Series that were seen, by their names.
    series: BTreeMap<String, Target>,
    under_way: usize,
    /// Names of targets that are measured right now, of kinds of which no two run together.
    busy: BTreeSet<String>,
    news: mpsc::Receiver<(String, News)>,
    prober: Prober,
    listening: Listening,
    /// Minutes of flows that are not written yet.
    flows_waiting: Vec<Heard>,
    /// Where the file had it once.
    remote_write: Option<Sending>,
    say: &'a dyn Fn(&str),
}

impl Watching<'_> {
    /// Does what the targets need before they are probed.
    fn prepare(&mut self) -> Result<(), WatchError> {
        let targets = &self.config.targets;
        let https = targets.iter().any(|target| target.kind.needs_trust());
        if https && !self.prober.has_trust() {
            self.prober.trust(Trust::authorities(None)?);
        }
        let intervals = targets.iter().map(|t| (t.name.as_str(), t.every));
        Ok(self.store.note_intervals(intervals)?)
    }

    /// Begins to probe all targets of the file in force.
    fn begin(&mut self, start: Duration) -> Result<(), ProbeError> {
        let targets = &self.config.targets;
        let groups = sweep::groups(targets);
        let swept: BTreeSet<usize> = groups.values().flatten().copied().collect();
        let mesh = self.config.mesh.as_ref();
        let slot_of = |target| mesh.and_then(|mesh| mesh.slot_of(target));
        let slots = targets.iter().enumerate();
        let slots = slots.filter_map(|(place, target)| Some((place, slot_of(target)?)));
        let slots: Vec<_> = slots.collect();
        let slotted: BTreeSet<usize> = slots.iter().map(|(place, _)| *place).collect();
        self.slots = Slots::new(slots, now_us());
        let one_by_one =
            |(place, _): &(usize, _)| !swept.contains(place) && !slotted.contains(place);
        let places = targets.iter().enumerate().filter(one_by_one);
        let (places, every) = places.map(|(place, target)| (place, target.every)).unzip();
        self.places = places;
        self.schedule = Schedule::new(every, start);
        // What was begun before ends: its places may belong to another file.
        self.sweeps = Sweeps::new(groups);
        self.sweeps.resume(targets).map(drop)
    }

    /// Begins to send the metrics, where the file says so and it was not begun before.
    fn begin_remote_write(&mut self, shown: &Arc<Mutex<Arc<Config>>>) {
        if self.config.remote_write.is_none() || self.remote_write.is_some() {
            return;
        }
        match Sending::begin(Arc::clone(shown)) {
            Ok(sending) => self.remote_write = Some(sending),
            Err(why) => (self.say)(&format!("remote write cannot begin: {why}")),
        }
    }

    /// Says what is to be known of remote write.
    fn hear_remote_write(&mut self) {
        let sending = self.remote_write.iter();
        let news: Vec<remote_write::News> = sending.flat_map(Sending::news).collect();
        for one in news {
            match one {
                remote_write::News::Stuck(why) => self.complain_of("remote write", why),
                remote_write::News::Lost(words) => (self.say)(&format!("remote write: {words}")),
            }
        }
    }

    fn until_stopped(&mut self, file: &Path, asked: &Asked, shown: &Arc<Mutex<Arc<Config>>>) {
        let begun = Instant::now();
        let (mut written, mut summed, mut sent) = (begun, None::<Instant>, begun);
        while !asked.stop.load(Ordering::Relaxed) {
            if asked.reload.swap(false, Ordering::Relaxed) {
                self.reload(file, begun.elapsed(), shown);
            }
            while let Some((number, _)) = self.schedule.take(begun.elapsed()) {
                if let Some(place) = self.places.get(number) {
                    self.probe(*place, false);
                }
            }
            for place in self.slots.take(now_us()) {
                self.probe(place, true);
            }
            if written.elapsed() >= WRITE_EVERY {
                written = Instant::now();
                self.take_swept();
                self.write();
                self.write_flows();
                self.resume_sweeps();
                self.hear_remote_write();
            }
            if summed.is_none_or(|at| at.elapsed() >= SUM_UP_EVERY) {
                summed = Some(Instant::now());
                let done = self.store.sum_up(now_us() / 1_000_000);
                self.complain_of("the history", done.err().map(|error| error.to_string()));
            }
            self.judge(now_us() / 1_000_000);
            if sent.elapsed() >= SEND_EVERY {
                sent = Instant::now();
                self.send(now_us() / 1_000_000);
            }
            let due = self.schedule.next().unwrap_or(Duration::MAX);
            let pause = due.saturating_sub(begun.elapsed()).min(LOOK_EVERY);
            match self.news.recv_timeout(pause) {
                Ok((name, news)) => self.take(name, news),
                // The prober has a sender too.
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {}
            }
        }
    }

    /// Judges the minute that is over, once. After a clock was set back its minutes are judged again, which is no harm.
    fn judge(&mut self, now_s: i64) {
        let end_s = (now_s - JUDGE_AFTER_S).div_euclid(JUDGE_EVERY_S) * JUDGE_EVERY_S;
        if end_s == self.judged_s {
            return;
        }
        self.judged_s = end_s;
        if self.config.alarms.is_empty() && self.changed.is_empty() && !self.engine.has_orphans() {
            return;
        }
        let why = match self.engine.judge(&self.store, end_s) {
            Ok(changed) => {
                for alarm in &changed {
                    (self.say)(&format!("alarm: {}", line(alarm, end_s)));
                }
                self.changed.extend(changed);
                None
            }
            Err(error) => Some(error.to_string()),
        };
        self.complain_of("the alarms", why);
        // What cannot be written waits for the next minute.
        let done = match self.changed.is_empty() {
            true => Ok(()),
            false => self.write_alarms(end_s),
        };
        if done.is_ok() {
            self.changed.clear();
        }
        self.complain_of(
            "the database of alarms",
            done.err().map(|error| error.to_string()),
        );
    }

    fn write_alarms(&mut self, now_s: i64) -> Result<(), StoreError> {
        let message = message(&self.changed, now_s);
        let queued = self.config.deliveries.iter();
        let queued = queued.filter(|delivery| delivery.by.state_every_s().is_none());
        let names = queued.map(|delivery| delivery.name.as_str());
        self.store
            .write_alarms(&self.changed, (&message, now_s), names)?;
        // Deliveries of state get it at once.
        self.state_due_s.clear();
        Ok(())
    }

    /// Sends what is due, one message of each delivery at a time, each in a thread that ends with the try.
    fn send(&mut self, now_s: i64) {
        while let Ok((name, queued, done)) = self.sent.1.try_recv() {
            self.sending.retain(|sending| *sending != name);
            self.settle(&name, queued, done, now_s);
        }
        for delivery in self.config.deliveries.clone() {
            if self.sending.contains(&delivery.name) {
                continue;
            }
            match delivery.by.state_every_s() {
                Some(every_s) => self.send_state(delivery, every_s, now_s),
                None => {
                    if let Ok(Some(queued)) = self.store.due(&delivery.name, now_s) {
                        let message = queued.message.clone();
                        self.begin_sending(delivery, Some(queued), message);
                    }
                }
            }
        }
    }

    /// Sends all that stands and what was cleared lately, where it is time for that and there is any.
    fn send_state(&mut self, delivery: Delivery, every_s: i64, now_s: i64) {
        let due_s = self.state_due_s.get(&delivery.name).copied();
        // A clock that was set back does not put it off.
        if due_s.is_some_and(|due_s| now_s < due_s && due_s - now_s <= every_s) {
            return;
        }
        self.state_due_s
            .insert(delivery.name.clone(), now_s.saturating_add(every_s));
        let alarms = match self.store.alarms_since(now_s - STATE_KEEPS_S) {
            Ok(alarms) => alarms,
            Err(why) => return self.complain_of("the alarms", Some(why.to_string())),
        };
        if !alarms.is_empty() {
            self.begin_sending(delivery, None, message(&alarms, now_s));
        }
    }

    fn begin_sending(&mut self, delivery: Delivery, queued: Option<Queued>, message: String) {
        let (to, name) = (self.sent.0.clone(), delivery.name.clone());
        let work = move || {
            let done = delivery.by.send(&message);
            // It is no error if the receiver is gone: the next process sends it again.
            drop(to.send((delivery.name, queued, done)));
        };
        match thread::Builder::new().name("deliver".into()).spawn(work) {
            Ok(_) => self.sending.push(name),
            Err(why) => (self.say)(&format!("no alarm can be sent: {why}")),
        }
    }

    /// Notes what became of a message.
    fn settle(
        &mut self,
        name: &str,
        queued: Option<Queued>,
        done: Result<(), NotTaken>,
        now_s: i64,
    ) {
        let about = format!("delivery '{name}'");
        let Some(queued) = queued else {
            let why = done.err();
            let why = why.map(|not| format!("the alarms that stand are not sent yet: {}", not.why));
            return self.complain_of(&about, why);
        };
        let again_s = match &done {
            Err(NotTaken { again: true, .. }) => {
                retry::again_s(queued.tries.saturating_add(1), queued.queued_s, now_s)
            }
            _ => None,
        };
        let why = done.err().map(|not| match again_s {
            Some(_) => format!("an alarm is not sent yet: {}", not.why),
            None => format!("an alarm was given up: {}", not.why),
        });
        self.complain_of(&about, why);
        // A message that was sent and cannot be removed is sent again, rather than none.
        let settled = self.store.settle(queued.id, again_s);
        self.complain_of(
            "the queue of alarms",
            settled.err().map(|error| error.to_string()),
        );
    }

    fn probe(&mut self, place: usize, in_slot: bool) {
        let Some(target) = self.config.targets.get(place) else {
            return;
        };
        let name = target.name.clone();
        if self.under_way >= MOST_UNDER_WAY {
            let why = format!("not probed, because {MOST_UNDER_WAY} probes are under way");
            self.complain_of(&name, Some(why));
            return;
        }
        let overlaps = target.kind.overlaps();
        if !overlaps && self.busy.contains(&name) {
            let why = "not probed, because the one before is still under way".to_owned();
            self.complain_of(&name, Some(why));
            return;
        }
        match self.prober.begin(target, in_slot) {
            Ok(()) => {
                self.under_way += 1;
                if !overlaps {
                    self.busy.insert(name);
                }
            }
            Err(error) => self.complain_of(&name, Some(format!("not probed: {error}"))),
        }
    }

    /// Begins again what ended by itself or could not begin, so that no target is left without probes.
    fn resume_sweeps(&mut self) {
        let why = match self.sweeps.resume(&self.config.targets) {
            Ok(false) => return,
            Ok(true) => "it had ended, and is begun again".to_owned(),
            Err(error) => format!("it cannot be begun yet: {error}"),
        };
        self.complain_of("the probing of many targets", Some(why));
    }

    /// Takes what sweeps have seen.
    fn take_swept(&mut self) {
        let sweeps = std::mem::take(&mut self.sweeps);
        for (place, sample, why) in sweeps.seen() {
            let Some(name) = self.config.targets.get(place).map(|t| t.name.clone()) else {
                continue;
            };
            if let Some(why) = why {
                self.complain_of(&format!("{name}, no answer"), Some(why));
            }
            if let Some(sample) = sample {
                self.keep(name, sample);
            }
        }
        self.sweeps = sweeps;
    }

    /// Keeps what became of a probe until it is written.
    fn keep(&mut self, name: String, sample: Sample) {
        let answered = sample.value.is_some();
        let targets = self.config.targets.len();
        if let Some(words) = self.silence.step(&name, answered, sample.sent_us, targets) {
            (self.say)(&words);
        }
        self.waiting.push((name, sample));
    }

    fn take(&mut self, name: String, news: News) {
        match news {
            News::Seen(sample, why) => {
                self.complain_of(&name, None);
                if let Some(why) = why {
                    // Each reason once, and not with each probe that is lost.
                    let about = format!("{name}, no answer");
                    self.complain_of(&about, Some(why));
                }
                self.keep(name, sample);
            }
            News::NotProbed(why) => self.complain_of(&name, Some(format!("not probed: {why}"))),
            News::Moved { from, to } => {
                (self.say)(&format!("{name}: its address was {from}, and is {to} now"));
            }
            News::State(at_us, state) => self.take_state(&name, at_us, &state),
            News::Series(at_us, seen) => self.take_series(&name, at_us, seen),
            News::Ended => {
                self.busy.remove(&name);
                self.under_way = self.under_way.saturating_sub(1);
            }
        }
    }

    fn take_state(&mut self, name: &str, at_us: i64, state: &str) {
        let about = format!("what is seen of {name}");
        match self.note_state(name, at_us, state) {
            Ok(None) => self.complain_of(&about, None),
            Ok(Some(before)) => (self.say)(&format!("{name}: it was {before}, and is {state}")),
            Err(error) => self.complain_of(&about, Some(error.to_string())),
        }
    }

    /// Takes what was seen of a series of that target. Without a value nothing is kept, and why there is none is said.
    fn take_series(&mut self, of: &str, at_us: i64, seen: Seen) {
        let name = format!("{of} {}", seen.name);
        let about = format!("{name}, no value");
        let value = match seen.value {
            Ok(value) => value,
            Err(why) => return self.complain_of(&about, Some(why)),
        };
        self.complain_of(&about, None);
        if !self.series.contains_key(&name) {
            // A target that the file has no more may have been under way.
            let Some(series) = self.config.series(&name) else {
                return;
            };
            let noted = [(name.as_str(), series.every)].into_iter();
            if let Err(error) = self.store.note_intervals(noted) {
                return self.complain_of("the database", Some(error.to_string()));
            }
            self.engine.add_series(series.clone());
            self.series.insert(name.clone(), series);
        }
        if let Some(state) = seen.state {
            self.take_state(&name, at_us, &state);
        }
        let sample = Sample {
            sent_us: at_us,
            value: Some(value),
        };
        self.waiting.push((name, sample));
    }

    /// Keeps what was seen of a target where it is another than what was seen last, and returns that.
    fn note_state(
        &mut self,
        name: &str,
        at_us: i64,
        state: &str,
    ) -> Result<Option<String>, StoreError> {
        let before = self.store.state(name)?;
        let kind = self
            .config
            .targets
            .iter()
            .find(|target| target.name == name)
            .or_else(|| self.series.get(name));
        let changed = match (&before, kind) {
            (Some(before), Some(target)) => target.kind.is_change(before, state),
            (None, Some(_)) => true,
            // It is watched no more.
            (_, None) => return Ok(None),
        };
        if changed {
            self.store.note_state(name, at_us, state)?;
        }
        Ok(before.filter(|_| changed))
    }

    /// Says what is wrong, once until it changes; `None` where nothing is.
    fn complain_of(&mut self, name: &str, why: Option<String>) {
        let said = why.as_deref().unwrap_or_default();
        if self.complaints.is_new(name, said)
            && let Some(why) = why
        {
            (self.say)(&format!("{name}: {why}"));
        }
    }

    /// Writes what waits; what cannot be written waits on.
    fn write(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let done = self.store.append(&self.waiting);
        match &done {
            Ok(()) => self.waiting.clear(),
            Err(_) => {
                let over = self.waiting.len().saturating_sub(MOST_WAITING);
                self.waiting.drain(..over);
            }
        }
        let why = done.err().map(|error| error.to_string());
        self.complain_of("the database", why);
    }

    /// Writes what was heard of flows; what cannot be written waits on.
    fn write_flows(&mut self) {
        let heard: Vec<Heard> = self.listening.heard().collect();
        for one in &heard {
            let about = format!("flows '{}'", one.source);
            let others = one.state.refused_from.iter().map(ToString::to_string);
            let others = others.collect::<Vec<_>>().join(", ");
            let why = (!others.is_empty())
                .then(|| format!("what {others} sends is refused: it is not among its exporters"));
            self.complain_of(&about, why);
        }
        self.flows_waiting.extend(heard);
        if self.flows_waiting.is_empty() {
            return;
        }
        let done = self.store.append_flows(&self.flows_waiting);
        match &done {
            Ok(()) => self.flows_waiting.clear(),
            Err(_) => {
                let over = self.flows_waiting.len().saturating_sub(MOST_FLOWS_WAITING);
                self.flows_waiting.drain(..over);
            }
        }
        let why = done.err().map(|error| error.to_string());
        self.complain_of("the database of flows", why);
    }

    /// Listens where the file says now.
    fn listen_again(&mut self) {
        let heard = self.listening.end();
        self.flows_waiting.extend(heard);
        match listening(&self.config) {
            Ok(listening) => self.listening = listening,
            Err(why) => (self.say)(&format!(
                "{why}; no flows are listened to until the file is read again"
            )),
        }
    }

    /// Continues with the alarms that stand, under another configuration.
    fn resume_alarms(&mut self) {
        // Alarms that could not be written yet are not in the database.
        let written = match self.changed.is_empty() {
            true => Ok(()),
            false => self.write_alarms(now_us() / 1_000_000),
        };
        match written.and_then(|()| self.store.standing()) {
            Ok(standing) => {
                self.changed.clear();
                self.engine = Engine::new(&self.config, standing);
                // Where a target is there no more they are forgotten, and come anew where they do.
                for name in std::mem::take(&mut self.series).into_keys() {
                    if let Some(series) = self.config.series(&name) {
                        self.engine.add_series(series.clone());
                        self.series.insert(name, series);
                    }
                }
            }
            Err(why) => (self.say)(&format!("the rules of alarms stay as they were: {why}")),
        }
    }

    /// Reads the file again; where it is wrong, what was in force stays in force.
    fn reload(&mut self, file: &Path, now: Duration, shown: &Arc<Mutex<Arc<Config>>>) {
        let mut config = match Config::read(file) {
            Ok(config) => config,
            Err(why) => {
                (self.say)(&format!("the configuration stays as it was: {why}"));
                return;
            }
        };
        if (&config.store, config.listen) != (&self.config.store, self.config.listen) {
            (self.say)(
                "the configuration stays as it was: [store] and [page] change with a restart alone",
            );
            return;
        }
        let (old, new) = (&self.config.targets, &config.targets);
        // Slots depend on all members of a mesh.
        let digest = |config: &Config| config.mesh.as_ref().map(|mesh| mesh.digest.clone());
        let same = old.len() == new.len()
            && old.iter().zip(new).all(|(a, b)| a.is_probed_as(b))
            && digest(&self.config) == digest(&config);
        // What a kind remembers of a target that stays, such as a device's counters, stays too.
        for target in &mut config.targets {
            let same = self
                .config
                .targets
                .iter()
                .find(|old| old.is_probed_as(target));
            if let Some(old) = same.filter(|old| old.probe == target.probe) {
                target.kind = Arc::clone(&old.kind);
            }
        }
        // Places of targets refer to the file that is in force.
        self.take_swept();
        // A place that could not be listened at is tried again.
        let listens = self.config.flows == config.flows && !self.listening.is_over();
        self.config = config;
        if !same {
            self.silence.forget();
        }
        if !listens {
            self.listen_again();
        }
        if !same && let Err(why) = self.begin(now) {
            (self.say)(&why.to_string());
        }
        self.resume_alarms();
        if let Err(why) = self.prepare() {
            (self.say)(&why.to_string());
        }
        (self.say)(&format!("read again: {}", self.config.summary()));
        *shown.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(self.config.clone());
        self.begin_remote_write(shown);
    }
}
