//! The thread that queues the metrics of each interval, and sends what waits, one request at a time.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plumb_wire::remote_write::message;
use snap::raw::Encoder;

use super::queue::{self, Bounds, Labels, Queue, Request};
use super::receiver::{Outcome, outcome, pause};
use super::round::{may_follow, samples};
use super::settings::RemoteWrite;
use crate::config::Config;
use crate::metrics::families;
use crate::store::Store;
use crate::target::kind::now_us;

/// So many samples are in a request at most: Prometheus' own (`max_samples_per_send`).
const MOST_SAMPLES: usize = 2000;

/// Where the file says nothing of it any more, it is looked so often whether it does again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// When plumb ends, a request that is under way is waited for so long: one that was taken is not sent again.
const GRACE: Duration = Duration::from_secs(2);

/// Samples that were refused or given up are spoken of so often at most.
const SPEAK_EVERY: Duration = Duration::from_secs(600);

/// What people should know.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nothing is sent, for that reason; `None` where something was again.
    Stuck(Option<String>),
    /// Samples that were lost, in words.
    Lost(String),
}

/// What the thread waits for.
enum Event {
    Sent((i64, Request), Outcome),
    Stop,
}

/// The thread, from the outside.
#[derive(Debug)]
pub(crate) struct Sending {
    events: mpsc::Sender<Event>,
    thread: JoinHandle<()>,
    news: mpsc::Receiver<News>,
}

impl Sending {
    /// Begins to send, by the configuration that is in force each time.
    pub(crate) fn begin(shown: Arc<Mutex<Arc<Config>>>) -> std::io::Result<Self> {
        let (events, waits) = mpsc::channel();
        let (say, news) = mpsc::channel();
        let own = events.clone();
        let work = move || {
            let mut sender = Sender::new(own, say);
            sender.until_stopped(&waits, &shown);
        };
        let thread = thread::Builder::new()
            .name("remote write".into())
            .spawn(work)?;
        Ok(Self {
            events,
            thread,
            news,
        })
    }

    pub(crate) fn news(&self) -> impl Iterator<Item = News> {
        self.news.try_iter()
    }

    /// Stops within [`GRACE`]. What waits is sent by the next process.
    pub(crate) fn end(self) {
        // A thread that is over hears nothing, and one that panicked has said so.
        let _ = self.events.send(Event::Stop);
        let _ = self.thread.join();
    }
}

struct Sender {
    events: mpsc::Sender<Event>,
    say: mpsc::Sender<News>,
    /// Open from the first round on.
    queue: Option<Queue>,
    /// The time of the last round, ms since 1970, and its series.
    last: (Option<i64>, BTreeSet<Labels>),
    next_round: Instant,
    next_try: Instant,
    is_sending: bool,
    /// Tries of the oldest request that failed.
    failed: u32,
    /// By what was tried last.
    settings: Option<RemoteWrite>,
    refused: Tally,
    given_up: Tally,
}

impl Sender {
    fn new(events: mpsc::Sender<Event>, say: mpsc::Sender<News>) -> Self {
        let now = Instant::now();
        Self {
            events,
            say,
            queue: None,
            last: (None, BTreeSet::new()),
            next_round: now,
            next_try: now,
            is_sending: false,
            failed: 0,
            settings: None,
            refused: Tally::default(),
            given_up: Tally::default(),
        }
    }

    fn until_stopped(&mut self, waits: &mpsc::Receiver<Event>, shown: &Mutex<Arc<Config>>) {
        loop {
            let config = Arc::clone(&shown.lock().unwrap_or_else(PoisonError::into_inner));
            let wait = match &config.remote_write {
                Some(settings) => self.turn(&config, settings),
                None => LOOK_EVERY,
            };
            match waits.recv_timeout(wait) {
                Ok(Event::Sent(request, outcome)) => self.settle(&request, outcome),
                Ok(Event::Stop) | Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        if self.is_sending
            && let Ok(Event::Sent(request, outcome)) = waits.recv_timeout(GRACE)
        {
            self.settle(&request, outcome);
        }
    }

    /// Queues and sends what is due, and returns for how long nothing is.
    fn turn(&mut self, config: &Config, settings: &RemoteWrite) -> Duration {
        if self.settings.as_ref() != Some(settings) {
            // Another receiver, or another password, is tried at once.
            self.settings = Some(settings.clone());
            (self.failed, self.next_try) = (0, Instant::now());
        }
        let now = Instant::now();
        if now >= self.next_round {
            // Rounds that were missed are not made up for.
            let missed = (now - self.next_round).as_nanos() / settings.every.as_nanos().max(1);
            let missed = u32::try_from(missed).unwrap_or(u32::MAX);
            self.next_round += settings.every.saturating_mul(missed.saturating_add(1));
            let done = self.round(config, settings);
            if let Err(why) = done {
                self.say(News::Stuck(Some(format!("nothing is queued: {why}"))));
            }
        }
        if !self.is_sending
            && now >= self.next_try
            && let Err(why) = self.send(settings)
        {
            self.put_off(why, None);
        }
        // Where nothing is put off, the queue is empty.
        let until = match self.next_try > now && !self.is_sending {
            true => self.next_round.min(self.next_try),
            false => self.next_round,
        };
        until.saturating_duration_since(Instant::now())
    }

    /// Queues the samples of now.
    fn round(&mut self, config: &Config, settings: &RemoteWrite) -> Result<(), String> {
        let path = queue::path(&config.store);
        if self.queue.is_none() {
            let queue = Queue::open(&path).map_err(|error| error.to_string())?;
            let last = queue.last().map_err(|error| error.to_string())?;
            self.last = match last {
                Some((at_ms, series)) => (Some(at_ms), series),
                None => (None, BTreeSet::new()),
            };
            self.queue = Some(queue);
        }
        let Some(queue) = &mut self.queue else {
            return Ok(());
        };
        let at_ms = now_us() / 1000;
        if !may_follow(at_ms, self.last.0) {
            return Err(
                "the clock was set back, and samples have to be in the order of time".to_owned(),
            );
        }
        let store = Store::open_to_read(&config.store).map_err(|error| error.to_string())?;
        let families = families(config, &store, at_ms / 1000).map_err(|error| error.to_string())?;
        let (samples, series) = samples(&families, &settings.labels, at_ms, &self.last.1);
        let mut encoder = Encoder::new();
        let requests = samples.chunks(MOST_SAMPLES).map(|samples| {
            let body = encoder.compress_vec(&message(settings.version, samples));
            Ok(Request {
                version: settings.version,
                samples: u32::try_from(samples.len()).unwrap_or(u32::MAX),
                body: body.map_err(|error| error.to_string())?,
            })
        });
        let requests = requests.collect::<Result<Vec<_>, String>>()?;
        let changed = (self.last.0.is_none() || series != self.last.1).then_some(&series);
        let bounds = Bounds {
            bytes: i64::try_from(settings.keep_bytes.bytes()).unwrap_or(i64::MAX),
            age_ms: i64::try_from(settings.keep.as_millis()).unwrap_or(i64::MAX),
        };
        let given_up = queue
            .put(&requests, (at_ms, changed), bounds)
            .map_err(|error| error.to_string())?;
        self.last = (Some(at_ms), series);
        if let Some(words) = self.given_up.add(given_up, Instant::now()) {
            self.say(News::Lost(format!(
                "{words} given up before they were sent: keep and keep_bytes allow no more to wait"
            )));
        }
        Ok(())
    }

    /// Sends the oldest request, in a thread that ends with the try.
    fn send(&mut self, settings: &RemoteWrite) -> Result<(), String> {
        let Some(queue) = &self.queue else {
            return Ok(());
        };
        let first = queue.first().map_err(|error| error.to_string())?;
        let Some((id, request)) = first else {
            return Ok(());
        };
        let (settings, events) = (settings.clone(), self.events.clone());
        let work = move || {
            let outcome = tried(&settings, &request);
            // It is no error if the receiver is gone: the next process sends it again.
            drop(events.send(Event::Sent((id, request), outcome)));
        };
        thread::Builder::new()
            .name("remote request".into())
            .spawn(work)
            .map_err(|error| error.to_string())?;
        self.is_sending = true;
        Ok(())
    }

    /// Notes what became of a request.
    fn settle(&mut self, (id, request): &(i64, Request), outcome: Outcome) {
        self.is_sending = false;
        let (written, why) = match outcome {
            Outcome::Again { why, after } => return self.put_off(why, after),
            Outcome::Done { written, why } => (written, why),
        };
        if let Some(queue) = &mut self.queue
            && let Err(error) = queue.settle((*id, request), written)
        {
            // Sent again rather than lost: the receiver has the same samples twice.
            return self.put_off(error.to_string(), None);
        }
        self.failed = 0;
        self.next_try = Instant::now();
        self.say(News::Stuck(None));
        if let Some(why) = why {
            let samples = request.samples.saturating_sub(written);
            if let Some(words) = self.refused.add(samples.into(), Instant::now()) {
                self.say(News::Lost(format!("{words} refused, and dropped: {why}")));
            }
        }
    }

    fn put_off(&mut self, why: String, after: Option<Duration>) {
        self.failed = self.failed.saturating_add(1);
        self.next_try = Instant::now() + pause(self.failed, after);
        self.say(News::Stuck(Some(format!("nothing is sent yet: {why}"))));
    }

    fn say(&self, news: News) {
        // Who does not listen any more ends.
        drop(self.say.send(news));
    }
}

/// Sends a request once.
fn tried(settings: &RemoteWrite, request: &Request) -> Outcome {
    let send = || {
        let own = settings.fields()?;
        let mut fields = vec![
            ("Content-Encoding", "snappy"),
            ("Content-Type", request.version.content_type()),
            (
                "X-Prometheus-Remote-Write-Version",
                request.version.header(),
            ),
        ];
        fields.extend(own.iter().map(|(name, value)| (*name, value.as_str())));
        let trust = settings.trust()?;
        let (body, within) = (&request.body, settings.within);
        settings.to.exchange(&fields, body, trust.as_ref(), within)
    };
    match send() {
        Ok(answer) => {
            let now_s = now_us() / 1_000_000;
            match outcome(request.version, request.samples, &answer, now_s) {
                Outcome::Again { why, after } => Outcome::Again {
                    why: format!("{}: {why}", settings.to),
                    after,
                },
                Outcome::Done { written, why } => Outcome::Done {
                    written,
                    why: why.map(|why| format!("{}: {why}", settings.to)),
                },
            }
        }
        Err(why) => Outcome::Again { why, after: None },
    }
}

/// Samples that were lost, and not spoken of yet.
#[derive(Debug, Default)]
struct Tally {
    samples: i64,
    said: Option<Instant>,
}

impl Tally {
    /// Adds some, and returns words of how many there are, where it is time to speak of them.
    fn add(&mut self, samples: i64, now: Instant) -> Option<String> {
        self.samples += samples;
        let is_time = self
            .said
            .is_none_or(|at| now.saturating_duration_since(at) >= SPEAK_EVERY);
        if self.samples == 0 || !is_time {
            return None;
        }
        self.said = Some(now);
        match std::mem::take(&mut self.samples) {
            1 => Some("1 sample was".to_owned()),
            count => Some(format!("{count} samples were")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_spoken_of_once_in_ten_minutes() {
        let (mut tally, begun) = (Tally::default(), Instant::now());
        let mut at = |seconds, samples| {
            let now = begun + Duration::from_secs(seconds);
            tally.add(samples, now)
        };
        assert_eq!(at(0, 0), None);
        assert_eq!(at(0, 1).unwrap(), "1 sample was");
        assert_eq!((at(1, 5), at(599, 6)), (None, None));
        assert_eq!(at(600, 1).unwrap(), "12 samples were");
        assert_eq!(at(2000, 0), None);
    }
}
